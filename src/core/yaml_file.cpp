#include "core/yaml_file.h"

#include <charconv>
#include <nlohmann/json.hpp>

#include <yaml-cpp/yaml.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort {
namespace {

using config::Json;

Json yaml_scalar(const YAML::Node& node) {
  const std::string& text = node.Scalar();
  if (node.Tag() == "!") return text;  // quoted
  if (text.empty() || text == "~" || text == "null") return nullptr;
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  const char* end = text.data() + text.size();
  std::int64_t whole = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, whole); error == std::errc() && at == end)
    return whole;
  double real = 0;
  if (const auto [at, error] = std::from_chars(text.data(), end, real); error == std::errc() && at == end) return real;
  return text;
}

Json yaml_value(const YAML::Node& node, const std::string& path) {
  if (node.IsScalar()) return yaml_scalar(node);
  if (node.IsSequence()) {
    Json list = Json::array();
    for (const YAML::Node& item : node) list.push_back(yaml_value(item, path));
    return list;
  }
  if (!node.IsMap()) return nullptr;
  Json object = Json::object();
  for (const auto& item : node) {
    COHORT_THROW_UNLESS(item.first.IsScalar(), "{}: line {}: a key that is no text", path, item.first.Mark().line + 1);
    const std::string key = item.first.Scalar();
    COHORT_THROW_UNLESS(!object.contains(key), "{}: line {}: {} stands twice", path, item.first.Mark().line + 1, key);
    object[key] = yaml_value(item.second, path);
  }
  return object;
}

}  // namespace

Json read_yaml_file(const std::string& path) {
  return read_yaml(read_file(path), path);
}

Json read_yaml(const std::string& text, const std::string& path) {
  try {
    return yaml_value(YAML::Load(text), path);
  } catch (const YAML::Exception& e) {
    throw Error(format("{}: line {}: {}", path, e.mark.line + 1, e.msg));
  }
}

}  // namespace cohort
