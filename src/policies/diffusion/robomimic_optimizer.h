/// The section "optim_params.policy" of a robomimic configuration: how the policy's weights are updated. As
/// robomimic/utils/torch_utils.py reads it (optimizer_from_optim_params, lr_scheduler_from_optim_params).
#pragma once
#include <string>
#include <vector>

#include "core/json_section.h"

namespace cohort::models {

struct RobomimicOptimizer {
  std::string kind = "adam";  ///< or adamw
  double learning_rate = 1e-4;
  double weight_decay = 0.0;  ///< regularization.L2
  /// multistep: at each of `epochs` the rate is multiplied by `decay`. cosine: half a wave down to 0 at the last step,
  /// after `warmup_steps` over which the rate rises from 0.
  std::string schedule = "multistep";
  double decay = 0.1;
  std::vector<int> epochs;
  int warmup_steps = 0;
};

/// Reads the keys of `policy`; adds what cannot be honoured to its refusals.
inline void read(config::JsonSection& policy, RobomimicOptimizer& o) {
  policy.take_choice("optimizer_type", o.kind, {"adam", "adamw"});
  policy.in("learning_rate", [&](config::JsonSection& rate) {
    rate.take("initial", o.learning_rate);
    rate.take("decay_factor", o.decay);
    rate.take_or_null("epoch_schedule", o.epochs, {});
    rate.take_choice("scheduler_type", o.schedule, {"multistep", "cosine"});
    if (o.schedule == "cosine") {
      o.epochs.clear();  // the reference does not look at them then
      rate.take_or_null("warmup_steps", o.warmup_steps, 0);
      rate.off(
          "num_cycles", [](const config::Json& v) { return v == 0.5; }, "is not supported: half a wave (0.5) is");
      rate.off(
          "step_every_batch", [](const config::Json& v) { return v == true; },
          "is not supported: a cosine steps with every batch (true)");
    } else {
      rate.ignore("warmup_steps");
      rate.ignore("num_cycles");
      rate.off(
          "step_every_batch", [&](const config::Json& v) { return config::is_empty(v) || o.epochs.empty(); },
          "is not supported with an epoch_schedule, whose numbers are of epochs");
    }
  });
  policy.in("regularization", [&](config::JsonSection& r) { r.take("L2", o.weight_decay); });
}

}  // namespace cohort::models
