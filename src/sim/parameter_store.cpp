#include "sim/parameter_store.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "core/error.h"
#include "sim/freed_memory.h"
#include "sim/host/shape_bounds.h"

namespace cohort::sim {

namespace {

/// MuJoCo's lengths of gainprm and biasprm.
constexpr int kGainLength = 10;
constexpr Parameter kAll[kParameterCount] = {Parameter::kLinkMass,        Parameter::kGeomFriction,
                                             Parameter::kDofArmature,     Parameter::kDofDamping,
                                             Parameter::kActuatorGain,    Parameter::kActuatorBias,
                                             Parameter::kLinkCom,         Parameter::kLinkInertia,
                                             Parameter::kLinkInertiaQuat, Parameter::kGravity,
                                             Parameter::kDofFrictionloss, Parameter::kJointStiffness,
                                             Parameter::kJointRange,      Parameter::kActuatorForceRange,
                                             Parameter::kGeomPos,         Parameter::kGeomQuat,
                                             Parameter::kGeomSize};
constexpr int kBit[kParameterCount] = {kVariesMass,
                                       kVariesFriction,
                                       kVariesArmature,
                                       kVariesDamping,
                                       kVariesGain,
                                       kVariesGain,
                                       kVariesMass | kVariesCentre,
                                       kVariesMass,
                                       kVariesMass,
                                       kVariesGravity,
                                       kVariesLoss,
                                       kVariesStiffness,
                                       kVariesLimits,
                                       kVariesForces,
                                       kVariesGeoms,
                                       kVariesGeoms,
                                       kVariesGeoms | kVariesSizes};
/// Values of a link in Model::link_inertial, and where its parts begin.
constexpr std::size_t kInertial = 10, kInertialQuat = 3, kInertialMoments = 7;
/// Values of a geom in Model::geom_frame, and where its parts begin.
constexpr std::size_t kFrame = 10, kFrameQuat = 3, kFrameSize = 7;
/// Parameters that the kernels read as they are written.
bool is_read_directly(Parameter p) {
  return p == Parameter::kDofArmature || p == Parameter::kDofDamping || p == Parameter::kGravity ||
         p == Parameter::kActuatorForceRange;
}
/// A rotation matrix by rows.
void rotation_of(const double* q, double* R) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  const double rows[9] = {w * w + x * x - y * y - z * z, 2 * (x * y - w * z),           2 * (x * z + w * y),
                          2 * (x * y + w * z),           w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
                          2 * (x * z - w * y),           2 * (y * z + w * x),           w * w - x * x - y * y + z * z};
  std::copy_n(rows, 9, R);
}
/// MuJoCo's smallest friction.
constexpr float kLeastFriction = 1e-5f;

std::size_t index(Parameter p) {
  return static_cast<std::size_t>(p);
}

}  // namespace

int ParameterStore::size(const Model& model, Parameter parameter) {
  const ModelView& m = model.sizes;
  switch (parameter) {
    case Parameter::kLinkMass:
      return m.nlink;
    case Parameter::kGeomFriction:
      return 3 * m.nfilegeom;
    case Parameter::kDofArmature:
    case Parameter::kDofDamping:
      return m.nv;
    case Parameter::kActuatorGain:
    case Parameter::kActuatorBias:
      return kGainLength * m.nact;
    case Parameter::kLinkCom:
    case Parameter::kLinkInertia:
      return 3 * m.nlink;
    case Parameter::kLinkInertiaQuat:
      return 4 * m.nlink;
    case Parameter::kGravity:
      return 3;
    case Parameter::kDofFrictionloss:
      return m.nv;
    case Parameter::kJointStiffness:
      return static_cast<int>(model.info.joints.size());
    case Parameter::kJointRange:
      return 2 * static_cast<int>(model.info.joints.size());
    case Parameter::kActuatorForceRange:
      return 2 * m.nact;
    case Parameter::kGeomPos:
    case Parameter::kGeomSize:
      return 3 * m.nfilegeom;
    case Parameter::kGeomQuat:
      return 4 * m.nfilegeom;
  }
  return 0;
}

