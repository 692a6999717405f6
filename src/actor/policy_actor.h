/// A policy of any kind as an Actor of any task: observations by the names of the data it learnt from, actions back to the
/// task.
///
///   const auto policy = policy::load("outputs/push/latest");
///   PolicyActor actor(*policy, *task, "push");            // Error where the two do not fit
///   tasks::run_episodes(*task, actor, seeds);
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"
#include "tasks/actor.h"
#include "tasks/recorded_names.h"

namespace cohort::actor {

class PolicyActor final : public tasks::Actor {
 public:
  /// The policy must outlive this. What it sees are the task's observations and cameras of the same name
  /// (core/observation_names.h) or of the names of a field's elements (tasks/recorded_names.h), its one action the
  /// task's. Throws Error naming what the task lacks, and where a width differs.
  PolicyActor(policy::Policy& policy, const tasks::Task& task, std::string name);

  std::string name() const override { return name_; }
  /// What the policy remembers and draws is keyed by the episode's seed.
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
             const std::string& instruction) override;
  /// The policy is asked when the actions of its last answer are used up. In between it sees the moments that it looks at,
  /// every Spec::stride-th, and nothing is drawn for the others.
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override;

 private:
  struct Environment {
    std::vector<float> actions;  ///< (rows, action width) of the last answer
    std::int64_t left = 0;       ///< rows that are still to be executed, the last ones
  };
  void add_numbers(const tasks::TaskSpec& task, const policy::Observation& seen);
  void add_pictures(const tasks::TaskSpec& task, const policy::Observation& seen);
  void check_action(const tasks::TaskSpec& task) const;
  /// What envs see. It is valid until the next call.
  policy::Frame look(tasks::Task& task, std::span<const std::int32_t> envs);

  const policy::Spec spec_;
  const std::string name_;
  std::int64_t width_ = 0;                       ///< of an action
  std::vector<tasks::FieldPlace> observations_;  ///< of the task, in the policy's order
  std::vector<std::string> cameras_;             ///< likewise
  std::unique_ptr<policy::Session> session_;
  std::vector<Environment> environments_;
  std::vector<float> low_dim_;                       ///< of a Frame
  std::vector<std::vector<std::uint8_t>> pictures_;  ///< likewise, by camera
  std::vector<ArrayView> images_;
};

/// In what a task differs from the one that the policy has learnt: another task, or settings that its training gave; a line
/// each. Empty where it is the same, or the policy does not say.
std::vector<std::string> differences(const policy::Spec& policy, const tasks::Task& task);

}  // namespace cohort::actor
