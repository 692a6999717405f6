/// Episodes of a task that computes on a device, counted there (Task::on_device()): what a learner keeps of every control
/// step, of which the host is told one byte for each environment.
///
///   DeviceEpisodes episodes(task);
///   episodes.renew(envs, early);              // with or before Task::reset()
///   task.step(actions);
///   for (const std::uint8_t flags : episodes.count()) flags & cuda::kOver;
///   episodes.rewards(), episodes.dones();     // (n), in the device's memory
///
/// Everything runs on the task's stream.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "core/array_view.h"
#include "sim/backends/cuda/memory.h"
#include "tasks/cuda/episodes.h"
#include "tasks/task.h"

namespace cohort::tasks {

class DeviceEpisodes {
 public:
  /// Of a task with on_device(), which outlives this. No episode has begun: renew() all.
  explicit DeviceEpisodes(Task& task);

  /// Counts a control step that the task has made; EpisodeFlag of each environment, valid until the next call.
  std::span<const std::uint8_t> count();
  /// Episodes of these environments end, and others begin, which are cut off after more control steps than `early`; below
  /// 0: not.
  void renew(std::span<const std::int32_t> envs, std::span<const std::int64_t> early);

  struct Ended {
    double episode_return = 0;
    bool reached = false;  ///< the goal, in some step
  };
  /// Of the episodes that renew() has ended since the last call, in its order.
  std::vector<Ended> take_ended();

  // Of the last step that was counted, in the device's memory.
  ArrayView rewards() { return view(episodes_.rewards, -1); }  ///< (n), 0 where the environment broke
  ArrayView dones() { return view(episodes_.dones, -1); }      ///< (n), 1 where the episode ended
  ArrayView cut_off() { return view(episodes_.cut_off, -1); }  ///< (n), 1 where it ended but the state has a value
  ArrayView broken() { return view(episodes_.broken, -1); }    ///< (n), 1 where the simulation failed
  ArrayView final_observations() { return view(episodes_.final_observations, episodes_.width); }  ///< (n, O)

  /// Sums over environments since the last call; steps that broke an environment are left out.
  struct Sums {
    std::vector<double> terms;                                 ///< of the reward
    std::vector<double> metrics;                               ///< of the spec's
    std::vector<std::int64_t> metric_counts;                   ///< of how many numbers each is the sum
    double without_success = 0, with_success = 0;              ///< rewards
    std::int64_t without = 0, with = 0, ended = 0, steps = 0;  ///< EpisodeCount
  };
  Sums take_sums();

  /// Standard normal numbers for actions, (n, width), valid until the next call: a function of seed, global id and step.
  ArrayView normal(std::int64_t width, std::uint64_t seed, std::uint64_t first_id, std::uint64_t step);

  /// Of the present episodes.
  std::vector<double> returns() const;
  std::vector<std::uint8_t> reached() const;
  void set(std::span<const std::int64_t> steps, std::span<const double> returns, std::span<const std::uint8_t> reached,
           std::span<const std::int64_t> early);

 private:
  sim::cuda::DeviceMemory zeros(std::size_t bytes) const;
  ArrayView view(float* data, std::int64_t width) const;
  template <class T>
  void up(void* to, std::span<const T> from) const;
  template <class T>
  std::vector<T> down(const void* from, std::size_t count) const;
  /// Room for `count` more in the last piece of the list.
  void hold_ended(std::size_t count);

  OnDevice& there_;
  int device_, n_;
  void* stream_;
  sim::cuda::DeviceMemory floats_, flags_, doubles_, integers_, final_, reached_, noise_, chosen_, at_end_,
      metric_counts_;
  std::size_t noise_bytes_ = 0;
  struct EndedPiece {
    sim::cuda::DeviceMemory memory;  // (capacity, 2): return, and 1 where the goal was reached
    std::size_t capacity = 0, count = 0;
  };
  std::vector<EndedPiece> ended_;  // since take_ended()
  cuda::Episodes episodes_{};
  std::vector<std::uint8_t> flags_here_;
};

}  // namespace cohort::tasks
