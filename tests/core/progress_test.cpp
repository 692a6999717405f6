#include "core/progress.h"

#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/pace.h"
#include "core/progress_rate.h"
#include "core/pseudo_terminal.h"
#include "core/stop_signal.h"
#include "support/terminal_screen.h"

namespace cohort {
namespace {
namespace fs = std::filesystem;

/// A clock that the test moves by hand.
struct Clock {
  double now = 1000;
  std::function<double()> reader() {
    return [this] { return now; };
  }
};

/// A pseudo-terminal: what is written to `slave` is read from `master`.
class Pty {
 public:
  explicit Pty(unsigned short columns) {
    winsize size{24, columns, 0, 0};
    COHORT_CHECK(::openpty(&master_, &slave_, nullptr, nullptr, &size) == 0, "openpty failed");
    ::fcntl(master_, F_SETFL, O_NONBLOCK);
    ::setenv("TERM", "xterm-256color", 1);
    ::setenv("LC_ALL", "C.UTF-8", 1);
    ::unsetenv("NO_COLOR");
  }
  ~Pty() {
    ::close(master_);
    ::close(slave_);
  }
  Pty(const Pty&) = delete;
  Pty& operator=(const Pty&) = delete;

  int slave() const { return slave_; }
  void resize(unsigned short columns) {
    const winsize size{24, columns, 0, 0};
    ::ioctl(master_, TIOCSWINSZ, &size);
  }
  /// Everything written since the beginning.
  std::string bytes() {
    char buffer[4096];
    for (ssize_t n; (n = ::read(master_, buffer, sizeof buffer)) > 0;) all_.append(buffer, static_cast<std::size_t>(n));
    return all_;
  }
  std::vector<std::string> screen(int width) { return test::screen_after(bytes(), width); }

 private:
  int master_ = -1;
  int slave_ = -1;
  std::string all_;
};

/// A file in place of a terminal.
class PlainFile {
 public:
  PlainFile() : path_(fs::path(::testing::TempDir()) / format("cohort_progress_{}", ::getpid())) {
    fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  }
  ~PlainFile() {
    ::close(fd_);
    fs::remove(path_);
  }
  PlainFile(const PlainFile&) = delete;
  PlainFile& operator=(const PlainFile&) = delete;
  int fd() const { return fd_; }
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    std::string text = read_file(path_);
    for (std::size_t begin = 0; begin < text.size();) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) {
        ADD_FAILURE() << "the last line has no end: " << text.substr(begin);
        break;
      }
      out.push_back(text.substr(begin, end - begin));
      begin = end + 1;
    }
    return out;
  }

 private:
  fs::path path_;
  int fd_;
};

/// Variables of `cohort launch` for the time of a test.
struct LaunchersTerminal {
  LaunchersTerminal(int columns, int fd) {
    struct stat status {};
    ::fstat(fd, &status);
    ::setenv("TERM", "xterm-256color", 1);
    ::setenv("COHORT_TERMINAL_COLUMNS", std::to_string(columns).c_str(), 1);
    ::setenv("COHORT_TERMINAL_STREAM", format("{}:{}", status.st_dev, status.st_ino).c_str(), 1);
  }
  ~LaunchersTerminal() {
    ::unsetenv("COHORT_TERMINAL_COLUMNS");
    ::unsetenv("COHORT_TERMINAL_STREAM");
  }
};

TEST(Progress, ThroughThePipeOfALauncherABarIsDrawnInTheColumnsThatItLeaves) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  std::string bytes(1 << 16, '\0');
  const PlainFile elsewhere;
  {
    const LaunchersTerminal launcher(60, ends[1]);
    Clock clock;
    Progress progress(100, {.label = "train", .fd = ends[1], .now = clock.reader()});
    EXPECT_TRUE(progress.on_terminal());
    clock.now += 1;
    progress.update(40, {{"loss", "0.1"}});
    EXPECT_FALSE(Progress(100, {.fd = elsewhere.fd()}).on_terminal()) << "a file into which the user leads the output";
  }
  ::close(ends[1]);
  bytes.resize(static_cast<std::size_t>(::read(ends[0], bytes.data(), bytes.size())));
  ::close(ends[0]);
  const auto screen = test::screen_after(bytes, 60);
  ASSERT_EQ(screen.size(), 1u) << "redrawn in place, and never wrapped: " << bytes;
  EXPECT_TRUE(screen[0].starts_with("train")) << screen[0];
}

