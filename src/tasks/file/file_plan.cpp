#include "tasks/file/file_plan.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <set>

#include "core/error.h"
#include "core/files.h"
#include "core/fnv.h"
#include "core/format.h"
#include "core/json_section.h"
#include "sim/kinematics.h"
#include "sim/model_file.h"
#include "sim/scene.h"
#include "tasks/file/ik_action.h"
#include "tasks/file/model_edits.h"
#include "tasks/file/patterns.h"
#include "tasks/file/term_table.h"

namespace cohort::tasks {

namespace fs = std::filesystem;
using config::Json;
using config::JsonSection;
using terms::Expr;
using terms::Graph;
using terms::Op;

namespace {

constexpr int kNewestFormat = 1;

/// The scene of a task that a run keeps: MuJoCo's compiled model, and what it has of each entity.
sim::CompiledScene kept_scene(const Json& kept, const fs::path& folder) {
  sim::CompiledScene scene;
  const std::string model = read_file((folder / kept.value("model", "")).string());
  scene.mjb.assign(model.begin(), model.end());
  scene.entity_links = kept.at("entity_links").get<std::vector<std::vector<int>>>();
  scene.entity_geoms = kept.at("entity_geoms").get<std::vector<std::vector<int>>>();
  return scene;
}

class PlanReader {
 public:
  PlanReader(std::string file, Json content, bool play, std::int64_t horizon)
      : file_(std::move(file)), content_(std::move(content)), play_(play), horizon_(horizon) {
    plan_.file = file_;
    folder_ = fs::path(file_).parent_path();
  }

  FilePlan read() {
    {
      JsonSection root(content_, "", wrong_);
      int format_version = kNewestFormat;
      root.take("cohort", format_version);
      if (format_version > kNewestFormat)
        throw Error(
            format("{}: the file is of version {} of task files, and this Cohort knows {}: a newer one reads it", file_,
                   format_version, kNewestFormat));
      plan_.spec.name = fs::path(file_).stem().string();
      kept_ = root.get("kept");
      root.take("summary", plan_.spec.summary);
      root.take("instruction", plan_.spec.instruction);
      if (!root.has("scene")) wrong("scene", "is missing: the robot and what is around it");
      root.in("simulation", [&](JsonSection& s) { read_simulation(s); });
      root.in("scene", [&](JsonSection& s) { read_scene(s); });
      stop_if_wrong();
      compile_model();
      Graph control;
      Quantities control_names(plan_.model, control);
      root.in("actions", [&](JsonSection& s) { read_actions(s, control_names); });
      Graph judge;
      Quantities names(plan_.model, judge);
      names.set_action_width(static_cast<int>(plan_.spec.action.names.size()));
      root.in("curriculum", [&](JsonSection& s) { read_stages(s); });
      root.in("commands", [&](JsonSection& s) { read_commands(s, names); });
      names.judges(true);
      root.in("define", [&](JsonSection& d) { read_definitions(d, names); });
      root.in("terminations", [&](JsonSection& s) { read_terminations(s, names); });
      read_success(root, names);
      root.in("rewards", [&](JsonSection& s) { read_rewards(s, names); });
      root.in("metrics", [&](JsonSection& s) { read_metrics(s, names); });
      names.judges(false);
      root.in("define", [&](JsonSection& d) { read_definitions(d, names); });
      root.in("observations", [&](JsonSection& s) { read_observations(s, names); });
      root.in("events", [&](JsonSection& s) { read_events(s, names); });
      root.in("curriculum", [&](JsonSection& s) { read_curriculum(s, names); });
      root.in("ppo", [&](JsonSection& s) { read_ppo(s); });
      stop_if_wrong();
      // No joint's target is its default and a share of an action then.
      if (moves_frames_) plan_.contract.action_scale.clear();
      plan_.control = control.compile(), plan_.control_memories = control.memories();
      plan_.judge = judge.compile(), plan_.judge_memories = judge.memories();
      plan_.control_arrays = control_names.arrays(), plan_.judge_arrays = names.arrays();
      plan_.leaves = names.leaves();
      for (const sim::Field field : control_names.leaves())
        if (std::ranges::find(plan_.leaves, field) == plan_.leaves.end()) plan_.leaves.push_back(field);
      // What terms read is of the present, as positions and velocities are.
      plan_.simulation.leave_present = !plan_.leaves.empty();
    }
    stop_if_wrong();  // keys that nobody asked for
    return std::move(plan_);
  }

 private:
  void wrong(const std::string& path, const std::string& why) { wrong_.push_back(path + " " + why); }

  void stop_if_wrong() {
    if (wrong_.empty()) return;
    std::string text = format("{}: {}", file_, wrong_.size() == 1 ? "" : format("{} faults", wrong_.size()));
    for (const std::string& fault : wrong_) {
      const std::string bare = fault.substr(fault.starts_with('.') ? 1 : 0);
      text += wrong_.size() == 1 ? bare : "\n  " + bare;
    }
    throw Error(text);
  }
  /// Keeps what body() complains about, for the end.
  void attempt(const std::string& path, const std::function<void()>& body) {
    try {
      body();
    } catch (const Error& e) {
      const std::string what = e.what();
      const std::string bare = path.substr(path.starts_with('.') ? 1 : 0);
      wrong_.push_back(what.starts_with(bare) ? what : bare + ": " + what);
    }
  }
  /// Calls body(name, value) for every entry that is not null; keeps what it complains about.
  void each(JsonSection& section, const std::function<void(const std::string&, const Json&)>& body) {
    section.each([&](const std::string& name, const Json& value) {
      attempt(section.path() + "." + name, [&] { body(name, value); });
    });
  }

  fs::path path_of(const std::string& text) const {
    const fs::path path(text);
    return path.is_absolute() ? path : folder_ / path;
  }

  /// [low, high], or a number for both.
  static Range range_of(const Json& value, const std::string& what) {
    if (value.is_number()) return {value.get<double>(), value.get<double>()};
    COHORT_THROW_UNLESS(value.is_array() && value.size() == 2 && value[0].is_number() && value[1].is_number(),
                        "{} is {}: two numbers, [low, high], are needed", what, value.dump());
    const Range range{value[0].get<double>(), value[1].get<double>()};
    COHORT_THROW_UNLESS(range.low <= range.high, "{} is {}: low is above high", what, value.dump());
    return range;
  }
  static Range take_range(JsonSection& s, const std::string& key, Range standard = {}) {
    return s.has(key) ? range_of(s.get(key), key) : standard;
  }

  void read_simulation(JsonSection& s) {
    double timestep = 0, control_period = 0, episode = 20;
    int decimation = 0;
    s.take("timestep", timestep);
    s.take("decimation", decimation);
    s.take("control_period", control_period);
    s.take("episode_length_s", episode);
    s.take("soft_joint_pos_limit_factor", plan_.model.soft_limit_factor);
    timestep_ = timestep, decimation_ = decimation, control_period_ = control_period, episode_ = episode;
    if (timestep > 0) plan_.simulation.timestep = timestep;
    if (timestep < 0 || decimation < 0 || control_period < 0 || !(episode > 0))
      wrong("simulation", "has a time that is not above zero");
    if (decimation > 0 && control_period > 0)
      wrong("simulation", "has both decimation and control_period: one of them says how long a control step is");
    const auto text = [&](const char* key, std::optional<std::string>& target) {
      std::string value;
      s.take(key, value);
      if (!value.empty()) target = value;
    };
    text("integrator", plan_.simulation.integrator);
    text("solver", plan_.simulation.solver);
    text("cone", plan_.simulation.cone);
    if (int iterations = 0; s.has("iterations"))
      s.take("iterations", iterations), plan_.simulation.iterations = iterations;
    if (double tolerance = 0; s.has("tolerance"))
      s.take("tolerance", tolerance), plan_.simulation.tolerance = tolerance;
    if (std::vector<double> g; s.has("gravity")) {
      s.take("gravity", g);
      if (g.size() == 3)
        plan_.simulation.gravity = {g[0], g[1], g[2]};
      else
        wrong("simulation.gravity", "needs three numbers, m/s^2");
    }
  }

  // ---- the scene

  static sim::Pose pose_of(JsonSection& s) {
    sim::Pose pose;
    std::vector<double> pos, quat, rpy;
    s.take("pos", pos), s.take("quat", quat), s.take("rpy", rpy);
    COHORT_THROW_UNLESS(pos.empty() || pos.size() == 3, "pos needs three numbers, m");
    COHORT_THROW_UNLESS(quat.empty() || quat.size() == 4, "quat needs four numbers, w x y z");
    COHORT_THROW_UNLESS(rpy.empty() || rpy.size() == 3, "rpy needs three numbers, rad");
    COHORT_THROW_UNLESS(quat.empty() || rpy.empty(), "quat and rpy say the same: one of them");
    if (!pos.empty()) std::copy(pos.begin(), pos.end(), pose.pos.begin());
    if (!quat.empty()) std::copy(quat.begin(), quat.end(), pose.quat.begin());
    if (!rpy.empty()) pose.quat = quat_of_rpy(rpy[0], rpy[1], rpy[2]);
    return pose;
  }

