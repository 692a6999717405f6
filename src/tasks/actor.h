/// Whoever decides what is done in the environments of a task: experts, random actions, replayed recordings, trained
/// policies, a learner's own policy.
///
///   actor.begin(envs, seeds, instruction);   // episodes begin in these environments
///   actor.act(task, envs, actions);          // then once for each control step of theirs
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "core/array_view.h"

namespace cohort::tasks {

class Task;

class Actor {
 public:
  virtual ~Actor() = default;

  /// For tables: "expert", "random", a run's name.
  virtual std::string name() const = 0;

  /// An episode begins in each of envs: what was remembered of the ones before is forgotten. seeds: of the episodes,
  /// the same that Task::reset() was given; what an actor draws at random is keyed by them, never by the environment.
  virtual void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
                     const std::string& instruction) = 0;

  /// Fills the rows of envs, whose episodes have begun, in actions (n_envs, action width) float32; leaves the others
  /// alone. What an environment gets does not depend on which others act with it.
  virtual void act(Task& task, std::span<const std::int32_t> envs, ArrayView actions) = 0;
};

/// Uniform actions between the task's bounds, a function of (seed, the episode's seed, step).
std::unique_ptr<Actor> make_random_actor(std::uint64_t seed);

/// Zeros, between the task's bounds: a robot whose actions are differences to its default pose stands.
std::unique_ptr<Actor> make_zero_actor();

}  // namespace cohort::tasks
