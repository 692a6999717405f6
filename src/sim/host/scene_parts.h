/// What is done with the dofs, links and geoms of a scene by their indices: a Scene's are all that there are, an
/// Entity's its own, numbered from 0. The names are those of Genesis.
///
///   scene.set_dofs_velocity(values, {3, 4});          // dofs 3 and 4 of the scene
///   robot.set_dofs_velocity(values, {0, 1}, {7});     // the robot's first two, in environment 7
///
/// Arrays as in scene.h: row-major, (environments, dofs or links, components), or without the environments for the same
/// values in all of the selected ones. Throws Error before Scene::build(), and for an index that does not exist.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/engine.h"
#include "sim/indices.h"
#include "sim/options.h"

namespace cohort::sim {

class Scene;

class SceneParts {
 public:
  // A dof follows the last of these three that was called for it, until its environment is reset: then the model's
  // actuators have it again, as at the beginning. While a dof follows anything but its own actuator, all actuators that
  // pull at it by where it is or how fast (position, velocity, those of its tendons) have no gains in that environment;
  // motors go on. set_parameter and get_parameter show their gains as they will be afterwards.

  /// Position target (rad, m). Goes to the dof's position actuator when the model has one; otherwise a spring of
  /// set_dofs_kp and set_dofs_kv pulls, whose damper is implicit as a joint's damping is. Throws Error for a dof with
  /// neither.
  void control_dofs_position(std::span<const float> target, const Indices& dofs = {}, const Indices& envs = {});
  /// Target (rad/s, m/s); likewise with a velocity actuator, or set_dofs_kv.
  void control_dofs_velocity(std::span<const float> target, const Indices& dofs = {}, const Indices& envs = {});
  /// Generalized force (N, N m), until changed.
  void control_dofs_force(std::span<const float> force, const Indices& dofs = {}, const Indices& envs = {});
  /// Gains (N/m, N m/rad; N s/m, N m s/rad), (envs, dofs) or (dofs): of the dof's actuator when the model has one, as
  /// Parameter kActuatorGain and kActuatorBias; otherwise of the spring and the damper above.
  void set_dofs_kp(std::span<const float> kp, const Indices& dofs = {}, const Indices& envs = {});
  void set_dofs_kv(std::span<const float> kv, const Indices& dofs = {}, const Indices& envs = {});
  /// Limits of the spring's and damper's force (N, N m). Throws Error for a dof with a position or velocity actuator,
  /// whose own limits hold for all environments, unless they are those.
  void set_dofs_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs = {},
                            const Indices& envs = {});

  /// Positions of dofs: the coordinate of a hinge or slide; the translation, or the rotation vector, of free and ball
  /// joints.
  std::vector<float> get_dofs_position(const Indices& dofs = {}, const Indices& envs = {}) const;
  std::vector<float> get_dofs_velocity(const Indices& dofs = {}, const Indices& envs = {}) const;
  void set_dofs_position(std::span<const float> position, const Indices& dofs = {}, const Indices& envs = {});
  void set_dofs_velocity(std::span<const float> velocity, const Indices& dofs = {}, const Indices& envs = {});

  /// Of links: positions (envs, links, 3), m, and orientations (envs, links, 4), w x y z, in the world.
  std::vector<float> get_links_pos(const Indices& links = {}, const Indices& envs = {}) const;
  std::vector<float> get_links_quat(const Indices& links = {}, const Indices& envs = {}) const;
  /// Velocities in the world, (envs, links, 3): of the link's origin (m/s), and angular (rad/s).
  std::vector<float> get_links_vel(const Indices& links = {}, const Indices& envs = {}) const;
  std::vector<float> get_links_ang(const Indices& links = {}, const Indices& envs = {}) const;
  /// Jacobians of the links' origins in the present state, (envs, links, 6, dofs): velocity (m/s), then angular velocity
  /// (rad/s), in the world, for a unit velocity of each dof. Of any coordinates: Scene::kinematics().
  std::vector<float> get_links_jacobian(const Indices& links = {}, const Indices& envs = {}) const;

  /// The contacts of these geoms in the present state, with the forces that the solver finds for it: of one environment
  /// after the other, in the order of `envs`; Contact::env says of which.
  std::vector<Contact> get_contacts(const Indices& envs = {}) const;

  /// Parameters that differ between environments, as Scene::set_parameter sets them: by links, geoms (three numbers
  /// each: sliding, torsional, rolling) and dofs, (envs, items, components).
  void set_links_mass(std::span<const float> mass, const Indices& links = {}, const Indices& envs = {});
  void set_geoms_friction(std::span<const float> friction, const Indices& geoms = {}, const Indices& envs = {});
  void set_dofs_armature(std::span<const float> armature, const Indices& dofs = {}, const Indices& envs = {});
  void set_dofs_damping(std::span<const float> damping, const Indices& dofs = {}, const Indices& envs = {});

 protected:
  static constexpr std::size_t kWholeScene = static_cast<std::size_t>(-1);
  SceneParts(Scene* scene, std::size_t entity) : scene_(scene), entity_(entity) {}
  /// The scene's indices; throws Error for those that do not exist here.
  Indices own_dofs(const Indices& dofs) const;
  Indices own_links(const Indices& links) const;
  Indices own_geoms(const Indices& geoms) const;

  Scene* scene_;
  std::size_t entity_;  ///< which of the scene's, or kWholeScene

 private:
  /// Calls visit(row, dof, column, velocity of the dof) for the dofs that move each (environment, link).
  template <class Visit>
  void visit_columns(const Indices& links, const Indices& envs, const Visit& visit) const;
  std::vector<float> links_velocity(const Indices& links, const Indices& envs, bool angular) const;
  /// Sets a parameter of some of the scene's `count` items, `components` numbers each.
  void set_items(Parameter parameter, std::span<const float> values, const Indices& items, std::size_t count,
                 int components, const Indices& envs);
};

}  // namespace cohort::sim
