/// The policy job on the fixtures of tests/data.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/allocator.h"
#include "core/error.h"
#include "data/fixture_folder.h"
#include "train/jobs/job.h"
#include "train/loader_source.h"
#include "train/run.h"

namespace cohort::train {

/// A job with settings as a command line gives them.
struct ReadyPolicy {
  std::unique_ptr<Job> job = make_job("policy");
  RunSettings settings;
  config::Fields fields;

  explicit ReadyPolicy(const std::vector<std::string>& overrides, const config::Json& json = config::Json::object()) {
    describe(fields, settings);
    job->describe(fields, settings);
    fields.apply_json(json, "test");
    for (const std::string& text : overrides) fields.apply_override(text);
  }
  /// The first batch of `part`, of `size` samples.
  parallel::Batch batch(Part part, std::int64_t size) const {
    LoaderSource source(job->dataset(part), {.shuffle = false}, {.batch_size = size, .workers = 0}, host_allocator());
    source.start_epoch(0, 0);
    auto first = source.next();
    COHORT_CHECK(first.has_value(), "no batch");
    parallel::Batch copy;
    for (const auto& [name, tensor] : first->fields) copy.add(name, tensor.clone());
    copy.sample_ids = first->sample_ids.clone();
    return copy;
  }
};

/// A small diffusion policy of poses on the data set "arm" (tests/data/fixtures): 20 windows.
inline std::vector<std::string> small_diffusion() {
  return {"data.paths=" + data::fixture("arm").string(),
          "data.actions=action",
          "data.proprio=observation/pose,observation/gripper",
          "data.statistics_cache=never",
          "model.low_dim=pose,gripper",
          "model.diffusion.horizon.prediction_horizon=8",
          "model.diffusion.horizon.action_horizon=4",
          "model.diffusion.noise_samples=2",
          "model.diffusion.unet.down_dims=16,32",
          "model.diffusion.unet.diffusion_step_embed_dim=16"};
}

}  // namespace cohort::train