  sim::ShapeOptions shape_of(JsonSection& s) {
    sim::ShapeOptions shape;
    shape.pose = pose_of(s);
    s.take("fixed", shape.fixed);
    s.take("density", shape.density);
    if (double mass = 0; s.has("mass")) s.take("mass", mass), shape.mass = mass;
    if (s.has("friction")) shape.friction = friction_of(s);
    if (std::vector<double> rgba; s.has("rgba")) {
      s.take("rgba", rgba);
      COHORT_THROW_UNLESS(rgba.size() == 4, "rgba needs four numbers from 0 to 1");
      for (std::size_t i = 0; i < 4; ++i) shape.rgba[i] = static_cast<float>(rgba[i]);
    }
    return shape;
  }
  static std::array<double, 3> friction_of(JsonSection& s) {
    std::array<double, 3> friction{1, 0.005, 0.0001};
    const Json& value = s.get("friction");
    if (value.is_number()) {
      friction[0] = value.get<double>();
    } else {
      std::vector<double> all;
      s.take("friction", all);
      COHORT_THROW_UNLESS(all.size() == 3, "friction needs one number, or three: sliding, torsional, rolling");
      std::copy(all.begin(), all.end(), friction.begin());
    }
    return friction;
  }
  static std::vector<double> sizes_of(JsonSection& s, const std::string& kind, std::size_t n, const char* means) {
    std::vector<double> size;
    const Json& value = s.get(kind);
    if (value.is_number())
      size.push_back(value.get<double>());
    else
      s.take(kind, size);
    COHORT_THROW_UNLESS(size.size() == n, "{} needs {} number{}: {}", kind, n, n == 1 ? "" : "s", means);
    return size;
  }

  sim::Morph morph_of(JsonSection& s, const std::string& kind) {
    if (kind == "mjcf" || kind == "urdf") {
      std::string file;
      s.take(kind, file);
      const fs::path path = path_of(file);
      const std::string trouble = kept_.is_object() ? "" : sim::why_unreadable(path);
      COHORT_THROW_UNLESS(trouble.empty(), "{}; paths are relative to the task's file", trouble);
      sim::ModelEdits edits = read_model_edits(s);
      if (kind == "urdf") {
        bool fixed = false;
        s.take("fixed", fixed);
        return sim::Urdf{.file = path.string(), .pose = pose_of(s), .fixed = fixed, .edits = std::move(edits)};
      }
      if (s.has("fixed")) {
        bool fixed = false;
        s.take("fixed", fixed);
        edits.free_base = !fixed;
      }
      sim::Mjcf mjcf{.file = path.string(), .edits = std::move(edits)};
      if (s.has("pos") || s.has("quat") || s.has("rpy")) mjcf.pose = pose_of(s);
      return mjcf;
    }
    if (kind == "terrain") return terrain_of(s);
    if (kind == "plane") {
      sim::Plane plane;
      plane.pose = pose_of(s);
      if (s.has("friction")) plane.friction = friction_of(s);
      s.ignore(kind);
      return plane;
    }
    const sim::ShapeOptions shape = shape_of(s);
    if (kind == "box") {
      const std::vector<double> size = sizes_of(s, kind, 3, "edge lengths, m");
      return sim::Box{.size = {size[0], size[1], size[2]}, .shape = shape};
    }
    if (kind == "sphere") return sim::Sphere{.radius = sizes_of(s, kind, 1, "radius, m")[0], .shape = shape};
    if (kind == "ellipsoid") {
      const std::vector<double> size = sizes_of(s, kind, 3, "radii, m");
      return sim::Ellipsoid{.radii = {size[0], size[1], size[2]}, .shape = shape};
    }
    if (kind == "mesh") {
      std::string file;
      s.take(kind, file);
      double scale = 1;
      s.take("scale", scale);
      return sim::Mesh{.file = path_of(file).string(), .scale = {scale, scale, scale}, .shape = shape};
    }
    const std::vector<double> size = sizes_of(s, kind, 2, "radius and length, m");
    if (kind == "cylinder") return sim::Cylinder{.radius = size[0], .height = size[1], .shape = shape};
    return sim::Capsule{.radius = size[0], .length = size[1], .shape = shape};
  }

  /// A plane where all of it is level.
  sim::Morph terrain_of(JsonSection& s) {
    COHORT_THROW_UNLESS(plan_.terrain == nullptr, "a scene has one terrain, and this is the second");
    const std::size_t faults = wrong_.size();
    const TerrainSettings settings = read_terrain(s.get("terrain"), s.path() + ".terrain", wrong_);
    const bool has_friction = s.has("friction");
    const std::array<double, 3> friction = has_friction ? friction_of(s) : sim::Plane{}.friction;
    if (wrong_.size() > faults) return sim::Plane{};
    plan_.terrain = std::make_shared<const GeneratedTerrain>(generate_terrain(settings));
    if (plan_.terrain->is_flat()) return sim::Plane{.friction = friction};
    sim::Terrain terrain = plan_.terrain->entity();
    terrain.friction = friction;
    return terrain;
  }

  void read_scene(JsonSection& scene) {
    static const std::vector<std::string> kKinds{"mjcf",    "urdf",     "plane", "box",       "sphere",
                                                 "capsule", "cylinder", "mesh",  "ellipsoid", "terrain"};
    each(scene, [&](const std::string& name, const Json& value) {
      if (name == "cameras") return read_cameras(value);
      if (value.is_string() && value == "plane") {
        plan_.entities.push_back({name, sim::Plane{}});
        return;
      }
      JsonSection s(value, scene.path() + "." + name, wrong_);
      if (!value.is_object()) return;
      std::string kind;
      for (const std::string& known : kKinds) {
        if (!s.has(known)) continue;
        COHORT_THROW_UNLESS(kind.empty(), "is both {} and {}: an entity is one thing", kind, known);
        kind = known;
      }
      COHORT_THROW_UNLESS(!kind.empty(), "says not what it is: one of {}", join(kKinds, ", "));
      if ((kind == "mjcf" || kind == "urdf") && (robot_.empty() || name == "robot")) {
        robot_ = name;
        plan_.keyframe.clear();
        s.take("keyframe", plan_.keyframe);
        joint_pos_ = s.get("joint_pos");
        base_pos_.clear(), base_quat_.clear();
        s.take("base_pos", base_pos_), s.take("base_quat", base_quat_);
        COHORT_THROW_UNLESS(
            (base_pos_.empty() || base_pos_.size() == 3) && (base_quat_.empty() || base_quat_.size() == 4),
            "base_pos needs three numbers, m, and base_quat four, w x y z");
      }
      plan_.entities.push_back({name, morph_of(s, kind)});
    });
    if (wrong_.empty() && robot_.empty()) wrong("scene", "has no robot: an entity with `mjcf: FILE` or `urdf: FILE`");
  }

  void read_cameras(const Json& all) {
    if (all.is_array()) {
      COHORT_THROW_UNLESS(config::read_value(all, plan_.spec.cameras), "is a list of the model's cameras");
      return;
    }
    COHORT_THROW_UNLESS(all.is_object(), "is an object from names to cameras, or a list of the model's");
    for (const auto& [name, value] : all.items()) {
      JsonSection s(value, ".scene.cameras." + name, wrong_);
      sim::CameraOptions camera{.name = name};
      std::vector<double> pos, lookat;
      s.take("pos", pos), s.take("lookat", lookat), s.take("fov", camera.fov);
      COHORT_THROW_UNLESS((pos.empty() || pos.size() == 3) && (lookat.empty() || lookat.size() == 3),
                          "{}: pos and lookat need three numbers, m", name);
      if (!pos.empty()) std::copy(pos.begin(), pos.end(), camera.pos.begin());
      if (!lookat.empty()) std::copy(lookat.begin(), lookat.end(), camera.lookat.begin());
      plan_.cameras.push_back(camera);
      plan_.spec.cameras.push_back(name);
    }
  }

