#include "run/rank_shares.h"

#include <cmath>

#include <gtest/gtest.h>

namespace cohort::run {
namespace {

TEST(RankShares, PartsOfAStepAndRanksBesideEachOther) {
  EXPECT_TRUE(rank_shares({}, "a step").empty());
  EXPECT_TRUE(rank_shares({rank::Totals()}, "a step").empty()) << "no step was made";
  const rank::Totals fast{.steps = 100,
                          .samples = 1600,
                          .seconds = 2,
                          .data_s = 0.1,
                          .exchange_s = 0.9,
                          .checkpoint_s = 0.2,
                          .host_bytes = 1 << 20};
  rank::Totals slow = fast;
  slow.exchange_s = 0.1;
  const auto rows = rank_shares({fast, slow}, "a step");
  ASSERT_EQ(rows.size(), 4u);
  EXPECT_EQ(rows[0].first, "a step");
  EXPECT_EQ(rows[0].second, "20.0 ms: compute 60 %, data 5 %, communication 25 %, checkpoints 10 %");
  EXPECT_EQ(rows[1].second, "1600 samples; a step computes 8.0 ms, waits 1.0 ms for data, exchanges 9.0 ms; 1.0 MiB");
  EXPECT_EQ(rows[2].second, "1600 samples; a step computes 16.0 ms, waits 1.0 ms for data, exchanges 1.0 ms; 1.0 MiB");
  EXPECT_EQ(rows[3].second, "rank 1 computes longest, 100 % longer than rank 0");
  rank::Totals simulated = fast;
  simulated.data_s = std::nan("");
  const auto without = rank_shares({simulated, simulated}, "an iteration");
  EXPECT_EQ(without[0].second, "20.0 ms: compute 45 %, communication 45 %, checkpoints 10 %");
  EXPECT_EQ(without[1].second, "1600 samples; an iteration computes 9.0 ms, exchanges 9.0 ms; 1.0 MiB");
  const std::vector<double> numbers = to_numbers(fast);
  ASSERT_EQ(numbers.size(), static_cast<std::size_t>(kTotalsNumbers));
  EXPECT_EQ(to_numbers(totals_from(numbers.data())), numbers);
}

}  // namespace
}  // namespace cohort::run
