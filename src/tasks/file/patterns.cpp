#include "tasks/file/patterns.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <regex>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::tasks {

namespace {

std::regex regex_of(const std::string& pattern, const std::string& what) {
  try {
    return std::regex(pattern, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& e) {
    throw Error(format("the pattern '{}' of {}s is no regular expression: {}", pattern, what, e.what()));
  }
}

bool matches(const std::regex& regex, const std::string& name) {
  return std::regex_match(name, regex) || std::regex_match(bare_name(name), regex);
}

[[noreturn]] void nothing_matches(const std::string& pattern, std::span<const std::string> names,
                                  const std::string& what) {
  std::vector<std::string> known(names.begin(), names.end()), short_names;
  for (const std::string& name : names) short_names.push_back(bare_name(name));
  const std::string near = config::nearest(pattern, short_names);
  constexpr std::size_t kMost = 12;
  const std::size_t more = known.size() > kMost ? known.size() - kMost : 0;
  known.resize(known.size() - more);
  throw Error(
      format("no {} matches '{}'{}; {}", what, pattern, near.empty() ? "" : format(", did you mean '{}'?", near),
             known.empty()
                 ? format("the model has no {}s", what)
                 : format("there are {}{}", cohort::join(known, ", "), more > 0 ? format(" and {} more", more) : "")));
}

}  // namespace

std::string bare_name(const std::string& name) {
  return name.substr(name.find('/') + 1);  // npos + 1 is 0
}

std::vector<int> match_names(std::span<const std::string> names, std::span<const std::string> patterns,
                             const std::string& what) {
  std::vector<bool> chosen(names.size());
  for (const std::string& pattern : patterns) {
    const std::regex regex = regex_of(pattern, what);
    bool any = false;
    for (std::size_t i = 0; i < names.size(); ++i)
      if (matches(regex, names[i])) chosen[i] = any = true;
    if (!any) nothing_matches(pattern, names, what);
  }
  std::vector<int> indices;
  for (std::size_t i = 0; i < names.size(); ++i)
    if (chosen[i]) indices.push_back(static_cast<int>(i));
  return indices;
}

std::vector<double> values_by_name(const config::Json& value, std::span<const std::string> names,
                                   const std::string& what) {
  if (value.is_number()) return std::vector<double>(names.size(), value.get<double>());
  COHORT_THROW_UNLESS(value.is_object(), "{} is a number, or an object of patterns and numbers", json_text(value));
  std::vector<double> values(names.size());
  std::vector<bool> has(names.size());
  for (const auto& [pattern, number] : value.items()) {
    COHORT_THROW_UNLESS(number.is_number(), "'{}: {}' gives no number", pattern, json_text(number));
    const std::string patterns[] = {pattern};
    for (const int i : match_names(names, patterns, what)) {
      const auto at = static_cast<std::size_t>(i);
      if (!has[at]) values[at] = number.get<double>(), has[at] = true;
    }
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    COHORT_THROW_UNLESS(has[i], "no pattern of {} gives a number for the {} '{}': add '.*' as the last",
                        json_text(value), what, names[i]);
  return values;
}

}  // namespace cohort::tasks
