#include "scene_core.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/real_at.h"
#include "sim/host/kinematics.h"
#include "sim/index.h"

namespace cohort::python {

using sim::at;

int SceneCore::add(sim::Morph morph, const std::string& name) {
  scene_.add_entity(std::move(morph), name);
  names_.push_back(name);
  return entity_count() - 1;
}

sim::Entity SceneCore::entity(int index) {
  COHORT_THROW_UNLESS(index >= 0 && index < entity_count(), "there is no entity {}: there are {}", index,
                      entity_count());
  return scene_.entity(names_[at(index)]);
}

void SceneCore::set_force_range(std::span<const float> lower, std::span<const float> upper,
                                const std::vector<std::int32_t>& dofs, const sim::Indices& envs) {
  const sim::ModelInfo& info = scene_.info();
  const std::size_t rows = envs.resolve(scene_.n_envs(), "environment").size();
  COHORT_THROW_UNLESS(
      lower.size() == upper.size() && (lower.size() == dofs.size() || lower.size() == rows * dofs.size()),
      "{} lower and {} upper limits given for {} environments of {} dofs", lower.size(), upper.size(), rows,
      dofs.size());
  std::vector<std::int32_t> items;
  for (const std::int32_t d : dofs) {
    const auto found = std::find_if(info.actuators.begin(), info.actuators.end(),
                                    [&](const sim::ActuatorInfo& a) { return a.dof == d; });
    COHORT_THROW_UNLESS(
        found != info.actuators.end(),
        "dof {} has no actuator whose force could be limited: a free or ball joint's, or a joint without "
        "a name",
        d);
    const auto actuator = static_cast<std::int32_t>(found - info.actuators.begin());
    items.push_back(2 * actuator), items.push_back(2 * actuator + 1);
  }
  std::vector<float> values;
  values.reserve(2 * lower.size());
  for (std::size_t i = 0; i < lower.size(); ++i) {
    COHORT_THROW_UNLESS(lower[i] <= upper[i], "dof {}: the force range [{}, {}] is empty", dofs[i % dofs.size()],
                        lower[i], upper[i]);
    values.push_back(lower[i]), values.push_back(upper[i]);
  }
  scene_.set_parameter(sim::Parameter::kActuatorForceRange, values, envs, sim::Indices(std::move(items)));
}

std::vector<float> SceneCore::links_contact_force(const sim::Indices& envs) {
  const std::vector<std::int32_t> rows = envs.resolve(scene_.n_envs(), "environment");
  const std::size_t links = scene_.info().links.size();
  std::vector<float> force(rows.size() * links * 3, 0);
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (const sim::Contact& contact : scene_.get_contacts(rows[r])) {
      for (std::size_t k = 0; k < 3; ++k) {
        const auto f = static_cast<float>(contact.force[k]);
        force[(r * links + at(contact.link2)) * 3 + k] += f;
        force[(r * links + at(contact.link1)) * 3 + k] -= f;
      }
    }
  }
  return force;
}

SceneCore::Solutions SceneCore::inverse_kinematics(const IkRequest& request) {
  const sim::ModelInfo& info = scene_.info();
  const sim::Kinematics& kinematics = scene_.kinematics();
  const ArrayView present = scene_.engine().host_view(sim::Field::kQpos, sim::Access::kRead);
  const std::size_t n = request.envs.size(), nq = at(info.nq), targets = request.links.size();
  COHORT_CHECK(request.points.size() == 3 * targets && request.with_pos.size() == targets &&
                   request.with_quat.size() == targets && request.pos.size() == 3 * targets * n &&
                   request.quat.size() == 4 * targets * n && (request.init.empty() || request.init.size() == n * nq),
               "arrays of inverse kinematics that do not fit together");
  Solutions found;
  found.qpos.reserve(n * nq), found.error.reserve(n * 6 * targets);
  std::vector<double> start(nq);
  std::vector<sim::IkTarget> wanted(targets);
  for (std::size_t e = 0; e < n; ++e) {
    COHORT_THROW_UNLESS(request.envs[e] >= 0 && request.envs[e] < scene_.n_envs(),
                        "environment {} does not exist: there are {}, counted from 0", request.envs[e],
                        scene_.n_envs());
    for (std::size_t i = 0; i < nq; ++i)
      start[i] = request.init.empty() ? real_at(present, request.envs[e], static_cast<int>(i))
                                      : static_cast<double>(request.init[e * nq + i]);
    for (std::size_t t = 0; t < targets; ++t) {
      sim::IkTarget& target = wanted[t];
      target = {.link = request.links[t], .pos_mask = request.pos_mask, .rot_mask = request.rot_mask};
      for (std::size_t k = 0; k < 3; ++k) target.point[k] = static_cast<double>(request.points[3 * t + k]);
      if (request.with_pos[t] != 0) {
        target.pos.emplace();
        for (std::size_t k = 0; k < 3; ++k)
          (*target.pos)[k] = static_cast<double>(request.pos[(e * targets + t) * 3 + k]);
      }
      if (request.with_quat[t] != 0) {
        target.quat.emplace();
        for (std::size_t k = 0; k < 4; ++k)
          (*target.quat)[k] = static_cast<double>(request.quat[(e * targets + t) * 4 + k]);
      }
    }
    sim::IkSettings settings = request.settings;
    settings.id = static_cast<std::uint64_t>(scene_.global_environment_id(request.envs[e]));
    const sim::IkResult result = sim::inverse_kinematics(kinematics, info, start, request.dofs, wanted, settings);
    for (const double q : result.qpos) found.qpos.push_back(static_cast<float>(q));
    for (const double x : result.error) found.error.push_back(static_cast<float>(x));
  }
  return found;
}

render::Renderer& SceneCore::renderer() {
  if (!renderer_) {
    renderer_ = render::make_renderer(
        scene_,
        {.device = DeviceId{}, .threads = scene_.options().threads, .shadows = shadows_, .reflections = reflections_});
  }
  return *renderer_;
}

int SceneCore::add_camera(double fov, int width, int height) {
  return renderer().add_camera({.name = "", .fov = fov, .width = width, .height = height});
}

void SceneCore::move_camera(int camera, const std::array<double, 3>& pos, const std::array<double, 4>& quat) {
  renderer().move_camera(camera, pos, quat);
}

render::Frames SceneCore::render(int camera, const std::vector<std::int32_t>& envs, int width, int height,
                                 const render::Wanted& wanted, bool together) {
  if (!together) return renderer().render(camera, envs, width, height, wanted);
  render::Frames frames{.count = 1, .width = width, .height = height};
  const auto pixels = at(width) * at(height);
  const std::int64_t h = height, w = width;
  render::Pictures out;
  if (wanted.rgb) frames.rgb.resize(3 * pixels), out.rgb = make_view(frames.rgb.data(), {1, h, w, 3});
  if (wanted.depth) frames.depth.resize(pixels), out.depth = make_view(frames.depth.data(), {1, h, w});
  if (wanted.segmentation)
    frames.segmentation.resize(pixels), out.segmentation = make_view(frames.segmentation.data(), {1, h, w});
  if (wanted.normal) frames.normal.resize(3 * pixels), out.normal = make_view(frames.normal.data(), {1, h, w, 3});
  renderer().render_together(camera, envs, out);
  return frames;
}

}  // namespace cohort::python
