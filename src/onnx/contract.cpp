#include "onnx/contract.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/json_text.h"
#include "core/typed_text.h"
#include "tasks/task.h"
#include "tasks/task_contract.h"

namespace cohort::onnx {
namespace {

using Metadata = std::map<std::string, std::string>;
using tasks::CheckRow;
using Outcome = CheckRow::Outcome;

constexpr double kInfinite = std::numeric_limits<double>::infinity();

// Lists in text.

std::string number_text(double value) {
  return format("{:.7g}", value);
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(separator, begin);
    std::string part = text.substr(begin, end == std::string::npos ? end : end - begin);
    part.erase(0, part.find_first_not_of(' '));
    if (const std::size_t last = part.find_last_not_of(' '); last != std::string::npos) part.erase(last + 1);
    parts.push_back(std::move(part));
    if (end == std::string::npos) return parts;
    begin = end + 1;
  }
}

template <class Items, class Text>
std::string list_text(const Items& items, char separator, const Text& text) {
  std::string all;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (i > 0) all += separator;
    all += text(items[i]);
  }
  return all;
}
std::string numbers_text(const std::vector<double>& numbers, char separator = ',') {
  return list_text(numbers, separator, number_text);
}
std::string names_text(const std::vector<std::string>& names) {
  return list_text(names, ',', [](const std::string& name) { return name; });
}

/// Reads values of keys, with the key in every message.
class Reader {
 public:
  Reader(const Metadata& metadata, const std::string& where) : metadata_(metadata), where_(where) {}

  std::string text(const char* key) const {
    const auto at = metadata_.find(key);
    return at == metadata_.end() ? "" : at->second;
  }
  /// A list as Python prints one, "['a', 'b']", is one too.
  std::vector<std::string> names(const char* key) const {
    std::string list = text(key);
    if (list.size() >= 2 && list.front() == '[' && list.back() == ']') list = list.substr(1, list.size() - 2);
    std::vector<std::string> items = parts_of(list, ',');
    for (std::string& item : items)
      if (item.size() >= 2 && item.front() == item.back() && (item.front() == '\'' || item.front() == '"'))
        item = item.substr(1, item.size() - 2);
    return items;
  }
  double number(const char* key, const std::string& text) const {
    double value = 0;
    const std::string word = text.starts_with('+') ? text.substr(1) : text;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    COHORT_THROW_UNLESS(error == std::errc() && end == word.data() + word.size(),
                        "{}: the metadata {} has '{}', which is no number", where_, key, text);
    return value;
  }
  std::vector<double> numbers(const char* key, const std::vector<std::string>& words) const {
    std::vector<double> values;
    for (const std::string& word : words) values.push_back(number(key, word));
    return values;
  }
  std::vector<double> numbers(const char* key) const { return numbers(key, names(key)); }
  /// The parts of the key's items, one item for each of `count` observations; none: it is not said.
  std::vector<std::vector<std::string>> items(const char* key, std::size_t count) const {
    std::vector<std::vector<std::string>> all;
    for (const std::string& item : names(key)) all.push_back(parts_of(item, ';'));
    COHORT_THROW_UNLESS(all.empty() || all.size() == count,
                        "{}: the metadata {} has {} items, observation_names has {}", where_, key, all.size(), count);
    return all;
  }

 private:
  const Metadata& metadata_;
  const std::string& where_;
};

// Comparison.

bool is_same(double a, double b, bool rounded) {
  if (a == b) return true;
  if (!std::isfinite(a) || !std::isfinite(b)) return false;
  return std::abs(a - b) <= (rounded ? 6e-4 + 1e-3 * std::abs(b) : 1e-9 + 1e-5 * std::abs(b));
}

std::string without_prefix(const std::string& name) {
  return name.substr(name.rfind('/') == std::string::npos ? 0 : name.rfind('/') + 1);
}
std::vector<std::string> without_prefixes(std::vector<std::string> names) {
  for (std::string& name : names) name = without_prefix(name);
  return names;
}

std::ptrdiff_t place_of(const std::vector<std::string>& names, const std::string& name) {
  const auto at = std::find(names.begin(), names.end(), name);
  return at == names.end() ? -1 : at - names.begin();
}

