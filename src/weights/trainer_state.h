/// Where a training stands, apart from tensors: the content of trainer_state.json.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::weights {

/// Sums of losses that have not been reported yet, of one rank.
struct LossSums {
  double interval_sum = 0.0;  ///< since the last log line
  double interval_count = 0.0;
  double epoch_sum = 0.0;  ///< since the epoch began
  double epoch_count = 0.0;
};

/// The scale of losses with fp16 (train/grad_scaler.h): what torch's GradScaler.state_dict() holds, in its order.
struct GradScalerState {
  double scale = 0.0;
  double growth_factor = 0.0;
  double backoff_factor = 0.0;
  std::int64_t growth_interval = 0;
  std::int64_t growth_tracker = 0;  ///< "_growth_tracker": steps without overflow since the scale last changed
};

struct EarlyStoppingState {
  std::optional<double> best;  ///< the smallest value of the watched metric
  std::int64_t best_step = 0;  ///< when it was met
  std::int64_t validations_since_best = 0;
};

struct TrainerState {
  std::int64_t step = 0;   ///< optimizer steps done
  std::int64_t epoch = 0;  ///< of the next batch, from 0
  /// Samples of this epoch that all processes together have consumed. An offset into the epoch's global order, so that
  /// another number of ranks goes on at the same sample.
  std::int64_t samples_in_epoch = 0;
  std::int64_t samples = 0;        ///< since the start of training, all processes together
  std::int64_t skipped_steps = 0;  ///< steps without an update because of NaN or inf
  std::int64_t ema_updates = 0;
  EarlyStoppingState early_stopping;
  std::vector<LossSums> loss_sums;  ///< by rank

  // What the run looked like; compared when it is resumed.
  int world_size = 1;
  std::int64_t batch_size = 0;
  std::int64_t gradient_accumulation_steps = 1;
  std::uint64_t seed = 0;
  std::string optimizer;
  std::optional<GradScalerState> scaler;  ///< with fp16
  std::string configuration = "null";     ///< of the whole job, as the command line resolved it: JSON text
};

/// Throws Error when the configuration is no JSON.
config::Json to_json(const TrainerState& state);

/// Throws Error naming `source` and the field for what is missing, of another type, or written by another program.
TrainerState trainer_state_from_json(const config::Json& json, const std::string& source);

}  // namespace cohort::weights
