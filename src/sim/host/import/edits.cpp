#include "sim/host/import/edits.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <map>
#include <regex>
#include <utility>
#include <vector>

#include "core/config.h"
#include "core/error.h"
#include "sim/host/import/compose.h"
#include "sim/host/model_info.h"

namespace cohort::sim::mj {

namespace {

std::string name_of(mjsElement* element) {
  return mjs_getString(mjs_getName(element));
}

std::vector<double> values_of(mjDoubleVec* all) {
  int n = 0;
  const double* first = mjs_getDouble(all, &n);
  return n > 0 ? std::vector<double>(first, first + n) : std::vector<double>{};
}
void write(mjDoubleVec* to, const std::vector<double>& from) {
  mjs_setDouble(to, from.data(), static_cast<int>(from.size()));
}

bool is_scalar(const mjsJoint& joint) {
  return joint.type == mjJNT_HINGE || joint.type == mjJNT_SLIDE;
}

/// Of an actuator that drives a joint by its name.
bool drives(const mjsActuator& actuator, const std::string& joint) {
  return (actuator.trntype == mjTRN_JOINT || actuator.trntype == mjTRN_JOINTINPARENT) &&
         mjs_getString(actuator.target) == joint;
}
/// A position servo: the control at which its force is zero at rest is its length.
bool holds_length(const mjsActuator& a) {
  return a.dyntype == mjDYN_NONE && a.gaintype == mjGAIN_FIXED && a.biastype == mjBIAS_AFFINE && a.biasprm[0] == 0 &&
         a.gainprm[0] > 0 && a.gainprm[0] == -a.biasprm[1];
}

const std::map<std::string, std::pair<mjtSensor, mjtObj>>& sensor_types() {
  // mjOBJ_XBODY: of a site or else a link's frame.
  static const std::map<std::string, std::pair<mjtSensor, mjtObj>> types = {
      {"gyro", {mjSENS_GYRO, mjOBJ_SITE}},
      {"accelerometer", {mjSENS_ACCELEROMETER, mjOBJ_SITE}},
      {"velocimeter", {mjSENS_VELOCIMETER, mjOBJ_SITE}},
      {"magnetometer", {mjSENS_MAGNETOMETER, mjOBJ_SITE}},
      {"force", {mjSENS_FORCE, mjOBJ_SITE}},
      {"torque", {mjSENS_TORQUE, mjOBJ_SITE}},
      {"touch", {mjSENS_TOUCH, mjOBJ_SITE}},
      {"framepos", {mjSENS_FRAMEPOS, mjOBJ_XBODY}},
      {"framequat", {mjSENS_FRAMEQUAT, mjOBJ_XBODY}},
      {"framexaxis", {mjSENS_FRAMEXAXIS, mjOBJ_XBODY}},
      {"frameyaxis", {mjSENS_FRAMEYAXIS, mjOBJ_XBODY}},
      {"framezaxis", {mjSENS_FRAMEZAXIS, mjOBJ_XBODY}},
      {"framelinvel", {mjSENS_FRAMELINVEL, mjOBJ_XBODY}},
      {"frameangvel", {mjSENS_FRAMEANGVEL, mjOBJ_XBODY}},
      {"framelinacc", {mjSENS_FRAMELINACC, mjOBJ_XBODY}},
      {"frameangacc", {mjSENS_FRAMEANGACC, mjOBJ_XBODY}},
      {"subtreecom", {mjSENS_SUBTREECOM, mjOBJ_BODY}},
      {"subtreelinvel", {mjSENS_SUBTREELINVEL, mjOBJ_BODY}},
      {"subtreeangmom", {mjSENS_SUBTREEANGMOM, mjOBJ_BODY}},
      {"jointpos", {mjSENS_JOINTPOS, mjOBJ_JOINT}},
      {"jointvel", {mjSENS_JOINTVEL, mjOBJ_JOINT}},
      {"jointactuatorfrc", {mjSENS_JOINTACTFRC, mjOBJ_JOINT}},
      {"actuatorpos", {mjSENS_ACTUATORPOS, mjOBJ_ACTUATOR}},
      {"actuatorvel", {mjSENS_ACTUATORVEL, mjOBJ_ACTUATOR}},
      {"actuatorfrc", {mjSENS_ACTUATORFRC, mjOBJ_ACTUATOR}},
  };
  return types;
}

const char* word_for(mjtObj type) {
  switch (type) {
    case mjOBJ_BODY:
    case mjOBJ_XBODY:
      return "link";
    case mjOBJ_JOINT:
      return "joint";
    case mjOBJ_SITE:
      return "site";
    case mjOBJ_GEOM:
      return "geom";
    default:
      return "actuator";
  }
}

/// Principal moments of a body's <inertial>.
std::array<double, 3> principal_moments(const mjsBody& body) {
  const double* f = body.fullinertia;
  if (std::isnan(f[0])) return {body.inertia[0], body.inertia[1], body.inertia[2]};
  const double matrix[9] = {f[0], f[3], f[4], f[3], f[1], f[5], f[4], f[5], f[2]};
  std::array<double, 3> moments{};
  double axes[9], quat[4];
  mju_eig3(moments.data(), axes, quat, matrix);
  return moments;
}

/// ModelEdits::repair_inertia.
void repair_inertias(mjSpec* spec, const std::string& entity, std::vector<std::string>& warnings) {
  constexpr double kLeastMass = 0.001, kLeastInertia = 1e-6;  // kg, kg m^2
  spec->compiler.balanceinertia = 1;
  spec->compiler.boundmass = std::max(spec->compiler.boundmass, kLeastMass);
  spec->compiler.boundinertia = std::max(spec->compiler.boundinertia, kLeastInertia);
  std::vector<std::string> balanced, raised;
  for (mjsElement* e = mjs_firstElement(spec, mjOBJ_BODY); e; e = mjs_nextElement(spec, e)) {
    mjsBody* const body = mjs_asBody(e);
    const std::string name = mjs_getString(mjs_getName(e));
    if (name == "world") continue;
    if (body->explicitinertial == 0) {
      // MuJoCo takes it from the geoms. A frame that nothing moves on is no body of its own.
      if (mjs_firstChild(body, mjOBJ_JOINT, 0) && !mjs_firstChild(body, mjOBJ_GEOM, 0)) raised.push_back(name);
      continue;
    }
    std::array<double, 3> moments = principal_moments(*body);
    std::sort(moments.begin(), moments.end());
    if (moments[0] + moments[1] < moments[2]) balanced.push_back(name);
    if (body->mass < kLeastMass || moments[0] < kLeastInertia) raised.push_back(name);
  }
  const auto say = [&](const std::vector<std::string>& links, const std::string& what) {
    if (!links.empty())
      warnings.push_back(format("entity `{}`, repair_inertia: {}: {}", entity, what, join(links, ", ")));
  };
  say(balanced, "inertias that no body can have are replaced by their mean");
  say(raised, format("what is below {} kg or {} kg m^2 is raised to that", kLeastMass, kLeastInertia));
}

class Editor {
 public:
  Editor(mjSpec* spec, const ModelEdits& edits, const std::string& entity)
      : spec_(spec), edits_(edits), entity_(entity), world_(mjs_findBody(spec, "world")) {}

