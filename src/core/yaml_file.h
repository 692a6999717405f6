/// YAML files as JSON values.
#pragma once
#include <string>

#include "core/config.h"

namespace cohort {

/// Maps become objects, sequences arrays, scalars null, bools, numbers or texts as YAML 1.2's core schema has them (and
/// True, False as PyYAML writes them); keys are texts. Throws Error naming the file and the line at fault, a key that
/// stands twice, and that this build has no yaml-cpp.
config::Json read_yaml_file(const std::string& path);
/// The same for a text; path: of it, for messages.
config::Json read_yaml(const std::string& text, const std::string& path);

}  // namespace cohort
