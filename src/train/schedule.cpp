#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/error.h"

namespace cohort::train {

void ScheduleSettings::validate() const {
  COHORT_THROW_UNLESS(
      kind == "constant" || kind == "cosine" || kind == "linear" || kind == "halving" || kind == "multistep",
      "'{}' is no schedule; choose constant, cosine, linear, halving or multistep", kind);
  COHORT_THROW_UNLESS(warmup_steps >= 0, "train.warmup_steps = {} must not be negative", warmup_steps);
  COHORT_THROW_UNLESS(end_factor >= 0.0 && end_factor <= 1.0, "train.end_factor = {} must lie in [0, 1]", end_factor);
  COHORT_THROW_UNLESS(halving_every >= 1, "train.halving_every = {} must be at least 1 epoch", halving_every);
  COHORT_THROW_UNLESS(halving_delay >= 0, "train.halving_delay = {} must not be negative", halving_delay);
  COHORT_THROW_UNLESS(std::is_sorted(milestones.begin(), milestones.end()), "milestones must rise");
  COHORT_THROW_UNLESS(gamma > 0.0, "train.gamma = {} must be positive", gamma);
}

void describe(config::Fields& fields, ScheduleSettings& s) {
  fields.add_choice("schedule", s.kind, {"constant", "cosine", "linear", "halving", "multistep"},
                    "course of the learning rate after the warm-up");
  fields.add("warmup_steps", s.warmup_steps, "optimizer steps over which the learning rate rises from 0");
  fields.add("end_factor", s.end_factor, "cosine, linear: part of the learning rate left at the last step");
  fields.add("halving_every", s.halving_every, "halving: epochs between two halvings");
  fields.add("halving_delay", s.halving_delay, "halving: epochs at the full rate after the first one");
  fields.add("milestones", s.milestones, "multistep: optimizer steps from each of which on the rate is lower");
  fields.add("gamma", s.gamma, "multistep: the factor at each milestone");
}

double learning_rate_factor(const ScheduleSettings& s, const SchedulePosition& at) {
  if (at.step < s.warmup_steps) return static_cast<double>(at.step) / static_cast<double>(s.warmup_steps);
  if (s.kind == "halving") {
    const std::int64_t halvings = std::max<std::int64_t>(0, at.epoch - s.halving_delay) / s.halving_every;
    return std::pow(0.5, static_cast<double>(halvings));
  }
  if (s.kind == "constant") return 1.0;
  if (s.kind == "multistep") {
    const auto passed = std::count_if(s.milestones.begin(), s.milestones.end(), [&](int m) { return at.step >= m; });
    return std::pow(s.gamma, static_cast<double>(passed));
  }
  const double span = static_cast<double>(std::max<std::int64_t>(1, at.total_steps - s.warmup_steps));
  const double progress = std::clamp(static_cast<double>(at.step - s.warmup_steps) / span, 0.0, 1.0);
  const double falling = s.kind == "cosine" ? 0.5 * (1.0 + std::cos(std::numbers::pi * progress)) : 1.0 - progress;
  return s.end_factor + (1.0 - s.end_factor) * falling;
}

double scaled_learning_rate(double lr, const std::string& rule, std::int64_t effective_batch, std::int64_t base_batch) {
  if (rule == "none") return lr;
  COHORT_THROW_UNLESS(rule == "linear" || rule == "sqrt", "'{}' is no learning-rate rule; choose none, linear or sqrt",
                      rule);
  COHORT_THROW_UNLESS(base_batch > 0,
                      "the learning-rate rule '{}' needs lr_base_batch: the effective batch for which lr was chosen",
                      rule);
  const double ratio = static_cast<double>(effective_batch) / static_cast<double>(base_batch);
  return lr * (rule == "linear" ? ratio : std::sqrt(ratio));
}

}  // namespace cohort::train