  void apply() {
    remember_keyframes();
    if (edits_.free_base) set_base(*edits_.free_base);
    edit_joints();
    edit_actuators();
    edit_geoms();
    for (const ImuEdit& imu : edits_.imus) add_imu(imu);
    for (std::size_t i = 0; i < edits_.sensors.size(); ++i) add_sensor(edits_.sensors[i], format("sensors[{}]", i));
    rewrite_keyframes();
    if (edits_.init) add_keyframe(*edits_.init);
  }

 private:
  [[noreturn]] void fail(const std::string& where, const std::string& message) const {
    throw CompileFailure{format("entity `{}`, edits.{}: {}", entity_, where, message)};
  }
  void check(const std::string& where, const char* what, double value, double least, const char* rule) const {
    if (!(value >= least) || !std::isfinite(value)) fail(where, format("{} is {}: {}", what, value, rule));
  }
  void check_positive(const std::string& where, const char* what, double value) const {
    if (!(value > 0) || !std::isfinite(value)) fail(where, format("{} is {}: above 0", what, value));
  }
  void check_range(const std::string& where, const char* what, const std::array<double, 2>& range) const {
    if (!(range[0] < range[1]) || !std::isfinite(range[0]) || !std::isfinite(range[1]))
      fail(where, format("{} is [{}, {}]: from the lower number to the greater", what, range[0], range[1]));
  }

  // ---- names

