// The import as a whole: options, sizes, refusal.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "core/error.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/importer.h"
#include "sim/host/import/unsupported.h"
#include "sim/host/model_arrays.h"

namespace cohort::sim::mj {

Importer::Importer(const mjModel& m) : m_(m) {
  out_.info = describe(m);
  disabled_ = m.opt.disableflags;
}

Model Importer::run() {
  options();
  bodies();
  fluid();
  dofs();
  tendons_and_actuators();
  limits_and_friction();
  if (!off(mjDSBL_CONTACT) && !off(mjDSBL_CONSTRAINT)) contacts();
  if (!off(mjDSBL_EQUALITY) && !off(mjDSBL_CONSTRAINT)) equalities();
  for (int k = 0; k < 3 * m_.ngeom; ++k) out_.geom_friction.push_back(f32(m_.geom_friction[k]));
  for (int g = 0; g < m_.ngeom; ++g) {
    for (int k = 0; k < 3; ++k) out_.geom_frame.push_back(f32(m_.geom_pos[3 * g + k]));
    for (int k = 0; k < 4; ++k) out_.geom_frame.push_back(f32(m_.geom_quat[4 * g + k]));
    for (int k = 0; k < 3; ++k) out_.geom_frame.push_back(f32(m_.geom_size[3 * g + k]));
  }
  for (int b = 0; b < m_.nbody; ++b) {
    for (int k = 0; k < 3; ++k) out_.link_inertial.push_back(f32(m_.body_ipos[3 * b + k]));
    for (int k = 0; k < 4; ++k) out_.link_inertial.push_back(f32(m_.body_iquat[4 * b + k]));
    for (int k = 0; k < 3; ++k) out_.link_inertial.push_back(f32(m_.body_inertia[3 * b + k]));
  }
  if (!off(mjDSBL_SENSOR)) sensors();
  sizes();
  return std::move(out_);
}

void Importer::options() {
  const mjOption& o = m_.opt;
  OptionRecord& r = out_.sizes.option;
  r.timestep = f32(o.timestep);
  if (!off(mjDSBL_GRAVITY)) put(r.gravity, o.gravity, 3);
  put(r.magnetic, o.magnetic, 3);
  r.impratio = f32(std::max(mjMINVAL, o.impratio));  // as MuJoCo takes it
  r.tolerance = f32(o.tolerance);
  r.ls_tolerance = f32(o.ls_tolerance);
  r.scale = f32(1.0 / (m_.stat.meaninertia * std::max<double>(1, static_cast<double>(m_.nv))));
  r.integrator = o.integrator;
  r.elliptic = o.cone == mjCONE_ELLIPTIC;
  r.newton = o.solver != mjSOL_CG;  // PGS goes to the same solution: taken_otherwise()
  r.iterations = o.iterations;
  r.ls_iterations = o.ls_iterations;
  r.warmstart = !off(mjDSBL_WARMSTART);
  r.implicit_damping = !off(mjDSBL_EULERDAMP) && !off(mjDSBL_DAMPER);
  r.clamp_ctrl = !off(mjDSBL_CLAMPCTRL);
  r.actuation = !off(mjDSBL_ACTUATION);
  r.deepest_only = off(mjDSBL_MULTICCD);
  r.noslip_iterations = o.noslip_iterations;
  r.noslip_tolerance = f32(o.noslip_tolerance);
}

void Importer::sizes() {
  ModelView& v = out_.sizes;
  v.nq = static_cast<int>(m_.nq), v.nu = static_cast<int>(m_.nu), v.na = static_cast<int>(m_.na);
  v.nmocap = static_cast<int>(m_.nmocap), v.nsensordata = static_cast<int>(m_.nsensordata);
  v.nfilegeom = static_cast<int>(m_.ngeom);
  for_each_array([&](const auto& array) {
    if (array.count && array.per == 1 && array.more == 0) v.*array.count = static_cast<int>((out_.*array.items).size());
  });
  const auto some_tendon = [&](auto has) { return std::any_of(out_.tendon.begin(), out_.tendon.end(), has); };
  v.tendon_inertia = some_tendon([](const TendonRecord& t) { return t.armature > 0; });
  v.tendon_limits = some_tendon([](const TendonRecord& t) { return t.force_limited != 0; });
  v.damped = std::any_of(out_.dof.begin(), out_.dof.end(), [](const DofRecord& d) { return d.damping > 0; });
  if (m_.flg_gravcomp && !passive_off() && !off(mjDSBL_GRAVITY)) {
    v.lifting_actuators =
        std::any_of(out_.dof.begin(), out_.dof.end(), [](const DofRecord& d) { return d.lifted_by_actuators != 0; });
  }
}

}  // namespace cohort::sim::mj

namespace cohort::sim {

std::vector<Unsupported> find_unsupported(std::span<const std::uint8_t> mjb) {
  return mj::find_unsupported(*mj::load(mjb));
}

Model import_model(std::span<const std::uint8_t> mjb) {
  const mj::ModelPtr model = mj::load(mjb);
  const std::vector<Unsupported> missing = mj::find_unsupported(*model);
  COHORT_THROW_UNLESS(
      missing.empty(),
      "the batched engine does not run this model: {}. The engine `mujoco` runs it (SceneOptions::engine, "
      "--engine mujoco)",
      to_string(missing));
  return mj::Importer(*model).run();
}

}  // namespace cohort::sim
