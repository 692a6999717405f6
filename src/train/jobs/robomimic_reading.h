/// What the sections `experiment` and `train` of a robomimic configuration say, before it becomes settings.
#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/json_section.h"
#include "policies/diffusion/robomimic_config.h"

namespace cohort::train {

/// What the sections say, before it becomes settings.
struct RobomimicReading {
  std::vector<std::string> refused, notes;
  // experiment
  std::string name;
  bool validate = false, mse = false, tensorboard = true, save = true, save_best = false;
  std::int64_t mse_epochs = 50, mse_samples = 20, save_epochs = 50, epoch_steps = 100;
  std::string checkpoint, environment;
  bool rollouts = true, rollouts_end = true, rollouts_batched = false;  // robomimic's defaults
  std::int64_t rollout_n = 50, rollout_horizon = 400, rollout_rate = 50, rollout_warmstart = 0, rollout_envs = 1;
  // train
  std::string format = "robomimic", data_path, output_dir, filter_key, validation_filter_key;
  std::vector<std::string> validation_splits, set_names, action_keys{"actions"};
  std::vector<double> weights;
  config::Json data, action_config = config::Json::object(), action_shapes;
  std::int64_t batch_size = 100, epochs = 2000, seed = 1, subsample_length = 100, shuffle_buffer = 0, workers = 0;
  std::int64_t seq_length = 1, frame_stack = 1;
  bool pad_seq_length = true, pad_frame_stack = true, cuda = true;
  bool weights_of_windows = false;  // train.data's weights: of every window of a file, not of the file
  double max_grad_norm = 0;

  bool rlds() const { return format == "droid_rlds"; }
  models::ObservationOrder order() const {
    return rlds()              ? models::ObservationOrder::kAsListed
           : format == "droid" ? models::ObservationOrder::kDroid
                               : models::ObservationOrder::kByName;
  }
};

/// Read a section; what cannot be honoured is in `refused`, what has no effect in `notes`.
void read_experiment(config::JsonSection& section, RobomimicReading& reading);
void read_train(config::JsonSection& section, RobomimicReading& reading);

}  // namespace cohort::train
