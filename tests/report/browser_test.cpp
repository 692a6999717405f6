// A report in a real browser: nothing on the console, charts drawn, videos that play from the file system.
#include <fstream>

#include <gtest/gtest.h>

#include "core/files.h"
#include "render/video.h"
#include "report/evaluation_section.h"
#include "report/gnuplot.h"
#include "report/metric_names.h"
#include "report/run_report.h"
#include "report/saved_content.h"
#include "report/test_folder.h"
#include "support/command.h"

namespace cohort::report {
namespace {

namespace fs = std::filesystem;

class Browser : public test::TestFolder {
 protected:
  static std::string chromium() {
    for (const char* name : {"chromium", "chromium-browser", "google-chrome"})
      if (test::run_command(std::string("command -v ") + name).code == 0) return name;
    return "";
  }
};

TEST_F(Browser, AReportShowsChartsTablesAndPlayableVideosAndNothingOnTheConsole) {
  const std::string browser = chromium();
  if (browser.empty()) GTEST_SKIP() << "no Chromium (the package chromium)";
  if (find_gnuplot({}).empty()) GTEST_SKIP() << gnuplot_missing_message({});
  const std::string no_video = render::video_unavailable();
  if (!no_video.empty()) GTEST_SKIP() << no_video;

  const RunFolder run = RunFolder::create(folder_, "run");
  run.save_configuration("{\"train\":{\"lr\":0.1}}", {});
  {
    MetricsWriter writer(run.path());
    for (int step = 1; step <= 50; ++step)
      writer.write(step, {{metric::kTrainLoss, 1.0 / step}, {metric::kSamplesPerSecond, 100.0}});
    writer.write(50, {{metric::kRolloutSuccess, 0.5}, {metric::kRolloutReturn, 7.0}});
  }
  const fs::path videos = run.path() / "evaluation" / "videos";
  fs::create_directories(videos);
  render::VideoWriter video(videos / "seed 3 & more.mp4", 96, 64, 20);
  std::vector<std::uint8_t> frame(96 * 64 * 3);
  for (int t = 0; t < 40; ++t) {
    for (std::size_t i = 0; i < frame.size(); ++i)
      frame[i] = static_cast<std::uint8_t>(i * 3 + static_cast<std::size_t>(t) * 5);
    video.add(frame);
  }
  video.finish();
  write_file_atomically(run.path() / "evaluation" / "evaluation.json", R"({"task": "t", "first_seed": 0, "max_steps": 9,
    "policies": [{"policy": "<b>", "successes": 1, "episodes": 2, "faults": 0, "success_rate": 0.5,
      "interval": [0.1, 0.9], "mean_return": 1.5, "mean_max_reward": 1, "mean_steps": 4}],
    "videos": [{"policy": "<b>", "seed": 3, "success": true, "file": "videos/seed 3 & more.mp4"}]})");
  ASSERT_TRUE(write_run_report(run, {.content = {.title = "a run"}}, 50));
  fs::copy_file(fs::path(COHORT_SOURCE_DIR) / "tests" / "report" / "browser_harness.html", run.path() / "harness.html");

  const std::string command = format(
      "timeout 500 {} --headless=new --no-sandbox --disable-gpu --allow-file-access-from-files "
      "--autoplay-policy=no-user-gesture-required --enable-logging=stderr --virtual-time-budget=100000 "
      "--user-data-dir='{}' --dump-dom 'file://{}'",
      browser, (folder_ / "profile").string(), (run.path() / "harness.html").string());
  const test::CommandOutcome seen = test::run_command(command);
  ASSERT_NE(seen.output.find("\ndone"), std::string::npos) << seen.output;
  EXPECT_NE(seen.output.find("charts 3"), std::string::npos) << "loss, success, speed\n" << seen.output;
  EXPECT_NE(seen.output.find("tables of success 1"), std::string::npos) << seen.output;
  EXPECT_NE(seen.output.find("video 96 x 64 plays"), std::string::npos) << seen.output;
  EXPECT_EQ(seen.output.find("CONSOLE"), std::string::npos) << seen.output;
}

}  // namespace
}  // namespace cohort::report
