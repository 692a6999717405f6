// Python's HTML parser reads the page.
#include "report/html_report.h"

#include <fstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "file_size_limit.h"
#include "report/metric_names.h"
#include "report/run_report.h"
#include "support/python.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

class HtmlReport : public test::TestFolder {
 protected:
  RunFolder make_run() {
    RunFolder run = RunFolder::create(folder_, "informer");
    run.save_configuration(R"({"train":{"lr":0.1,"note":"<i>&"},"empty":{},"list":[1,2]})",
                           std::vector<std::string>{"train.lr=0.1"});
    std::ofstream log(run.log_file());
    for (int i = 0; i < 300; ++i) log << "line " << i << " <b>bold</b>\n";
    fs::create_directories(run.checkpoints() / "checkpoint 5");
    std::ofstream(run.checkpoints() / "checkpoint 5" / "model #1.safetensors") << "weights";
    MetricsWriter writer(run.path());
    for (int step = 1; step <= 200; ++step)
      writer.write(step, {{metric::kTrainLoss, 1.0 / step}, {metric::kSamplesPerSecond, 100.0 + step % 7}});
    return run;
  }
  RunResults results() {
    RunResults r;
    r.content.title = "informer <on> \"arm\".csv";
    r.content.highlights = {{"test R2", "0.99"}};
    r.content.summary = {{"model", "Informer & co"}, {"<script>alert(1)</script>", "<img src=x onerror=alert(1)>"}};
    r.content.machine.cpu = "a <CPU>";
    r.predictions = Predictions{{"a", "<b>"}, make_view(truth_.data(), {3, 2}), make_view(prediction_.data(), {3, 2})};
    TestMetricsSum sum({"a", "<b>"});
    sum.add(r.predictions->truth, r.predictions->prediction);
    r.content.test = sum.result();
    r.windows = {{.title = "w", .y_label = "y", .history = {1, 2}, .truth = {3}, .prediction = {4}}};
    return r;
  }
  std::vector<float> truth_ = {1, 2, 3, 2, 5, 2}, prediction_ = {1, 2, 3.5f, 2, 5, 2.5f};
};

