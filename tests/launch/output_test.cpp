// What reaches the console and the files.
#include <fstream>
#include <map>

#include <gtest/gtest.h>
#include <pty.h>

#include "core/files.h"
#include "core/pseudo_terminal.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

std::vector<std::string> shell(int ranks, std::vector<std::string> flags, const std::string& script) {
  std::vector<std::string> arguments = {"--nproc_per_node=" + std::to_string(ranks)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
  return launch(arguments);
}

TEST(LaunchOutput, HeavyOutputOfFourRanksIsWholeAndInOrder) {
  constexpr int kLines = 20000;
  const std::string count = std::to_string(kLines);
  // awk prints pieces of lines, so that reads end anywhere.
  const Outcome outcome = run(launch({"--nproc_per_node=4", "--", "awk",
                                      "BEGIN { r = ENVIRON[\"RANK\"]; for (i = 0; i < " + count +
                                          "; ++i) { printf \"line %d \", i; printf \"of rank %s %s\\n\", r, \"" +
                                          std::string(60, 'x') + "\"; print \"e\" i > \"/dev/stderr\" } }"}));
  EXPECT_EQ(outcome.code, 0) << outcome.err.substr(0, 500);
  std::map<int, int> next;
  for (const std::string& line : lines_of(outcome.out)) {
    int prefix = -1, number = -1, rank = -1, end = 0;
    ASSERT_EQ(std::sscanf(line.c_str(), "[rank %d] line %d of rank %d %n", &prefix, &number, &rank, &end), 3) << line;
    ASSERT_EQ(prefix, rank);
    ASSERT_EQ(line.substr(static_cast<std::size_t>(end)), std::string(60, 'x'));
    ASSERT_EQ(number, next[rank]++);
  }
  std::map<std::string, int> next_error;
  for (const std::string& line : lines_of(outcome.err)) {
    if (line.rfind("cohort launch", 0) == 0) continue;
    const std::string prefix = line.substr(0, 9);
    ASSERT_EQ(line, prefix + "e" + std::to_string(next_error[prefix]++));
  }
  ASSERT_EQ(next.size(), 4u);
  for (int rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(next[rank], kLines);
    EXPECT_EQ(next_error["[rank " + std::to_string(rank) + "] "], kLines);
  }
}

TEST(LaunchOutput, LogDirStoresEveryStreamOfEveryRankByteByByte) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  const Outcome outcome = run(shell(2, {"--log_dir=" + logs}, "printf 'a\\rb\\nno end'; echo warning >&2"));
  EXPECT_EQ(outcome.code, 0);
  for (const char* rank : {"0", "1"}) {
    const std::string base = logs + "/attempt_0/rank_" + rank;
    EXPECT_EQ(text_of(base + "/stdout.log"), "a\rb\nno end");
    EXPECT_EQ(text_of(base + "/stderr.log"), "warning\n");
    EXPECT_TRUE(contains(outcome.out, std::string("[rank ") + rank + "] b\n")) << outcome.out;
    EXPECT_TRUE(contains(outcome.out, std::string("[rank ") + rank + "] no end\n")) << outcome.out;
  }
}

TEST(LaunchOutput, EarlierLogsInTheSameFolderAreMovedAsideNotOverwritten) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  run(shell(2, {"--log_dir=" + logs}, "echo first"));
  const Outcome second = run(shell(2, {"--log_dir=" + logs}, "echo second"));
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_0/stdout.log"), "second\n");
  EXPECT_EQ(text_of(logs + "/attempt_0.earlier-1/rank_0/stdout.log"), "first\n");
  EXPECT_TRUE(contains(second.err, "attempt_0.earlier-1")) << second.err;
}

TEST(LaunchOutput, TheLogsOfAJobThatRunsAreLeftToIt) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  Process first(launch({"--nproc_per_node=1", "--log-dir=" + logs, "--", "/bin/sh", "-c",
                        "until [ -e " + (folder.path() / "go").string() + " ]; do sleep 0.05; done; echo first"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(logs + "/attempt_0/rank_0"); }, 30)) << first.err();
  const Outcome second = run(shell(1, {"--log-dir=" + logs}, "echo second"));
  EXPECT_EQ(second.code, 1);
  EXPECT_TRUE(contains(second.err, "give each job a --log-dir of its own")) << second.err;
  std::ofstream(folder.path() / "go") << "\n";
  EXPECT_EQ(first.wait(30).code, 0) << first.err();
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_0/stdout.log"), "first\n");
  EXPECT_FALSE(fs::exists(logs + "/attempt_0.earlier-1"));
}

