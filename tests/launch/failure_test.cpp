// Jobs that end badly, with real processes.
#include <fstream>

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include "core/files.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

constexpr const char* kGrace = "--grace-period=1";  // s; long enough for a shell to die, short for a test

std::vector<std::string> shell(int ranks, const std::string& script, std::vector<std::string> flags = {}) {
  std::vector<std::string> arguments = {"--nproc_per_node=" + std::to_string(ranks)};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  arguments.insert(arguments.end(), {"--", "/bin/sh", "-c", script});
  return launch(arguments);
}

/// For a script: waits until the file has so many lines.
std::string await_lines(const std::string& file, int lines) {
  return "until [ \"$(wc -l < " + file + ")\" -ge " + std::to_string(lines) + " ]; do sleep 0.02; done; ";
}

/// Numbers that scripts append to a file, one per line.
std::vector<pid_t> pids_in(const fs::path& file) {
  std::vector<pid_t> pids;
  for (const std::string& line : lines_of(text_of(file))) pids.push_back(std::stoi(line));
  return pids;
}

TEST(LaunchFailure, TheCodeOfTheFailingRankIsReturnedAndTheOthersAreStopped) {
  TemporaryFolder folder;
  const std::string pids = (folder.path() / "pids").string();
  const Outcome outcome = run(shell(3, "echo $$ >> " + pids + "; if [ $RANK = 1 ]; then " + await_lines(pids, 3) +
                                           "echo 'no such column' >&2; exit 7; fi; "
                                           "exec sleep 100"));
  EXPECT_EQ(outcome.code, 7);
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 3 ranks")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, ": exit code 7")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "    | no such column")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "stopped   ranks 0, 2")) << outcome.err;
  const auto started = pids_in(pids);
  EXPECT_EQ(started.size(), 3u);
  for (const pid_t pid : started) EXPECT_FALSE(alive(pid));
}

TEST(LaunchFailure, DeathBySignalIsNamedAndBecomes128PlusItsNumber) {
  const Outcome killed = run(shell(2, "if [ $RANK = 1 ]; then kill -9 $$; fi; exec sleep 100"));
  EXPECT_EQ(killed.code, 137);
  EXPECT_TRUE(contains(killed.err, "SIGKILL (signal 9)")) << killed.err;
  EXPECT_TRUE(contains(killed.err, "out-of-memory")) << killed.err;
  EXPECT_TRUE(contains(killed.err, "its memory peaked at")) << killed.err;
  const Outcome crashed = run(shell(2, "if [ $RANK = 0 ]; then kill -SEGV $$; fi; exec sleep 100"));
  EXPECT_EQ(crashed.code, 139);
  EXPECT_TRUE(contains(crashed.err, "SIGSEGV (signal 11)")) << crashed.err;
}

TEST(LaunchFailure, AStackOfCppFramesDoesNotPushOutWhatWasSaidBefore) {
  const Outcome outcome = run(shell(
      2,
      "[ $RANK = 1 ] && exec sleep 100; echo 'the store was lost' >&2; echo 'Exception raised from recvBytes at "
      "Utils.hpp:672:' >&2; i=0; while [ $i "
      "-lt "
      "25 ]; do echo \"frame #$i: c10::Error::Error() + 0x57 (0x7f0 in libc10.so)\" >&2; i=$((i+1)); done; exit 1"));
  const std::vector<std::string> lines = lines_of(outcome.err.substr(outcome.err.find("failed first")));
  ASSERT_GE(lines.size(), 4u) << outcome.err;
  EXPECT_TRUE(contains(lines[3], "    | the store was lost")) << outcome.err;
  for (const std::string& line : lines) EXPECT_FALSE(contains(line, "| frame #")) << outcome.err;
}