float ParameterStore::defaults(Parameter parameter, int i) const {
  const auto k = static_cast<std::size_t>(i);
  switch (parameter) {
    case Parameter::kLinkMass:
      return model_.link[k].mass;
    case Parameter::kGeomFriction:
      return model_.geom_friction[k];
    case Parameter::kDofArmature:
      return model_.dof[k].armature;
    case Parameter::kDofDamping:
      return model_.dof[k].damping;
    case Parameter::kActuatorGain:
    case Parameter::kActuatorBias: {
      const ActuatorRecord& a = model_.actuator[k / kGainLength];
      const std::size_t entry = k % kGainLength;
      if (entry > 2) return 0;
      return parameter == Parameter::kActuatorGain ? a.gain[entry] : a.bias[entry];
    }
    case Parameter::kLinkCom:
      return model_.link_inertial[kInertial * (k / 3) + k % 3];
    case Parameter::kLinkInertia:
      return model_.link_inertial[kInertial * (k / 3) + kInertialMoments + k % 3];
    case Parameter::kLinkInertiaQuat:
      return model_.link_inertial[kInertial * (k / 4) + kInertialQuat + k % 4];
    case Parameter::kGravity:
      return model_.sizes.option.gravity[k];
    case Parameter::kDofFrictionloss:
      for (const FrictionRecord& f : model_.friction)
        if (f.tendon < 0 && model_.row_dof[static_cast<std::size_t>(f.first_dof)] == i) return f.loss;
      return 0;
    case Parameter::kJointStiffness: {
      const JointInfo& joint = model_.info.joints[k];
      for (const JointRecord& j : model_.joint)
        if (j.qpos == joint.qpos) return j.stiffness;
      for (const BodyRecord& b : model_.body)
        if ((b.kind == kBodyFree || b.kind == kBodyBall) && b.qpos == joint.qpos) return b.stiffness;
      return 0;
    }
    case Parameter::kJointRange:
      return static_cast<float>(model_.info.joints[k / 2].range[k % 2]);
    case Parameter::kActuatorForceRange: {
      const ActuatorRecord& a = model_.actuator[k / 2];
      return k % 2 == 0 ? a.force_lower : a.force_upper;
    }
    case Parameter::kGeomPos:
      return model_.geom_frame[kFrame * (k / 3) + k % 3];
    case Parameter::kGeomQuat:
      return model_.geom_frame[kFrame * (k / 4) + kFrameQuat + k % 4];
    case Parameter::kGeomSize:
      return model_.geom_frame[kFrame * (k / 3) + kFrameSize + k % 3];
  }
  return 0;
}

std::vector<float> ParameterStore::defaults(Parameter parameter) const {
  std::vector<float> all;
  for (int i = 0; i < size(parameter); ++i) all.push_back(defaults(parameter, i));
  return all;
}

float* ParameterStore::values(Parameter parameter) {
  LaneValues& v = values_[index(parameter)];
  if (!v.empty()) return v.data();
  const int n = size(parameter);
  // Padding has the model's values too, and is never empty.
  v.resize(static_cast<std::size_t>(std::max(n, 1)) * static_cast<std::size_t>(n_pad_));
  for (int i = 0; i < n; ++i) {
    const float own = defaults(parameter, i);
    for (int e = 0; e < n_pad_; ++e) at(v, i, e) = own;
  }
  return v.data();
}

ParameterSet ParameterStore::taken() const {
  ParameterSet set;
  for (Parameter p : kAll) set.set(index(p), !values_[index(p)].empty());
  return set;
}

void ParameterStore::keep_only(const ParameterSet& kept) {
  for (Parameter p : kAll) {
    if (!kept.test(index(p))) values_[index(p)] = LaneValues();
  }
}

void ParameterStore::take(const ParameterSet& wanted, int n, const std::function<void()>& commit) {
  const ParameterSet before = taken();
  try {
    for (Parameter p : kAll) {
      if (wanted.test(index(p))) values(p);
    }
    commit();
  } catch (const std::bad_alloc&) {
    keep_only(before);
    throw Error(format("there is no memory for parameters of {} environments", n));
  } catch (...) {
    keep_only(before);
    throw;
  }
}

int ParameterStore::varies(const ParameterSet& parameters) {
  int bits = 0;
  for (Parameter p : kAll) bits |= parameters.test(index(p)) ? kBit[index(p)] : 0;
  return bits;
}

double ParameterStore::bytes_per_environment(const Model& model, const ParameterSet& parameters) {
  double bytes = bytes_for_kernels(model.sizes, varies(parameters));
  for (Parameter p : kAll) {
    if (parameters.test(index(p)) && !is_read_directly(p)) bytes += 4.0 * size(model, p);
  }
  return bytes;
}

