// A run with a learner that counts: what it leaves behind, however it ends.
#include "run/run.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "run/stop_request.h"
#include "run/training.h"

namespace cohort::run {
namespace {
namespace fs = std::filesystem;

/// Makes steps up to `last`, of which each has a figure.
class Counter final : public Learner {
 public:
  explicit Counter(std::int64_t last) : last_(last) {}
  std::string job() const override { return "counter"; }
  Counting counting() const override { return {.label = "count", .short_unit = "it", .unit = "item"}; }
  Resources prepare(Run&) override {
    if (refuses_settings) throw Error("bad settings");
    return {.devices = {DeviceId{}}};
  }
  void build(Run&) override {
    if (refuses_to_build) throw Error("does not fit");
  }
  std::int64_t batch_size() const override { return 8; }
  std::vector<BannerRow> banner(Run&) const override {
    return {{"job", "counts"}, {.label = "hidden", .text = "in the file", .on_screen = false}};
  }
  Outcome train(Run& run) override {
    if (begins_at >= last_ && run.is_complete({"done.txt"}))
      return {.ending = Ending::kNothingLeft, .step = begins_at, .remedy = "count on"};
    run.begin(begins_at, last_);
    Outcome outcome{.step = begins_at};
    while (outcome.step < last_ && !stop_requested()) {
      ++outcome.step;
      if (outcome.step == fails_at) throw Error("lost count");
      run.observe(outcome.step, {{"count", static_cast<double>(outcome.step)}});
      if (outcome.step == stops_at) request_stop();
    }
    if (outcome.step < last_) outcome = {.ending = Ending::kStopped, .step = outcome.step, .status = "stopped"};
    return outcome;
  }
  void conclude(Run& run, const Outcome&) override { write_file_atomically(run.folder().path() / "done.txt", "done"); }
  Results results(double) const override { return {.step = last_, .weights = "none"}; }

  bool refuses_settings = false, refuses_to_build = false;
  std::int64_t begins_at = 0, fails_at = -1, stops_at = -1;

 private:
  std::int64_t last_;
};

class RunTest : public ::testing::Test {
 protected:
  RunTest() {
    settings.output_dir = (folder.path() / "out").string();
    settings.charts = settings.tensorboard = settings.rank_status = false;
    settings.backend = "cpu";
    describe(fields, settings);
  }
  ~RunTest() override { clear_stop_request(); }
  int carry_out(Counter& counter) { return run::Run(settings, fields, overrides).carry_out(counter); }
  fs::path latest() const { return fs::canonical(fs::path(settings.output_dir) / "counter" / "latest"); }

  TemporaryFolder folder{"cohort-run-"};
  RunSettings settings;
  config::Fields fields;
  std::vector<std::string> overrides{"threads=1"};
};

TEST_F(RunTest, LeavesItsSettingsItsFiguresAndALog) {
  Counter counter(3);
  EXPECT_EQ(carry_out(counter), 0);
  std::vector<double> counts;
  std::istringstream lines(read_file(latest() / "metrics.jsonl"));
  for (std::string line; std::getline(lines, line);) {
    counts.push_back(parse_json<nlohmann::json>(line)["count"].get<double>());
    EXPECT_TRUE(parse_json<nlohmann::json>(line).contains("host/memory_bytes"))
        << "what the machine does stands beside";
  }
  EXPECT_EQ(counts, (std::vector<double>{1, 2, 3}));
  EXPECT_EQ(parse_json<nlohmann::json>(read_file(latest() / "config.json"))["resume"], "");
  EXPECT_EQ(read_file(latest() / "overrides.txt"), "threads=1\n");
  const std::string log = read_file(latest() / "training.log");
  for (const char* text : {"job       counts", "hidden    in the file", "training finished after"})
    EXPECT_NE(log.find(text), std::string::npos) << text << "\n" << log;
}

TEST_F(RunTest, ThatIsRefusedOrNeverBeginsLeavesNoFolder) {
  Counter settings_refused(3), does_not_fit(3);
  settings_refused.refuses_settings = does_not_fit.refuses_to_build = true;
  EXPECT_EQ(message_of([&] { carry_out(settings_refused); }), "bad settings");
  EXPECT_EQ(message_of([&] { carry_out(does_not_fit); }), "does not fit");
  settings.store_timeout_s = 0;
  Counter counter(3);
  EXPECT_NE(message_of([&] { carry_out(counter); }).find("dist.store_timeout_s=0 must be between"), std::string::npos);
  EXPECT_FALSE(fs::exists(settings.output_dir));
}

TEST_F(RunTest, ThatFailsKeepsWhatItHas) {
  Counter counter(3);
  counter.fails_at = 3;
  EXPECT_EQ(message_of([&] { carry_out(counter); }), "lost count");
  EXPECT_EQ(
      parse_json<nlohmann::json>(
          read_file(latest() / "metrics.jsonl").substr(0, read_file(latest() / "metrics.jsonl").find('\n')))["step"],
      1);
  EXPECT_FALSE(fs::exists(latest() / "done.txt"));
}

TEST_F(RunTest, ThatIsStoppedSaysHowItGoesOnAndGoesOnInItsFolder) {
  Counter first(3), second(3);
  first.stops_at = 2;
  EXPECT_EQ(carry_out(first), 0) << "the wish came from within, not by a signal";
  const fs::path run = latest();
  EXPECT_NE(read_file(run / "training.log").find("train resume=" + run.string()), std::string::npos);
  clear_stop_request();
  settings.resume = run.string();
  second.begins_at = 2;
  EXPECT_EQ(carry_out(second), 0);
  const std::string metrics = read_file(run / "metrics.jsonl");
  EXPECT_EQ(std::count(metrics.begin(), metrics.end(), '\n'), 3);
}

TEST_F(RunTest, ThatWasFinishedStaysAsItWas) {
  Counter counter(3);
  EXPECT_EQ(carry_out(counter), 0);
  settings.resume = latest().string();
  const std::string log = read_file(latest() / "training.log");
  counter.begins_at = 3;
  EXPECT_EQ(carry_out(counter), 0);
  EXPECT_EQ(read_file(latest() / "training.log"), log);
}

TEST(Training, AnUnknownNameIsToldTheNearestOneOrWhatThereIsInstead) {
  const auto said = [](const std::string& name, const std::string& instead = "") {
    return message_of([&] { refuse_unknown_training(name, {"informer", "ppo"}, instead); });
  };
  EXPECT_EQ(said("infromer"),
            "there is nothing called 'infromer' to train, did you mean 'informer'?; there are informer, ppo");
  EXPECT_EQ(said("sac", "there is ppo"), "there is nothing called 'sac' to train: there is ppo");
}

}  // namespace
}  // namespace cohort::run
