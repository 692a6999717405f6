#include "train/jobs/robomimic_reading.h"

#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::train {
namespace {

using config::Json;
using config::JsonSection;

/// Reads a key whose value has no effect here; says so where it asks for something.
void without_effect(JsonSection& section, RobomimicReading& r, const std::string& key, const std::string& reason) {
  const Json& value = section.get(key);
  if (value.is_null() || config::is_empty(value)) return;
  r.notes.push_back(format("{}.{} = {}: {}", section.path(), key, json_text(value), reason));
}

}  // namespace

void read_experiment(JsonSection& s, RobomimicReading& r) {
  s.take_or_null("name", r.name, {});
  s.take("validate", r.validate);
  s.in("logging", [&](JsonSection& logging) {
    logging.ignore("terminal_output_to_txt");  // there always is a training.log
    logging.take("log_tb", r.tensorboard);
    without_effect(logging, r, "log_wandb",
                   "nothing is sent anywhere; metrics.jsonl and TensorBoard events hold it all");
    logging.ignore("wandb_proj_name");
  });
  s.in("mse", [&](JsonSection& mse) {
    mse.take("enabled", r.mse);
    mse.take_or_null("every_n_epochs", r.mse_epochs, std::int64_t{0});
    mse.take("num_samples", r.mse_samples);
    mse.ignore("on_save_ckpt");
    mse.ignore("visualize");  // the report always shows predicted beside true actions
  });
  s.in("save", [&](JsonSection& save) {
    save.take("enabled", r.save);
    save.take_or_null("every_n_epochs", r.save_epochs, std::int64_t{0});
    save.off("every_n_seconds", config::is_empty, "is not supported: checkpoints are counted in steps and epochs");
    save.off("epochs", config::is_empty, "is not supported: use experiment.save.every_n_epochs");
    save.take("on_best_validation", r.save_best);
    save.ignore("on_best_rollout_return");
    save.ignore("on_best_rollout_success_rate");
  });
  s.take_or_null("epoch_every_n_steps", r.epoch_steps, std::int64_t{0});
  if (s.has("epoch_every_n_steps") && !s.get("epoch_every_n_steps").is_null() && r.epoch_steps < 1)
    s.refuse("experiment.epoch_every_n_steps", s.get("epoch_every_n_steps"),
             "is no number of steps; null makes an epoch a pass over the data");
  without_effect(s, r, "validation_epoch_every_n_steps", "a validation goes through all of its windows");
  s.take_or_null("env", r.environment, {});
  without_effect(s, r, "additional_envs", "rollouts are played in one environment");
  without_effect(s, r, "env_meta_update_dict", "rollout.task_settings=[key=value] are settings of the task");
  for (const char* key : {"render", "render_video", "keep_all_videos", "video_skip"}) s.ignore(key);
  s.in("rollout", [&](JsonSection& rollout) {
    rollout.take("enabled", r.rollouts);
    rollout.take("n", r.rollout_n);
    rollout.take("horizon", r.rollout_horizon);
    rollout.take("rate", r.rollout_rate);
    rollout.take_or_null("warmstart", r.rollout_warmstart, std::int64_t{0});
    rollout.take("terminate_on_success", r.rollouts_end);
    rollout.take("batched", r.rollouts_batched);
    rollout.take_or_null("num_batch_envs", r.rollout_envs, std::int64_t{1});
    for (const auto& [key, value] :
         {std::pair{"n", r.rollout_n}, std::pair{"horizon", r.rollout_horizon}, std::pair{"rate", r.rollout_rate}})
      if (value < 1) rollout.refuse(format("{}.{}", rollout.path(), key), Json(value), "must be at least 1");
  });
  s.take_or_null("ckpt_path", r.checkpoint, {});
  if (!r.checkpoint.empty() && !r.checkpoint.ends_with(".safetensors"))
    s.refuse("experiment.ckpt_path", Json(r.checkpoint),
             "is no .safetensors file: save the weights as one first, as docs/guide/policies.md shows");
}

void read_train(JsonSection& s, RobomimicReading& r) {
  s.take("data_format", r.format);
  if (r.format != "droid_rlds" && r.format != "robomimic" && r.format != "droid")
    s.refuse("train.data_format", Json(r.format), "is not supported; there are droid_rlds, robomimic and droid");
  r.data = s.get("data");
  s.take_or_null("data_path", r.data_path, {});
  s.take_or_null("dataset_names", r.set_names, {});
  s.take_or_null("sample_weights", r.weights, {});
  s.take_or_null("output_dir", r.output_dir, {});
  s.take("batch_size", r.batch_size);
  s.take("num_epochs", r.epochs);
  s.take("seed", r.seed);
  s.take("cuda", r.cuda);
  s.take_or_null("max_grad_norm", r.max_grad_norm, 0.0);
  s.take("seq_length", r.seq_length);
  s.take("frame_stack", r.frame_stack);
  s.take("pad_seq_length", r.pad_seq_length);
  s.take("pad_frame_stack", r.pad_frame_stack);
  s.take("subsample_length", r.subsample_length);
  s.take("shuffle_buffer_size", r.shuffle_buffer);
  s.take("num_data_workers", r.workers);
  bool normalize = !r.weights_of_windows;
  s.take("normalize_weights_by_ds_size", normalize);  // robomimic's; the fork always does so
  r.weights_of_windows = !normalize;
  s.take_or_null("hdf5_filter_key", r.filter_key, {});
  s.take_or_null("hdf5_validation_filter_key", r.validation_filter_key, {});
  for (const char* key : {"num_parallel_calls", "traj_transform_threads", "traj_read_threads"})
    without_effect(s, r, key, "loader.workers says how many threads prepare batches");
  for (const char* key :
       {"hdf5_cache_mode", "hdf5_use_swmr", "hdf5_load_next_obs", "dataset_keys", "truncated_geom_factor"})
    s.ignore(key);
  s.off("hdf5_normalize_obs", config::is_false, "is not supported: set data.proprio_normalization=[normal]");
  s.off("goal_mode", config::is_empty, "is not supported: policies have no goal observations");
  if (r.rlds())
    s.ignore("shuffled_obs_key_groups");  // the reference reads it for HDF5 data only, and generates it for RLDS, too
  else
    s.off("shuffled_obs_key_groups", config::is_empty, "is not supported");
  s.off(
      "view_dropout_prob", [](const Json& v) { return v == 0; }, "is not supported");
  // robomimic takes the keys as a list, or as an object whose values are their action_config.
  const Json& keys = s.get("action_keys");
  if (keys.is_object()) {
    r.action_keys.clear();
    for (const auto& item : keys.items()) {
      r.action_keys.push_back(item.key());
      r.action_config[item.key()] = item.value();
    }
  } else {
    s.take("action_keys", r.action_keys);
  }
  const Json& normalization = s.get("action_config");
  if (normalization.is_object())
    for (const auto& item : normalization.items()) r.action_config[item.key()] = item.value();
  else if (!normalization.is_null())
    s.refuse("train.action_config", normalization, "is no object");
  r.action_shapes = s.get("action_shapes");
}

}  // namespace cohort::train