TEST(LaunchFailure, ARankThatIgnoresSigtermIsKilledAfterTheGracePeriod) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  const Outcome outcome =
      run(shell(2,
                "if [ $RANK = 0 ]; then trap '' TERM; echo x > " + ready +
                    "; while :; do sleep 0.1; done; fi; until [ -s " + ready + " ]; do sleep 0.02; done; exit 3",
                {kGrace}));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.err, "killed    rank 0 after ignoring the request to stop")) << outcome.err;
}

TEST(LaunchFailure, AStoppedRankIsContinuedSoThatItCanEnd) {
  TemporaryFolder folder;
  const std::string pid = (folder.path() / "pid").string();
  const Outcome outcome =
      run(shell(2, "if [ $RANK = 0 ]; then trap 'echo cleaned; exit 0' TERM; echo $$ > " + pid +
                       "; kill -STOP $$; sleep 100; fi; until [ -s " + pid + " ] && grep -q ') T' /proc/$(cat " + pid +
                       ")/stat; do sleep 0.02; done; exit 3"));
  EXPECT_EQ(outcome.code, 3);
  EXPECT_TRUE(contains(outcome.out, "[rank 0] cleaned")) << outcome.out;
}

TEST(LaunchFailure, NoChildOfARankOutlivesAFailedJob) {
  TemporaryFolder folder;
  const std::string pids = (folder.path() / "pids").string();
  // Each rank starts a child that ignores SIGTERM and one whose parent is gone already.
  const Outcome outcome = run(shell(2,
                                    "(trap '' TERM; echo $(exec sh -c 'echo $PPID') >> " + pids +
                                        "; while :; do sleep 0.1; done) & "
                                        "sh -c 'sleep 1000 & echo $! >> " +
                                        pids + "'; " + await_lines(pids, 4) + "[ $RANK = 0 ] && exit 5; wait",
                                    {kGrace}));
  EXPECT_EQ(outcome.code, 5);
  const auto started = pids_in(pids);
  EXPECT_EQ(started.size(), 4u);
  for (const pid_t pid : started) EXPECT_TRUE(eventually([&] { return !alive(pid); })) << pid;
}

TEST(LaunchFailure, WhenTheAgentIsKilledRanksAndTheirChildrenDie) {
  TemporaryFolder folder;
  const std::string pids = (folder.path() / "pids").string();
  Process agent(
      shell(2, "trap '' TERM HUP INT; echo $$ >> " + pids + "; sleep 1000 & echo $! >> " + pids + "; wait; wait"));
  ASSERT_TRUE(eventually([&] { return pids_in(pids).size() == 4; }));
  agent.send(SIGKILL);
  agent.wait();
  for (const pid_t pid : pids_in(pids)) EXPECT_TRUE(eventually([&] { return !alive(pid); })) << pid;
}

TEST(LaunchFailure, AKilledGuardDoesNotEndTheJob) {
  // Rank 0 kills it; rank 1's end is what the guard is told of next, and the agent's own last.
  const Outcome outcome =
      run(shell(2,
                "[ $RANK = 1 ] && sleep 0.5 && exit 0; until [ \"$killed\" ]; do "
                "for p in $(cat /proc/$PPID/task/*/children); do "
                "[ \"$(cat /proc/$p/comm)\" = cohort-guard ] && kill -9 $p && killed=yes && echo killed; done; done; "
                "exit 0"));
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("killed"), std::string::npos) << outcome.out;
}

TEST(LaunchFailure, AGrandchildThatHoldsThePipeDoesNotHangTheAgent) {
  TemporaryFolder folder;
  const std::string pids = (folder.path() / "pids").string();
  const Outcome outcome = run(shell(2, "setsid sleep 1000 & echo $! >> " + pids + "; echo done"));
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "[rank 0] done") && contains(outcome.out, "[rank 1] done")) << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "still holds its output")) << outcome.err;
  for (const pid_t pid : pids_in(pids)) ::kill(pid, SIGKILL);
}

