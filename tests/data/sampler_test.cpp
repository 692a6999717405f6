#include "data/sampler.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "core/error.h"

namespace cohort::data {
namespace {

TEST(DistributedSampler, RanksCoverTheEpochOnceAndPaddingIsDeclared) {
  for (const std::int64_t n : {1, 7, 100}) {
    for (const std::int64_t world : {1, 2, 3, 8}) {
      std::multiset<std::int64_t> seen;
      std::int64_t padded = 0;
      for (std::int64_t rank = 0; rank < world; ++rank) {
        const EpochShare share = DistributedSampler(n, {.world_size = world, .rank = rank, .seed = 4}).share(2);
        seen.insert(share.indices.begin(), share.indices.end());
        padded += share.padded;
      }
      EXPECT_EQ(static_cast<std::int64_t>(seen.size()) - padded, n);
      for (std::int64_t i = 0; i < n; ++i) EXPECT_GE(seen.count(i), 1u) << "sample " << i << " of " << n;
    }
  }
}

TEST(DistributedSampler, ResumingOnAnotherWorldKeepsTheGlobalOrder) {
  constexpr std::int64_t kSize = 103, kStart = 48;
  const std::vector<std::int64_t> order = DistributedSampler(kSize, {.seed = 9}).global_order(1);
  for (const std::int64_t world : {1, 2, 3, 4}) {
    std::vector<std::int64_t> rebuilt(kSize - kStart, -1);
    for (std::int64_t rank = 0; rank < world; ++rank) {
      const EpochShare share =
          DistributedSampler(kSize, {.world_size = world, .rank = rank, .seed = 9}).share(1, kStart);
      for (std::size_t i = 0; i < share.indices.size(); ++i) {
        const std::size_t place = static_cast<std::size_t>(rank) + i * static_cast<std::size_t>(world);
        if (place < rebuilt.size()) rebuilt[place] = share.indices[i];
      }
    }
    EXPECT_TRUE(std::equal(rebuilt.begin(), rebuilt.end(), order.begin() + kStart)) << "world " << world;
  }
}

TEST(DistributedSampler, SampleIdsAreUniqueOverEpochsAndEqualForEveryWorld) {
  std::set<std::int64_t> ids;
  for (std::uint64_t epoch = 0; epoch < 3; ++epoch)
    for (std::int64_t rank = 0; rank < 3; ++rank)
      for (const std::int64_t id : DistributedSampler(10, {.world_size = 3, .rank = rank}).share(epoch).sample_ids)
        EXPECT_TRUE(ids.insert(id).second);
  EXPECT_EQ(ids.size(), 36u);
  const EpochShare one = DistributedSampler(10, {}).share(1);
  const EpochShare two = DistributedSampler(10, {.world_size = 2, .rank = 1}).share(1);
  EXPECT_EQ(one.sample_ids[3], two.sample_ids[1]);
  EXPECT_EQ(one.indices[3], two.indices[1]);
}

TEST(DistributedSampler, RefusesAnEmptySetAndAForeignRank) {
  EXPECT_THROW(DistributedSampler(0, {}), Error);
  EXPECT_THROW(DistributedSampler(5, {.world_size = 2, .rank = 2}), Error);
  EXPECT_THROW(DistributedSampler(5, {}).share(0, 6), Error);
}

}  // namespace
}  // namespace cohort::data
