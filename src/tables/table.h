/// A table in memory: named columns of equal length, each one contiguous (column-major).
#pragma once
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "core/allocator.h"
#include "core/array_view.h"

namespace cohort::tables {

/// A contiguous array whose elements are not initialised: what a reader fills in parallel. Starts on a cache line, and
/// on a huge page where it is large.
template <class T>
class AlignedArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedArray() = default;
  explicit AlignedArray(std::size_t size);
  AlignedArray(AlignedArray&& other) noexcept
      : memory_(std::move(other.memory_)), size_(std::exchange(other.size_, 0)) {}
  AlignedArray& operator=(AlignedArray&& other) noexcept {
    memory_ = std::move(other.memory_);
    size_ = std::exchange(other.size_, 0);
    return *this;
  }

  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  std::size_t size() const { return size_; }
  std::span<const T> span() const { return {memory_.get(), size_}; }
  T& operator[](std::size_t i) { return memory_[i]; }
  const T& operator[](std::size_t i) const { return memory_[i]; }
  /// Forgets the elements from `size` on; their memory stays.
  void shrink(std::size_t size) { size_ = size; }

 private:
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T[], Free> memory_;
  std::size_t size_ = 0;
};
extern template class AlignedArray<char>;
extern template class AlignedArray<float>;
extern template class AlignedArray<double>;

/// Texts one after the other.
struct TextArray {
  std::string bytes;
  std::vector<std::uint64_t> ends;  ///< text i is bytes[ends[i-1], ends[i])

  void add(std::string_view text) {
    bytes.append(text);
    ends.push_back(bytes.size());
  }
  std::string_view operator[](std::size_t i) const {
    const std::uint64_t begin = i == 0 ? 0 : ends[i - 1];
    return std::string_view(bytes).substr(begin, ends[i] - begin);
  }
  std::size_t size() const { return ends.size(); }
};

enum class ColumnKind : std::uint8_t {
  kNumber,  ///< float64 or float32; a missing value that was kept is NaN
  kDate,    ///< float64, seconds since 1970-01-01 UTC; date_text.h has the calendar
  kText,
};

class Column {
 public:
  Column(std::string name, AlignedArray<double> values, ColumnKind kind = ColumnKind::kNumber);
  Column(std::string name, AlignedArray<float> values);
  Column(std::string name, TextArray values);
  /// Copies.
  Column(std::string name, std::span<const double> values, ColumnKind kind = ColumnKind::kNumber);

  const std::string& name() const { return name_; }
  ColumnKind kind() const { return kind_; }
  std::int64_t size() const;
  /// Whether a number column holds float32.
  bool is_float32() const { return std::holds_alternative<AlignedArray<float>>(values_); }
  /// The element of a number or date column. Throws Error on a text column.
  double at(std::int64_t row) const;
  /// The whole column; throws Error naming the column where it holds something else.
  std::span<const double> float64() const;
  std::span<const float> float32() const;
  const TextArray& texts() const;

 private:
  std::string name_;
  ColumnKind kind_;
  std::variant<AlignedArray<double>, AlignedArray<float>, TextArray> values_;
};

class Table {
 public:
  /// `name` says where the rows came from (a path); it stands in messages.
  explicit Table(std::string name = "table") : name_(std::move(name)) {}

  const std::string& name() const { return name_; }
  std::int64_t rows() const { return columns_.empty() ? 0 : columns_.front().size(); }
  std::span<const Column> columns() const { return columns_; }
  /// Throws Error where the length or the name does not fit.
  void add(Column column);

  /// nullptr where there is none of this name.
  const Column* find(std::string_view name) const;
  /// Throws Error naming the nearest column, or all of them.
  const Column& column(std::string_view name) const;
  /// Also throws Error when the column holds no numbers.
  const Column& number_column(std::string_view name) const;
  /// The names, in order; of one kind only where asked for.
  std::vector<std::string> names() const;
  std::vector<std::string> names(ColumnKind kind) const;

 private:
  std::string name_;
  std::vector<Column> columns_;
};

}  // namespace cohort::tables
