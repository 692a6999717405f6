#include "tasks/libero/compose/measured_model.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "sim/host/import/handle.h"

namespace cohort::tasks::libero::compose {
namespace {

template <std::size_t N, class T>
std::array<T, N> part(const T* all, int i) {
  std::array<T, N> out;
  std::copy_n(all + N * static_cast<std::size_t>(i), N, out.begin());
  return out;
}

template <class Things>
const typename Things::value_type& named(const Things& things, const std::string& name, const char* what) {
  const auto found = std::find_if(things.begin(), things.end(), [&](const auto& thing) { return thing.name == name; });
  COHORT_THROW_UNLESS(found != things.end(), "the scene has no {} `{}`", what, name);
  return *found;
}

void measure_reset(const mjModel& m, const Robot& robot, MeasuredModel& out) {
  const sim::mj::DataPtr data(sim::mj::mj_makeData(&m));
  COHORT_THROW_UNLESS(data != nullptr, "no memory for the scene's state");
  std::vector<std::size_t> dofs;
  for (const std::string& name : robot.arm_joints) {
    const MeasuredModel::Joint& joint = named(out.joints, name, "joint");
    dofs.push_back(static_cast<std::size_t>(joint.dof));
    data->qpos[joint.qpos] = arm_at_reset().at(dofs.size() - 1);
  }
  sim::mj::mj_kinematics(&m, data.get());
  sim::mj::mj_comPos(&m, data.get());
  sim::mj::mj_makeM(&m, data.get());
  const auto site = static_cast<int>(&named(out.sites, kGripSite, "site") - out.sites.data());
  out.grip_pos = part<3>(data->site_xpos, site);
  out.grip_rotation = part<9>(data->site_xmat, site);
  const auto nv = static_cast<std::size_t>(m.nv);
  std::vector<double> translation(3 * nv), rotation(3 * nv), inertia(nv * nv);
  sim::mj::mj_jacSite(&m, data.get(), translation.data(), rotation.data(), site);
  sim::mj::mj_fullM(&m, data.get(), inertia.data());
  for (std::size_t j = 0; j < dofs.size(); ++j) {
    for (std::size_t i = 0; i < 3; ++i) {
      out.jacobian[i][j] = translation[i * nv + dofs[j]];
      out.jacobian[i + 3][j] = rotation[i * nv + dofs[j]];
    }
    for (std::size_t i = 0; i < dofs.size(); ++i) out.inertia[i][j] = inertia[dofs[i] * nv + dofs[j]];
  }
}

}  // namespace

const MeasuredModel::Body& MeasuredModel::body(const std::string& name) const {
  return named(bodies, name, "body");
}
const MeasuredModel::Site& MeasuredModel::site(const std::string& name) const {
  return named(sites, name, "site");
}
const MeasuredModel::Actuator& MeasuredModel::actuator(const std::string& name) const {
  return named(actuators, name, "actuator");
}

MeasuredModel measure_model(std::span<const std::uint8_t> mjb, const Robot& robot) {
  const sim::mj::ModelPtr model = sim::mj::load(mjb);
  const mjModel& m = *model;
  const auto name = [&](int address) { return std::string(m.names + address); };
  MeasuredModel out;
  for (int i = 0; i < m.nbody; ++i)
    out.bodies.push_back({name(m.name_bodyadr[i]), part<3>(m.body_pos, i), part<4>(m.body_quat, i)});
  for (int i = 0; i < m.njnt; ++i)
    out.joints.push_back({name(m.name_jntadr[i]), m.jnt_type[i], m.jnt_qposadr[i], m.jnt_dofadr[i]});
  for (int i = 0; i < m.nsite; ++i)
    out.sites.push_back({name(m.name_siteadr[i]), static_cast<std::size_t>(m.site_bodyid[i]), part<3>(m.site_pos, i),
                         part<4>(m.site_quat, i), part<4>(m.site_rgba, i)});
  for (int i = 0; i < m.ncam; ++i)
    out.cameras.push_back({name(m.name_camadr[i]), static_cast<std::size_t>(m.cam_bodyid[i]), part<3>(m.cam_pos, i),
                           part<4>(m.cam_quat, i), m.cam_fovy[i]});
  for (int i = 0; i < m.nu; ++i)
    out.actuators.push_back(
        {name(m.name_actuatoradr[i]), m.actuator_ctrlrange[2 * i], m.actuator_ctrlrange[2 * i + 1]});
  out.nq = static_cast<int>(m.nq);
  out.nv = static_cast<int>(m.nv);
  out.geoms = static_cast<int>(m.ngeom);
  out.mean_inertia = m.stat.meaninertia;
  out.mean_mass = m.stat.meanmass;
  out.mean_size = m.stat.meansize;
  out.extent = m.stat.extent;
  out.center = part<3>(m.stat.center, 0);
  COHORT_THROW_UNLESS(robot.arm_joints.size() == arm_at_reset().size(), "the arm has {} joints, not {}",
                      robot.arm_joints.size(), arm_at_reset().size());
  measure_reset(m, robot, out);
  return out;
}

}  // namespace cohort::tasks::libero::compose