TEST(LaunchFailure, SigtermIsPassedOnAndRanksMaySaveTheirWork) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  Process agent(
      shell(2, "trap 'echo checkpoint saved; exit 0' TERM; echo x >> " + ready + "; while :; do sleep 0.05; done"));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
  agent.send(SIGTERM);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 143);
  EXPECT_TRUE(contains(outcome.out, "[rank 0] checkpoint saved") && contains(outcome.out, "[rank 1] checkpoint saved"))
      << outcome.out;
  EXPECT_TRUE(contains(outcome.err, "SIGTERM: passed on to the ranks")) << outcome.err;
}

TEST(LaunchFailure, ASecondInterruptKillsAtOnce) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  Process agent(
      shell(2, "trap '' INT TERM; echo x >> " + ready + "; while :; do sleep 0.05; done", {"--grace-period=600"}));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
  agent.send(SIGINT);
  ASSERT_TRUE(eventually([&] { return contains(agent.err(), "Ctrl-C again"); }));
  agent.send(SIGINT);
  const Outcome outcome = agent.wait();  // before the grace period is over
  EXPECT_EQ(outcome.code, 130);
  EXPECT_TRUE(contains(outcome.err, "SIGINT again: the ranks are killed")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "killed    ranks 0, 1 before they ended")) << outcome.err;
}

/// Rank 1 fails with code 3 once rank 0 is ready; rank 0 notes in `told` that it was asked to stop, and goes on until
/// there is a file `saved`.
std::string one_fails_one_stays(const TemporaryFolder& folder) {
  const std::string ready = (folder.path() / "ready").string();
  return "if [ $RANK = 1 ]; then while ! [ -e " + ready + " ]; do sleep 0.02; done; exit 3; fi; trap 'echo x >> " +
         (folder.path() / "told").string() + "' TERM INT; echo x > " + ready + "; until [ -e " +
         (folder.path() / "saved").string() + " ]; do sleep 0.05; done";
}

TEST(LaunchFailure, ASignalWhileAFailedJobIsStoppedKeepsTheFirstCauseAndItsCode) {
  TemporaryFolder folder;
  Process agent(shell(2, one_fails_one_stays(folder), {"--grace-period=600"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(folder.path() / "told"); }));
  agent.send(SIGTERM);
  const std::string noted = "SIGTERM: the ranks are being stopped already";
  EXPECT_TRUE(eventually([&] { return contains(agent.err(), noted); })) << agent.err();
  std::ofstream(folder.path() / "saved") << "x";
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 2 ranks")) << outcome.err;
  EXPECT_FALSE(contains(outcome.err, "stopped by")) << outcome.err;
  EXPECT_EQ(text_of(folder.path() / "told"), "x\n") << "a rank that saves its work is not disturbed again";
}

TEST(LaunchFailure, ASecondSignalKillsAFailedJobAtOnce) {
  TemporaryFolder folder;
  Process agent(shell(2, one_fails_one_stays(folder), {"--grace-period=600"}));
  ASSERT_TRUE(eventually([&] { return fs::exists(folder.path() / "told"); }));
  agent.send(SIGINT);
  ASSERT_TRUE(eventually([&] { return contains(agent.err(), "Ctrl-C again kills them"); }));
  agent.send(SIGINT);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "SIGINT again: the ranks are killed")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 2 ranks")) << outcome.err;
}

TEST(LaunchFailure, ASignalRightAfterAFailureKeepsTheFirstCauseToo) {
  TemporaryFolder folder;
  const std::string pid = (folder.path() / "pid").string();
  // Rank 0 signals the agent as soon as rank 1 is dead, when the agent may still wait for others to fail likewise.
  const Outcome outcome = run(shell(2, "if [ $RANK = 1 ]; then echo $$ > " + pid + "; exit 3; fi; until [ -s " + pid +
                                           " ] && grep -q ') Z' /proc/$(cat " + pid +
                                           ")/stat; do sleep 0.01; done; kill -TERM $PPID; exec sleep 100"));
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first of 2 ranks")) << outcome.err;
}

