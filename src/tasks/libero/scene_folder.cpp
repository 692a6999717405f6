#include "tasks/libero/scene_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "formats/npy.h"
#include "tasks/libero/picture_noise.h"

namespace cohort::tasks::libero {
namespace fs = std::filesystem;
namespace {

using config::Json;

Json read_task_json(const fs::path& folder) {
  const fs::path file = folder / "task.json";
  COHORT_THROW_UNLESS(fs::exists(file),
                      "{} is no folder of a LIBERO task: it has no task.json (`cohort export-libero` writes them)",
                      folder.string());
  try {
    return parse_json<Json>(read_file(file));
  } catch (const Json::exception& e) {
    throw Error(format("{}: {}", file.string(), e.what()));
  }
}

std::vector<std::string> texts(const Json& json) {
  return json.get<std::vector<std::string>>();
}

std::vector<PredicateWords> predicates_of(const Json& task, const char* list) {
  std::vector<PredicateWords> all;
  for (const Json& predicate : task.at(list)) all.push_back(texts(predicate.at("predicate")));
  return all;
}

Thing read_thing(const Json& json, bool fixture) {
  return {.category = json.at("category").get<std::string>(),
          .body = json.at("body").get<std::string>(),
          .fixture = fixture,
          .burner = json.contains("state_sites") ? json.at("state_sites").value("burner", "") : "",
          .joints = texts(json.at("joints")),
          .contact_geoms = texts(json.at("contact_geoms"))};
}

Site read_site(const Json& json) {
  Site site;
  site.site = json.at("site").get<std::string>();
  if (json.at("parent_object").is_string()) site.parent = json.at("parent_object").get<std::string>();
  site.joints = texts(json.at("joints"));
  const auto size = json.at("half_size").get<std::vector<double>>();
  COHORT_THROW_UNLESS(size.size() == 3, "the half size of {} has {} numbers, not 3", site.site, size.size());
  std::copy(size.begin(), size.end(), site.half_size.begin());
  return site;
}

OperationalSpaceSettings read_controller(const Json& json) {
  const std::string type = json.at("type").get<std::string>(), mode = json.at("impedance_mode").get<std::string>();
  COHORT_THROW_UNLESS(type == "OSC_POSE" && mode == "fixed",
                      "the controller is {} with {} impedance; OSC_POSE with fixed impedance is what LIBERO uses", type,
                      mode);
  OperationalSpaceSettings settings;
  settings.stiffness = json.at("kp").at(0).get<double>();
  settings.damping_ratio = json.at("damping_ratio").get<double>();
  settings.position_scale = json.at("output_max").at(0).get<double>();
  settings.orientation_scale = json.at("output_max").at(3).get<double>();
  settings.posture_stiffness = json.at("nullspace_joint_kp").get<double>();
  const auto limits = json.at("torque_limits_high").get<std::vector<double>>();
  COHORT_THROW_UNLESS(limits.size() == kArmJoints, "the controller limits {} torques, not {}", limits.size(),
                      kArmJoints);
  std::copy(limits.begin(), limits.end(), settings.torque_limit.begin());
  return settings;
}

void read_robot(const Json& task, SceneFolder& scene) {
  const Json &robot = task.at("robot"), &gripper = task.at("gripper");
  scene.hand_body = robot.at("eef_quat_body").get<std::string>();
  scene.grip_site = robot.at("eef_site").get<std::string>();
  scene.arm_joints = texts(robot.at("arm_joints"));
  scene.arm_actuators = texts(robot.at("arm_actuators"));
  scene.finger_joints = texts(gripper.at("joints"));
  scene.finger_actuators = texts(gripper.at("actuators"));
  scene.finger_sign = gripper.at("sign_per_finger").get<std::vector<double>>();
  scene.finger_speed = gripper.at("speed_per_substep").get<double>();
  const auto reset = robot.at("init_qpos").get<std::vector<double>>();
  COHORT_THROW_UNLESS(
      reset.size() == kArmJoints && scene.arm_joints.size() == kArmJoints && scene.arm_actuators.size() == kArmJoints,
      "the arm has {} joints, {} actuators and {} of init_qpos; {} of each are needed", scene.arm_joints.size(),
      scene.arm_actuators.size(), reset.size(), kArmJoints);
  std::copy(reset.begin(), reset.end(), scene.reset_joints.begin());
  COHORT_THROW_UNLESS(
      scene.finger_joints.size() == 2 && scene.finger_actuators.size() == 2 && scene.finger_sign.size() == 2,
      "the gripper has {} joints, {} actuators and {} signs; 2 of each are needed", scene.finger_joints.size(),
      scene.finger_actuators.size(), scene.finger_sign.size());
  scene.controller = read_controller(task.at("controller"));
}

void read_cameras(const Json& task, SceneFolder& scene) {
  std::vector<std::string> known;
  for (const Json& camera : task.at("cameras")) known.push_back(camera.at("name").get<std::string>());
  scene.cameras = texts(task.at("cameras_observed"));
  for (const std::string& name : scene.cameras) {
    const std::string near = config::nearest(name, known);
    COHORT_THROW_UNLESS(std::find(known.begin(), known.end(), name) != known.end(),
                        "cameras_observed names `{}`, which the scene lacks{}; it has {}", name,
                        near.empty() ? "" : format(": is `{}` meant?", near), join(known, ", "));
  }
  for (const std::string& name : known)
    if (std::find(scene.cameras.begin(), scene.cameras.end(), name) == scene.cameras.end())
      scene.cameras.push_back(name);
  for (const Json& group : task.at("visible_geom_groups")) scene.geom_groups.at(group.get<std::size_t>()) = true;
}

/// The values of every `name="..."` of the text.
std::vector<std::string> attribute_values(const std::string& xml, const std::string& name) {
  std::vector<std::string> values;
  const std::string start = " " + name + "=\"";
  for (std::size_t at = xml.find(start); at != std::string::npos; at = xml.find(start, at)) {
    at += start.size();
    values.push_back(xml.substr(at, xml.find('"', at) - at));
  }
  return values;
}

/// Where a file of the assets comes from, as their manifest says; "" without one.
std::string origin_of(const Json& manifest, const std::string& file) {
  if (!manifest.contains("files")) return "";
  for (const Json& entry : manifest.at("files"))
    if (entry.value("file", "") == file)
      return format(" (from {} of {})", entry.value("source", "?"), entry.value("package", "?"));
  return "";
}

void check_assets(const fs::path& folder) {
  const fs::path xml_file = folder / "scene.xml";
  const std::string xml = read_file(xml_file);
  const std::vector<std::string> folders = attribute_values(xml, "meshdir");
  const fs::path assets = folder / (folders.empty() ? "." : folders.front());
  std::set<std::string> missing;
  for (const std::string& file : attribute_values(xml, "file"))
    if (!fs::exists(assets / file)) missing.insert(file);
  if (missing.empty()) return;
  const Json manifest =
      fs::exists(assets / "manifest.json") ? try_json<Json>(read_file(assets / "manifest.json")) : Json::object();
  constexpr std::size_t kShown = 5;
  std::string list;
  std::size_t shown = 0;
  for (const std::string& file : missing) {
    if (shown++ == kShown) break;
    list += format("{}{}{}", list.empty() ? "" : ", ", file, origin_of(manifest, file));
  }
  throw Error(
      format("{}: {} of its meshes and textures are not in {}: {}{}. They are LIBERO's and robosuite's: "
             "`cohort export-libero` writes them beside the scenes",
             xml_file.string(), missing.size(), assets.lexically_normal().string(), list,
             missing.size() > kShown ? ", ..." : ""));
}

/// `numbers` of a task.json, so many.
template <std::size_t N>
std::array<double, N> read_numbers(const Json& json, const char* what) {
  const auto values = json.get<std::vector<double>>();
  COHORT_THROW_UNLESS(values.size() == N, "{} has {} numbers, not {}", what, values.size(), N);
  std::array<double, N> out{};
  std::copy(values.begin(), values.end(), out.begin());
  return out;
}

/// What a task of LIBERO-Plus changes in the scene that has been read.
void read_changes(const Json& task, SceneFolder& scene) {
  scene.perturbation = task.value("perturbation", "");
  if (task.contains("agentview"))
    scene.agentview =
        SceneFolder::CameraPose{read_numbers<3>(task.at("agentview").at("pos"), "agentview's pos"),
                                read_numbers<4>(task.at("agentview").at("quat_wxyz"), "agentview's quat")};
  if (task.contains("init_qpos")) scene.reset_joints = read_numbers<kArmJoints>(task.at("init_qpos"), "init_qpos");
  scene.picture_noise = task.value("picture_noise", 0);
  COHORT_THROW_UNLESS(scene.picture_noise >= 0 && scene.picture_noise <= kPictureNoises,
                      "picture_noise is {}, and there are 1 to {}", scene.picture_noise, kPictureNoises);
}

void read_initial_states(const fs::path& folder, SceneFolder& scene) {
  NpyArray array = read_npy(folder / "init_states.npy");
  COHORT_THROW_UNLESS(array.shape.size() == 2 && array.shape[0] >= 1,
                      "{}: the initial states are an array of {} dimensions, not of states and numbers",
                      (folder / "init_states.npy").string(), array.shape.size());
  scene.states = array.shape[0];
  scene.state_width = static_cast<std::size_t>(array.shape[1]);
  scene.initial = std::move(array.values);
}

}  // namespace

SceneHead read_scene_head(const fs::path& folder) {
  const Json task = read_task_json(folder);
  try {
    return {folder, task.at("task").get<std::string>(), task.at("suite").get<std::string>(),
            task.at("language").get<std::string>(), task.value("perturbation", "")};
  } catch (const Json::exception& e) {
    throw Error(format("{}: {}", (folder / "task.json").string(), e.what()));
  }
}

SceneFolder read_scene_folder(const fs::path& folder) {
  if (const Json changes = read_task_json(folder); changes.contains("scene_of")) {
    try {
      const std::string base = changes.at("scene_of").get<std::string>();
      const fs::path place = folder.parent_path() / base;
      COHORT_THROW_UNLESS(
          base.find('/') == std::string::npos && base != folder.filename() && fs::exists(place),
          "its scene_of names the folder {}, which is not beside it (`cohort export-libero` writes both)", base);
      COHORT_THROW_UNLESS(!read_task_json(place).contains("scene_of"),
                          "its scene_of names {}, which has no scene of its "
                          "own",
                          base);
      SceneFolder scene = read_scene_folder(place);
      scene.task = changes.at("task").get<std::string>();
      scene.suite = changes.at("suite").get<std::string>();
      scene.language = changes.at("language").get<std::string>();
      read_changes(changes, scene);
      return scene;
    } catch (const Json::exception& e) {
      throw Error(format("{}: {}", (folder / "task.json").string(), e.what()));
    } catch (const Error& e) {
      throw Error(format("{}: {}", (folder / "task.json").string(), e.what()));
    }
  }
  for (const char* file : {"task.json", "scene.xml", "init_states.npy"})
    COHORT_THROW_UNLESS(fs::exists(folder / file),
                        "{} is no folder of a LIBERO task: it has no {} (`cohort export-libero` writes them)",
                        folder.string(), file);
  check_assets(folder);
  const Json task = read_task_json(folder);
  SceneFolder scene;
  scene.path = folder;
  try {
    scene.task = task.at("task").get<std::string>();
    scene.suite = task.at("suite").get<std::string>();
    scene.language = task.at("language").get<std::string>();
    scene.goal = predicates_of(task, "goal_predicates");
    scene.watched = predicates_of(task, "watched_predicates");
    COHORT_THROW_UNLESS(!scene.goal.empty(), "the goal has no predicates");
    for (const auto& [name, json] : task.at("objects").items()) {
      scene.things[name] = read_thing(json, false);
      scene.objects.push_back(name);
    }
    for (const auto& [name, json] : task.at("fixtures").items()) scene.things[name] = read_thing(json, true);
    for (const auto& [name, json] : task.at("sites").items()) scene.sites[name] = read_site(json);
    read_cameras(task, scene);
    read_robot(task, scene);
    scene.substeps = task.at("substeps").get<int>();
    scene.timestep = task.at("timestep").get<double>();
    scene.longest = task.at("horizon").get<std::int64_t>();
    read_changes(task, scene);
  } catch (const Json::exception& e) {
    throw Error(format("{}: {}", (folder / "task.json").string(), e.what()));
  } catch (const Error& e) {
    throw Error(format("{}: {}", (folder / "task.json").string(), e.what()));
  }
  read_initial_states(folder, scene);
  return scene;
}

}  // namespace cohort::tasks::libero
