/// Rows of numbers that code of others writes, a row for each environment. Behind every row lie a few numbers that
/// belong to nobody: a write beyond a row's end changes them, is found, and harms no other environment.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

namespace cohort::tasks {

template <class T>
class GuardedRows {
 public:
  void resize(std::size_t rows, std::size_t width) {
    width_ = width;
    numbers_.assign(rows * stride(), T(0));
    for (std::size_t i = 0; i < rows; ++i) mend(i);
  }
  std::size_t width() const { return width_; }
  /// From the beginning of a row to that of the next.
  std::size_t stride() const { return width_ + kGuard; }
  std::span<T> row(std::size_t i) { return {numbers_.data() + i * stride(), width_}; }
  /// Of no numbers, in front of those that belong to nobody.
  std::span<T> no_row(std::size_t i) { return {numbers_.data() + i * stride() + width_, 0}; }
  /// False once after a write beyond the row's end.
  bool intact(std::size_t i) {
    const T* behind = numbers_.data() + i * stride() + width_;
    if (std::memcmp(behind, kPattern.data(), sizeof(kPattern)) == 0) return true;
    mend(i);
    return false;
  }

 private:
  static constexpr std::size_t kGuard = 32 / sizeof(T);
  using Pattern = std::array<T, kGuard>;
  /// A number that no task computes.
  static constexpr Pattern kPattern = [] {
    Pattern filled{};
    filled.fill(std::numeric_limits<T>::denorm_min() * 0x5EED);
    return filled;
  }();

  void mend(std::size_t i) { std::copy_n(kPattern.begin(), kGuard, numbers_.data() + i * stride() + width_); }

  std::size_t width_ = 0;
  std::vector<T> numbers_;
};

}  // namespace cohort::tasks
