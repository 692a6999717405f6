#include "tasks/libero/compose/description.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::libero::compose {
namespace {

using config::Json;

// LIBERO's and robosuite's settings: ControlEnv's defaults, osc_pose.json, panda_gripper.py.
constexpr int kControlFrequency = 20, kHorizon = 1000, kSubsteps = 25;
constexpr double kTimestep = 0.002;  // s
constexpr double kStiffness = 150, kPosture = 10, kFingerSpeed = 0.01;

Json rules_of(const ComposedThing* thing) {
  Json rules = Json::object();
  if (thing != nullptr)
    for (const JointRule& rule : thing->rules) rules[rule.state] = {rule.compare, rule.value};
  return rules;
}

class Description {
 public:
  Description(const ComposedScene& scene, const MeasuredModel& model,
              const std::map<std::string, FixturePose>& fixtures)
      : scene_(scene), model_(model), fixtures_(fixtures) {}

  Json things(bool fixtures) const {
    Json all = Json::object();
    for (const ComposedThing& thing : scene_.things)
      if (thing.fixture == fixtures) all[thing.name] = thing_entry(thing);
    return all;
  }

  Json sites() const {
    Json all = Json::object();
    for (const ComposedSite& site : scene_.sites) all[site.name] = site_entry(site);
    return all;
  }

  Json goal_predicates() const {
    Json all = Json::array();
    for (const std::vector<std::string>& words : scene_.problem.goal) all.push_back(predicate(words));
    return all;
  }

  Json regions() const {
    Json all = Json::object();
    for (const auto& [name, region] : scene_.problem.regions)
      all[name] = {{"target", region.target},
                   {"ranges", region.ranges},
                   {"extra", Json::array()},
                   {"yaw_rotation", region.yaw},
                   {"rgba", region.rgba}};
    return all;
  }

 private:
  Json thing_entry(const ComposedThing& thing) const {
    Json entry{{"category", thing.category},
               {"fixture", thing.fixture},
               {"body", thing.root},
               {"joints", thing.joints},
               {"contact_geoms", thing.contact_geoms},
               {"sites", thing.sites}};
    if (!thing.fixture) return entry;
    const auto placed = fixtures_.find(thing.name);
    const MeasuredModel::Body& body = model_.body(thing.root);
    entry["pos"] = placed == fixtures_.end() ? body.pos : placed->second.pos;
    entry["quat_wxyz"] = placed == fixtures_.end() ? body.quat : placed->second.quat;
    for (const JointRange& range : thing.ranges) entry["articulation"][range.name] = {range.low, range.high};
    if (!thing.burner.empty()) entry["state_sites"]["burner"] = thing.burner;
    return entry;
  }

  Json site_entry(const ComposedSite& site) const {
    const MeasuredModel::Site& measured = model_.site(site.name);
    Json entry{{"site", site.name},
               {"class", site.parent.empty() ? "TargetZone" : "SiteObject"},
               {"parent_object", site.parent.empty() ? Json() : Json(site.parent)},
               {"joints", site.joints},
               {"half_size", site.half_size},
               {"site_body", model_.bodies.at(measured.body).name},
               {"site_pos_in_body", measured.pos},
               {"site_quat_in_body_wxyz", measured.quat}};
    const Json rules = rules_of(scene_.thing(site.parent));
    if (!site.joints.empty() && !rules.empty()) entry["joint_rules"] = rules;
    return entry;
  }

  Json argument(const std::string& name) const {
    if (const ComposedSite* site = scene_.site(name)) {
      Json entry{{"name", name}, {"type", "site"}};
      entry.update(site_entry(*site));
      if (const ComposedThing* parent = scene_.thing(site->parent))
        entry["parent_contact_geoms"] = parent->contact_geoms;
      return entry;
    }
    const ComposedThing* thing = scene_.thing(name);
    COHORT_THROW_UNLESS(thing != nullptr, "the goal is about {}, which is neither a thing nor a site of the scene",
                        name);
    Json entry{{"name", name},
               {"type", "object"},
               {"body", thing->root},
               {"joints", thing->joints},
               {"contact_geoms", thing->contact_geoms}};
    if (const Json rules = rules_of(thing); !rules.empty()) entry["joint_rules"] = rules;
    return entry;
  }

