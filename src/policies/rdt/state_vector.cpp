#include "policies/rdt/state_vector.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <utility>

#include "core/config.h"
#include "core/error.h"

namespace cohort::models {
namespace {

/// Names of one arm, by slot counted from the arm's first: right 0, left 50.
const std::map<std::string, int>& arm_table() {
  static const std::map<std::string, int> table = [] {
    std::map<std::string, int> names;
    for (int i = 0; i < 10; ++i) {
      names[format("arm_joint_{}_pos", i)] = i;
      names[format("arm_joint_{}_vel", i)] = 15 + i;
    }
    for (int i = 0; i < 5; ++i) {
      names[format("gripper_joint_{}_pos", i)] = 10 + i;
      names[format("gripper_joint_{}_vel", i)] = 25 + i;
    }
    names["gripper_open"] = 10;
    names["gripper_open_vel"] = 25;
    const char* axes[] = {"x", "y", "z"};
    const char* turns[] = {"roll", "pitch", "yaw"};
    for (int i = 0; i < 3; ++i) {
      names[format("eef_pos_{}", axes[i])] = 30 + i;
      names[format("eef_vel_{}", axes[i])] = 39 + i;
      names[format("eef_angular_vel_{}", turns[i])] = 42 + i;
    }
    for (int i = 0; i < 6; ++i) names[format("eef_angle_{}", i)] = 33 + i;
    return names;
  }();
  return table;
}

const std::map<std::string, int>& table() {
  static const std::map<std::string, int> all = [] {
    std::map<std::string, int> names;
    for (const auto& [name, slot] : arm_table()) {
      names[name] = slot;
      names["right_" + name] = slot;
      names["left_" + name] = 50 + slot;
    }
    names["base_vel_x"] = 100;
    names["base_vel_y"] = 101;
    names["base_angular_vel"] = 102;
    return names;
  }();
  return all;
}

/// Fields that data sets commonly have: the last part of the name, the first slot, and how many numbers there may be.
struct KnownField {
  const char* name;
  int slot;
  int most;
};
constexpr KnownField kKnownFields[] = {
    {"robot0_joint_pos", 0, 10},
    {"joint_pos", 0, 10},
    {"joint_position", 0, 10},
    {"joint_states", 0, 10},
    {"robot0_joint_vel", 15, 10},
    {"joint_vel", 15, 10},
    {"joint_velocity", 15, 10},
    {"robot0_gripper_qpos", 10, 5},
    {"gripper_qpos", 10, 5},
    {"gripper_states", 10, 5},
    {"gripper_position", 10, 5},
    {"gripper_opening", 10, 5},
    {"robot0_gripper_qvel", 25, 5},
    {"gripper_velocity", 25, 5},
    {"robot0_eef_pos", 30, 3},
    {"eef_pos", 30, 3},
    {"ee_pos", 30, 3},
    {"robot0_eef_rot_6d", 33, 6},
    {"eef_rot_6d", 33, 6},
    {"robot1_joint_pos", 50, 10},
    {"robot1_joint_vel", 65, 10},
    {"robot1_gripper_qpos", 60, 5},
    {"robot1_gripper_qvel", 75, 5},
    {"robot1_eef_pos", 80, 3},
};

std::string trimmed(const std::string& text) {
  const auto space = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto begin = std::find_if_not(text.begin(), text.end(), space);
  const auto end = std::find_if_not(text.rbegin(), text.rend(), space).base();
  return begin < end ? std::string(begin, end) : std::string();
}

std::optional<int> number(const std::string& text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// "observation/eef_pos" of "observation/eef_pos: 30-32". A component may hold no colon.
std::pair<std::string, std::string> split_line(const std::string& line) {
  const std::size_t colon = line.rfind(':');
  // A slice's colon, action[0:3], stands before the one that ends the component.
  COHORT_THROW_UNLESS(colon != std::string::npos && line.find(']', colon) == std::string::npos,
                      "model.rdt.slots: \"{}\" is not COMPONENT: SLOT, SLOT, ...", line);
  return {trimmed(line.substr(0, colon)), trimmed(line.substr(colon + 1))};
}

std::vector<int> parse_slots(const std::string& line, const std::string& list) {
  std::vector<int> slots;
  const auto add = [&](int slot) {
    COHORT_THROW_UNLESS(slot >= 0 && slot < kStateSlots, "model.rdt.slots: \"{}\": slot {} is none of 0 to {}", line,
                        slot, kStateSlots - 1);
    slots.push_back(slot);
  };
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t comma = std::min(list.find(',', begin), list.size());
    const std::string item = trimmed(list.substr(begin, comma - begin));
    begin = comma + 1;
    const std::size_t dash = item.find('-');
    const std::optional<int> first = number(item.substr(0, dash));
    if (first && dash != std::string::npos) {
      const std::optional<int> last = number(item.substr(dash + 1));
      COHORT_THROW_UNLESS(last && *last >= *first && *last < kStateSlots,
                          "model.rdt.slots: \"{}\": {} is no range of slots", line, item);
      for (int slot = *first; slot <= *last; ++slot) add(slot);
    } else if (first) {
      add(*first);
    } else if (const std::optional<int> slot = slot_named(item)) {
      add(*slot);
    } else {
      std::vector<std::string> names;
      for (const auto& [name, ignored] : table()) names.push_back(name);
      const std::string near = config::nearest(item, names);
      throw Error(format("model.rdt.slots: \"{}\": there is no slot '{}'{}; the names are listed in docs/guide/rdt.md",
                         line, item, near.empty() ? "" : format(", did you mean '{}'?", near)));
    }
  }
  return slots;
}

/// "eef_pos" of "observation/eef_pos"; empty where a slice or a transform changes what the numbers mean.
std::string leaf_of(const std::string& component) {
  if (component.find('|') != std::string::npos || component.find('[') != std::string::npos) return "";
  const std::string field = trimmed(component);
  return field.substr(field.rfind('/') == std::string::npos ? 0 : field.rfind('/') + 1);
}

}  // namespace

std::optional<int> slot_named(const std::string& name) {
  const auto found = table().find(name);
  return found == table().end() ? std::nullopt : std::optional<int>(found->second);
}

std::string slot_name(int slot) {
  for (const auto& [name, own] : table())
    if (own == slot && (slot >= 100 || name.starts_with(slot < 50 ? "right_" : "left_"))) return name;
  return "";
}

std::vector<int> slots_of(const std::string& component, int width, const std::vector<std::string>& assigned) {
  for (const std::string& line : assigned) {
    const auto [name, list] = split_line(line);
    if (name != component) continue;
    std::vector<int> slots = parse_slots(line, list);
    COHORT_THROW_UNLESS(slots.size() == static_cast<std::size_t>(width),
                        "model.rdt.slots: \"{}\" names {} slots, but {} has {} numbers", line, slots.size(), component,
                        width);
    return slots;
  }
  const std::string leaf = leaf_of(component);
  for (const KnownField& known : kKnownFields) {
    if (leaf != known.name || width > known.most) continue;
    std::vector<int> slots;
    for (int i = 0; i < width; ++i) slots.push_back(known.slot + i);
    return slots;
  }
  throw Error(format(
      "{} ({} number{}) maps to none of RDT's {} slots: say where it belongs, e.g. "
      "model.rdt.slots=[\"{}: {}\"] (docs/guide/rdt.md lists the names), or leave the field out",
      component, width, width == 1 ? "" : "s", kStateSlots, component, width == 1 ? "right_gripper_open" : "30-32"));
}

void check_slots(const std::vector<std::string>& components, const std::vector<std::vector<int>>& slots,
                 const std::string& what) {
  std::map<int, std::string> taken;
  for (std::size_t i = 0; i < components.size(); ++i)
    for (const int slot : slots[i]) {
      const auto [found, is_new] = taken.emplace(slot, components[i]);
      COHORT_THROW_UNLESS(is_new, "{}: {} and {} share slot {}{}: give one of them another with model.rdt.slots", what,
                          found->second, components[i], slot,
                          slot_name(slot).empty() ? "" : format(" ({})", slot_name(slot)));
    }
}

void check_assigned(const std::vector<std::string>& components, const std::vector<std::string>& assigned) {
  for (const std::string& line : assigned) {
    const std::string name = split_line(line).first;
    COHORT_THROW_UNLESS(std::find(components.begin(), components.end(), name) != components.end(),
                        "model.rdt.slots: \"{}\": {} is no component of data.proprio or data.actions{}", line, name,
                        config::nearest(name, components).empty()
                            ? ""
                            : format(", did you mean '{}'?", config::nearest(name, components)));
  }
}

}  // namespace cohort::models
