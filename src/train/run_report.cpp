#include "train/run_report.h"

#include "core/files.h"
#include "core/log.h"
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

run::Results results_of(const Trainable& trainable, const RunSettings& settings, const TrainResult& result,
                        double samples_per_s, double seconds, const TestResult* test) {
  run::Results results{.step = result.step,
                       .weights = tested_weights(settings.train, result),
                       .weights_text = describe_weights(settings.train, result)};
  results.report.loss_name = trainable.loss_name();
  report::ReportContent& content = results.report.content;
  content.title = format("{}: {}", trainable.name(), settings.name);
  content.summary.emplace_back(
      "trained", format("{} steps in {}, {:.0f} samples/s", result.step, format_duration(seconds), samples_per_s));
  if (const std::string skipped = skipped_text(result); !skipped.empty())
    content.summary.emplace_back("skipped", skipped);
  if (!test) return results;
  const report::ErrorMetrics& overall = test->data_units.overall;
  content.test_name = test->name;
  const std::string part = test->name.substr(0, test->name.find(' '));
  content.highlights = {{part + " R2", format("{:.4f}", overall.r2)},
                        {part + " MSE, scaled", format("{:.4f}", test->scaled.overall.mse)},
                        {part + " MAE, scaled", format("{:.4f}", test->scaled.overall.mae)},
                        {"samples/s", format("{:.0f}", samples_per_s)}};
  content.test = test->data_units;
  content.test_note = format("Tested were {} ({}); errors are in the units of the data.", results.weights_text,
                             results.weights.string());
  results.report.time_label = test->time_label;
  if (test->drawn_samples > 0) {
    const auto targets = static_cast<std::int64_t>(test->targets.size());
    results.report.predictions = report::Predictions{
        .targets = test->targets,
        .truth = make_view(test->truth.data(), {test->drawn_samples, test->steps, targets}),
        .prediction = make_view(test->predicted.data(), {test->drawn_samples, test->steps, targets}),
        .first = test->main_target};
  }
  results.report.windows = test->examples;
  return results;
}

}  // namespace cohort::train