TEST_F(HtmlReport, IsOneWholeSafePageWithEveryPart) {
  COHORT_NEEDS_PYTHON();
  if (find_gnuplot({}).empty()) GTEST_SKIP() << gnuplot_missing_message({});
  const RunFolder run = make_run();
  ASSERT_TRUE(write_run_report(run, results(), 200));
  const test::CommandOutcome outcome = test::run_python("report/check_report.py", {run.report_file().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  for (const char* heading : {"informer <on> \"arm\".csv", "Summary", "Errors on the test set", "Charts", "4 settings",
                              "Environment", "the last 200 lines", "Files"})
    EXPECT_NE(outcome.output.find(heading), std::string::npos) << heading << " in " << outcome.output;
  EXPECT_NE(outcome.output.find("svg 5\n"), std::string::npos) << outcome.output;
  const std::string html = read_file(run.report_file());
  EXPECT_EQ(html.find("<script"), std::string::npos);
  EXPECT_EQ(html.find("<img"), std::string::npos);
  EXPECT_EQ(html.find("http://", html.find("</style>")), html.find("http://www.w3.org", html.find("</style>")))
      << "the only addresses are names of XML dialects";
  EXPECT_NE(html.find("line 299 &lt;b&gt;bold"), std::string::npos);
  EXPECT_EQ(html.find("line 99 "), std::string::npos);
  EXPECT_NE(
      html.find(
          "<tr class=\"overridden\" title=\"set on the command line\"><th scope=\"row\">train.lr</th><td>0.1</td>"),
      std::string::npos);
  EXPECT_NE(html.find("prefers-color-scheme: dark"), std::string::npos);
  EXPECT_NE(html.find(">constant<"), std::string::npos);  // target <b> does not move
}

TEST_F(HtmlReport, ChartsAreShownInTensorBoardToo) {
  if (find_gnuplot({}).empty()) GTEST_SKIP() << gnuplot_missing_message({});
  COHORT_NEEDS_PYTHON();
  const RunFolder run = RunFolder::create(folder_, "x");
  MetricsWriter writer(run.path());
  writer.write(1, {{metric::kTrainLoss, 1.0}});
  ASSERT_TRUE(write_run_report(run, results(), 7, &writer));
  const test::CommandOutcome outcome = test::run_python("report/check_events.py", {events_folder(run.path()).string()});
  for (const char* name : {"loss", "prediction", "forecast", "residuals", "speed"})
    EXPECT_NE(outcome.output.find(format("image charts/{} 7 ", name)), std::string::npos) << outcome.output;
}

TEST_F(HtmlReport, WithoutGnuplotThePageSaysSoAndTheRunSucceeds) {
  COHORT_NEEDS_PYTHON();
  const RunFolder run = make_run();
  EXPECT_TRUE(write_run_report(run, results(), 200, nullptr, {.program = "no-such-gnuplot"}));
  const test::CommandOutcome outcome = test::run_python("report/check_report.py", {run.report_file().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("svg 5\n"), std::string::npos) << outcome.output;
  EXPECT_NE(read_file(run.report_file()).find("apt-get install gnuplot-nox"), std::string::npos);
}

TEST_F(HtmlReport, AnEmptyFolderStillMakesAPage) {
  COHORT_NEEDS_PYTHON();
  const RunFolder run = RunFolder::create(folder_, "x");
  write_html_report(run, {.title = "nothing yet", .status = "failed: NaN loss at step 1", .failed = true});
  const test::CommandOutcome outcome = test::run_python("report/check_report.py", {run.report_file().string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(read_file(run.report_file()).find("<span class=\"status failed\">failed: NaN loss at step 1</span>"),
            std::string::npos);
}

TEST_F(HtmlReport, WhatGoesWrongIsAWarningAndNotTheEndOfARun) {
  const RunFolder run = make_run();
  {
    const test::FileSizeLimit limit(2 << 10);
    ::testing::internal::CaptureStderr();
    EXPECT_FALSE(write_run_report(run, results(), 200, nullptr, {.program = "no-such-gnuplot"}));
    EXPECT_NE(::testing::internal::GetCapturedStderr().find("report.html"), std::string::npos);
  }
  EXPECT_FALSE(fs::exists(run.report_file()));
  const RunFolder empty = RunFolder::create(folder_, "no-metrics");
  ::testing::internal::CaptureStderr();
  EXPECT_FALSE(write_run_report(empty, results(), 1, nullptr, {.program = "no-such-gnuplot"}));
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("metrics.jsonl"), std::string::npos);
}

TEST_F(HtmlReport, SuccessLeadsWhereRolloutsOrEvaluationsSayIt) {
  const RunFolder run = make_run();
  {
    MetricsWriter writer(run.path(), {.tensorboard = false, .resumed_step = 200});
    writer.write(201, {{metric::kRolloutSuccess, 0.98}});
    writer.write(202, {{metric::kRolloutSuccess, 0.94}});
  }
  fs::create_directories(run.path() / "evaluation");
  std::ofstream(run.path() / "evaluation" / "evaluation.json")
      << R"({"task":"push","first_seed":0,"max_steps":9,"policies":[
             {"policy":"run","successes":3,"episodes":4,"faults":0,"success_rate":0.75,"interval":[0.3,0.95],
              "mean_return":1,"mean_max_reward":1,"mean_steps":5},
             {"policy":"expert","successes":4,"episodes":4,"faults":0,"success_rate":1,"interval":[0.5,1],
              "mean_return":1,"mean_max_reward":1,"mean_steps":5}]})";
  ASSERT_TRUE(write_run_report(run, results(), 202, nullptr, {.program = "no-such-gnuplot"}));
  const std::string html = read_file(run.report_file());
  const std::size_t evaluated = html.find("<dt>success in push, 4 episodes</dt><dd>75.0 % (30.0 to 95.0)</dd>"),
                    rollouts = html.find("<dt>success of rollouts, step 202</dt><dd>94.0 %</dd>"),
                    best = html.find("<dt>best success of rollouts, step 201</dt><dd>98.0 %</dd>"),
                    errors = html.find("<dt>test R2</dt>");
  EXPECT_LT(evaluated, rollouts);
  EXPECT_LT(rollouts, best);
  EXPECT_LT(best, errors);
  EXPECT_NE(errors, std::string::npos);
  EXPECT_EQ(html.find("<dt>success in push, 4 episodes</dt><dd>100.0"), std::string::npos) << "an expert is no result";
}

TEST_F(HtmlReport, APageElsewhereLinksToTheRunsFiles) {
  const RunFolder run = make_run();
  const fs::path elsewhere = folder_ / "pages" / "deep";
  const std::string html = html_report(run, {.title = "x"}, elsewhere);
  const std::string link = fs::relative(run.path(), elsewhere).generic_string();
  EXPECT_NE(html.find("href=\"" + link), std::string::npos) << link;
  EXPECT_TRUE(fs::path(link).string().starts_with("../../"));
}

}  // namespace
}  // namespace cohort::report
