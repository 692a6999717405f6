#include "data/names_of_sets.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include "core/error.h"
#include "core/observation_names.h"
#include "data/transforms/component.h"

namespace cohort::data {
namespace {

std::string trimmed(std::string text) {
  text.erase(0, std::min(text.find_first_not_of(' '), text.size()));
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// "1: action[2]" -> 1 and "action[2]"; nothing where no number and colon stand in front.
std::optional<std::pair<std::size_t, std::string>> entry_of_set(const std::string& text) {
  const std::size_t colon = text.find_first_not_of("0123456789");
  if (colon == 0 || colon == std::string::npos || text[colon] != ':') return std::nullopt;
  std::size_t set = 0;
  if (std::from_chars(text.data(), text.data() + colon, set).ec != std::errc()) return std::nullopt;
  return std::pair(set, trimmed(text.substr(colon + 1)));
}

}  // namespace

NamesOfSets::NamesOfSets(const std::vector<std::string>& names, std::size_t sets) {
  for (const std::string& text : names) {
    const auto entry = entry_of_set(text);
    const std::size_t equals = entry ? entry->second.find('=') : std::string::npos;
    COHORT_THROW_UNLESS(
        equals != std::string::npos,
        "names: '{}' is not SET: NAME=NAME OF THAT SET, e.g. \"1: top=laptop\" where the second data set "
        "calls laptop what the others call top",
        text);
    COHORT_THROW_UNLESS(entry->first < sets, "names: '{}' is for set {}, but there are {}, counted from 0", text,
                        entry->first, sets);
    Name& name = names_.emplace_back();
    name.text = text;
    name.set = entry->first;
    name.common = trimmed(entry->second.substr(0, equals));
    name.own = trimmed(entry->second.substr(equals + 1));
    COHORT_THROW_UNLESS(!name.common.empty() && !name.own.empty(), "names: '{}' lacks a name at one side of =", text);
  }
}

std::string NamesOfSets::component(std::size_t set, const std::string& text) const {
  for (const Name& name : names_)
    if (name.set == set && name.common == text) return name.own;
  const ComponentText parts(text);
  for (const Name& name : names_) {
    if (name.set != set || !same_observation(name.common, parts.field)) continue;
    std::string own = name.own + (parts.slice.empty() ? "" : "[" + parts.slice + "]");
    for (const std::string& transform : parts.transforms) own += " | " + transform;
    return own;
  }
  return text;
}

std::string NamesOfSets::picture(std::size_t set, const std::string& field) const {
  for (const Name& name : names_)
    if (name.set == set && (name.common == field || same_camera(name.common, field))) return name.own;
  return field;
}

std::vector<std::string> NamesOfSets::components(std::size_t set, const std::vector<std::string>& texts) const {
  std::vector<std::string> own;
  for (const std::string& text : texts) own.push_back(component(set, text));
  return own;
}

std::vector<std::string> NamesOfSets::pictures(std::size_t set, const std::vector<std::string>& fields) const {
  std::vector<std::string> own;
  for (const std::string& field : fields) own.push_back(picture(set, field));
  return own;
}

void NamesOfSets::check_used(const std::vector<std::string>& components,
                             const std::vector<std::string>& pictures) const {
  for (const Name& name : names_) {
    const bool used =
        std::any_of(components.begin(), components.end(),
                    [&](const std::string& text) {
                      return text == name.common || same_observation(ComponentText(text).field, name.common);
                    }) ||
        std::any_of(pictures.begin(), pictures.end(),
                    [&](const std::string& field) { return same_camera(field, name.common); });
    COHORT_THROW_UNLESS(used, "names: '{}': no action, observation or camera is called {}; there are {}", name.text,
                        name.common, join(components, ", ") + (pictures.empty() ? "" : ", " + join(pictures, ", ")));
  }
}

void take_entries_of_sets(std::vector<std::string>& list, std::vector<std::string>& names, std::size_t sets,
                          const std::string& what) {
  if (std::none_of(list.begin(), list.end(), [](const auto& text) { return entry_of_set(text).has_value(); })) return;
  std::vector<std::vector<std::string>> of_sets(sets);
  for (const std::string& text : list) {
    const auto entry = entry_of_set(text);
    COHORT_THROW_UNLESS(!entry || entry->first < sets, "{}: '{}' is for set {}, but there are {}, counted from 0", what,
                        text, entry ? entry->first : 0, sets);
    for (std::size_t set = 0; set < sets; ++set)
      if (!entry || entry->first == set) of_sets[set].push_back(entry ? entry->second : text);
  }
  for (std::size_t set = 1; set < sets; ++set) {
    COHORT_THROW_UNLESS(of_sets[set].size() == of_sets[0].size(),
                        "{}: set {} comes to {} entries and set 0 to {}: give each set one in the place of the other's",
                        what, set, of_sets[set].size(), of_sets[0].size());
    for (std::size_t i = 0; i < of_sets[set].size(); ++i)
      if (of_sets[set][i] != of_sets[0][i]) names.push_back(format("{}: {}={}", set, of_sets[0][i], of_sets[set][i]));
  }
  list = of_sets[0];
}

}  // namespace cohort::data
