/// A scene as cohort.gs drives it: sim::Scene with a lock of its own, so that calls may run without the interpreter's, and
/// a renderer that is made when a picture is first asked for.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "render/renderer.h"
#include "sim/host/inverse_kinematics.h"
#include "sim/host/scene.h"

namespace cohort::python {

class SceneCore {
 public:
  explicit SceneCore(const sim::SceneOptions& options) : scene_(options) {}

  /// Calls body(scene) while no other thread does. Takes no Python lock: call it without.
  template <class Body>
  auto with(const Body& body) {
    const std::lock_guard<std::mutex> held(mutex_);
    return body(scene_);
  }

  /// Handles of the entities, in their order.
  sim::Entity entity(int index);
  int add(sim::Morph morph, const std::string& name);
  int entity_count() const { return static_cast<int>(names_.size()); }

  /// Limits of the force that reaches a dof, (envs, dofs) or (dofs): of its position actuator.
  void set_force_range(std::span<const float> lower, std::span<const float> upper,
                       const std::vector<std::int32_t>& dofs, const sim::Indices& envs);

  /// (envs, links, 3) N: contact forces on each link of the scene, in the world.
  std::vector<float> links_contact_force(const sim::Indices& envs);

  struct Solutions {
    std::vector<float> qpos;   ///< (envs, nq)
    std::vector<float> error;  ///< (envs, targets, 6)
  };
  /// Of each environment: `links` to pos and quat, (envs, links, 3) and (envs, links, 4), either may be empty. init: the
  /// posture from which the search begins, (envs, nq), or empty for the present one.
  struct IkRequest {
    std::vector<std::int32_t> links, dofs, envs;
    std::span<const float> points, pos, quat, init;
    std::array<bool, 3> pos_mask{true, true, true}, rot_mask{true, true, true};
    std::vector<std::uint8_t> with_pos, with_quat;  ///< of each link
    sim::IkSettings settings{};
  };
  Solutions inverse_kinematics(const IkRequest& request);

  /// A camera that stands in the world; its index.
  int add_camera(double fov, int width, int height);
  void move_camera(int camera, const std::array<double, 3>& pos, const std::array<double, 4>& quat);
  /// together: one picture of all, each where env_spacing puts it.
  render::Frames render(int camera, const std::vector<std::int32_t>& envs, int width, int height,
                        const render::Wanted& wanted, bool together);
  void set_picture(bool shadows, bool reflections) { shadows_ = shadows, reflections_ = reflections; }

 private:
  render::Renderer& renderer();

  std::mutex mutex_;
  sim::Scene scene_;
  std::vector<std::string> names_;
  std::unique_ptr<render::Renderer> renderer_;
  bool shadows_ = false, reflections_ = true;
};

}  // namespace cohort::python
