/// Weights of a module in safetensors files, under the names that the PyTorch reference of the model uses.
#pragma once
#include <filesystem>
#include <map>
#include <string>

#include "weights/named_tensors.h"

namespace torch::nn {
class Module;
}

namespace cohort::weights {

/// Tensors of which no two share memory, and under `aliases` the names that were left out: other name -> kept name, as
/// safetensors.torch.save_model notes tied weights in the metadata.
struct DistinctTensors {
  NamedTensors tensors;
  std::map<std::string, std::string> aliases;
};
DistinctTensors distinct(const NamedTensors& tensors);

/// Writes module_state() (see safetensors.h for the errors).
void save_weights(const torch::nn::Module& module, const std::filesystem::path& path);

struct LoadWeightsOptions {
  /// false: names that only one side has are left alone (reported in the log).
  bool strict = true;
};

/// Copies a file's tensors into the module. Floats of 16, 32 and 64 bits are converted to its element types, and keys
/// with the prefixes that wrappers leave behind ("module.", "_orig_mod.", also inside: ".module.") match the plain
/// name; the log says so. Throws Error naming the file, the missing, the superfluous, the misshapen tensors and those
/// of other types (the first few of each); then the module is unchanged.
void load_weights(torch::nn::Module& module, const std::filesystem::path& path, const LoadWeightsOptions& options = {});

/// As above from tensors that have been read; `source` names them in messages.
void load_weights(torch::nn::Module& module, const NamedTensors& tensors,
                  const std::map<std::string, std::string>& aliases, const std::string& source,
                  const LoadWeightsOptions& options = {});

}  // namespace cohort::weights