int ParameterStore::ratio_rows(const ModelView& m) {
  return m.npair + m.nlimit + m.nfriction + 2 * m.neq + 1;
}

double ParameterStore::bytes_for_kernels(const ModelView& m, int varies) {
  double values = 0;
  if (varies & kVariesMass) values += mass_layout(m).size;
  if (varies & kVariesFriction) values += double{kPairValues} * m.npair;
  if (varies & kVariesArmature) values += m.nv;
  if (varies & kVariesDamping) values += m.nv;
  if (varies & kVariesGain) values += double{kActuatorValues} * m.nact;
  if (varies & (kVariesMass | kVariesArmature)) values += ratio_rows(m);
  if (varies & kVariesCentre) values += 3.0 * m.nlink;
  if (varies & kVariesGravity) values += 3;
  if (varies & kVariesLoss) values += m.nfriction;
  if (varies & kVariesStiffness) values += m.njnt;
  if (varies & kVariesLimits) values += 2.0 * m.nlimit;
  if (varies & kVariesForces) values += 2.0 * m.nact;
  if (varies & kVariesGeoms) values += double{kGeomValues} * (m.ngeom + m.nray);
  return sizeof(float) * values;
}

void ParameterStore::check(Parameter parameter, const LaneValues& v, std::span<const std::int32_t> envs) const {
  for (int i = 0; i < size(parameter) && !v.empty(); ++i) {
    for (std::int32_t e : envs) check_parameter(parameter, e, i, at(v, i, e));
  }
  if (v.empty()) return;
  // What the engine has no place for stays the model's.
  if (parameter == Parameter::kDofFrictionloss) {
    for (int d = 0; d < size(parameter); ++d) {
      for (const std::int32_t e : envs) {
        COHORT_THROW_UNLESS(
            at(v, d, e) == 0 || defaults(parameter, d) > 0,
            "environment {} has impossible parameters: dof_frictionloss[{}] = {}, of a dof that has none "
            "in the model: give its joint a small frictionloss in the file",
            e, d, at(v, d, e));
        if (defaults(parameter, d) > 0) break;
      }
    }
  }
  if (parameter == Parameter::kJointStiffness) {
    for (int j = 0; j < size(parameter); ++j) {
      const JointInfo& joint = model_.info.joints[static_cast<std::size_t>(j)];
      if (kJointQpos[static_cast<int>(joint.type)] == 1) continue;
      for (const std::int32_t e : envs) {
        COHORT_THROW_UNLESS(at(v, j, e) == defaults(parameter, j),
                            "environment {} has impossible parameters: joint_stiffness[{}] (`{}`) is another than the "
                            "model's, and the joint is no hinge or slide; the engine `mujoco` has springs of those too",
                            e, j, joint.name);
      }
    }
  }
  if (parameter == Parameter::kGeomSize || parameter == Parameter::kGeomQuat) check_geoms(parameter, v, envs);
  if (parameter != Parameter::kLinkMass) return;
  for (const std::int32_t e : envs) {
    check_masses(model_.info, e, [&](int link) { return static_cast<double>(at(v, link, e)); });
  }
}

void ParameterStore::check_geoms(Parameter parameter, const LaneValues& v, std::span<const std::int32_t> envs) const {
  const int width = parameter == Parameter::kGeomQuat ? 4 : 3;
  for (int g = 0; g < model_.sizes.nfilegeom; ++g) {
    for (const std::int32_t e : envs) {
      float own[4];
      bool as_model = true;
      for (int i = 0; i < width; ++i) {
        own[i] = at(v, width * g + i, e);
        as_model = as_model && own[i] == defaults(parameter, width * g + i);
      }
      if (!as_model) check_geom(model_.info, parameter, e, g, own);
    }
  }
}

std::span<const std::int32_t> ParameterStore::resize(LaneValues& v, int rows, std::span<const std::int32_t> envs) {
  const std::size_t size = static_cast<std::size_t>(rows) * static_cast<std::size_t>(n_pad_);
  if (v.size() == size) return envs;
  v.assign(size, 0);
  return every();
}

