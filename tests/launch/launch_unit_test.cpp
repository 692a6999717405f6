// What can be tested inside one process: texts, files, ports, the console on a pseudo-terminal, the plan of a job on
// machines described as data.
#include <csignal>
#include <cstdint>
#include <map>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/devices_machine.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json.h"
#include "core/message_of.h"
#include "core/pseudo_terminal.h"
#include "launch/agent.h"
#include "launch/console.h"
#include "launch/error_file.h"
#include "launch/oom.h"
#include "launch/port.h"
#include "launch/rank_stream.h"
#include "launch/rendezvous.h"
#include "launch/worker_environment.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
using cohort::testing::contains;
using cohort::testing::Machine;
using cohort::testing::TemporaryFolder;

TEST(LaunchSettings, StreamsAreReadAsTorchrunReadsThem) {
  EXPECT_EQ(parse_streams("3", "--tee").of(5), 3);
  const StreamChoice some = parse_streams("0:3,1:0,2:1,3:2", "--tee");
  EXPECT_EQ(some.of(0), 3);
  EXPECT_EQ(some.of(2), 1);
  EXPECT_EQ(some.of(3), 2);
  EXPECT_EQ(some.of(4), 0) << "ranks that are not named have none";
  for (const std::string bad : {"4", "-1", "x", "0:4", "0:", "a:1", "0:1,2"})
    EXPECT_TRUE(contains(message_of([&] { parse_streams(bad, "--tee"); }), "--tee='" + bad + "'")) << bad;
}

TEST(LaunchSettings, SignalsAreReadByName) {
  EXPECT_EQ(parse_signals("SIGTERM,SIGUSR1"), (std::vector{SIGTERM, SIGUSR1}));
  EXPECT_TRUE(contains(message_of([] { parse_signals("SIGTERM,TERM"); }), "'TERM'"));
  EXPECT_TRUE(contains(message_of([] { parse_signals("SIGKILL"); }), "'SIGKILL'"));
}

TEST(ErrorFile, BothOfTorchsFormsAreRead) {
  TemporaryFolder folder;
  const auto path = folder.path() / "error.json";
  EXPECT_FALSE(read_error_file(path));
  write_file_atomically(path, R"({"message": {"message": "RuntimeError: boom", "extraInfo":
                                  {"py_callstack": "Traceback\n  line\n", "timestamp": "1700000000"}}})");
  EXPECT_EQ(read_error_file(path)->message, "RuntimeError: boom");
  EXPECT_EQ(read_error_file(path)->traceback, "Traceback\n  line\n");
  write_file_atomically(path, R"({"message": "text only", "timestamp": 1700000000})");
  EXPECT_EQ(read_error_file(path)->message, "text only");
  write_file_atomically(path, R"({"mess)");
  EXPECT_TRUE(contains(read_error_file(path)->message, "cannot be understood"));
}

TEST(ErrorFile, OursIsReadBackAndTheFirstErrorStays) {
  TemporaryFolder folder;
  const auto path = folder.path() / "rank_1" / "error.json";
  setenv("TORCHELASTIC_ERROR_FILE", path.c_str(), 1);
  setenv("RANK", "1", 1);
  write_error_file("data.csv, row 7: no number \xff");
  write_error_file("a consequence");
  unsetenv("TORCHELASTIC_ERROR_FILE");
  unsetenv("RANK");
  EXPECT_TRUE(contains(read_error_file(path)->message, "data.csv, row 7"));
  EXPECT_FALSE(read_error_file(path)->host.empty());
  EXPECT_EQ(parse_json(read_file(path))["rank"], "1");
}

TEST(ErrorFile, WithoutTheVariableOrTheFolderNothingHappens) {
  unsetenv("TORCHELASTIC_ERROR_FILE");
  write_error_file("nowhere");
  setenv("TORCHELASTIC_ERROR_FILE", "/proc/no/such/folder/error.json", 1);
  write_error_file("nowhere");
  unsetenv("TORCHELASTIC_ERROR_FILE");
}

