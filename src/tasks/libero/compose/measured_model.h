/// What has to be known of a scene's compiled model: names and addresses, and what the arm's controller reads at the
/// environment's reset. Nothing of MuJoCo is seen here.
///
///   const MeasuredModel model = measure_model(compiled.mjb, scene.robot);
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tasks/libero/compose/robot.h"

namespace cohort::tasks::libero::compose {

struct MeasuredModel {
  struct Body {
    std::string name;
    std::array<double, 3> pos;   ///< m, in the parent
    std::array<double, 4> quat;  ///< w, x, y, z
  };
  struct Joint {
    std::string name;
    int type, qpos, dof;
  };
  struct Site {
    std::string name;
    std::size_t body;
    std::array<double, 3> pos;
    std::array<double, 4> quat;
    std::array<float, 4> rgba;
  };
  struct Camera {
    std::string name;
    std::size_t body;
    std::array<double, 3> pos;
    std::array<double, 4> quat;
    double fovy;  ///< degrees
  };
  struct Actuator {
    std::string name;
    double low, high;  ///< of its control
  };
  std::vector<Body> bodies;
  std::vector<Joint> joints;
  std::vector<Site> sites;
  std::vector<Camera> cameras;
  std::vector<Actuator> actuators;
  int nq = 0, nv = 0, geoms = 0;

  double mean_inertia = 0, mean_mass = 0, mean_size = 0, extent = 0;  ///< kg m^2, kg, m, m
  std::array<double, 3> center{};                                     ///< m

  /// Of the gripper's site, with the arm at its reset and everything else where the model has it.
  std::array<double, 3> grip_pos{};
  std::array<double, 9> grip_rotation{};            ///< row-major
  std::array<std::array<double, 7>, 6> jacobian{};  ///< of the site: translation, then rotation, by the arm's joints
  std::array<std::array<double, 7>, 7> inertia{};   ///< the arm's part of the inertia matrix

  const Body& body(const std::string& name) const;
  const Site& site(const std::string& name) const;
  const Actuator& actuator(const std::string& name) const;
};

/// mjb: MuJoCo's binary model. Throws Error where a joint or site of the robot is missing.
MeasuredModel measure_model(std::span<const std::uint8_t> mjb, const Robot& robot);

inline constexpr const char* kGripSite = "gripper0_grip_site";

}  // namespace cohort::tasks::libero::compose
