#include "core/json_text.h"

#include <nlohmann/json.hpp>

namespace cohort {
namespace {

template <class J>
std::string text_of(const J& json, int indent, BadUtf8 bad) {
  return json.dump(indent, ' ', false,
                   bad == BadUtf8::kReplaced ? J::error_handler_t::replace : J::error_handler_t::strict);
}

}  // namespace

template <class J>
J parse_json(std::string_view text, JsonComments comments) {
  return J::parse(text.begin(), text.end(), nullptr, true, comments == JsonComments::kAllowed);
}

template <class J>
J try_json(std::string_view text, JsonComments comments) {
  return J::parse(text.begin(), text.end(), nullptr, false, comments == JsonComments::kAllowed);
}

template nlohmann::ordered_json parse_json(std::string_view, JsonComments);
template nlohmann::ordered_json try_json(std::string_view, JsonComments);
template nlohmann::json parse_json(std::string_view, JsonComments);
template nlohmann::json try_json(std::string_view, JsonComments);

std::string json_text(const nlohmann::ordered_json& json, int indent, BadUtf8 bad) {
  return text_of(json, indent, bad);
}
std::string json_text(const nlohmann::json& json, int indent, BadUtf8 bad) {
  return text_of(json, indent, bad);
}

}  // namespace cohort
