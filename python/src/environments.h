/// A task's environments as Python sees them: episodes follow one another by gymnasium's rules, and every array that is
/// handed out owns what it shows.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "tasks/task.h"

namespace cohort::python {

/// When an environment whose episode has ended begins the next one (gymnasium's AutoresetMode): in the same step, so that
/// the step's observation is the next episode's first; instead of the next step, whose action is not taken; or when it
/// is told to.
enum class Autoreset : std::uint8_t { kSameStep, kNextStep, kDisabled };

/// A task, what its last step gave, and which episode each environment is in. Views of its memory hold a share of it, so
/// that it lives as long as the last of them.
class EnvironmentBatch {
 public:
  EnvironmentBatch(const std::string& task, const tasks::TaskSettings& settings, Autoreset autoreset);
  ~EnvironmentBatch();
  EnvironmentBatch(const EnvironmentBatch&) = delete;
  EnvironmentBatch& operator=(const EnvironmentBatch&) = delete;

  tasks::Task& task() { return *task_; }
  std::size_t size() const { return seeds_.size(); }
  std::int64_t width() const { return width_; }
  Autoreset autoreset() const { return autoreset_; }

  /// Begins an episode in each of envs. The later episodes of an environment have seeds that are drawn from this one and
  /// the episode's number.
  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds);
  /// The next episode of each.
  void begin_next(std::span<const std::int32_t> envs);
  void step(ArrayView actions);

  // Of the last step, (n); an environment that broke is paid nothing and has terminated.
  std::vector<float> rewards;
  std::vector<std::uint8_t> terminated, truncated, success, broken;
  std::vector<float> reward_terms;          ///< (n, terms); no columns where the task does not say what its terms are
  std::vector<std::int32_t> ended;          ///< environments whose episode the last step ended, in ascending order
  std::vector<float> final_observations;    ///< (ended, width), of kSameStep
  std::vector<std::int64_t> episode_steps;  ///< control steps since the reset; 0 after one

  /// All numbers side by side, in the order of the fields: (n, width).
  void observe(std::span<float> out);
  /// Of one environment: (width).
  void observe(std::int32_t env, std::span<float> out);

  /// Throws Error in a process that has been forked from the one that made it: its threads are not there.
  void check_process() const;
  /// One call at a time: threads of Python meet here.
  class Turn {
   public:
    explicit Turn(EnvironmentBatch& batch);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    EnvironmentBatch& batch_;
  };

 private:
  std::unique_ptr<tasks::Task> task_;
  const Autoreset autoreset_;
  const pid_t process_;
  std::atomic<bool> busy_{false};
  std::vector<std::uint64_t> seeds_;    // of each environment: that its first episode began with
  std::vector<std::int64_t> episodes_;  // since then
  std::vector<std::int64_t> widths_;    // of the fields
  std::int64_t width_ = 0;
  std::vector<std::int32_t> waiting_;  // kNextStep: they begin anew in the next step
};

}  // namespace cohort::python