TEST(Oom, KillsOfTheGroupAreToldFromKillsByOthers) {
  TemporaryFolder root;
  write_file_atomically(root.path() / "proc/self/cgroup", "0::/job\n");
  write_file_atomically(root.path() / "proc/vmstat", "nr_free_pages 7\noom_kill 3\n");
  write_file_atomically(root.path() / "cgroup/job/memory.events", "low 0\nhigh 0\nmax 9\noom 1\noom_kill 1\n");
  const OomCounts before = read_oom_counts(root.path() / "cgroup", root.path() / "proc");
  EXPECT_EQ(before.group, 1);
  EXPECT_EQ(before.machine, 3);
  EXPECT_TRUE(contains(explain_kill(before, before, 1 << 20, 0), "counts no out-of-memory kill"));
  OomCounts after = before;
  after.group = 2;
  const std::string text = explain_kill(before, after, 5ull << 30, 4ull << 30);
  EXPECT_TRUE(contains(text, "out-of-memory killer ended 1 process")) << text;
  EXPECT_TRUE(contains(text, "peaked at 5.0 GiB") && contains(text, "limit of this control group is 4.0 GiB")) << text;
  after = before;
  after.machine = 4;
  EXPECT_TRUE(contains(explain_kill(before, after, 0, 0), "the machine ran out of memory"));
  EXPECT_TRUE(contains(explain_kill({}, {}, 0, 0), "most often that is the out-of-memory killer"));
}

