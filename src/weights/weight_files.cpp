#include "weights/weight_files.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/near_file.h"
#include "weights/torch_zip.h"

namespace cohort::weights {
namespace {

/// The files that an index divides its tensors over.
SafetensorsFile read_index(const std::filesystem::path& index) {
  const nlohmann::ordered_json json = try_json<nlohmann::ordered_json>(read_file(index));
  COHORT_THROW_UNLESS(json.is_object() && json.contains("weight_map") && json.at("weight_map").is_object(),
                      "{}: is no index of weights: it has no weight_map", index.string());
  std::set<std::string> files;
  for (const auto& [name, file] : json.at("weight_map").items()) {
    COHORT_THROW_UNLESS(file.is_string() && std::filesystem::path(file.get<std::string>()).filename().string() ==
                                                file.get<std::string>(),
                        "{}: weight_map.{} is not the name of a file beside it", index.string(), name);
    files.insert(file.get<std::string>());
  }
  SafetensorsFile all;
  std::set<std::string> names;
  for (const std::string& file : files)
    for (auto& [name, tensor] : read_weights(index.parent_path() / file).tensors) {
      COHORT_THROW_UNLESS(names.insert(name).second, "{}: {} is in two of its files", index.string(), name);
      all.tensors.emplace_back(name, std::move(tensor));
    }
  for (const auto& [name, file] : json.at("weight_map").items())
    COHORT_THROW_UNLESS(names.count(name), "{}: {} should be in {}, but is not", index.string(), name,
                        file.get<std::string>());
  return all;
}

}  // namespace

SafetensorsFile read_weights(const std::filesystem::path& path) {
  std::error_code unreadable;
  if (std::filesystem::is_directory(path, unreadable)) {
    for (const char* name :
         {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin", "pytorch_model.bin.index.json"})
      if (std::filesystem::exists(path / name, unreadable)) return read_weights(path / name);
    throw Error(format("{}: holds no model.safetensors, no pytorch_model.bin and no index of either", path.string()));
  }
  COHORT_THROW_UNLESS(std::filesystem::is_regular_file(path, unreadable), "{}: there is no such file{}", path.string(),
                      near_file(path));
  if (path.string().ends_with(".index.json")) return read_index(path);
  return is_torch_file(path) ? read_torch_zip(path) : read_safetensors(path);
}

}  // namespace cohort::weights
