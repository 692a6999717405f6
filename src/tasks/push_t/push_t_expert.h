/// A planner that solves Push-T: straight pushes against the T's edges, simulated before they are made.
///
/// Where there is no friction a push can only press along an edge's normal, so a push is an edge point and a length.
/// Before each push the planner simulates one against every edge point, from the best results a second one, and so
/// on; it prefers what leaves a small error after little time: log(error + 3 px) + step_weight * steps, the error being
/// the root mean square over the distances of the T's eight corners to their places in the goal. The agent then goes
/// around the block to where the push begins, and makes it.
#pragma once
#include <cstdint>
#include <memory>

#include "tasks/push_t/push_t.h"

namespace cohort::tasks {

struct PushTExpertSettings {
  double clearance = 6;        ///< px between the agent's rim and the edge where a push begins
  double push_speed = 12;      ///< px per control step
  double longest_push = 140;   ///< px that the agent travels in one push
  double spacing = 12;         ///< px between edge points
  int beam = 6;                ///< results that are pursued by a further push
  int depth = 2;               ///< pushes planned ahead
  double step_weight = 0.008;  ///< of a control step: 87 steps are worth halving the error
};

/// Root mean square of the distances between the T's corners and those of the goal, px.
double push_t_error(const PushTPose& pose);

/// Remembers what it is about: one per episode, or restart() between them. The same episode gives the same actions.
class PushTExpert {
 public:
  /// Throws Error for settings that plan no push.
  explicit PushTExpert(const PushTExpertSettings& settings = {});
  ~PushTExpert();
  PushTExpert(PushTExpert&&) noexcept;
  PushTExpert& operator=(PushTExpert&&) noexcept;

  /// Forgets the push under way.
  void restart();
  /// The action for this situation; plans (some tenths of a second) where no push is under way.
  PushTAction act(const PushTSituation& now);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::tasks