TEST(Oom, VersionOneGroupsAndGroupsOutsideTheMountAreRead) {
  TemporaryFolder root;
  write_file_atomically(root.path() / "proc/self/cgroup", "4:memory:/process/abc\n0::/\n");
  write_file_atomically(root.path() / "cgroup/memory/memory.oom_control",
                        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(read_oom_counts(root.path() / "cgroup", root.path() / "proc").group, 5);
}

int listen_on(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 || listen(fd, 8) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

TEST(Port, AChosenPortIsReservedYetRankZeroMayListenOnIt) {
  const PortReservation port("127.0.0.1", 0);
  ASSERT_GT(port.port(), 0);
  const int rank0 = listen_on(port.port());  // as c10d's store does, by its own socket
  EXPECT_GE(rank0, 0);
  close(rank0);
  const int store = port.bind_store_socket();  // as our rank 0 does, by the inherited one
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ASSERT_EQ(getsockname(store, reinterpret_cast<sockaddr*>(&address), &size), 0);
  EXPECT_EQ(ntohs(address.sin_port), port.port());
  EXPECT_EQ(address.sin_addr.s_addr, htonl(INADDR_LOOPBACK)) << "the store of one node listens on loopback only";
  EXPECT_EQ(listen(store, 8), 0);
  close(store);
}

TEST(Port, NoOtherProcessIsGivenAReservedPort) {
  const PortReservation port("127.0.0.1", 0);
  for (int i = 0; i < 200; ++i) {
    const PortReservation other("127.0.0.1", 0);
    ASSERT_NE(other.port(), port.port());
  }
  const int fd = socket(AF_INET, SOCK_STREAM, 0);  // a careless program without SO_REUSEADDR
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port.port()));
  EXPECT_NE(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  close(fd);
}

TEST(Port, APortInUseIsNamedAndAFreeOneOffered) {
  const PortReservation chosen("127.0.0.1", 0);
  const int listener = listen_on(chosen.port());
  ASSERT_GE(listener, 0);
  const std::string message = message_of([&] { PortReservation("127.0.0.1", chosen.port()); });
  EXPECT_TRUE(contains(message, "port " + std::to_string(chosen.port()) + " is in use")) << message;
  EXPECT_TRUE(contains(message, "pass --master_port=")) << message;
  close(listener);
}

TEST(Port, TwoAgentsWithTheSamePortAreToldApartEvenBeforeAnyoneListens) {
  const int number = PortReservation("127.0.0.1", 0).port();
  const PortReservation first("127.0.0.1", number);
  EXPECT_TRUE(contains(message_of([&] { PortReservation("127.0.0.1", number); }), "by another cohort launch"));
}

TEST(Port, AnAddressOfAnotherMachineIsRefused) {
  EXPECT_TRUE(contains(message_of([] { PortReservation("192.0.2.7", 0); }), "is not an address of this machine"));
  EXPECT_TRUE(contains(message_of([] { PortReservation("127.0.0.1", 70000); }), "ports go from 1 to 65535"));
}

/// True when somebody listens at this IPv4 address.
bool answers(std::uint32_t address, int port) {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<std::uint16_t>(port));
  to.sin_addr.s_addr = htonl(address);
  const bool connected = connect(fd, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
  close(fd);
  return connected;
}

TEST(Port, UnderAnyNameOfThisMachineTheStoreListensOnLoopbackOnly) {
  std::vector<std::string> names = {"127.0.0.1", "localhost", "127.0.0.2", "0.0.0.0"};
  if (cohort::testing::has_ipv6_loopback()) names.insert(names.end(), {"::1", "[::1]"});
  for (const std::string& name : names) {
    const PortReservation port(name, 0);
    const int store = port.bind_store_socket();
    ASSERT_EQ(listen(store, 8), 0) << name;
    EXPECT_TRUE(answers(INADDR_LOOPBACK, port.port())) << name;
    EXPECT_FALSE(answers(INADDR_LOOPBACK + 1, port.port())) << name;
    close(store);
  }
}

// Not under GCC's undefined-behaviour sanitizer: it opens a pipe to see whether an object's memory can be read, and
// takes a pipe that it cannot have for a bad object.
#if !defined(__SANITIZE_ADDRESS__)
TEST(Port, WithoutDescriptorsNoOtherLauncherIsBlamed) {
  const int number = PortReservation("127.0.0.1", 0).port();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none{0, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const std::string message = message_of([&] { PortReservation("127.0.0.1", number); });
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(contains(message, "Too many open files")) << message;
  EXPECT_FALSE(contains(message, "in use")) << message;
}
#endif

TEST(Console, UnfinishedTextIsCutToTheTerminalAndKeepsOnlyColours) {
  EXPECT_EQ(cut_to_columns("abcdef", 4), "abcd");
  EXPECT_EQ(cut_to_columns("\xe2\x96\x88\xe2\x96\x88\xe2\x96\x88", 2), "\xe2\x96\x88\xe2\x96\x88");
  EXPECT_EQ(cut_to_columns("\x1b[31mred\x1b[0m", 3), "\x1b[31mred\x1b[0m");
  EXPECT_EQ(cut_to_columns("a\x1b[2Kb\x07", 9), "ab") << "what moves the cursor or rings is left out";
}

TEST(RankStream, CarriageReturnsLeaveTheLastState) {
  EXPECT_EQ(after_last_return("\r 10%\r 20%"), " 20%");
  EXPECT_EQ(after_last_return(" 10%\r 20%\r"), " 20%");
  EXPECT_EQ(after_last_return("plain"), "plain");
  EXPECT_EQ(after_last_return("windows\r"), "windows");
  EXPECT_EQ(after_last_return("bar 10%\r\x1b[Ka log line"), "a log line");
}

/// Everything that the other side of a pseudo-terminal shows.
std::string shown_on(int master) {
  std::string text;
  char buffer[4096];
  pollfd ready{master, POLLIN, 0};
  while (poll(&ready, 1, 50) > 0) {
    const ssize_t n = read(master, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
  }
  return text;
}

/// What the lines of a terminal read after printing the text: carriage returns and "erase to the end" carried out.
std::vector<std::string> screen(const std::string& text) {
  std::vector<std::string> lines(1);
  std::size_t column = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') {
      lines.emplace_back();
      column = 0;
    } else if (text[i] == '\r') {
      column = 0;
    } else if (text.compare(i, 3, "\x1b[K") == 0) {
      lines.back().resize(column);
      i += 2;
    } else {
      if (lines.back().size() <= column) lines.back().resize(column + 1, ' ');
      lines.back()[column++] = text[i];
    }
  }
  return lines;
}

TEST(Console, AProgressBarStaysTheLastLineWhileOtherRanksPrint) {
  SKIP_WITHOUT_TERMINALS();
  int master = -1, slave = -1;
  ASSERT_EQ(openpty(&master, &slave, nullptr, nullptr, nullptr), 0);
  {
    Console console(slave, slave);
    ASSERT_TRUE(console.terminal());
    RankStream bar({.rank = 0, .stream = 2, .prefix = "[rank 0] ", .show = true, .file = {}}, console);
    RankStream other({.rank = 1, .stream = 1, .prefix = "[rank 1] ", .show = true, .file = {}}, console);
    const auto put = [](RankStream& stream, const std::string& text) {
      ASSERT_EQ(write(stream.write_end(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
      stream.read();
    };
    put(bar, "\r 10%");
    put(other, "hello\n");
    put(bar, "\r 20%");
    put(other, "half a li");
    console.write();
    auto lines = screen(shown_on(master));
    ASSERT_EQ(lines.size(), 2u);
    EXPECT_EQ(lines[0].substr(0, 14), "[rank 1] hello");
    EXPECT_EQ(lines[1], "[rank 0]  20%");
    put(other, "ne\n");
    put(bar, "\r100%\n");
    console.write();
    lines = screen(shown_on(master));
    ASSERT_EQ(lines.size(), 3u);
    EXPECT_EQ(lines[0].substr(0, 20), "[rank 1] half a line");
    EXPECT_EQ(lines[1].substr(0, 13), "[rank 0] 100%");
    EXPECT_EQ(lines[2], "");
  }
  close(slave);
  close(master);
}

TEST(Console, ABlockedReaderDoesNotBlockTheAgent) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(ends[1], ends[1]);
  const std::string line(1000, 'x');
  for (int i = 0; i < 2000; ++i) {  // 2 MB into a pipe of 64 KiB that nobody reads
    console.line(1, "[rank 0] ", line);
    console.write();
  }
  EXPECT_GT(console.queued(), Console::kMostQueued);
  std::size_t read_bytes = 0;
  std::thread reader([&] {
    char buffer[1 << 16];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) read_bytes += static_cast<std::size_t>(n);
  });
  console.drain(std::chrono::seconds(20));
  close(ends[1]);
  reader.join();
  close(ends[0]);
  EXPECT_EQ(read_bytes, 2000 * (1000 + 10u));
  EXPECT_EQ(console.queued(), 0u);
}

TEST(Console, AStreamThatCannotBeWrittenIsSaidOnceOnTheOtherAndItsReaderIsNotGone) {
  const int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
  ASSERT_GE(full, 0) << "/dev/full is part of every Linux";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(full, ends[1]);
  for (const char* text : {"one", "two"}) {
    console.line(1, "", text);
    console.drain(std::chrono::seconds(5));
  }
  console.line(2, "", "still here");
  console.drain(std::chrono::seconds(5));
  EXPECT_FALSE(console.reader_gone());
  EXPECT_EQ(console.queued(), 0u);
  char buffer[4096];
  const ssize_t n = read(ends[0], buffer, sizeof buffer);
  ASSERT_GT(n, 0);
  const auto lines = cohort::testing::lines_of(std::string(buffer, static_cast<std::size_t>(n)));
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_TRUE(contains(lines[0], "standard output cannot be written: No space left on device")) << lines[0];
  EXPECT_EQ(lines[1], "still here");
  close(ends[0]);
  close(ends[1]);
  // Nobody is left to be told.
  Console mute(full, full);
  mute.line(1, "", "one");
  mute.line(2, "", "two");
  mute.drain(std::chrono::seconds(5));
  EXPECT_FALSE(mute.reader_gone());
  EXPECT_EQ(mute.queued(), 0u);
  close(full);
}

TEST(RankStream, AFullDiskLosesTheLogButNotTheConsole) {
  if (access("/dev/full", W_OK) != 0) FAIL() << "/dev/full is part of every Linux";
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Console console(ends[1], ends[1]);
  RankStream stream({.rank = 0, .stream = 1, .prefix = "", .show = true, .file = "/dev/full"}, console);
  ASSERT_EQ(write(stream.write_end(), "line\n", 5), 5);
  stream.read();
  console.write();
  EXPECT_TRUE(contains(stream.file_failure(), "No space left")) << stream.file_failure();
  char buffer[16] = "";
  EXPECT_EQ(read(ends[0], buffer, sizeof buffer), 5);
  close(ends[0]);
  close(ends[1]);
}

LaunchSettings two_ranks() {
  LaunchSettings settings;
  settings.ranks = 2;
  settings.command = {"/bin/true"};
  settings.threads_per_rank = 1;
  return settings;
}

TEST(JobPlan, GpuIdsNarrowTheMaskAndGiveRanksTheirGpusInThatOrder) {
  auto machine = Machine::uniform(4);
  machine.mask("3,1,0", {3, 1, 0});
  LaunchSettings settings = two_ranks();
  settings.gpu_ids = "0,3";
  std::vector<std::string> notes;
  const JobPlan plan = plan_job(settings, machine, notes);
  EXPECT_EQ(plan.settings.gpu_ids, "0,3");
  const auto egl = [&](std::size_t rank) {
    for (const auto& [name, value] : plan.devices[rank].variables)
      if (name == "EGL_DEVICE_ID") return value;
    return std::string("unset");
  };
  EXPECT_EQ(egl(0), "0");
  EXPECT_EQ(egl(1), "3");
  settings.gpu_ids = "2";
  EXPECT_TRUE(contains(message_of([&] { plan_job(settings, machine, notes); }), "'2' is not among those"));
}

TEST(JobPlan, EveryRanksGpuIsExplained) {
  auto machine = Machine::uniform(2);
  std::vector<std::string> notes;
  plan_job(two_ranks(), machine, notes);
  ASSERT_EQ(notes.size(), 2u);
  EXPECT_TRUE(contains(notes[1], "local rank 1: GPU 1 of this machine")) << notes[1];
  auto none = Machine::without_driver();
  LaunchSettings settings = two_ranks();
  settings.expects_gpu = true;
  notes.clear();
  plan_job(settings, none, notes);
  ASSERT_EQ(notes.size(), 1u);
  EXPECT_TRUE(contains(notes[0], "no GPU, the ranks work on the CPU")) << notes[0];
}

TEST(JobPlan, RanksGetTheLoopbackAddressAndAnotherNameIsNoted) {
  auto machine = Machine::without_driver();
  LaunchSettings settings = two_ranks();
  for (const char* name : {"127.0.0.1", "localhost", "::1"}) {
    settings.master_addr = name;
    std::vector<std::string> notes;
    plan_job(settings, machine, notes);
    EXPECT_EQ(store_address(settings), "127.0.0.1");
    EXPECT_EQ(make_rendezvous(settings)->meet(0).store_address, "127.0.0.1");
    ASSERT_EQ(notes.size(), name == std::string("::1") ? 1u : 0u) << name;
    if (!notes.empty())
      EXPECT_TRUE(contains(notes[0], "--master_addr=::1: the store of a job on one node listens on 127.0.0.1 only"))
          << notes[0];
  }
}

TEST(JobPlan, WhatCannotWorkIsRefusedBeforeAnythingStarts) {
  auto machine = Machine::without_driver();
  std::vector<std::string> notes;
  const auto refused = [&](auto&& change) {
    LaunchSettings settings = two_ranks();
    change(settings);
    return message_of([&] { plan_job(settings, machine, notes); });
  };
  EXPECT_TRUE(contains(refused([](auto& s) { s.ranks = 0; }), "at least one rank"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.command = {"no-such-program-here"}; }), "there is no program"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.local_ranks_filter = {2}; }), "names rank 2, but there are 2 ranks"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.gpu_ids = "0"; }), "sees no GPU"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.grace_period = -1; }), "--grace-period=-1: give 0 to 31536000 s"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.grace_period = 1e12; }), "--grace-period=1"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.max_restarts = -1; }), "--max-restarts=-1 must not be negative"));
  EXPECT_TRUE(contains(refused([](auto& s) { s.nodes = s.max_restarts = 2; }), "is not restarted: nobody tells"));
}