bool ParameterStore::centre_of(int k, std::int32_t env, double* centre) const {
  const LinkRecord& link = model_.link[static_cast<std::size_t>(k)];
  double own[3];
  bool changed = false;
  for (int i = 0; i < 3; ++i) {
    const float x = value(Parameter::kLinkCom, 3 * k + i, env);
    changed = changed || x != defaults(Parameter::kLinkCom, 3 * k + i);
    own[i] = static_cast<double>(x);
  }
  for (int i = 0; i < 3; ++i) centre[i] = static_cast<double>(link.com[i]);
  if (!changed) return false;
  double q[4], R[9];
  for (int i = 0; i < 4; ++i) q[i] = static_cast<double>(link.quat[i]);
  rotation_of(q, R);
  for (int i = 0; i < 3; ++i) {
    centre[i] = static_cast<double>(link.pos[i]) + R[3 * i] * own[0] + R[3 * i + 1] * own[1] + R[3 * i + 2] * own[2];
  }
  return true;
}

bool ParameterStore::inertia_of(int k, std::int32_t env, double* inertia) const {
  const LinkRecord& link = model_.link[static_cast<std::size_t>(k)];
  double moment[3], q[4], R[9], axes[9], A[9];
  bool changed = false;
  const auto take = [&](Parameter parameter, int n, double* to) {
    for (int i = 0; i < n; ++i) {
      const float x = value(parameter, n * k + i, env);
      changed = changed || x != defaults(parameter, n * k + i);
      to[i] = static_cast<double>(x);
    }
  };
  take(Parameter::kLinkInertia, 3, moment);
  take(Parameter::kLinkInertiaQuat, 4, q);
  for (int i = 0; i < 6; ++i) inertia[i] = static_cast<double>(link.inertia[i]);
  if (!changed) return false;
  rotation_of(q, axes);
  for (int i = 0; i < 4; ++i) q[i] = static_cast<double>(link.quat[i]);
  rotation_of(q, R);
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      A[3 * i + j] = R[3 * i] * axes[j] + R[3 * i + 1] * axes[3 + j] + R[3 * i + 2] * axes[6 + j];
    }
  }
  const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
  for (int i = 0; i < 6; ++i) {
    inertia[i] = 0;
    for (int j = 0; j < 3; ++j) inertia[i] += A[3 * row[i] + j] * moment[j] * A[3 * col[i] + j];
  }
  return true;
}

bool ParameterStore::mass_of(std::span<const int> links, std::int32_t env, double* sum) {
  const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
  double mass = 0, lifted = 0, moment[3] = {0, 0, 0}, lift[3] = {0, 0, 0}, about[6] = {0, 0, 0, 0, 0, 0};
  bool changed = false;
  for (const int k : links) {
    const LinkRecord& link = model_.link[static_cast<std::size_t>(k)];
    const float own = value(Parameter::kLinkMass, k, env);
    const double m = static_cast<double>(own);
    double c[3], inertia[6], squared = 0;
    const bool moved = centre_of(k, env, c), turned = inertia_of(k, env, inertia);
    changed = changed || own != link.mass || moved || turned;
    for (int i = 0; i < 3; ++i) squared += c[i] * c[i];
    mass += m;
    lifted += m * static_cast<double>(link.gravcomp);
    for (int i = 0; i < 3; ++i) {
      moment[i] += m * c[i];
      lift[i] += m * static_cast<double>(link.gravcomp) * c[i];
    }
    for (int i = 0; i < 6; ++i) {
      about[i] += inertia[i] + m * ((i < 3 ? squared : 0) - c[row[i]] * c[col[i]]);
    }
  }
  if (!changed) return false;
  double com[3], squared = 0;
  for (int i = 0; i < 3; ++i) com[i] = mass > 0 ? moment[i] / mass : 0, squared += com[i] * com[i];
  sum[0] = mass;
  for (int i = 0; i < 3; ++i) sum[1 + i] = com[i];
  for (int i = 0; i < 6; ++i) sum[4 + i] = about[i] - mass * ((i < 3 ? squared : 0) - com[row[i]] * com[col[i]]);
  sum[10] = lifted;
  for (int i = 0; i < 3; ++i) sum[11 + i] = lifted > 0 ? lift[i] / lifted : 0;
  return true;
}