  Json predicate(const std::vector<std::string>& words) const {
    static const std::map<std::string, const char*> kRules{{"open", "any joint fulfils joint_rules"},
                                                           {"turnon", "any joint fulfils joint_rules"},
                                                           {"close", "all joints fulfil joint_rules"},
                                                           {"turnoff", "all joints fulfil joint_rules"},
                                                           {"up", "height at least 1 m"}};
    const std::string& kind = words.front();
    Json arguments = Json::array();
    for (std::size_t i = 1; i < words.size(); ++i) arguments.push_back(argument(words[i]));
    std::string rule;
    if (const auto known = kRules.find(kind); known != kRules.end() && words.size() == 2) {
      rule = known->second;
    } else if ((kind == "on" || kind == "in") && words.size() == 3) {
      const bool site = arguments[1].at("type") == "site";
      rule = kind == "on" ? site ? "site: under" : "object: above, touching, within 0.03 m"
             : site       ? "site: in box"
                          : "object: touching and its own in_box";
    } else {
      throw Error(format("the goal has the predicate ({}), which is not known here", join(words, " ")));
    }
    return {{"predicate", words}, {"kind", kind}, {"arguments", arguments}, {"rule", rule}};
  }

  const ComposedScene& scene_;
  const MeasuredModel& model_;
  const std::map<std::string, FixturePose>& fixtures_;
};

std::vector<double> six(double value) {
  return std::vector<double>(6, value);
}

Json controller_entry(const Robot& robot, const MeasuredModel& model) {
  std::vector<double> low, high;
  for (const std::string& name : robot.arm_actuators) {
    low.push_back(model.actuator(name).low);
    high.push_back(model.actuator(name).high);
  }
  const auto& r = model.grip_rotation;
  const Json rotation{{r[0], r[1], r[2]}, {r[3], r[4], r[5]}, {r[6], r[7], r[8]}};
  const Json at_reset{{"initial_joint", arm_at_reset()}, {"goal_pos", model.grip_pos},  {"goal_ori", rotation},
                      {"ee_pos", model.grip_pos},        {"ee_ori_mat", rotation},      {"joint_pos", arm_at_reset()},
                      {"jacobian", model.jacobian},      {"mass_matrix", model.inertia}};
  const std::vector<double> scale{0.05, 0.05, 0.05, 0.5, 0.5, 0.5};
  return {{"type", "OSC_POSE"},
          {"impedance_mode", "fixed"},
          {"kp", six(kStiffness)},
          {"kd", six(2 * std::sqrt(kStiffness))},
          {"damping_ratio", 1.0},
          {"input_min", six(-1)},
          {"input_max", six(1)},
          {"output_min", {-0.05, -0.05, -0.05, -0.5, -0.5, -0.5}},
          {"output_max", scale},
          {"control_delta", true},
          {"control_ori", true},
          {"uncouple_pos_ori", true},
          {"position_limits", nullptr},
          {"orientation_limits", nullptr},
          {"interpolation", nullptr},
          {"nullspace_joint_kp", kPosture},
          {"nullspace_joint_kv", 2 * std::sqrt(kPosture)},
          {"pinv_rcond", 1e-15},
          {"torque_limits_low", low},
          {"torque_limits_high", high},
          {"eef_site", kGripSite},
          {"torque_compensation", "qfrc_bias of the seven arm dofs"},
          {"policy_freq", kControlFrequency},
          {"substeps", kSubsteps},
          {"timestep", kTimestep},
          {"at_reset", at_reset}};
}

Json gripper_entry(const Robot& robot, const MeasuredModel& model) {
  Json ranges = Json::array();
  for (const std::string& name : robot.finger_actuators)
    ranges.push_back({model.actuator(name).low, model.actuator(name).high});
  return {{"name", "PandaGripper"},
          {"joints", robot.finger_joints},
          {"actuators", robot.finger_actuators},
          {"dof", 1},
          {"speed_per_substep", kFingerSpeed},
          {"sign_per_finger", {-1.0, 1.0}},
          {"action_open", -1},
          {"action_closed", 1},
          {"init_qpos", {0.020833, -0.020833}},
          {"ctrlrange", ranges},
          {"current_action_at_reset", {0.0, 0.0}},
          {"fingerpad_geoms", {"gripper0_finger1_pad_collision", "gripper0_finger2_pad_collision"}}};
}

}  // namespace

