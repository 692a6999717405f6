/// Nearest-neighbour replay of recorded Push-T episodes: the baseline that a policy must beat to show that it does more
/// than remember.
#pragma once
#include <cstdint>
#include <memory>

#include "data/episodes.h"
#include "tasks/push_t_rollout.h"

namespace cohort::record {

class PushTReplay {
 public:
  /// Reads observation/state and action of every episode into memory. Throws Error for a source without them, or of
  /// other widths.
  explicit PushTReplay(const data::EpisodeSource& source);

  /// Every `horizon` steps finds the recorded step whose agent and block corners are nearest to the present ones, and
  /// plays the actions that followed it; at the episode's end its last. Throws Error for a horizon below 1.
  tasks::PushTPolicy policy(std::int64_t horizon = 8) const;

  /// Steps that are remembered.
  std::int64_t size() const;

 private:
  struct Memory;
  std::shared_ptr<const Memory> memory_;
};

}  // namespace cohort::record