void ParameterStore::bodies(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  const MassLayout layout = mass_layout(m);
  if (body_links_.empty()) {
    body_links_.resize(static_cast<std::size_t>(m.nbody));
    for (int k = 0; k < m.nlink; ++k) {
      const int body = model_.link[static_cast<std::size_t>(k)].body;
      if (body >= 0) body_links_[static_cast<std::size_t>(body)].push_back(k);
    }
  }
  for (std::int32_t e : resize(body_, layout.size, envs)) {
    double sum[kBodyValues];
    // Without a change the model's own numbers, to the last bit.
    const auto put = [&](int first, int count, bool changed, const float* own) {
      for (int i = 0; i < count; ++i) at(body_, first + i, e) = changed ? static_cast<float>(sum[i]) : own[i];
    };
    for (int b = 0; b < m.nbody; ++b) {
      const BodyRecord& r = model_.body[static_cast<std::size_t>(b)];
      float own[kBodyValues] = {r.mass};
      std::copy_n(r.com, 3, own + 1), std::copy_n(r.inertia, 6, own + 4);
      own[10] = r.gravcomp_mass, std::copy_n(r.gravcomp_com, 3, own + 11);
      put(kBodyValues * b, kBodyValues, mass_of(body_links_[static_cast<std::size_t>(b)], e, sum), own);
    }
    for (int k = 0; k < m.npiece; ++k) {
      const auto p = static_cast<std::size_t>(k);
      const PieceRecord& r = model_.piece[p];
      float own[kPieceValues] = {r.mass};
      std::copy_n(r.com, 3, own + 1), std::copy_n(r.inertia, 6, own + 4);
      const auto first = model_.piece_link.begin() + model_.piece_start[p];
      const std::span<const int> links(first, model_.piece_link.begin() + model_.piece_start[p + 1]);
      put(layout.piece + kPieceValues * k, kPieceValues, mass_of(links, e, sum), own);
    }
    for (int k = 0; k < m.nfluid; ++k) drags(k, e);
  }
}

void ParameterStore::drags(int fluid, std::int32_t env) {
  const FluidRecord& r = model_.fluid[static_cast<std::size_t>(fluid)];
  const int link = model_.fluid_link[static_cast<std::size_t>(fluid)];
  const double before = static_cast<double>(model_.link[static_cast<std::size_t>(link)].mass),
               now = static_cast<double>(value(Parameter::kLinkMass, link, env));
  // Every edge of the box of inertia changes by s, for one inertia; a link without mass has no drag.
  const double s = now == before ? 1.0 : now > 0 ? std::sqrt(before / now) : 0.0;
  const auto put = [&](int i, float own, double power) {
    at(body_, mass_layout(model_.sizes).fluid + kFluidValues * fluid + i, env) =
        s == 1.0 ? own : static_cast<float>(static_cast<double>(own) * power);
  };
  put(0, r.angular_linear, s * s * s);
  put(1, r.linear_linear, s);
  for (int i = 0; i < 3; ++i) put(2 + i, r.angular_square[i], s * s * s * s * s), put(5 + i, r.linear_square[i], s * s);
}

void ParameterStore::frictions(std::span<const std::int32_t> envs) {
  LaneValues& friction = values_[index(Parameter::kGeomFriction)];
  const ModelView& m = model_.sizes;
  envs = resize(pair_, kPairValues * m.npair, envs);
  const int which[5] = {0, 0, 1, 2, 2};
  for (int p = 0; p < m.npair; ++p) {
    const PairRecord& pair = model_.pair[static_cast<std::size_t>(p)];
    const int g1 = model_.geom[static_cast<std::size_t>(pair.geom1)].id,
              g2 = model_.geom[static_cast<std::size_t>(pair.geom2)].id;
    for (std::int32_t e : envs) {
      float first = 0;
      for (int i = 0; i < 5; ++i) {
        const float f1 = at(friction, 3 * g1 + which[i], e), f2 = at(friction, 3 * g2 + which[i], e);
        float f = pair.friction_from == 1 ? f1 : pair.friction_from == 2 ? f2 : std::max(f1, f2);
        f = pair.friction_from == 3 ? pair.friction[i] : std::max(kLeastFriction, f);
        if (i == 0) first = f;
        at(pair_, kPairValues * p + i, e) = f;
      }
      // As the import rounds it.
      const double mu = static_cast<double>(first) / std::sqrt(std::max(1e-15, static_cast<double>(m.option.impratio)));
      at(pair_, kPairValues * p + 5, e) = first == pair.friction[0] ? pair.mu : static_cast<float>(mu);
    }
  }
}