  /// Compiles the model once, for its names and where episodes begin.
  void compile_model() {
    if (plan_.spec.cameras.empty()) {
      plan_.cameras.push_back({.name = "view", .pos = {2.5, -2.5, 1.6}, .lookat = {0, 0, 0.4}});
      plan_.spec.cameras.push_back("view");
    }
    sim::SceneOptions options = plan_.simulation;
    options.engine = sim::EngineKind::kMujoco;
    auto compiled = std::make_shared<sim::CompiledScene>();
    if (kept_.is_object())
      *compiled = kept_scene(kept_, folder_);
    else
      *compiled = sim::compile_scene(plan_.entities, plan_.cameras, options);
    plan_.compiled = compiled;
    sim::Scene scene(options);
    scene.use_compiled(*compiled);
    for (const sim::EntityDeclaration& entity : plan_.entities) scene.add_entity(entity.morph, entity.name);
    for (const sim::CameraOptions& camera : plan_.cameras) scene.add_camera(camera);
    scene.build(1);
    TaskModel& model = plan_.model;
    model.info = scene.info();
    for (const sim::EntityDeclaration& declared : plan_.entities) {
      const sim::Entity entity = scene.entity(declared.name);
      TaskModel::Entity e{.name = declared.name};
      e.links.assign(entity.links().begin(), entity.links().end());
      e.geoms.assign(entity.geoms().begin(), entity.geoms().end());
      if (!e.links.empty()) e.base = e.links.front();
      for (std::size_t j = 0; j < model.info.joints.size(); ++j) {
        const sim::JointInfo& joint = model.info.joints[j];
        if (std::ranges::find(e.links, joint.link) == e.links.end()) continue;
        if (joint.type == sim::JointType::kFree && e.free_qpos < 0)
          e.base = joint.link, e.free_qpos = joint.qpos, e.free_dof = joint.dof;
        if (joint.type == sim::JointType::kHinge || joint.type == sim::JointType::kSlide)
          e.joints.push_back(static_cast<int>(j));
      }
      if (declared.name == robot_) model.robot = static_cast<int>(model.entities.size());
      model.entities.push_back(std::move(e));
    }
    model.qpos = model.info.qpos0;
    model.ctrl.assign(static_cast<std::size_t>(model.info.nu), 0.0);
    if (!plan_.keyframe.empty()) {
      const auto named = [&](const std::string& name) {
        return std::ranges::any_of(model.info.keyframes, [&](const sim::KeyframeInfo& k) { return k.name == name; });
      };
      if (!named(plan_.keyframe) && named(robot_ + "/" + plan_.keyframe))
        plan_.keyframe = robot_ + "/" + plan_.keyframe;
      const sim::KeyframeInfo& key =
          model.info.keyframes[static_cast<std::size_t>(model.info.keyframe(plan_.keyframe))];
      model.qpos = key.qpos;
      if (!key.ctrl.empty()) model.ctrl = key.ctrl;
    }
    if (!base_pos_.empty() || !base_quat_.empty()) {
      const int free = model.of_robot().free_qpos;
      if (free < 0) {
        wrong("scene." + robot_, "has base_pos or base_quat, and its base is fixed: `pos` puts it elsewhere");
      } else {
        std::ranges::copy(base_pos_, model.qpos.begin() + free);
        std::ranges::copy(base_quat_, model.qpos.begin() + free + 3);
      }
    }
    if (!joint_pos_.is_null())
      attempt("scene." + robot_ + ".joint_pos", [&] {
        COHORT_THROW_UNLESS(joint_pos_.is_object(), "is an object from patterns of joints to positions");
        const std::vector<int>& joints = model.of_robot().joints;
        const std::vector<std::string> names = model.joint_names(joints);
        std::set<int> has;
        for (const auto& [pattern, position] : joint_pos_.items()) {
          COHORT_THROW_UNLESS(position.is_number(), "'{}' has no number", pattern);
          const std::string patterns[] = {pattern};
          for (const int i : match_names(names, patterns, "joint"))
            if (has.insert(i).second)
              model.qpos[static_cast<std::size_t>(
                  model.info.joints[static_cast<std::size_t>(joints[static_cast<std::size_t>(i)])].qpos)] =
                  position.get<double>();
        }
      });
    // Position servos hold where the joints begin.
    for (const sim::ActuatorInfo& actuator : model.info.actuators) {
      if (actuator.kind != sim::ActuatorInfo::Kind::kPosition || actuator.dof < 0) continue;
      for (const sim::JointInfo& joint : model.info.joints)
        if (joint.dof == actuator.dof)
          model.ctrl[static_cast<std::size_t>(actuator.ctrl)] = model.qpos[static_cast<std::size_t>(joint.qpos)];
    }
    const double timestep = model.info.timestep;
    const int decimation = decimation_ > 0 ? decimation_
                           : control_period_ > 0
                               ? std::max(1, static_cast<int>(std::lround(control_period_ / timestep)))
                               : std::max(1, static_cast<int>(std::lround(0.02 / timestep)));
    if (control_period_ > 0 && std::abs(decimation * timestep - control_period_) > 1e-9)
      wrong("simulation.control_period",
            format("= {:g} s is no multiple of the timestep, {:g} s", control_period_, timestep));
    model.control_period = plan_.spec.control_period = decimation * timestep;
    const std::int64_t own = std::max<std::int64_t>(1, std::llround(episode_ / plan_.spec.control_period));
    model.horizon = plan_.spec.horizon = horizon_ > 0 ? horizon_ : own;
  }

  /// Of an event or a curriculum: `type`, else its name.
  static std::string type_of(const std::string& name, const Json& value) {
    return value.is_object() && value.contains("type") && value["type"].is_string() ? value["type"].get<std::string>()
                                                                                    : name;
  }

  // ---- actions

  std::vector<std::string> texts_of(JsonSection& s, const std::string& key, std::vector<std::string> standard) {
    if (!s.has(key)) return standard;
    if (s.get(key).is_string()) return {s.get(key).get<std::string>()};
    std::vector<std::string> texts;
    s.take(key, texts);
    return texts;
  }

  void read_actions(JsonSection& actions, Quantities& names) {
    ActionSpec& spec = plan_.spec.action;
    each(actions, [&](const std::string& name, const Json& value) {
      JsonSection s(value, actions.path() + "." + name, wrong_);
      std::string type = name;
      static const std::vector<std::string> kTypes{"joint_position", "joint_velocity", "joint_effort",
                                                   "joint_position_delta", "differential_ik"};
      if (type == "joint_pos") type = "joint_position";
      s.take("type", type);
      if (std::ranges::find(kTypes, type) == kTypes.end()) {
        const std::string near = config::nearest(type, kTypes);
        throw Error(format("the type '{}' is none of {}{}", type, join(kTypes, ", "),
                           near.empty() ? "" : format(", did you mean '{}'?", near)));
      }
      if (type == "differential_ik") return read_ik_action(name, s, names);
      const std::vector<int> joints = names.joints(texts_of(s, "joints", {}));
      const std::vector<std::string> joint_names = plan_.model.joint_names(joints);
      std::vector<int> ctrls;
      for (const int j : joints) ctrls.push_back(control_of(j, type));
      const Json one = 1.0;
      const std::vector<double> scale = values_by_name(s.has("scale") ? s.get("scale") : one, joint_names, "joint");
      const bool positions = type == "joint_position";
      std::vector<double> offset(joints.size());
      if (s.has("offset") && s.get("offset") != "default")
        offset = values_by_name(s.get("offset"), joint_names, "joint");
      else if (positions)
        for (std::size_t i = 0; i < joints.size(); ++i)
          offset[i] =
              plan_.model
                  .qpos[static_cast<std::size_t>(plan_.model.info.joints[static_cast<std::size_t>(joints[i])].qpos)];
      plan_.contract.action_scale.insert(plan_.contract.action_scale.end(), scale.begin(), scale.end());
      for (std::size_t i = 0; positions && i < joints.size(); ++i) {
        plan_.contract.joint_names.push_back(joint_names[i]);
        plan_.contract.default_joint_pos.push_back(offset[i]);
      }
      const Range clip = take_range(s, "clip", {-1, 1});
      COHORT_THROW_UNLESS(clip.low < clip.high, "clip is [{:g}, {:g}]: low has to be below high", clip.low, clip.high);
      const Range delay = take_range(s, "delay");
      const int first = static_cast<int>(spec.names.size()), n = static_cast<int>(joints.size());
      for (const std::string& joint : joint_names) {
        spec.names.push_back(joint);
        spec.low.push_back(static_cast<float>(clip.low)), spec.high.push_back(static_cast<float>(clip.high));
      }
      const std::string unit = type == "joint_effort"     ? "N m or N"
                               : type == "joint_velocity" ? "rad/s or m/s"
                                                          : "rad or m";
      spec.unit += format("{}{} by scale: {}", spec.unit.empty() ? "" : "; ", type, unit);
      Graph& g = names.graph();
      std::vector<int> columns;
      for (int i = 0; i < n; ++i) columns.push_back(first + i);
      Expr action = g.load(names.array({ArrayPlace::kAction}), columns);
      action = delayed_by_event(names, delayed_by(names, action, delay, "actions." + name));
      const auto numbers = [&](const std::vector<double>& values) {
        return g.constant(std::vector<float>(values.begin(), values.end()));
      };
      Expr target = g.add(g.multiply(action, numbers(scale)), numbers(offset));
      if (positions) {
        // What events draw: other joints' zeros, and where the servos' encoders have theirs.
        if (has_event("joint_default_pos") && !(s.has("offset") && s.get("offset") != "default"))
          target = g.add(target, names.drawn(TaskParameter::kJointDefault, joints));
        if (has_event("encoder_bias")) target = g.subtract(target, names.drawn(TaskParameter::kEncoderBias, joints));
      }
      if (type == "joint_position_delta") {
        std::vector<int> qpos;
        for (const int j : joints) qpos.push_back(plan_.model.info.joints[static_cast<std::size_t>(j)].qpos);
        target = g.add(target, g.load(names.array({ArrayPlace::kField, static_cast<int>(sim::Field::kQpos)}), qpos));
      }
      give_targets(names, joints, ctrls, target);
    });
    if (wrong_.empty() && spec.names.empty()) wrong("actions", "are missing: nothing moves the robot");
  }

