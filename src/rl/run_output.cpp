#include "rl/run_output.h"

#include <chrono>
#include <cmath>

#include <torch/version.h>

#include "core/command_line.h"
#include "core/devices_cpu.h"
#include "core/log.h"
#include "report/metric_names.h"
#include "report/run_report.h"
#include "run/rank_shares.h"

namespace cohort::rl {
namespace {

void write_iteration(report::MetricsWriter& metrics, const Iteration& i, const IterationTimes& times,
                     double steps_per_s, const std::optional<run::GpuLoad>& gpus, const run::HostLoad& host) {
  namespace metric = report::metric;
  std::vector<report::TagValue> values{{metric::kTrainLoss, i.losses.loss},
                                       {metric::kLearningRate, i.learning_rate},
                                       {metric::kGradientNorm, std::hypot(i.losses.actor_norm, i.losses.critic_norm)},
                                       {metric::kSamplesPerSecond, steps_per_s},
                                       {metric::kStepsPerSecond, times.whole > 0 ? 1 / times.whole : 0},
                                       {metric::kComputeTime, times.compute},
                                       {metric::kCheckpointTime, times.checkpoint},
                                       {metric::kMemory, times.memory},
                                       {metric::kSurrogateLoss, i.losses.surrogate},
                                       {metric::kValueLoss, i.losses.value},
                                       {metric::kEntropy, i.losses.entropy},
                                       {metric::kKl, i.losses.kl},
                                       {metric::kNoiseStd, i.noise_std},
                                       {"rl/control_steps", static_cast<double>(i.steps)},
                                       {"rl/episodes", static_cast<double>(i.episodes.ended)},
                                       {"rl/broken", static_cast<double>(i.episodes.broken)},
                                       {"speed/collecting_s", i.collecting_s},
                                       {"speed/simulating_s", i.simulating_s},
                                       {"speed/learning_s", i.learning_s}};
  if (times.ranks > 1) {
    values.push_back({metric::kExchangeTime, times.exchange});
    values.push_back({metric::kLeastComputeTime, times.least_compute});
  }
  const run::GpuLoad of_gpus = gpus.value_or(run::GpuLoad());
  for (const auto& [name, value] :
       {std::pair(metric::kHostBusyCores, host.busy_cores), std::pair(metric::kHostLoad, host.load),
        std::pair(metric::kHostMemory, host.memory), std::pair(metric::kGpuUtilization, of_gpus.utilization),
        std::pair(metric::kLeastGpuUtilization, of_gpus.least_utilization),
        std::pair(metric::kGpuMemory, of_gpus.memory), std::pair(metric::kGpuPower, of_gpus.power)})
    if (value) values.push_back({name, *value});
  // Before the first episode has ended there is none.
  if (std::isfinite(i.episodes.mean_return)) {
    values.push_back({metric::kMeanReturn, i.episodes.mean_return});
    values.push_back({metric::kEpisodeLength, i.episodes.mean_length});
  }
  if (std::isfinite(i.episodes.success_rate)) values.push_back({metric::kSuccess, i.episodes.success_rate});
  std::vector<std::string> tags;  // which the values point to
  for (const auto& [term, mean] : i.reward_terms) tags.push_back(metric::kRewardTerms + term);
  for (std::size_t term = 0; term < tags.size(); ++term) values.push_back({tags[term], i.reward_terms[term].second});
  metrics.write(i.number, values);
}

}  // namespace

namespace {

/// Of the last hundred episodes; before the first has ended there is none.
std::string return_text(const Iteration& iteration, int digits) {
  return std::isfinite(iteration.episodes.mean_return) ? format("{:.{}f}", iteration.episodes.mean_return, digits)
                                                       : "none yet";
}

double steady_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::vector<ProgressField> progress_fields(const Iteration& iteration, double steps_per_s) {
  std::vector<ProgressField> fields{{"return", return_text(iteration, 1)},
                                    {"steps/s", format("{:.0f}", steps_per_s)},
                                    {"kl", format("{:.4f}", iteration.losses.kl)},
                                    {"lr", format("{:.1e}", iteration.learning_rate)},
                                    {"std", format("{:.2f}", iteration.noise_std)}};
  if (iteration.episodes.broken > 0) fields.push_back({"broken", format("{}", iteration.episodes.broken)});
  return fields;
}

/// "linear 0.00584, angular 0.00631".
std::string terms_text(const Iteration& iteration) {
  std::vector<std::string> texts;
  for (const auto& [term, mean] : iteration.reward_terms) texts.push_back(format("{} {:.5f}", term, mean));
  return join(texts, ", ");
}

/// "12 % of the last 100 episodes"; before the first has ended, and after resuming from a checkpoint that does not say,
/// there is none.
std::string success_text(const Iteration& iteration) {
  return std::isfinite(iteration.episodes.success_rate)
             ? format("{:.0f} % of the last {} episodes", 100 * iteration.episodes.success_rate,
                      iteration.episodes.counted)
             : "not known yet";
}

/// The figures are said ten times in a run: behind how many tenths of it this iteration is.
std::int64_t table_of(std::int64_t iteration, std::int64_t last) {
  constexpr std::int64_t kTables = 10;
  return last > 0 ? iteration * kTables / last : 0;
}

/// What rsl_rl and others print of an iteration, in a few lines. `with_success`: of a task that has been seen to have a
/// goal.
std::string figures_text(const Iteration& i, std::int64_t last, bool with_success) {
  std::string text = format("iteration {} of {}: return {}", i.number, last, return_text(i, 2));
  if (std::isfinite(i.episodes.mean_length)) text += format(", episode length {:.1f}", i.episodes.mean_length);
  if (with_success) text += ", success " + success_text(i);
  text += format("\n  value loss {:.4g}, surrogate loss {:.4g}, entropy {:.3f}, KL {:.4f}, noise std {:.3f}, lr {:.1e}",
                 i.losses.value, i.losses.surrogate, i.losses.entropy, i.losses.kl, i.noise_std, i.learning_rate);
  if (i.reward_terms.size() > 1) text += "\n  reward terms, mean of a step: " + terms_text(i);
  return text;
}

}  // namespace

PpoOutput::PpoOutput(const PpoRunSettings& settings, const report::RunFolder& folder,
                     std::vector<std::pair<std::string, std::string>> banner, std::vector<int> gpus)
    : settings_(settings), folder_(folder), banner_(std::move(banner)), gpus_(std::move(gpus)) {}

void PpoOutput::begin(std::int64_t iteration, bool resumed) {
  metrics_.emplace(folder_.path(),
                   report::MetricsSettings{.tensorboard = settings_.tensorboard,
                                           .resumed_step = resumed ? iteration : std::optional<std::int64_t>()});
  progress_.emplace(settings_.runner.max_iterations,
                    ProgressSettings{.label = "ppo", .unit = "it", .initial = iteration, .ticks = true});
  pace_.emplace(settings_.runner.max_iterations, "iteration", iteration, steady_seconds());
  last_table_ = table_of(iteration, settings_.runner.max_iterations);
}

void PpoOutput::observe(const Iteration& iteration, const IterationTimes& times) {
  const double seconds = iteration.collecting_s + iteration.learning_s;
  const double transitions = static_cast<double>(iteration.steps) / static_cast<double>(iteration.number);
  collecting_s_ += iteration.collecting_s, learning_s_ += iteration.learning_s;
  steps_per_s_ = seconds > 0 ? transitions / seconds : 0;
  write_iteration(*metrics_, iteration, times, steps_per_s_, gpus_.read(), host_.read());
  last_ = iteration;
  succeeded_ = succeeded_ || iteration.episodes.success_rate > 0;
  say_figures(iteration);
  if (progress_->due(iteration.number))
    progress_->update(iteration.number, progress_fields(iteration, steps_per_s_));
  else
    progress_->update(iteration.number);
  if (const auto line = pace_->made(iteration.number, steady_seconds())) log::info("{}", *line);
}

void PpoOutput::say_figures(const Iteration& iteration) {
  const std::int64_t last = settings_.runner.max_iterations;
  const std::int64_t table = table_of(iteration.number, last);
  if (table <= last_table_ || iteration.number >= last) return;  // finish() says the last one's
  last_table_ = table;
  log::info("{}", figures_text(iteration, last, succeeded_));
}

void PpoOutput::finish(const std::string& status, bool failed, double seconds,
                       const std::vector<run::RankTotals>& ranks) {
  if (progress_ && last_) progress_->update(last_->number, progress_fields(*last_, steps_per_s_));
  if (progress_) progress_->finish();
  if (last_) {
    log::info("{}", figures_text(*last_, settings_.runner.max_iterations, succeeded_));
    log::info("{} control steps, {} episodes, {} environments broke", last_->steps, last_->episodes.ended,
              last_->episodes.broken);
    log::info("time: collecting {:.1f} s, learning {:.1f} s", collecting_s_, learning_s_);
  }
  if (!settings_.charts || !metrics_) return;
  report::RunResults results;
  results.loss_name = "surrogate + value - entropy";
  report::ReportContent& content = results.content;
  content.title = format("ppo: {}", settings_.task);
  content.status = status;
  content.failed = failed;
  content.summary = {banner_.begin(), banner_.end()};
  if (last_) {
    // A task that nobody has been seen to succeed in may have no goal at all (Gymnasium's): its return leads then.
    if (succeeded_)
      content.highlights.emplace_back(format("success, last {} episodes of training", last_->episodes.counted),
                                      format("{:.0f} %", 100 * last_->episodes.success_rate));
    const std::string length =
        std::isfinite(last_->episodes.mean_length) ? format("{:.1f} steps", last_->episodes.mean_length) : "none yet";
    for (const auto& tile : report::NamedTexts{{"mean return", return_text(*last_, 2)},
                                               {"episode length", length},
                                               {"control steps", format("{}", last_->steps)},
                                               {"control steps/s", format("{:.0f}", steps_per_s_)}})
      content.highlights.push_back(tile);
    if (!succeeded_ && last_->episodes.success_rate == 0)
      content.highlights.emplace_back("success in training", format("none of {} episodes", last_->episodes.ended));
    content.summary.emplace_back("trained", format("{} iterations in {}", last_->number, format_duration(seconds)));
    if (last_->reward_terms.size() > 1)
      content.summary.emplace_back("reward terms", "mean of a step in the last iteration: " + terms_text(*last_));
    for (auto& row : run::rank_shares(ranks, "an iteration")) content.summary.push_back(std::move(row));
  }
  content.machine = report::describe_machine({.libtorch = TORCH_VERSION, .usable_cores = available_cores()});
  report::write_run_report(folder_, std::move(results), last_ ? last_->number : 0,
                           settings_.tensorboard_charts ? &*metrics_ : nullptr);
}

void say_what_next(const PpoRunSettings& settings, const tasks::Task& task, const std::filesystem::path& run) {
  if (settings.tensorboard)
    log::info("curves   tensorboard --logdir {}", shell_quoted(report::events_folder(run).parent_path().string()));
  std::string command = format("{} evaluate --task {}", settings.program, settings.task);
  for (const std::string& setting : settings.task_settings) command += " " + shell_quoted(setting);
  if (settings.engine != "batched") command += " --engine " + settings.engine;
  command += " --policy " + shell_quoted(run.string());  // takes all words up to the next flag
  log::info("evaluate {} --episodes 100", command);
  if (!task.spec().cameras.empty())
    log::info("video    {} --episodes 4 --out {} --record-video", command, shell_quoted((run / "video").string()));
}

}  // namespace cohort::rl
