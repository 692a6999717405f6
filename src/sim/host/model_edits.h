/// Edits of a model file before it is compiled, by patterns over names: actuators, joint and geom properties, a start
/// posture, sensors, a free or a fixed base. What a robot's description leaves open, or says otherwise than a task wants.
///
/// A pattern is a regular expression (ECMAScript's) that has to match a whole name of the file, as in Isaac Lab; the
/// entity's name and a `/` may stand before it. Of several edits that match, each value comes from the first that has it,
/// as in mjlab. A pattern that matches nothing is an Error that names it, the nearest name and what there is. Angles in
/// radians whatever the file's <compiler angle> says.
///
///   sim::ModelEdits edits;
///   edits.actuators = {{.joints = {".*_hip_joint", ".*_thigh_joint"}, .stiffness = 20, .damping = 1, .effort_limit = 23.7}};
///   edits.init = sim::InitialState{.base = sim::Pose{{0, 0, 0.3}}, .joints = {{".*_thigh_joint", 0.9}}};
///   scene.add_entity(sim::Mjcf{.file = "dog.xml", .edits = edits}, "dog");
#pragma once
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "sim/pose.h"

namespace cohort::sim {

/// One actuator for each hinge and slide that a pattern matches, named as its joint; those that the file has for these
/// joints are taken away. They come behind the file's other actuators, in the order of the joints in the model. Setpoints
/// are not clipped unless ctrl_range is given: a position beyond a joint's limit is how a servo presses against it. A
/// motor's control is clipped to its effort_limit.
struct ActuatorEdit {
  enum class Kind {
    kPosition,  ///< force = stiffness (ctrl - length) - damping velocity, MuJoCo's <position kp kv>
    kVelocity,  ///< force = damping (ctrl - velocity), MuJoCo's <velocity kv>
    kMotor,     ///< force = ctrl
  };
  std::vector<std::string> joints;
  Kind kind = Kind::kPosition;
  double stiffness = 0;                   ///< N/m, N m/rad; above 0 for kPosition
  double damping = 0;                     ///< N s/m, N m s/rad; above 0 for kVelocity
  std::optional<double> effort_limit{};   ///< N, N m, before the gear; none: no limit
  std::optional<double> armature{};       ///< of the joint, kg, kg m^2; likewise, none keeps the file's
  std::optional<double> friction_loss{};  ///< of the joint, N, N m
  double gear = 1;                        ///< length per joint coordinate, joint force per force
  std::optional<std::array<double, 2>> ctrl_range{};
};

/// Joints other than free ones.
struct JointEdit {
  std::string pattern;
  std::optional<double> armature{}, damping{}, friction_loss{}, stiffness{};
  std::optional<std::array<double, 2>> range{};  ///< m, rad; the joint is limited then
};

/// A geom without a name has the empty one, which `.*` matches. Values with several numbers are written from the first
/// on, the rest stays.
struct GeomEdit {
  std::string pattern;
  std::optional<int> contype{}, conaffinity{}, condim{}, priority{}, group{};
  std::vector<double> friction{};  ///< sliding, torsional (m), rolling (m)
  std::vector<double> solref{}, solimp{};
  std::optional<double> margin{}, gap{};  ///< m
  std::optional<std::array<float, 4>> rgba{};
};

struct JointPosition {
  std::string pattern;
  double position = 0;  ///< m, rad
};

/// A keyframe: the pose of the base and the hinges' and slides' positions, those that no pattern matches at qpos0.
/// Position servos get the control that holds them there.
struct InitialState {
  std::string keyframe = "init_state";  ///< replaces one of that name
  /// In the file's world frame. Of a free base the keyframe's; a fixed one is put there. None: as the file has it.
  std::optional<Pose> base{};
  std::vector<JointPosition> joints{};
};

/// A sensor by MuJoCo's name for its element: gyro, accelerometer, velocimeter, magnetometer, force, torque, touch (of a
/// site); framepos, framequat, framexaxis, frameyaxis, framezaxis, framelinvel, frameangvel, framelinacc, frameangacc (of
/// a site or else a link, in the world); subtreecom, subtreelinvel, subtreeangmom (of a link); jointpos, jointvel,
/// jointactuatorfrc (of a joint); actuatorpos, actuatorvel, actuatorfrc (of an actuator).
struct SensorEdit {
  std::string type;
  std::string object;  ///< a name of the file, no pattern
  std::string name;
};

/// An inertial measurement unit: sensors <name>_gyro (rad/s), <name>_accelerometer (m/s^2), <name>_velocimeter (m/s), all
/// in the site's frame, and <name>_quat, its orientation.
struct ImuEdit {
  std::string at;  ///< a site; or a link, at whose origin a site of the sensors' name is made
  std::string name = "imu";
};

struct ModelEdits {
  /// true: the base gets a free joint; false: its free joint is taken away. None: as the file has it. The base is the
  /// first body of the file's world. Of a URDF Urdf::fixed says this.
  std::optional<bool> free_base{};
  /// Inertias that no body can have, a principal moment above the sum of the other two, become their mean; no link has less
  /// than 1 g and 1e-6 kg m^2 (MuJoCo's balanceinertia, boundmass, boundinertia). A warning names the links. Without it
  /// such a file is an Error where the link moves.
  bool repair_inertia = false;
  /// Takes away all actuators that the file has, those of tendons and sites too, before `actuators` are added. A sensor of
  /// one of them is an Error then.
  bool remove_actuators = false;
  std::vector<ActuatorEdit> actuators{};
  std::vector<JointEdit> joints{};
  std::vector<std::string>
      disable_collisions{};  ///< patterns of geoms that touch nothing, unless `geoms` says otherwise
  std::vector<GeomEdit> geoms{};
  std::vector<SensorEdit> sensors{};
  std::vector<ImuEdit> imus{};
  std::optional<InitialState> init{};
};

}  // namespace cohort::sim
