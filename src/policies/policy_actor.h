/// A trained policy as an Actor: observations by the names of the data it learnt from, actions back to the task.
///
///   TrainedPolicy policy("outputs/push_t_policy/latest");
///   PolicyActor actor(policy, *task, "push_t_policy");     // Error where the two do not fit
///   eval::rollout(*task, actor, seeds, settings);
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "policies/trained_policy.h"
#include "tasks/actor.h"
#include "tasks/recorded_names.h"

namespace cohort::policies {

class PolicyActor final : public tasks::Actor {
 public:
  /// The policy must outlive this. Its fields and cameras are the task's observations and cameras of the same name
  /// (core/observation_names.h) or of the names of a field's elements (tasks/recorded_names.h), its one action the
  /// task's. Throws Error naming what the task lacks, and where a width differs.
  PolicyActor(TrainedPolicy& policy, tasks::Task& task, std::string name);

  std::string name() const override { return name_; }
  /// What the policy remembers and draws is keyed by the episode's seed. A policy that learnt from every k-th step
  /// (data.stride) looks and decides at every k-th control step, and its action is held in between.
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds,
             const std::string& instruction) override;
  void act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) override;

 private:
  void check_action(const tasks::Task& task) const;
  /// Fills the rows of envs in held_.
  void decide(tasks::Task& task, std::span<const std::int32_t> envs);

  TrainedPolicy& policy_;
  std::string name_;
  std::vector<tasks::FieldPlace> observations_;      ///< of the task, in the policy's order
  std::vector<std::string> cameras_;                 ///< likewise
  std::vector<std::optional<std::uint64_t>> seeds_;  ///< of the episodes, by environment
  std::vector<std::int64_t> steps_;                  ///< of them, likewise
  std::vector<float> held_;                          ///< (environments, action width)
  std::vector<std::vector<std::uint8_t>> pictures_;  ///< by camera, of the environments that act
};

}  // namespace cohort::policies
