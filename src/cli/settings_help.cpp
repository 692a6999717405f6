#include "cli/settings_help.h"

#include <algorithm>
#include <map>
#include <sstream>

#include "cli/subcommand.h"
#include "core/error.h"

namespace cohort::cli {
namespace {

struct Entry {
  std::string path, text;  ///< text: as Fields::help() has it, with its line of explanation
};

std::vector<Entry> entries_of(const config::Fields& fields) {
  std::vector<Entry> entries;
  std::istringstream lines(fields.help());
  for (std::string line; std::getline(lines, line);) {
    const std::size_t equals = line.find(" = ");
    const bool begins = line.size() > 2 && line.starts_with("  ") && line[2] != ' ' && equals != std::string::npos;
    if (begins)
      entries.push_back({line.substr(2, equals - 2), line + "\n"});
    else if (!entries.empty())
      entries.back().text += line + "\n";
  }
  return entries;
}

bool is_in_group(const std::string& path, const std::string& group) {
  return path == group || path.starts_with(group + ".");
}

/// The settings that a key means: that one, those of that group, or those whose path holds it.
std::vector<const Entry*> meant_by(const std::string& key, const std::vector<Entry>& entries) {
  std::vector<const Entry*> found;
  for (const Entry& entry : entries)
    if (key == "all" || is_in_group(entry.path, key)) found.push_back(&entry);
  if (!found.empty()) return found;
  for (const Entry& entry : entries)
    if (entry.path.find(key) != std::string::npos) found.push_back(&entry);
  return found;
}

/// "train", and of a group with many settings "model.NAME": what a screen can hold.
std::vector<std::pair<std::string, int>> groups_of(const std::vector<Entry>& entries,
                                                   const std::vector<std::string>& basic) {
  constexpr int kMany = 60;
  const auto is_basic = [&](const Entry& e) { return std::find(basic.begin(), basic.end(), e.path) != basic.end(); };
  std::map<std::string, int> of_section;
  for (const Entry& entry : entries) ++of_section[entry.path.substr(0, entry.path.find('.'))];
  std::vector<std::pair<std::string, int>> groups;
  for (const Entry& entry : entries) {
    const std::size_t dot = entry.path.find('.');
    if (dot == std::string::npos || is_basic(entry)) continue;
    std::string name = entry.path.substr(0, dot);
    if (of_section[name] > kMany)
      if (const std::size_t second = entry.path.find('.', dot + 1); second != std::string::npos)
        name = entry.path.substr(0, second);
    const auto known =
        std::find_if(groups.begin(), groups.end(), [&](const auto& group) { return group.first == name; });
    if (known == groups.end())
      groups.emplace_back(name, 1);
    else
      ++known->second;
  }
  return groups;
}

}  // namespace

bool names_setting(const config::Fields& fields, const std::string& key) {
  return !meant_by(key, entries_of(fields)).empty();
}

std::string settings_help(const config::Fields& fields, const run::Training& training,
                          const std::vector<std::string>& keys) {
  const std::string job = training.name();
  const std::vector<std::string> basic = training.basic_settings();
  const std::vector<Entry> entries = entries_of(fields);
  std::string text;
  for (const std::string& key : keys) {
    const std::vector<const Entry*> meant = meant_by(key, entries);
    if (meant.empty()) {
      std::vector<std::string> paths;
      for (const Entry& entry : entries) paths.push_back(entry.path);
      const std::string near = config::nearest(key, paths);
      throw UsageError(format("{} has no setting with '{}' in its name{}; `cohort train {} --help` lists the groups",
                              job, key, near.empty() ? "" : format("; did you mean '{}'?", near), job));
    }
    for (const Entry* entry : meant) text += entry->text;
  }
  if (!keys.empty()) return text;

  text += "basic settings, with their defaults:\n";
  for (const std::string& path : basic) {
    const auto entry = std::ranges::find(entries, path, &Entry::path);
    COHORT_CHECK(entry != entries.end(), "{} lists the setting {}, which it does not have", job, path);
    text += entry->text;
  }
  text += training.remark();
  text += "\ngroups of the others:\n";
  for (const auto& [name, count] : groups_of(entries, basic))
    text += format("  {:<22} {:>3} setting{}\n", name, count, count == 1 ? "" : "s");
  std::string top;
  for (const Entry& entry : entries)
    if (entry.path.find('.') == std::string::npos && entry.path != "job" &&
        std::find(basic.begin(), basic.end(), entry.path) == basic.end())
      top += (top.empty() ? "" : ", ") + entry.path;
  if (!top.empty()) text += format("  without a group: {}\n", top);
  return text + format(
                    "\n`cohort train {0} --help KEY` explains a setting, a group, or all with that part in their "
                    "names;\n`cohort train {0} --help all` explains all {1}.\n",
                    job, entries.size());
}

}  // namespace cohort::cli