TEST(Rendezvous, OneNodeHasAllRanksAndItsStoreOnLoopback) {
  LaunchSettings settings = two_ranks();
  const auto rendezvous = make_rendezvous(settings);
  const Meeting meeting = rendezvous->meet(0);
  EXPECT_EQ(meeting.nodes, 1);
  EXPECT_EQ(meeting.first_rank, 0);
  EXPECT_EQ(meeting.world_size, 2);
  EXPECT_EQ(rendezvous->meet(1).store_port, meeting.store_port) << "the port is kept over restarts";
}

TEST(Rendezvous, StaticNodesHaveTheRanksOfTheirNumberAndNodeZeroTheStore) {
  LaunchSettings settings = two_ranks();
  settings.nodes = 3;
  settings.master_port = PortReservation("127.0.0.1", 0).port();
  settings.node_rank = 2;
  settings.master_addr = "192.0.2.7";  // another machine's, which only node 0 minds
  const Meeting last = make_rendezvous(settings)->meet(0);
  EXPECT_EQ(last.node_rank, 2);
  EXPECT_EQ(last.first_rank, 4);
  EXPECT_EQ(last.world_size, 6);
  EXPECT_EQ(last.store_address, "192.0.2.7");
  settings.node_rank = 0;
  EXPECT_TRUE(contains(message_of([&] { make_rendezvous(settings); }), "this agent has --node-rank=0"));
  settings.node_rank = 3;
  EXPECT_TRUE(contains(message_of([&] { make_rendezvous(settings); }), "nodes are numbered from 0 to 2"));
  settings.node_rank = 0;
  settings.master_addr = "127.0.0.2";
  const auto node0 = make_rendezvous(settings);
  const int store = node0->bind_store_socket();
  ASSERT_EQ(listen(store, 8), 0);
  EXPECT_TRUE(answers(INADDR_LOOPBACK + 1, settings.master_port)) << "at the address that was given";
  EXPECT_FALSE(answers(INADDR_LOOPBACK, settings.master_port)) << "and at no other";
  close(store);
}

TEST(WorkerEnvironment, RankAndLocalRankAreToldApart) {
  LaunchSettings settings = two_ranks();
  JobIdentity job;
  job.meeting = {.node_rank = 3, .nodes = 5, .first_rank = 6, .world_size = 10, .store_address = "h", .store_port = 7};
  std::map<std::string, std::string> found;
  for (const auto& [name, value] : rank_variables(settings, job, 1, {}, {})) found[name] = value;
  EXPECT_EQ(found["RANK"], "7");
  EXPECT_EQ(found["LOCAL_RANK"], "1");
  EXPECT_EQ(found["GROUP_RANK"], "3");
  EXPECT_EQ(found["ROLE_RANK"], "7");
  EXPECT_EQ(found["WORLD_SIZE"], "10");
  EXPECT_EQ(found["LOCAL_WORLD_SIZE"], "2");
  EXPECT_EQ(found["GROUP_WORLD_SIZE"], "5");
  EXPECT_EQ(found["MASTER_ADDR"] + ":" + found["MASTER_PORT"], "h:7");
}

}  // namespace
}  // namespace cohort::launch
