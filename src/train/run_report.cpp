#include "train/run_report.h"

#include <algorithm>
#include <cmath>

#include <torch/version.h>

#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/log.h"
#include "policy/checkpoint_folder.h"
#include "report/run_report.h"

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
  return checkpoint / (settings.ema.enabled ? policy::kEmaFile : policy::kModelFile);
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

namespace {

constexpr std::size_t kMostRanksShown = 16;

double per_step(double seconds, const RankTotals& rank) {
  return seconds / static_cast<double>(std::max<std::int64_t>(1, rank.steps));
}

/// Through Gloo and NCCL the exchange is not told apart, and counts as computing.
double exchange_of(const RankTotals& rank) {
  return std::isfinite(rank.exchange_s) ? rank.exchange_s : 0.0;
}

double compute_of(const RankTotals& rank) {
  return std::max(0.0, rank.seconds - rank.data_s - exchange_of(rank) - rank.checkpoint_s);
}

/// Shares of a step over all ranks, and each rank beside the others.
void add_shares(const std::vector<RankTotals>& ranks, report::NamedTexts& rows) {
  RankTotals sum;
  double compute = 0;
  for (const RankTotals& rank : ranks) {
    sum.steps += rank.steps;
    sum.seconds += rank.seconds;
    sum.data_s += rank.data_s;
    sum.exchange_s += exchange_of(rank);
    sum.checkpoint_s += rank.checkpoint_s;
    compute += compute_of(rank);
  }
  if (sum.steps == 0 || sum.seconds <= 0) return;
  const auto percent = [&](double part) { return 100 * part / sum.seconds; };
  const bool told =
      std::all_of(ranks.begin(), ranks.end(), [](const RankTotals& rank) { return std::isfinite(rank.exchange_s); });
  const std::string communication = told ? format("communication {:.0f} %, ", percent(sum.exchange_s)) : "";
  rows.emplace_back("a step", format("{:.1f} ms: compute {}{:.0f} %, data {:.0f} %, {}checkpoints {:.0f} %",
                                     1e3 * per_step(sum.seconds, sum), told ? "" : "and communication ",
                                     percent(compute), percent(sum.data_s), communication, percent(sum.checkpoint_s)));
  if (ranks.size() < 2) return;
  for (std::size_t i = 0; i < ranks.size() && i < kMostRanksShown; ++i) {
    const RankTotals& rank = ranks[i];
    const double memory = std::max(rank.host_bytes, rank.device_bytes);
    rows.emplace_back(format("rank {}", i),
                      format("{} samples; a step computes {:.1f} ms, waits {:.1f} ms for data, exchanges {:.1f} ms; {}",
                             rank.samples, 1e3 * per_step(compute_of(rank), rank), 1e3 * per_step(rank.data_s, rank),
                             1e3 * per_step(exchange_of(rank), rank), format_bytes(memory)));
  }
  const auto [least, most] =
      std::minmax_element(ranks.begin(), ranks.end(),
                          [](const RankTotals& a, const RankTotals& b) { return compute_of(a) < compute_of(b); });
  if (compute_of(*least) > 0)
    rows.emplace_back("balance", format("rank {} computes longest, {:.0f} % longer than rank {}", most - ranks.begin(),
                                        100 * (compute_of(*most) / compute_of(*least) - 1), least - ranks.begin()));
}

}  // namespace

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
  add_shares(summary.result.ranks, content.summary);
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
    report::write_run_report(folder, std::move(results), summary.result.step, &metrics);
  } catch (const std::exception& e) {
    log::warning("the report could not be written whole: {}", e.what());
  }
}

}  // namespace cohort::train
