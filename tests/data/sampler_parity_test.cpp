#include <string>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "data/sampler.h"
#include "support/python.h"

namespace cohort::data {
namespace {

TEST(DistributedSampler, IndexListsEqualPyTorchs) {
  const test::CommandOutcome reference = test::run_command(
      "('" + test::python() + "' '" COHORT_SOURCE_DIR "/tests/data/sampler_reference.py' 2>/dev/null)");
  ASSERT_EQ(reference.code, 0) << reference.output;
  const std::string& text = reference.output;
  int cases = 0;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = parse_json<nlohmann::json>(std::string_view(text).substr(begin, end - begin));
    if (line.contains("randperm")) {
      EXPECT_EQ(torch_randperm(50000, 12345), line["randperm"].get<std::vector<std::int64_t>>());
      continue;
    }
    for (std::int64_t rank = 0; rank < line["world_size"]; ++rank) {
      const DistributedSampler sampler(line["n"], {.world_size = line["world_size"],
                                                   .rank = rank,
                                                   .shuffle = line["shuffle"],
                                                   .drop_last = line["drop_last"],
                                                   .seed = line["seed"]});
      const auto& expected = line["ranks"][static_cast<std::size_t>(rank)];
      EXPECT_EQ(sampler.size(), expected[0].get<std::int64_t>());
      EXPECT_EQ(sampler.share(line["epoch"]).indices, expected[1].get<std::vector<std::int64_t>>()) << json_text(line);
      ++cases;
    }
  }
  EXPECT_GT(cases, 500);
}

}  // namespace
}  // namespace cohort::data