void ParameterStore::gains(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  LaneValues &gain = values_[index(Parameter::kActuatorGain)], &bias = values_[index(Parameter::kActuatorBias)];
  envs = resize(actuator_, kActuatorValues * m.nact, envs);
  for (int a = 0; a < m.nact; ++a) {
    const ActuatorRecord& record = model_.actuator[static_cast<std::size_t>(a)];
    for (std::int32_t e : envs) {
      for (int i = 0; i < 3; ++i) {
        float& g = at(actuator_, kActuatorValues * a + i, e);
        float& b = at(actuator_, kActuatorValues * a + 3 + i, e);
        g = i >= record.gain_values ? 0 : gain.empty() ? record.gain[i] : at(gain, kGainLength * a + i, e);
        b = i >= record.bias_values ? 0 : bias.empty() ? record.bias[i] : at(bias, kGainLength * a + i, e);
      }
    }
  }
}

void ParameterStore::centres(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  envs = resize(centre_, 3 * m.nlink, envs);
  for (int k = 0; k < m.nlink; ++k) {
    for (const std::int32_t e : envs) {
      double c[3];
      centre_of(k, e, c);
      for (int i = 0; i < 3; ++i) at(centre_, 3 * k + i, e) = static_cast<float>(c[i]);
    }
  }
}

void ParameterStore::losses(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  envs = resize(loss_, m.nfriction, envs);
  for (int i = 0; i < m.nfriction; ++i) {
    const FrictionRecord& f = model_.friction[static_cast<std::size_t>(i)];
    const int dof = model_.row_dof[static_cast<std::size_t>(f.first_dof)];
    for (const std::int32_t e : envs)
      at(loss_, i, e) = f.tendon >= 0 ? f.loss : value(Parameter::kDofFrictionloss, dof, e);
  }
}

void ParameterStore::springs(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  envs = resize(stiffness_, m.njnt, envs);
  for (int i = 0; i < m.njnt; ++i) {
    for (std::size_t j = 0; j < model_.info.joints.size(); ++j) {
      if (model_.info.joints[j].qpos != model_.joint[static_cast<std::size_t>(i)].qpos) continue;
      for (const std::int32_t e : envs)
        at(stiffness_, i, e) = value(Parameter::kJointStiffness, static_cast<int>(j), e);
    }
  }
}

void ParameterStore::limits(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  envs = resize(limit_, 2 * m.nlimit, envs);
  for (int i = 0; i < m.nlimit; ++i) {
    const LimitRecord& limit = model_.limit[static_cast<std::size_t>(i)];
    int joint = -1;
    for (std::size_t j = 0; j < model_.info.joints.size() && limit.kind != 2; ++j)
      if (model_.info.joints[j].qpos == limit.index) joint = static_cast<int>(j);
    for (const std::int32_t e : envs) {
      float lower = limit.lower, upper = limit.upper;
      if (joint >= 0) {
        lower = value(Parameter::kJointRange, 2 * joint, e), upper = value(Parameter::kJointRange, 2 * joint + 1, e);
        if (limit.kind == 1) upper = std::max(lower, upper);  // the greatest angle
      }
      at(limit_, 2 * i, e) = lower, at(limit_, 2 * i + 1, e) = upper;
    }
  }
}

void ParameterStore::geoms(std::span<const std::int32_t> envs) {
  const ModelView& m = model_.sizes;
  envs = resize(geom_, kGeomValues * (m.ngeom + m.nray), envs);
  for (int k = 0; k < m.ngeom + m.nray; ++k) {
    const GeomRecord& r =
        k < m.ngeom ? model_.geom[static_cast<std::size_t>(k)] : model_.ray_geom[static_cast<std::size_t>(k - m.ngeom)];
    const LinkRecord& link = model_.link[static_cast<std::size_t>(r.link)];
    double link_quat[4], R[9];
    for (int i = 0; i < 4; ++i) link_quat[i] = static_cast<double>(link.quat[i]);
    rotation_of(link_quat, R);
    for (const std::int32_t e : envs) {
      // Without a change the model's own numbers, to the last bit.
      float own[kGeomValues];
      std::copy_n(r.pos, 3, own + kOwnPos), std::copy_n(r.rot, 9, own + kOwnRot);
      std::copy_n(r.size, 3, own + kOwnSize), std::copy_n(r.box, 6, own + kOwnBox);
      own[kOwnRadius] = r.radius;
      const auto take = [&](Parameter parameter, int n, double* to) {
        bool changed = false;
        for (int i = 0; i < n; ++i) {
          const float x = value(parameter, n * r.id + i, e);
          changed = changed || x != defaults(parameter, n * r.id + i);
          to[i] = static_cast<double>(x);
        }
        return changed;
      };
      double pos[3], q[4], size[3], turned[9];
      if (take(Parameter::kGeomPos, 3, pos)) {
        for (int i = 0; i < 3; ++i) {
          own[kOwnPos + i] = static_cast<float>(static_cast<double>(link.pos[i]) + R[3 * i] * pos[0] +
                                                R[3 * i + 1] * pos[1] + R[3 * i + 2] * pos[2]);
        }
      }
      if (take(Parameter::kGeomQuat, 4, q)) {
        const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
        for (double& x : q) x /= length;
        rotation_of(q, turned);
        for (int i = 0; i < 3; ++i) {
          for (int j = 0; j < 3; ++j) {
            own[kOwnRot + 3 * i + j] =
                static_cast<float>(R[3 * i] * turned[j] + R[3 * i + 1] * turned[3 + j] + R[3 * i + 2] * turned[6 + j]);
          }
        }
      }
      if (take(Parameter::kGeomSize, 3, size)) {
        const GeomBounds bounds = bounds_of_shape(r.shape, size);
        for (int i = 0; i < 3; ++i) {
          own[kOwnSize + i] = static_cast<float>(size[i]);
          own[kOwnBox + i] = 0, own[kOwnBox + 3 + i] = static_cast<float>(bounds.half[i]);
        }
        own[kOwnRadius] = static_cast<float>(bounds.radius);
      }
      for (int i = 0; i < kGeomValues; ++i) at(geom_, kGeomValues * k + i, e) = own[i];
    }
  }
}