CheckRow skipped(const std::string& name, const std::string& who) {
  return {.name = name, .outcome = Outcome::kSkipped, .found = who + " says nothing of it", .remedy = ""};
}
template <class Policy, class Task>
CheckRow skipped(const std::string& name, const Policy& policy, const Task& task) {
  if (!policy.empty() || !task.empty()) return skipped(name, policy.empty() ? "the file" : "the task");
  return {.name = name, .outcome = Outcome::kSkipped, .found = "neither of both says anything of it", .remedy = ""};
}
CheckRow passed(const std::string& name, const std::string& found) {
  return {.name = name, .outcome = Outcome::kPass, .found = found, .remedy = ""};
}
CheckRow failed(const std::string& name, const std::string& found, const std::string& remedy) {
  return {.name = name, .outcome = Outcome::kFail, .found = found, .remedy = remedy};
}

/// Both lists, and where they part.
CheckRow compared_names(const std::string& row, const std::vector<std::string>& policy,
                        const std::vector<std::string>& task, const std::string& thing, const std::string& remedy) {
  if (policy.empty() || task.empty()) return skipped(row, policy, task);
  if (policy == task) return passed(row, format("{} {}s in the same order", policy.size(), thing));
  std::vector<std::string> missing, extra;
  for (const std::string& name : policy)
    if (place_of(task, name) < 0) missing.push_back(name);
  for (const std::string& name : task)
    if (place_of(policy, name) < 0) extra.push_back(name);
  const std::string lists = format("the policy's: {}; the task's: {}", join(policy, ", "), join(task, ", "));
  if (missing.empty() && extra.empty()) {
    const auto first =
        static_cast<std::size_t>(std::mismatch(policy.begin(), policy.end(), task.begin()).first - policy.begin());
    return failed(row,
                  format("another order, from {} {} on ({} in the policy, {} in the task); {}", thing, first + 1,
                         policy[first], task[first], lists),
                  remedy);
  }
  std::string found;
  if (!missing.empty()) {
    found = "the task lacks " + join(missing, ", ");
    const std::string near = config::nearest(missing.front(), task);
    if (!near.empty()) found += format(" (is it {}?)", near);
  }
  if (!extra.empty()) found += (found.empty() ? "" : "; ") + ("the policy does not name " + join(extra, ", "));
  return failed(row, found + "; " + lists, remedy);
}

/// Numbers of joints, or of actions: by name where the orders differ.
CheckRow compared_numbers(const std::string& row, const std::vector<std::string>& names,
                          const std::vector<double>& policy, const std::vector<std::string>& names_there,
                          const std::vector<double>& task, bool rounded, const std::string& unit,
                          const std::string& remedy) {
  if (policy.empty() || task.empty()) return skipped(row, policy, task);
  const auto value = [](const std::vector<double>& all, std::size_t i) { return all.size() == 1 ? all[0] : all[i]; };
  // mjlab names all joints of the robot, and has gains of those that are driven.
  const bool named = !names.empty() && !names_there.empty() && (policy.size() == 1 || policy.size() == names.size()) &&
                     (task.size() == 1 || task.size() == names_there.size());
  std::vector<std::string> differing;
  std::size_t compared = 0;
  if (named) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      const std::ptrdiff_t there = place_of(names_there, names[i]);
      if (there < 0) continue;
      ++compared;
      const double a = value(policy, i), b = value(task, static_cast<std::size_t>(there));
      if (!is_same(a, b, rounded))
        differing.push_back(format("{} {} (here {})", names[i], number_text(a), number_text(b)));
    }
  } else {
    const std::size_t count = std::max(policy.size(), task.size());
    if (policy.size() != task.size() && policy.size() != 1 && task.size() != 1)
      return failed(row, format("{} numbers, and the task has {}", policy.size(), task.size()), remedy);
    for (std::size_t i = 0; i < count; ++i, ++compared)
      if (const double a = value(policy, i), b = value(task, i); !is_same(a, b, rounded))
        differing.push_back(format("number {}: {} (here {})", i + 1, number_text(a), number_text(b)));
  }
  if (compared == 0) return skipped(row, "no joint has the same name: the task");
  if (differing.empty()) return passed(row, format("the same for {}{}", compared, unit.empty() ? "" : ", " + unit));
  constexpr std::size_t kShown = 6;
  const std::size_t more = differing.size() > kShown ? differing.size() - kShown : 0;
  if (more > 0) differing.resize(kShown);
  return failed(
      row, join(differing, ", ") + (more > 0 ? format(" and {} more", more) : "") + (unit.empty() ? "" : "; " + unit),
      remedy);
}

const Contract::Observation* find_observation(const Contract& contract, const std::string& name) {
  const auto at = std::find_if(contract.observations.begin(), contract.observations.end(),
                               [&](const Contract::Observation& one) { return one.name == name; });
  return at == contract.observations.end() ? nullptr : &*at;
}