  /// Elements of a type in the order of the bodies, as the compiled model has joints, geoms and sites.
  std::vector<mjsElement*> all(mjtObj type) const {
    std::vector<mjsElement*> found;
    if (type == mjOBJ_ACTUATOR || type == mjOBJ_KEY || type == mjOBJ_SENSOR) {
      for (mjsElement* e = mjs_firstElement(spec_, type); e; e = mjs_nextElement(spec_, e)) found.push_back(e);
    } else {
      for (mjsElement* e = mjs_firstChild(world_, type, 1); e; e = mjs_nextChild(world_, e, 1)) found.push_back(e);
    }
    return found;
  }
  std::string without_entity(const std::string& name) const {
    return name.starts_with(entity_ + "/") ? name.substr(entity_.size() + 1) : name;
  }
  static std::string list_of(const std::vector<std::string>& names) {
    constexpr std::size_t kMost = 16;
    std::string list;
    for (std::size_t i = 0; i < std::min(names.size(), kMost); ++i) list += (i > 0 ? ", " : "") + names[i];
    return names.size() > kMost ? format("{} and {} more", list, names.size() - kMost) : list;
  }
  /// ". The file has the joints a, b, c", with the nearest name before it.
  std::string what_there_is(const std::string& wanted, const std::vector<mjsElement*>& of, const char* what) const {
    std::vector<std::string> names;
    for (mjsElement* e : of)
      if (!name_of(e).empty()) names.push_back(name_of(e));
    if (names.empty()) return format(". The file has no {} with a name", what);
    const std::string near = config::nearest(wanted, names);
    return format("{}. The file has the {}s {}", near.empty() ? "" : format("; is `{}` meant?", near), what,
                  list_of(names));
  }
  /// Those of `of` whose names match; throws where none does.
  std::vector<mjsElement*> matching(const std::string& pattern, const std::vector<mjsElement*>& of, const char* what,
                                    const std::string& where) const {
    const std::string own = without_entity(pattern);
    std::vector<mjsElement*> found;
    try {
      const std::regex expression(own);
      for (mjsElement* e : of)
        if (std::regex_match(name_of(e), expression)) found.push_back(e);
    } catch (const std::regex_error& error) {
      fail(where, format("`{}` is no regular expression: {}", pattern, error.what()));
    }
    if (found.empty()) {
      fail(where, format("no {} matches `{}` with its whole name{}", what, pattern, what_there_is(own, of, what)));
    }
    return found;
  }
  mjsElement* named(const std::string& name, mjtObj type, const std::string& where) const {
    const std::vector<mjsElement*> of = all(type == mjOBJ_XBODY ? mjOBJ_BODY : type);
    const std::string own = without_entity(name);
    for (mjsElement* e : of)
      if (name_of(e) == own) return e;
    fail(where, format("no {} is named `{}`{}", word_for(type), name, what_there_is(own, of, word_for(type))));
  }
  bool has(const std::string& name, mjtObj type) const {
    const std::vector<mjsElement*> of = all(type);
    return std::any_of(of.begin(), of.end(), [&](mjsElement* e) { return name_of(e) == without_entity(name); });
  }

  // ---- keyframes: they hold numbers for every joint and actuator that the file had

