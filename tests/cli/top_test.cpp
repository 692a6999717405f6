// `cohort top` with ranks that are this test's own processes.
#include <gtest/gtest.h>
#include <pty.h>

#include "core/json_text.h"
#include "core/pseudo_terminal.h"
#include "monitor/snapshot.h"
#include "rank/status.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

rank::Status own_rank(int rank) {
  rank::Status s;
  monitor::identify_process(s);
  s.rank = rank;
  s.world_size = 2;
  s.job = "regressor";
  s.device = "cpu";
  s.phase = rank::Phase::kTraining;
  s.step = 1203;
  s.total_steps = 20000;
  s.steps_per_s = 80;
  s.samples_per_s = 1280;
  s.step_s = 0.0125;
  s.data_s = 0.0005;
  s.exchange_s = 0.0025;
  s.seconds_left = 235;
  s.time = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  return s;
}

TEST(CliTop, OneListShowsTheHostAndEveryRankOfALocalJob) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "run");
  rank::StatusFile file(folder.path() / "run/ranks", 0);
  file.write(own_rank(0));
  const Outcome outcome = run({cohort_path(), "top", "--once"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_TRUE(contains(outcome.out, "host   ")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, (folder.path() / "run").string() + ": regressor, 1 of 2 rank(s)")) << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "cpu     training  1203/20000  80.0       1280  0.5 ms 4 %  2.5 ms 20 %"))
      << outcome.out;
  EXPECT_TRUE(contains(outcome.out, "03:55")) << outcome.out;
  EXPECT_FALSE(contains(outcome.out, "\x1b")) << "no control characters without a terminal";
}

TEST(CliTop, TheJsonHoldsTheSameAndNullWhereNothingIsKnown) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "run");
  rank::StatusFile file(folder.path() / "run/ranks", 1);
  const auto before = std::chrono::steady_clock::now();
  rank::Status status = own_rank(1);
  status.exchange_s = rank::Status::kUnknown;
  file.write(status);
  const Outcome outcome = run({cohort_path(), "top", "--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const auto json = parse_json<nlohmann::json>(outcome.out);
  EXPECT_GE(json["host"]["cores"].get<int>(), 1);
  EXPECT_GT(json["host"]["memory_total"].get<double>(), 0);
  bool found = false;
  for (const auto& rank : json["ranks"]) {
    if (rank["run"] != (folder.path() / "run").string()) continue;
    found = true;
    EXPECT_EQ(rank["step"], 1203);
    EXPECT_EQ(rank["pid"], ::getpid());
    EXPECT_TRUE(rank["exchange_s"].is_null());
    const std::chrono::duration<double> since = std::chrono::steady_clock::now() - before;
    EXPECT_LT(rank["since_beat_s"].get<double>(), since.count() + 1);
  }
  EXPECT_TRUE(found) << outcome.out;
}

TEST(CliTop, ARunThatEndedIsShownWhenItIsNamed) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "run");
  rank::Status status = own_rank(0);
  status.phase = rank::Phase::kFinished;
  rank::StatusFile(folder.path() / "run/ranks", 0).write(status);
  EXPECT_FALSE(contains(run({cohort_path(), "top", "--once"}).out, folder.path().string()));
  const Outcome outcome = run({cohort_path(), "top", "--once", (folder.path() / "run").string()});
  EXPECT_TRUE(contains(outcome.out, "finished")) << outcome.out;
  const Outcome none = run({cohort_path(), "top", (folder.path() / "nothing").string()});
  EXPECT_EQ(none.code, 1);
  EXPECT_TRUE(contains(none.err, "there is no such run")) << none.err;
}

TEST(CliTop, OnATerminalItIsDrawnAnewUntilQAndTheTerminalIsAsBefore) {
  SKIP_WITHOUT_TERMINALS();
  for (const bool by_key : {true, false}) {
    int master = -1;
    winsize size{.ws_row = 20, .ws_col = 60, .ws_xpixel = 0, .ws_ypixel = 0};
    const pid_t child = ::forkpty(&master, nullptr, nullptr, &size);
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::setenv("TERM", "xterm", 1);
      const std::string program = cohort_path();
      ::execl(program.c_str(), program.c_str(), "top", "--interval=0.1", nullptr);
      ::_exit(127);
    }
    std::string shown;
    char buffer[4096];
    const auto draws = [&] {
      std::size_t count = 0;
      for (std::size_t at = shown.find("\x1b[H"); at != std::string::npos; at = shown.find("\x1b[H", at + 1)) ++count;
      return count;
    };
    bool told = false;
    for (ssize_t n; (n = ::read(master, buffer, sizeof buffer)) > 0;) {
      shown.append(buffer, static_cast<std::size_t>(n));
      if (told || draws() < 3) continue;
      told = true;
      const char key = by_key ? 'q' : 3;  // 3: Ctrl-C
      ASSERT_EQ(::write(master, &key, 1), 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ::close(master);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << shown;
    EXPECT_TRUE(shown.ends_with("\x1b[?25h\x1b[?1049l")) << "cursor and first screen come back";
    EXPECT_TRUE(contains(shown, "q ends"));
  }
}

}  // namespace
}  // namespace cohort::testing
