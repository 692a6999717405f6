#include "report/metrics_writer.h"

#include <cmath>
#include <fstream>
#include <limits>
#include <thread>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "file_size_limit.h"
#include "report/metrics_history.h"
#include "test_folder.h"

namespace cohort::report {
namespace {
namespace fs = std::filesystem;

constexpr double kNotANumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

class MetricsWriterTest : public test::TestFolder {
 protected:
  fs::path file() const { return folder_ / "metrics.jsonl"; }
  std::vector<nlohmann::json> lines() const {
    std::vector<nlohmann::json> found;
    std::ifstream in(file());
    for (std::string line; std::getline(in, line);) found.push_back(parse_json<nlohmann::json>(line));
    return found;
  }
};

TEST_F(MetricsWriterTest, EveryLineIsAnObjectWithExactNumbers) {
  {
    MetricsWriter writer(folder_, {.tensorboard = false});
    writer.write(1, {{"train/loss", 0.1}, {"train/lr", 1e-300}});
    writer.write(std::int64_t{1} << 40, {{"train/loss", 1.0 / 3.0}});
  }
  const auto found = lines();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0]["step"], 1);
  EXPECT_EQ(found[0]["train/loss"].get<double>(), 0.1);
  EXPECT_EQ(found[0]["train/lr"].get<double>(), 1e-300);
  EXPECT_EQ(found[1]["step"].get<std::int64_t>(), std::int64_t{1} << 40);
  EXPECT_EQ(found[1]["train/loss"].get<double>(), 1.0 / 3.0);
  EXPECT_GT(found[0]["time"].get<double>(), 1.7e9);
}

TEST_F(MetricsWriterTest, ALineIsInTheFileAsSoonAsItIsWritten) {
  MetricsWriter writer(folder_, {.tensorboard = false});
  writer.write(1, {{"a", 1}});
  EXPECT_EQ(lines().size(), 1u);
  writer.write(2, {{"a", 2}});
  EXPECT_EQ(lines().size(), 2u);
}

TEST_F(MetricsWriterTest, WhatIsNotFiniteIsNullAndSpelledOutBeside) {
  MetricsWriter writer(folder_, {.tensorboard = false});
  writer.write(1, {{"a", kNotANumber}, {"b", kInfinity}, {"c", -kInfinity}, {"d", 1}});
  const nlohmann::json line = lines().at(0);
  EXPECT_TRUE(line["a"].is_null());
  EXPECT_EQ(line["not_finite"], (nlohmann::json{{"a", "nan"}, {"b", "inf"}, {"c", "-inf"}}));
  EXPECT_EQ(line["d"], 1.0);
  const MetricsHistory history = read_metrics(file());
  EXPECT_TRUE(std::isnan(history["a"].values.at(0)));
  EXPECT_EQ(history["d"].values.at(0), 1.0);
  EXPECT_TRUE(history["no such metric"].values.empty());
}

TEST_F(MetricsWriterTest, AResumedHistoryHasNoStepTwice) {
  const auto run = [&](std::optional<std::int64_t> resumed, std::int64_t first, std::int64_t last, double offset) {
    MetricsWriter writer(folder_, {.tensorboard = false, .resumed_step = resumed});
    for (std::int64_t step = first; step <= last; ++step)
      writer.write(step, {{"loss", offset + static_cast<double>(step)}});
  };
  run(std::nullopt, 1, 17, 0);
  run(10, 11, 20, 1000);
  const MetricSeries series = read_metrics(file())["loss"];
  ASSERT_EQ(series.steps.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(series.steps[i], static_cast<double>(i + 1));
    EXPECT_EQ(series.values[i], static_cast<double>(i + 1) + (i < 10 ? 0 : 1000));
  }
}

TEST_F(MetricsWriterTest, AResumeRepairsALineThatWasCutOff) {
  std::ofstream(file()) << "{\"step\":1,\"loss\":1.0}\n\nnonsense\n[1]\n{\"step\":2,\"loss\":2.0}\n{\"step\":3,\"lo";
  EXPECT_EQ(read_metrics(file()).damaged_lines, 3);
  {
    MetricsWriter writer(folder_, {.tensorboard = false, .resumed_step = 5});
    writer.write(6, {{"loss", 6.0}});
  }
  const MetricsHistory history = read_metrics(file());
  EXPECT_EQ(history.damaged_lines, 0);
  EXPECT_EQ(history["loss"].steps, (std::vector<double>{1, 2, 6}));
}

TEST_F(MetricsWriterTest, ANewRunDoesNotMixWithAnOldOne) {
  { MetricsWriter(folder_, {.tensorboard = false}).write(1, {{"a", 1}}); }
  EXPECT_THROW(MetricsWriter(folder_, {.tensorboard = false}), Error);
}

TEST_F(MetricsWriterTest, AFullDiskIsAnErrorAndTheFileEndsWithAWholeLine) {
  MetricsWriter writer(folder_, {.tensorboard = false});
  writer.write(1, {{"loss", 1.0}});
  const std::string before = read_file(file());
  {
    const test::FileSizeLimit limit(before.size() + 10);  // room for a piece of the next line
    const std::string text = message_of([&] { writer.write(2, {{"loss", 2.0}}); });
    EXPECT_NE(text.find("metrics.jsonl"), std::string::npos) << text;
    EXPECT_EQ(read_file(file()), before);
  }
  writer.write(3, {{"loss", 3.0}});  // there is room again
  EXPECT_EQ(read_metrics(file())["loss"].steps, (std::vector<double>{1, 3}));
}

TEST_F(MetricsWriterTest, NoSpaceAtAllNamesFileAndReason) {
  fs::create_symlink("/dev/full", file());
  MetricsWriter writer(folder_, {.tensorboard = false});
  const std::string text = message_of([&] { writer.write(1, {{"loss", 1.0}}); });
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
}

TEST_F(MetricsWriterTest, AFolderThatCannotBeWrittenIsAnError) {
  std::ofstream(folder_ / "file") << "in the way";
  EXPECT_THROW(MetricsWriter(folder_ / "file" / "run"), Error);
  EXPECT_THROW(MetricsWriter("/proc/cohort"), Error);
}

TEST_F(MetricsWriterTest, OddNamesStayValidJson) {
  MetricsWriter writer(folder_);
  writer.write(1, {{"we\"ird\n\xff", 1.0}, {"训练/损失", 2.0}});
  const nlohmann::json line = lines().at(0);
  EXPECT_EQ(line["we\"ird ?"], 1.0);
  EXPECT_EQ(line["训练/损失"], 2.0);
  EXPECT_THROW(writer.write(2, {{"step", 1.0}}), Error);
}

TEST_F(MetricsWriterTest, LinesFromSeveralThreadsStayWhole) {
  {
    MetricsWriter writer(folder_);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&writer, t] {
        for (int i = 0; i < 100; ++i) writer.write(i, {{"a", static_cast<double>(t)}});
      });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(lines().size(), 400u);
}

}  // namespace
}  // namespace cohort::report