  struct OldKeyframe {
    mjsKey* key = nullptr;
    std::vector<double> qpos, qvel, act, ctrl;
  };
  void remember_keyframes() {
    for (mjsElement* e : all(mjOBJ_KEY)) {
      mjsKey* key = mjs_asKey(e);
      old_keys_.push_back({key, values_of(key->qpos), values_of(key->qvel), values_of(key->act), values_of(key->ctrl)});
    }
    for (mjsElement* e : all(mjOBJ_JOINT)) {
      const auto type = static_cast<std::size_t>(mjs_asJoint(e)->type);
      old_nq_ += kJointQpos[type], old_nv_ += kJointDofs[type];
    }
    old_nu_ = all(mjOBJ_ACTUATOR).size();
    kept_actuator_.assign(old_nu_, true);
  }
  /// Of whole keyframes only: MuJoCo says what is wrong with others.
  void rewrite_keyframes() {
    if (!changes_actuators() && base_change_ == 0) return;
    for (OldKeyframe& old : old_keys_) {
      if (base_change_ != 0 && old.qpos.size() == old_nq_) {
        const auto at = old.qpos.begin() + static_cast<std::ptrdiff_t>(base_qpos_);
        if (base_change_ > 0) {
          old.qpos.insert(at, base_pose_.begin(), base_pose_.end());
        } else {
          old.qpos.erase(at, at + 7);
        }
      }
      if (base_change_ != 0 && old.qvel.size() == old_nv_) {
        const auto at = old.qvel.begin() + static_cast<std::ptrdiff_t>(base_dof_);
        if (base_change_ > 0) {
          old.qvel.insert(at, 6, 0.0);
        } else {
          old.qvel.erase(at, at + 6);
        }
      }
      if (changes_actuators()) {
        std::vector<double> ctrl;
        for (std::size_t i = 0; i < old_nu_ && old.ctrl.size() == old_nu_; ++i) {
          if (kept_actuator_[i]) ctrl.push_back(old.ctrl[i]);
        }
        const std::vector<double> hold = controls_for(old.qpos);
        ctrl.resize(std::min(ctrl.size(), hold.size()));
        ctrl.insert(ctrl.end(), hold.begin() + static_cast<std::ptrdiff_t>(ctrl.size()), hold.end());
        old.ctrl = std::move(ctrl);
        if (lost_activation_) old.act.clear();
      }
      write(old.key->qpos, old.qpos), write(old.key->qvel, old.qvel);
      write(old.key->ctrl, old.ctrl), write(old.key->act, old.act);
    }
  }
  /// (actuators) what makes position servos hold the joints at qpos; 0 of others, and where qpos is not whole.
  std::vector<double> controls_for(const std::vector<double>& qpos) const {
    std::map<std::string, double> position;
    std::size_t q = 0;
    for (mjsElement* e : all(mjOBJ_JOINT)) {
      const mjsJoint* joint = mjs_asJoint(e);
      if (is_scalar(*joint) && q < qpos.size()) position[name_of(e)] = qpos[q];
      q += static_cast<std::size_t>(kJointQpos[static_cast<std::size_t>(joint->type)]);
    }
    std::vector<double> ctrl;
    for (mjsElement* e : all(mjOBJ_ACTUATOR)) {
      const mjsActuator* actuator = mjs_asActuator(e);
      const auto at = position.find(mjs_getString(actuator->target));
      const bool holds = at != position.end() && drives(*actuator, at->first) && holds_length(*actuator);
      ctrl.push_back(holds ? actuator->gear[0] * at->second : 0);
    }
    return ctrl;
  }

  // ---- the base

  mjsBody* base(const std::string& where) const {
    mjsElement* first = mjs_firstChild(world_, mjOBJ_BODY, 0);
    if (!first) fail(where, "the file has no body, so that there is no base");
    return mjs_asBody(first);
  }
  static mjsElement* free_joint(const mjsBody* body) {
    for (mjsElement* e = mjs_firstChild(body, mjOBJ_JOINT, 0); e; e = mjs_nextChild(body, e, 0))
      if (mjs_asJoint(e)->type == mjJNT_FREE) return e;
    return nullptr;
  }
  /// The pose of a body of the world: qpos0 of its free joint.
  std::array<double, 7> pose_of(mjsBody* body, const std::string& where) const {
    if (mjs_getFrame(body->element))
      fail(where, "the base lies in a <frame>, which places it: give edits.init.base, the pose of the base");
    std::array<double, 7> pose{};
    std::copy_n(body->pos, 3, pose.data());
    double quat[4];
    std::copy_n(body->quat, 4, quat);
    const mjsCompiler& compiler = *mjs_getCompiler(body->element);
    if (const char* why = mjs_resolveOrientation(quat, compiler.degree, compiler.eulerseq, &body->alt))
      fail(where, why);
    double norm = 0;
    for (const double q : quat) norm += q * q;
    for (std::size_t i = 0; i < 4; ++i) pose[3 + i] = norm > 0 ? quat[i] / std::sqrt(norm) : i == 0 ? 1 : 0;
    return pose;
  }
  void set_base(bool free) {
    mjsBody* body = base("free_base");
    mjsElement* joint = free_joint(body);
    if (free == (joint != nullptr)) return;
    // Its numbers come where those of its first joint, or of the bodies behind it, were: it is the first body.
    base_qpos_ = base_dof_ = 0;
    if (!free) {
      mjs_delete(spec_, joint);
      base_change_ = -1;
      return;
    }
    if (mjsElement* other = mjs_firstChild(body, mjOBJ_JOINT, 0)) {
      fail("free_base", format("the base `{}` has the joint `{}`: a free joint is a body's only one",
                               name_of(body->element), name_of(other)));
    }
    base_pose_ = edits_.init && edits_.init->base ? seven(*edits_.init->base) : pose_of(body, "free_base");
    mjs_addFreeJoint(body);
    base_change_ = 1;
  }
  std::array<double, 7> seven(const Pose& pose) const {
    double norm = 0;
    bool sound = true;
    for (const double q : pose.quat) norm += q * q;
    for (const double p : pose.pos) sound = sound && std::isfinite(p);
    if (!sound || !(norm > 1e-12) || !std::isfinite(norm))
      fail("init.base", "the pose is no pose: a position of finite numbers, a quaternion (w, x, y, z) with a length");
    std::array<double, 7> all{};
    for (std::size_t i = 0; i < 3; ++i) all[i] = pose.pos[i];
    for (std::size_t i = 0; i < 4; ++i) all[3 + i] = pose.quat[i] / std::sqrt(norm);
    return all;
  }