TEST(Progress, OnATerminalOneLineIsRedrawnAndTheFinishedBarRemains) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(120);
  Clock clock;
  {
    Progress progress(100, {.label = "train", .samples_per_unit = 8, .fd = pty.slave(), .now = clock.reader()});
    EXPECT_TRUE(progress.on_terminal());
    for (int i = 1; i <= 100; ++i) {
      clock.now += 0.5;
      progress.update(i, {{"loss", format("{:.3f}", 1.0 / i)}});
      EXPECT_EQ(pty.screen(120).size(), 1u);
    }
    progress.finish();
  }
  const auto screen = pty.screen(120);
  ASSERT_EQ(screen.size(), 1u);
  EXPECT_EQ(screen[0],
            "train  100%  ▕██████████████████████████████▏  100/100  2.0 it/s  loss 0.010  16.0 samples/s  took 00:50");
  EXPECT_TRUE(pty.bytes().ends_with("\n"));
}

TEST(Progress, RedrawsAtMostTenTimesASecond) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(100);
  Clock clock;
  Progress progress(10000, {.fd = pty.slave(), .now = clock.reader()});
  for (int i = 1; i <= 5000; ++i) {
    clock.now += 0.001;
    progress.update(i);
  }
  const std::string bytes = pty.bytes();
  int draws = 0;
  for (std::size_t at = 0; (at = bytes.find("\x1b[K", at)) != std::string::npos; ++at) ++draws;
  EXPECT_GE(draws, 40);
  EXPECT_LE(draws, 52);  // 5 s at 10 Hz, the first at the start, and rounding
}

TEST(Progress, FollowsTheWidthOfTheWindow) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(160);
  Clock clock;
  Progress progress(100, {.label = "train", .fd = pty.slave(), .now = clock.reader()});
  clock.now += 1;
  progress.update(10, {{"loss", "0.5"}});
  clock.now += 1;
  progress.update(20, {{"loss", "0.5"}});
  EXPECT_NE(pty.screen(160)[0].find("loss 0.5"), std::string::npos);
  pty.resize(40);
  clock.now += 1;
  const std::size_t before = pty.bytes().size();
  progress.update(30, {{"loss", "0.5"}});
  const auto screen = test::screen_after(pty.bytes().substr(before), 40);
  ASSERT_EQ(screen.size(), 1u);
  EXPECT_EQ(screen[0].find("loss"), std::string::npos);
  EXPECT_NE(screen[0].find("30%"), std::string::npos);
}

TEST(Progress, NoColorAndAsciiAreHonoured) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(100);
  ::setenv("NO_COLOR", "1", 1);
  ::setenv("LC_ALL", "C", 1);
  Clock clock;
  Progress progress(10, {.label = "train", .fd = pty.slave(), .now = clock.reader()});
  clock.now += 1;
  progress.update(5);
  progress.finish();
  const std::string bytes = pty.bytes();
  for (std::size_t at = 0; (at = bytes.find('\x1b', at)) != std::string::npos; ++at)
    EXPECT_EQ(bytes.substr(at, 3), "\x1b[K") << "only the erasing sequence may be left";
  for (const char c : bytes) EXPECT_LT(static_cast<unsigned char>(c), 0x80);
  EXPECT_NE(bytes.find("[###############...............]"), std::string::npos);
  ::unsetenv("NO_COLOR");
}

TEST(Progress, ADumbTerminalGetsPlainLines) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(100);
  ::setenv("TERM", "dumb", 1);
  Clock clock;
  Progress progress(10, {.fd = pty.slave(), .now = clock.reader()});
  EXPECT_FALSE(progress.on_terminal());
  progress.finish();
  EXPECT_EQ(pty.bytes().find('\x1b'), std::string::npos);
}

TEST(Progress, TimeLeftIsUnknownAtFirstAndLeavesTheWarmUpOut) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(120);
  Clock clock;
  Progress progress(101, {.fd = pty.slave(), .now = clock.reader()});
  EXPECT_NE(pty.screen(120)[0].find("left --:--"), std::string::npos);
  clock.now += 60;  // the first step compiles, allocates, starts threads
  progress.update(1);
  EXPECT_NE(pty.screen(120)[0].find("left --:--"), std::string::npos);
  clock.now += 2;
  progress.update(2);
  EXPECT_NE(pty.screen(120)[0].find("left 03:18"), std::string::npos) << pty.screen(120)[0];  // 99 steps of 2 s
}

