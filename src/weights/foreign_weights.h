/// What may differ between weights in a file and a model's own, wherever weights are read: element types that convert,
/// and the prefixes that wrappers leave in names. Whatever else differs is an error (weights.h).
#pragma once
#include <cstddef>
#include <string>

#include <ATen/core/Tensor.h>

namespace cohort::weights {

/// Whether a weight of one element type may become one of another: floats of 16, 32 and 64 bits into each other, and
/// what is equal. Integers and 8-bit floats are no floats: such weights are quantised, and mean something only with
/// their scales.
bool may_convert(at::ScalarType from, at::ScalarType to);

/// "int8", "float32", "bfloat16": PyTorch's names.
std::string type_name(at::ScalarType type);

/// "one.weight is int8 in the file and float32 in the model".
std::string type_difference(const std::string& name, at::ScalarType in_file, at::ScalarType in_model);

/// What to do about a type that does not convert.
inline constexpr const char* kTypeRemedy =
    "Integers and 8-bit floats are quantised weights, which mean something only with their scales: turn them back into "
    "float32 or bfloat16 first.";

/// The key without the prefixes that DataParallel, DistributedDataParallel ("module.") and torch.compile ("_orig_mod.")
/// leave, at its beginning and inside.
std::string without_wrappers(const std::string& key);

/// Counts what of a file was taken otherwise than it stands there, and says it in the log, once.
class TakenOtherwise {
 public:
  explicit TakenOtherwise(std::string source) : source_(std::move(source)) {}
  void name(const std::string& in_file, const std::string& own);
  void type(at::ScalarType in_file, at::ScalarType own);
  void say() const;

 private:
  std::string source_, example_, from_, to_;
  std::size_t names_ = 0, types_ = 0;
};

}  // namespace cohort::weights
