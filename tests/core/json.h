/// JSON texts of tests, parsed by code that is compiled once for all of them.
#pragma once
#include <nlohmann/json.hpp>
#include <string_view>

namespace cohort {

/// Throws nlohmann::json::parse_error.
nlohmann::json parse_json(std::string_view text);
/// The same with the keys in the order of the text.
nlohmann::ordered_json parse_ordered_json(std::string_view text);

}  // namespace cohort
