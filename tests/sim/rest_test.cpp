// What is put down comes to rest: pairs of shapes drawn by the date (sim_rest for all of them).
#include <cstdlib>
#include <ctime>
#include <string>

#include <gtest/gtest.h>

#include "core/format.h"
#include "core/philox.h"
#include "rest_suite.h"

namespace cohort::sim {
namespace {

/// The day, or what COHORT_REST_SEED says, to repeat another day's draw.
std::uint64_t seed() {
  if (const char* text = std::getenv("COHORT_REST_SEED")) return std::strtoull(text, nullptr, 10);
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return static_cast<std::uint64_t>((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday);
}

TEST(Rest, WhatIsPutDownIsAsStillAfterTwoSecondsAsInMujoco) {
#if defined(__SANITIZE_ADDRESS__) || !defined(NDEBUG)
  constexpr std::size_t kPairs = 2;
#else
  constexpr std::size_t kPairs = 24;
#endif
  const std::uint64_t today = seed();
  SCOPED_TRACE(format("again with COHORT_REST_SEED={}", today));
  std::vector<test::RestCase> left = test::rest_cases();
  const RandomStream random(today, RandomPurpose::kTest, 0, 0);
  std::size_t shapes = 0;
  for (std::size_t k = 0; k < kPairs && !left.empty(); ++k) {
    const auto at = static_cast<std::size_t>(static_cast<double>(random.uniform(k)) * static_cast<double>(left.size()));
    for (const test::RestResult& r : test::run_rest_case(left[at])) {
      EXPECT_EQ(r.wrong, "") << test::rest_columns() << '\n' << test::rest_line(r);
      ++shapes;
    }
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(at));
  }
  EXPECT_GE(shapes, 2 * kPairs);
  RecordProperty("seed", std::to_string(today));
}

}  // namespace
}  // namespace cohort::sim
