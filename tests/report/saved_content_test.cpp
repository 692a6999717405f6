#include "report/saved_content.h"

#include <cmath>
#include <fstream>

#include "core/error.h"
#include "core/files.h"
#include "report/evaluation_section.h"
#include "report/test_folder.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

class SavedContent : public test::TestFolder {};

TEST_F(SavedContent, AReportThatIsWrittenAgainIsTheSameButForWhatHasCome) {
  const RunFolder run = RunFolder::create(folder_, "run");
  run.save_configuration("{\"a\":1}", {});
  ReportContent content{.title = "a <run>", .status = "stopped", .failed = true};
  content.highlights = {{"R2", "0.9"}};
  content.summary = {{"model", "small"}};
  content.environment = {{"cpu", "one"}};
  content.test.emplace();
  content.test->overall = {.target = "overall", .count = 3, .mse = 1, .mae = 2, .rmse = 1, .r2 = std::nan("")};
  content.test->targets = {content.test->overall};
  content.test_note = "noted";
  content.figures = {{.name = "loss", .caption = "c", .svg = run.charts() / "loss.svg", .png = "", .error = "no PNG"}};
  save_content(run, content);
  const auto back = load_content(run);
  ASSERT_TRUE(back.has_value());
  // Times differ, and which files there are.
  const auto cut = [](std::string html) {
    return html.substr(html.find("<section"), html.find("id=\"files\"") - html.find("<section"));
  };
  EXPECT_EQ(cut(html_report(run, *back, run.path())), cut(html_report(run, content, run.path())));
  EXPECT_EQ(back->figures.front().svg, run.charts() / "loss.svg");
  std::ofstream(run.path() / "report.json") << "{\"title\": 3}";
  EXPECT_THROW(load_content(run), Error);
  fs::remove(run.path() / "report.json");
  EXPECT_FALSE(load_content(run).has_value());
}

TEST_F(SavedContent, ADamagedEvaluationIsLeftOut) {
  fs::create_directories(folder_ / "evaluation");
  fs::create_directories(folder_ / "other");
  write_file_atomically(folder_ / "evaluation" / "evaluation.json", R"({"task": "<t>", "first_seed": 7, "max_steps": 9,
    "policies": [{"policy": "p&q", "successes": 1, "episodes": 2, "faults": 1, "success_rate": 0.5,
      "interval": [0.1, 0.9], "mean_return": 1.5, "mean_max_reward": 1, "mean_steps": 4}]})");
  write_file_atomically(folder_ / "other" / "evaluation.json", "{");
  const auto evaluations = read_evaluations(folder_);
  ASSERT_EQ(evaluations.size(), 1u);
  EXPECT_EQ(evaluations.front().first_seed, 7u);
  const std::string html = evaluation_sections(folder_, folder_);
  EXPECT_NE(html.find("Success in &lt;t&gt;"), std::string::npos) << html;
  EXPECT_NE(html.find("p&amp;q"), std::string::npos) << html;
  EXPECT_NE(html.find("1 of 2"), std::string::npos) << html;
  EXPECT_EQ(html.find("<video"), std::string::npos) << html;
}

TEST_F(SavedContent, ATasksOwnMetricsAreColumnsOfItsTable) {
  write_file_atomically(folder_ / "evaluation.json", R"({"task": "walk", "first_seed": 5, "episodes": 2, "max_steps": 9,
    "policies": [
      {"policy": "p", "successes": 1, "episodes": 2, "faults": 0, "success_rate": 0.5, "interval": [0.1, 0.9],
       "mean_return": 1.5, "mean_max_reward": 1, "mean_steps": 4, "metrics": {"tracking": 0.87654, "<slip>": null}},
      {"policy": "older", "successes": 1, "episodes": 2, "faults": 3, "success_rate": 0.5, "interval": [0.1, 0.9],
       "mean_return": 1.5, "mean_max_reward": 1, "mean_steps": 4}]})");
  const std::string html = evaluation_sections(folder_, folder_);
  EXPECT_NE(
      html.find("<th scope=\"col\">faults</th><th scope=\"col\">tracking</th><th scope=\"col\">&lt;slip&gt;</th></tr>"),
      std::string::npos)
      << html;
  EXPECT_NE(html.find("<td class=\"number\">0.8765</td><td class=\"number\"></td></tr>"), std::string::npos) << html;
  EXPECT_NE(html.find("<td class=\"number\">3</td><td class=\"number\"></td><td class=\"number\"></td></tr>"),
            std::string::npos)
      << html;
}

TEST_F(SavedContent, OfABenchmarkTheEpisodesOfEachTaskAreSaid) {
  write_file_atomically(folder_ / "evaluation.json", R"({"task": "libero_10", "benchmark": "libero_10",
    "tasks_of_benchmark": 10, "first_seed": 5, "episodes": 20, "max_steps": 9,
    "policies": [{"policy": "p", "successes": 11, "episodes": 40, "faults": 0, "success_rate": 0.275,
      "interval": [0.1, 0.9], "mean_return": 1.5, "mean_max_reward": 1, "mean_steps": 4}],
    "tasks": [{"task": "a"}, {"task": "b"}]})");
  const std::string html = evaluation_sections(folder_, folder_);
  EXPECT_NE(html.find("2 tasks, of each 20 episodes from seed 5 on, at most 9 steps each"), std::string::npos) << html;
  EXPECT_NE(html.find("11 of 40"), std::string::npos) << html;
}

TEST_F(SavedContent, VideosHavePathsRelativeToThePage) {
  const std::string html = video_gallery(
      {{.policy = "p", .seed = 3, .success = true, .file = folder_ / "a" / "videos" / "x y.mp4"}}, folder_ / "b");
  EXPECT_NE(html.find("src=\"../a/videos/x%20y.mp4\""), std::string::npos) << html;
}

}  // namespace
}  // namespace cohort::report
