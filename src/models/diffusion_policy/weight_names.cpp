#include "models/diffusion_policy/weight_names.h"

#include <algorithm>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/policy_network.h"
#include "models/vision/camera_name.h"

namespace cohort::models {
namespace {

const std::string kEncoder = "policy.obs_encoder.", kNetwork = "policy.noise_pred_net.";
const std::string kCameras = kEncoder + "nets.obs.obs_nets.";

std::string with_module(const std::string& name) {
  for (const std::string& wrapped : {kEncoder, kNetwork})
    if (name.starts_with(wrapped)) return wrapped + "module." + name.substr(wrapped.size());
  return name;
}

/// All cameras whose image encoder is that of `camera`, which has one of its own.
std::vector<std::string> users_of(const std::vector<ObservationSettings>& observations, const std::string& camera) {
  std::vector<std::string> users{camera};
  for (const ObservationSettings& o : observations)
    if (o.shares == camera) users.push_back(o.name);
  return users;
}

}  // namespace

std::string without_wrappers(const std::string& key) {
  std::string plain = key;
  for (const std::string wrapper : {"module.", "_orig_mod."}) {
    while (plain.starts_with(wrapper)) plain.erase(0, wrapper.size());
    for (std::size_t at; (at = plain.find("." + wrapper)) != std::string::npos;) plain.erase(at + 1, wrapper.size());
  }
  return plain;
}

std::vector<std::string> repeats_of(const torch::nn::Module& policy, const std::string& name) {
  if (!name.starts_with(kCameras)) return {with_module(name)};
  for (const ObservationSettings& o : as_policy(policy).observations()) {
    const std::string own = kCameras + camera_module_name(o.name) + ".";
    if (!o.is_camera() || !o.shares.empty() || !name.starts_with(own)) continue;
    const std::string part = name.substr(own.size());
    std::vector<std::string> keys;
    for (const std::string& camera : users_of(as_policy(policy).observations(), o.name)) {
      const std::string prefix = with_module(kCameras + camera_module_name(camera) + ".");
      keys.push_back(prefix + part);
      if (part.starts_with("backbone.")) keys.push_back(prefix + "nets.0." + part.substr(9));
      if (part.starts_with("pool.")) keys.push_back(prefix + "nets.1." + part.substr(5));
    }
    return keys;
  }
  COHORT_CHECK(false, "{} belongs to no camera of this policy", name);
  return {};
}

std::vector<std::pair<std::string, std::string>> reference_keys(const torch::nn::Module& policy) {
  std::vector<std::pair<std::string, std::string>> keys;
  const auto add = [&](const std::string& name) {
    for (std::string& key : repeats_of(policy, name)) keys.emplace_back(std::move(key), name);
  };
  for (const auto& item : policy.named_parameters()) add(item.key());
  for (const auto& item : policy.named_buffers()) add(item.key());
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::string own_name(const torch::nn::Module& policy, const std::string& key) {
  const std::string plain = without_wrappers(key);
  for (const auto& [theirs, name] : reference_keys(policy))
    if (without_wrappers(theirs) == plain) return name;
  return "";
}

}  // namespace cohort::models
