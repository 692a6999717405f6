#include "monitor/processes.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/files.h"
#include "monitor/snapshot.h"

namespace cohort::monitor {
namespace {
namespace fs = std::filesystem;

rank::Status own_status() {
  rank::Status status{.step = 17};
  identify_process(status);
  return status;
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
    rank::StatusFile file(folder.path() / "ranks", 0);
    EXPECT_TRUE(own().empty());
    file.write(own_status());
    const auto found = own();
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].status.step, 17);
    EXPECT_GT(found[0].rss, 0u);
    // Another process's number, and this one's number at another time, are other processes.
    rank::Status other = own_status();
    other.started += 1;
    file.write(other);
    EXPECT_TRUE(own().empty());
    file.write(own_status());
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
