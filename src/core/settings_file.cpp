#include "core/settings_file.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/placeholder_file.h"
#include "core/yaml_file.h"

namespace cohort {

config::Json read_json_text(const std::string& text, const std::string& path) {
  COHORT_THROW_UNLESS(text.find_first_not_of(" \t\r\n") != std::string::npos, "{} is empty, and no JSON", path);
  if (const std::string fault = stand_in_fault(text); !fault.empty()) throw Error(format("{} {}", path, fault));
  try {
    return parse_json<config::Json>(text, JsonComments::kAllowed);
  } catch (const config::Json::parse_error& e) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(e.byte, text.size()));
    throw Error(
        format("{}: line {} is no JSON: look for a comma that is missing or one too many, a bracket or a quote "
               "there or just before; `python3 -m json.tool {}` checks it",
               path, 1 + std::count(text.begin(), end, '\n'), path));
  } catch (const config::Json::exception& e) {  // a number too large for any type
    throw Error(format("{} is no JSON: {}", path, e.what()));
  }
}

config::Json read_settings_file(const std::string& path) {
  if (path.ends_with(".yaml") || path.ends_with(".yml")) return read_yaml_file(path);
  return read_json_text(read_file(path), path);
}

}  // namespace cohort
