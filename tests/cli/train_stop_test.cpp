// Trainings that a signal stops: which signals, what is saved, and what the user is told to type; and the progress bar
// of a job on a real terminal.
#include <functional>

#include <gtest/gtest.h>
#include <poll.h>
#include <pty.h>
#include <signal.h>

#include "cli/training.h"
#include "core/pseudo_terminal.h"
#include "support/terminal_screen.h"

namespace cohort::testing {
namespace {

using Words = std::vector<std::string>;

/// Trains until some steps are made, and sends the signal to the process that the user started.
Outcome stopped_by(int signal, const Training& training, const Words& command, const std::string& name,
                   const std::map<std::string, std::string>& variables = {}) {
  Process job(command, Training::variables(variables));
  EXPECT_TRUE(eventually([&] { return training.step(name) >= 5; })) << job.err();
  job.send(signal);
  return job.wait();
}

TEST(TrainStop, TheNoticesOfSchedulersSaveAndStopAsSigtermDoes) {
  for (const int signal : {SIGUSR1, SIGUSR2, SIGTERM}) {
    for (const Words& launcher : {Words{cohort_path()}, launch({"--nproc_per_node=2"})}) {
      const Training training;
      const Outcome outcome =
          stopped_by(signal, training, training.after(launcher, "run", {"train.steps=100000"}), "run");
      EXPECT_EQ(outcome.code, 128 + signal) << outcome.err;
      EXPECT_TRUE(contains(outcome.err, "training stopped by a signal at step ")) << outcome.err;
      EXPECT_FALSE(contains(outcome.err, "failed")) << outcome.err;
      EXPECT_TRUE(fs::exists(training.outputs() / "run" / "latest" / "checkpoints" / "last")) << outcome.err;
      if (launcher.size() > 1)
        EXPECT_TRUE(contains(outcome.err, signal == SIGTERM   ? "stopped by SIGTERM"
                                          : signal == SIGUSR1 ? "stopped by SIGUSR1"
                                                              : "stopped by SIGUSR2"))
            << outcome.err;
    }
  }
}

TEST(TrainStop, SigtermAfterANoticeIsTheSameWish) {
  // Slurm sends USR1, and TERM when the time is over; the checkpoint may take longer than that.
  const Training training;
  Process job(training.alone("run", {"train.steps=100000"}), Training::variables());
  ASSERT_TRUE(eventually([&] { return training.step("run") >= 5; })) << job.err();
  job.send(SIGSTOP);  // as if the step took long
  job.send(SIGUSR1);
  job.send(SIGTERM);
  job.send(SIGCONT);
  EXPECT_NE(job.wait().code, 128 + SIGKILL);
  EXPECT_TRUE(fs::exists(training.outputs() / "run" / "latest" / "checkpoints" / "last")) << job.err();
}

/// The command that a stopped training prints: the line below "go on with".
std::string printed_command(const std::string& err) {
  const std::vector<std::string> lines = lines_of(err);
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    if (!contains(lines[i], "; go on")) continue;
    const std::string indent = " info   ";
    const std::size_t info = lines[i + 1].find(indent);
    return info == std::string::npos ? "" : lines[i + 1].substr(info + indent.size());
  }
  return "";
}

TEST(TrainStop, TheCommandThatAStopPrintsContinuesTheRunWithAsManyRanks) {
  for (const Words& launcher : {Words{cohort_path()}, launch({"--nproc_per_node=2", "--grace-period", "20"})}) {
    const Training training;
    // A name that a shell would take apart.
    const Outcome outcome =
        stopped_by(SIGTERM, training, training.after(launcher, "my run's", {"train.steps=400"}), "my run's");
    ASSERT_EQ(outcome.code, 143) << outcome.err;
    const std::string command = printed_command(outcome.err);
    ASSERT_TRUE(contains(command, "resume=")) << outcome.err;
    EXPECT_EQ(contains(command, "launch --nproc_per_node=2 --grace-period 20 train resume="), launcher.size() > 1)
        << command;
    const Outcome again = run({"/bin/sh", "-c", command}, Training::variables());
    EXPECT_EQ(again.code, 0) << command << "\n" << again.err;
    EXPECT_TRUE(contains(again.err, "resuming from ")) << again.err;
    EXPECT_EQ(contains(again.err, "world: rank 0 of 2"), launcher.size() > 1) << again.err;
    EXPECT_EQ(training.runs("my run's").size(), 1u);
  }
}

TEST(TrainStop, WhereCohortIsOnThePathTheCommandSaysSo) {
  const Training training;
  const std::string folder = fs::path(cohort_path()).parent_path().string();
  const Outcome outcome = stopped_by(SIGTERM, training, training.alone("run", {"train.steps=100000"}), "run",
                                     {{"PATH", folder + ":" + std::getenv("PATH")}});
  EXPECT_EQ(printed_command(outcome.err).rfind("cohort train resume=", 0), 0u) << outcome.err;
}

/// Runs the command on a terminal of that width; everything it shows until `enough` says so, when it gets SIGTERM.
std::string shown_on_terminal(const Words& command, unsigned short columns,
                              const std::function<bool(const std::string&)>& enough) {
  int master = -1;
  winsize size{24, columns, 0, 0};
  const pid_t pid = forkpty(&master, nullptr, nullptr, &size);
  if (pid == 0) {
    setenv("TERM", "xterm-256color", 1);
    setenv("LC_ALL", "C.UTF-8", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    for (const char* name : {"NO_COLOR", "RANK", "WORLD_SIZE", "LOCAL_RANK"}) unsetenv(name);
    std::vector<char*> argv;
    for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv(argv[0], argv.data());
    _exit(127);
  }
  std::string text;
  char buffer[4096];
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(kPatience);
  pollfd ready{master, POLLIN, 0};
  bool told = false;
  while (std::chrono::steady_clock::now() < end) {
    if (poll(&ready, 1, 100) <= 0) continue;
    const ssize_t n = read(master, buffer, sizeof buffer);
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (!told && enough(text)) {
      ::kill(pid, SIGTERM);
      told = true;
    }
  }
  ::kill(pid, SIGKILL);
  waitpid(pid, nullptr, 0);
  close(master);
  return text;
}

TEST(TrainStop, UnderCohortLaunchATerminalShowsTheProgressBarOfRankZero) {
  SKIP_WITHOUT_TERMINALS();
  constexpr unsigned short kColumns = 120;
  const Training training;
  const std::string logs = (training.path() / "logs").string();
  std::string while_running;
  const std::string text = shown_on_terminal(
      training.after(launch({"--nproc_per_node=2", "--log_dir=" + logs}), "run", {"train.steps=100000"}), kColumns,
      [&](const std::string& shown) {
        if (training.step("run") < 50) return false;
        // A message clears the bar and the next redraw, which begins with a return, brings it back: look where it is
        // there.
        const std::string drawn = shown.substr(0, shown.rfind('\r'));
        const std::vector<std::string> now = cohort::test::screen_after(drawn, kColumns);
        if (now.empty() || !contains(now.back(), "[rank 0] train ")) return false;
        while_running = drawn;
        return true;
      });
  std::vector<std::string> screen;
  ASSERT_NO_THROW(screen = cohort::test::screen_after(while_running, kColumns)) << while_running;
  ASSERT_FALSE(screen.empty());
  int bars = 0;
  for (const std::string& line : screen)
    if (contains(line, "[rank 0] train ") && contains(line, "/100000")) ++bars;
  EXPECT_EQ(bars, 1) << "one bar, which is redrawn in place:\n" << while_running;
  EXPECT_TRUE(contains(screen.back(), "[rank 0] train ")) << screen.back();
  EXPECT_TRUE(contains(screen.back(), "▕")) << "a bar of blocks: " << screen.back();
  EXPECT_TRUE(contains(while_running, "\x1b[")) << "in colour";
  // What is stored of it are lines, not every redraw.
  const std::string stored = text_of(logs + "/attempt_0/rank_0/stderr.log");
  EXPECT_TRUE(contains(stored, "training stopped by a signal")) << stored;
  EXPECT_FALSE(contains(stored, "\r")) << stored;
}

TEST(TrainHelp, TheLaunchersHelpNamesJobsThatExist) {
  const std::string jobs = run({cohort_path(), "train", "--help"}).out;
  const std::string help = run(launch({"--help"})).out;
  int named = 0;
  for (std::size_t at = 0; (at = help.find(" train ", at)) != std::string::npos; ++named) {
    at += 7;
    const std::string job = help.substr(at, help.find_first_not_of("abcdefghijklmnopqrstuvwxyz", at) - at);
    EXPECT_TRUE(job.empty() || contains(jobs, "\n  " + job + " ")) << "'" << job << "' is none of the jobs: " << jobs;
  }
  EXPECT_GE(named, 2) << help;
}

}  // namespace
}  // namespace cohort::testing
