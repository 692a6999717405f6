/// Losses and final states that workers and the Python reference write, and their comparison.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"

namespace cohort::testing {

template <class T>
std::vector<T> read_numbers(const std::string& path) {
  const std::string bytes = read_file(path);
  std::vector<T> values(bytes.size() / sizeof(T));
  std::copy(bytes.begin(), bytes.end(), reinterpret_cast<char*>(values.data()));
  return values;
}

/// Losses (double) are compared one by one, relative to their value; states (float) relative to the largest weight.
template <class T>
void expect_close(const std::string& path_a, const std::string& path_b, double tolerance) {
  const auto a = read_numbers<T>(path_a);
  const auto b = read_numbers<T>(path_b);
  ASSERT_EQ(a.size(), b.size());
  ASSERT_FALSE(a.empty());
  double largest = 0;
  for (const T v : b) largest = std::max(largest, std::abs(static_cast<double>(v)));
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double scale = sizeof(T) == sizeof(double) ? std::abs(static_cast<double>(b[i])) : largest;
    ASSERT_LE(std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])), tolerance * scale)
        << path_a << " and " << path_b << " differ at " << i << ": " << a[i] << " and " << b[i];
  }
}

/// Both files of a scenario: FOLDER/NAME.RANK.losses and .state.
inline void expect_same_training(const std::string& a, const std::string& b, double tolerance) {
  expect_close<double>(a + ".losses", b + ".losses", tolerance);
  expect_close<float>(a + ".state", b + ".state", tolerance);
}

}  // namespace cohort::testing
