#include "tasks/state_visitor.h"

#include <algorithm>
#include <cstring>

#include "core/format.h"

namespace cohort::tasks {
namespace {

/// Calls body(address of the element) in row-major order.
template <class Body>
void for_each_element(const ArrayView& view, const Body& body) {
  const std::size_t bytes = element_size(view.type);
  std::array<std::int64_t, kMaxRank> at{};
  auto* data = static_cast<std::uint8_t*>(view.data);
  for (std::int64_t k = 0, count = view.size(); k < count; ++k) {
    std::int64_t offset = 0;
    for (int d = 0; d < view.rank; ++d)
      offset += at[static_cast<std::size_t>(d)] * view.strides[static_cast<std::size_t>(d)];
    body(data + offset * static_cast<std::int64_t>(bytes), bytes);
    for (int d = view.rank - 1; d >= 0; --d) {
      const auto i = static_cast<std::size_t>(d);
      if (++at[i] < view.shape[i]) break;
      at[i] = 0;
    }
  }
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text;
  for (const std::int64_t size : shape) text += format("{}{}", text.empty() ? "" : ", ", size);
  return format("({})", text);
}

}  // namespace

ArrayView StateVisitor::rows_at(void* data, ElementType type, std::int64_t width, std::int64_t stride) const {
  ArrayView view;
  view.data = data;
  view.type = type;
  view.rank = 2;
  view.shape = {n_envs_, width};
  view.strides = {stride, 1};
  return view;
}

bool StateVisitor::has(const std::string& name) const {
  return from_ && std::any_of(from_->begin(), from_->end(), [&](const StateArray& a) { return a.name == name; });
}

void StateVisitor::add(const std::string& name, const ArrayView& rows) {
  const std::span<const std::int64_t> shape(rows.shape.data(), static_cast<std::size_t>(rows.rank));
  COHORT_CHECK(rows.rank >= 1 && shape[0] == n_envs_, "the state's array '{}' is {}: a row for each of {} environments",
               name, shape_text(shape), n_envs_);
  COHORT_CHECK(rows.device.kind == DeviceKind::kCpu, "the state's array '{}' is not in host memory", name);
  if (rows.size() == 0) return;
  if (to_) {
    COHORT_CHECK(std::none_of(to_->begin(), to_->end(), [&](const StateArray& a) { return a.name == name; }),
                 "two arrays of the state are called '{}'", name);
    StateArray& array = to_->emplace_back(StateArray{name, rows.type, {shape.begin(), shape.end()}, {}});
    array.bytes.resize(rows.bytes());
    auto* to = array.bytes.data();
    for_each_element(rows, [&](const std::uint8_t* element, std::size_t bytes) {
      std::memcpy(to, element, bytes);
      to += bytes;
    });
    return;
  }
  const auto array = std::find_if(from_->begin(), from_->end(), [&](const StateArray& a) { return a.name == name; });
  COHORT_THROW_UNLESS(
      array != from_->end(),
      "{} holds no '{}' of the environments: it was saved by another version of the task, or with other "
      "settings of it",
      source_, name);
  COHORT_THROW_UNLESS(
      array->type == rows.type && std::equal(array->shape.begin(), array->shape.end(), shape.begin(), shape.end()),
      "{} holds '{}' as {} {}, and here it is {} {}: keep the task, its settings, n_envs and the engine", source_, name,
      element_name(array->type), shape_text(array->shape), element_name(rows.type), shape_text(shape));
  COHORT_CHECK(array->bytes.size() == rows.bytes(), "'{}' has {} bytes, not {}", name, array->bytes.size(),
               rows.bytes());
  used_.push_back(name);
  const auto* from = array->bytes.data();
  for_each_element(rows, [&](std::uint8_t* element, std::size_t bytes) {
    std::memcpy(element, from, bytes);
    from += bytes;
  });
}

void StateVisitor::require_all_used() const {
  for (const StateArray& array : *from_)
    COHORT_THROW_UNLESS(std::find(used_.begin(), used_.end(), array.name) != used_.end(),
                        "{} holds '{}' of the environments, which this task does not have: it was saved by another "
                        "version of the task, or with other settings of it",
                        source_, array.name);
}

}  // namespace cohort::tasks
