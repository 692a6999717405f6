/// Numbers and texts of the JSON files beside RLDS records. `where`: of messages, "features.json: feature steps".
#pragma once
#include <charconv>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::data {

/// Protocol buffers write 64-bit numbers as texts. Throws Error for what is no whole number.
inline std::int64_t whole_number(const nlohmann::ordered_json& value, const std::string& where, const char* what) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  std::int64_t result = 0;
  bool good = value.is_string();
  if (good) {
    const auto& text = value.get_ref<const std::string&>();
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), result);
    good = error == std::errc() && end == text.data() + text.size();
  }
  COHORT_THROW_UNLESS(good, "{}: {} is {}, not a whole number", where, what, json_text(value));
  return result;
}

/// The member `name`; `otherwise` where there is none. Throws Error for what is no text.
inline std::string text_of(const nlohmann::ordered_json& object, const char* name, const std::string& where,
                           const std::string& otherwise) {
  const auto found = object.find(name);
  if (found == object.end()) return otherwise;
  COHORT_THROW_UNLESS(found->is_string(), "{}: {} is {}, not a text", where, name, json_text(*found));
  return found->get<std::string>();
}

}  // namespace cohort::data
