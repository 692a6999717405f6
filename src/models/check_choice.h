/// A setting of a model that is a word: one of those that its field takes, wherever its value came from.
#pragma once
#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "core/format.h"

namespace cohort::models {

/// Throws Error that names the setting of `model`, its value and what is allowed.
inline void check_choice(std::string_view model, std::string_view name, const std::string& value,
                         const std::vector<std::string>& choices) {
  COHORT_THROW_UNLESS(std::ranges::find(choices, value) != choices.end(), "{}: {} = \"{}\", but must be one of {}",
                      model, name, value, cohort::join(choices, ", "));
}

}  // namespace cohort::models
