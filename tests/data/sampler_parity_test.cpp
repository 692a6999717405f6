#include <array>
#include <cstdio>
#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "core/json.h"
#include "data/sampler.h"

namespace cohort::data {
namespace {

TEST(DistributedSampler, IndexListsEqualPyTorchs) {
  const std::string command =
      std::string(std::getenv("COHORT_PYTHON")) + " " COHORT_SOURCE_DIR "/tests/data/sampler_reference.py";
  FILE* pipe = popen(command.c_str(), "r");
  ASSERT_NE(pipe, nullptr);
  std::string text;
  std::array<char, 1 << 16> buffer;
  for (std::size_t n; (n = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) text.append(buffer.data(), n);
  ASSERT_EQ(pclose(pipe), 0) << "the reference script failed: is torch in " << std::getenv("COHORT_PYTHON") << "?";
  int cases = 0;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos; begin = end + 1) {
    const auto line = parse_json(std::string_view(text).substr(begin, end - begin));
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
      EXPECT_EQ(sampler.share(line["epoch"]).indices, expected[1].get<std::vector<std::int64_t>>()) << line.dump();
      ++cases;
    }
  }
  EXPECT_GT(cases, 500);
}

}  // namespace
}  // namespace cohort::data