/// Of the observations that both have: what a pair differs in; "" for nothing.
template <class Compare>
CheckRow compared_terms(const std::string& row, const Contract& policy, const Contract& task, const std::string& same,
                        const std::string& remedy, const Compare& compare) {
  std::vector<std::string> differing;
  std::size_t compared = 0;
  for (const Contract::Observation& seen : policy.observations) {
    const Contract::Observation* const there = find_observation(task, seen.name);
    if (there == nullptr) continue;
    const std::optional<std::string> found = compare(seen, *there);
    if (!found) continue;
    ++compared;
    if (!found->empty()) differing.push_back(seen.name + " " + *found);
  }
  if (compared == 0) return skipped(row, policy.observations.empty() ? "the file" : "one of both");
  if (differing.empty()) return passed(row, format("{} of {} observation(s)", same, compared));
  return failed(row, join(differing, "; "), remedy);
}

std::vector<double> scale_or_one(const Contract::Observation& seen) {
  return seen.scale.empty() ? std::vector<double>{1} : seen.scale;
}

std::string limits_text(const Contract::Observation& seen) {
  return seen.low == -kInfinite && seen.high == kInfinite
             ? "not clipped"
             : format("clipped to {} to {}", number_text(seen.low), number_text(seen.high));
}

}  // namespace

std::int64_t Contract::Observation::width() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

Metadata to_metadata(const Contract& contract) {
  Metadata out;
  const auto put = [&out](const char* key, const std::string& text) {
    if (!text.empty()) out[key] = text;
  };
  put("task", contract.task);
  if (!contract.task_settings.empty()) out["task_settings"] = json_text(nlohmann::json(contract.task_settings));
  if (contract.control_period > 0) put("control_period", format("{:.9g}", contract.control_period));
  const auto of_terms = [&](const char* key, const auto& text) {
    put(key, list_text(contract.observations, ',', text));
  };
  using Observation = Contract::Observation;
  of_terms("observation_names", [](const Observation& o) { return o.name; });
  of_terms("observation_shapes", [](const Observation& o) {
    return o.shape.empty() ? std::string("1") : list_text(o.shape, ';', [](std::int64_t n) { return format("{}", n); });
  });
  of_terms("observation_units", [](const Observation& o) {
    std::string unit = o.unit;
    for (std::size_t at = 0; (at = unit.find(", ")) != std::string::npos;) unit.replace(at, 2, ";");
    return unit;
  });
  of_terms("observation_terms_scale", [](const Observation& o) { return numbers_text(scale_or_one(o), ';'); });
  of_terms("observation_terms_clip",
           [](const Observation& o) { return number_text(o.low) + ";" + number_text(o.high); });
  of_terms("observation_terms_history_length", [](const Observation& o) { return format("{}", o.history); });
  of_terms("observation_terms_flatten_history_dim", [](const Observation&) { return std::string("True"); });
  put("command_names", names_text(contract.command_names));
  put("joint_names", names_text(contract.joint_names));
  put("joint_stiffness", numbers_text(contract.joint_stiffness));
  put("joint_damping", numbers_text(contract.joint_damping));
  put("default_joint_pos", numbers_text(contract.default_joint_pos));
  put("action_names", names_text(contract.action_names));
  put("action_scale", numbers_text(contract.action_scale));
  put("action_low", numbers_text(contract.action_low));
  put("action_high", numbers_text(contract.action_high));
  put("action_unit", contract.action_unit);
  put("run_path", contract.run_path);
  put("cohort_version", contract.cohort_version);
  return out;
}

