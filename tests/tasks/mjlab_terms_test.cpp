// Terms beside mjlab's own functions, fed the same states: mjlab_terms.json, by make_mjlab_terms.py.
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "sim/engine.h"
#include "support/process.h"
#include "tasks/file/file_plan.h"

namespace cohort::tasks {
namespace {

constexpr int kEnvs = 16;

constexpr const char* kTerms = R"yaml({
  "scene": {"robot": {"mjcf": "MODEL", "joint_pos": {".*_abduction": 0, ".*_hip": 0.8, ".*_knee": -1.5}},
            "cube": {"box": [0.1, 0.1, 0.1]},
            "ground": {"terrain": {"size": [0.5, 0.5], "num_rows": 2, "num_cols": 2, "border_width": 0.4,
                                   "sub_terrains": [{"type": "flat"}]}}},
  "simulation": {"timestep": 0.005, "decimation": 4, "soft_joint_pos_limit_factor": 0.9},
  "actions": {"joint_pos": {}},
  "commands": {"twist": {"ranges": {"lin_vel_x": [-1, 1]}}},
  "observations": {"policy": {
    "base_lin_vel": {}, "base_ang_vel": {}, "projected_gravity": {}, "joint_pos_rel": {}, "joint_vel_rel": {},
    "last_action": {}, "foot_air_time": {"feet": ".*_foot"}, "foot_contact": {"feet": ".*_foot"},
    "foot_contact_forces": {"feet": ".*_foot"}, "foot_height": {"sites": ".*_sole"},
    "ee_to_object_distance": {"object_name": "cube", "site": "fl_sole"}, "ee_velocity": {"site": "fl_sole"},
    "object_to_goal_distance": {"object_name": "cube", "command_name": "twist"},
    "target_position": {"site": "fl_sole", "command_name": "twist"}, "pole_angle_cos_sin": {"joints": "fl_hip"}}},
  "rewards": {
    "track_linear_velocity": {"std": 0.5}, "track_angular_velocity": {"std": 0.70710678}, "flat_orientation_l2": {},
    "body_angular_velocity_penalty": {}, "joint_torques_l2": {}, "joint_vel_l2": {}, "action_rate_l2": {},
    "action_acc_l2": {}, "joint_pos_limits": {}, "posture": {"std": {".*": 0.4}}, "electrical_power_cost": {},
    "feet_air_time": {"feet": ".*_foot", "threshold_min": 0.01, "threshold_max": 0.05, "command_threshold": 0.5},
    "feet_clearance": {"sites": ".*_sole", "target_height": 0.1, "command_threshold": 0.3},
    "feet_slip": {"feet": ".*_foot", "sites": ".*_sole", "command_threshold": 0.3},
    "feet_swing_height": {"feet": ".*_foot", "sites": ".*_sole", "target_height": 0.1, "command_threshold": 0.3},
    "soft_landing": {"feet": ".*_foot", "command_threshold": 0.05}, "upright": {"std": 0.45},
    "variable_posture": {"std_standing": 0.1, "std_walking": 0.3, "std_running": 0.6, "walking_threshold": 0.3,
                         "running_threshold": 1.2},
    "staged_position_reward": {"site": "fl_sole", "object_name": "cube", "command_name": "twist", "reaching_std": 0.5,
                               "bringing_std": 0.7},
    "bring_object_reward": {"object_name": "cube", "command_name": "twist", "std": 0.6},
    "joint_velocity_hinge_penalty": {"max_vel": 0.5}, "cartpole_smooth_reward": {"cart": "fl_knee", "hinge": "fl_hip"},
    "angular_momentum_penalty": {"sensor_name": "root_angmom"}, "mean_action_acc": {},
    "out_of_terrain_bounds": {"formula": "any(abs(base.position[:2]) > max(0, terrain_half_size - 0.3))"},
    "terrain_edge_reached": {"formula": "step > 2 and any(abs(base.position[:2] - at_reset(base.position)[:2]) > 0.95 * patch_half_size)"},
    "bad_orientation": {"formula": "acos(-base.projected_gravity[2]) > 0.8"},
    "root_height_below_minimum": {"formula": "base.position[2] < 0.1"}}
})yaml";