TEST(Progress, StepsBeforeAResumeDoNotCountIntoTheRate) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(120);
  Clock clock;
  Progress progress(1000, {.initial = 900, .fd = pty.slave(), .now = clock.reader()});
  for (int i = 901; i <= 910; ++i) {
    clock.now += 1;
    progress.update(i);
  }
  EXPECT_NE(pty.screen(120)[0].find("1.0 it/s"), std::string::npos) << pty.screen(120)[0];
  EXPECT_NE(pty.screen(120)[0].find("left 01:30"), std::string::npos) << pty.screen(120)[0];
  progress.finish();
  EXPECT_NE(pty.screen(120)[0].find("1.0 it/s"), std::string::npos) << pty.screen(120)[0];
}

TEST(Progress, AnInnerBarTakesThePlaceAndGivesItBack) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(120);
  Clock clock;
  Progress train(10, {.label = "train", .fd = pty.slave(), .now = clock.reader()});
  for (int i = 1; i <= 5; ++i) {
    clock.now += 1;
    train.update(i);
  }
  {
    Progress validate(4, {.label = "validate", .keep = false, .fd = pty.slave(), .now = clock.reader()});
    clock.now += 100;
    validate.update(2);
    ASSERT_EQ(pty.screen(120).size(), 1u);
    EXPECT_TRUE(pty.screen(120)[0].starts_with("validate")) << pty.screen(120)[0];
    validate.finish();
  }
  ASSERT_EQ(pty.screen(120).size(), 1u);
  EXPECT_TRUE(pty.screen(120)[0].starts_with("train")) << pty.screen(120)[0];
  clock.now += 1;
  train.update(6);
  EXPECT_NE(pty.screen(120)[0].find("1.0 it/s"), std::string::npos) << "the inner bar's time is not the step's";
  // The time left does count it: validation will come again.
  EXPECT_EQ(pty.screen(120)[0].find("left 00:04"), std::string::npos) << pty.screen(120)[0];
}

TEST(Progress, WithoutATerminalTheFirstLineThenShareAndIntervalThenTheLast) {
  PlainFile file;
  Clock clock;
  Progress progress(1000, {.label = "train", .fd = file.fd(), .now = clock.reader()});
  for (int i = 1; i <= 1000; ++i) {
    clock.now += 0.1;  // 100 s in all: 5 % every 5 s
    progress.update(i, {{"loss", "0.5"}});
  }
  progress.finish();
  progress.finish();
  const auto lines = file.lines();
  // The first step, 1 + 50 k for k = 1 .. 19, and the end.
  ASSERT_EQ(lines.size(), 21u);
  EXPECT_EQ(lines[0], "train 1/1000 (0 %), loss 0.5, 00:00 elapsed, --:-- left");
  EXPECT_EQ(lines[1], "train 51/1000 (5 %), 10.0 it/s, loss 0.5, 00:05 elapsed, 01:35 left");
  EXPECT_EQ(lines[20], "train 1000/1000 (100 %), 10.0 it/s, loss 0.5, took 01:40");
  for (const std::string& line : lines) EXPECT_EQ(line.find_first_of("\r\x1b"), std::string::npos);
}

TEST(Progress, WithoutATerminalLongStepsShowEveryInterval) {
  PlainFile file;
  Clock clock;
  Progress progress(100000, {.fd = file.fd(), .now = clock.reader()});
  for (int i = 1; i <= 10; ++i) {
    clock.now += 20;
    progress.update(i);
  }
  EXPECT_EQ(file.lines().size(), 5u);  // steps 1, 3, 5, 7, 9: 30 s are over at every second one
}

TEST(Progress, AShortJobDoesNotFloodALog) {
  PlainFile file;
  Clock clock;
  Progress progress(1000, {.fd = file.fd(), .now = clock.reader()});
  for (int i = 1; i <= 1000; ++i) {
    clock.now += 0.001;
    progress.update(i);
  }
  progress.finish();
  EXPECT_EQ(file.lines().size(), 2u);
}

TEST(Progress, FieldsAreAskedForOnlyWhenShown) {
  PlainFile file;
  Clock clock;
  Progress progress(100, {.fd = file.fd(), .now = clock.reader()});
  for (int i = 1; i <= 100; ++i) {
    clock.now += 1;
    if (progress.due(i)) {
      clock.now += 0.4;  // formatting takes time; the answer stands
      progress.update(i, {{"at", format("{}", i)}});
    } else {
      clock.now += 0.4;
      progress.update(i);
    }
  }
  for (const std::string& line : file.lines()) {
    const std::string step = line.substr(0, line.find('/'));
    EXPECT_NE(line.find("at " + step + ","), std::string::npos) << "stale figures: " << line;
  }
}