TEST(LaunchOutput, RedirectsTeeAndFilterChooseStreamsAsWithTorchrun) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  const Outcome outcome =
      run(shell(3, {"--log-dir=" + logs, "-r", "0:3,1:1", "--tee", "1:2"}, "echo out; echo err >&2"));
  EXPECT_EQ(outcome.out, "[rank 2] out\n");
  EXPECT_FALSE(contains(outcome.err, "[rank 0]")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "[rank 1] err") && contains(outcome.err, "[rank 2] err")) << outcome.err;
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_0/stdout.log"), "out\n");
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_1/stderr.log"), "err\n");
  EXPECT_FALSE(fs::exists(logs + "/attempt_0/rank_2/stdout.log"));
  const Outcome filtered = run(shell(3, {"--local-ranks-filter=1,2", "-q"}, "echo $RANK"));
  EXPECT_FALSE(contains(filtered.out, "[rank 0]"));
  EXPECT_TRUE(contains(filtered.out, "[rank 1] 1") && contains(filtered.out, "[rank 2] 2")) << filtered.out;
  EXPECT_EQ(filtered.err, "");
}

TEST(LaunchOutput, ASingleRankWritesAsIfThereWereNoLauncher) {
  const Outcome outcome = run(shell(1, {"-q"}, "printf 'no newline'; printf 'err' >&2"));
  EXPECT_EQ(outcome.out, "no newline");
  EXPECT_EQ(outcome.err, "err");
  EXPECT_EQ(run(shell(3, {"-q", "--local-ranks-filter=1"}, "echo $RANK")).out, "1\n");
}

TEST(LaunchOutput, TorchrunsPrefixTemplateIsHonoured) {
  const Outcome outcome = run(shell(2, {"--role=actor"}, "echo hello"),
                              {{"TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "<${role_name}-${rank}/${local_rank}> "}});
  EXPECT_TRUE(contains(outcome.out, "<actor-1/1> hello")) << outcome.out;
}

TEST(LaunchOutput, AReaderThatGoesAwayEndsTheJobWithoutLogs) {
  TemporaryFolder folder;
  const std::string code = (folder.path() / "code").string();
  const Outcome outcome =
      run({"/bin/sh", "-c",
           "(" + cohort_path() +
               " launch --nproc_per_node=2 -- /bin/sh -c 'while :; do echo line; sleep 0.05; done'; "
               "echo $? > " +
               code + ") | head -n 3"});
  EXPECT_EQ(lines_of(outcome.out).size(), 3u);
  EXPECT_EQ(text_of(code), "141\n");
}

TEST(LaunchOutput, OutputThatCannotBeWrittenIsSaidAndTheJobGoesOn) {
  TemporaryFolder folder;
  const std::string done = (folder.path() / "done").string();
  const Outcome outcome = run({"/bin/sh", "-c",
                               cohort_path() +
                                   " launch --nproc_per_node=2 -- /bin/sh -c 'echo line; sleep 0.3; echo "
                                   "more; echo $RANK >> " +
                                   done + "' > /dev/full"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(lines_of(text_of(done)).size(), 2u);
  const std::string said = "standard output cannot be written: No space left on device";
  EXPECT_TRUE(contains(outcome.err, said)) << outcome.err;
  EXPECT_EQ(outcome.err.find(said), outcome.err.rfind(said)) << "said once: " << outcome.err;
}

TEST(LaunchOutput, WithClosedStandardDescriptorsTheJobRunsAndItsRanksHaveThem) {
  TemporaryFolder folder;
  const std::string program = (folder.path() / "rank").string();
  const std::string done = (folder.path() / "done").string();
  write_file_atomically(program,
                        "#!/bin/sh\nfor fd in 0 1 2; do [ -e /proc/$$/fd/$fd ] || exit 9; done\n"
                        "echo out || exit 8\necho err >&2 || exit 7\nsleep 0.3\necho again || exit 6\necho $RANK >> " +
                            done + "\n");
  fs::permissions(program, fs::perms::owner_all);
  for (const char* closed : {">&-", "<&- >&- 2>&-"}) {
    for (const char* ranks : {"1", "2"}) {
      fs::remove(done);
      const Outcome outcome =
          run({"/bin/sh", "-c",
               "exec " + cohort_path() + " launch --nproc_per_node=" + ranks + " -- " + program + " " + closed});
      EXPECT_EQ(outcome.code, 0) << closed << "\n" << outcome.err;
      EXPECT_EQ(lines_of(text_of(done)).size(), static_cast<std::size_t>(std::stoi(ranks))) << closed;
    }
  }
}

TEST(LaunchOutput, OnATerminalRankZeroKnowsTheWidthForItsProgressBar) {
  SKIP_WITHOUT_TERMINALS();
  TemporaryFolder folder;
  const std::string file = (folder.path() / "columns").string();
  int master = -1;
  winsize size{24, 100, 0, 0};
  const auto command = shell(2, {}, "echo \"$RANK:$COHORT_TERMINAL_COLUMNS\" >> " + file);
  const pid_t pid = forkpty(&master, nullptr, nullptr, &size);
  if (pid == 0) {
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  char buffer[4096];
  while (read(master, buffer, sizeof buffer) > 0) {
  }
  int status = 0;
  waitpid(pid, &status, 0);
  close(master);
  EXPECT_EQ(status, 0);
  const std::string text = text_of(file);
  EXPECT_TRUE(contains(text, "0:90\n")) << text;  // 100 - "[rank 0] " - 1
  EXPECT_TRUE(contains(text, "1:\n")) << text;
}

}  // namespace
}  // namespace cohort::testing
