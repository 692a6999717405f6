/// A training that goes on from what its ranks have in memory: when another rank has died and a new process takes its
/// place, and when the job goes on with other ranks.
///
/// A step is made when weights, optimizer, average, schedule and counters have all advanced. In between there is no
/// communication, so that a rank whose group breaks stands at a whole step. A gradient reaches the others only when all
/// have given theirs, so that ranks differ by one step at most; whoever has made the most gives its state to the others.
/// What only one rank has (RankState) it leaves in its page before it gives its gradients: whatever step the others have
/// made, the page holds that step's.
#pragma once
#include "dist/recovery.h"
#include "train/loop_impl.h"

namespace cohort::train {

/// The image that rank `source` has, on all ranks; null elsewhere. With keep = false the tensors pass by and are dropped.
/// Collective; null group: one process.
StateImage broadcast(dist::Group* group, int source, const StateImage* image, bool keep = true);

class TrainLoop::MemoryRecovery {
 public:
  /// Listens to the loop's steps from here on. `page`: the loop's job.recovery.
  MemoryRecovery(Impl& loop, dist::Recovery& page);

  /// This training can go on from memory, should a rank die.
  bool possible() const { return possible_; }
  /// The error that has been met is that of a group that broke.
  bool can_help() const;
  /// This process takes a dead rank's place: the others give it its state, and no checkpoint is read.
  bool replaces() const;

  /// Steps begin: a rank that replaces none leaves its RankState, and all rejoin when their group breaks.
  void begin();
  void end();

  // Both return false when the job goes on with other ranks: the state is parked then, and this process has nothing more
  // to do.
  /// A new process in a dead rank's place; the strategy's group stands.
  [[nodiscard]] bool take_state();
  /// After can_help().
  [[nodiscard]] bool recover();

  /// Goes on from what ranks of the last round have parked. Collective; false on all ranks where there is nothing, or it
  /// does not help.
  bool resume_parked();

 private:
  void keep(std::int64_t step, const weights::LossSums& sums, double samples);
  void say_why_not() const;
  void agree_on_state();
  void park();  // parked_state.cpp

  Impl& loop_;
  dist::Recovery& page_;
  const bool possible_;
  bool has_state_;  // false in a process that takes a dead rank's place, until it has the state
};

}  // namespace cohort::train
