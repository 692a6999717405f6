#include "sim/engine.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace cohort::sim {

FieldSet set_of(std::span<const Field> step_leaves) {
  FieldSet set;
  for (const Field f : step_leaves) {
    const bool known = f >= Field::kQpos && f < Field::kFieldCount;
    COHORT_THROW_UNLESS(
        f == Field::kLinkPos || f == Field::kLinkQuat || is_on_request(f),
        "SceneOptions::step_leaves: a step leaves no {}: link_pos, link_quat, link_com, link_inertia, "
        "link_velocity, link_force, qfrc_actuator, qfrc_constraint, link_twist and geom_force are what it can leave",
        known ? field_name(f) : format("field {}", static_cast<int>(f)));
    set.set(static_cast<std::size_t>(f));
  }
  return set;
}

const char* parameter_name(Parameter parameter) {
  constexpr const char* kNames[] = {
      "link_mass",   "geom_friction",        "dof_armature",      "dof_damping", "actuator_gain",    "actuator_bias",
      "link_com",    "link_inertia",         "link_inertia_quat", "gravity",     "dof_frictionloss", "joint_stiffness",
      "joint_range", "actuator_force_range", "geom_pos",          "geom_quat",   "geom_size"};
  static_assert(std::size(kNames) == kParameterCount);
  return kNames[static_cast<int>(parameter)];
}

void check_parameter(Parameter parameter, std::int64_t env, std::int64_t item, float value) {
  constexpr Parameter kSigned[] = {Parameter::kActuatorGain,
                                   Parameter::kActuatorBias,
                                   Parameter::kLinkCom,
                                   Parameter::kGravity,
                                   Parameter::kLinkInertiaQuat,
                                   Parameter::kJointRange,
                                   Parameter::kActuatorForceRange,
                                   Parameter::kGeomPos,
                                   Parameter::kGeomQuat};
  const bool gain = std::find(std::begin(kSigned), std::end(kSigned), parameter) != std::end(kSigned);
  COHORT_THROW_UNLESS(std::isfinite(value) && (gain || value >= 0),
                      "environment {} has impossible parameters: {}[{}] = {}, which is {}", env,
                      parameter_name(parameter), item, value, std::isfinite(value) ? "below zero" : "no number");
  COHORT_THROW_UNLESS(parameter != Parameter::kLinkCom || item >= 3 || value == 0,
                      "environment {} has impossible parameters: {}[{}] = {}: the world has no centre of mass", env,
                      parameter_name(parameter), item, value);
}

void check_masses(const ModelInfo& info, std::int64_t env, const std::function<double(int)>& mass) {
  const std::size_t n = info.links.size();
  std::vector<int> bearer(n, -1);  // the link that moves and bears this one
  std::vector<double> now(n, 0), before(n, 0);
  for (std::size_t k = 1; k < n; ++k) {
    const LinkInfo& link = info.links[k];
    const bool moves = link.dof_count > 0;
    bearer[k] = moves ? static_cast<int>(k) : bearer[static_cast<std::size_t>(link.parent)];
    if (bearer[k] < 0) continue;
    const auto to = static_cast<std::size_t>(bearer[k]);
    now[to] += mass(static_cast<int>(k)), before[to] += link.mass;
  }
  for (std::size_t k = 1; k < n; ++k) {
    COHORT_THROW_UNLESS(now[k] > 0 || before[k] <= 0,
                        "environment {} has impossible parameters: link {} (`{}`) moves, and neither it nor what is "
                        "fixed to it has a mass above zero",
                        env, k, info.links[k].name);
  }
}

void check_geom(const ModelInfo& info, Parameter parameter, std::int64_t env, int geom, const float* own) {
  const GeomInfo& g = info.geoms[static_cast<std::size_t>(geom)];
  if (parameter == Parameter::kGeomQuat) {
    const float square = own[0] * own[0] + own[1] * own[1] + own[2] * own[2] + own[3] * own[3];
    COHORT_THROW_UNLESS(std::abs(square - 1) < 1e-3f,
                        "environment {} has impossible parameters: geom_quat of geom {} (`{}`) has the squared length "
                        "{}, and 1 is needed",
                        env, geom, g.name, square);
    return;
  }
  const int count = size_count(g.type);
  COHORT_THROW_UNLESS(count > 0,
                      "environment {} has impossible parameters: geom_size of geom {} (`{}`) is another than the "
                      "model's, and its shape is a {}: spheres, capsules, ellipsoids, cylinders and boxes have a size "
                      "of their own",
                      env, geom, g.name, g.type);
  for (int i = 0; i < count; ++i) {
    COHORT_THROW_UNLESS(own[i] > 0,
                        "environment {} has impossible parameters: geom_size[{}] of geom {} (`{}`), a {}, is {}, and "
                        "more than zero is needed",
                        env, i, geom, g.name, g.type, own[i]);
  }
}

