/// Who closes top drawers: for goals that are one `close` of a region whose joint slides, with nothing of the cabinet much
/// above it. A function of the state alone.
///
/// The closed fingers go above and in front of the drawer, come down there until their tips reach below its upper edge,
/// and push it in along the joint's axis. So high the hand stays clear of what is above the drawer.
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
  std::size_t joint_ = 0;
  Vec3 front_{};  ///< m, in the drawer's body: where the grip site is to push
};

}  // namespace cohort::tasks::libero
