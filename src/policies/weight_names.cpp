#include "policies/weight_names.h"

#include <algorithm>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/policy_network.h"
#include "models/vision/camera_name.h"
#include "weights/foreign_weights.h"

namespace cohort::policies {
namespace {

const std::string kEncoder = "policy.obs_encoder.", kNetwork = "policy.noise_pred_net.";
const std::string kCameras = kEncoder + "nets.obs.obs_nets.";

std::string with_module(const std::string& name) {
  for (const std::string& wrapped : {kEncoder, kNetwork})
    if (name.starts_with(wrapped)) return wrapped + "module." + name.substr(wrapped.size());
  return name;
}

/// All cameras whose image encoder is that of `camera`, which has one of its own.
std::vector<std::string> users_of(const std::vector<models::ObservationSettings>& observations,
                                  const std::string& camera) {
  std::vector<std::string> users{camera};
  for (const models::ObservationSettings& o : observations)
    if (o.shares == camera) users.push_back(o.name);
  return users;
}

}  // namespace

std::vector<std::string> repeats_of(const torch::nn::Module& policy, const std::string& name) {
  if (!name.starts_with(kCameras)) return {with_module(name)};
  for (const models::ObservationSettings& o : models::as_policy(policy).observations()) {
    const std::string own = kCameras + models::camera_module_name(o.name) + ".";
    if (!o.is_camera() || !o.shares.empty() || !name.starts_with(own)) continue;
    const std::string part = name.substr(own.size());
    std::vector<std::string> keys;
    for (const std::string& camera : users_of(models::as_policy(policy).observations(), o.name)) {
      const std::string prefix = with_module(kCameras + models::camera_module_name(camera) + ".");
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
  const std::string plain = weights::without_wrappers(key);
  for (const auto& [theirs, name] : reference_keys(policy))
    if (weights::without_wrappers(theirs) == plain) return name;
  return "";
}

}  // namespace cohort::policies
