// What a page of several runs draws, read from the script that gnuplot would get.
#include "report/comparison.h"

#include <fstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "report/metric_names.h"
#include "report/metrics_writer.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

class Comparison : public test::TestFolder {
 protected:
  RunFolder run(const std::string& name, const std::string& config, const char* metric,
                const std::vector<double>& values) {
    RunFolder folder = RunFolder::create(folder_ / "outputs", name);
    folder.save_configuration(config, {});
    MetricsWriter writer(folder.path(), {.tensorboard = false});
    for (std::size_t i = 0; i < values.size(); ++i)
      writer.write(10 * static_cast<std::int64_t>(i + 1), {{metric, values[i]}});
    return folder;
  }
  /// All that gnuplot is told for the page of these runs.
  std::string script_of(const std::vector<RunFolder>& runs) {
    const fs::path program = folder_ / "gnuplot", script = folder_ / "script";
    std::ofstream(program) << "#!/bin/sh\ncat /dev/stdin >> '" << script.string() << "'\nexit 1\n";
    fs::permissions(program, fs::perms::owner_all);
    fs::remove(script);
    write_comparison(runs, folder_ / "page.html", {.program = program.string()});
    return read_file(script);
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(Comparison, ValuesAreDrawnAsTheyWereMeasured) {
  const std::vector<RunFolder> runs{run("a", R"({"lr":1})", metric::kRolloutSuccess, {0, 0.30}),
                                    run("b", R"({"lr":2})", metric::kRolloutSuccess, {0, 0})};
  const std::string script = script_of(runs);
  EXPECT_TRUE(contains(script, "10 0 0\n20 0.3 0\n")) << script;
  EXPECT_TRUE(contains(script, "10 0 0\n20 0 0\n")) << script;
  EXPECT_TRUE(contains(script, "set yrange [0:1]")) << "a share lies between 0 and 1\n" << script;
}

TEST_F(Comparison, RunsThatDifferInTheirSeedAloneGetAMeanAndABand) {
  const std::vector<RunFolder> runs{run("x", R"({"lr":1,"seed":1,"name":"p"})", metric::kMeanReturn, {1, 10}),
                                    run("x", R"({"lr":1,"seed":2,"name":"q"})", metric::kMeanReturn, {3, 20}),
                                    run("x", R"({"lr":1,"seed":3,"name":"r"})", metric::kMeanReturn, {5, 60, 70}),
                                    run("y", R"({"lr":2,"seed":1,"name":"p"})", metric::kMeanReturn, {7, 8})};
  const std::string script = script_of(runs);
  EXPECT_TRUE(contains(script, "10 3 0\n20 30 0\nEOD")) << "the mean, where all have a value\n" << script;
  EXPECT_TRUE(contains(script, "10 1 5\n20 10 60\n")) << "lowest and highest\n" << script;
  EXPECT_TRUE(contains(script, "10 5 0\n20 60 0\n30 70 0\n")) << "each run as well\n" << script;
  EXPECT_TRUE(contains(script, "'x, mean of 3 seeds'")) << script;
  EXPECT_FALSE(contains(script, "mean of 1")) << script;
}

TEST_F(Comparison, OneSettingMoreThanTheSeedMakesAnotherExperiment) {
  const std::vector<RunFolder> runs{run("x", R"({"lr":1,"seed":1})", metric::kMeanReturn, {1, 10}),
                                    run("x", R"({"lr":2,"seed":2})", metric::kMeanReturn, {3, 20})};
  EXPECT_FALSE(contains(script_of(runs), "mean of"));
}

TEST_F(Comparison, AnEvaluationOfSeveralRunsBesideThePageIsOnIt) {
  const std::vector<RunFolder> runs{run("a", R"({"lr":1})", metric::kTrainLoss, {2, 1}),
                                    run("b", R"({"lr":2})", metric::kTrainLoss, {2, 1})};
  fs::create_directories(folder_ / "evaluation");
  std::ofstream(folder_ / "evaluation" / "evaluation.json")
      << R"({"task":"push","first_seed":0,"max_steps":9,"policies":[{"policy":"a/latest","successes":3,"episodes":4,
            "faults":0,"success_rate":0.75,"interval":[0.3,0.95],"mean_return":1,"mean_max_reward":1,"mean_steps":5}]})";
  script_of(runs);
  const std::string page = read_file(folder_ / "page.html");
  EXPECT_TRUE(contains(page, "<td>evaluation</td><th scope=\"row\">a/latest</th><td class=\"number\">3 of 4</td>"))
      << page;
}

}  // namespace
}  // namespace cohort::report