void ParameterStore::ratios(const ModelView& view, DataView& data, std::span<const std::int32_t> envs) {
  const int rows = ratio_rows(view);
  envs = resize(ratio_, rows, envs);
  data.weight_ratio = ratio_.data();
  const BlockRunner& runner = scalar_block_runner();
  const auto bytes = static_cast<std::size_t>(runner.workspace_bytes(view)) + 64;
  const FreedMemory workspace(std::aligned_alloc(64, (bytes + 63) / 64 * 64));
  COHORT_THROW_UNLESS(workspace != nullptr, "there is no memory for the inverse weights");
  std::memset(workspace.get(), 0, bytes);
  const auto nv = static_cast<std::size_t>(view.nv);
  const std::size_t count = nv + static_cast<std::size_t>(view.ntendon + 2 * view.nlink + 1);
  std::vector<float> inverse(std::max<std::size_t>(nv * nv, 1)), now(count), before(count);
  // The model's own values, by the same arithmetic: an environment with the model's parameters has the ratio one.
  DataView own = data;
  ModelView plain = model_.view();
  plain.varies = 0;
  runner.inverse_weights(plain, own, 0, workspace.get(), inverse.data(), before.data());
  const int links = view.nv + view.ntendon;
  for (std::int32_t e : envs) {
    for (int r = 0; r < rows; ++r) at(ratio_, r, e) = 1;
    std::memset(workspace.get(), 0, bytes);
    runner.inverse_weights(view, data, e, workspace.get(), inverse.data(), now.data());
    const auto ratio = [&](std::initializer_list<int> which) {
      float above = 0, below = 0;
      for (int k : which) above += now[static_cast<std::size_t>(k)], below += before[static_cast<std::size_t>(k)];
      return below > 0 ? above / below : 1.0f;
    };
    const auto link_of = [&](int geom) { return model_.geom[static_cast<std::size_t>(geom)].link; };
    int r = 0;
    for (const PairRecord& p : model_.pair) {
      at(ratio_, r++, e) = ratio({links + 2 * link_of(p.geom1), links + 2 * link_of(p.geom2)});
    }
    for (const LimitRecord& l : model_.limit) {
      at(ratio_, r++, e) =
          ratio({l.kind == 2 ? view.nv + l.index : model_.row_dof[static_cast<std::size_t>(l.first_dof)]});
    }
    for (const FrictionRecord& f : model_.friction) {
      at(ratio_, r++, e) =
          ratio({f.tendon >= 0 ? view.nv + f.tendon : model_.row_dof[static_cast<std::size_t>(f.first_dof)]});
    }
    for (const EqualityRecord& q : model_.equality) {
      if (q.kind == kEqualityConnect || q.kind == kEqualityWeld) {
        for (int k = 0; k < 2; ++k) at(ratio_, r++, e) = ratio({links + 2 * q.link1 + k, links + 2 * q.link2 + k});
        continue;
      }
      const auto weight = [&](int object, int wrap) {
        return q.kind == kEqualityTendon ? view.nv + object : model_.wrap[static_cast<std::size_t>(wrap)].dof;
      };
      const int first = weight(q.object1, q.first_wrap1);
      at(ratio_, r++, e) = q.object2 >= 0 ? ratio({first, weight(q.object2, q.first_wrap2)}) : ratio({first});
      ++r;
    }
    // The solver's scale falls as the inertia grows.
    const float mean = ratio({static_cast<int>(count) - 1});
    at(ratio_, r, e) = mean > 0 ? 1 / mean : 1.0f;
  }
}

