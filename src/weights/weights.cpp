#include "weights/weights.h"

#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "weights/foreign_weights.h"
#include "weights/safetensors.h"

namespace cohort::weights {
namespace {

constexpr std::size_t kNamesInMessage = 5;

std::string list_names(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamesInMessage; ++i) text += (i ? ", " : "") + names[i];
  if (names.size() > kNamesInMessage) text += format(" and {} more", names.size() - kNamesInMessage);
  return text;
}

std::string shape_text(const at::Tensor& tensor) {
  std::string text = "(";
  for (std::int64_t i = 0; i < tensor.dim(); ++i) text += format("{}{}", i ? ", " : "", tensor.size(i));
  return text + ")";
}

}  // namespace

DistinctTensors distinct(const NamedTensors& tensors) {
  DistinctTensors result;
  using Place = std::tuple<const void*, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>>;
  std::map<Place, std::string> kept;
  for (const auto& [name, tensor] : tensors) {
    if (tensor.numel() > 0) {
      const Place place(tensor.const_data_ptr(), static_cast<std::int64_t>(tensor.scalar_type()), tensor.sizes().vec(),
                        tensor.strides().vec());
      const auto [first, is_new] = kept.try_emplace(place, name);
      if (!is_new) {
        result.aliases[name] = first->second;
        continue;
      }
    }
    result.tensors.emplace_back(name, tensor);
  }
  return result;
}

void save_weights(const torch::nn::Module& module, const std::filesystem::path& path) {
  auto [tensors, metadata] = distinct(module_state(module));
  metadata["format"] = "pt";
  write_safetensors(path, tensors, metadata);
}

void load_weights(torch::nn::Module& module, const std::filesystem::path& path, const LoadWeightsOptions& options) {
  const auto file = read_safetensors(path);
  load_weights(module, file.tensors, file.metadata, path.string(), options);
}

void load_weights(torch::nn::Module& module, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& aliases, const std::string& source,
                  const LoadWeightsOptions& options) {
  const at::NoGradGuard no_grad;
  const NamedTensors of_module = module_state(module);
  std::unordered_set<std::string> module_names;
  for (const auto& [name, tensor] : of_module) module_names.insert(name);
  std::unordered_map<std::string, at::Tensor> given;
  TakenOtherwise otherwise(source);
  for (const auto& [name, tensor] : tensors) {
    const std::string plain = module_names.count(name) ? name : without_wrappers(name);
    if (module_names.count(plain)) otherwise.name(name, plain);
    given.emplace(plain, tensor);
  }
  for (const auto& [alias, kept] : aliases) {
    if (const auto in_file = given.find(kept); in_file != given.end()) given.emplace(alias, in_file->second);
  }
  // A tied weight that the file holds under one name only is whole in the module.
  std::unordered_set<const c10::TensorImpl*> reached;
  for (const auto& [name, tensor] : of_module) {
    if (given.count(name)) reached.insert(tensor.unsafeGetTensorImpl());
  }
  std::vector<std::string> missing, superfluous, misshapen, mistyped;
  for (const auto& [name, tensor] : of_module) {
    const auto in_file = given.find(name);
    if (in_file == given.end()) {
      if (!reached.count(tensor.unsafeGetTensorImpl())) missing.push_back(name);
    } else if (in_file->second.sizes() != tensor.sizes()) {
      misshapen.push_back(
          format("{} is {} in the file and {} in the model", name, shape_text(in_file->second), shape_text(tensor)));
    } else if (!may_convert(in_file->second.scalar_type(), tensor.scalar_type())) {
      mistyped.push_back(type_difference(name, in_file->second.scalar_type(), tensor.scalar_type()));
    } else {
      otherwise.type(in_file->second.scalar_type(), tensor.scalar_type());
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (!module_names.count(name) && !module_names.count(without_wrappers(name))) superfluous.push_back(name);
  }
  std::string complaint;
  if (!misshapen.empty()) complaint += format(" Other shapes: {}.", list_names(misshapen));
  if (!mistyped.empty()) complaint += format(" Other types: {}. {}", list_names(mistyped), kTypeRemedy);
  if (options.strict && !missing.empty()) complaint += format(" Missing: {}.", list_names(missing));
  if (options.strict && !superfluous.empty())
    complaint += format(" Unknown to the model: {}.", list_names(superfluous));
  COHORT_THROW_UNLESS(complaint.empty(),
                      "{} does not fit the model.{} Were they made with other settings of the model?", source,
                      complaint);
  otherwise.say();
  if (!missing.empty()) log::warning("{}: the model keeps its own {}", source, list_names(missing));
  if (!superfluous.empty()) log::warning("{}: ignored {}", source, list_names(superfluous));
  for (const auto& [name, tensor] : of_module) {
    if (const auto in_file = given.find(name); in_file != given.end()) at::Tensor(tensor).copy_(in_file->second);
  }
}

}  // namespace cohort::weights
