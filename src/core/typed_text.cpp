#include "core/typed_text.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/format.h"

namespace cohort {
namespace {

/// Whether the text stands for itself between the commas of a list.
template <class J>
bool is_bare_item(const J& item) {
  if (!item.is_string()) return true;
  const std::string text = item.template get<std::string>();
  return !text.empty() && text.find_first_of(",[]()\"") == std::string::npos && text.front() != ' ' &&
         text.back() != ' ' && try_json<J>(text).is_discarded();
}

template <class J>
std::string typed(const J& value, BadUtf8 bad) {
  if (value.is_string()) {
    const std::string text = value.template get<std::string>();
    const bool quoted = text.size() >= 2 && text.front() == '"' && text.back() == '"';
    return quoted ? json_text(value, -1, bad) : text;
  }
  if (!value.is_array() || !std::all_of(value.begin(), value.end(), is_bare_item<J>)) return json_text(value, -1, bad);
  std::vector<std::string> items;
  for (const J& item : value) items.push_back(typed(item, bad));
  return "[" + cohort::join(items, ",") + "]";
}

}  // namespace

std::string typed_text(const nlohmann::ordered_json& value, BadUtf8 bad) {
  return typed(value, bad);
}

std::string typed_text(const nlohmann::json& value, BadUtf8 bad) {
  return typed(value, bad);
}

std::string said_text(const nlohmann::ordered_json& value) {
  if (value.is_null()) return "unset";
  return value == "" ? "\"\"" : typed_text(value);
}

}  // namespace cohort
