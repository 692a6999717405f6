// The tables of the LeRobot fixture against what pyarrow reads from them, and tables that pyarrow wrote otherwise.
#include <cstdlib>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/json_text.h"
#include "data/convert.h"
#include "data/expect_error.h"
#include "data/lerobot_fixture.h"
#include "data/open_episodes.h"
#include "support/python.h"

namespace cohort::data {
namespace {

std::string run_tables(const std::string& arguments) {
  const auto outcome =
      test::run_command("'" + test::python() + "' '" COHORT_SOURCE_DIR "/tests/data/lerobot_tables.py' " + arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  return outcome.output;
}

TEST(LeRobotTables, EveryColumnIsWhatPyarrowReads) {
  SKIP_WITHOUT_LEROBOT();
  for (const char* file : {"file-000.parquet", "file-001.parquet"}) {
    const auto path = fixture("lerobot/v3/data/chunk-000") / file;
    const auto expected = parse_json<nlohmann::json>(run_tables("print '" + path.string() + "'"));
    const auto table = open_parquet(path);
    int compared = 0;
    for (std::size_t c = 0; c < table->columns().size(); ++c) {
      const ParquetColumn& column = table->columns()[c];
      if (!expected.contains(column.name)) continue;
      const auto& values = expected[column.name];
      const auto count = static_cast<std::int64_t>(values.size());
      const std::int64_t elements = count / table->rows();
      // Whole, and from the middle of the table.
      for (const std::int64_t begin : {std::int64_t{0}, table->rows() / 2 + 1}) {
        const std::int64_t rows = table->rows() - begin;
        const auto compare = [&](const auto& read) {
          for (std::size_t v = 0; v < read.size(); ++v) {
            const auto& wanted = values[static_cast<std::size_t>(begin * elements) + v];
            using Value = std::decay_t<decltype(read[v])>;
            if (wanted.is_null())
              EXPECT_NE(read[v], read[v]) << column.name;  // NaN
            else if constexpr (std::is_same_v<Value, std::int64_t>)
              EXPECT_EQ(read[v],
                        wanted.is_boolean() ? Value{wanted.template get<bool>()} : wanted.template get<Value>())
                  << column.name << " " << v;
            else
              EXPECT_EQ(read[v], wanted.template get<Value>()) << column.name << " " << v;
          }
          ++compared;
        };
        const auto numbers = [&](auto sample) {
          std::vector<decltype(sample)> read(static_cast<std::size_t>(rows * elements));
          table->read(c, begin, rows, elements, std::span(read));
          compare(read);
        };
        if (column.type == ParquetType::kBytes) {
          std::vector<std::string> read(static_cast<std::size_t>(rows));
          table->read(c, begin, rows, std::span(read));
          compare(read);
        } else if (column.type == ParquetType::kFloat32) {
          numbers(float{});
        } else if (column.type == ParquetType::kFloat64) {
          numbers(double{});
        } else {
          numbers(std::int64_t{});
        }
      }
    }
    EXPECT_EQ(compared, 2 * 15);
  }
}

/// Episode 3 of a copy whose table was written anew.
class RewrittenTable : public ::testing::TestWithParam<const char*> {};

TEST_P(RewrittenTable, ReadsTheSameInEveryEncodingAndCompression) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  run_tables(std::string(GetParam()) + " '" + (set / "data/chunk-000/file-001.parquet").string() + "'");
  const auto source = open_episodes(set, {.split = "all"});
  for (const char* name : {"action", "observation.grid", "observation.force", "observation.noisy", "next.done"}) {
    const std::size_t field = source->field_index(name);
    const std::int64_t elements = source->fields()[field].elements();
    std::vector<double> values(static_cast<std::size_t>(5 * elements));
    source->open(3)->read(field, 6, 5, std::span(values));
    for (std::int64_t v = 0; v < 5 * elements; ++v) {
      double expected = lerobot_value(name, 3, 6 + v / elements, v % elements);
      if (source->fields()[field].type == ElementType::kFloat32) expected = static_cast<float>(expected);
      const double found = values[static_cast<std::size_t>(v)];
      EXPECT_TRUE(found == expected || (std::isnan(found) && std::isnan(expected))) << name << " " << v;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Tables, RewrittenTable,
                         ::testing::Values("gzip", "brotli", "lz4", "none", "page-v2", "split", "delta", "groups",
                                           "float64"));

TEST(LeRobotTables, TimestampsThatMissTheFramesAreMatchedByNumberWhereThereIsAFrameForEachStep) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  const auto table = (set / "data/chunk-000/file-001.parquet").string();
  const auto picture = [&](std::int64_t step) {
    const auto source = open_episodes(set, {.split = "all"});
    std::string scratch;
    return shown_number(source->open(4)->image(source->field_index("observation.images.front"), step, scratch));
  };
  run_tables("late=0.05 '" + table + "'");
  for (const std::int64_t step : {0, 7}) EXPECT_EQ(picture(step), lerobot_begin(4) + step);
  // A whole frame late: not the pictures of the next steps.
  run_tables("late=0.05 '" + table + "'");
  for (const std::int64_t step : {0, 7}) EXPECT_EQ(picture(step), lerobot_begin(4) + step);
}

TEST(LeRobotTables, TimesThatMissTheFramesByLessThanToleranceAreTaken) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  const auto set = copy_of_lerobot(folder, "v3");
  run_tables("late=0.02 '" + (set / "data/chunk-000/file-001.parquet").string() + "'");
  const auto picture = [&](double tolerance_s, std::int64_t step) {
    const auto source = open_episodes(set, {.split = "all", .tolerance_s = tolerance_s});
    std::string scratch;
    return shown_number(source->open(4)->image(source->field_index("observation.images.front"), step, scratch));
  };
  EXPECT_EQ(picture(1e-4, 3), lerobot_begin(4) + 3) << "by its number, as there is a frame for each step";
  for (const std::int64_t step : {3, 7, 0}) EXPECT_EQ(picture(0.03, step), lerobot_begin(4) + step);
  EXPECT_ERROR(picture(0.06, 0), "tolerance_s=0.06 is not above 0 and at most 0.05");
}

TEST(LeRobotTables, RowsWithoutAValueOrOfAnotherLengthAreRefused) {
  SKIP_WITHOUT_LEROBOT();
  for (const auto& [change, said] : {std::pair{"null", "the column observation.noisy has no value in a row of "},
                                     std::pair{"ragged", "the column observation.state holds 37 values in 19 rows"},
                                     std::pair{"shifted", "has another number of values than 2 in a row about "}}) {
    OwnFolder folder;
    const auto set = copy_of_lerobot(folder, "v3");
    run_tables(std::string(change) + " '" + (set / "data/chunk-000/file-001.parquet").string() + "'");
    const auto source = open_episodes(set, {.split = "all"});
    const auto read = [&](const char* name, std::int64_t elements) {
      std::vector<float> values(static_cast<std::size_t>(11 * elements));
      source->open(3)->read(source->field_index(name), 0, 11, std::span(values));
    };
    EXPECT_ERROR((read("observation.noisy", 1), read("observation.state", 2)), said);
    EXPECT_EQ(open_episodes(set, {.split = "all", .on_corrupt = "skip", .index_cache = "never"})->skipped().empty(),
              false);
  }
}

/// A fixture as a LeRobot set of this name in the folder.
std::string lerobot_set(const OwnFolder& folder, const char* from, const char* images, const char* name) {
  ConvertSettings settings{.to = "lerobot", .episodes = {}};
  settings.lerobot.images = images;
  settings.lerobot.fps = 20;
  const auto source = open_episodes(fixture(from), {.split = "whole"});
  return convert_episodes(*source, folder.path() / name, settings).path.string();
}

TEST(LeRobotTables, WhatIsWrittenIsTheSourceAsPyarrowAndPandasReadIt) {
  SKIP_WITHOUT_LEROBOT();
  OwnFolder folder;
  std::vector<std::string> arguments;
  for (const char* file : {"libero.hdf5", "robomimic.hdf5"})
    for (const char* images : {"image", "video"})
      for (const std::string& word : {lerobot_set(folder, file, images, format("{}-{}", file, images).c_str()),
                                      fixture(file).string(), std::string("20")})
        arguments.push_back(word);
  const auto outcome = test::run_python("data/read_lerobot_tables.py", arguments);
  EXPECT_EQ(outcome.code, 0) << outcome.output;
  EXPECT_NE(outcome.output.find("2 episodes, 12 steps, 18 columns compared"), std::string::npos) << outcome.output;
}

TEST(LeRobotTables, LeRobotItselfReadsWhatIsWritten) {
  SKIP_WITHOUT_LEROBOT();
  const char* python = std::getenv("COHORT_LEROBOT_PYTHON");
  if (!python) GTEST_SKIP() << "COHORT_LEROBOT_PYTHON names no Python; tests/data/lerobot_venv FOLDER makes one";
  OwnFolder folder;
  const std::string pictures = lerobot_set(folder, "lerobot/v3", "image", "pictures"),
                    videos = lerobot_set(folder, "lerobot/v3", "video", "videos"),
                    libero = lerobot_set(folder, "libero.hdf5", "image", "libero");
  for (const std::string& sets : {pictures, libero, videos + "' '" + pictures}) {
    const auto outcome =
        test::run_command(format("HF_HUB_OFFLINE=1 HF_HOME='{}' '{}' '{}/tests/data/read_lerobot.py' '{}'",
                                 folder.path().string(), python, COHORT_SOURCE_DIR, sets));
    EXPECT_EQ(outcome.code, 0) << outcome.output;
    EXPECT_NE(outcome.output.find("features; videos differ by"), std::string::npos) << outcome.output;
  }
}

}  // namespace
}  // namespace cohort::data
