/// The value of a setting as a user would type it behind "path=".
#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "core/json_text.h"

namespace cohort {

/// Text bare, a list as [a,b], the rest as JSON has it, and text as JSON has it, too, where it would be read as something else:
/// Fields::apply_override() of it gives the same value again.
std::string typed_text(const nlohmann::ordered_json& value, BadUtf8 bad = BadUtf8::kRefused);
std::string typed_text(const nlohmann::json& value, BadUtf8 bad = BadUtf8::kRefused);

/// The same within a sentence: "unset" where there is none, "" for an empty text.
std::string said_text(const nlohmann::ordered_json& value);

}  // namespace cohort
