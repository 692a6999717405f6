/// Batches of robot windows as a policy takes them, and the actions that it would take.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "models/vision/observation_encoder.h"
#include "parallel/batch.h"
#include "policies/algorithm.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

/// Where the observations of a policy lie in a batch.
struct ObservationLayout {
  std::vector<std::string> low_dim;  ///< names of the slices of the field "proprio"
  std::vector<int> widths;           ///< of the slices, in order
  std::vector<std::string> rgb;      ///< names of the cameras
  std::vector<std::string> images;   ///< their fields, without "image/"
  std::string language;              ///< name of the instruction's embedding, the field "language"; empty: none
  std::vector<policies::BatchObservation> others;  ///< what the algorithm sees beside these
  std::int64_t frames = 1;                         ///< of observations
};

/// Views of the batch's tensors by the policy's names.
models::Observations observations_of(const ObservationLayout& layout, const parallel::Batch& batch);

/// (B, rows, A): normalised actions that the policy draws for each sample: a chunk of a diffusion policy; one action
/// per frame of a behaviour cloning policy. What is drawn belongs to the sample ids. The policy must be in evaluation
/// mode.
at::Tensor drawn_actions(torch::nn::Module& policy, const models::Observations& observations,
                         const at::Tensor& sample_ids);

}  // namespace cohort::train
