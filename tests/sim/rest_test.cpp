// What is put down comes to rest: pairs of shapes drawn by the date (sim_rest for all of them).
#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <set>
#include <string>
#include <utility>

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

/// Pairs of which some still move or sink more than in MuJoCo (bench/results/2026-11-28-rest): fields of cells of the
/// shape's size on a slope, where a triangle's one contact jumps between its corners; fine fields, where eight contacts
/// yield more than MuJoCo's fifty; flat cylinders on a slope, whose points follow the lowest one; and two faces of more
/// than 256 corners together.
bool not_yet(const test::RestCase& c) {
  static const std::set<std::pair<std::string, std::string>> list{{"box", "field1"},
                                                                  {"capsule", "field0.1"},
                                                                  {"cylinder", "field1"},
                                                                  {"cylinder", "plane"},
                                                                  {"cylinder_lying", "field0.1"},
                                                                  {"disc", "field0.1"},
                                                                  {"disc", "field0.3"},
                                                                  {"disc", "field1"},
                                                                  {"disc", "field3"},
                                                                  {"disc", "plane"},
                                                                  {"mesh12", "mesh"},
                                                                  {"mesh24", "mesh"},
                                                                  {"mesh4", "field0.1"},
                                                                  {"mesh4", "field0.3"},
                                                                  {"mesh4", "field1"},
                                                                  {"mesh4", "field3"},
                                                                  {"mesh400", "mesh_round"},
                                                                  {"mesh5", "field1"},
                                                                  {"mesh6", "field0.1"},
                                                                  {"mesh6", "field0.3"},
                                                                  {"mesh6", "field1"},
                                                                  {"mesh8", "field0.3"},
                                                                  {"plate", "field3"}};
  return list.count({c.upper, c.lower}) > 0;
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
  left.erase(std::remove_if(left.begin(), left.end(), not_yet), left.end());
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