ParameterSet set_of(std::span<const Parameter> parameters) {
  ParameterSet set;
  for (const Parameter p : parameters) {
    const int number = static_cast<int>(p);
    COHORT_THROW_UNLESS(number >= 0 && number < kParameterCount, "there is no parameter {}: they are 0 to {}", number,
                        kParameterCount - 1);
    set.set(static_cast<std::size_t>(number));
  }
  return set;
}

double MemoryPlan::bytes_per_environment() const {
  double sum = 0;
  for (const Part& part : parts) sum += part.bytes;
  return sum;
}

std::string MemoryPlan::parameters_of_it() const {
  for (const Part& part : parts) {
    if (part.name == "parameters") return format(", parameters {} of it", format_bytes(part.bytes));
  }
  return "";
}

double MemoryPlan::total(int n_envs) const {
  return fixed_bytes + bytes_per_environment() * std::ceil(static_cast<double>(n_envs) / block) * block;
}

int MemoryPlan::most_environments() const {
  // The last block ends before the greatest int.
  const double most = std::floor(double{std::numeric_limits<int>::max()} / block);
  const double blocks = std::floor((available_bytes - fixed_bytes) / bytes_per_environment() / block);
  return static_cast<int>(std::clamp(blocks, 0.0, most)) * block;
}

void need_memory(const MemoryPlan& plan, int n_envs, int threads) {
  if (n_envs <= plan.most_environments()) return;
  const double need = plan.total(n_envs);
  // What the threads take, no smaller number of environments makes less.
  const bool threads_are_many = plan.thread_bytes * threads > 0.5 * plan.available_bytes;
  throw Error(
      format("{} environments need {} ({} each{}, {} for the model and {} threads); this process can get {}, enough "
             "for {}{}",
             n_envs, format_bytes(need), format_bytes(plan.bytes_per_environment()), plan.parameters_of_it(),
             format_bytes(plan.fixed_bytes), threads, format_bytes(plan.available_bytes), plan.most_environments(),
             threads_are_many ? ". A thread has room for all contacts that the model's pairs of geoms can make: "
                                "SceneOptions::contact_capacity (--contact-capacity) sets how many an environment has"
                              : ""));
}

void need_memory(const LaterMemory& later, int n_envs, double available) {
  const double need = later.fixed + (later.each + later.copies) * n_envs;
  if (need <= available) return;
  throw Error(
      format("{} of {} environments: {} more memory is needed ({} each{}{}); this process can get {}. Take fewer "
             "environments; SceneOptions::parameters counts such memory when a scene is built",
             later.what, n_envs, format_bytes(need), format_bytes(later.each),
             later.fixed > 0 ? format(", {} for the threads", format_bytes(later.fixed)) : "",
             later.copies > 0 ? format(", {} each while they are written", format_bytes(later.copies)) : "",
             format_bytes(available)));
}

EngineKind parse_engine(const std::string& text) {
  if (text == "batched") return EngineKind::kBatched;
  if (text == "mujoco") return EngineKind::kMujoco;
  throw Error(format("engine `{}` is not known: batched or mujoco", text));
}

const char* to_string(EngineKind kind) {
  return kind == EngineKind::kBatched ? "batched" : "mujoco";
}

LaneWidth parse_lane_width(const std::string& text) {
  if (text == "auto") return LaneWidth::kAuto;
  if (text == "scalar") return LaneWidth::kScalar;
  if (text == "avx2") return LaneWidth::kAvx2;
  if (text == "avx512") return LaneWidth::kAvx512;
  throw Error(format("lane width `{}` is not known: auto, scalar, avx2 or avx512", text));
}

const char* to_string(LaneWidth width) {
  constexpr const char* kNames[] = {"auto", "scalar", "avx2", "avx512"};
  return kNames[static_cast<int>(width)];
}

}  // namespace cohort::sim