TEST(LaunchFailure, RanksThatFailWhileTheySaveTheirWorkAreListed) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  Process agent(shell(3, "trap 'case $RANK in 0) exit 0;; 1) exit 143;; esac; exit 5' TERM; echo x >> " + ready +
                             "; while :; do sleep 0.05; done"));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 3; }));
  agent.send(SIGTERM);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 143);
  EXPECT_TRUE(contains(outcome.err, "stopped by SIGTERM\n  failed    rank 2 after it was asked to stop: exit code 5\n"))
      << outcome.err;
}

TEST(LaunchFailure, OtherSignalsArePassedOnWithoutEndingTheJob) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  Process agent(shell(2, "trap 'echo warned; exit 0' USR1; echo x >> " + ready + "; while :; do sleep 0.05; done",
                      {"--signals-to-handle=SIGTERM,SIGUSR1"}));
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
  agent.send(SIGUSR1);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "[rank 0] warned") && contains(outcome.out, "[rank 1] warned")) << outcome.out;
}

TEST(LaunchFailure, ANohupJobIgnoresHangups) {
  TemporaryFolder folder;
  const std::string ready = (folder.path() / "ready").string();
  std::vector<std::string> command = {"nohup"};
  for (const std::string& word : shell(2, "echo x >> " + ready + "; sleep 1; echo finished")) command.push_back(word);
  Process agent(command);
  ASSERT_TRUE(eventually([&] { return lines_of(text_of(ready)).size() == 2; }));
  agent.send(SIGHUP);
  const Outcome outcome = agent.wait();
  EXPECT_EQ(outcome.code, 0);
  EXPECT_TRUE(contains(outcome.out, "[rank 1] finished")) << outcome.out;
}

TEST(LaunchFailure, TheRankThatWroteItsErrorFirstIsTheCauseEvenIfAnotherExitsBefore) {
  TemporaryFolder folder;
  const std::string error = (folder.path() / "error").string();
  write_file_atomically(error, R"({"message": {"message": "ValueError: row 7", "extraInfo": {"py_callstack":
    "Traceback\n  File train.py\nValueError: row 7", "timestamp": "1"}}})");
  const std::string of_0 = (folder.path() / "0").string(), written = (folder.path() / "written").string();
  // Rank 2 fails and takes its time to exit; rank 0 notices the loss at once and exits first. What rank 2 does after
  // that takes no further process, for the agent waits for others that fail for a fifth of a second only.
  const Outcome outcome =
      run(shell(3, "case $RANK in 2) until [ -s " + of_0 + " ]; do sleep 0.02; done; read -r p < " + of_0 + "; cat " +
                       error + " > $TORCHELASTIC_ERROR_FILE; echo x > " + written +
                       "; while read -r s < /proc/$p/stat; do case $s in *') Z '*) break;; esac; done 2>/dev/null; "
                       "exit 4;; 0) echo $$ > " +
                       of_0 + "; until [ -s " + written +
                       " ]; do sleep 0.02; done; echo 'connection closed by peer' >&2; exit 1;; "
                       "*) exec sleep 100;; esac"));
  EXPECT_EQ(outcome.code, 4) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 2 failed first")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "message   ValueError: row 7")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "File train.py")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "then      rank 0")) << outcome.err;
  EXPECT_LT(outcome.err.find("rank 2 failed first"), outcome.err.find("then      rank 0"));
}

TEST(LaunchFailure, LogsAreNamedWhenTheyAreKept) {
  TemporaryFolder folder;
  const std::string logs = (folder.path() / "logs").string();
  const Outcome outcome =
      run(shell(2, "[ $RANK = 1 ] && echo out && echo err >&2 && exit 9; exit 0", {"--log_dir=" + logs}));
  EXPECT_EQ(outcome.code, 9);
  EXPECT_TRUE(contains(outcome.err, "logs      " + logs + "/attempt_0/rank_1")) << outcome.err;
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_1/stdout.log"), "out\n");
  EXPECT_EQ(text_of(logs + "/attempt_0/rank_1/stderr.log"), "err\n");
}

