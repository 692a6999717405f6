#include "tasks/rollout.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/philox.h"
#include "core/stop_signal.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::tasks {
namespace {

class Rollout {
 public:
  Rollout(Task& task, Actor& actor, std::span<const std::uint64_t> seeds, const RolloutSettings& settings,
          RolloutObserver* observer)
      : task_(task),
        actor_(actor),
        seeds_(seeds),
        settings_(settings),
        observer_(observer),
        width_(static_cast<std::size_t>(task.spec().action.width())),
        outcomes_(seeds.size()),
        chosen_(static_cast<std::size_t>(task.n_envs()) * width_),
        executed_(chosen_.size()) {
    const TaskSpec& spec = task.spec();
    COHORT_THROW_UNLESS(!seeds.empty(), "{}: no episode is asked for; at least 1 is needed", spec.name);
    check(spec, settings);
    limit_ = settings.max_steps > 0 ? settings.max_steps : spec.horizon;
    for (std::size_t i = 0; i < chosen_.size(); ++i)
      chosen_[i] = 0.5f * (spec.action.low[i % width_] + spec.action.high[i % width_]);
    executed_ = chosen_;
  }

  std::vector<EpisodeOutcome> run() {
    fill_slots();
    while (!running_.empty()) {
      if (const int signal = stop_wanted()) throw Stopped(signal, "stopped");
      step();
      fill_slots();
    }
    return std::move(outcomes_);
  }

 private:
  ArrayView view(std::vector<float>& rows) const {
    return make_view(rows.data(), {task_.n_envs(), static_cast<std::int64_t>(width_)});
  }

  void fill_slots() {
    std::vector<bool> taken(static_cast<std::size_t>(task_.n_envs()), false);
    for (const RunningEpisode& r : running_) taken[static_cast<std::size_t>(r.env)] = true;
    std::vector<std::int32_t> envs, first_envs;
    std::vector<std::uint64_t> seeds, first_seeds;
    for (std::size_t env = 0; env < taken.size(); ++env) {
      if (taken[env]) continue;
      const bool begins = next_ < seeds_.size();
      // Environments that get no episode are reset once, so that none is stepped before.
      if (!begins && steps_made_) continue;
      const std::uint64_t seed = begins ? seeds_[next_] : seeds_.front();
      first_envs.push_back(static_cast<std::int32_t>(env));
      first_seeds.push_back(seed);
      if (!begins) continue;
      outcomes_[next_].seed = seed;
      envs.push_back(first_envs.back());
      seeds.push_back(seed);
      running_.push_back({next_++, envs.back()});
    }
    if (!first_envs.empty()) task_.reset(first_envs, first_seeds);
    if (!envs.empty())
      actor_.begin(envs, seeds, settings_.instruction.empty() ? task_.spec().instruction : settings_.instruction);
    std::sort(running_.begin(), running_.end(), [](const auto& a, const auto& b) { return a.env < b.env; });
  }

  /// What is executed in place of what was chosen.
  void disturb(const RunningEpisode& r) {
    const ActionSpec& spec = task_.spec().action;
    const EpisodeOutcome& outcome = outcomes_[r.episode];
    const RandomStream draw(settings_.noise_seed, RandomPurpose::kEnvironment, outcome.seed,
                            static_cast<std::uint64_t>(outcome.steps));
    for (std::size_t i = 0; i < width_; ++i) {
      const std::size_t at = static_cast<std::size_t>(r.env) * width_ + i;
      const float half = 0.5f * (spec.high[i] - spec.low[i]);
      const float sum = chosen_[at] + static_cast<float>(settings_.noise) * half * draw.normal(i);
      executed_[at] = std::clamp(sum, std::min(spec.low[i], chosen_[at]), std::max(spec.high[i], chosen_[at]));
    }
  }

  void step() {
    std::vector<std::int32_t> envs;
    for (const RunningEpisode& r : running_) envs.push_back(r.env);
    actor_.act(task_, envs, view(chosen_));
    for (const RunningEpisode& r : running_) {
      const auto row = std::span(chosen_).subspan(static_cast<std::size_t>(r.env) * width_, width_);
      EpisodeOutcome& outcome = outcomes_[r.episode];
      if (!std::all_of(row.begin(), row.end(), [](float x) { return std::isfinite(x); }))
        outcome.fault = format("step {}: the action is not finite", outcome.steps + 1);
      std::copy(row.begin(), row.end(),
                executed_.begin() + static_cast<std::ptrdiff_t>(r.env) * static_cast<std::ptrdiff_t>(width_));
      if (settings_.noise > 0 && outcome.fault.empty()) disturb(r);
    }
    if (observer_) observer_->acting(task_, running_, view(chosen_));
    task_.step(view(executed_));
    steps_made_ = true;
    take_stock();
  }

