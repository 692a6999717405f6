#include "data/hdf5/episode_layout.h"

#include <algorithm>
#include <charconv>

#include "core/error.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kSmallestCamera = 8;  // pixels: a smaller "picture" of 1 or 3 channels is a few numbers

bool is_uint8(const Hdf5Array& array) {
  return array.element.bytes == 1 && array.element.kind == Hdf5Element::Kind::kUnsigned;
}

bool is_picture(const Hdf5Array& array) {
  const auto channels = [&](std::size_t axis) { return array.shape[axis] == 1 || array.shape[axis] == 3; };
  return is_uint8(array) && array.shape.size() == 4 && (channels(3) || is_channels_first(array));
}

/// What most of these arrays have as their first extent; the greater of two that are as frequent. 0 where there is
/// none.
template <class Wanted>
std::int64_t usual_rows(const Hdf5Shapes& shapes, const Wanted& wanted) {
  std::map<std::int64_t, int> votes;
  for (const auto& [name, shape] : shapes)
    if (wanted(name)) ++votes[shape[0]];
  std::int64_t best = 0;
  int most = 0;
  for (const auto& [rows, count] : votes)
    if (count >= most) {
      most = count;
      best = rows;
    }
  return best;
}

}  // namespace

bool is_action(const std::string& name) {
  return name == "action" || name == "actions" || name.starts_with("action/") || name.starts_with("actions/") ||
         name.starts_with("action_dict/");
}

bool is_channels_first(const Hdf5Array& array) {
  const std::vector<std::int64_t>& shape = array.shape;
  return is_uint8(array) && shape.size() == 4 && shape[3] != 1 && shape[3] != 3 && (shape[1] == 1 || shape[1] == 3) &&
         shape[2] >= kSmallestCamera && shape[3] >= kSmallestCamera;
}

bool is_below_images(const std::string& path) {
  return path.find("/images/") != std::string::npos || path.starts_with("images/");
}

bool is_packed_pictures(const std::string& path, const Hdf5Array& array) {
  constexpr std::int64_t kSmallestPicture = 64;  // bytes
  return is_below_images(path) && is_uint8(array) && array.shape.size() == 2 && array.shape[1] >= kSmallestPicture;
}

std::int64_t steps_of_demo(const Hdf5Shapes& shapes, const Hdf5Attributes& attributes) {
  for (const auto& [key, value] : attributes)
    if (key == "num_samples") {
      double number = 0;
      std::from_chars(value.data(), value.data() + value.size(), number);
      return static_cast<std::int64_t>(number);
    }
  const std::int64_t actions = usual_rows(shapes, is_action);
  return actions > 0 ? actions : usual_rows(shapes, [](const std::string&) { return true; });
}

StepField make_step_field(const std::string& name, const Hdf5Array& array) {
  StepField field{.name = name, .type = array.element.element_type()};
  field.shape.assign(array.shape.begin() + 1, array.shape.end());
  if (is_channels_first(array)) std::rotate(field.shape.begin(), field.shape.begin() + 1, field.shape.end());
  if (is_picture(array)) field.kind = StepKind::kImage;
  if (is_packed_pictures(name, array)) {
    field.kind = StepKind::kImage;
    field.shape = {-1, -1, 3};
  }
  if (array.element.kind == Hdf5Element::Kind::kUnsigned && array.element.bytes == 8) field.stored_type = "uint64";
  return field;
}

std::string text_of_layout(const Hdf5Shapes& shapes, std::int64_t steps) {
  std::string layout;
  for (const auto& [name, shape] : shapes) {
    if (!has_row_per_step(shape[0], steps)) continue;
    layout += name;
    for (std::size_t d = 1; d < shape.size(); ++d) layout += format(" {}", shape[d]);
    layout += '\n';
  }
  return layout;
}

void Hdf5RowCounts::add(const Hdf5Shapes& shapes, std::int64_t steps, const std::string& location) {
  ++demos_;
  for (const auto& [name, shape] : shapes) {
    Rows& rows = counts_[name];
    ++rows.demos;
    rows.one_more += shape[0] == steps + 1;
    if (has_row_per_step(shape[0], steps)) {
      ++rows.fitting;
    } else if (rows.location.empty()) {
      rows.rows = shape[0];
      rows.steps = steps;
      rows.location = location;
    }
  }
}

bool Hdf5RowCounts::fits_everywhere(const std::string& name) const {
  const auto found = counts_.find(name);
  return found != counts_.end() && found->second.fitting == found->second.demos;
}

std::string Hdf5RowCounts::rows_not_used(const std::vector<std::string>& names) const {
  std::string list;
  std::int64_t demos = 0;
  for (const std::string& name : names) {
    const auto found = counts_.find(name);
    if (found == counts_.end() || found->second.one_more == 0) continue;
    list += (list.empty() ? "" : ", ") + name;
    demos = std::max(demos, found->second.one_more);
  }
  return list.empty() ? ""
                      : format(
                            "{}: one row more than there are steps in {} of {} demos; this row, the observation after "
                            "the last action, is not used",
                            list, demos, demos_);
}

std::string Hdf5RowCounts::why_not(const std::string& name) const {
  const auto found = counts_.find(name);
  if (found == counts_.end()) return "";
  const Rows& rows = found->second;
  if (!rows.location.empty())
    return format(
        "it has {} rows in {}, which has {} steps: write a row per step, or one more, which is the "
        "observation after the last action",
        rows.rows, rows.location, rows.steps);
  return format("{} of {} demos lack it: remove those demos, or {} to go on without them", demos_ - rows.demos, demos_,
                kSkipDamaged);
}

std::vector<std::string> Hdf5RowCounts::names() const {
  std::vector<std::string> names;
  for (const auto& [name, rows] : counts_) names.push_back(name);
  return names;
}

}  // namespace cohort::data