TEST(Progress, SaysWhereAnInterruptedJobStopped) {
  PlainFile file;
  Clock clock;
  try {
    Progress progress(100, {.label = "train", .fd = file.fd(), .now = clock.reader()});
    clock.now += 10;
    progress.update(37);
    throw Error("NaN loss");
  } catch (const Error&) {
  }
  EXPECT_EQ(file.lines().back(), "train 37/100 (37 %), 3.7 it/s, stopped after 00:10");
}

TEST(Progress, SilentWritesNothing) {
  SKIP_WITHOUT_TERMINALS();
  Pty pty(100);
  Clock clock;
  {
    Progress progress(10, {.silent = true, .fd = pty.slave(), .now = clock.reader()});
    clock.now += 100;
    EXPECT_FALSE(progress.due(5));
    progress.update(5);
    progress.finish();
  }
  EXPECT_EQ(pty.bytes(), "");
}

TEST(Progress, AClosedTerminalDoesNotEndTheWork) {
  const int fd = ::open("/dev/full", O_WRONLY);
  ASSERT_GE(fd, 0);
  Clock clock;
  Progress progress(10, {.fd = fd, .now = clock.reader()});
  clock.now += 1;
  EXPECT_NO_THROW(progress.update(1));
  ::close(fd);
  EXPECT_NO_THROW(progress.finish());
}

TEST(Progress, LogLinesAndTheBarShareATerminalWithoutGarbling) {
  SKIP_WITHOUT_TERMINALS();
  // A real terminal for the log's standard error too, in a process of its own.
  ::setenv("TERM", "xterm", 1);
  ::setenv("LC_ALL", "C.UTF-8", 1);
  winsize size{24, 100, 0, 0};
  int master = -1;
  std::fflush(nullptr);  // what is unwritten would be written again by the child
  const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
  ASSERT_GE(child, 0);
  if (child == 0) {
    Progress progress(400, {.label = "train", .redraw_interval = 0});
    std::thread talker([] {
      for (int i = 0; i < 50; ++i) log::info("line {} of the log", i);
    });
    for (int i = 1; i <= 400; ++i) progress.update(i);
    talker.join();
    log::warning("the last line");
    progress.finish();
    ::_exit(0);
  }
  std::string bytes;
  char buffer[4096];
  for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) bytes.append(buffer, static_cast<std::size_t>(n));
  int status = 0;
  ::waitpid(child, &status, 0);
  ::close(master);
  EXPECT_EQ(status, 0);
  const auto screen = test::screen_after(bytes, 100);
  ASSERT_EQ(screen.size(), 52u);
  for (int i = 0; i < 50; ++i)
    EXPECT_TRUE(screen[static_cast<std::size_t>(i)].ends_with(format(" line {} of the log", i)))
        << screen[static_cast<std::size_t>(i)];
  EXPECT_TRUE(screen[50].ends_with("warning the last line")) << screen[50];
  EXPECT_TRUE(screen[51].starts_with("train  100%  ▕█")) << screen[51];
}

