#include "monitor/rank_status.h"

#include <cmath>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/files.h"
#include "monitor/processes.h"
#include "monitor/snapshot.h"

namespace cohort::monitor {
namespace {
namespace fs = std::filesystem;

RankStatus example_status(int rank) {
  RankStatus s;
  identify_process(s);
  s.rank = rank;
  s.world_size = 2;
  s.job = "regressor \"quoted\"";
  s.device = "cpu";
  s.state = "training";
  s.step = 17;
  s.total_steps = 100;
  s.batches_per_epoch = 10;
  s.batch_size = 16;
  s.steps_per_s = 12.5;
  s.step_s = 0.08;
  s.data_s = 0.01;
  s.seconds_left = 6.64;
  s.host_bytes = 1ull << 40;
  s.time = 1795000000.25;
  return s;
}

TEST(RankStatus, WhatIsWrittenIsReadBackAndUnknownNumbersStayUnknown) {
  const RankStatus s = example_status(1);
  const auto back = parse_rank_status(to_json(s));
  ASSERT_TRUE(back);
  EXPECT_EQ(to_json(*back), to_json(s));
  EXPECT_EQ(back->job, s.job);
  EXPECT_EQ(back->host_bytes, 1ull << 40);
  EXPECT_DOUBLE_EQ(back->steps_per_s, 12.5);
  EXPECT_TRUE(std::isnan(back->exchange_s));
}

TEST(RankStatus, DamagedFilesAreLeftOut) {
  const TemporaryFolder folder("cohort-status-");
  RankStatusFile(folder.path() / "ranks", 1).write(example_status(1));
  RankStatusFile(folder.path() / "ranks", 0).write(example_status(0));
  std::ofstream(folder.path() / "ranks/rank_2.json") << "{\"rank\": 2, \"pid\"";
  std::ofstream(folder.path() / "ranks/rank_3.json") << R"({"rank": "x", "pid": 1, "state": 4})";
  std::ofstream(folder.path() / "ranks/rank_4.json") << "[]";
  const auto ranks = read_rank_statuses(folder.path() / "ranks");
  ASSERT_EQ(ranks.size(), 2u);
  EXPECT_EQ(ranks[0].rank, 0);
  EXPECT_EQ(ranks[1].rank, 1);
  EXPECT_TRUE(read_rank_statuses(folder.path() / "nowhere").empty());
}

TEST(RankStatus, AFolderThatCannotBeMadeIsAReasonAndNoFailure) {
  const TemporaryFolder folder("cohort-status-");
  std::ofstream(folder.path() / "ranks") << "a file in the way";
  RankStatusFile file(folder.path() / "ranks", 0);
  EXPECT_NE(file.error().find("ranks"), std::string::npos);
  file.write(example_status(0));
}

TEST(LocalRanks, AreFoundByWhatTheirProcessHoldsOpen) {
  const TemporaryFolder folder("cohort-status-");
  const auto own = [&] {
    std::vector<LocalRank> found;
    for (LocalRank& rank : local_ranks())
      if (rank.run == fs::canonical(folder.path())) found.push_back(std::move(rank));
    return found;
  };
  {
    RankStatusFile file(folder.path() / "ranks", 0);
    EXPECT_TRUE(own().empty());
    file.write(example_status(0));
    const auto found = own();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].status.step, 17);
    EXPECT_GT(found[0].rss, 0u);
    // Another process's number, and this one's number at another time, are other processes.
    RankStatus other = example_status(0);
    other.started += 1;
    file.write(other);
    EXPECT_TRUE(own().empty());
    file.write(example_status(0));
  }
  EXPECT_TRUE(own().empty()) << "the folder is no longer held open";
}

TEST(Processes, ThisOneIsReadAsItIs) {
  const auto self = read_process(::getpid());
  ASSERT_TRUE(self);
  EXPECT_EQ(self->parent, ::getppid());
  EXPECT_TRUE(is_alive(::getpid(), self->started));
  EXPECT_FALSE(is_alive(::getpid(), self->started + 1));
  EXPECT_GT(self->rss, 0u);
  EXPECT_GE(self->threads, 1);
  EXPECT_NE(process_command(::getpid()).find("monitor_test"), std::string::npos);
  EXPECT_FALSE(read_process(1 << 30));
}

TEST(Processes, ANameWithParenthesesAndBlanksIsOneName) {
  const TemporaryFolder root("cohort-proc-");
  fs::create_directories(root.path() / "proc/77");
  std::ofstream(root.path() / "proc/77/stat")
      << "77 (a) b (c)) T 5 77 77 0 -1 4194304 1 0 0 0 250 150 0 0 20 0 9 0 123456 1000 25 18446744073709551615\n";
  const auto process = read_process(77, root.path());
  ASSERT_TRUE(process);
  EXPECT_EQ(process->name, "a) b (c)");
  EXPECT_EQ(process->state, 'T');
  EXPECT_EQ(process->parent, 5);
  EXPECT_EQ(process->threads, 9);
  EXPECT_EQ(process->started, 123456u);
  EXPECT_DOUBLE_EQ(process->cpu_s, 400.0 / static_cast<double>(::sysconf(_SC_CLK_TCK)));
}

TEST(Processes, WhoListensOnAPortIsNamed) {
  const int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(::bind(socket, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int port = ntohs(address.sin_port);
  EXPECT_TRUE(listening_on({port}).empty()) << "bound, but nobody listens";
  ASSERT_EQ(::listen(socket, 1), 0);
  const auto found = listening_on({port});
  ::close(socket);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].port, port);
  EXPECT_EQ(found[0].pid, ::getpid());
  EXPECT_TRUE(found[0].name.starts_with("monitor_test")) << found[0].name;
}

TEST(Snapshot, ABusyThreadShowsInTheMachinesProcessorTime) {
  Watcher watcher("/", "libno-such-nvml.so.1");
  EXPECT_TRUE(std::isnan(watcher.read().busy_cores));
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(300);
  volatile double x = 1;
  while (std::chrono::steady_clock::now() < end) x = x * 1.0000001;
  const Snapshot now = watcher.read();
  EXPECT_GT(now.busy_cores, 0.2);  // at least this thread, on an overloaded machine too
  EXPECT_LE(now.busy_cores, now.cores.online + 0.01);
  EXPECT_NE(now.no_gpu.find("libno-such-nvml"), std::string::npos);
}

}  // namespace
}  // namespace cohort::monitor