  // ---- joints and actuators

  std::vector<mjsElement*> moving_joints(bool scalar) const {
    std::vector<mjsElement*> found = all(mjOBJ_JOINT);
    std::erase_if(found, [&](mjsElement* e) {
      const mjsJoint* joint = mjs_asJoint(e);
      return scalar ? !is_scalar(*joint) : joint->type == mjJNT_FREE;
    });
    return found;
  }
  /// rad of what a hinge's or a ball's attribute says, or the other way round: files may have degrees.
  static double unit_of(mjsElement* joint) {
    const bool turns = mjs_asJoint(joint)->type != mjJNT_SLIDE;
    return turns && mjs_getCompiler(joint)->degree ? std::acos(-1.0) / 180 : 1;
  }
  /// Takes the first that says a value for a thing: true once for each.
  bool first_time(const void* value) { return written_.insert({value, true}).second; }
  template <class T, class U>
  void put(T& to, const std::optional<U>& value) {
    if (value && first_time(&to)) to = static_cast<T>(*value);
  }

  void edit_joints() {
    const std::vector<mjsElement*> joints = moving_joints(false);
    for (std::size_t i = 0; i < edits_.joints.size(); ++i) {
      const JointEdit& edit = edits_.joints[i];
      const std::string where = format("joints[{}]", i);
      for (const auto& [what, value] : {std::pair{"armature", edit.armature},
                                        {"damping", edit.damping},
                                        {"friction_loss", edit.friction_loss},
                                        {"stiffness", edit.stiffness}}) {
        if (value) check(where, what, *value, 0, "not below 0");
      }
      if (edit.range) check_range(where, "range", *edit.range);
      for (mjsElement* e : matching(edit.pattern, joints, "joint", where)) {
        mjsJoint* joint = mjs_asJoint(e);
        put(joint->armature, edit.armature);
        put(joint->damping[0], edit.damping);
        put(joint->frictionloss, edit.friction_loss);
        put(joint->stiffness[0], edit.stiffness);
        if (!edit.range || !first_time(joint->range)) continue;
        for (std::size_t k = 0; k < 2; ++k) joint->range[k] = (*edit.range)[k] / unit_of(e);
        joint->limited = mjLIMITED_TRUE;
      }
    }
  }

  void check(const ActuatorEdit& edit, const std::string& where) const {
    check(where, "stiffness", edit.stiffness, 0, "not below 0");
    check(where, "damping", edit.damping, 0, "not below 0");
    if (edit.kind == ActuatorEdit::Kind::kPosition)
      check_positive(where, "stiffness of a position actuator", edit.stiffness);
    if (edit.kind == ActuatorEdit::Kind::kVelocity)
      check_positive(where, "damping of a velocity actuator", edit.damping);
    if (edit.effort_limit) check_positive(where, "effort_limit", *edit.effort_limit);
    if (edit.armature) check(where, "armature", *edit.armature, 0, "not below 0");
    if (edit.friction_loss) check(where, "friction_loss", *edit.friction_loss, 0, "not below 0");
    if (edit.gear == 0 || !std::isfinite(edit.gear))
      fail(where, format("gear is {}: another number than 0", edit.gear));
    if (edit.ctrl_range) check_range(where, "ctrl_range", *edit.ctrl_range);
    if (edit.joints.empty()) fail(where, "no joints: name patterns of hinges and slides, `.*` for all");
  }

  bool changes_actuators() const { return !edits_.actuators.empty() || edits_.remove_actuators; }