Contract read_contract(const Metadata& metadata, const std::string& where) {
  const Reader read(metadata, where);
  Contract contract;
  contract.task = read.text("task");
  if (const std::string text = read.text("task_settings"); !text.empty()) {
    const nlohmann::json json = try_json<nlohmann::json>(text);
    COHORT_THROW_UNLESS(json.is_object(), "{}: the metadata task_settings is no JSON object: {}", where, text);
    for (const auto& [key, value] : json.items()) contract.task_settings[key] = typed_text(value);
  }
  if (const std::string text = read.text("control_period"); !text.empty())
    contract.control_period = read.number("control_period", text);
  for (const std::string& name : read.names("observation_names")) contract.observations.push_back({.name = name});
  std::vector<Contract::Observation>& terms = contract.observations;
  const auto each = [&](const char* key, const auto& take) {
    const auto items = read.items(key, terms.size());
    for (std::size_t i = 0; i < items.size(); ++i) take(terms[i], items[i]);
  };
  each("observation_shapes", [&](auto& term, const auto& words) {
    for (const double size : read.numbers("observation_shapes", words)) {
      COHORT_THROW_UNLESS(size >= 1 && size < 1e9 && size == std::floor(size),
                          "{}: the metadata observation_shapes has a size of {}", where, size);
      term.shape.push_back(static_cast<std::int64_t>(size));
    }
  });
  each("observation_units", [](auto& term, const auto& words) { term.unit = join(words, ", "); });
  each("observation_terms_scale",
       [&](auto& term, const auto& words) { term.scale = read.numbers("observation_terms_scale", words); });
  each("observation_terms_clip", [&](auto& term, const auto& words) {
    const std::vector<double> limits = read.numbers("observation_terms_clip", words);
    COHORT_THROW_UNLESS(limits.size() == 2, "{}: the metadata observation_terms_clip has {} limits of {}", where,
                        limits.size(), term.name);
    term.low = limits[0], term.high = limits[1];
  });
  each("observation_terms_history_length", [&](auto& term, const auto& words) {
    if (!words.empty()) term.history = static_cast<int>(read.number("observation_terms_history_length", words[0]));
  });
  contract.command_names = read.names("command_names");
  contract.joint_names = read.names("joint_names");
  contract.joint_stiffness = read.numbers("joint_stiffness");
  contract.joint_damping = read.numbers("joint_damping");
  contract.default_joint_pos = read.numbers("default_joint_pos");
  contract.action_names = read.names("action_names");
  contract.action_scale = read.numbers("action_scale");
  contract.action_low = read.numbers("action_low");
  contract.action_high = read.numbers("action_high");
  contract.action_unit = read.text("action_unit");
  contract.run_path = read.text("run_path");
  contract.cohort_version = read.text("cohort_version");
  return contract;
}

Contract contract_of(tasks::Task& task, const std::vector<std::string>& unseen) {
  const tasks::TaskSpec& spec = task.spec();
  const tasks::TaskContract there = task.contract();
  COHORT_CHECK(there.observations.empty() || there.observations.size() == spec.observations.size(),
               "{} says of {} observations what was done to them, and has {}", spec.name, there.observations.size(),
               spec.observations.size());
  Contract contract;
  contract.task = spec.name;
  contract.control_period = spec.control_period;
  for (std::size_t i = 0; i < spec.observations.size(); ++i) {
    const tasks::FieldSpec& field = spec.observations[i];
    if (std::find(unseen.begin(), unseen.end(), field.name) != unseen.end()) continue;
    Contract::Observation seen{.name = field.name, .shape = field.shape, .unit = field.unit};
    if (seen.shape.empty()) seen.shape = {1};
    if (!there.observations.empty()) {
      const tasks::TaskContract::Term& term = there.observations[i];
      seen.scale = term.scale, seen.low = term.low, seen.high = term.high, seen.history = term.history;
    }
    contract.observations.push_back(std::move(seen));
  }
  contract.command_names = there.command_names;
  contract.joint_names = there.joint_names;
  contract.joint_stiffness = there.joint_stiffness;
  contract.joint_damping = there.joint_damping;
  contract.default_joint_pos = there.default_joint_pos;
  contract.action_names = spec.action.names;
  contract.action_scale = there.action_scale;
  contract.action_unit = spec.action.unit;
  for (std::size_t i = 0; i < spec.action.names.size(); ++i) {
    contract.action_low.push_back(there.clips_actions ? static_cast<double>(spec.action.low[i]) : -kInfinite);
    contract.action_high.push_back(there.clips_actions ? static_cast<double>(spec.action.high[i]) : kInfinite);
  }
  return contract;
}

