#include "core/philox.h"

#include <set>

#include <gtest/gtest.h>

namespace cohort {
namespace {

// Known answers of the reference implementation: Random123, kat_vectors, philox4x32 with 10 rounds.
TEST(Philox, MatchesRandom123KnownAnswers) {
  const Philox4 zeros = philox4x32_10(0, 0, 0, 0, 0, 0);
  EXPECT_EQ(zeros.v[0], 0x6627e8d5u);
  EXPECT_EQ(zeros.v[1], 0xe169c58du);
  EXPECT_EQ(zeros.v[2], 0xbc57ac4cu);
  EXPECT_EQ(zeros.v[3], 0x9b00dbd8u);
  const Philox4 pi = philox4x32_10(0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0);
  EXPECT_EQ(pi.v[0], 0xd16cfe09u);
  EXPECT_EQ(pi.v[1], 0x94fdccebu);
  EXPECT_EQ(pi.v[2], 0x5001e420u);
  EXPECT_EQ(pi.v[3], 0x24126ea1u);
}

TEST(Philox, EveryPartOfTheKeyChangesTheStream) {
  std::set<std::uint32_t> seen;
  int drawn = 0;
  for (std::uint64_t seed : {0ull, 1ull, 1ull << 40})
    for (auto purpose : {RandomPurpose::kDropout, RandomPurpose::kDataOrder})
      for (std::uint64_t id : {0ull, 1ull, 1ull << 33})
        for (std::uint64_t step : {0ull, 7ull, 1ull << 35}) {
          seen.insert(RandomStream(seed, purpose, id, step).bits(5));
          ++drawn;
        }
  EXPECT_EQ(static_cast<int>(seen.size()), drawn);
}

TEST(Philox, UniformAndNormalHaveTheirMoments) {
  const RandomStream stream(3, RandomPurpose::kTest, 0, 0);
  const int n = 200000;
  double sum = 0, square = 0, normal = 0, normal_square = 0;
  for (int i = 0; i < n; ++i) {
    const double u = stream.uniform(static_cast<std::uint64_t>(i));
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    sum += u;
    square += u * u;
    const double z = stream.normal(static_cast<std::uint64_t>(i));
    normal += z;
    normal_square += z * z;
  }
  // Five standard errors of each mean.
  EXPECT_NEAR(sum / n, 0.5, 5 * 0.2887 / std::sqrt(n));
  EXPECT_NEAR(square / n, 1.0 / 3, 5 * 0.2981 / std::sqrt(n));
  EXPECT_NEAR(normal / n, 0.0, 5 / std::sqrt(n));
  EXPECT_NEAR(normal_square / n, 1.0, 5 * 1.4142 / std::sqrt(n));
}

}  // namespace
}  // namespace cohort
