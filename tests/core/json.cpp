#include "core/json.h"

namespace cohort {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text);
}
nlohmann::ordered_json parse_ordered_json(std::string_view text) {
  return nlohmann::ordered_json::parse(text);
}

}  // namespace cohort
