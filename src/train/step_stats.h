/// What a training tells those who watch it.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "rank/beat.h"

namespace cohort::train {

/// Figures over the steps since the previous report. Losses are means over ranks; times and memory are maxima over
/// ranks.
struct StepStats {
  std::int64_t step = 0;              ///< optimizer steps done
  std::int64_t total_steps = 0;       ///< of the whole training
  std::int64_t epoch = 0;             ///< from 0; of the step that was just made
  double epoch_progress = 0.0;        ///< epochs done, with fraction
  double loss = 0.0;                  ///< mean over the steps since the previous report
  double lr = 0.0;                    ///< of the last step
  double grad_norm = 0.0;             ///< of the last step, before clipping
  double samples_per_s = 0.0;         ///< all processes together
  double iterations_per_s = 0.0;      ///< optimizer steps
  double data_time_s = 0.0;           ///< per step: waiting for batches
  double step_time_s = 0.0;           ///< per step: everything
  double exchange_time_s = 0.0;       ///< per step: Strategy::exchange_seconds, mean over ranks
  double checkpoint_time_s = 0.0;     ///< per step: waiting for checkpoints
  double compute_time_s = 0.0;        ///< per step: the rest, of the slowest rank ...
  double least_compute_time_s = 0.0;  ///< ... and of the fastest one
  int world_size = 1;
  double host_bytes = 0.0;         ///< resident memory of the largest process
  double device_bytes = 0.0;       ///< peak allocated on a device since the start; 0 on the CPU
  std::int64_t skipped_steps = 0;  ///< since the start: no update because of NaN, inf or an fp16 overflow
  double loss_scale = 1.0;         ///< fp16: present factor of the loss
  double seconds_left = 0.0;       ///< estimate; infinity before there is one
};

/// A validation: metrics over all ranks.
struct ValidationStats {
  std::int64_t step = 0;
  std::int64_t epoch = 0;  ///< from 0; of the step that was just made
  bool end_of_epoch = false;
  double train_loss = 0.0;  ///< mean over this epoch's steps so far
  std::vector<std::pair<std::string, double>>
      metrics;            ///< the first is watched by early stopping unless it names another
  bool improved = false;  ///< the watched metric is the best so far
  std::int64_t validations_since_best = 0;
  double seconds = 0.0;  ///< what it took
};

/// Called on every rank with the same figures.
using StepObserver = std::function<void(const StepStats&)>;
using ValidationObserver = std::function<void(const ValidationStats&)>;

}  // namespace cohort::train