std::vector<CheckRow> check_contract(const Contract& policy, const Contract& task) {
  const bool rounded = policy.cohort_version.empty();
  std::vector<CheckRow> rows;
  if (policy.task.empty())
    rows.push_back(skipped("task", "the file"));
  else if (policy.task == task.task)
    rows.push_back(passed("task", "it has learnt " + policy.task));
  else
    rows.push_back({.name = "task",
                    .outcome = Outcome::kSkipped,
                    .found = format("it has learnt {}, and this is {}", policy.task, task.task),
                    .remedy = ""});
  if (policy.control_period <= 0 || task.control_period <= 0)
    rows.push_back(skipped("control", policy.control_period <= 0 ? "the file" : "the task"));
  else if (std::abs(policy.control_period / task.control_period - 1) <= 0.01)
    rows.push_back(passed("control", format("an action every {:.4g} s", policy.control_period)));
  else
    rows.push_back(failed("control",
                          format("an action every {:.4g} s, and the task takes one every {:.4g} s",
                                 policy.control_period, task.control_period),
                          "let the task act as often as the policy has learnt"));
  std::vector<std::string> seen, there;
  for (const Contract::Observation& one : policy.observations) seen.push_back(one.name);
  for (const Contract::Observation& one : task.observations) there.push_back(one.name);
  rows.push_back(compared_names("observations", seen, there, "observation",
                                "put the task's observations into the policy's order, under its names"));
  rows.push_back(
      compared_terms("widths", policy, task, "the widths", "a task that observes as many numbers under that name",
                     [](const auto& a, const auto& b) -> std::optional<std::string> {
                       if (a.shape.empty()) return std::nullopt;
                       return a.width() == b.width() ? "" : format("has {} numbers (here {})", a.width(), b.width());
                     }));
  rows.push_back(compared_terms("units", policy, task, "the units", "observe it in the policy's unit",
                                [](const auto& a, const auto& b) -> std::optional<std::string> {
                                  // A formula's unit is 1 where its task does not say another.
                                  if (a.unit.empty() || b.unit.empty() || a.unit == "1" || b.unit == "1")
                                    return std::nullopt;
                                  return a.unit == b.unit ? "" : format("is in {} (here {})", a.unit, b.unit);
                                }));
  rows.push_back(compared_terms(
      "scales", policy, task, "the scales", "multiply the task's observation by the policy's scale",
      [&](const auto& a, const auto& b) -> std::optional<std::string> {
        const std::vector<double> of_a = scale_or_one(a), of_b = scale_or_one(b);
        bool same = of_a.size() == of_b.size() || of_a.size() == 1 || of_b.size() == 1;
        for (std::size_t i = 0; same && i < std::max(of_a.size(), of_b.size()); ++i)
          same = is_same(of_a[of_a.size() == 1 ? 0 : i], of_b[of_b.size() == 1 ? 0 : i], rounded);
        return same ? "" : format("is scaled by {} (here {})", numbers_text(of_a, ';'), numbers_text(of_b, ';'));
      }));
  rows.push_back(compared_terms("clips", policy, task, "the limits", "clip the task's observation likewise",
                                [&](const auto& a, const auto& b) -> std::optional<std::string> {
                                  return is_same(a.low, b.low, rounded) && is_same(a.high, b.high, rounded)
                                             ? ""
                                             : format("is {} (here {})", limits_text(a), limits_text(b));
                                }));
  rows.push_back(compared_terms("history", policy, task, "the moments", "let the task observe as many moments",
                                [](const auto& a, const auto& b) -> std::optional<std::string> {
                                  // One moment is the present one.
                                  return std::max(a.history, 1) == std::max(b.history, 1)
                                             ? ""
                                             : format("is of {} moments (here {})", std::max(a.history, 1),
                                                      std::max(b.history, 1));
                                }));
  rows.push_back(compared_names("commands", policy.command_names, task.command_names, "command",
                                "name the task's commands as the policy does, in its order"));
  const std::vector<std::string> joints = without_prefixes(policy.joint_names),
                                 joints_there = without_prefixes(task.joint_names);
  rows.push_back(compared_names("joints", joints, joints_there, "joint",
                                "put joint positions, velocities and actions into the policy's order of joints"));
  rows.push_back(compared_numbers("pose", joints, policy.default_joint_pos, joints_there, task.default_joint_pos,
                                  rounded, "rad or m", "count actions and joint positions from the policy's pose"));
  rows.push_back(compared_numbers("stiffness", joints, policy.joint_stiffness, joints_there, task.joint_stiffness,
                                  rounded, "N m/rad or N/m", "give the robot's controllers the policy's gains"));
  rows.push_back(compared_numbers("damping", joints, policy.joint_damping, joints_there, task.joint_damping, rounded,
                                  "N m s/rad or N s/m", "give the robot's controllers the policy's gains"));
  rows.push_back(compared_names("actions", policy.action_names, task.action_names, "action",
                                "put the actions into the policy's order"));
  const bool by_joint = policy.action_names.empty() || task.action_names.empty();
  rows.push_back(compared_numbers("action scale", by_joint ? joints : policy.action_names, policy.action_scale,
                                  by_joint ? joints_there : task.action_names, task.action_scale, rounded, "",
                                  "multiply actions by the policy's scale"));
  return rows;
}

}  // namespace cohort::onnx
