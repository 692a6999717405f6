#include "record/replay_actor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "core/error.h"
#include "core/observation_names.h"
#include "core/threads.h"

namespace cohort::record {
namespace {

std::size_t number_field(const data::EpisodeSource& source, const std::string& name, std::int64_t width) {
  const std::size_t index = source.field_index(name);
  const data::StepField& field = source.fields()[index];
  COHORT_THROW_UNLESS(field.kind == data::StepKind::kNumber && field.elements() == width,
                      "{}: {} does not have {} numbers, as the task's does", source.name(), name, width);
  return index;
}

class ReplayActor final : public tasks::Actor {
 public:
  ReplayActor(const data::EpisodeSource& source, const tasks::TaskSpec& spec, std::int64_t horizon, int threads)
      : horizon_(horizon), threads_(threads), width_(static_cast<std::size_t>(spec.action.width())) {
    COHORT_THROW_UNLESS(horizon >= 1, "a replay plays at least 1 step at a time, not {}", horizon);
    std::vector<std::size_t> fields;
    for (const tasks::FieldSpec& field : spec.observations) {
      fields.push_back(number_field(source, recorded_observation(source, field.name), field.elements()));
      widths_.push_back(static_cast<std::size_t>(field.elements()));
      features_ += widths_.back();
    }
    const std::size_t action = number_field(source, recorded_action(source, spec.action.field), spec.action.width());
    for (std::int64_t e = 0; e < source.size(); ++e) add(*source.open(e), fields, action);
    COHORT_THROW_UNLESS(!ends_.empty(), "{}: there is no step to replay", source.name());
    scale();
  }

  std::string name() const override { return "replay"; }

  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t>, const std::string&) override {
    for (const std::int32_t env : envs) {
      if (static_cast<std::size_t>(env) >= playing_.size()) playing_.resize(static_cast<std::size_t>(env) + 1);
      playing_[static_cast<std::size_t>(env)] = {};
    }
  }

  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override {
    std::vector<std::span<const float>> seen;
    for (std::size_t i = 0; i < widths_.size(); ++i) seen.push_back(task.observation(i).span<float>());
    const auto rows = actions.span<float>();
    parallel_for(static_cast<std::int64_t>(envs.size()), threads_, [&](std::int64_t i) {
      const auto env = static_cast<std::size_t>(envs[static_cast<std::size_t>(i)]);
      Playing& playing = playing_.at(env);
      if (playing.step++ % horizon_ == 0)
        playing.at = nearest(seen, env);
      else
        playing.at = std::min(playing.at + 1, ends_[playing.at] - 1);
      std::copy_n(actions_.begin() + static_cast<std::ptrdiff_t>(playing.at * width_), width_,
                  rows.begin() + static_cast<std::ptrdiff_t>(env * width_));
    });
  }

 private:
  struct Playing {
    std::int64_t step = 0;
    std::size_t at = 0;
  };

  void add(const data::Episode& episode, const std::vector<std::size_t>& fields, std::size_t action) {
    const auto steps = static_cast<std::size_t>(episode.steps());
    const std::size_t begin = ends_.size();
    rows_.resize((begin + steps) * features_);
    std::size_t column = 0;
    std::vector<float> values;
    for (std::size_t f = 0; f < fields.size(); ++f) {
      values.resize(steps * widths_[f]);
      episode.read(fields[f], 0, episode.steps(), std::span(values));
      for (std::size_t t = 0; t < steps; ++t)
        std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(t * widths_[f]), widths_[f],
                    rows_.begin() + static_cast<std::ptrdiff_t>((begin + t) * features_ + column));
      column += widths_[f];
    }
    values.resize(steps * width_);
    episode.read(action, 0, episode.steps(), std::span(values));
    actions_.insert(actions_.end(), values.begin(), values.end());
    ends_.resize(begin + steps, begin + steps);
  }

  /// Fills the weights, and applies them to what is remembered.
  void scale() {
    const std::size_t steps = ends_.size();
    weights_.resize(features_);
    std::size_t column = 0;
    for (const std::size_t width : widths_)
      for (std::size_t i = 0; i < width; ++i, ++column) {
        double sum = 0, squares = 0;
        for (std::size_t t = 0; t < steps; ++t) sum += rows_[t * features_ + column];
        const double mean = sum / static_cast<double>(steps);
        for (std::size_t t = 0; t < steps; ++t) {
          const double d = rows_[t * features_ + column] - mean;
          squares += d * d;
        }
        const double deviation = std::sqrt(squares / static_cast<double>(steps));
        // What never changed in the recording says nothing.
        weights_[column] = deviation > 1e-9 * (1 + std::abs(mean))
                               ? static_cast<float>(1 / (deviation * std::sqrt(static_cast<double>(width))))
                               : 0.0f;
      }
    for (std::size_t i = 0; i < rows_.size(); ++i) rows_[i] *= weights_[i % features_];
  }

  std::size_t nearest(const std::vector<std::span<const float>>& seen, std::size_t env) const {
    std::vector<float> wanted;
    for (std::size_t f = 0; f < widths_.size(); ++f)
      for (std::size_t i = 0; i < widths_[f]; ++i)
        wanted.push_back(seen[f][env * widths_[f] + i] * weights_[wanted.size()]);
    std::size_t best = 0;
    float best_distance = std::numeric_limits<float>::infinity();
    for (std::size_t t = 0; t < ends_.size(); ++t) {
      const float* row = rows_.data() + t * features_;
      float distance = 0;
      for (std::size_t i = 0; i < features_ && distance < best_distance; ++i) {
        const float d = row[i] - wanted[i];
        distance += d * d;
      }
      if (distance < best_distance) {
        best = t;
        best_distance = distance;
      }
    }
    return best;
  }

  std::int64_t horizon_;
  int threads_;
  std::size_t width_, features_ = 0;
  std::vector<std::size_t> widths_;  ///< of the observations
  std::vector<float> rows_, actions_, weights_;
  std::vector<std::size_t> ends_;  ///< of the step's episode, one beyond its last step
  std::vector<Playing> playing_;   ///< by environment
};

}  // namespace

std::string recorded_observation(const data::EpisodeSource& source, const std::string& name) {
  // `cohort collect` keeps a task's own `state` so where LeRobot's observation.state is another.
  for (const data::StepField& field : source.fields())
    if (field.name == "recorded.observation." + name) return field.name;
  for (const data::StepField& field : source.fields())
    if (is_observation(field.name) && same_observation(field.name, name)) return field.name;
  throw Error(
      format("{} has no observation {}, as observation/{}, obs/{} or observation.{}: it is no recording of this "
             "task",
             source.name(), name, name, name, name));
}

std::string recorded_action(const data::EpisodeSource& source, const std::string& name) {
  for (const std::string& candidate : {name, name + "s"})
    for (const data::StepField& field : source.fields())
      if (field.name == candidate) return candidate;
  throw Error(format("{} has neither {} nor {}s: it is no recording of this task", source.name(), name, name));
}

std::unique_ptr<tasks::Actor> make_replay_actor(const data::EpisodeSource& source, const tasks::TaskSpec& spec,
                                                std::int64_t horizon, int threads) {
  return std::make_unique<ReplayActor>(source, spec, horizon, threads);
}

}  // namespace cohort::record
