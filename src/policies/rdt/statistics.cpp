#include "policies/rdt/statistics.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "policies/rdt/state_vector.h"

namespace cohort::policies {
namespace {

using config::Json;

constexpr const char* kOfAll = "all";
constexpr double kFarBelow = 10;  // times

Json statistics_file(const std::string& path) {
  Json json = try_json<Json>(read_file(path));
  COHORT_THROW_UNLESS(!json.is_discarded(), "{}: is no JSON", path);
  COHORT_THROW_UNLESS(json.is_object(), "{}: is no JSON object of data sets", path);
  return json;
}

/// A list of the 128 slots' numbers.
std::vector<double> list_of_slots(const Json& file, const std::string& path, const std::string& name,
                                  const std::string& key) {
  const Json& set = file.at(name);
  COHORT_THROW_UNLESS(set.is_object() && set.contains(key) && set[key].is_array() &&
                          set[key].size() == static_cast<std::size_t>(models::kStateSlots) &&
                          std::all_of(set[key].begin(), set[key].end(), [](const Json& x) { return x.is_number(); }),
                      "{}: {}.{} is no list of {} numbers", path, name, key, models::kStateSlots);
  return set[key].get<std::vector<double>>();
}

std::string name_or_number(int slot) {
  const std::string name = models::slot_name(slot);
  return name.empty() ? format("slot {}", slot) : name;
}

}  // namespace

std::vector<StatisticsName> statistics_names(const std::string& data_path, const std::string& data_set) {
  std::vector<StatisticsName> names;
  const auto add = [&](const std::string& name, const char* why) {
    if (name.empty() ||
        std::any_of(names.begin(), names.end(), [&](const StatisticsName& n) { return n.name == name; }))
      return;
    names.push_back({name, why});
  };
  const std::filesystem::path path = std::filesystem::path(data_path).lexically_normal();
  for (std::filesystem::path part = path; part.has_relative_path(); part = part.parent_path()) {
    std::string name = part.filename().string();
    if (part == path) {
      name = part.stem().string();
      constexpr std::string_view kDemo = "_demo";
      if (name.ends_with(kDemo)) name.resize(name.size() - kDemo.size());
    }
    if (name != data_set && name != kOfAll && name != "." && name != "..")
      add(name, "single task, named by data.paths");
  }
  add(data_set, "data set of the configuration");
  add(kOfAll, "of all data");
  return names;
}

std::optional<StatisticsName> find_statistics(const std::string& path, const std::vector<StatisticsName>& names) {
  const Json file = statistics_file(path);
  for (const StatisticsName& name : names)
    if (file.contains(name.name)) return name;
  return std::nullopt;
}

std::vector<double> reference_state_mean(const std::string& path, const std::string& name,
                                         const std::vector<int>& slots) {
  const Json file = statistics_file(path);
  if (!file.contains(name)) return {};
  const std::vector<double> mean = list_of_slots(file, path, name, "state_mean"),
                            deviation = list_of_slots(file, path, name, "state_std");
  const std::set<int> own(slots.begin(), slots.end());
  for (int slot = 0; slot < models::kStateSlots; ++slot) {
    const auto at = static_cast<std::size_t>(slot);
    const bool filled = mean[at] != 0 || deviation[at] != 0;
    COHORT_THROW_UNLESS(
        filled == own.contains(slot),
        "{}: {} has {} in slot {}{}, but data.proprio {} it: these are statistics of another data set, or "
        "model.rdt.slots says another place; model.rdt.dataset_stat= (empty) computes the mean from the data",
        path, name, filled ? "numbers" : "none", slot,
        models::slot_name(slot).empty() ? "" : " (" + models::slot_name(slot) + ")",
        own.contains(slot) ? "fills" : "does not fill");
  }
  std::vector<double> result;
  for (const int slot : slots) result.push_back(mean[static_cast<std::size_t>(slot)]);
  return result;
}

std::string small_deviations(const std::string& path, const std::string& name, const std::string& key,
                             const std::vector<int>& slots, const std::vector<double>& deviations) {
  COHORT_CHECK(slots.size() == deviations.size(), "{} slots and {} deviations", slots.size(), deviations.size());
  const Json file = statistics_file(path);
  if (!file.contains(name) || !file.at(name).is_object() || !file.at(name).contains(key)) return "";
  const std::vector<double> given = list_of_slots(file, path, name, key);
  std::size_t worst = slots.size(), small = 0;
  const auto of_file = [&](std::size_t i) { return given[static_cast<std::size_t>(slots[i])]; };
  for (std::size_t i = 0; i < slots.size(); ++i) {
    // A slot that the file leaves empty says nothing.
    if (of_file(i) <= 0 || of_file(i) * kFarBelow > deviations[i]) continue;
    ++small;
    if (worst == slots.size() || deviations[i] / of_file(i) > deviations[worst] / of_file(worst)) worst = i;
  }
  if (small == 0) return "";
  return format("{} of {} is {:.2g}, a {:.0f}th of the data's {:.2g}{}", key, name_or_number(slots[worst]),
                of_file(worst), deviations[worst] / of_file(worst), deviations[worst],
                small > 1 ? format(" ({} more likewise)", small - 1) : "");
}

}  // namespace cohort::policies