  void edit_actuators() {
    const std::vector<mjsElement*> joints = moving_joints(true);
    std::map<mjsElement*, const ActuatorEdit*> driven;
    for (std::size_t i = 0; i < edits_.actuators.size(); ++i) {
      const ActuatorEdit& edit = edits_.actuators[i];
      const std::string where = format("actuators[{}]", i);
      check(edit, where);
      for (const std::string& pattern : edit.joints) {
        for (mjsElement* joint : matching(pattern, joints, "hinge or slide", where)) driven.insert({joint, &edit});
      }
    }
    if (driven.empty() && !edits_.remove_actuators) return;
    const std::vector<mjsElement*> old = all(mjOBJ_ACTUATOR);
    for (std::size_t i = 0; i < old.size(); ++i) {
      const mjsActuator* actuator = mjs_asActuator(old[i]);
      if (edits_.remove_actuators) kept_actuator_[i] = false;
      for (const auto& [joint, edit] : driven)
        kept_actuator_[i] = kept_actuator_[i] && !drives(*actuator, name_of(joint));
      if (kept_actuator_[i]) continue;
      lost_activation_ = lost_activation_ || actuator->dyntype != mjDYN_NONE;
      mjs_delete(spec_, old[i]);
    }
    for (mjsElement* joint : joints) {
      const auto found = driven.find(joint);
      if (found != driven.end()) add_actuator(joint, *found->second);
    }
  }

  void add_actuator(mjsElement* driven, const ActuatorEdit& edit) {
    mjsJoint* joint = mjs_asJoint(driven);
    const std::string name = name_of(driven);
    mjsActuator* a = mjs_addActuator(spec_, nullptr);
    if (name.empty())
      fail("actuators", "a joint without a name matches, and an actuator is named as its joint: name it");
    if (mjs_setName(a->element, name.c_str()) != 0)
      fail("actuators", format("the file has an actuator `{}` of another joint: rename it", name));
    mjs_setString(a->target, name.c_str());
    a->trntype = mjTRN_JOINT;
    std::fill_n(a->gear, 6, 0.0), a->gear[0] = edit.gear;
    a->dyntype = mjDYN_NONE, a->actdim = -1, a->actlimited = mjLIMITED_FALSE, a->actearly = 0;
    std::fill(std::begin(a->gainprm), std::end(a->gainprm), 0.0), a->gaintype = mjGAIN_FIXED;
    std::fill(std::begin(a->biasprm), std::end(a->biasprm), 0.0), a->biastype = mjBIAS_AFFINE;
    switch (edit.kind) {
      case ActuatorEdit::Kind::kPosition:
        a->gainprm[0] = edit.stiffness, a->biasprm[1] = -edit.stiffness, a->biasprm[2] = -edit.damping;
        break;
      case ActuatorEdit::Kind::kVelocity:
        a->gainprm[0] = edit.damping, a->biasprm[2] = -edit.damping;
        break;
      case ActuatorEdit::Kind::kMotor:
        a->gainprm[0] = 1, a->biastype = mjBIAS_NONE;
        break;
    }
    a->inheritrange = 0;
    a->ctrllimited = edit.ctrl_range ? mjLIMITED_TRUE : mjLIMITED_FALSE;
    a->ctrlrange[0] = a->ctrlrange[1] = 0;
    if (edit.ctrl_range) {
      std::copy(edit.ctrl_range->begin(), edit.ctrl_range->end(), a->ctrlrange);
    } else if (edit.kind == ActuatorEdit::Kind::kMotor && edit.effort_limit) {
      a->ctrllimited = mjLIMITED_TRUE;
      a->ctrlrange[0] = -*edit.effort_limit, a->ctrlrange[1] = *edit.effort_limit;
    } else if (edit.kind == ActuatorEdit::Kind::kPosition && edit.effort_limit) {
      // Where the force is at its limit from any position within the joint's: for who looks, nothing is clipped.
      const double more = *edit.effort_limit / edit.stiffness, unit = unit_of(driven) * edit.gear;
      a->ctrlrange[0] = std::min(joint->range[0] * unit, joint->range[1] * unit) - more;
      a->ctrlrange[1] = std::max(joint->range[0] * unit, joint->range[1] * unit) + more;
    }
    a->forcelimited = edit.effort_limit ? mjLIMITED_TRUE : mjLIMITED_FALSE;
    a->forcerange[0] = -edit.effort_limit.value_or(0), a->forcerange[1] = edit.effort_limit.value_or(0);
    put(joint->armature, edit.armature);
    put(joint->frictionloss, edit.friction_loss);
  }