  /// Writes targets, a row of as many numbers as joints, to their controls.
  void give_targets(Quantities& names, const std::vector<int>& joints, const std::vector<int>& ctrls,
                    const Expr& targets) {
    Graph& g = names.graph();
    for (std::size_t i = 0; i < ctrls.size(); ++i) {
      COHORT_THROW_UNLESS(controlled_.insert(ctrls[i]).second, "the joint '{}' has an action already",
                          plan_.model.info.joints[static_cast<std::size_t>(joints[i])].name);
      g.store(names.array({ArrayPlace::kControl}), ctrls[i], g.columns(targets, {static_cast<int>(i)}));
    }
  }

  /// A frame's pose instead of joints' positions (tasks/file/ik_action.h).
  void read_ik_action(const std::string& name, JsonSection& s, Quantities& names) {
    ActionSpec& spec = plan_.spec.action;
    const sim::ModelInfo& info = plan_.model.info;
    std::string site, link, command = "pose";
    s.take("site", site), s.take("link", link);
    COHORT_THROW_UNLESS(site.empty() != link.empty(), "needs `site` or `link`: the frame that it moves");
    const IkFrame frame = ik_frame(info, site.empty() ? link : site, link.empty());
    IkSettings ik;
    s.take_choice("command_type", command, {"pose", "position"});
    ik.pose = command == "pose";
    s.take("use_relative_mode", ik.relative);
    s.take("damping", ik.damping), s.take("max_dq", ik.max_change);
    COHORT_THROW_UNLESS(ik.damping > 0 && ik.max_change > 0, "damping and max_dq are above zero");
    std::vector<int> joints, ctrls;
    if (s.has("joints")) {
      joints = names.joints(texts_of(s, "joints", {}));
    } else {
      // All that move it.
      for (const int j : plan_.model.of_robot().joints)
        for (int l = frame.link; l > 0; l = info.links[static_cast<std::size_t>(l)].parent)
          if (info.joints[static_cast<std::size_t>(j)].link == l) joints.push_back(j);
      COHORT_THROW_UNLESS(!joints.empty(), "no joint of the robot moves '{}'", frame.name);
    }
    for (const int j : joints) ctrls.push_back(control_of(j, "joint_position"));
    const auto n = static_cast<std::size_t>(ik.width());
    std::vector<double> scale(n, 1.0), offset(n, 0.0);
    if (s.has("scale")) {
      std::vector<double> given;
      if (s.get("scale").is_number())
        given.assign(n, s.get("scale").get<double>());
      else
        s.take("scale", given);
      COHORT_THROW_UNLESS(given.size() == n, "scale has {} numbers, and the action {}", given.size(), n);
      scale = given;
    }
    if (!ik.relative) {
      // From where the frame is when episodes begin.
      const sim::Kinematics kinematics(plan_.compiled->mjb);
      const sim::Kinematics::Pose pose = kinematics.at(plan_.model.qpos).link_pose(frame.link);
      for (std::size_t i = 0; i < 3; ++i) {
        offset[i] = pose.pos[i];
        for (std::size_t k = 0; k < 3; ++k) offset[i] += pose.rot[3 * i + k] * frame.pos[k];
      }
      if (ik.pose) {
        const std::array<double, 4>&a = pose.quat, &b = frame.quat;
        offset[3] = a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3];
        offset[4] = a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2];
        offset[5] = a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1];
        offset[6] = a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0];
      }
      if (s.has("offset") && s.get("offset") != "default") {
        std::vector<double> given;
        s.take("offset", given);
        COHORT_THROW_UNLESS(given.size() == n, "offset has {} numbers, and the action {}", given.size(), n);
        offset = given;
      }
    }
    const Range clip = take_range(s, "clip", {-1, 1});
    COHORT_THROW_UNLESS(clip.low < clip.high, "clip is [{:g}, {:g}]: low has to be below high", clip.low, clip.high);
    const Range delay = take_range(s, "delay");
    static constexpr const char* kRelative[] = {"x", "y", "z", "rx", "ry", "rz"};
    static constexpr const char* kAbsolute[] = {"x", "y", "z", "qw", "qx", "qy", "qz"};
    Graph& g = names.graph();
    std::vector<int> columns;
    for (std::size_t i = 0; i < n; ++i) {
      columns.push_back(static_cast<int>(spec.names.size()));
      spec.names.push_back(name + "_" + (ik.relative ? kRelative[i] : kAbsolute[i]));
      spec.low.push_back(static_cast<float>(clip.low)), spec.high.push_back(static_cast<float>(clip.high));
    }
    spec.unit += format("{}differential_ik by scale: m{}", spec.unit.empty() ? "" : "; ",
                        !ik.pose      ? ""
                        : ik.relative ? " and rad"
                                      : " and a quaternion");
    moves_frames_ = true;
    const Expr action = delayed_by_event(
        names, delayed_by(names, g.load(names.array({ArrayPlace::kAction}), columns), delay, "actions." + name));
    const auto numbers = [&](const std::vector<double>& values) {
      return g.constant(std::vector<float>(values.begin(), values.end()));
    };
    const Expr wanted = g.add(g.multiply(action, numbers(scale)), numbers(offset));
    give_targets(names, joints, ctrls, ik_targets(names, frame, joints, ik, wanted));
  }

  /// The control of the joint's actuator, which has to be of a kind that goes with the action.
  int control_of(int joint, const std::string& type) const {
    using Kind = sim::ActuatorInfo::Kind;
    const sim::ModelInfo& info = plan_.model.info;
    const sim::JointInfo& j = info.joints[static_cast<std::size_t>(joint)];
    const Kind wanted = type == "joint_effort"     ? Kind::kMotor
                        : type == "joint_velocity" ? Kind::kVelocity
                                                   : Kind::kPosition;
    const sim::ActuatorInfo* other = nullptr;
    for (const sim::ActuatorInfo& actuator : info.actuators) {
      if (actuator.dof != j.dof || actuator.ctrl_count != 1) continue;
      if (actuator.kind == wanted) return actuator.ctrl;
      other = &actuator;
    }
    const char* kinds[] = {"another", "a motor", "a position", "a velocity"};
    throw Error(
        other != nullptr
            ? format("{} needs {} actuator, and '{}' of the joint '{}' is {} one: change the type, or the model", type,
                     kinds[static_cast<int>(wanted)], other->name, j.name, kinds[static_cast<int>(other->kind)])
            : format("the joint '{}' has no actuator: choose others by `joints: PATTERN`, or give the model one",
                     j.name));
  }

  /// Whether the file's events have one of this type.
  bool has_event(const std::string& type) const {
    if (!content_.contains("events") || !content_["events"].is_object()) return false;
    for (const auto& [name, value] : content_["events"].items())
      if (!value.is_null() && type_of(name, value) == type) return true;
    return false;
  }
  /// By the control steps that the event action_delay draws.
  Expr delayed_by_event(Quantities& names, const Expr& value) const {
    if (!has_event("action_delay")) return value;
    double longest = 0;
    for (const auto& [name, event] : content_["events"].items())
      if (!event.is_null() && type_of(name, event) == "action_delay" && event.contains("delay_range"))
        longest = std::max(longest, range_of(event["delay_range"], "events." + name + ".delay_range").high);
    return terms::delayed(names.graph(), names.step(), value, names.drawn(TaskParameter::kActionDelay, {0}),
                          static_cast<int>(longest));
  }
  /// What encoders make of joints' positions: `joint_pos` and `joint_pos_rel` as a policy sees them.
  Expr measured(Quantities& names, JsonSection& s, const std::string& term, const Expr& e, bool biased) {
    const std::vector<int> joints = names.joints(texts_of(s, "joints", {}));
    Graph& g = names.graph();
    Expr now = e;
    if (biased && has_event("encoder_bias")) now = g.add(now, names.drawn(TaskParameter::kEncoderBias, joints));
    if (term == "joint_pos_rel" && has_event("joint_default_pos"))
      now = g.subtract(now, names.drawn(TaskParameter::kJointDefault, joints));
    return now;
  }

  /// `delay: n` or [least, most] control steps, drawn for each episode.
  Expr delayed_by(Quantities& names, const Expr& value, const Range& delay, const std::string& place) {
    if (delay.high <= 0) return value;
    COHORT_THROW_UNLESS(delay.low >= 0 && delay.high <= 100 && delay.low == std::floor(delay.low) &&
                            delay.high == std::floor(delay.high),
                        "delay is [{:g}, {:g}]: whole control steps from 0 to 100", delay.low, delay.high);
    Graph& g = names.graph();
    const Expr share = g.uniform(place + ".delay", 1);
    const Expr drawn =
        g.unary(Op::kFloor, g.add(g.constant(static_cast<float>(delay.low)),
                                  g.multiply(share, g.constant(static_cast<float>(delay.high - delay.low + 1)))));
    const Expr steps = terms::at_reset(g, names.step(), drawn);
    return terms::delayed(g, names.step(), value, steps, static_cast<int>(delay.high));
  }

  // ---- terms

  /// What formulas see by the name of a term's parameter.
  std::map<std::string, TermParameter> parameters_of(JsonSection& s, const TermEntry& entry, Quantities& names,
                                                     const std::string& place) {
    std::map<std::string, TermParameter> all;
    for (const TermParameterEntry& parameter : entry.parameters) {
      const std::string name = parameter.name, standard = parameter.standard;
      s.ignore(name);
      COHORT_THROW_UNLESS(s.has(name) || !standard.empty(), "the term {} needs `{}`: {}", entry.name, name,
                          parameter.means);
      const Json value = s.has(name) ? s.get(name) : Json::parse(standard);
      TermParameter& given = all[name];
      if (parameter.kind == TermParameterEntry::kNames) {
        if (value.is_string()) {
          given.texts = {value.get<std::string>()};
        } else {
          COHORT_THROW_UNLESS(config::read_value(value, given.texts), "`{}` is {}: a name, or a list of names", name,
                              value.dump());
        }
      } else if (parameter.kind == TermParameterEntry::kJointValues) {
        const auto joints = all.find("joints");
        const std::vector<int> chosen =
            names.joints(joints == all.end() ? std::vector<std::string>() : joints->second.texts);
        const std::vector<double> values = values_by_name(value, plan_.model.joint_names(chosen), "joint");
        given.value = names.graph().constant(std::vector<float>(values.begin(), values.end()));
      } else if (value.is_string()) {
        given.value = names.read(value.get<std::string>(), place + "." + name);
      } else {
        std::vector<double> values;
        if (value.is_number())
          values.push_back(value.get<double>());
        else
          COHORT_THROW_UNLESS(config::read_value(value, values) && !values.empty(),
                              "`{}` is {}: a number, numbers or a formula", name, value.dump());
        given.value = names.graph().constant(std::vector<float>(values.begin(), values.end()));
      }
    }
    return all;
  }

  /// A term's value: by its formula, or by the name of a known term: `term`, or the entry's own name.
  Expr term_of(const std::string& name, const Json& value, JsonSection& s, char kind, Quantities& names,
               const std::string& place, const TermEntry** used = nullptr) {
    names.give({});
    std::string formula;
    if (value.is_string()) return names.read(value.get<std::string>(), place);
    if (s.has("formula")) {
      COHORT_THROW_UNLESS(!s.has("term"), "has both a formula and a term: one of them");
      if (s.get("formula").is_number()) return names.graph().constant(s.get("formula").get<float>());
      s.take("formula", formula);
      return names.read(formula, place + ".formula");
    }
    std::string wanted = name;
    s.take("term", wanted);
    const TermEntry* entry = find_term(wanted, kind);
    if (entry == nullptr) {
      const std::vector<std::string> known = term_names(kind);
      const std::string near = config::nearest(wanted, known);
      throw Error(format("there is no {} '{}'{}: `formula: ...` says what it is; the terms are {}",
                         kind == 'o'   ? "observation"
                         : kind == 'r' ? "reward"
                                       : "termination",
                         wanted, near.empty() ? "" : format(", did you mean '{}'?", near), join(known, ", ")));
    }
    if (used != nullptr) *used = entry;
    names.give(parameters_of(s, *entry, names, place));
    const Expr result = names.read(entry->formula, place);
    names.give({});
    return result;
  }

  static Expr condition(const Expr& e) {
    COHORT_THROW_UNLESS(e.truth, "is a number, not true or false: compare it, such as `x > 0`");
    COHORT_THROW_UNLESS(e.is_number(), "has {} conditions: any(...) or all(...) makes one of them", shape_text(e));
    return e;
  }

  /// Formulas by name, each of which may name those above it. Read twice: rewards are about the step that is over, and
  /// what is observed is about the next one, whose commands may be others.
  void read_definitions(JsonSection& definitions, Quantities& names) {
    each(definitions, [&](const std::string& name, const Json& value) {
      COHORT_THROW_UNLESS(value.is_string() || value.is_number(), "is a formula: `{}: joint_pos[0]`", name);
      names.define(name, value.is_number() ? names.graph().constant(value.get<float>())
                                           : names.read(value.get<std::string>(), "define." + name));
    });
  }

  void read_terminations(JsonSection& terminations, Quantities& names) {
    Graph& g = names.graph();
    Expr over = g.constant(0), cut = g.constant(0);
    each(terminations, [&](const std::string& name, const Json& value) {
      const std::string place = "terminations." + name;
      static const Json kNone = Json::object();
      JsonSection s(value.is_object() ? value : kNone, terminations.path() + "." + name, wrong_);
      bool time_out = name == "time_out";
      s.take("time_out", time_out);
      const Expr ends = condition(term_of(name, value, s, 't', names, place));
      Expr& all = time_out ? cut : over;
      all = g.binary(Op::kOr, all, ends);
    });
    names.define("terminated", over);
    g.store(names.array({ArrayPlace::kTerminated}), 0, over);
    g.store(names.array({ArrayPlace::kTruncated}), 0, cut);
  }

  void read_success(JsonSection& root, Quantities& names) {
    attempt("success", [&] {
      static const Json kNone = Json::object();
      const Json value = root.get("success");
      Graph& g = names.graph();
      Expr success;
      if (value.is_null()) {
        success = names.read("last_step and not terminated", "success");
      } else {
        JsonSection s(value.is_object() ? value : kNone, ".success", wrong_);
        success = condition(term_of("success", value, s, 't', names, "success"));
      }
      names.define("success", success);
      g.store(names.array({ArrayPlace::kSuccess}), 0, success);
    });
  }

  void read_rewards(JsonSection& rewards, Quantities& names) {
    Graph& g = names.graph();
    Expr sum = g.constant(0);
    each(rewards, [&](const std::string& name, const Json& value) {
      const std::string place = "rewards." + name;
      static const Json kNone = Json::object();
      JsonSection s(value.is_object() ? value : kNone, rewards.path() + "." + name, wrong_);
      double weight = 1;
      bool per_second = true;
      if (value.is_number())
        weight = value.get<double>();
      else
        s.take("weight", weight);
      s.take("per_second", per_second);
      names.define("reward", sum);
      const Expr term = term_of(name, value, s, 'r', names, place);
      COHORT_THROW_UNLESS(term.is_number(), "has {} numbers, and a reward is one: sum(...), norm2(...) or mean(...)",
                          shape_text(term));
      rewards_.push_back(name);
      for (auto& [unused, growth] : growths_)
        if (growth.reward == name && growth.total.node >= 0)
          g.keep(growth.total, g.select(g.started(names.step()), g.constant(0), g.add(growth.total, term)));
      if (weight == 0 && !weight_stages_.contains(name)) return;
      const Expr part = weighted(names, name, term, per_second ? plan_.spec.control_period : 1, weight);
      g.store(names.array({ArrayPlace::kTerms}), static_cast<int>(plan_.spec.reward_terms.size()), part);
      plan_.spec.reward_terms.push_back(name);
      sum = g.add(sum, part);
    });
    names.define("reward", sum);
  }

  /// What is shown beside the reward: formulas, of the step that is over.
  void read_metrics(JsonSection& metrics, Quantities& names) {
    Graph& g = names.graph();
    each(metrics, [&](const std::string& name, const Json& value) {
      static const Json kNone = Json::object();
      JsonSection s(value.is_object() ? value : kNone, metrics.path() + "." + name, wrong_);
      std::string reduce = "mean";
      s.take_choice("reduce", reduce, {"mean", "last"});
      const Expr e = term_of(name, value, s, 'r', names, "metrics." + name);
      COHORT_THROW_UNLESS(e.is_number(), "has {} numbers, and a metric is one: sum(...), norm(...) or mean(...)",
                          shape_text(e));
      g.store(names.array({ArrayPlace::kMetrics}), static_cast<int>(plan_.spec.metrics.size()), e);
      plan_.spec.metrics.push_back({name, reduce == "last"});
    });
  }

  void read_observations(JsonSection& observations, Quantities& names) {
    std::vector<std::string> critic;
    each(observations, [&](const std::string& group, const Json& terms) {
      COHORT_THROW_UNLESS(group == "policy" || group == "actor" || group == "critic",
                          "the groups are policy (what acts sees it) and critic");
      COHORT_THROW_UNLESS(terms.is_object(), "is an object from names to terms");
      for (const auto& [name, value] : terms.items()) {
        if (value.is_null()) continue;
        attempt(observations.path() + "." + group + "." + name, [&, n = name, v = value] {
          const bool is_critic = group == "critic";
          const auto taken = [&](const std::string& as) {
            return std::ranges::any_of(plan_.spec.observations, [&](const FieldSpec& f) { return f.name == as; });
          };
          const std::string field = is_critic && taken(n) ? "critic_" + n : n;
          read_observation(field, n, v, "observations." + group + "." + n, is_critic, names);
          if (is_critic) critic.push_back(field);
        });
      }
    });
    if (wrong_.empty() && plan_.spec.observations.size() == critic.size())
      wrong("observations.policy", "is missing: what the policy sees");
    if (!critic.empty()) plan_.ppo.push_back("policy.critic_only=[" + join(critic, ",") + "]");
  }

  void read_observation(const std::string& field, const std::string& name, const Json& value, const std::string& place,
                        bool privileged, Quantities& names) {
    static const Json kNone = Json::object();
    JsonSection s(value.is_object() ? value : kNone, "." + place, wrong_);
    Graph& g = names.graph();
    const TermEntry* entry = nullptr;
    Expr e = g.flat(term_of(name, value, s, 'o', names, place, &entry));
    const std::string term = entry != nullptr ? entry->name : "";
    if (term == "joint_pos" || term == "joint_pos_rel") {
      bool biased = !privileged;
      s.take("biased", biased);
      e = measured(names, s, term, e, biased);
    }
    if (s.has("noise")) {
      const Json& noise = s.get("noise");
      if (noise.is_object()) {
        double deviation = 0;
        s.in("noise", [&](JsonSection& n) { n.take("gaussian", deviation); });
        e = g.add(e, g.multiply(g.normal(place, e.size()), g.constant(static_cast<float>(deviation))));
      } else {
        const Range range =
            noise.is_number() ? Range{-noise.get<double>(), noise.get<double>()} : range_of(noise, "noise");
        e = g.add(
            e, g.add(g.constant(static_cast<float>(range.low)),
                     g.multiply(g.uniform(place, e.size()), g.constant(static_cast<float>(range.high - range.low)))));
      }
    }
    if (s.has("bias")) {
      const Json& bias = s.get("bias");
      const Range range = bias.is_number() ? Range{-bias.get<double>(), bias.get<double>()} : range_of(bias, "bias");
      const Expr drawn = g.add(
          g.constant(static_cast<float>(range.low)),
          g.multiply(g.uniform(place + ".bias", e.size()), g.constant(static_cast<float>(range.high - range.low))));
      e = g.add(e, terms::at_reset(g, names.step(), drawn));
    }
    TaskContract::Term done;
    if (s.has("clip")) {
      const Range clip = take_range(s, "clip");
      done.low = clip.low, done.high = clip.high;
      e = g.binary(Op::kMinimum, g.binary(Op::kMaximum, e, g.constant(static_cast<float>(clip.low))),
                   g.constant(static_cast<float>(clip.high)));
    }
    if (s.has("scale")) {
      std::vector<double> scale;
      if (s.get("scale").is_number())
        scale.push_back(s.get("scale").get<double>());
      else
        s.take("scale", scale);
      COHORT_THROW_UNLESS(scale.size() == 1 || static_cast<int>(scale.size()) == e.size(),
                          "scale has {} numbers, and the observation {}", scale.size(), e.size());
      e = g.multiply(e, g.constant(std::vector<float>(scale.begin(), scale.end())));
      done.scale = scale;
    }
    e = delayed_by(names, e, take_range(s, "delay"), place);
    int history = 1;
    s.take("history", history);
    COHORT_THROW_UNLESS(history >= 1 && history <= 1000, "history is {}: 1 to 1000 control steps", history);
    e = terms::history(g, names.step(), e, history);
    done.history = history > 1 ? history : 0;
    plan_.contract.observations.push_back(std::move(done));
    std::string unit = entry ? entry->unit : "", means = entry ? entry->means : "";
    s.take("unit", unit), s.take("summary", means);
    g.store(names.array({ArrayPlace::kObservation, static_cast<int>(plan_.spec.observations.size())}), 0, e);
    plan_.spec.observations.push_back({field, {e.size()}, unit.empty() ? "1" : unit, means, privileged});
  }

  // ---- commands

  Expr drawn(Graph& g, const std::string& stream, const Range& range) {
    return g.add(g.constant(static_cast<float>(range.low)),
                 g.multiply(g.uniform(stream, 1), g.constant(static_cast<float>(range.high - range.low))));
  }
  /// True where the time until it is up; the time is drawn anew then, and at the reset.
  Expr timer(Quantities& names, const std::string& place, const Range& seconds) {
    COHORT_THROW_UNLESS(seconds.low > 0, "a time of {:g} s: above zero", seconds.low);
    Graph& g = names.graph();
    const Expr left = g.memory(place + ".time_left", 1, 1);
    const Expr less = g.subtract(left, g.constant(static_cast<float>(plan_.spec.control_period)));
    const Expr up = g.compare(Op::kAtMost, less, g.constant(1e-6f));
    const Expr anew = g.binary(Op::kOr, g.started(names.step()), up);
    g.keep(left, g.select(anew, drawn(g, place + ".time", seconds), less));
    return anew;
  }

  void read_commands(JsonSection& commands, Quantities& names) {
    each(commands, [&](const std::string& name, const Json& value) {
      JsonSection s(value, commands.path() + "." + name, wrong_);
      std::string type = "uniform_velocity";
      s.take_choice("type", type, {"uniform_velocity", "uniform_pose", "uniform"});
      const std::string place = "commands." + name;
      plan_.contract.command_names.push_back(name);
      const Expr anew = timer(names, place, take_range(s, "resampling_time_range", {10, 10}));
      if (type == "uniform_velocity")
        velocity_command(name, place, s, anew, names);
      else
        uniform_command(name, place, s, anew, names, type == "uniform_pose");
    });
  }

  void velocity_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                        Quantities& names) {
    Graph& g = names.graph();
    Range x, y, turn, heading{-3.14159265358979, 3.14159265358979};
    s.in("ranges", [&](JsonSection& r) {
      x = take_range(r, "lin_vel_x"), y = take_range(r, "lin_vel_y"), turn = take_range(r, "ang_vel_z");
      heading = take_range(r, "heading", heading);
    });
    double standing = 0, with_heading = 1, forward = 0, stiffness = 0.5;
    bool heading_command = false;
    s.take("rel_standing_envs", standing);
    s.take("heading_command", heading_command);
    s.take("rel_heading_envs", with_heading);
    s.take("rel_forward_envs", forward);
    s.take("heading_control_stiffness", stiffness);
    const auto flag = [&](const char* what, double share) {
      return latch(g, anew,
                   g.compare(Op::kLess, g.uniform(place + "." + what, 1), g.constant(static_cast<float>(share))),
                   place + "." + what);
    };
    const auto latched = [&](const char* what, const Range& range) {
      command_ranges_[name].emplace_back(what);
      return latch(g, anew, drawn_between(g, place + "." + what, ends_of(names, name, what, range)),
                   place + "." + what);
    };
    Expr vx = latched("lin_vel_x", x), vy = latched("lin_vel_y", y), w = latched("ang_vel_z", turn);
    if (forward > 0) {
      const Expr ahead = flag("forward", forward), zero = g.constant(0);
      vx = g.select(ahead, g.binary(Op::kMaximum, g.unary(Op::kAbsolute, vx), g.constant(0.3f)), vx);
      vy = g.select(ahead, zero, vy), w = g.select(ahead, zero, w);
    }
    if (heading_command) {
      const Expr target = latched("heading", heading);
      const Expr error = heading_error(names, place, target);
      const Ends turns = ends_of(names, name, "ang_vel_z", turn);
      const Expr steered = g.binary(
          Op::kMinimum, g.binary(Op::kMaximum, g.multiply(error, g.constant(static_cast<float>(stiffness))), turns.low),
          turns.high);
      w = with_heading >= 1 ? steered : g.select(flag("by_heading", with_heading), steered, w);
    }
    Expr all = g.join({vx, vy, w});
    if (standing > 0) all = g.select(flag("standing", standing), g.constant(0), all);
    finish_command(name, place, all, names);
  }

  void uniform_command(const std::string& name, const std::string& place, JsonSection& s, const Expr& anew,
                       Quantities& names, bool pose) {
    Graph& g = names.graph();
    std::vector<Expr> parts;
    if (pose) {
      Range r[6];
      static constexpr const char* kNames[] = {"pos_x", "pos_y", "pos_z", "roll", "pitch", "yaw"};
      bool turns = false;
      s.in("ranges", [&](JsonSection& ranges) {
        for (int i = 0; i < 6; ++i) {
          turns = turns || (i >= 3 && ranges.has(kNames[i]));
          r[i] = take_range(ranges, kNames[i]);
        }
      });
      for (int i = 0; i < (turns ? 6 : 3); ++i) {
        command_ranges_[name].emplace_back(kNames[i]);
        parts.push_back(latch(g, anew, drawn_between(g, place + "." + kNames[i], ends_of(names, name, kNames[i], r[i])),
                              place + "." + kNames[i]));
      }
      if (turns) {
        // Roll, pitch, yaw as a quaternion.
        const auto turned = [&](int axis, const Expr& angle) {
          const Expr half = g.multiply(angle, g.constant(0.5f)), zero = g.constant(0);
          std::vector<Expr> q{g.unary(Op::kCosine, half), zero, zero, zero};
          q[static_cast<std::size_t>(axis) + 1] = g.unary(Op::kSine, half);
          return g.join(q);
        };
        const Expr q = g.quat_multiply(turned(2, parts[5]), g.quat_multiply(turned(1, parts[4]), turned(0, parts[3])));
        parts.resize(3);
        parts.push_back(q);
      }
    } else {
      std::vector<double> low, high;
      s.take("low", low), s.take("high", high);
      COHORT_THROW_UNLESS(!low.empty() && low.size() == high.size(),
                          "needs `low` and `high`, lists of as many numbers");
      for (std::size_t i = 0; i < low.size(); ++i) {
        COHORT_THROW_UNLESS(low[i] <= high[i], "low[{}] is above high[{}]", i, i);
        parts.push_back(
            latch(g, anew, drawn(g, format("{}.{}", place, i), {low[i], high[i]}), format("{}.{}", place, i)));
      }
    }
    finish_command(name, place, g.join(parts), names);
  }

  static Expr heading_error(Quantities& names, const std::string& place, const Expr& target) {
    names.give({{"target", {.value = target}}});
    const Expr error = names.read("wrap(target - base.heading)", place);
    names.give({});
    return error;
  }

  /// The value from when `anew` holds until it holds again.
  static Expr latch(Graph& g, const Expr& anew, const Expr& value, const std::string& name) {
    const Expr memory = g.memory(name, value.rows, value.cols);
    Expr now = g.select(anew, value, memory);
    now.truth = value.truth;
    g.keep(memory, now);
    return now;
  }

  void finish_command(const std::string& name, const std::string& place, const Expr& next, Quantities& names) {
    Graph& g = names.graph();
    const Expr during = g.memory(place, 1, next.size());
    g.keep(during, next);
    names.add_command(name, {.next = next, .during = during});
    commands_[name] = during;
  }

  // ---- events

  static constexpr const char* kSix[] = {"x", "y", "z", "roll", "pitch", "yaw"};
  static std::array<Range, 6> six_of(JsonSection& s, const std::string& key) {
    std::array<Range, 6> all;
    s.in(key, [&](JsonSection& r) {
      for (std::size_t i = 0; i < 6; ++i) all[i] = take_range(r, kSix[i]);
    });
    return all;
  }
  int entity_of(JsonSection& s) const {
    std::string name = robot_;
    s.take("entity", name);
    const auto& all = plan_.model.entities;
    const auto entity = std::ranges::find(all, name, &TaskModel::Entity::name);
    std::vector<std::string> names;
    for (const TaskModel::Entity& e : all) names.push_back(e.name);
    COHORT_THROW_UNLESS(entity != all.end(), "there is no entity '{}'; there is {}", name, join(names, ", "));
    return static_cast<int>(entity - all.begin());
  }

  void read_events(JsonSection& events, Quantities& names) {
    each(events, [&](const std::string& name, const Json& value) {
      JsonSection s(value, events.path() + "." + name, wrong_);
      std::string type = name;
      s.take("type", type);
      static const std::vector<std::string> kTypes{"reset_root_state_uniform", "reset_joints_by_offset",
                                                   "reset_joints_by_scale", "push_by_setting_velocity"};
      if (type == "push_by_setting_velocity") return read_push(name, s, names);
      if (is_randomization(type)) {
        std::vector<sim::EntityInfo> entities;
        for (const TaskModel::Entity& e : plan_.model.entities) entities.push_back({e.name, e.links, e.geoms});
        plan_.randomizations.push_back(read_randomization(s, name, plan_.model.info, entities, robot_));
        return;
      }
      ResetEvent event{.name = name};
      if (type == "reset_root_state_uniform") {
        event.kind = ResetEvent::kBase;
        event.entity = entity_of(s);
        event.pose = six_of(s, "pose_range"), event.velocity = six_of(s, "velocity_range");
        COHORT_THROW_UNLESS(plan_.model.entities[static_cast<std::size_t>(event.entity)].free_qpos >= 0,
                            "{} is fixed: it begins where the scene has it",
                            plan_.model.entities[static_cast<std::size_t>(event.entity)].name);
      } else if (type == "reset_joints_by_offset" || type == "reset_joints_by_scale") {
        const bool offset = type == "reset_joints_by_offset";
        event.kind = offset ? ResetEvent::kJointsByOffset : ResetEvent::kJointsByScale;
        event.joints = names.joints(texts_of(s, "joints", {}));
        event.position = take_range(s, "position_range", offset ? Range{0, 0} : Range{1, 1});
        event.speed = take_range(s, "velocity_range");
      } else {
        std::vector<std::string> types = kTypes;
        for (const RandomizationKind& kind : randomization_kinds()) types.emplace_back(kind.name);
        const std::string near = config::nearest(type, types);
        throw Error(format("there is no event '{}'{}; there are {}", type,
                           near.empty() ? "" : format(", did you mean '{}'?", near), join(types, ", ")));
      }
      plan_.resets.push_back(std::move(event));
    });
  }

  void read_push(const std::string& name, JsonSection& s, Quantities& names) {
    Graph& g = names.graph();
    const std::string place = "events." + name;
    const TaskModel::Entity& entity = plan_.model.entities[static_cast<std::size_t>(entity_of(s))];
    COHORT_THROW_UNLESS(entity.free_dof >= 0, "{} is fixed: it cannot be pushed", entity.name);
    const std::array<Range, 6> ranges = six_of(s, "velocity_range");
    const Expr anew = timer(names, place, take_range(s, "interval_range_s", {10, 15}));
    const Expr now = g.binary(Op::kAnd, anew, g.unary(Op::kNot, g.started(names.step())));
    std::vector<Expr> parts;
    for (std::size_t i = 0; i < 6; ++i) parts.push_back(drawn(g, place + "." + kSix[i], ranges[i]));
    const Expr turn = g.rotate(names.of_entity(entity, "quaternion"), g.join({parts[3], parts[4], parts[5]}), true);
    std::vector<int> dofs;
    for (int i = 0; i < 6; ++i) dofs.push_back(entity.free_dof + i);
    const int array = names.array({ArrayPlace::kField, static_cast<int>(sim::Field::kQvel)});
    const Expr before = g.load(array, dofs);
    const Expr change = g.join({parts[0], parts[1], parts[2], turn});
    g.store_where(now, array, entity.free_dof, g.add(before, change));
  }

  /// Curricula of commands and of rewards, before these are read.
  void read_stages(JsonSection& curriculum) {
    each(curriculum, [&](const std::string& name, const Json& value) {
      static const std::vector<std::string> kTypes{"terrain_levels", "commands_vel", "command_levels", "reward_weight"};
      const std::string type = type_of(name, value);
      if (type == "terrain_levels") return;  // with the terrain
      if (std::ranges::find(kTypes, type) == kTypes.end()) {
        const std::string near = config::nearest(type, kTypes);
        throw Error(format("there is no curriculum '{}'{}; there are {}", type,
                           near.empty() ? "" : format(", did you mean '{}'?", near), join(kTypes, ", ")));
      }
      JsonSection s(value, curriculum.path() + "." + name, wrong_);
      s.ignore("type");
      if (type == "command_levels") return read_growth(name, s);
      std::string of = type == "commands_vel" ? "twist" : "";
      s.take(type == "commands_vel" ? "command_name" : "reward_name", of);
      COHORT_THROW_UNLESS(!of.empty(), "needs `reward_name`: whose weight");
      const std::string key = type == "commands_vel"   ? "velocity_stages"
                              : s.has("weight_stages") ? "weight_stages"
                                                       : "stages";
      const Json& stages = s.get(key);
      COHORT_THROW_UNLESS(stages.is_array() && !stages.empty(), "needs `{}`: a list of stages, each with its `step`",
                          key);
      double before = 0;
      for (std::size_t i = 0; i < stages.size(); ++i) {
        JsonSection stage(stages[i], format("{}.{}[{}]", s.path(), key, i), wrong_);
        double step = 0;
        stage.take("step", step);
        COHORT_THROW_UNLESS(step >= before, "{}[{}] begins at step {:g}, before the one above it", key, i, step);
        before = step;
        if (type == "commands_vel") {
          for (const char* range : kRanges)
            if (stage.has(range))
              range_stages_[of][range].emplace_back(step, range_of(stage.get(range), range));
            else
              stage.ignore(range);  // so that it is the nearest of a wrong name
        } else {
          COHORT_THROW_UNLESS(stage.has("weight"), "{}[{}] needs `weight`", key, i);
          double weight = 0;
          stage.take("weight", weight);
          weight_stages_[of].emplace_back(step, weight);
        }
      }
    });
  }
  static constexpr const char* kRanges[] = {"lin_vel_x", "lin_vel_y", "ang_vel_z", "heading", "pos_x",
                                            "pos_y",     "pos_z",     "roll",      "pitch",   "yaw"};

  void read_growth(const std::string& name, JsonSection& s) {
    Growth growth{.name = name};
    std::string of = "twist";
    s.take("command_name", of), s.take("reward_name", growth.reward);
    s.take("threshold", growth.threshold), s.take("increment", growth.increment);
    COHORT_THROW_UNLESS(!growth.reward.empty(), "needs `reward_name`: the reward that says when the command may grow");
    COHORT_THROW_UNLESS(growth.increment > 0 && growth.increment <= 1,
                        "increment is {:g}: the share of the way that the ranges grow by, above 0 and at most 1",
                        growth.increment);
    s.in("limit_ranges", [&](JsonSection& limits) {
      for (const char* range : kRanges)
        if (limits.has(range))
          growth.limits[range] = range_of(limits.get(range), range);
        else
          limits.ignore(range);
    });
    COHORT_THROW_UNLESS(!growth.limits.empty(), "needs `limit_ranges`: to what the ranges grow");
    growths_[of] = std::move(growth);
  }

  /// Ends of a command's range, where the curriculum has come to.
  struct Ends {
    Expr low, high, width;
  };
  Ends ends_of(Quantities& names, const std::string& command, const std::string& key, const Range& first) {
    Graph& g = names.graph();
    const auto number = [&](double x) { return g.constant(static_cast<float>(x)); };
    Range begin = first;
    const auto growth = growths_.find(command);
    const bool grows = growth != growths_.end() && growth->second.limits.contains(key);
    const auto& all = range_stages_[command];
    const auto stages = all.find(key);
    if (play_ && stages != all.end()) begin = stages->second.back().second;
    if (play_ && grows) begin = growth->second.limits.at(key);
    Ends ends{number(begin.low), number(begin.high), number(begin.high - begin.low)};
    if (play_) return ends;
    if (stages != all.end()) {
      const Expr lifetime = names.read("lifetime", "curriculum");
      for (const auto& [step, range] : stages->second) {
        const Expr reached = g.compare(Op::kAtMost, number(step), lifetime);
        ends.low = g.select(reached, number(range.low), ends.low);
        ends.high = g.select(reached, number(range.high), ends.high);
      }
      ends.width = g.subtract(ends.high, ends.low);
    }
    if (grows) {
      Growth& of = growth->second;
      const std::string place = "curriculum." + of.name;
      if (of.share.node < 0) {
        const Expr share = g.memory(place + ".share", 1, 1);
        of.total = g.memory(place + ".total", 1, 1);
        // In the first evaluation after a reset the total is that of the episode before.
        const Expr enough =
            g.compare(Op::kLess, number(of.threshold * static_cast<double>(plan_.spec.horizon)), of.total);
        const Expr more = g.binary(Op::kMinimum, g.add(share, number(of.increment)), number(1));
        of.share = g.select(g.binary(Op::kAnd, g.started(names.step()), enough), more, share);
        g.keep(share, of.share);
        names.define(place, of.share);
      }
      const Range limit = of.limits.at(key);
      ends.low = g.add(ends.low, g.multiply(of.share, g.subtract(number(limit.low), ends.low)));
      ends.high = g.add(ends.high, g.multiply(of.share, g.subtract(number(limit.high), ends.high)));
      ends.width = g.subtract(ends.high, ends.low);
    }
    return ends;
  }
  static Expr drawn_between(Graph& g, const std::string& stream, const Ends& ends) {
    return g.add(ends.low, g.multiply(g.uniform(stream, 1), ends.width));
  }

  /// The term's part of the reward in a control step.
  Expr weighted(Quantities& names, const std::string& reward, const Expr& term, double factor, double weight) {
    Graph& g = names.graph();
    const auto number = [&](double x) { return g.constant(static_cast<float>(x)); };
    const auto stages = weight_stages_.find(reward);
    if (stages == weight_stages_.end()) return g.multiply(term, number(weight * factor));
    if (play_) return g.multiply(term, number(stages->second.back().second * factor));
    Expr by = number(weight * factor);
    const Expr lifetime = names.read("lifetime", "curriculum");
    for (const auto& [step, then] : stages->second)
      by = g.select(g.compare(Op::kAtMost, number(step), lifetime), number(then * factor), by);
    return g.multiply(term, by);
  }

  void read_curriculum(JsonSection& curriculum, Quantities& names) {
    const auto none = [](const std::string& what, const std::string& name, std::vector<std::string> known) {
      const std::string near = config::nearest(name, known);
      return format("there is no {} '{}'{}", what, name, near.empty() ? "" : format(", did you mean '{}'?", near));
    };
    each(curriculum, [&](const std::string& name, const Json& value) {
      const std::string type = type_of(name, value);
      std::vector<std::string> commands;
      for (const auto& [command, unused] : commands_) commands.push_back(command);
      const auto of = [&](const char* key, const char* standard) {
        return value.is_object() && value.contains(key) && value[key].is_string() ? value[key].get<std::string>()
                                                                                  : standard;
      };
      if (type == "commands_vel" || type == "command_levels") {
        const std::string command = of("command_name", "twist");
        COHORT_THROW_UNLESS(commands_.contains(command), "{}", none("command", command, commands));
        const auto missing = [&](const std::string& key) {
          const auto& has = command_ranges_[command];
          return std::ranges::find(has, key) == has.end();
        };
        for (const auto& [key, unused] : range_stages_[command])
          COHORT_THROW_UNLESS(!missing(key), "the command '{}' has no range {}", command, key);
        if (const auto growth = growths_.find(command); type == "command_levels" && growth != growths_.end())
          for (const auto& [key, unused] : growth->second.limits)
            COHORT_THROW_UNLESS(!missing(key), "the command '{}' has no range {}", command, key);
      }
      if (type == "reward_weight" || type == "command_levels") {
        const std::string reward = of("reward_name", "");
        COHORT_THROW_UNLESS(reward.empty() || std::ranges::find(rewards_, reward) != rewards_.end(), "{}",
                            none("reward", reward, rewards_));
      }
      if (type != "terrain_levels") return;
      JsonSection s(value, curriculum.path() + "." + name, wrong_);
      s.ignore("type");
      COHORT_THROW_UNLESS(plan_.terrain != nullptr, "terrain_levels needs a terrain in the scene");
      COHORT_THROW_UNLESS(plan_.model.of_robot().free_qpos >= 0, "terrain_levels needs a robot that walks");
      plan_.terrain_levels = "twist";
      s.take("command_name", plan_.terrain_levels);
      const auto command = commands_.find(plan_.terrain_levels);
      COHORT_THROW_UNLESS(command != commands_.end(), "there is no command '{}'", plan_.terrain_levels);
      names.graph().require(command->second);
      plan_.first_levels = plan_.terrain->num_levels;
      int most = plan_.first_levels - 1;
      s.take("max_init_terrain_level", most);
      COHORT_THROW_UNLESS(most >= 0, "max_init_terrain_level is {}: at least 0", most);
      plan_.first_levels = std::min(plan_.first_levels, most + 1);
    });
  }

  void read_ppo(JsonSection& section) {
    each(section, [&](const std::string& name, const Json& value) {
      const std::function<void(const std::string&, const Json&)> add = [&](const std::string& path, const Json& v) {
        if (v.is_object()) {
          for (const auto& [key, inner] : v.items()) add(path + "." + key, inner);
        } else {
          plan_.ppo.push_back(path + "=" + (v.is_string() ? v.get<std::string>() : v.dump()));
        }
      };
      add(name, value);
    });
  }

  std::string file_;
  Json content_;
  fs::path folder_;
  FilePlan plan_;
  std::vector<std::string> wrong_;
  std::string robot_;
  Json joint_pos_, kept_;
  std::vector<double> base_pos_, base_quat_;
  std::set<int> controlled_;
  std::map<std::string, Expr> commands_;                            ///< as memories
  std::map<std::string, std::vector<std::string>> command_ranges_;  ///< which each has
  std::vector<std::string> rewards_;
  double timestep_ = 0, control_period_ = 0, episode_ = 20;
  int decimation_ = 0;
  bool moves_frames_ = false;  ///< an action is a frame's
  bool play_ = false;          ///< as it is shown: curricula are at their ends
  std::int64_t horizon_ = 0;   ///< instead of the file's
  /// Of `curriculum`: commands' ranges and rewards' weights by control steps of an environment, and ranges that grow.
  template <class T>
  using Stages = std::vector<std::pair<double, T>>;
  std::map<std::string, std::map<std::string, Stages<Range>>> range_stages_;  ///< command, range
  std::map<std::string, Stages<double>> weight_stages_;                       ///< reward
  struct Growth {
    std::string name, reward;
    double threshold = 0.8, increment = 0.1;
    std::map<std::string, Range> limits;
    Expr share{}, total{};  ///< made with the command, and kept with the reward
  };
  std::map<std::string, Growth> growths_;  ///< command
};

}  // namespace

