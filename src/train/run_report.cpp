#include "train/run_report.h"

#include <utility>

#include <torch/version.h>

#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/log.h"
#include "report/run_report.h"
#include "run/rank_shares.h"
#include "weights/checkpoint_folder.h"

namespace cohort::train {

std::string skipped_text(const TrainResult& result) {
  if (result.skipped_steps == 0) return "";
  return format("{} of {} steps changed nothing, because their loss or gradients held a NaN or inf",
                result.skipped_steps, result.step);
}

std::string describe_test(const TestResult& test) {
  const report::ErrorMetrics& overall = test.scaled.overall;
  std::string text =
      format("{}, {} samples, in the units of the data:\n{}\nscaled as in training: MSE {:.4f}, MAE {:.4f}", test.name,
             test.samples, test.data_units.to_table(), overall.mse, overall.mae);
  if (!test.scaled_full_batches.targets.empty() && test.scaled_full_batches.overall.count != overall.count)
    text += format(" (without a last batch that is not full: MSE {:.4f}, MAE {:.4f})",
                   test.scaled_full_batches.overall.mse, test.scaled_full_batches.overall.mae);
  return text;
}

std::filesystem::path tested_weights(const TrainSettings& settings, const TrainResult& result) {
  const auto checkpoint = std::filesystem::path("checkpoints") / (result.weights_step == result.step ? "last" : "best");
  return checkpoint / (settings.ema.enabled ? weights::kEmaFile : weights::kModelFile);
}

std::string describe_weights(const TrainSettings& settings, const TrainResult& result) {
  return format("the {} of step {}, the {}", settings.ema.enabled ? "moving average of the weights" : "weights",
                result.weights_step, result.weights_step == result.step ? "last" : "best validation");
}

void write_test_metrics(const report::RunFolder& folder, const TestResult& test) {
  try {
    write_file_atomically(
        folder.path() / "test_metrics.json",
        format("{{\"data_units\":{},\n\"scaled\":{},\n\"scaled_full_batches\":{}}}\n", test.data_units.to_json(),
               test.scaled.to_json(),
               test.scaled_full_batches.targets.empty() ? std::string("null") : test.scaled_full_batches.to_json()));
    write_file_atomically(folder.path() / "test_metrics.txt", describe_test(test) + "\n");
  } catch (const std::exception& e) {
    log::warning("the figures of the test set could not be written: {}", e.what());
  }
}

void remove_test_results(const report::RunFolder& folder) {
  std::error_code ignored;
  for (const char* file : {"test_metrics.json", "test_metrics.txt"})
    std::filesystem::remove(folder.path() / file, ignored);
  for (const char* chart : {"prediction", "residuals", "forecast"})
    for (const char* type : {".svg", ".png"})
      std::filesystem::remove(folder.charts() / (std::string(chart) + type), ignored);
}

void write_report(const Trainable& trainable, const RunSettings& settings, const report::RunFolder& folder,
                  const RunSummary& summary, const TestResult* test, report::MetricsWriter& metrics) {
  report::RunResults results;
  report::ReportContent& content = results.content;
  content.title = format("{}: {}", trainable.name(), settings.name);
  content.status = summary.status;
  content.failed = summary.failed;
  content.summary = {summary.banner.begin(), summary.banner.end()};
  content.summary.emplace_back("trained", format("{} steps in {}, {:.0f} samples/s", summary.result.step,
                                                 format_duration(summary.seconds), summary.samples_per_s));
  for (auto& row : run::rank_shares(summary.result.ranks, "a step")) content.summary.push_back(std::move(row));
  if (summary.gpu_utilization)
    content.summary.emplace_back(
        "GPUs", format("busy {:.0f} % of the time{}", *summary.gpu_utilization,
                       *summary.gpu_utilization < 80 ? "; below 80 %: the loader, small batches or the ranks' "
                                                       "communication hold them up (docs/guide/troubleshooting.md)"
                                                     : ""));
  if (const std::string skipped = skipped_text(summary.result); !skipped.empty())
    content.summary.emplace_back("skipped", skipped);
  content.machine = report::describe_machine({.libtorch = TORCH_VERSION, .usable_cores = available_cores()});
  results.loss_name = trainable.loss_name();
  try {
    if (test) {
      const report::ErrorMetrics& overall = test->data_units.overall;
      content.test_name = test->name;
      const std::string part = test->name.substr(0, test->name.find(' '));
      content.highlights = {{part + " R2", format("{:.4f}", overall.r2)},
                            {part + " MSE, scaled", format("{:.4f}", test->scaled.overall.mse)},
                            {part + " MAE, scaled", format("{:.4f}", test->scaled.overall.mae)},
                            {"samples/s", format("{:.0f}", summary.samples_per_s)}};
      content.test = test->data_units;
      results.time_label = test->time_label;
      content.test_note = format("Tested were {} ({}); errors are in the units of the data.",
                                 describe_weights(settings.train, summary.result),
                                 tested_weights(settings.train, summary.result).string());
      if (test->drawn_samples > 0) {
        const auto targets = static_cast<std::int64_t>(test->targets.size());
        results.predictions = report::Predictions{
            .targets = test->targets,
            .truth = make_view(test->truth.data(), {test->drawn_samples, test->steps, targets}),
            .prediction = make_view(test->predicted.data(), {test->drawn_samples, test->steps, targets}),
            .first = test->main_target};
      }
      results.windows = test->examples;
    }
    report::write_run_report(folder, std::move(results), summary.result.step,
                             settings.tensorboard_charts ? &metrics : nullptr);
  } catch (const std::exception& e) {
    log::warning("the report could not be written whole: {}", e.what());
  }
}

}  // namespace cohort::train
