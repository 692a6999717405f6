#include "tables/table.h"

#ifdef __linux__
#include <sys/mman.h>
#endif

#include <algorithm>
#include <cstring>

#include "core/config.h"
#include "core/error.h"

namespace cohort::tables {

template <class T>
AlignedArray<T>::AlignedArray(std::size_t size) : size_(size) {
  constexpr std::size_t kHugePage = std::size_t{2} << 20;
  const std::size_t bytes = size * sizeof(T);
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : kAllocationAlignment;
  const std::size_t rounded = std::max(alignment, (bytes + alignment - 1) / alignment * alignment);
  memory_.reset(static_cast<T*>(std::aligned_alloc(alignment, rounded)));
  COHORT_THROW_UNLESS(memory_ != nullptr, "out of memory: {} could not be allocated for a table",
                      format_bytes(static_cast<double>(bytes)));
#ifdef __linux__
  // The first touch of a huge page costs far less than that of 512 small ones. Advice only: an error is no loss.
  if (alignment == kHugePage) static_cast<void>(::madvise(memory_.get(), rounded, MADV_HUGEPAGE));
#endif
}
template class AlignedArray<char>;
template class AlignedArray<float>;
template class AlignedArray<double>;

Column::Column(std::string name, AlignedArray<double> values, ColumnKind kind)
    : name_(std::move(name)), kind_(kind), values_(std::move(values)) {}

Column::Column(std::string name, AlignedArray<float> values)
    : name_(std::move(name)), kind_(ColumnKind::kNumber), values_(std::move(values)) {}

Column::Column(std::string name, TextArray values)
    : name_(std::move(name)), kind_(ColumnKind::kText), values_(std::move(values)) {}

Column::Column(std::string name, std::span<const double> values, ColumnKind kind)
    : Column(std::move(name), AlignedArray<double>(values.size()), kind) {
  std::copy(values.begin(), values.end(), std::get<AlignedArray<double>>(values_).data());
}

std::int64_t Column::size() const {
  return std::visit([](const auto& values) { return static_cast<std::int64_t>(values.size()); }, values_);
}

double Column::at(std::int64_t row) const {
  const auto i = static_cast<std::size_t>(row);
  if (const auto* values = std::get_if<AlignedArray<double>>(&values_)) return (*values)[i];
  if (const auto* values = std::get_if<AlignedArray<float>>(&values_)) return static_cast<double>((*values)[i]);
  throw Error(format("column '{}' holds texts, not numbers", name_));
}

std::span<const double> Column::float64() const {
  const auto* values = std::get_if<AlignedArray<double>>(&values_);
  COHORT_THROW_UNLESS(values != nullptr, "column '{}' does not hold float64", name_);
  return values->span();
}

std::span<const float> Column::float32() const {
  const auto* values = std::get_if<AlignedArray<float>>(&values_);
  COHORT_THROW_UNLESS(values != nullptr, "column '{}' does not hold float32", name_);
  return values->span();
}

const TextArray& Column::texts() const {
  const auto* values = std::get_if<TextArray>(&values_);
  COHORT_THROW_UNLESS(values != nullptr, "column '{}' does not hold texts", name_);
  return *values;
}

void Table::add(Column column) {
  COHORT_THROW_UNLESS(columns_.empty() || column.size() == rows(), "{}: column '{}' has {} rows, the table has {}",
                      name_, column.name(), column.size(), rows());
  COHORT_THROW_UNLESS(find(column.name()) == nullptr, "{}: there are two columns '{}'", name_, column.name());
  columns_.push_back(std::move(column));
}

const Column* Table::find(std::string_view name) const {
  for (const Column& column : columns_)
    if (column.name() == name) return &column;
  return nullptr;
}

const Column& Table::column(std::string_view name) const {
  if (const Column* found = find(name)) return *found;
  const std::vector<std::string> known = names();
  const std::string near = config::nearest(std::string(name), known);
  std::string list;
  for (const std::string& n : known) list += (list.empty() ? "" : ", ") + n;
  throw Error(format("{}: there is no column '{}'{}; its columns are: {}", name_, name,
                     near.empty() ? std::string() : format("; did you mean '{}'?", near), list));
}

const Column& Table::number_column(std::string_view name) const {
  const Column& found = column(name);
  COHORT_THROW_UNLESS(found.kind() == ColumnKind::kNumber, "{}: column '{}' holds {}, not numbers", name_, name,
                      found.kind() == ColumnKind::kDate ? "dates" : "texts");
  return found;
}

std::vector<std::string> Table::names() const {
  std::vector<std::string> list;
  for (const Column& column : columns_) list.push_back(column.name());
  return list;
}

std::vector<std::string> Table::names(ColumnKind kind) const {
  std::vector<std::string> list;
  for (const Column& column : columns_)
    if (column.kind() == kind) list.push_back(column.name());
  return list;
}

}  // namespace cohort::tables
