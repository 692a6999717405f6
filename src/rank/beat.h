/// What a rank tells those who watch it: signs of life, and what it has done so far.
#pragma once
#include <cstdint>
#include <functional>

#include "rank/phase.h"

namespace cohort::rank {

/// What one rank has done since it began its first step, for whoever watches it (`cohort top`).
struct Totals {
  std::int64_t steps = 0;
  std::int64_t samples = 0;   ///< of this process
  double seconds = 0.0;       ///< without validations
  double data_s = 0.0;        ///< waiting for batches; NaN: there is no such wait
  double exchange_s = 0.0;    ///< see Strategy::exchange_seconds
  double checkpoint_s = 0.0;  ///< waiting for checkpoints
  double host_bytes = 0.0;    ///< resident memory now
  double device_bytes = 0.0;  ///< peak allocated on a device
};

/// A sign of life: with every batch, and where something else than steps begins.
struct Beat {
  Phase phase = Phase::kTraining;
  std::int64_t step = 0;
  std::int64_t total_steps = 0;
  std::int64_t batches_per_epoch = 0;
};
/// `totals` measures when it is called: only what is wanted costs something.
using BeatObserver = std::function<void(const Beat&, const std::function<Totals()>& totals)>;

}  // namespace cohort::rank
