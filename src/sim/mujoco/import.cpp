// The import as a whole: options, sizes, refusal.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <tuple>

#include "core/error.h"
#include "sim/kernels/lane/constraints.h"
#include "sim/model_arrays.h"
#include "sim/mujoco/handle.h"
#include "sim/mujoco/importer.h"
#include "sim/mujoco/unsupported.h"

namespace cohort::sim::mj {

Importer::Importer(const mjModel& m) : m_(m) {
  out_.info = describe(m);
  disabled_ = m.opt.disableflags;
}

Model Importer::run(int contact_capacity) {
  options();
  bodies();
  fluid();
  dofs();
  tendons_and_actuators();
  limits_and_friction();
  if (!off(mjDSBL_CONTACT) && !off(mjDSBL_CONSTRAINT)) contacts();
  if (!off(mjDSBL_EQUALITY) && !off(mjDSBL_CONSTRAINT)) equalities();
  for (int k = 0; k < 3 * m_.ngeom; ++k) out_.geom_friction.push_back(f32(m_.geom_friction[k]));
  if (!off(mjDSBL_SENSOR)) sensors();
  sizes(contact_capacity);
  check_scratch();
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
  r.newton = o.solver == mjSOL_NEWTON;
  r.iterations = o.iterations;
  r.ls_iterations = o.ls_iterations;
  r.warmstart = !off(mjDSBL_WARMSTART);
  r.implicit_damping = !off(mjDSBL_EULERDAMP) && !off(mjDSBL_DAMPER);
  r.clamp_ctrl = !off(mjDSBL_CLAMPCTRL);
  r.actuation = !off(mjDSBL_ACTUATION);
  r.deepest_only = off(mjDSBL_MULTICCD);
}

void Importer::sizes(int contact_capacity) {
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
  int most = 0;
  for (const PairRecord& p : out_.pair) most += p.max_contacts;
  v.contact_capacity = contact_capacity > 0 ? std::min(contact_capacity, most) : most;
}

void Importer::check_scratch() const {
  // Of what grows with the square of the model: the triangles of workspace.h and step.h, twice for the integrators' own
  // copy, and the constraints of groups.h, at the widest lanes.
  const double nv = out_.sizes.nv, triangles = (out_.sizes.neq > 0 ? 6 : 5) * nv * (nv + 1) / 2;
  ModelView view = out_.view();
  view.keep_contacts = 1, view.varies = kVariesFriction;
  const ConstraintCount n = count_constraints(view);
  const double contacts = 16.0 * out_.sizes.contact_capacity;
  double constraints = n.others.pool + n.others.rows;
  for (const auto& [all, one] :
       {std::pair{n.pool, n.largest.pool}, {n.rows, n.largest.rows}, {n.cones, n.largest.cones}}) {
    constraints += std::min(static_cast<double>(all), contacts * one);
  }
  COHORT_THROW_UNLESS(triangles + constraints < std::numeric_limits<int>::max() / 2.0,
                      "the batched engine does not step a model of this size: {} dofs and {} pairs of geoms that may "
                      "touch take {} of scratch memory per lane of a thread. SceneOptions::contact_capacity "
                      "(--contact-capacity), the most contacts of an environment, bounds it; the engine `mujoco` keeps "
                      "only what touches (SceneOptions::engine, --engine mujoco)",
                      out_.sizes.nv, out_.sizes.npair, format_bytes(sizeof(float) * (triangles + constraints)));
}

}  // namespace cohort::sim::mj

namespace cohort::sim {

std::vector<Unsupported> find_unsupported(std::span<const std::uint8_t> mjb) {
  return mj::find_unsupported(*mj::load(mjb));
}

Model import_model(std::span<const std::uint8_t> mjb, int contact_capacity) {
  const mj::ModelPtr model = mj::load(mjb);
  const std::vector<Unsupported> missing = mj::find_unsupported(*model);
  COHORT_THROW_UNLESS(
      missing.empty(),
      "the batched engine does not run this model: {}. The engine `mujoco` runs it (SceneOptions::engine, "
      "--engine mujoco)",
      to_string(missing));
  return mj::Importer(*model).run(contact_capacity);
}

}  // namespace cohort::sim