TEST(MjlabTerms, AreThoseOfItsOwnFunctions) {
  const auto fixture =
      parse_json<nlohmann::json>(read_file(std::string(COHORT_SOURCE_DIR) + "/tests/tasks/mjlab_terms.json"));
  std::string text = kTerms;
  // The dog with a site at each foot.
  const testing::TemporaryFolder folder;
  std::string model = read_file(std::string(COHORT_SOURCE_DIR) + "/src/tasks/library/quadruped.xml");
  for (const std::string& leg : std::vector<std::string>{"fl", "fr", "rl", "rr"})
    model.insert(model.find("<geom name=\"" + leg + "_foot\""),
                 "<site name=\"" + leg + "_sole\" pos=\"0.01 -0.02 -0.2\"/>");
  model.insert(model.rfind("</mujoco>"), "<sensor><subtreeangmom name=\"root_angmom\" body=\"trunk\"/></sensor>");
  const std::string path = (folder.path() / "dog.xml").string();
  write_file_atomically(path, model);
  text.replace(text.find("MODEL"), 5, path);
  config::Json content = parse_json<config::Json>(text);
  for (auto& [name, term] : content["rewards"].items()) term["per_second"] = false;
  const FilePlan plan = plan_of_file("terms.json", content, false);
  const sim::ModelInfo& info = plan.model.info;

  // What the program reads: [value][environment].
  std::map<ArrayPlace, std::vector<float>> arrays;
  const auto width = [&](ArrayPlace place) -> std::size_t {
    switch (place.kind) {
      case ArrayPlace::kField:
        return static_cast<std::size_t>(sim::field_size(info, static_cast<sim::Field>(place.which)));
      case ArrayPlace::kAction:
        return plan.spec.action.names.size();
      case ArrayPlace::kObservation:
        return static_cast<std::size_t>(plan.spec.observations[static_cast<std::size_t>(place.which)].elements());
      case ArrayPlace::kTerms:
        return plan.spec.reward_terms.size();
      default:
        return 1;
    }
  };
  for (const ArrayPlace& place : plan.judge_arrays) arrays[place].resize(width(place) * kEnvs);
  std::vector<long long> steps(kEnvs);
  std::vector<terms::Array> bound;
  for (const ArrayPlace& place : plan.judge_arrays) {
    if (place.kind == ArrayPlace::kSteps)
      bound.push_back({steps.data(), terms::ArrayType::kInt64, 1, 1});
    else
      bound.push_back({arrays[place].data(), terms::ArrayType::kFloat, 1, kEnvs});
  }
  std::vector<float> memory(static_cast<std::size_t>(plan.judge.memory_rows) * kEnvs);
  std::vector<unsigned> keys(2 * kEnvs);
  const std::vector<unsigned char> active(kEnvs, 1);
  terms::Evaluation e = plan.judge.evaluation();
  e.arrays = bound.data(), e.memory = memory.data(), e.keys = keys.data(), e.steps = steps.data();
  e.active = active.data(), e.n_pad = kEnvs;
  std::vector<float> registers(static_cast<std::size_t>(plan.judge.registers));

  const auto put = [&](ArrayPlace place, std::size_t value, std::size_t env, float x) {
    const auto array = arrays.find(place);
    if (array != arrays.end()) array->second.at(value * kEnvs + env) = x;
  };
  const auto field = [](sim::Field f) { return ArrayPlace{ArrayPlace::kField, static_cast<int>(f)}; };
  std::vector<std::size_t> feet;
  for (std::size_t g = 0; g < info.geoms.size(); ++g)
    if (info.geoms[g].name.ends_with("_foot")) feet.push_back(g);
  ASSERT_EQ(feet.size(), 4u);
  std::vector<std::size_t> shins;
  for (const std::size_t foot : feet) shins.push_back(static_cast<std::size_t>(info.geoms[foot].link));
  const auto remembered = [&](const std::string& name) {
    const auto slot = std::ranges::find(plan.judge_memories, name, &terms::MemorySlot::name);
    EXPECT_NE(slot, plan.judge_memories.end()) << name;
    return static_cast<std::size_t>(slot->first);
  };
  const std::size_t command = remembered("commands.twist");
  const std::size_t ranges[] = {remembered("commands.twist.lin_vel_x"), remembered("commands.twist.lin_vel_y"),
                                remembered("commands.twist.ang_vel_z")};

  const auto angular_momentum =
      static_cast<std::size_t>(info.sensors[static_cast<std::size_t>(info.sensor("root_angmom"))].address);
  std::size_t compared = 0;
  for (std::size_t t = 0; t < fixture["states"].size(); ++t) {
    const nlohmann::json& state = fixture["states"][t];
    for (std::size_t env = 0; env < kEnvs; ++env) {
      steps[env] = static_cast<long long>(t);
      const auto row = [&](const char* name) { return state[name][env].get<std::vector<float>>(); };
      const std::vector<float> qpos = row("qpos"), qvel = row("qvel"), forces = row("qfrc_actuator"),
                               action = row("action"), told = row("command"), foot = row("foot_force");
      for (std::size_t i = 0; i < qpos.size(); ++i) put(field(sim::Field::kQpos), i, env, qpos[i]);
      const std::vector<float> cube = row("cube_pos");
      for (std::size_t i = 0; i < 3; ++i) put(field(sim::Field::kQpos), qpos.size() + i, env, cube[i]);
      const std::vector<float> momentum = row("angular_momentum");
      for (std::size_t i = 0; i < 3; ++i) put(field(sim::Field::kSensors), angular_momentum + i, env, momentum[i]);
      for (std::size_t i = 0; i < qvel.size(); ++i) put(field(sim::Field::kQvel), i, env, qvel[i]);
      for (std::size_t i = 0; i < forces.size(); ++i) put(field(sim::Field::kQfrcActuator), i, env, forces[i]);
      for (std::size_t i = 0; i < action.size(); ++i) put({ArrayPlace::kAction}, i, env, action[i]);
      for (std::size_t f = 0; f < 4; ++f)
        for (std::size_t i = 0; i < 3; ++i) put(field(sim::Field::kGeomForce), 6 * feet[f] + i, env, foot[3 * f + i]);
      const std::vector<float> pos = row("shin_pos"), quat = row("shin_quat"), twist = row("shin_twist");
      for (std::size_t f = 0; f < 4; ++f) {
        for (std::size_t i = 0; i < 3; ++i) put(field(sim::Field::kLinkPos), 3 * shins[f] + i, env, pos[3 * f + i]);
        for (std::size_t i = 0; i < 4; ++i) put(field(sim::Field::kLinkQuat), 4 * shins[f] + i, env, quat[4 * f + i]);
        for (std::size_t i = 0; i < 6; ++i) put(field(sim::Field::kLinkTwist), 6 * shins[f] + i, env, twist[6 * f + i]);
      }
      // The command of the step that is judged is what the last evaluation has kept, and so are those that stay.
      for (std::size_t i = 0; i < 3; ++i)
        memory[(command + i) * kEnvs + env] = memory[ranges[i] * kEnvs + env] = told[i];
    }
    terms::scalar_run_range()(e, 0, kEnvs, registers.data());
    const auto compare = [&](const std::string& name, ArrayPlace place, std::size_t first, std::size_t n) {
      const nlohmann::json& expected = fixture["expected"][t][name];
      ASSERT_FALSE(expected.is_null()) << name;
      for (std::size_t env = 0; env < kEnvs; ++env) {
        const auto values = expected[env].get<std::vector<double>>();
        ASSERT_EQ(values.size(), n) << name;
        for (std::size_t i = 0; i < n; ++i, ++compared)
          EXPECT_NEAR(static_cast<double>(arrays[place][(first + i) * kEnvs + env]), values[i],
                      1e-5 * std::max(1.0, std::abs(values[i])))
              << name << " [" << i << "], environment " << env << ", step " << t;
      }
    };
    const auto told_anew = [](const std::string& name) {
      return name == "object_to_goal_distance" || name == "target_position";
    };
    for (std::size_t f = 0; f < plan.spec.observations.size(); ++f)
      if (t > 0 || !told_anew(plan.spec.observations[f].name))  // commands are drawn at the reset
        compare(plan.spec.observations[f].name, {ArrayPlace::kObservation, static_cast<int>(f)}, 0,
                static_cast<std::size_t>(plan.spec.observations[f].elements()));
    if (t == 0) continue;  // nothing is paid at the reset
    for (std::size_t i = 0; i < plan.spec.reward_terms.size(); ++i)
      compare(plan.spec.reward_terms[i], {ArrayPlace::kTerms}, i, 1);
  }
  EXPECT_GT(compared, 6000u);
}

}  // namespace
}  // namespace cohort::tasks
