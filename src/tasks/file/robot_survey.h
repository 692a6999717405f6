/// What a robot's file says about a task for it, and what it leaves open: where it stands, with what it touches the ground,
/// what its hand is, and servos for joints that have none.
///
/// A servo's stiffness lets the joint sag by a given angle under the weight that hangs on it, or that it carries as the
/// joint of a leg; armature and damping follow from a natural frequency of 10 Hz and a damping ratio of 2 with that
/// armature alone, as mjlab's robots have them (asset_zoo/robots/unitree_go1/go1_constants.py).
#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "sim/host/model_info.h"

namespace cohort::tasks {

struct SurveyedJoint {
  std::string name;  ///< without the entity's before it
  int index = 0;     ///< in ModelInfo::joints
  bool slide = false, limited = false;
  std::array<double, 2> range{0, 0};
  double position = 0;  ///< rad, m, where episodes begin
  bool actuated = false;
  int tree = 0;         ///< the link on the world that it hangs on
  bool driven = false;  ///< by any actuator of the file: its own, a tendon's, a muscle
  sim::ActuatorInfo::Kind kind = sim::ActuatorInfo::Kind::kOther;  ///< of the file's actuator; kOther: it has none
  double largest_control = 0;                                      ///< of the file's actuator; 0: without bounds
  /// Of a servo by the rule above: N m/rad, N m s/rad, N m, kg m^2, or their equals of a slide.
  double stiffness = 0, damping = 0, effort = 0, armature = 0;
};

struct RobotSurvey {
  bool urdf = false;
  bool free_base = false;
  bool repair_inertia = false;  ///< ModelEdits::repair_inertia: without it MuJoCo refuses the file
  bool own_ground = false;      ///< the file has a ground
  bool own_actuators = false;   ///< the file has actuators that move joints
  /// All of them; and those that are no motor or servo of a joint: a tendon's, a muscle.
  std::vector<std::string> actuators, other_actuators;
  std::string keyframe;  ///< where episodes begin; "": joints' positions
  std::string base;      ///< link
  std::array<double, 3> base_pos{0, 0, 0};
  double leg_length = 0;  ///< m, from the first joint of the longest leg to the ground
  double timestep = 0.002;
  std::vector<SurveyedJoint> joints;
  std::vector<std::string> feet;            ///< geoms where each foot has one that touches, else links
  std::vector<std::string> all_feet_names;  ///< all names that a pattern for feet is matched against
  std::string hand;                         ///< link at the end of the longest chain; below it are the fingers' joints
  std::string hand_site;                    ///< the hand's own frame where the file names one
  std::vector<std::string> fingers;         ///< joints
  /// Middle half of where the hand comes to within 1 rad of where episodes begin: low, high (m, in the world).
  std::array<std::array<double, 2>, 3> reach{};
};

/// Throws Error for a file that cannot be read, and for one without joints. fixed: a URDF's base is part of the world
/// even where it has legs.
RobotSurvey survey_robot(const std::filesystem::path& file, bool fixed);

}  // namespace cohort::tasks
