/// A task's environments as a learner sees them: every one begins anew as soon as its episode has ended, and what it
/// was like at the end is known.
///
///   Environments environments(task, /*seed=*/1);
///   const EnvironmentStep& step = environments.step(actions);   // (n, A), in the task's unit
///   environments.observations();                                // (n, O), of the next step
///
/// Of a task that computes on a device which LibTorch sees (Task::on_device()) all tensors lie there: a control step
/// copies nothing to the host but one byte for each environment, which says whose episode is over.
///
/// The seeds of episodes are a function of (seed, global environment id, how many episodes the environment has had).
///
/// state() holds where every environment is, what the task keeps of it included (Task::save()), so that restore() goes
/// on with the same bits.
#pragma once
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "rl/device_tensors.h"
#include "tasks/task.h"
#include "weights/named_tensors.h"

namespace cohort::tasks {
class DeviceEpisodes;
}

namespace cohort::rl {

/// All (n); what a control step led to, before episodes that ended were followed by new ones.
struct EnvironmentStep {
  at::Tensor rewards;             ///< float32, of the task; 0 where the environment broke
  at::Tensor dones;               ///< float32, 1 where the episode ended
  at::Tensor cut_off;             ///< float32, 1 where it ended but the state is worth something: at the horizon
  at::Tensor broken;              ///< float32, 1 where the simulation failed or gave numbers that are not finite
  at::Tensor final_observations;  ///< (n, O) float32, of the state that the step led to
  bool any_cut_off = false;       ///< whether cut_off has a 1
};

class Environments {
 public:
  /// Resets all of them. first_id: the global id of the first. staggered: every first episode is cut off at a random
  /// age, so that later ones do not all end in the same step. Throws Error for a task without rewards.
  Environments(tasks::Task& task, std::uint64_t seed, std::int64_t first_id = 0, bool staggered = false,
               const DeviceTensors& device_tensors = DeviceTensors::real());
  ~Environments();

  int size() const { return task_.n_envs(); }
  const at::Tensor& observations() const { return observations_; }
  /// Valid until the next call.
  const EnvironmentStep& step(const at::Tensor& actions);
  /// Standard normal numbers for actions, (n, width) float32, where observations are: a function of seed, global
  /// environment id and control step. Valid until the next call.
  at::Tensor action_noise(std::int64_t width, std::int64_t step);

  struct Episodes {
    double mean_return = 0, mean_length = 0;  ///< of the last hundred that ended; NaN before the first
    double success_rate = 0;                  ///< share of them in which the goal was reached in some step; likewise
    std::int64_t ended = 0, broken = 0;       ///< since the beginning
    std::int64_t counted = 0;                 ///< those that the means are of
  };
  Episodes episodes();

  /// Sums of the task's reward terms, in the order of its spec, over `steps` control steps of environments; steps that
  /// broke an environment are left out.
  struct RewardTerms {
    std::vector<double> sums;
    std::int64_t steps = 0;
  };
  /// Since the last call.
  RewardTerms take_reward_terms();

  /// Sums of the task's metrics, in the order of its spec, and of how many numbers each is: control steps of
  /// environments, or ends of episodes (MetricSpec::at_end); steps that broke an environment are left out.
  struct Metrics {
    std::vector<double> sums, counts;
  };
  /// Since the last call.
  Metrics take_metrics();

  /// What steps paid, of these environments since the beginning; steps that broke an environment are left out.
  struct Payments {
    double without_success = 0, with_success = 0;  ///< sums
    std::int64_t steps = 0, successes = 0;         ///< control steps without and with success
    std::int64_t ended = 0;                        ///< of the successes: those that ended their episode
  };
  const Payments& payments();

  /// "envs.episodes", "envs.steps" (n) int64, "envs.returns" (n) float64, "envs.reached" (n) uint8, "envs.task." and
  /// the name of each array of the task's state (n, ...); "envs.ended" (k, 3) float64, "envs.counts" (2) int64.
  weights::NamedTensors state();
  /// Throws Error where the state is of other environments. Where it is of the task with other settings, another engine
  /// or an earlier version, the log says so, new episodes begin, and the result is false.
  bool restore(const weights::NamedTensors& state, const std::string& source);

 private:
  void restore_episodes(const weights::NamedTensors& state, const std::string& source);
  std::uint64_t episode_seed(std::size_t env) const;
  /// Control steps after which its episode is cut off early; below 0: it is not.
  std::int64_t early_after(std::size_t env) const;
  bool cut_off_early(std::size_t env) const;
  at::Tensor observe();
  void say_broken(std::int64_t env);
  const EnvironmentStep& step_there(const at::Tensor& actions);
  /// What the device has counted since the last time.
  void bring_ended();
  void bring_sums();
  void begin_episodes(const std::vector<std::int32_t>& envs);
  void add_reward_terms();
  void add_metrics();

  tasks::Task& task_;
  std::uint64_t seed_;
  std::int64_t first_id_;
  bool staggered_;
  const DeviceTensors& device_tensors_;
  std::unique_ptr<tasks::DeviceEpisodes> there_;  // null: environments are seen in host memory
  at::Tensor observations_;
  EnvironmentStep step_;
  RewardTerms terms_;
  Metrics metrics_;
  Payments payments_;
  std::vector<std::int64_t> episodes_, steps_;  // of each environment: which episode, control steps since its reset
  std::vector<double> return_;
  std::vector<std::uint8_t> reached_;  // of each environment, the goal since its reset
  struct Ended {
    double episode_return, length;
    double success;  // 0 or 1; NaN: of a checkpoint that did not say
  };
  std::deque<Ended> ended_;  // the last episodes
  std::int64_t ended_count_ = 0, broken_count_ = 0;
  // Of episodes that ended on the device since bring_ended(): control steps, and whether their returns say something.
  std::vector<std::pair<std::int64_t, bool>> ended_there_;
};

}  // namespace cohort::rl
