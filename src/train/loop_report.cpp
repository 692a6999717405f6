#include <algorithm>
#include <limits>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "parallel/parameter_hash.h"
#include "run/rank_shares.h"
#include "run/stop_request.h"
#include "train/loop_impl.h"
#include "train/rank_memory.h"

namespace cohort::train {
namespace {

/// A wish to stop is agreed on about this often; every step where steps are longer.
constexpr double kStopCheckSeconds = 0.5;

}  // namespace

/// Throws on all ranks when a step on one of them was bad, or when rank 0 cannot write.
void TrainLoop::Impl::agree_on_health(const StepMonitor::Reading& reading) {
  const std::string write_error = writer ? writer->take_error() : std::string();
  at::Tensor flags = torch::tensor({reading.bad ? 1.0 : 0.0, write_error.empty() ? 0.0 : 1.0}, at::kDouble);
  strategy.max_over_ranks(flags);
  const auto* agreed = flags.const_data_ptr<double>();
  COHORT_THROW_UNLESS(write_error.empty(), "{}", write_error);
  COHORT_THROW_UNLESS(agreed[1] == 0.0, "rank 0 could not save a checkpoint; its message says why");
  if (agreed[0] == 0.0) return;
  COHORT_THROW_UNLESS(reading.bad, "another rank met a NaN or inf in its loss; its message says where");
  const BadStep& bad = *reading.bad;
  const double its_lr =
      base_lr * learning_rate_factor(settings.schedule, {bad.step - 1, state.step_epoch, total_steps});
  throw Error(
      format("NaN or inf in step {}: loss {}, learning rate {:g}, gradient norm {}, first parameter with a non-finite "
             "gradient: {}.{} "
             "Nothing of this step has been saved. Lower the learning rate, clip gradients (train.clip_norm), look at "
             "the data, or "
             "set train.non_finite=skip.",
             bad.step, bad.loss, its_lr, bad.grad_norm, bad.parameter.empty() ? "none" : bad.parameter, bad_input));
}

void TrainLoop::Impl::report() {
  const auto reading = monitor.read(optimizer);
  agree_on_health(reading);
  state.skipped_steps = earlier_skips + static_cast<std::int64_t>(reading.skipped);
  const double steps = static_cast<double>(std::max<std::int64_t>(1, state.interval_steps));
  const double exchanged = strategy.exchange_seconds();
  const double step_s = seconds_since(interval_begin) / steps, data_s = interval_data_s / steps;
  const double exchange_s = std::max(0.0, exchanged - interval_exchange_begin) / steps;
  const double checkpoint_s = interval_checkpoint_s / steps;
  const double compute_s = std::max(0.0, step_s - data_s - exchange_s - checkpoint_s);
  at::Tensor means = torch::tensor(
      {reading.sums.interval_sum, reading.sums.interval_count, interval_samples, exchange_s}, at::kDouble);
  at::Tensor maxima = torch::tensor({data_s, step_s, resident_bytes(), peak_device_bytes(device),
                                     seconds_since(run_begin), checkpoint_s, compute_s, -compute_s},
                                    at::kDouble);
  strategy.mean_over_ranks(means);
  strategy.max_over_ranks(maxima);
  const auto* mean = means.const_data_ptr<double>();
  const auto* largest = maxima.const_data_ptr<double>();
  state.agreed_step_s = largest[1];

  StepStats stats;
  stats.step = state.step;
  stats.total_steps = total_steps;
  stats.epoch = state.step_epoch;
  const std::int64_t epoch_samples = std::max<std::int64_t>(1, batches.samples_per_epoch());
  stats.epoch_progress = static_cast<double>(state.epoch) + std::min(1.0, static_cast<double>(state.samples_in_epoch) /
                                                                              static_cast<double>(epoch_samples));
  stats.loss = mean[1] > 0.0 ? mean[0] / mean[1] : std::numeric_limits<double>::quiet_NaN();
  stats.lr = state.lr;
  stats.grad_norm = reading.grad_norm;
  stats.step_time_s = largest[1];
  stats.data_time_s = largest[0];
  stats.exchange_time_s = mean[3];
  stats.checkpoint_time_s = largest[5];
  stats.compute_time_s = largest[6];
  stats.least_compute_time_s = -largest[7];
  stats.world_size = strategy.world_size();
  stats.iterations_per_s = largest[1] > 0.0 ? 1.0 / largest[1] : 0.0;
  stats.samples_per_s = largest[1] > 0.0 ? mean[2] * strategy.world_size() / (largest[1] * steps) : 0.0;
  stats.host_bytes = largest[2];
  stats.device_bytes = largest[3];
  stats.skipped_steps = state.skipped_steps;
  stats.loss_scale = scaler ? scaler->scale().item<double>() : 1.0;
  const double made = static_cast<double>(state.step - state.first_step);
  stats.seconds_left = made > 0.0 ? largest[4] / made * static_cast<double>(total_steps - state.step)
                                  : std::numeric_limits<double>::infinity();
  for (const auto& observer : job.step_observers) observer(stats);

  monitor.begin_interval();
  interval_begin = Clock::now();
  state.interval_steps = 0;
  interval_data_s = interval_samples = interval_checkpoint_s = 0.0;
  interval_exchange_begin = exchanged;
}

void TrainLoop::Impl::validate(bool end_of_epoch) {
  const auto begin = Clock::now();
  say(rank::Phase::kValidation);
  const auto reading = monitor.read(optimizer);
  agree_on_health(reading);
  at::Tensor means = torch::tensor({reading.sums.epoch_sum, reading.sums.epoch_count}, at::kDouble);
  strategy.mean_over_ranks(means);
  ValidationStats stats;
  {
    const EmaWeightsGuard averages(ema ? &*ema : nullptr);
    if (ema && strategy.replicas() > 1) strategy.parameters_changed();
    const at::NoGradGuard no_grad;
    module.eval();
    std::vector<Metric> metrics;
    try {
      const std::int64_t every = settings.validate_every;
      metrics = job.validator(module, every > 0 ? (state.step + every - 1) / every : state.step_epoch + 1);
    } catch (...) {
      module.train();
      throw;
    }
    module.train();
    if (!metrics.empty()) stats.metrics = reduce(metrics, strategy);
  }
  if (ema && strategy.replicas() > 1) strategy.parameters_changed();
  if (stats.metrics.empty()) {  // it was not due
    state.validated_step = state.step;
    return;
  }
  stats.step = state.step;
  stats.epoch = state.step_epoch;
  stats.end_of_epoch = end_of_epoch;
  const auto* mean = means.const_data_ptr<double>();
  stats.train_loss = mean[1] > 0.0 ? mean[0] / mean[1] : std::numeric_limits<double>::quiet_NaN();
  stats.improved = observe(settings.early_stopping, stats.metrics, state.step, state.early_stopping);
  stats.validations_since_best = state.early_stopping.validations_since_best;
  stats.seconds = seconds_since(begin);
  state.early_stop = should_stop(settings.early_stopping, state.early_stopping);
  state.validated_step = state.step;
  const bool keep_here = settings.early_stopping.restores() && job.checkpoints.empty();
  if (stats.improved && keep_here) {
    best_weights.clear();
    for (const auto& [name, tensor] : weights::module_state(module))
      best_weights.emplace_back(name, tensor.detach().cpu().clone());
    if (ema) {
      for (const auto& [name, tensor] : ema->state())
        best_weights.emplace_back("ema/" + name, tensor.detach().cpu().clone());
    }
  }
  for (const auto& observer : job.validation_observers) observer(stats);
  if (state.early_stop) {
    log::info("early stopping after step {}: no improvement over {} validations; the best was {:g} at step {}",
              state.step, state.early_stopping.validations_since_best, state.early_stopping.best.value_or(0.0),
              state.early_stopping.best_step);
  }
  // Time spent here is not the steps'.
  interval_begin += Clock::now() - begin;
  total_validation_s += seconds_since(begin);
}

rank::Totals TrainLoop::Impl::totals() const {
  return {.steps = state.step - state.first_step,
          .samples = total_samples,
          .seconds = std::max(0.0, seconds_since(run_begin) - total_validation_s),
          .data_s = total_data_s,
          .exchange_s = strategy.exchange_seconds() - exchange_begin,
          .checkpoint_s = total_checkpoint_s,
          .host_bytes = resident_bytes(),
          .device_bytes = peak_device_bytes(device)};
}

std::vector<rank::Totals> TrainLoop::Impl::totals_of_ranks() {
  // Everyone fills its own row and zeros elsewhere; the maximum is the table.
  at::Tensor table = at::zeros({strategy.world_size(), run::kTotalsNumbers}, at::kDouble);
  table[strategy.rank()].copy_(torch::tensor(run::to_numbers(totals()), at::kDouble));
  strategy.max_over_ranks(table);
  std::vector<rank::Totals> ranks;
  for (int rank = 0; rank < strategy.world_size(); ++rank)
    ranks.push_back(run::totals_from(table.const_data_ptr<double>() + rank * run::kTotalsNumbers));
  return ranks;
}

void TrainLoop::Impl::agree_on_stop() {
  if (strategy.world_size() == 1) {
    state.stop_agreed = run::stop_requested();
  } else {
    // The interval comes from figures that all ranks share, so that all of them ask at the same step.
    const std::int64_t every =
        state.agreed_step_s > 0.0
            ? std::max<std::int64_t>(1, static_cast<std::int64_t>(kStopCheckSeconds / state.agreed_step_s))
            : 1;
    if (state.step % every != 0) return;
    at::Tensor flag = torch::tensor({run::stop_requested() ? 1.0 : 0.0}, at::kDouble);
    strategy.max_over_ranks(flag);
    state.stop_agreed = flag.item<double>() != 0.0;
  }
  if (state.stop_agreed)
    log::info("stopping after step {}{}", state.step,
              run::stop_signal() ? format(" on signal {}", run::stop_signal()) : "");
}

void TrainLoop::Impl::compare_parameters() {
  const auto check = parallel::check_parameters_equal(strategy);
  COHORT_THROW_UNLESS(check.differing.empty(),
                      "the parameters of the ranks differ at step {}, because gradients were not synchronised: {}",
                      state.step, check.text);
  state.compared_step = state.step;
  // In one process there is nothing to compare; the number is for those who repeat the run.
  const std::string line = format("step {}: {}", state.step, check.text);
  if (strategy.world_size() == 1)
    log::write_to_files(log::Level::kInfo, line);
  else
    log::info("{}", line);
}

}  // namespace cohort::train
