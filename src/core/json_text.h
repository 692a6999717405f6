/// JSON to and from text, compiled once: every file that calls nlohmann's parser and writer itself compiles both again,
/// which takes four seconds.
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace cohort {

enum class JsonComments {
  kRefused,
  kAllowed,  ///< `//` to the end of the line and `/* */`
};

/// `text` as JSON; J is nlohmann::ordered_json or nlohmann::json. Throws J::parse_error, which names line and column.
template <class J>
J parse_json(std::string_view text, JsonComments comments = JsonComments::kRefused);

/// `text` as JSON; what is none gives a value whose is_discarded() is true.
template <class J>
J try_json(std::string_view text, JsonComments comments = JsonComments::kRefused);

/// What becomes of bytes in texts that are no UTF-8.
enum class BadUtf8 {
  kRefused,   ///< throws J::type_error
  kReplaced,  ///< by U+FFFD: text of others' that must be written whatever it is
};

/// `json` as text in one line, or with `indent` spaces to each level if that is not negative.
std::string json_text(const nlohmann::ordered_json& json, int indent = -1, BadUtf8 bad = BadUtf8::kRefused);
std::string json_text(const nlohmann::json& json, int indent = -1, BadUtf8 bad = BadUtf8::kRefused);

}  // namespace cohort
