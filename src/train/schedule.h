/// Learning rates as pure functions of the position in training: nothing to save, nothing to restore.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::train {

struct ScheduleSettings {
  /// constant | cosine | linear | halving | multistep. The warm-up comes before any of them.
  ///   cosine   half a cosine wave from 1 down to end_factor at the last step (Loshchilov and Hutter 2017, without
  ///   restarts) linear   a straight line from 1 down to end_factor at the last step halving  0.5^floor(max(0, epoch -
  ///   halving_delay) / halving_every), the Informer reference's "type1"
  std::string kind = "constant";
  std::int64_t warmup_steps =
      0;                    ///< optimizer steps over which the rate rises in a straight line; the first has rate 0
  double end_factor = 0.0;  ///< cosine, linear: part of the learning rate that is left at the end
  std::int64_t halving_every = 1;  ///< halving: epochs between two halvings
  /// halving: epochs at the full rate after the first. The reference lowers the rate at the end of an epoch, by a
  /// formula that gives the full rate after the first: epochs 0 and 1 run at the full rate, epoch 2 at half of it.
  std::int64_t halving_delay = 1;
  std::vector<int> milestones;  ///< multistep: optimizer steps, rising, from each of which on lr is lower
  double gamma = 0.1;           ///< multistep: the factor at each milestone (torch's MultiStepLR)

  void validate() const;
};

void describe(config::Fields& fields, ScheduleSettings& settings);

/// Where training stands when a step begins.
struct SchedulePosition {
  std::int64_t step = 0;         ///< optimizer steps done
  std::int64_t epoch = 0;        ///< from 0
  std::int64_t total_steps = 1;  ///< of the whole training
};

/// The factor by which the learning rate is multiplied, as PyTorch's LambdaLR does for the step that follows `step`
/// done ones.
double learning_rate_factor(const ScheduleSettings& settings, const SchedulePosition& position);

/// The learning rate for an effective batch (batch per process x processes x accumulation): "none" leaves it, "linear"
/// (Goyal et al. 2017) multiplies by effective_batch / base_batch, "sqrt" by its square root. Throws Error for another
/// rule, or when base_batch is not positive and the rule needs it.
double scaled_learning_rate(double lr, const std::string& rule, std::int64_t effective_batch, std::int64_t base_batch);

}  // namespace cohort::train
