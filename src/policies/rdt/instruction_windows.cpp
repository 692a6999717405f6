#include "policies/rdt/instruction_windows.h"

#include <utility>

#include "core/error.h"

namespace cohort::policies {

InstructionWindows::InstructionWindows(std::shared_ptr<const data::RobotWindows> windows,
                                       std::vector<std::int64_t> rows, std::vector<double> frequencies)
    : windows_(std::move(windows)), rows_(std::move(rows)), frequencies_(std::move(frequencies)) {
  const auto specs = windows_->fields();
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (specs[i].name == "instruction") place_ = i;
  COHORT_CHECK(rows_.empty() || rows_.size() == (place_ ? windows_->instructions().size() : 1),
               "{} rows for {} instructions", rows_.size(), windows_->instructions().size());
}

std::vector<data::FieldSpec> InstructionWindows::fields() const {
  auto specs = windows_->fields();
  if (place_) specs.erase(specs.begin() + static_cast<std::ptrdiff_t>(*place_));
  if (!rows_.empty()) specs.push_back({"lang_row", ElementType::kInt64, {}});
  if (!frequencies_.empty()) specs.push_back({"ctrl_freq", ElementType::kFloat32, {}});
  return specs;
}

void InstructionWindows::read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const {
  const std::size_t own = (rows_.empty() ? 0u : 1u) + (frequencies_.empty() ? 0u : 1u);
  std::vector<ArrayView> inner(rows.begin(), rows.end() - static_cast<std::ptrdiff_t>(own));
  std::int64_t number = 0;
  if (place_) inner.insert(inner.begin() + static_cast<std::ptrdiff_t>(*place_), make_view(&number, {}));
  windows_->read(index, epoch, inner);
  std::size_t next = rows.size() - own;
  if (!rows_.empty()) rows[next++].span<std::int64_t>()[0] = rows_[static_cast<std::size_t>(number)];
  if (!frequencies_.empty())
    rows[next].span<float>()[0] = static_cast<float>(frequencies_.at(windows_->address(index, epoch).set));
}

}  // namespace cohort::policies
