// Independent reader: the tensorboard package's EventAccumulator, which checks every record's checksums.
#include <fstream>
#include <limits>
#include <sstream>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "report/metrics_writer.h"
#include "report/run_folder.h"
#include "report/tensorboard_events.h"
#include "support/python.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

/// The smallest PNG: one pixel.
const std::string kOnePixel(
    "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\x89\0\0\0\rIDATx\x9c"
    "c\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xae"
    "B`\x82",
    70);

class Tensorboard : public test::TestFolder {
 protected:
  /// Lines of check_events.py about one tag.
  std::vector<std::string> lines_with(const std::string& begin) {
    const test::CommandOutcome outcome = test::run_python("report/check_events.py", {folder_.string()});
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    std::vector<std::string> found;
    std::istringstream in(outcome.output);
    for (std::string line; std::getline(in, line);)
      if (line.starts_with(begin)) found.push_back(line);
    return found;
  }
  fs::path events_file() const {
    for (const auto& entry : fs::directory_iterator(folder_))
      if (entry.path().filename().string().starts_with("events.out.tfevents.")) return entry.path();
    return {};
  }
};

TEST_F(Tensorboard, ReadsScalarsWithStepValueAndTime) {
  COHORT_NEEDS_PYTHON();
  {
    TensorboardEvents events(folder_);
    const TagValue first[] = {{"train/loss", 0.1}, {"train/lr", 1e-4}};
    const TagValue second[] = {{"train/loss", -2.5}};
    events.scalars(1, 1763715391.125, first);
    events.scalars(3000000000, 1763715392.25, second);
  }
  const auto loss = lines_with("scalar train/loss ");
  ASSERT_EQ(loss.size(), 2u);
  EXPECT_EQ(loss[0], format("scalar train/loss 1 {:.17g} 1763715391.125", 0.1f));
  EXPECT_EQ(loss[1], "scalar train/loss 3000000000 -2.5 1763715392.250");
  EXPECT_EQ(lines_with("scalar train/lr ").size(), 1u);
}

TEST_F(Tensorboard, ReadsValuesThatAreNotFinite) {
  COHORT_NEEDS_PYTHON();
  {
    TensorboardEvents events(folder_);
    const TagValue values[] = {{"a", std::numeric_limits<double>::quiet_NaN()},
                               {"b", std::numeric_limits<double>::infinity()}};
    events.scalars(1, 5, values);
  }
  EXPECT_EQ(lines_with("scalar a "), std::vector<std::string>{"scalar a 1 nan 5.000"});
  EXPECT_EQ(lines_with("scalar b "), std::vector<std::string>{"scalar b 1 inf 5.000"});
}

TEST_F(Tensorboard, ReadsTextAndImages) {
  COHORT_NEEDS_PYTHON();
  {
    MetricsWriter writer(folder_);
    writer.text("configuration", 0, "| a | b |\n|---|---|\n| 训练 | 2 |");
    write_file_atomically(folder_ / "chart.png", kOnePixel);
    writer.image("charts/loss", 7, folder_ / "chart.png");
  }
  EXPECT_EQ(lines_with("text "),
            std::vector<std::string>{"text configuration/text_summary 0 '| a | b |\\n|---|---|\\n| "
                                     "训练 | 2 |'"});
  EXPECT_EQ(lines_with("image "), std::vector<std::string>{format("image charts/loss 7 1x1 {}", kOnePixel.size())});
}

TEST_F(Tensorboard, AResumedRunShowsNoStepTwice) {
  COHORT_NEEDS_PYTHON();
  const auto run = [&](std::optional<std::int64_t> resumed, std::int64_t first, std::int64_t last, double offset) {
    MetricsWriter writer(folder_, {.resumed_step = resumed});
    for (std::int64_t step = first; step <= last; ++step)
      writer.write(step, {{"loss", offset + static_cast<double>(step)}});
  };
  run(std::nullopt, 1, 17, 0);  // both begin within one second
  run(10, 11, 20, 1000);
  const auto lines = lines_with("scalar loss ");
  ASSERT_EQ(lines.size(), 20u);
  for (int step = 1; step <= 20; ++step)
    EXPECT_TRUE(lines[static_cast<std::size_t>(step - 1)].starts_with(
        format("scalar loss {} {:.1f} ", step, step + (step <= 10 ? 0.0 : 1000.0))))
        << lines[static_cast<std::size_t>(step - 1)];
}

TEST_F(Tensorboard, MetricsLinesAreReadByPandasAndJson) {
  COHORT_NEEDS_PYTHON();
  {
    MetricsWriter writer(folder_);
    writer.write(1, {{"loss", 0.1}, {"norm", std::numeric_limits<double>::quiet_NaN()}});
    writer.write(2, {{"loss", 1.0 / 3}, {"norm", 2.0}});
  }
  const test::CommandOutcome outcome =
      test::run_python("report/check_metrics.py", {(folder_ / "metrics.jsonl").string()});
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_EQ(outcome.output, "1 step 1\n1 loss 0.1\n1 norm None\n2 step 2\n2 loss 0.3333333333333333\n2 norm 2.0\n");
}

TEST_F(Tensorboard, AFlippedBitIsSeenByTheReader) {
  COHORT_NEEDS_PYTHON();
  {
    TensorboardEvents events(folder_);
    const TagValue values[] = {{"loss", 1.0}};
    events.scalars(1, 5, values);
  }
  ASSERT_EQ(lines_with("scalar loss").size(), 1u);
  std::string bytes = read_file(events_file());
  bytes[bytes.size() - 6] ^= 1;  // within the last record's data
  std::ofstream(events_file(), std::ios::binary) << bytes;
  EXPECT_TRUE(lines_with("scalar loss").empty());
}

TEST_F(Tensorboard, AnImageThatIsNoPngIsRefused) {
  TensorboardEvents events(folder_);
  EXPECT_THROW(events.image("x", 1, 0, "GIF89a, which is not a PNG file"), Error);
  EXPECT_THROW(events.image("x", 1, 0, ""), Error);
}

TEST_F(Tensorboard, ARunIsFoundOnceBelowItsOutputsThoughLinksAreFollowed) {
  const RunFolder run = RunFolder::create(folder_, "dog");
  MetricsWriter(run.path()).write(1, {{"train/loss", 1}});
  MetricsWriter(folder_ / "dog" / "latest", {.resumed_step = 1}).write(2, {{"train/loss", 2}});
  int found = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder_, fs::directory_options::follow_directory_symlink))
    found += entry.path().filename().string().starts_with("events.out.tfevents.");
  EXPECT_EQ(found, 2) << "of the run and of what was resumed, each once";
  EXPECT_TRUE(fs::exists(folder_ / "dog" / "latest" / "metrics.jsonl"));
  EXPECT_EQ(fs::relative(events_folder(run.path()), folder_), fs::path("dog/tensorboard") / run.path().filename());
  // Without such a link they are in the run's folder, and stay where earlier ones are.
  fs::create_directories(folder_ / "alone");
  EXPECT_EQ(events_folder(folder_ / "alone"), folder_ / "alone");
  std::ofstream(run.path() / "events.out.tfevents.1.host.2") << "of an earlier version";
  EXPECT_EQ(events_folder(run.path()), run.path());
}

}  // namespace
}  // namespace cohort::report