FilePlan plan_of_file(const std::string& file, Json content, bool play, std::int64_t horizon) {
  COHORT_THROW_UNLESS(content.is_object(), "{}: a task's file is an object: scene, actions, observations, rewards",
                      file);
  if (content.contains("play")) {
    const Json changes = content["play"];
    content.erase("play");
    if (play) content.merge_patch(changes);
  }
  return PlanReader(file, std::move(content), play, horizon).read();
}

void keep_plan(const FilePlan& plan, Json content, const fs::path& folder) {
  fs::create_directories(folder);
  const std::string stem = fs::path(plan.file).stem().string(), model = stem + ".mjb";
  const sim::CompiledScene& scene = *plan.compiled;
  write_file_atomically(folder / model,
                        std::string_view(reinterpret_cast<const char*>(scene.mjb.data()), scene.mjb.size()));
  Json kept{{"file", fs::absolute(plan.file).string()},
            {"content", format("{:016x}", fnv1a(content.dump()))},
            {"model", model},
            {"entity_links", scene.entity_links},
            {"entity_geoms", scene.entity_geoms}};
  content.erase("kept");
  content["kept"] = std::move(kept);
  write_file_atomically(folder / (stem + ".json"), content.dump(2) + "\n");
}

std::array<double, 4> quat_of_rpy(double roll, double pitch, double yaw) {
  const double cr = std::cos(roll / 2), sr = std::sin(roll / 2), cp = std::cos(pitch / 2), sp = std::sin(pitch / 2),
               cy = std::cos(yaw / 2), sy = std::sin(yaw / 2);
  return {cr * cp * cy + sr * sp * sy, sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
          cr * cp * sy - sr * sp * cy};
}

}  // namespace cohort::tasks