void ParameterStore::commit(const ModelView& view, DataView& data, std::span<const std::int32_t> envs) {
  const int bits = varies();
  if (envs.empty() || bits != committed_) envs = every();
  for (Parameter p : kAll) check(p, values_[index(p)], envs);
  if (bits & kVariesMass) {
    bodies(envs);
    data.body_values = body_.data();
  }
  if (bits & kVariesFriction) {
    frictions(envs);
    data.pair_values = pair_.data();
  }
  if (bits & kVariesArmature) data.armature = values_[index(Parameter::kDofArmature)].data();
  if (bits & kVariesDamping) data.damping = values_[index(Parameter::kDofDamping)].data();
  if (bits & kVariesGain) {
    gains(envs);
    data.actuator_values = actuator_.data();
  }
  if (bits & kVariesCentre) {
    centres(envs);
    data.centres = centre_.data();
  }
  if (bits & kVariesGravity) data.gravity = values_[index(Parameter::kGravity)].data();
  if (bits & kVariesLoss) {
    losses(envs);
    data.losses = loss_.data();
  }
  if (bits & kVariesStiffness) {
    springs(envs);
    data.stiffness = stiffness_.data();
  }
  if (bits & kVariesLimits) {
    limits(envs);
    data.limits = limit_.data();
  }
  if (bits & kVariesGeoms) {
    geoms(envs);
    data.geom_values = geom_.data();
  }
  if (bits & kVariesForces) data.force_limits = values_[index(Parameter::kActuatorForceRange)].data();
  if (bits & (kVariesMass | kVariesArmature)) ratios(view, data, envs);
  committed_ = bits;
}

void ParameterStore::save(std::vector<std::uint8_t>& to) const {
  for (Parameter p : kAll) {
    const LaneValues& v = values_[index(p)];
    const std::uint64_t bytes = v.size() * sizeof(float);
    const auto* head = reinterpret_cast<const std::uint8_t*>(&bytes);
    to.insert(to.end(), head, head + sizeof bytes);
    const auto* body = reinterpret_cast<const std::uint8_t*>(v.data());
    to.insert(to.end(), body, body + bytes);
  }
}

ParameterSet ParameterStore::saved_in(std::span<const std::uint8_t> bytes) {
  ParameterSet set;
  for (Parameter p : kAll) {
    std::uint64_t size = 0;
    COHORT_THROW_UNLESS(bytes.size() >= sizeof size, "the state is cut off");
    std::memcpy(&size, bytes.data(), sizeof size);
    bytes = bytes.subspan(sizeof size);
    COHORT_THROW_UNLESS(bytes.size() >= size, "the state is cut off");
    bytes = bytes.subspan(size);
    set.set(index(p), size > 0);
  }
  return set;
}

std::size_t ParameterStore::load(std::span<const std::uint8_t> from) {
  std::array<LaneValues, kParameterCount> read;
  std::size_t used = 0;
  for (Parameter p : kAll) {
    std::uint64_t bytes = 0;
    COHORT_THROW_UNLESS(from.size() - used >= sizeof bytes, "the state is cut off");
    std::memcpy(&bytes, from.data() + used, sizeof bytes);
    used += sizeof bytes;
    const std::size_t whole = static_cast<std::size_t>(std::max(size(p), 1)) * static_cast<std::size_t>(n_pad_) * 4;
    COHORT_THROW_UNLESS((bytes == 0 || bytes == whole) && from.size() - used >= bytes,
                        "the state's {} do not fit: another model or number of environments", parameter_name(p));
    read[index(p)].resize(bytes / sizeof(float));
    if (bytes > 0) std::memcpy(read[index(p)].data(), from.data() + used, bytes);
    used += bytes;
    check(p, read[index(p)], every());
  }
  values_ = std::move(read);
  return used;
}

}  // namespace cohort::sim
