// Stands in where the build has no yaml-cpp.
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/yaml_file.h"

namespace cohort {

config::Json read_yaml_file(const std::string& path) {
  throw Error(format("{}: this build reads no YAML: install libyaml-cpp-dev and build again", path));
}

config::Json read_yaml(const std::string&, const std::string& path) {
  return read_yaml_file(path);
}

}  // namespace cohort
