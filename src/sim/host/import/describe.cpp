#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <type_traits>

#include <mujoco/mjxmacro.h>

#include "core/error.h"
#include "core/fnv.h"
#include "sim/host/import/handle.h"
#include "sim/host/import/unsupported.h"

namespace cohort::sim::mj {

namespace {

std::size_t count(mjtSize n) {
  return static_cast<std::size_t>(n);
}
std::size_t count_of(int n) {
  return static_cast<std::size_t>(n);
}

std::vector<double> copy(const mjtNum* from, mjtSize n) {
  return std::vector<double>(from, from + n);
}

ActuatorInfo describe_actuator(const mjModel& m, int i) {
  ActuatorInfo a;
  a.name = m.names + m.name_actuatoradr[i];
  a.ctrl = m.actuator_ctrladr[i];
  a.ctrl_count = m.actuator_ctrlnum[i];
  const double* gain = m.actuator_gainprm + mjNGAIN * i;
  const double* bias = m.actuator_biasprm + mjNBIAS * i;
  a.gear = m.actuator_gear[6 * m.actuator_outadr[i]];
  if (a.ctrl_count > 0) {
    a.limited = m.actuator_ctrllimited[a.ctrl];
    a.range = {m.actuator_ctrlrange[2 * a.ctrl], m.actuator_ctrlrange[2 * a.ctrl + 1]};
  }
  if (m.actuator_trntype[i] == mjTRN_JOINT) {
    const int joint = m.actuator_trnid[2 * i];
    if (m.jnt_type[joint] == mjJNT_HINGE || m.jnt_type[joint] == mjJNT_SLIDE) a.dof = m.jnt_dofadr[joint];
  }
  if (m.actuator_trntype[i] == mjTRN_JOINT || m.actuator_trntype[i] == mjTRN_JOINTINPARENT) {
    const int joint = m.actuator_trnid[2 * i];
    for (int k = 0; k < kJointDofs[m.jnt_type[joint]]; ++k) a.moves.push_back(m.jnt_dofadr[joint] + k);
  }
  if (m.actuator_trntype[i] == mjTRN_TENDON) {
    const int tendon = m.actuator_trnid[2 * i];
    for (int k = m.tendon_adr[tendon]; k < m.tendon_adr[tendon] + m.tendon_num[tendon]; ++k) {
      if (m.wrap_type[k] == mjWRAP_JOINT && m.wrap_prm[k] != 0) a.moves.push_back(m.jnt_dofadr[m.wrap_objid[k]]);
    }
  }
  a.restoring = m.actuator_biastype[i] == mjBIAS_AFFINE && (bias[1] != 0 || bias[2] != 0);
  if (m.actuator_forcelimited[i]) a.force_range = {m.actuator_forcerange[2 * i], m.actuator_forcerange[2 * i + 1]};
  const int dynamics = m.actuator_dyntype[i];
  // Behind a filter the target arrives later, and is a target all the same.
  const bool filtered = dynamics == mjDYN_FILTER || dynamics == mjDYN_FILTEREXACT;
  if (a.dof >= 0 && a.ctrl_count == 1 && m.actuator_gaintype[i] == mjGAIN_FIXED &&
      (dynamics == mjDYN_NONE || filtered)) {
    if (m.actuator_biastype[i] == mjBIAS_NONE && !filtered) a.kind = ActuatorInfo::Kind::kMotor;
    if (m.actuator_biastype[i] == mjBIAS_AFFINE && bias[0] == 0 && gain[0] != 0) {
      if (bias[1] == -gain[0]) a.kind = ActuatorInfo::Kind::kPosition;
      if (bias[1] == 0 && bias[2] == -gain[0]) a.kind = ActuatorInfo::Kind::kVelocity;
    }
  }
  const ServoHold hold = servo_hold(m, i, m.actuator_length0[m.actuator_outadr[i]], 0);
  a.servo = hold.servo, a.holds_at_once = hold.at_once, a.hold = hold.control;
  return a;
}

/// FNV-1a over all that moves anything: options and arrays, without pictures, names and paths. Single precision, so
/// that another processor's last digit of a sine makes no other model of the same file.
class Content {
 public:
  template <class T>
  void add(const char* name, const T* values, std::size_t n) {
    const std::string_view field(name);
    if (field.ends_with("pathadr") || field.ends_with("rgba")) return;
    for (std::size_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, double>) {
        put(static_cast<float>(values[i]));
      } else {
        put(values[i]);
      }
    }
  }
  std::uint64_t hash() const { return hash_; }

