// What ranks and users say to the launcher: flags, error files, the kernel's counts.
#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "launch/error_file.h"
#include "launch/oom.h"
#include "launch/settings.h"
#include "support/process.h"

namespace cohort::launch {
namespace {
using cohort::testing::contains;
using FolderOfTest = cohort::testing::TemporaryFolder;

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
  FolderOfTest folder;
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
  FolderOfTest folder;
  const auto path = folder.path() / "rank_1" / "error.json";
  setenv("TORCHELASTIC_ERROR_FILE", path.c_str(), 1);
  setenv("RANK", "1", 1);
  write_error_file("data.csv, row 7: no number \xff");
  write_error_file("a consequence");
  unsetenv("TORCHELASTIC_ERROR_FILE");
  unsetenv("RANK");
  EXPECT_TRUE(contains(read_error_file(path)->message, "data.csv, row 7"));
  EXPECT_FALSE(read_error_file(path)->host.empty());
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(path))["rank"], "1");
}

TEST(ErrorFile, WithoutTheVariableOrTheFolderNothingHappens) {
  unsetenv("TORCHELASTIC_ERROR_FILE");
  EXPECT_NO_THROW(write_error_file("nowhere"));
  setenv("TORCHELASTIC_ERROR_FILE", "/proc/no/such/folder/error.json", 1);
  EXPECT_NO_THROW(write_error_file("nowhere"));
  unsetenv("TORCHELASTIC_ERROR_FILE");
}

TEST(Oom, KillsOfTheGroupAreToldFromKillsByOthers) {
  FolderOfTest root;
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
  FolderOfTest root;
  write_file_atomically(root.path() / "proc/self/cgroup", "4:memory:/process/abc\n0::/\n");
  write_file_atomically(root.path() / "cgroup/memory/memory.oom_control",
                        "oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
  EXPECT_EQ(read_oom_counts(root.path() / "cgroup", root.path() / "proc").group, 5);
}

}  // namespace
}  // namespace cohort::launch