  // ---- geoms

  void edit_geoms() {
    const std::vector<mjsElement*> geoms = all(mjOBJ_GEOM);
    for (std::size_t i = 0; i < edits_.geoms.size(); ++i) {
      const GeomEdit& edit = edits_.geoms[i];
      const std::string where = format("geoms[{}]", i);
      check(edit, where);
      for (mjsElement* e : matching(edit.pattern, geoms, "geom", where)) {
        mjsGeom* geom = mjs_asGeom(e);
        put(geom->contype, edit.contype), put(geom->conaffinity, edit.conaffinity);
        put(geom->condim, edit.condim), put(geom->priority, edit.priority), put(geom->group, edit.group);
        put(geom->margin, edit.margin), put(geom->gap, edit.gap);
        const auto put_all = [&](auto* to, const std::vector<double>& values) {
          if (!values.empty() && first_time(to)) std::copy(values.begin(), values.end(), to);
        };
        put_all(geom->friction, edit.friction), put_all(geom->solref, edit.solref), put_all(geom->solimp, edit.solimp);
        if (edit.rgba && first_time(geom->rgba)) std::copy(edit.rgba->begin(), edit.rgba->end(), geom->rgba);
      }
    }
    for (std::size_t i = 0; i < edits_.disable_collisions.size(); ++i) {
      for (mjsElement* e : matching(edits_.disable_collisions[i], geoms, "geom", format("disable_collisions[{}]", i))) {
        mjsGeom* geom = mjs_asGeom(e);
        put(geom->contype, std::optional(0)), put(geom->conaffinity, std::optional(0));
      }
    }
  }
  void check(const GeomEdit& edit, const std::string& where) const {
    for (const auto& [what, value] : {std::pair{"contype", edit.contype},
                                      {"conaffinity", edit.conaffinity},
                                      {"priority", edit.priority},
                                      {"group", edit.group}}) {
      if (value) check(where, what, *value, 0, "not below 0");
    }
    if (edit.group && *edit.group >= mjNGROUP) fail(where, format("group is {}: 0 to {}", *edit.group, mjNGROUP - 1));
    if (edit.condim && *edit.condim != 1 && *edit.condim != 3 && *edit.condim != 4 && *edit.condim != 6)
      fail(where, format("condim is {}: 1, 3, 4 or 6", *edit.condim));
    for (const auto& [what, value] : {std::pair{"margin", edit.margin}, {"gap", edit.gap}}) {
      if (value) check(where, what, *value, 0, "not below 0");
    }
    for (const double f : edit.friction) check(where, "friction", f, 0, "not below 0");
    for (const auto& [what, values, most] : {std::tuple{"friction", &edit.friction, 3},
                                             {"solref", &edit.solref, static_cast<int>(mjNREF)},
                                             {"solimp", &edit.solimp, static_cast<int>(mjNIMP)}}) {
      if (static_cast<int>(values->size()) > most)
        fail(where, format("{} has {} numbers: {} are the most", what, values->size(), most));
      for (const double v : *values)
        if (!std::isfinite(v)) fail(where, format("{} is {}: a number", what, v));
    }
  }

  // ---- sensors

  void add_sensor(const SensorEdit& edit, const std::string& where) {
    const auto known = sensor_types().find(edit.type);
    if (known == sensor_types().end()) {
      std::vector<std::string> types;
      for (const auto& [name, type] : sensor_types()) types.push_back(name);
      const std::string near = config::nearest(edit.type, types);
      std::string list;
      for (const std::string& type : types) list += (list.empty() ? "" : ", ") + type;
      fail(where, format("no sensor type is named `{}`{}. There are {}", edit.type,
                         near.empty() ? "" : format("; is `{}` meant?", near), list));
    }
    auto [type, object] = known->second;
    if (object == mjOBJ_XBODY && has(edit.object, mjOBJ_SITE)) object = mjOBJ_SITE;
    mjsElement* element = named(edit.object, object, where);
    mjsSensor* sensor = mjs_addSensor(spec_);
    if (edit.name.empty()) fail(where, "a sensor needs a name");
    if (mjs_setName(sensor->element, edit.name.c_str()) != 0)
      fail(where, format("the file has a sensor `{}`: give this one another name", edit.name));
    sensor->type = type, sensor->objtype = object;
    mjs_setString(sensor->objname, name_of(element).c_str());
  }

