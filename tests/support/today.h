// What a test draws by the date: a little every day, and all of it in some days.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <ctime>

namespace cohort::test {

/// The day in UTC, e.g. 20261129, or what COHORT_TEST_DAY says, to repeat another day's draw.
inline std::uint64_t today() {
  if (const char* text = std::getenv("COHORT_TEST_DAY")) return std::strtoull(text, nullptr, 10);
  const std::time_t now = std::time(nullptr);
  std::tm day{};
  gmtime_r(&now, &day);
  return static_cast<std::uint64_t>((day.tm_year + 1900) * 10000 + (day.tm_mon + 1) * 100 + day.tm_mday);
}

}  // namespace cohort::test
