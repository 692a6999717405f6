// `cohort scaling`: real trainings on one and on two devices.
#include <csignal>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

TEST(Scaling, OneAndTwoProcessesAreMeasuredAndNothingIsLeft) {
  TemporaryFolder folder;
  const std::string table = (folder.path() / "arm.csv").string(), json = (folder.path() / "s.json").string();
  ASSERT_EQ(run({cohort_path(), "data", "two-link-arm", "--rows", "2000", "--out", table}).code, 0);
  const std::map<std::string, std::string> variables{{"TMPDIR", folder.path().string()}, {"CUDA_VISIBLE_DEVICES", ""}};
  if (run({"nproc"}).out == "1\n") GTEST_SKIP() << "one core: there is no second device";
  const Outcome outcome = run({cohort_path(), "scaling", "--nproc", "2", "--steps", "8", "--json", json, "train",
                               "regressor", table, "backend=cpu", "train.batch_size=64", "loader.workers=1"},
                              variables);
  ASSERT_EQ(outcome.code, 0) << outcome.err << outcome.out;
  const auto figures = parse_json<nlohmann::json>(read_file(json));
  ASSERT_EQ(figures.size(), 2u);
  EXPECT_EQ(figures[0].at("devices"), 1);
  EXPECT_EQ(figures[0].at("speed_up"), 1.0);
  EXPECT_EQ(figures[1].at("devices"), 2);
  for (const auto& row : figures) {
    EXPECT_GT(row.at("samples_per_s").get<double>(), 0);
    EXPECT_LE(row.at("data_s").get<double>(), row.at("step_s").get<double>());
  }
  for (const auto& entry : fs::directory_iterator(folder.path()))
    EXPECT_FALSE(contains(entry.path().filename().string(), "cohort-scaling")) << entry.path();
}

TEST(Scaling, ASignalStopsTheTrainingsAndLeavesNothing) {
  if (run({"nproc"}).out == "1\n") GTEST_SKIP() << "one core: there is no second device";
  TemporaryFolder folder;
  const std::string table = (folder.path() / "arm.csv").string(), json = (folder.path() / "s.json").string();
  ASSERT_EQ(run({cohort_path(), "data", "two-link-arm", "--rows", "2000", "--out", table}).code, 0);
  const fs::path scratch = folder.path() / "scratch";
  fs::create_directory(scratch);
  Process scaling({cohort_path(), "scaling", "--nproc", "2", "--steps", "1000", "--json", json, "train", "regressor",
                   table, "backend=cpu", "train.batch_size=64", "loader.workers=1"},
                  {{"TMPDIR", scratch.string()}, {"CUDA_VISIBLE_DEVICES", ""}});
  // The training on two devices has begun: both of its ranks are at work.
  const auto ranks_are_there = [&] {
    for (const auto& entry : fs::directory_iterator(scratch))
      if (text_of(entry.path() / "on_2" / "latest" / "metrics.jsonl").size() > 0) return true;
    return false;
  };
  ASSERT_TRUE(eventually(ranks_are_there)) << scaling.err();
  scaling.send(SIGTERM);
  const Outcome outcome = scaling.wait();
  EXPECT_EQ(outcome.code, 128 + SIGTERM) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "stopped by SIGTERM in the training on 2 device(s); measured so far: "))
      << outcome.err;
  EXPECT_TRUE(contains(outcome.err, " samples/s on 1\n")) << outcome.err;
  EXPECT_TRUE(fs::is_empty(scratch));
  EXPECT_FALSE(fs::exists(json));
  EXPECT_EQ(run({"pgrep", "-f", scratch.string()}).out, "") << "processes of the trainings are left";
}

TEST(Scaling, BadInputIsToldWithTheTrainingsOwnWords) {
  const Outcome none = run({cohort_path(), "scaling"});
  EXPECT_EQ(none.code, 2);
  EXPECT_TRUE(contains(none.err, "which training?")) << none.err;
  const Outcome missing =
      run({cohort_path(), "scaling", "--nproc", "1", "train", "regressor", "data.path=no_such.csv"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_TRUE(contains(missing.err, "no_such.csv")) << missing.err;
}

}  // namespace
}  // namespace cohort::testing
