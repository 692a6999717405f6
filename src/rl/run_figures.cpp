#include "rl/run_figures.h"

#include <cmath>

#include "core/log.h"
#include "report/metric_names.h"

namespace cohort::rl {
namespace {

/// `tags` keeps the names that values point to.
std::vector<report::TagValue> values_of(const Iteration& i, const IterationTimes& times, double steps_per_s,
                                        std::vector<std::string>& tags) {
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
  // Before the first episode has ended there is none.
  if (std::isfinite(i.episodes.mean_return)) {
    values.push_back({metric::kMeanReturn, i.episodes.mean_return});
    values.push_back({metric::kEpisodeLength, i.episodes.mean_length});
  }
  if (std::isfinite(i.episodes.success_rate)) values.push_back({metric::kSuccess, i.episodes.success_rate});
  for (const auto& [term, mean] : i.reward_terms) tags.push_back(metric::kRewardTerms + term);
  for (const auto& [name, mean] : i.metrics) tags.push_back(metric::kTaskMetrics + name);
  for (std::size_t tag = 0; tag < tags.size(); ++tag) {
    const std::size_t terms = i.reward_terms.size();
    values.push_back({tags[tag], tag < terms ? i.reward_terms[tag].second : i.metrics[tag - terms].second});
  }
  return values;
}

/// Of the last hundred episodes; before the first has ended there is none.
std::string return_text(const Iteration& iteration, int digits) {
  return std::isfinite(iteration.episodes.mean_return) ? format("{:.{}f}", iteration.episodes.mean_return, digits)
                                                       : "none yet";
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
std::string means_text(const std::vector<std::pair<std::string, double>>& means) {
  std::vector<std::string> texts;
  for (const auto& [term, mean] : means) texts.push_back(format("{} {:.5f}", term, mean));
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

/// How many times the figures have been said by this iteration: every so many, or ten times in a run.
std::int64_t table_of(std::int64_t iteration, std::int64_t last, std::int64_t interval) {
  constexpr std::int64_t kTables = 10;
  if (interval > 0) return iteration / interval;
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
  if (i.reward_terms.size() > 1) text += "\n  reward terms, mean of a step: " + means_text(i.reward_terms);
  if (!i.metrics.empty()) text += "\n  metrics: " + means_text(i.metrics);
  return text;
}

}  // namespace

IterationFigures::IterationFigures(run::Run& run, const PpoRunSettings& settings, std::int64_t iteration)
    : run_(run),
      settings_(settings),
      last_table_(table_of(iteration, settings.runner.max_iterations, settings.log_interval)) {}

void IterationFigures::observe(const Iteration& iteration, const IterationTimes& times) {
  const double seconds = iteration.collecting_s + iteration.learning_s;
  const double transitions = static_cast<double>(iteration.steps) / static_cast<double>(iteration.number);
  collecting_s_ += iteration.collecting_s, learning_s_ += iteration.learning_s;
  steps_per_s_ = seconds > 0 ? transitions / seconds : 0;
  std::vector<std::string> tags;
  run_.observe(iteration.number, values_of(iteration, times, steps_per_s_, tags));
  last_ = iteration;
  succeeded_ = succeeded_ || iteration.episodes.success_rate > 0;
  say_figures(iteration);
  if (run_.progress()->due(iteration.number))
    run_.progress()->update(iteration.number, progress_fields(iteration, steps_per_s_));
  else
    run_.progress()->update(iteration.number);
}

void IterationFigures::say_figures(const Iteration& iteration) {
  const std::int64_t last = settings_.runner.max_iterations;
  const std::int64_t table = table_of(iteration.number, last, settings_.log_interval);
  if (table <= last_table_ || iteration.number >= last) return;  // say_last() says the last one's
  last_table_ = table;
  log::info("{}", figures_text(iteration, last, succeeded_));
}

void IterationFigures::end() {
  if (last_) run_.progress()->update(last_->number, progress_fields(*last_, steps_per_s_));
}

void IterationFigures::say_last() const {
  if (!last_) return;
  log::info("{}", figures_text(*last_, settings_.runner.max_iterations, succeeded_));
  log::info("{} control steps, {} episodes, {} environments broke", last_->steps, last_->episodes.ended,
            last_->episodes.broken);
  log::info("time: collecting {:.1f} s, learning {:.1f} s", collecting_s_, learning_s_);
}

void IterationFigures::add_to(report::ReportContent& content, double seconds) const {
  if (!last_) return;
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
    content.summary.emplace_back("reward terms",
                                 "mean of a step in the last iteration: " + means_text(last_->reward_terms));
  if (!last_->metrics.empty())
    content.summary.emplace_back("metrics", "in the last iteration: " + means_text(last_->metrics));
}

}  // namespace cohort::rl