  void add_imu(const ImuEdit& imu) {
    const std::string where = format("imus, `{}`", imu.name);
    std::string site = without_entity(imu.at);
    if (!has(imu.at, mjOBJ_SITE)) {
      if (!has(imu.at, mjOBJ_BODY)) {
        std::vector<mjsElement*> places = all(mjOBJ_SITE);
        for (mjsElement* e : all(mjOBJ_BODY)) places.push_back(e);
        fail(where, format("no site and no link is named `{}`{}", imu.at, what_there_is(site, places, "site or link")));
      }
      mjsSite* made = mjs_addSite(mjs_asBody(named(imu.at, mjOBJ_BODY, where)), nullptr);
      site = imu.name;
      if (mjs_setName(made->element, site.c_str()) != 0)
        fail(where, format("the file has a site `{}`: give the sensors another name", site));
    }
    for (const auto& [type, suffix] : {std::pair{"gyro", "_gyro"},
                                       {"accelerometer", "_accelerometer"},
                                       {"velocimeter", "_velocimeter"},
                                       {"framequat", "_quat"}}) {
      add_sensor({type, site, imu.name + suffix}, where);
    }
  }

  // ---- the start

  void add_keyframe(const InitialState& init) {
    if (init.keyframe.empty()) fail("init.keyframe", "a keyframe needs a name");
    for (const JointPosition& p : init.joints) {
      if (!std::isfinite(p.position)) fail("init.joints", format("the position of `{}` is {}", p.pattern, p.position));
    }
    std::map<mjsElement*, double> wanted;
    for (std::size_t i = 0; i < init.joints.size(); ++i) {
      for (mjsElement* e :
           matching(init.joints[i].pattern, moving_joints(true), "hinge or slide", format("init.joints[{}]", i))) {
        wanted.insert({e, init.joints[i].position});
      }
    }
    mjsBody* const first = init.base ? base("init.base") : nullptr;
    if (first && !free_joint(first)) {
      const std::array<double, 7> pose = seven(*init.base);
      if (mjs_getFrame(first->element)) fail("init.base", "the base lies in a <frame>, which places it: move that");
      std::copy_n(pose.data(), 3, first->pos);
      std::copy_n(pose.data() + 3, 4, first->quat);
      first->alt.type = mjORIENTATION_QUAT;
    }
    std::vector<double> qpos;
    for (mjsElement* e : all(mjOBJ_JOINT)) {
      const mjsJoint* joint = mjs_asJoint(e);
      mjsBody* const body = mjs_getParent(e);
      if (joint->type == mjJNT_FREE) {
        const std::array<double, 7> pose = body == first ? seven(*init.base) : pose_of(body, "init");
        qpos.insert(qpos.end(), pose.begin(), pose.end());
      } else if (joint->type == mjJNT_BALL) {
        qpos.insert(qpos.end(), {1, 0, 0, 0});
      } else {
        const auto at = wanted.find(e);
        qpos.push_back(at != wanted.end() ? at->second : joint->ref * unit_of(e));
      }
    }
    for (mjsElement* e : all(mjOBJ_KEY))
      if (name_of(e) == init.keyframe) mjs_delete(spec_, e);
    mjsKey* key = mjs_addKey(spec_);
    mjs_setName(key->element, init.keyframe.c_str());
    write(key->qpos, qpos);
    write(key->ctrl, controls_for(qpos));
  }

  mjSpec* spec_;
  const ModelEdits& edits_;
  const std::string& entity_;
  mjsBody* world_;
  std::map<const void*, bool> written_;
  std::vector<OldKeyframe> old_keys_;
  std::size_t old_nq_ = 0, old_nv_ = 0, old_nu_ = 0;
  std::vector<bool> kept_actuator_;  ///< of those that the file had
  bool lost_activation_ = false;     ///< one that is taken away had one
  int base_change_ = 0;              ///< 1: it got a free joint, -1: that was taken away
  std::size_t base_qpos_ = 0, base_dof_ = 0;
  std::array<double, 7> base_pose_{};
};

}  // namespace

void apply_edits(mjSpec* spec, const ModelEdits& edits, const std::string& entity, std::vector<std::string>& warnings) {
  Editor(spec, edits, entity).apply();
  if (edits.repair_inertia) repair_inertias(spec, entity, warnings);
}

}  // namespace cohort::sim::mj
