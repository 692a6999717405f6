#include "policies/reference_weights.h"

#include <map>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "policies/weight_names.h"
#include "weights/foreign_weights.h"

namespace cohort::policies {
namespace {

constexpr std::size_t kNamesPerList = 5;
const std::string kTrunk = ".backbone.nets.";       // robomimic's image encoders
const std::string kNamedTrunk = "model.backbone.";  // LeRobot's, whose children have torchvision's names

void add(std::string& list, std::size_t& count, const std::string& name) {
  if (count++ < kNamesPerList) list += (list.empty() ? "" : ", ") + name;
}

std::map<std::string, at::Tensor> by_name(const weights::NamedTensors& tensors) {
  return {tensors.begin(), tensors.end()};
}

/// What of the file's tensors has another shape or type than the policy's.
class Differences {
 public:
  explicit Differences(std::string source) : source_(std::move(source)) {}
  void compare(const std::string& name, const at::Tensor& given, const at::Tensor& own) {
    if (given.sizes() != own.sizes())
      add(shapes_, shape_count_, format("{} is {}, not {}", name, c10::str(given.sizes()), c10::str(own.sizes())));
    if (!weights::may_convert(given.scalar_type(), own.scalar_type()))
      add(types_, type_count_, weights::type_difference(name, given.scalar_type(), own.scalar_type()));
  }
  /// Beside another complaint: "; 3 tensors have other types: ..."; empty: none has.
  std::string types_beside() const {
    return type_count_ == 0
               ? ""
               : format("; {} tensors have other types: {}. {}", type_count_, types_, weights::kTypeRemedy);
  }
  /// Throws Error where there are any.
  void refuse(const char* does_not_fit) const {
    COHORT_THROW_UNLESS(shape_count_ == 0, "{}{}: {} tensors have other shapes than the policy's: {}", source_,
                        does_not_fit, shape_count_, shapes_);
    COHORT_THROW_UNLESS(type_count_ == 0, "{}{}: {} tensors have other types: {}. {}", source_, does_not_fit,
                        type_count_, types_, weights::kTypeRemedy);
  }