  void take_stock() {
    const auto reward = task_.reward().span<float>();
    const ArrayView term_view = task_.reward_terms();
    const auto terms_of = static_cast<std::size_t>(term_view.shape[1]);
    const std::span<const float> terms = terms_of > 0 ? term_view.span<float>() : std::span<float>();
    const std::vector<MetricSpec>& metrics = task_.spec().metrics;
    const std::span<const float> metric_values = metrics.empty() ? std::span<float>() : task_.metrics().span<float>();
    const auto success = task_.success().span<std::uint8_t>(), terminated = task_.terminated().span<std::uint8_t>(),
               truncated = task_.truncated().span<std::uint8_t>(), broken = task_.broken().span<std::uint8_t>();
    std::vector<RunningEpisode> going_on, over;
    for (const RunningEpisode& r : running_) {
      const auto env = static_cast<std::size_t>(r.env);
      EpisodeOutcome& outcome = outcomes_[r.episode];
      ++outcome.steps;
      if (broken[env] && outcome.fault.empty()) outcome.fault = format("step {}: the simulation failed", outcome.steps);
      if (outcome.fault.empty() && !std::isfinite(reward[env]))
        outcome.fault = format("step {}: the reward is not finite", outcome.steps);
      if (outcome.fault.empty()) {
        outcome.total_reward += reward[env];
        outcome.max_reward = outcome.steps == 1 ? reward[env] : std::max<double>(outcome.max_reward, reward[env]);
        if (success[env] && !outcome.success) outcome.success = true, outcome.success_step = outcome.steps;
        outcome.terms.resize(terms_of);
        for (std::size_t i = 0; i < terms_of; ++i) outcome.terms[i] += static_cast<double>(terms[env * terms_of + i]);
        outcome.metrics.resize(metrics.size());
        for (std::size_t i = 0; i < metrics.size(); ++i) {
          const auto now = static_cast<double>(metric_values[env * metrics.size() + i]);
          double& value = outcome.metrics[i];
          value = metrics[i].at_end ? now : value + (now - value) / static_cast<double>(outcome.steps);
        }
      }
      const bool goal_ends = settings_.end_at_success && outcome.success;
      outcome.failed = !outcome.fault.empty();
      outcome.terminated = outcome.failed || terminated[env] || goal_ends;
      if (outcome.failed) outcome.success = false, outcome.success_step = 0;
      (outcome.terminated || truncated[env] || outcome.steps >= limit_ ? over : going_on).push_back(r);
    }
    if (observer_) observer_->stepped(task_, running_);
    running_ = std::move(going_on);
    if (observer_)
      for (const RunningEpisode& r : over) observer_->ended(r, outcomes_[r.episode]);
  }

  Task& task_;
  Actor& actor_;
  std::span<const std::uint64_t> seeds_;
  const RolloutSettings& settings_;
  RolloutObserver* observer_;
  std::size_t width_, next_ = 0;
  std::int64_t limit_ = 0;
  bool steps_made_ = false;
  std::vector<EpisodeOutcome> outcomes_;
  std::vector<float> chosen_, executed_;
  std::vector<RunningEpisode> running_;
};

}  // namespace

void check(const TaskSpec& spec, const RolloutSettings& settings) {
  COHORT_THROW_UNLESS(settings.max_steps >= 0, "{}: episodes of {} steps; at least 1 is needed", spec.name,
                      settings.max_steps);
  COHORT_THROW_UNLESS(spec.horizon <= 0 || settings.max_steps <= spec.horizon,
                      "{} ends its episodes after {} steps: they cannot have {}", spec.name, spec.horizon,
                      settings.max_steps);
  COHORT_THROW_UNLESS(settings.noise >= 0 && std::isfinite(settings.noise),
                      "{}: the noise is a standard deviation, not {}", spec.name, settings.noise);
  COHORT_THROW_UNLESS(settings.max_steps > 0 || spec.horizon > 0,
                      "{} has no horizon: say how many steps an episode may have", spec.name);
}

std::vector<EpisodeOutcome> run_episodes(Task& task, Actor& actor, std::span<const std::uint64_t> seeds,
                                         const RolloutSettings& settings, RolloutObserver* observer) {
  return Rollout(task, actor, seeds, settings, observer).run();
}

std::vector<std::uint64_t> consecutive_seeds(std::uint64_t first, std::int64_t count) {
  COHORT_THROW_UNLESS(count >= 1, "{} episodes are asked for: at least 1 is needed", count);
  std::vector<std::uint64_t> seeds;
  for (std::int64_t i = 0; i < count; ++i) seeds.push_back(first + static_cast<std::uint64_t>(i));
  return seeds;
}

}  // namespace cohort::tasks
