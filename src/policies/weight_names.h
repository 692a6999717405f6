/// What the Python reference (the DROID policy-learning package, robomimic) calls the weights of a diffusion policy in
/// its checkpoints. Three differences to ours: its DataParallel wrappers leave ".module." behind; a camera that shares
/// another one's image encoder repeats all of its tensors; and an image encoder lists trunk and pool a second time, as
/// parts of a sequence (nets.0, nets.1).
///
///   for (auto& [key, tensor] : checkpoint["nets"])                        // theirs to ours
///     if (std::string name = own_name(*policy, key); !name.empty()) weights[name] = tensor;
///   for (auto& [key, name] : reference_keys(*policy)) checkpoint[key] = weights[name];  // ours to theirs
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace cohort::policies {

/// Every key of the reference's state dict for this policy, sorted, and our name of its tensor.
std::vector<std::pair<std::string, std::string>> reference_keys(const torch::nn::Module& policy);

/// Our name for a key of the reference's state dict, with ".module." or without; empty for an unknown key.
std::string own_name(const torch::nn::Module& policy, const std::string& key);

/// The keys under which the reference has the tensor that we call `name`.
std::vector<std::string> repeats_of(const torch::nn::Module& policy, const std::string& name);

}  // namespace cohort::policies