 private:
  std::string source_, shapes_, types_;
  std::size_t shape_count_ = 0, type_count_ = 0;
};

/// Whether the names of the file and of the policy differ in the DROID package's MLP over the joined vector.
std::string hint(const std::string& unknown, const std::string& missing) {
  const std::string mlp = ".combine.";
  if (unknown.find(mlp) != std::string::npos)
    return "; this is a checkpoint of the DROID package, which needs model.images.combine=true";
  if (missing.find(mlp) != std::string::npos)
    return "; robomimic's checkpoints, which lack combine.*, need model.images.combine=false";
  return "";
}

/// robomimic counts the children of a ResNet (0, 1, 4, ..., 7); torchvision names them. `inside` is what follows the
/// trunk's prefix: "4.0.conv1.weight".
std::string torchvision_name(const std::string& inside) {
  const std::size_t dot = inside.find('.');
  const std::string child = inside.substr(0, dot), rest = inside.substr(dot);
  if (child == "0") return "conv1" + rest;
  if (child == "1") return "bn1" + rest;
  return format("layer{}{}", std::stoi(child) - 3, rest);
}

/// torchvision's name of a tensor of a trunk; empty: it is in none.
std::string name_in_trunk(const std::string& name) {
  if (name.starts_with(kNamedTrunk)) return name.substr(kNamedTrunk.size());
  const std::size_t at = name.find(kTrunk);
  return at == std::string::npos ? "" : torchvision_name(name.substr(at + kTrunk.size()));
}

/// A norm of the trunk: bn1.weight, layer1.0.bn2.bias, layer1.0.downsample.1.weight.
bool is_norm(const std::string& name) {
  return name.find("bn") != std::string::npos || name.find("downsample.1.") != std::string::npos;
}

}  // namespace

weights::NamedTensors to_reference(const torch::nn::Module& policy, const weights::NamedTensors& tensors,
                                   const std::string& source) {
  const auto ours = by_name(tensors);
  weights::NamedTensors result;
  std::string missing;
  std::size_t count = 0;
  Differences differences(source);
  for (const auto& [name, tensor] : weights::module_state(policy))
    if (const auto found = ours.find(name); found != ours.end()) differences.compare(name, found->second, tensor);
  for (const auto& [key, name] : reference_keys(policy)) {
    const auto found = ours.find(name);
    if (found == ours.end())
      add(missing, count, name);
    else
      result.emplace_back(key, found->second);
  }
  COHORT_THROW_UNLESS(count == 0, "{}: {} tensors of the policy are missing: {}{}", source, count, missing,
                      hint("", missing));
  differences.refuse("");
  return result;
}

weights::NamedTensors from_reference(const torch::nn::Module& policy, const weights::NamedTensors& tensors,
                                     const std::string& source) {
  std::map<std::string, std::string> name_of;
  for (const auto& [key, name] : reference_keys(policy)) {
    name_of[key] = name;
    name_of[weights::without_wrappers(key)] = name;
    name_of[name] = name;
  }
  std::map<std::string, at::Tensor> ours;
  std::string unknown, missing;
  std::size_t unknown_count = 0, missing_count = 0;
  weights::TakenOtherwise otherwise(source);
  for (const auto& [key, tensor] : tensors) {
    auto found = name_of.find(key);
    if (found == name_of.end()) {
      const std::string plain = weights::without_wrappers(key);
      found = name_of.find(plain);
      if (found != name_of.end()) otherwise.name(key, plain);
    }
    if (found == name_of.end())
      add(unknown, unknown_count, key);
    else
      ours.emplace(found->second, tensor);
  }
  weights::NamedTensors result;
  Differences differences(source);
  for (const auto& [name, tensor] : weights::module_state(policy)) {
    const auto found = ours.find(name);
    if (found == ours.end()) {
      add(missing, missing_count, name);
      continue;
    }
    differences.compare(name, found->second, tensor);
    result.emplace_back(name, found->second);
  }
  COHORT_THROW_UNLESS(unknown_count == 0 && missing_count == 0,
                      "{} does not fit this policy: {} keys that it does not know ({}), {} tensors missing ({}){}{}",
                      source, unknown_count, unknown, missing_count, missing, hint(unknown, missing),
                      differences.types_beside());
  differences.refuse(" does not fit this policy");
  otherwise.say();
  return result;
}

void load_backbones(torch::nn::Module& policy, const weights::NamedTensors& tensors, const std::string& source) {
  std::map<std::string, at::Tensor> given;
  weights::TakenOtherwise otherwise(source);
  for (const auto& [name, tensor] : tensors) {
    const std::string plain = weights::without_wrappers(name);
    otherwise.name(name, plain);
    given.emplace(plain, tensor);
  }
  const at::NoGradGuard no_grad;
  const weights::NamedTensors state = weights::module_state(policy);
  // Group norms, which have no running mean, begin at 1 and 0, as the reference's do.
  bool batch_norm = false, found_trunk = false;
  for (const auto& [name, tensor] : state)
    batch_norm = batch_norm || (!name_in_trunk(name).empty() && name.ends_with(".running_mean"));
  for (const auto& [name, tensor] : state) {
    const std::string theirs = name_in_trunk(name);
    if (theirs.empty()) continue;
    found_trunk = true;
    if (!batch_norm && is_norm(theirs)) continue;
    const auto found = given.find(theirs);
    COHORT_THROW_UNLESS(found != given.end(),
                        "{}: {} is missing; it should hold a torchvision ResNet of this depth, made as "
                        "docs/guide/policies.md shows",
                        source, theirs);
    COHORT_THROW_UNLESS(found->second.sizes() == tensor.sizes(), "{}: {} has shape {}, but the trunk has {}", source,
                        theirs, c10::str(found->second.sizes()), c10::str(tensor.sizes()));
    COHORT_THROW_UNLESS(weights::may_convert(found->second.scalar_type(), tensor.scalar_type()), "{}: {}. {}", source,
                        weights::type_difference(theirs, found->second.scalar_type(), tensor.scalar_type()),
                        weights::kTypeRemedy);
    otherwise.type(found->second.scalar_type(), tensor.scalar_type());
    at::Tensor target = tensor;
    target.copy_(found->second);
  }
  otherwise.say();
  COHORT_THROW_UNLESS(found_trunk, "{}: the policy has no image trunk to load it into", source);
}

}  // namespace cohort::policies
