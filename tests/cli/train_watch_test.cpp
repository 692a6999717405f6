// What a training tells those who watch it: `cohort top` while it runs, its metrics and its report afterwards.
#include <gtest/gtest.h>

#include "cli/training.h"
#include "core/json.h"

namespace cohort::testing {
namespace {

nlohmann::json last_metrics(const fs::path& run, const std::string& name) {
  nlohmann::json last;
  for (const std::string& line : lines_of(text_of(run / "metrics.jsonl")))
    if (const auto json = parse_json(line); json.contains(name)) last = json;
  return last;
}

TEST(CliWatch, TopShowsBothRanksOfATrainingThatRuns) {
  const Training training;
  Process job(training.after(launch({"--nproc_per_node=2"}), "watched", {"train.epochs=100000"}),
              Training::variables());
  const fs::path run_folder = training.outputs() / "watched" / "latest";
  ASSERT_TRUE(eventually([&] { return training.step("watched") > 50; }, 60)) << job.err();
  nlohmann::json ranks;
  const bool both = eventually(
      [&] {
        ranks = nlohmann::json::array();
        const auto all = parse_json(run({cohort_path(), "top", "--json"}).out);
        for (const auto& rank : all["ranks"])
          if (rank["run"] == fs::canonical(run_folder).string() && rank["step"] > 20) ranks.push_back(rank);
        return ranks.size() == 2;
      },
      30);
  ASSERT_TRUE(both) << ranks.dump(2);
  for (int i = 0; i < 2; ++i) {
    const auto& rank = ranks[static_cast<std::size_t>(i)];
    EXPECT_EQ(rank["rank"], i);
    EXPECT_EQ(rank["world_size"], 2);
    EXPECT_EQ(rank["job"], "regressor");
    EXPECT_EQ(rank["device"], "cpu");
    EXPECT_EQ(rank["batches_per_epoch"], 10);
    EXPECT_EQ(rank["batch_size"], 16);
    EXPECT_GT(rank["steps_per_s"].get<double>(), 0);
    EXPECT_NEAR(rank["samples_per_s"].get<double>(), 16 * rank["steps_per_s"].get<double>(),
                rank["samples_per_s"].get<double>() * 0.01);
    EXPECT_GT(rank["exchange_s"].get<double>(), 0);
    EXPECT_LT(rank["exchange_s"].get<double>(), rank["step_s"].get<double>());
    EXPECT_GT(rank["host_bytes"].get<double>(), 1 << 20);
    EXPECT_GT(rank["seconds_left"].get<double>(), 0);
  }
  job.send(SIGTERM);
  job.wait();
  for (int i = 0; i < 2; ++i)
    EXPECT_EQ(parse_json(text_of(run_folder / "ranks" / ("rank_" + std::to_string(i) + ".json")))["state"], "stopped");
}

TEST(CliWatch, MetricsAndReportSayHowAStepIsSpentAndHowRanksCompare) {
  const Training training;
  const Outcome outcome =
      run(training.after(launch({"--nproc_per_node=2"}), "shares", {"train.epochs=3", "charts=true"}),
          Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = training.outputs() / "shares" / "latest";
  const auto last = last_metrics(folder, "speed/compute_s");
  const double step = 1 / last["speed/steps_per_s"].get<double>();
  EXPECT_GT(last["speed/compute_s"].get<double>(), 0);
  EXPECT_LE(last["speed/least_compute_s"].get<double>(), last["speed/compute_s"].get<double>());
  EXPECT_LE(last["speed/compute_s"].get<double>() + last["speed/data_s"].get<double>(), 2 * step);
  EXPECT_GT(last["speed/exchange_s"].get<double>(), 0);
  EXPECT_LT(last["speed/exchange_s"].get<double>(), step);
  EXPECT_GT(last["host/memory_bytes"].get<double>(), 0);
  const std::string report = text_of(folder / "report.html");
  EXPECT_TRUE(contains(report, "a step")) << outcome.err;
  EXPECT_TRUE(contains(report, "communication"));
  for (const char* rank : {"rank 0", "rank 1", "balance"}) EXPECT_TRUE(contains(report, rank)) << rank;
  EXPECT_TRUE(contains(report, "480 samples; a step computes"));
  EXPECT_EQ(parse_json(text_of(folder / "ranks/rank_1.json"))["state"], "finished");
}

TEST(CliWatch, AnExchangeThatIsNotToldApartIsLeftOutNotZero) {
  const Training training;
  const Outcome outcome = run(training.after(launch({"--nproc_per_node=2"}), "gloo",
                                             {"train.epochs=3", "parallel.ddp.cpu_reduction=gloo", "charts=true"}),
                              Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = training.outputs() / "gloo" / "latest";
  EXPECT_TRUE(last_metrics(folder, "speed/exchange_s").is_null());
  EXPECT_TRUE(contains(text_of(folder / "report.html"), "compute and communication"));
  EXPECT_TRUE(parse_json(text_of(folder / "ranks/rank_0.json"))["exchange_s"].is_null());
}

TEST(CliWatch, ARunOfOneProcessHasNoExchangeAndMayKeepNoStatus) {
  const Training training;
  const Outcome outcome = run(training.alone("single", {"rank_status=false"}), Training::variables());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const fs::path folder = training.outputs() / "single" / "latest";
  EXPECT_TRUE(last_metrics(folder, "speed/exchange_s").is_null());
  EXPECT_FALSE(last_metrics(folder, "speed/compute_s").is_null());
  EXPECT_FALSE(fs::exists(folder / "ranks"));
}

TEST(CliWatch, AJobThatFindsItsRunFinishedLeavesNoLineInIt) {
  const Training training;
  ASSERT_EQ(run(training.after(launch({"--nproc_per_node=2"}), "again"), Training::variables()).code, 0);
  const fs::path folder = fs::canonical(training.outputs() / "again" / "latest");
  const std::string before = text_of(folder / "jobs.jsonl");
  EXPECT_EQ(lines_of(before).size(), 1u) << before;
  const Outcome again =
      run(training.after(launch({"--nproc_per_node=2"}), "again", {"resume=auto"}), Training::variables());
  EXPECT_EQ(again.code, 0) << again.err;
  EXPECT_EQ(text_of(folder / "jobs.jsonl"), before) << again.err;
}

TEST(CliWatch, AMisspeltPpoIsNamed) {
  const Outcome outcome = run({cohort_path(), "train", "pppo"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_TRUE(contains(outcome.err, "did you mean 'ppo'?")) << outcome.err;
}

}  // namespace
}  // namespace cohort::testing