TEST(LaunchFailure, AProgramThatCannotBeExecutedIsAnErrorBeforeAnyRankRuns) {
  TemporaryFolder folder;
  write_file_atomically(folder.path() / "script", "echo no interpreter line\n");
  fs::permissions(folder.path() / "script", fs::perms::owner_all);
  const Outcome outcome = run(launch({"--nproc_per_node=2", "--no-python", (folder.path() / "script").string()}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "#!/bin/sh")) << outcome.err;
}

TEST(LaunchFailure, ATemporaryFolderThatCannotBeMadeIsExplained) {
  const Outcome outcome = run(shell(2, "exit 0"), {{"TMPDIR", "/no/such/folder"}});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err,
                       "cannot make a temporary folder in /no/such/folder: No such file or directory; set "
                       "TMPDIR"))
      << outcome.err;
}

TEST(LaunchFailure, NoTemporaryFolderIsLeftBehind) {
  TemporaryFolder folder;
  run(shell(2, "exit 1"), {{"TMPDIR", folder.path().string()}});
  EXPECT_TRUE(fs::is_empty(folder.path()));
}

TEST(LaunchFailure, APortInUseNamesItAndOffersAFreeOne) {
  const std::string port = std::to_string(free_port());
  Process holder(launch({"--nproc_per_node=1", "--master_port=" + port, "--", "/bin/sleep", "1000"}));
  ASSERT_TRUE(eventually([&] { return contains(holder.err(), "127.0.0.1:" + port); }));
  const Outcome outcome = run(launch({"--nproc_per_node=2", "--master_port=" + port, "--", "/bin/true"}));
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "port " + port + " is in use")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "pass --master_port=")) << outcome.err;
  holder.send(SIGTERM);
  EXPECT_EQ(holder.wait().code, 143);
}

/// A control group with a memory limit, removed afterwards; "" where this machine does not let us make one.
class LimitedGroup {
 public:
  explicit LimitedGroup(long bytes) {
    for (const auto& [root, limit] :
         {std::pair<fs::path, std::string>{"/sys/fs/cgroup/memory", "memory.limit_in_bytes"},
          std::pair<fs::path, std::string>{"/sys/fs/cgroup", "memory.max"}}) {
      const fs::path group = root / ("cohort-test-" + std::to_string(getpid()));
      if (mkdir(group.c_str(), 0755) != 0) continue;
      std::ofstream file(group / limit);
      file << bytes << std::flush;
      if (file) {
        path_ = group;
        return;
      }
      rmdir(group.c_str());
    }
  }
  ~LimitedGroup() {
    if (!path_.empty()) eventually([&] { return rmdir(path_.c_str()) == 0; }, 5);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

TEST(LaunchFailure, AnOutOfMemoryKillIsRecognisedByTheKernelsCount) {
  const LimitedGroup group(200 << 20);
  if (group.path().empty()) GTEST_SKIP() << "needs the right to make a control group with a memory limit";
  TemporaryFolder folder;
  write_file_atomically(
      folder.path() / "hog",
      "#!/bin/sh\n[ $RANK = 0 ] && exec sleep 50\nexec awk 'BEGIN { s = \"x\"; while (1) s = s s }'\n");
  fs::permissions(folder.path() / "hog", fs::perms::owner_all);
  const Outcome outcome = run({"/bin/sh", "-c",
                               "echo $$ > " + (group.path() / "cgroup.procs").string() + " && exec " + cohort_path() +
                                   " launch --nproc_per_node=2 -- " + (folder.path() / "hog").string()});
  EXPECT_EQ(outcome.code, 137) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "rank 1 failed first")) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the out-of-memory killer ended 1 process(es) of this control group"))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "the limit of this control group is 200.0 MiB")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