TEST(Progress, WithoutATerminalAFirstLineComesWhileTheFirstStepStillRuns) {
  PlainFile file;
  {
    Progress progress(400, {.label = "train", .unit = "step", .ticks = true, .plain_first = 0, .fd = file.fd()});
    for (int i = 0; i < 500 && file.lines().empty(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    ASSERT_FALSE(file.lines().empty()) << "nothing is counted for five seconds";
    EXPECT_TRUE(file.lines()[0].starts_with("train 0/400 (0 %), ")) << file.lines()[0];
    progress.finish();
  }
  EXPECT_EQ(file.lines().size(), 2u) << "and one when it ends";
}

TEST(Progress, ALineComesByTimeWhereStepsAreCountedAndFiguresAreNot) {
  Clock clock;
  PlainFile file;
  Progress progress(100000, {.label = "train", .unit = "step", .fd = file.fd(), .now = clock.reader()});
  progress.update(1, {{"loss", "0.5"}});
  for (int step = 2; step <= 14; ++step) {  // 5 s each: train.log_every=50 would say nothing for four minutes
    clock.now += 5;
    progress.update(step);
  }
  const auto lines = file.lines();
  ASSERT_EQ(lines.size(), 3u) << "one in thirty seconds, so that the log of a long run does not swell";
  EXPECT_NE(lines[1].find("train 7/100000"), std::string::npos) << lines[1];
  EXPECT_NE(lines[2].find("loss 0.5"), std::string::npos) << lines[2];
}

TEST(Pace, SaysOnceAfterTheSecondStepHowLongTheRestTakes) {
  Pace slow(1000, "step", 0, 10);
  EXPECT_FALSE(slow.made(1, 60)) << "the first step takes memory and is no measure";
  EXPECT_EQ(slow.made(2, 65).value_or(""), "about 5.0 s a step; the 998 that are left take about 83 min");
  EXPECT_FALSE(slow.made(3, 70));

  Pace fast(100000, "iteration", 50000, 0);
  EXPECT_FALSE(fast.made(50000, 0.1));
  EXPECT_FALSE(fast.made(50001, 0.2));
  EXPECT_FALSE(fast.made(50010, 1.1)) << "too early to tell";
  EXPECT_EQ(fast.made(50021, 2.2).value_or(""),
            "about 0.100 s an iteration; the 49979 that are left take about 83 min");

  Pace nearly_done(30, "step", 0, 0);
  nearly_done.made(1, 1);
  EXPECT_FALSE(nearly_done.made(29, 3)) << "it ends before one has read that";
  EXPECT_EQ(rough_duration(40), "40 s");
  EXPECT_EQ(rough_duration(3 * 3600), "3.0 hours");
  EXPECT_EQ(rough_duration(72 * 3600), "3.0 days");
}

/// A child that answers stop signals, and what it wrote and how it ended when it got `signals`, each once the one
/// before was noticed.
struct Answered {
  std::string err;
  int status = 0;
};
Answered answered(int signals, bool waits_between) {
  int pipe[2];
  COHORT_CHECK(::pipe(pipe) == 0, "pipe failed");
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(pipe[1], STDERR_FILENO);
    ::unsetenv("RANK");
    ::unsetenv("LOCAL_RANK");
    answer_stop_signals("stops after this step");
    for (int i = 0; i < signals; ++i) {
      if (i > 0 && waits_between) std::this_thread::sleep_for(std::chrono::milliseconds(400));
      ::raise(SIGINT);
    }
    ::_exit(stop_wanted() == SIGINT ? 7 : 8);
  }
  ::close(pipe[1]);
  Answered result;
  char buffer[256];
  for (ssize_t n; (n = ::read(pipe[0], buffer, sizeof buffer)) > 0;)
    result.err.append(buffer, static_cast<std::size_t>(n));
  ::close(pipe[0]);
  ::waitpid(child, &result.status, 0);
  return result;
}

TEST(StopSignals, TheFirstIsAnsweredAtOnceAndTheSecondEndsTheProgram) {
  const Answered once = answered(1, false);
  EXPECT_EQ(once.err, "stops after this step\n");
  EXPECT_EQ(WEXITSTATUS(once.status), 7);
  const Answered passed_on = answered(2, false);
  EXPECT_EQ(WEXITSTATUS(passed_on.status), 7) << "what a shell passes on as well is no second wish";
  const Answered twice = answered(2, true);
  EXPECT_EQ(twice.err, "stops after this step\n");
  EXPECT_TRUE(WIFSIGNALED(twice.status) && WTERMSIG(twice.status) == SIGINT) << twice.status;
  EXPECT_TRUE(is_same_wish(0, 1500, true)) << "a launcher passes it on, late where the machine is busy";
  EXPECT_FALSE(is_same_wish(0, 1500, false));
}

TEST(RateEstimate, FollowsAChangeWithinItsWindowAndStaysSteadyUnderJitter) {
  RateEstimate rate(10, 0);
  double now = 0, done = 0;
  rate.add(now, done);
  const auto run = [&](double seconds, double per_second) {
    for (const double end = now + seconds; now < end;) {
      // Steps of unequal length at the same rate.
      const double step = (static_cast<int>(done) % 2 == 0 ? 1.5 : 0.5) / per_second;
      now += step;
      done += step * per_second;
      rate.add(now, done);
    }
  };
  run(60, 10);
  EXPECT_NEAR(rate.per_second(), 10, 1e-6);
  run(40, 20);
  EXPECT_NEAR(rate.per_second(), 20, 20 * 0.02);  // exp(-40/10) of the old rate is left
}

TEST(RateEstimate, ALongRunEvensRecurringPausesOut) {
  // 90 s of steps at 1/s, then 10 s of validation, again and again: 0.9 items/s is the truth.
  RateEstimate rate(30, 0.25);
  double now = 0, done = 0;
  rate.add(now, done);
  for (int cycle = 0; cycle < 100; ++cycle) {
    for (int i = 0; i < 90; ++i) rate.add(now += 1, done += 1);
    now += 10;
  }
  EXPECT_NEAR(rate.per_second(), 0.9, 0.02);  // the window of 2500 s holds 25 cycles
}

}  // namespace
}  // namespace cohort