 private:
  template <class T>
  void put(T value) {
    hash_ = fnv1a_of(value, hash_);
  }
  std::uint64_t hash_ = kFnvBegin;
};

std::uint64_t content_of(const mjModel& model) {
  Content content;
#define X(type, name, n) content.add(#name, &model.opt.name, 1);
#define XVEC(type, name, n) content.add(#name, model.opt.name, n);
  MJOPTION_FIELDS
#undef X
#undef XVEC
  [[maybe_unused]] const mjModel* m = &model;
  MJMODEL_POINTERS_PREAMBLE(m)
#define X(type, name, rows, columns) \
  content.add(#name, model.name, static_cast<std::size_t>(model.rows) * static_cast<std::size_t>(columns));
#define XNV X
  X(mjtNum, qpos0, nq, 1)
  X(mjtNum, qpos_spring, nq, 1)
  MJMODEL_POINTERS_BODY
  MJMODEL_POINTERS_JOINT
  MJMODEL_POINTERS_DOF
  MJMODEL_POINTERS_GEOM
  MJMODEL_POINTERS_SITE
  MJMODEL_POINTERS_FLEX
  MJMODEL_POINTERS_MESH
  MJMODEL_POINTERS_HFIELD
  MJMODEL_POINTERS_PAIR
  MJMODEL_POINTERS_EXCLUDE
  MJMODEL_POINTERS_EQUALITY
  MJMODEL_POINTERS_TENDON
  X(int, wrap_type, nwrap, 1)
  X(int, wrap_objid, nwrap, 1)
  X(mjtNum, wrap_prm, nwrap, 1)
  MJMODEL_POINTERS_ACTUATOR
  MJMODEL_POINTERS_SENSOR
#undef XNV
#undef X
  return content.hash();
}

const char* geom_type(int type) {
  constexpr const char* kNames[] = {"plane",    "hfield", "sphere", "capsule", "ellipsoid",
                                    "cylinder", "box",    "mesh",   "sdf"};
  return type >= 0 && type < mjNGEOMTYPES ? kNames[type] : "other";
}

}  // namespace

const char* sensor_type(int type) {
  switch (type) {
    case mjSENS_TOUCH:
      return "touch";
    case mjSENS_ACCELEROMETER:
      return "accelerometer";
    case mjSENS_VELOCIMETER:
      return "velocimeter";
    case mjSENS_GYRO:
      return "gyro";
    case mjSENS_FORCE:
      return "force";
    case mjSENS_TORQUE:
      return "torque";
    case mjSENS_MAGNETOMETER:
      return "magnetometer";
    case mjSENS_RANGEFINDER:
      return "rangefinder";
    case mjSENS_CAMPROJECTION:
      return "camprojection";
    case mjSENS_JOINTPOS:
      return "jointpos";
    case mjSENS_JOINTVEL:
      return "jointvel";
    case mjSENS_TENDONPOS:
      return "tendonpos";
    case mjSENS_TENDONVEL:
      return "tendonvel";
    case mjSENS_ACTUATORPOS:
      return "actuatorpos";
    case mjSENS_ACTUATORVEL:
      return "actuatorvel";
    case mjSENS_ACTUATORFRC:
      return "actuatorfrc";
    case mjSENS_JOINTACTFRC:
      return "jointactuatorfrc";
    case mjSENS_TENDONACTFRC:
      return "tendonactuatorfrc";
    case mjSENS_BALLQUAT:
      return "ballquat";
    case mjSENS_BALLANGVEL:
      return "ballangvel";
    case mjSENS_FRAMEPOS:
      return "framepos";
    case mjSENS_FRAMEQUAT:
      return "framequat";
    case mjSENS_FRAMEXAXIS:
      return "framexaxis";
    case mjSENS_FRAMEYAXIS:
      return "frameyaxis";
    case mjSENS_FRAMEZAXIS:
      return "framezaxis";
    case mjSENS_FRAMELINVEL:
      return "framelinvel";
    case mjSENS_FRAMEANGVEL:
      return "frameangvel";
    case mjSENS_FRAMELINACC:
      return "framelinacc";
    case mjSENS_FRAMEANGACC:
      return "frameangacc";
    case mjSENS_SUBTREECOM:
      return "subtreecom";
    case mjSENS_SUBTREELINVEL:
      return "subtreelinvel";
    case mjSENS_SUBTREEANGMOM:
      return "subtreeangmom";
    case mjSENS_CONTACT:
      return "contact";
    case mjSENS_CLOCK:
      return "clock";
    case mjSENS_JOINTLIMITPOS:
      return "jointlimitpos";
    case mjSENS_JOINTLIMITVEL:
      return "jointlimitvel";
    case mjSENS_JOINTLIMITFRC:
      return "jointlimitfrc";
    case mjSENS_TENDONLIMITPOS:
      return "tendonlimitpos";
    case mjSENS_TENDONLIMITVEL:
      return "tendonlimitvel";
    case mjSENS_TENDONLIMITFRC:
      return "tendonlimitfrc";
    case mjSENS_INSIDESITE:
      return "insidesite";
    case mjSENS_GEOMDIST:
      return "distance";
    case mjSENS_GEOMNORMAL:
      return "normal";
    case mjSENS_GEOMFROMTO:
      return "fromto";
    case mjSENS_E_POTENTIAL:
      return "e_potential";
    case mjSENS_E_KINETIC:
      return "e_kinetic";
    case mjSENS_TACTILE:
      return "tactile";
    case mjSENS_PLUGIN:
      return "plugin";
    case mjSENS_USER:
      return "user";
    default:
      return "other";
  }
}

ModelPtr load(std::span<const std::uint8_t> mjb) {
  load_plugins();
  ModelPtr model(mj_loadModelBuffer(mjb.data(), static_cast<mjtSize>(mjb.size())));
  COHORT_THROW_UNLESS(model != nullptr, "the binary model of {} bytes cannot be read", mjb.size());
  return model;
}

ServoHold servo_hold(const mjModel& m, int i, double length, double activation) {
  const double* gain = m.actuator_gainprm + mjNGAIN * i;
  const double* bias = m.actuator_biasprm + mjNBIAS * i;
  const bool affine_gain = m.actuator_gaintype[i] == mjGAIN_AFFINE;
  if (m.actuator_ctrlnum[i] != 1 || m.actuator_outnum[i] != 1 ||
      (!affine_gain && m.actuator_gaintype[i] != mjGAIN_FIXED) || m.actuator_biastype[i] != mjBIAS_AFFINE ||
      bias[1] == 0) {
    return {};
  }
  const double factor = gain[0] + (affine_gain ? gain[1] * length : 0), offset = bias[0] + bias[1] * length;
  if (factor == 0) return {};
  const double input = offset == 0 ? 0 : -offset / factor;
  constexpr double kRounding = 1e-6;
  const int dynamics = m.actuator_dyntype[i];
  const bool reached = std::abs(activation - input) <= kRounding * std::max(1.0, std::abs(input));
  // The control is what the activation goes to, but for an integrator, whose activation stays where no control is.
  return {
      .servo = true, .at_once = dynamics == mjDYN_NONE || reached, .control = dynamics == mjDYN_INTEGRATOR ? 0 : input};
}

std::vector<ServoHold> servo_holds(const mjModel& m, mjData& d, std::span<const double> qpos,
                                   std::span<const double> act) {
  std::copy(qpos.begin(), qpos.end(), d.qpos);
  mj_kinematics(&m, &d);
  mj_comPos(&m, &d);
  mj_camlight(&m, &d);
  mj_tendon(&m, &d);
  mj_transmission(&m, &d);
  std::vector<ServoHold> holds;
  for (int i = 0; i < m.nactuator; ++i) {
    const int first = m.actuator_actadr[i], count = m.actuator_actnum[i];
    const double activation = first >= 0 && count > 0 ? act[count_of(first + count - 1)] : 0;
    holds.push_back(servo_hold(m, i, d.actuator_length[m.actuator_outadr[i]], activation));
  }
  return holds;
}

ModelInfo describe(const mjModel& m) {
  constexpr const char* kIntegrators[] = {"Euler", "RK4", "implicit", "implicitfast", "discrete"};
  constexpr const char* kSolvers[] = {"PGS", "CG", "Newton"};
  ModelInfo info;
  info.name = m.names;
  info.nq = static_cast<int>(m.nq);
  info.nv = static_cast<int>(m.nv);
  info.nu = static_cast<int>(m.nu);
  info.na = static_cast<int>(m.na);
  info.nmocap = static_cast<int>(m.nmocap);
  info.nsensordata = static_cast<int>(m.nsensordata);
  info.timestep = m.opt.timestep;
  info.integrator = kIntegrators[std::clamp(m.opt.integrator, 0, 4)];
  info.solver = kSolvers[std::clamp(m.opt.solver, 0, 2)];
  info.cone = m.opt.cone == mjCONE_PYRAMIDAL ? "pyramidal" : "elliptic";
  info.libccd = (m.opt.disableflags & mjDSBL_NATIVECCD) != 0 && is_searched(m);
  info.content = content_of(m);
  info.qpos0 = copy(m.qpos0, m.nq);
  info.mocap_pos0.resize(count(m.nmocap) * 3);
  info.mocap_quat0.resize(count(m.nmocap) * 4);
  for (int b = 0; b < m.nbody; ++b) {
    LinkInfo link;
    link.name = m.names + m.name_bodyadr[b];
    link.parent = b == 0 ? -1 : m.body_parentid[b];
    link.first_dof = m.body_dofadr[b];
    link.dof_count = m.body_dofnum[b];
    link.mocap = m.body_mocapid[b];
    link.mass = m.body_mass[b];
    if (link.mocap >= 0) {
      std::copy_n(m.body_pos + 3 * b, 3, info.mocap_pos0.begin() + 3 * link.mocap);
      std::copy_n(m.body_quat + 4 * b, 4, info.mocap_quat0.begin() + 4 * link.mocap);
    }
    info.links.push_back(std::move(link));
  }
  for (int j = 0; j < m.njnt; ++j) {
    info.joints.push_back({m.names + m.name_jntadr[j],
                           static_cast<JointType>(m.jnt_type[j]),
                           m.jnt_bodyid[j],
                           m.jnt_qposadr[j],
                           m.jnt_dofadr[j],
                           static_cast<bool>(m.jnt_limited[j]),
                           {m.jnt_range[2 * j], m.jnt_range[2 * j + 1]},
                           {m.jnt_axis[3 * j], m.jnt_axis[3 * j + 1], m.jnt_axis[3 * j + 2]},
                           {m.jnt_pos[3 * j], m.jnt_pos[3 * j + 1], m.jnt_pos[3 * j + 2]}});
    if (m.jnt_actfrclimited[j])
      info.joints.back().force_range = {m.jnt_actfrcrange[2 * j], m.jnt_actfrcrange[2 * j + 1]};
  }
  for (int i = 0; i < m.nactuator; ++i) info.actuators.push_back(describe_actuator(m, i));
  for (int i = 0; i < m.nsensor; ++i) {
    info.sensors.push_back(
        {m.names + m.name_sensoradr[i], sensor_type(m.sensor_type[i]), m.sensor_adr[i], m.sensor_dim[i]});
  }
  for (int g = 0; g < m.ngeom; ++g) {
    info.geoms.push_back({m.names + m.name_geomadr[g], geom_type(m.geom_type[g]), m.geom_bodyid[g]});
  }
  for (int i = 0; i < m.ncam; ++i) info.camera_names.emplace_back(m.names + m.name_camadr[i]);
  for (int i = 0; i < m.nlight; ++i) info.light_names.emplace_back(m.names + m.name_lightadr[i]);
  for (int i = 0; i < m.nsite; ++i) {
    SiteInfo site{.name = m.names + m.name_siteadr[i], .link = m.site_bodyid[i]};
    std::copy_n(m.site_pos + 3 * i, 3, site.pos.begin());
    std::copy_n(m.site_quat + 4 * i, 4, site.quat.begin());
    info.sites.push_back(std::move(site));
  }
  for (int k = 0; k < m.nkey; ++k) {
    info.keyframes.push_back({m.names + m.name_keyadr[k],
                              m.key_time[k],
                              copy(m.key_qpos + k * m.nq, m.nq),
                              copy(m.key_qvel + k * m.nv, m.nv),
                              copy(m.key_act + k * m.na, m.na),
                              copy(m.key_ctrl + k * m.nu, m.nu),
                              copy(m.key_mpos + k * m.nmocap * 3, m.nmocap * 3),
                              copy(m.key_mquat + k * m.nmocap * 4, m.nmocap * 4),
                              {},
                              {}});
  }
  const bool servos =
      std::any_of(info.actuators.begin(), info.actuators.end(), [](const ActuatorInfo& a) { return a.servo; });
  const DataPtr data(servos && m.nkey > 0 ? mj_makeData(&m) : nullptr);
  for (KeyframeInfo& key : info.keyframes) {
    key.hold.resize(info.actuators.size());
    key.hold_later.resize(info.actuators.size());
    if (!data) continue;
    const std::vector<ServoHold> holds = servo_holds(m, *data, key.qpos, key.act);
    for (std::size_t i = 0; i < holds.size(); ++i) {
      key.hold[i] = holds[i].control;
      key.hold_later[i] = holds[i].servo && !holds[i].at_once;
    }
  }
  info.parts = {m.nsite, m.ntendon, m.neq, m.npair, m.nexclude, m.nmesh, m.nhfield, m.ncam};
  return info;
}

}  // namespace cohort::sim::mj
