/// Files of settings, and JSON that people write or edit by hand.
#pragma once
#include <string>

#include "core/config.h"

namespace cohort {

/// A file of settings: YAML where its name ends in .yaml or .yml, else JSON, which may have comments. Throws Error naming
/// the file and the line at fault.
config::Json read_settings_file(const std::string& path);
/// JSON with comments out of a text; path: of it, for messages. Throws Error naming the line at fault.
config::Json read_json_text(const std::string& text, const std::string& path);

}  // namespace cohort
