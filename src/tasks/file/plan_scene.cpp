#include <algorithm>
#include <cmath>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "sim/host/model_file.h"
#include "tasks/file/angles.h"
#include "tasks/file/library_files.h"
#include "tasks/file/model_edits.h"
#include "tasks/file/patterns.h"
#include "tasks/file/plan_reader.h"

namespace cohort::tasks {

namespace fs = std::filesystem;
using config::Json;
using config::JsonSection;

namespace {

/// The scene of a task that a run keeps: MuJoCo's compiled model, and what it has of each entity.
sim::CompiledScene kept_scene(const Json& kept, const fs::path& folder) {
  sim::CompiledScene scene;
  const std::string model = read_file((folder / kept.value("model", "")).string());
  scene.mjb.assign(model.begin(), model.end());
  scene.entity_links = kept.at("entity_links").get<std::vector<std::vector<int>>>();
  scene.entity_geoms = kept.at("entity_geoms").get<std::vector<std::vector<int>>>();
  return scene;
}

}  // namespace

void PlanReader::read_simulation(JsonSection& s) {
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
  if (double tolerance = 0; s.has("tolerance")) s.take("tolerance", tolerance), plan_.simulation.tolerance = tolerance;
  if (std::vector<double> g; s.has("gravity")) {
    s.take("gravity", g);
    if (g.size() == 3)
      plan_.simulation.gravity = {g[0], g[1], g[2]};
    else
      wrong("simulation.gravity", "needs three numbers, m/s^2");
  }
}

sim::Pose PlanReader::pose_of(JsonSection& s) {
  sim::Pose pose;
  std::vector<double> pos, quat, rpy;
  s.take("pos", pos), s.take("quat", quat), s.take("rpy", rpy);
  COHORT_THROW_UNLESS(pos.empty() || pos.size() == 3, "pos needs three numbers, m");
  COHORT_THROW_UNLESS(quat.empty() || quat.size() == 4, "quat needs four numbers, w x y z");
  COHORT_THROW_UNLESS(rpy.empty() || rpy.size() == 3, "rpy needs three numbers, rad");
  for (const double angle : rpy) check_angle(angle, "rpy");
  COHORT_THROW_UNLESS(quat.empty() || rpy.empty(), "quat and rpy say the same: one of them");
  if (!pos.empty()) std::copy(pos.begin(), pos.end(), pose.pos.begin());
  if (!quat.empty()) std::copy(quat.begin(), quat.end(), pose.quat.begin());
  if (!rpy.empty()) pose.quat = quat_of_rpy(rpy[0], rpy[1], rpy[2]);
  return pose;
}

sim::ShapeOptions PlanReader::shape_of(JsonSection& s) {
  sim::ShapeOptions shape;
  shape.pose = pose_of(s);
  s.take("fixed", shape.fixed);
  s.take("marker", shape.marker);
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

std::array<double, 3> PlanReader::friction_of(JsonSection& s) {
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

std::vector<double> PlanReader::sizes_of(JsonSection& s, const std::string& kind, std::size_t n, const char* means) {
  std::vector<double> size;
  const Json& value = s.get(kind);
  if (value.is_number())
    size.push_back(value.get<double>());
  else
    s.take(kind, size);
  COHORT_THROW_UNLESS(size.size() == n, "{} needs {} number{}: {}", kind, n, n == 1 ? "" : "s", means);
  return size;
}

sim::Morph PlanReader::morph_of(JsonSection& s, const std::string& kind) {
  if (kind == "mjcf" || kind == "urdf") {
    std::string file;
    s.take(kind, file);
    const fs::path path = path_of(file);
    const std::string_view text = library_text(path.string());
    const std::string trouble = kept_.is_object() || !text.empty() ? "" : sim::why_unreadable(path);
    COHORT_THROW_UNLESS(trouble.empty(), "{}; {}", trouble,
                        asks_for_another_ ? "the run keeps its model for the settings that it has learnt with and for "
                                            "`play`, and other settings change it: leave them out"
                                          : "paths are relative to the task's file");
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
    sim::Mjcf mjcf{.file = text.empty() ? path.string() : "", .xml = std::string(text), .edits = std::move(edits)};
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

sim::Morph PlanReader::terrain_of(JsonSection& s) {
  COHORT_THROW_UNLESS(plan_.terrain == nullptr, "a scene has one terrain, and this is the second");
  const std::size_t faults = wrong_.size();
  const TerrainSettings settings = read_terrain(s.get("terrain"), s.path() + ".terrain", wrong_);
  const bool has_friction = s.has("friction");
  const std::array<double, 3> friction = has_friction ? friction_of(s) : sim::Plane{}.friction;
  if (wrong_.size() > faults) return sim::Plane{};
  plan_.terrain = std::make_shared<const GeneratedTerrain>(generate_terrain(settings));
  const GeneratedTerrain& ground = *plan_.terrain;
  plan_.model.terrain_half_size = {ground.cell * (ground.cols - 1) / 2, ground.cell * (ground.rows - 1) / 2};
  plan_.model.patch_half_size = {settings.size[0] / 2, settings.size[1] / 2};
  if (plan_.terrain->is_flat()) return sim::Plane{.friction = friction};
  sim::Terrain terrain = plan_.terrain->entity();
  terrain.friction = friction;
  return terrain;
}

void PlanReader::read_scene(JsonSection& scene) {
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

void PlanReader::read_cameras(const Json& all) {
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

void PlanReader::check_cameras() {
  std::vector<std::string> known;
  for (const std::string& name : plan_.model.info.camera_names) known.push_back(bare_name(name));
  for (const std::string& name : plan_.spec.cameras) {
    const auto own = [&](const sim::CameraOptions& camera) { return camera.name == name; };
    if (std::ranges::any_of(plan_.cameras, own) || std::ranges::count(known, bare_name(name)) > 0) continue;
    const std::string near = config::nearest(name, known);
    wrong("scene.cameras",
          format("names '{}', and the model has no such camera{}", name,
                 near.empty() ? known.empty()
                                    ? std::string("; it has none: write `{NAME: {pos: [x, y, z], lookat: [x, y, z]}}`")
                                    : "; it has " + join(known, ", ")
                              : format(", did you mean '{}'?", near)));
  }
}

void PlanReader::compile_model() {
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
  check_cameras();
  std::vector<TaskModel::Entity> things;
  for (const sim::EntityDeclaration& declared : plan_.entities) {
    const sim::Entity entity = scene.entity(declared.name);
    TaskModel::Entity e{.name = declared.name};
    e.links.assign(entity.links().begin(), entity.links().end());
    e.geoms.assign(entity.geoms().begin(), entity.geoms().end());
    if (!e.links.empty()) e.base = e.links.front();
    if (e.base >= 0) e.mocap = model.info.links[static_cast<std::size_t>(e.base)].mocap;
    std::vector<const sim::JointInfo*> free;
    for (std::size_t j = 0; j < model.info.joints.size(); ++j) {
      const sim::JointInfo& joint = model.info.joints[j];
      if (std::ranges::find(e.links, joint.link) == e.links.end()) continue;
      if (joint.type == sim::JointType::kFree) free.push_back(&joint);
      if (joint.type == sim::JointType::kHinge || joint.type == sim::JointType::kSlide)
        e.joints.push_back(static_cast<int>(j));
    }
    // The base is the free body on which its hinges and slides hang; others lie about in its file, with names of their own.
    const auto hangs_on = [&](int link, int above) {
      while (link > above) link = model.info.links[static_cast<std::size_t>(link)].parent;
      return link == above;
    };
    for (const sim::JointInfo* joint : free) {
      const bool carries = std::ranges::any_of(
          e.joints, [&](int j) { return hangs_on(model.info.joints[static_cast<std::size_t>(j)].link, joint->link); });
      if (e.free_qpos < 0 && (carries || e.joints.empty())) {
        e.base = joint->link, e.free_qpos = joint->qpos, e.free_dof = joint->dof;
        continue;
      }
      TaskModel::Entity thing{.name = bare_name(model.info.links[static_cast<std::size_t>(joint->link)].name),
                              .base = joint->link,
                              .free_qpos = joint->qpos,
                              .free_dof = joint->dof};
      for (const int link : e.links)
        if (hangs_on(link, joint->link)) thing.links.push_back(link);
      for (const int geom : e.geoms)
        if (hangs_on(model.info.geoms[static_cast<std::size_t>(geom)].link, joint->link)) thing.geoms.push_back(geom);
      things.push_back(std::move(thing));
    }
    if (declared.name == robot_) model.robot = static_cast<int>(model.entities.size());
    model.entities.push_back(std::move(e));
  }
  for (TaskModel::Entity& thing : things)
    if (!thing.name.empty() && model.find(thing.name) == nullptr) model.entities.push_back(std::move(thing));
  model.qpos = model.info.qpos0;
  model.ctrl.assign(static_cast<std::size_t>(model.info.nu), 0.0);
  if (!plan_.keyframe.empty()) {
    const auto named = [&](const std::string& name) {
      return std::ranges::any_of(model.info.keyframes, [&](const sim::KeyframeInfo& k) { return k.name == name; });
    };
    if (!named(plan_.keyframe) && named(robot_ + "/" + plan_.keyframe)) plan_.keyframe = robot_ + "/" + plan_.keyframe;
    const sim::KeyframeInfo& key = model.info.keyframes[static_cast<std::size_t>(model.info.keyframe(plan_.keyframe))];
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
          if (has.insert(i).second) {
            const sim::JointInfo& joint =
                model.info.joints[static_cast<std::size_t>(joints[static_cast<std::size_t>(i)])];
            if (joint.type == sim::JointType::kHinge) check_angle(position.get<double>(), joint.name);
            model.qpos[static_cast<std::size_t>(joint.qpos)] = position.get<double>();
          }
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
  const int decimation = decimation_ > 0       ? decimation_
                         : control_period_ > 0 ? std::max(1, static_cast<int>(std::lround(control_period_ / timestep)))
                                               : std::max(1, static_cast<int>(std::lround(0.02 / timestep)));
  if (control_period_ > 0 && std::abs(decimation * timestep - control_period_) > 1e-9)
    wrong("simulation.control_period",
          format("= {:g} s is no multiple of the timestep, {:g} s", control_period_, timestep));
  model.control_period = plan_.spec.control_period = decimation * timestep;
  constexpr double kRounding = 0.999;  // 0.02 s of 10 steps of 0.002 s
  if (horizon_ <= 0 && episode_ < kRounding * plan_.spec.control_period)
    wrong("simulation.episode_length_s",
          format("= {:g} s is less than a control step, {:g} s", episode_, plan_.spec.control_period));
  const std::int64_t own = std::max<std::int64_t>(1, std::llround(episode_ / plan_.spec.control_period));
  model.horizon = plan_.spec.horizon = horizon_ > 0 ? horizon_ : own;
}

}  // namespace cohort::tasks
