/// Who closes drawers: for goals that are one `close` of a region whose joint slides. A function of the state alone.
///
/// The hand is closed, goes above and in front of the drawer, comes down there, and pushes the front in along the
/// joint's axis until the goal is reached.
#pragma once
#include <span>
#include <string>

#include "tasks/libero/simulation.h"

namespace cohort::tasks::libero {

class DrawerExpert {
 public:
  /// Whether the goal is one that it can do.
  static bool knows(const Simulation& simulation);
  static std::string summary() { return "goes in front of the drawer with closed fingers and pushes it in"; }

  /// The simulation must outlive this.
  explicit DrawerExpert(const Simulation& simulation);
  /// action: (7). Called for one environment at a time.
  void act(std::span<const double> qpos, std::span<float> action);

 private:
  const Simulation& simulation_;
  Frames::Poses poses_;
  RobotControl::Workspace robot_;
  std::size_t joint_ = 0;
  Frames::Box handle_;  ///< what sticks out most of the drawer
};

}  // namespace cohort::tasks::libero
