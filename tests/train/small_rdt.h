/// A small RDT of poses and pictures on the data set "arm" (tests/data/fixtures), as settings.
#pragma once
#include <string>
#include <vector>

#include "data/fixture_folder.h"

namespace cohort::train {

inline std::vector<std::string> small_rdt(const std::vector<std::string>& more = {}) {
  std::vector<std::string> overrides{
      "model.algorithm=rdt",
      "data.paths=" + data::fixture("arm").string(),
      "data.actions=action",
      "data.proprio=observation/pose,observation/gripper",
      "data.images=observation/image",
      "data.image_transforms=[\"resize(16, 16)\"]",
      "data.statistics_cache=never",
      "model.rdt.hidden_size=32",
      "model.rdt.depth=2",
      "model.rdt.num_heads=4",
      "model.rdt.horizon=4",
      "model.rdt.exec_horizon=2",
      "model.rdt.num_cameras=2",
      "model.rdt.lang_token_dim=8",
      "model.rdt.max_lang_cond_len=6",
      "model.rdt.img_token_dim=12",
      "model.rdt.vision.image_size=16",
      "model.rdt.vision.patch_size=8",
      "model.rdt.vision.hidden_size=12",
      "model.rdt.vision.num_hidden_layers=1",
      "model.rdt.vision.num_attention_heads=2",
      "model.rdt.vision.intermediate_size=16",
      "model.rdt.train_vision=true",
      "model.rdt.slots=[\"observation/pose: 30-35\", \"observation/gripper: gripper_open\", \"action: 39-44, "
      "gripper_open\"]"};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

}  // namespace cohort::train