std::string language_of(const std::string& task) {
  std::string words = task;
  if (!task.empty() && std::isupper(static_cast<unsigned char>(task[0]))) {
    const std::size_t scene = task.find("SCENE");
    // "SCENE3_" and "SCENE10_".
    const std::size_t skipped =
        scene == std::string::npos ? 0 : scene + (task.find("SCENE10") != std::string::npos ? 8 : 7);
    words = task.substr(std::min(skipped, task.size()));
  }
  for (char& c : words)
    if (c == '_') c = ' ';
  return words;
}

Json describe_task(const std::string& suite, const std::string& task, const ComposedScene& scene,
                   const MeasuredModel& model, const std::map<std::string, FixturePose>& fixtures) {
  const Description parts(scene, model, fixtures);
  const Problem& problem = scene.problem;
  Json cameras = Json::array(), qpos_order = Json::array();
  for (const MeasuredModel::Camera& camera : model.cameras)
    cameras.push_back({{"name", camera.name},
                       {"body", model.bodies.at(camera.body).name},
                       {"pos", camera.pos},
                       {"quat_wxyz", camera.quat},
                       {"fovy_deg", camera.fovy}});
  for (const MeasuredModel::Joint& joint : model.joints)
    qpos_order.push_back({joint.name, joint.qpos, joint.dof, joint.type});
  const MeasuredModel::Body& base = model.body("robot0_base");
  return {{"task", task},
          {"suite", suite},
          {"language", language_of(task)},
          {"language_in_bddl", problem.language},
          {"bddl_file", suite + "/" + task + ".bddl"},
          {"problem", problem.name},
          {"goal", problem.goal},
          {"goal_combination", "all must hold"},
          {"obj_of_interest", problem.of_interest},
          {"goal_predicates", parts.goal_predicates()},
          {"watched_predicates", Json::array()},
          {"initial_predicates", problem.initial},
          {"objects", parts.things(false)},
          {"fixtures", parts.things(true)},
          {"sites", parts.sites()},
          {"bddl_regions", parts.regions()},
          {"workspace",
           {{"name", std::string(scene.arena->workspace)},
            {"offset", scene.arena->offset},
            {"arena", std::string(scene.arena->kind)}}},
          {"fixture_seed", 0},
          {"control_freq", kControlFrequency},
          {"timestep", kTimestep},
          {"substeps", kSubsteps},
          {"horizon", kHorizon},
          {"max_steps_libero", 600},
          {"warmup_steps_libero", 5},
          {"warmup_action_libero", std::vector<double>(7, 0.0)},
          {"action_dim", 7},
          {"cameras_observed", {"agentview", "robot0_eye_in_hand"}},
          {"camera_height", 128},
          {"camera_width", 128},
          {"cameras", cameras},
          {"visible_geom_groups", {1, 2}},
          {"frame_is_upside_down", true},
          {"robot",
           {{"model", scene.robot.model_name},
            {"base_body", base.name},
            {"base_pos", base.pos},
            {"base_quat_wxyz", base.quat},
            {"arm_joints", scene.robot.arm_joints},
            {"arm_actuators", scene.robot.arm_actuators},
            {"init_qpos", arm_at_reset()},
            {"eef_site", kGripSite},
            {"eef_quat_body", "robot0_right_hand"},
            {"mount", scene.robot.mount_name}}},
          {"gripper", gripper_entry(scene.robot, model)},
          {"controller", controller_entry(scene.robot, model)},
          {"model",
           {{"nq", model.nq},
            {"nv", model.nv},
            {"nu", model.actuators.size()},
            {"nbody", model.bodies.size()},
            {"njnt", model.joints.size()},
            {"ngeom", model.geoms},
            {"nsite", model.sites.size()}}},
          {"qpos_order", qpos_order}};
}

}  // namespace cohort::tasks::libero::compose
