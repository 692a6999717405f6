#include "train/run_figures.h"

#include <algorithm>

#include "core/log.h"
#include "report/metric_names.h"
#include "train/precision.h"

namespace cohort::train {
namespace {

std::vector<report::TagValue> values_of(const StepStats& s, const TrainSettings& settings) {
  namespace metric = report::metric;
  std::vector<report::TagValue> values{{metric::kTrainLoss, s.loss},
                                       {metric::kLearningRate, s.lr},
                                       {metric::kGradientNorm, s.grad_norm},
                                       {metric::kSamplesPerSecond, s.samples_per_s},
                                       {metric::kStepsPerSecond, s.iterations_per_s},
                                       {metric::kDataTime, s.data_time_s},
                                       {metric::kComputeTime, s.compute_time_s},
                                       {metric::kCheckpointTime, s.checkpoint_time_s},
                                       {metric::kMemory, std::max(s.host_bytes, s.device_bytes)}};
  if (s.world_size > 1) {
    values.push_back({metric::kExchangeTime, s.exchange_time_s});
    values.push_back({metric::kLeastComputeTime, s.least_compute_time_s});
  }
  const bool scales = parse_precision(settings.precision) == Precision::kFp16;
  if (scales || settings.non_finite == "skip")
    values.push_back({metric::kSkippedSteps, static_cast<double>(s.skipped_steps)});
  if (scales) values.push_back({metric::kLossScale, s.loss_scale});
  return values;
}

std::vector<ProgressField> progress_fields(const StepStats& s, const std::optional<run::GpuLoad>& gpus) {
  std::vector<ProgressField> fields{{"epoch", format("{:.1f}", s.epoch_progress)},
                                    {"loss", format("{:.4f}", s.loss)},
                                    {"lr", format("{:.2e}", s.lr)},
                                    {"grad", format("{:.2f}", s.grad_norm)},
                                    {"samples/s", format("{:.0f}", s.samples_per_s)},
                                    {"data", format("{:.0f} ms", s.data_time_s * 1e3)},
                                    {"mem", format_bytes(std::max(s.host_bytes, s.device_bytes))}};
  if (gpus && gpus->utilization) fields.push_back({"gpu", format("{:.0f} %", *gpus->utilization)});
  if (gpus && gpus->power) fields.push_back({"power", format("{:.0f} W", *gpus->power)});
  if (s.skipped_steps > 0) fields.push_back({"skipped", format("{}", s.skipped_steps)});
  return fields;
}

}  // namespace

void RunFigures::warn_of_skipped_steps(const StepStats& s) {
  if (s.skipped_steps == 0 || s.skipped_steps < 2 * skips_told_) return;
  skips_told_ = s.skipped_steps;
  log::warning("{} of {} steps so far changed nothing, because their loss or gradients held a NaN or inf{}",
               skips_told_, s.step,
               s.loss_scale == 1.0 ? "" : format("; the loss is now scaled by {:g}", s.loss_scale));
}

void RunFigures::observe_step(const StepStats& s) {
  samples_per_s_ = s.samples_per_s;
  step_ = s.step;
  const std::optional<run::GpuLoad> gpus = run_.observe(s.step, values_of(s, settings_.train));
  warn_of_skipped_steps(s);
  run_.progress()->update(s.step, progress_fields(s, gpus));
}

void RunFigures::observe_validation(const ValidationStats& s) {
  std::vector<report::TagValue> values;
  for (const auto& [name, value] : s.metrics) values.push_back({name, value});
  run_.add_figures(s.step, values);
  const auto value_of = [&](const char* name) -> const double* {
    for (const auto& [other, value] : s.metrics)
      if (other == name) return &value;
    return nullptr;
  };
  std::string figures;
  if (const double* loss = value_of(report::metric::kValidationLoss))
    figures += format(", validation loss {:.5f}", *loss);
  if (const double* success = value_of(report::metric::kRolloutSuccess))
    figures += format(", {:.1f} % of {} rollouts succeed", 100 * *success, settings_.rollout.n);
  // Of what it is the best: with rollouts and a loss it need not be both.
  const std::string& metric = settings_.train.early_stopping.metric;
  std::string watched = !metric.empty() ? metric : s.metrics.empty() ? "validation" : s.metrics.front().first;
  if (watched == report::metric::kRolloutFailure) watched = report::metric::kRolloutSuccess;  // the same, as said
  std::replace(watched.begin(), watched.end(), '/', ' ');
  log::info("step {} (epoch {}): training loss {:.5f}{}{}", s.step, s.epoch + 1, s.train_loss, figures,
            s.improved ? format(", the best {} so far", watched)
                       : format(", {} validations since the best {}", s.validations_since_best, watched));
}

}  // namespace cohort::train
