// Randomised parameters: what is read, what is drawn, and what becomes of the model.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/real_at.h"
#include "tasks/events/randomizer.h"
#include "tasks/file/task_file.h"

namespace cohort::tasks {
namespace {

using config::Json;
using sim::Parameter;

/// Two links on a free base, with a position, a velocity and a torque actuator.
constexpr const char* kModel = R"(<mujoco><option timestep='0.002'/><worldbody>
  <geom name='ground' type='plane' size='0 0 .1' friction='.8 .01 .001'/>
  <body name='trunk' pos='0 0 1'><freejoint/><geom name='trunk' type='box' size='.2 .1 .05' mass='4'/>
    <body name='thigh' pos='.2 0 0'><joint name='hip' axis='0 1 0' damping='.2' armature='.01' range='-80 80' limited='true'/>
      <geom name='thigh' type='capsule' fromto='0 0 0 0 0 -.3' size='.03' mass='1'/>
      <body name='shin' pos='0 0 -.3'><joint name='knee' axis='0 1 0' damping='.1' armature='.02'/>
        <geom name='shin' type='capsule' fromto='0 0 0 0 0 -.3' size='.02' mass='.5'/>
        <geom name='foot' type='sphere' pos='0 0 -.3' size='.04' mass='.1' friction='.6 .02 .002'/>
        <joint name='ankle' axis='1 0 0' pos='0 0 -.3'/></body></body></body></worldbody>
  <actuator><position name='hip' joint='hip' kp='40' kv='2' forcerange='-20 20'/><velocity name='knee' joint='knee' kv='3'/>
    <motor name='ankle' joint='ankle' gear='2'/></actuator></mujoco>)";

std::unique_ptr<sim::Scene> make_scene(int n, sim::EngineKind engine = sim::EngineKind::kBatched, int threads = 1) {
  sim::SceneOptions o;
  o.engine = engine;
  o.threads = threads;
  auto scene = std::make_unique<sim::Scene>(o);
  scene->add_entity(sim::Mjcf{.file = "", .xml = kModel}, "robot");
  scene->build(n);
  return scene;
}

sim::EntityInfo entity_of_robot() {
  static const std::unique_ptr<sim::Scene> kScene = make_scene(1);
  const sim::Entity robot = kScene->entity("robot");
  return {"robot", {robot.links().begin(), robot.links().end()}, {robot.geoms().begin(), robot.geoms().end()}};
}

Randomization read(const std::string& name, const std::string& event, const sim::ModelInfo& info) {
  std::vector<std::string> refused;
  Randomization r;
  {
    config::JsonSection section(parse_json<Json>(event), "events." + name, refused);
    const std::vector<sim::EntityInfo> entities{entity_of_robot()};
    r = read_randomization(section, name, info, entities, "robot");
  }
  if (!refused.empty()) throw Error(refused.front());
  return r;
}

const sim::ModelInfo& model_info() {
  static const std::unique_ptr<sim::Scene> kScene = make_scene(1);
  return kScene->info();
}
std::string fault(const std::string& event, const std::string& name = "event") {
  return message_of([&] { read(name, event, model_info()); });
}

/// The first `n` values of a parameter of an environment.
std::vector<double> row(sim::Scene& scene, Parameter parameter, int env) {
  const ArrayView v = scene.engine().parameter(parameter);
  std::vector<double> values;
  for (std::int64_t i = 0; i < v.shape[1]; ++i) values.push_back(real_at(v, env, i));
  return values;
}

TEST(Randomization, AnEventIsReadByNameOrTypeWithMjlabsDefaults) {
  const sim::ModelInfo& info = model_info();
  const Randomization mass = read("body_mass", R"({"ranges": [0.5, 2]})", info);
  EXPECT_EQ(mass.operation, RandomOperation::kScale);
  EXPECT_EQ(mass.writes.size(), 3u) << "all links of the robot, the world not";
  const Randomization friction =
      read("feet", R"({"type": "geom_friction", "geoms": ".*foot", "ranges": [0.3, 1.2]})", info);
  EXPECT_EQ(friction.operation, RandomOperation::kAbs);
  ASSERT_EQ(friction.writes.size(), 1u) << "sliding alone";
  EXPECT_EQ(friction.writes[0].item, 3 * info.geom("foot"));
  const Randomization axes = read(
      "feet", R"({"type": "geom_friction", "links": "shin", "ranges": {"0": [0.3, 1.2], "2": 0.1}, "mode": "startup"})",
      info);
  EXPECT_EQ(axes.writes.size(), 4u) << "two axes of two geoms";
  const Randomization by_name =
      read("dof_damping", R"({"ranges": {"hip": [0.1, 0.2], "k.*": [1, 2]}, "operation": "scale"})", info);
  ASSERT_EQ(by_name.writes.size(), 2u);
  EXPECT_EQ(by_name.writes[1].range.high, 2);
}

TEST(Randomization, WhatIsWrongIsSaidWithARemedy) {
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n lacks: " << part;
  };
  has(fault(R"({"type": "body_mas", "ranges": [1, 2]})"),
      "there is no randomisation 'body_mas', did you mean 'body_mass'?");
  has(fault(R"({"type": "body_mass", "links": "tronk", "ranges": [1, 2]})"),
      "no link matches 'tronk', did you mean 'trunk'?");
  has(fault(R"({"type": "body_mass", "ranges": [2, 1]})"), "ranges is [2,1]: low is above high");
  has(fault(R"({"type": "body_mass"})"), "ranges is missing: [low, high]");
  has(fault(R"({"type": "body_mass", "ranges": [0, 1], "distribution": "log_uniform"})"), "above zero");
  has(fault(R"({"type": "body_mass", "ranges": [1, -1], "distribution": "gaussian"})"), "standard deviation is below");
  has(fault(R"({"type": "body_mass", "ranges": [1, 2], "distribution": "normal"})"),
      "there is no distribution 'normal'");
  has(fault(R"({"type": "body_mass", "ranges": [1, 2], "operation": "mul"})"), "there are abs, add, scale");
  has(fault(R"({"type": "body_mass", "ranges": [1, 2], "mode": "interval"})"), "seconds lie between");
  has(fault(R"({"type": "body_mass", "ranges": [1, 2], "entity": "table"})"),
      "there is no entity 'table'; there is robot");
  has(fault(R"({"type": "body_mass", "ranges": [1, 2], "rangs": 1})"), "is ranges meant?");
  has(fault(R"({"type": "geom_friction", "ranges": {"3": [1, 2]}})"), "there is no axis 3: they are 0 to 2");
  has(fault(R"({"type": "pd_gains", "actuators": "ankle", "kp_range": [1, 2]})"), "no gains of position or velocity");
  has(fault(R"({"type": "pd_gains", "operation": "add", "kp_range": [1, 2]})"), "operation is 'scale' or 'abs'");
  has(fault(R"({"type": "action_delay", "delay_range": [-1, 2]})"), "before it is given");
}

/// Drawn values of one environment whose episode has this key.
std::vector<double> draw_one(const Randomization& r, Parameter parameter, std::uint64_t key) {
  const std::unique_ptr<sim::Scene> scene = make_scene(1);
  Randomizer randomizer({r}, *scene, 0.02);
  const std::int32_t env = 0;
  randomizer.reset({&env, 1}, {&key, 1});
  return row(*scene, parameter, 0);
}

TEST(Randomization, TenThousandSeedsHaveTheDistributionsMeanAndRange) {
  const sim::ModelInfo& info = model_info();
  constexpr int kSeeds = 10000;
  struct Case {
    const char* event;
    double mean, low, high, deviation;
  };
  // Of the knee's damping, whose own value is 0.1.
  const double log_mean = 1.5 / std::log(4.0);  // of log_uniform in [0.5, 2]
  const Case cases[] = {
      {R"({"joints": "knee", "ranges": [0.2, 1]})", 0.6, 0.2, 1, 0.8 / std::sqrt(12.0)},
      {R"({"joints": "knee", "ranges": [0.5, 1.5], "operation": "scale"})", 0.1, 0.05, 0.15, 0.1 / std::sqrt(12.0)},
      {R"({"joints": "knee", "ranges": [0, 0.4], "operation": "add"})", 0.3, 0.1, 0.5, 0.4 / std::sqrt(12.0)},
      {R"({"joints": "knee", "ranges": [0.5, 2], "operation": "scale", "distribution": "log_uniform"})", 0.1 * log_mean,
       0.05, 0.2, 0.0},
      {R"({"joints": "knee", "ranges": [2, 0.2], "distribution": "gaussian"})", 2, 1, 3, 0.2},
      {R"({"joints": "knee", "ranges": 0.7, "distribution": "constant"})", 0.7, 0.7, 0.7, 0},
  };
  std::unique_ptr<sim::Scene> scene = make_scene(kSeeds);
  std::vector<std::int32_t> envs;
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < kSeeds; ++i) envs.push_back(i), keys.push_back(static_cast<std::uint64_t>(i) * 977);
  for (const Case& c : cases) {
    Randomizer randomizer({read("dof_damping", c.event, info)}, *scene, 0.02);
    randomizer.reset(envs, keys);
    const ArrayView v = scene->engine().parameter(Parameter::kDofDamping);
    const int knee = info.joints[static_cast<std::size_t>(info.joint("knee"))].dof;
    double sum = 0, squared = 0, low = 1e9, high = -1e9;
    for (int e = 0; e < kSeeds; ++e) {
      const double x = real_at(v, e, knee);
      sum += x, squared += x * x, low = std::min(low, x), high = std::max(high, x);
    }
    const double mean = sum / kSeeds, deviation = std::sqrt(std::max(0.0, squared / kSeeds - mean * mean));
    EXPECT_NEAR(mean, c.mean, 0.02 * c.mean) << c.event;
    EXPECT_GE(low, c.low - 1e-6) << c.event;
    EXPECT_LE(high, c.high + 1e-6) << c.event;
    if (c.deviation > 0) EXPECT_NEAR(deviation, c.deviation, 0.03 * c.deviation) << c.event;
  }
}

TEST(Randomization, ASeedGivesTheSameValuesWhateverTheBatchAndTheOrder) {
  const sim::ModelInfo& info = model_info();
  const std::vector<Randomization> all{read("body_mass", R"({"ranges": [0.5, 2]})", info),
                                       read("geom_friction", R"({"ranges": [0.3, 1]})", info),
                                       read("pd_gains", R"({"kp_range": [0.5, 2], "kd_range": [0.5, 2]})", info)};
  constexpr int kEnvs = 40;
  std::unique_ptr<sim::Scene> whole = make_scene(kEnvs);
  Randomizer randomizer(all, *whole, 0.02);
  std::vector<std::int32_t> envs;
  std::vector<std::uint64_t> keys;
  for (int i = 0; i < kEnvs; ++i) envs.push_back(kEnvs - 1 - i), keys.push_back(1000 + static_cast<std::uint64_t>(i));
  randomizer.reset(envs, keys);
  std::unique_ptr<sim::Scene> alone = make_scene(1, sim::EngineKind::kBatched, 2);
  Randomizer one(all, *alone, 0.02);
  const std::int32_t first = 0;
  for (const int i : {0, 7, 39}) {
    const std::uint64_t before = 5;
    one.reset({&first, 1}, {&before, 1});  // an episode before leaves nothing
    one.reset({&first, 1}, {&keys[static_cast<std::size_t>(i)], 1});
    for (const Parameter p : parameters_of(all))
      EXPECT_EQ(row(*alone, p, 0), row(*whole, p, envs[static_cast<std::size_t>(i)])) << i;
  }
  EXPECT_NE(row(*whole, Parameter::kLinkMass, 0), row(*whole, Parameter::kLinkMass, 1));
}

TEST(Randomization, WhatIsAddressedKeepsItsDrawWhenOthersAreAddressedToo) {
  const sim::ModelInfo& info = model_info();
  const auto mass = [&](const char* event) {
    return draw_one(read("body_mass", event, info), Parameter::kLinkMass,
                    11)[static_cast<std::size_t>(info.link("shin"))];
  };
  EXPECT_EQ(mass(R"({"links": "shin", "ranges": [1, 2]})"), mass(R"({"links": ".*", "ranges": [1, 2]})"));
  const std::vector<double> shared =
      draw_one(read("body_mass", R"({"ranges": [1, 2], "operation": "abs", "shared_random": true})", info),
               Parameter::kLinkMass, 11);
  EXPECT_EQ(shared[1], shared[2]);
  EXPECT_EQ(shared[1], shared[3]);
}

TEST(Randomization, GainsKeepTheShapeOfTheirActuators) {
  const sim::ModelInfo& info = model_info();
  const auto values = [&](const char* kind, const char* event, Parameter p) {
    return draw_one(read(kind, event, info), p, 3);
  };
  const char* scale = R"({"kp_range": [0.5, 2], "kd_range": [0.5, 2]})";
  const std::vector<double> gain = values("pd_gains", scale, Parameter::kActuatorGain),
                            bias = values("pd_gains", scale, Parameter::kActuatorBias);
  EXPECT_NE(gain[0], 40);
  EXPECT_EQ(gain[0], -bias[1]);
  EXPECT_NE(bias[2], -2);
  EXPECT_EQ(gain[10], -bias[12]) << "a velocity actuator's";
  EXPECT_EQ(gain[20], 1) << "a motor's stays";
  const char* fixed = R"({"operation": "abs", "kp_range": 30, "kd_range": 1, "distribution": "constant"})";
  EXPECT_EQ(values("pd_gains", fixed, Parameter::kActuatorGain)[0], 30);
  EXPECT_EQ(values("pd_gains", fixed, Parameter::kActuatorBias)[1], -30);
  EXPECT_EQ(values("pd_gains", fixed, Parameter::kActuatorBias)[2], -1);
  const char* strong = R"({"actuators": "hip", "ranges": 1.5, "distribution": "constant"})";
  EXPECT_EQ(values("motor_strength", strong, Parameter::kActuatorGain)[0], 60);
  EXPECT_EQ(values("motor_strength", strong, Parameter::kActuatorBias)[2], -3);
}

TEST(Randomization, AGeomsSizePlaceAndTurnAreThoseThatItsShapeHas) {
  const sim::ModelInfo& info = model_info();
  const auto values = [&](const char* kind, const char* event, Parameter p) {
    return draw_one(read(kind, event, info), p, 3);
  };
  const auto first = [&](const char* geom, int width) { return static_cast<std::size_t>(width * info.geom(geom)); };
  const std::vector<double> size =
      values("geom_size", R"({"ranges": 2, "distribution": "constant"})", Parameter::kGeomSize);
  EXPECT_NEAR(size[first("foot", 3)], 0.08, 1e-7);
  EXPECT_NEAR(size[first("thigh", 3) + 1], 0.3, 1e-7) << "half the length of a capsule";
  EXPECT_NEAR(size[first("trunk", 3) + 2], 0.1, 1e-7);
  EXPECT_NEAR(size[first("ground", 3) + 2], 0.1, 1e-7) << "a plane keeps its own";
  const std::vector<double> widths =
      values("geom_size", R"({"geoms": ["trunk", "foot"], "axes": [2], "ranges": [3, 4], "operation": "abs"})",
             Parameter::kGeomSize);
  EXPECT_GE(widths[first("trunk", 3) + 2], 3);
  EXPECT_NEAR(widths[first("foot", 3)], 0.04, 1e-7) << "a sphere has no third size";
  const std::vector<double> pos =
      values("geom_pos", R"({"geoms": "foot", "operation": "add", "ranges": {"x": [0.1, 0.2]}})", Parameter::kGeomPos);
  EXPECT_GE(pos[first("foot", 3)], 0.1);
  EXPECT_NEAR(pos[first("foot", 3) + 2], -0.3, 1e-7);
  // Turned about the link's y by a right angle, then about its z: a box that looked along x looks along -z.
  const std::vector<double> quat = values(
      "geom_quat", R"({"geoms": "trunk", "pitch_range": 1.5707963, "yaw_range": 0.5, "distribution": "constant"})",
      Parameter::kGeomQuat);
  const double *q = quat.data() + first("trunk", 4), w = q[0], x = q[1], y = q[2], z = q[3];
  EXPECT_NEAR(w * w + x * x + y * y + z * z, 1, 1e-6);
  EXPECT_NEAR(2 * (x * z - w * y), -1, 1e-6);
  const auto has = [](const std::string& text, const std::string& part) {
    EXPECT_NE(text.find(part), std::string::npos) << text << "\n lacks: " << part;
  };
  has(fault(R"({"type": "geom_size", "geoms": "ground", "ranges": [1, 2], "entity": ""})"),
      "the geom 'ground' is a plane: geom_size is about spheres, capsules, ellipsoids, cylinders and boxes");
  has(fault(R"({"type": "geom_size", "ranges": [-1, 2], "operation": "abs"})"),
      "begin at -1: a size is more than zero");
  has(fault(R"({"type": "geom_quat", "geoms": "foot"})"), "geom_quat needs roll_range, pitch_range or yaw_range");
  has(fault(R"({"type": "geom_quat", "operation": "scale", "yaw_range": [0, 1]})"), "geom_quat's operation is none");
}

TEST(Randomization, TaskValuesAreNumbersOfEveryEnvironment) {
  std::unique_ptr<sim::Scene> scene = make_scene(5);
  const sim::ModelInfo& info = scene->info();
  Randomizer randomizer(
      {read("encoder_bias", R"({"joints": "knee", "bias_range": [-0.1, 0.1]})", info),
       read("action_delay", R"({"delay_range": [1, 3]})", info),
       read("apply_external_force_torque", R"({"links": "trunk", "force_range": {"z": [5, 6]}})", info)},
      *scene, 0.02);
  const std::vector<std::int32_t> envs{0, 1, 2, 4};
  int seen = 0;
  for (std::uint64_t seed = 0; seed < 30; ++seed) {
    randomizer.reset(envs, std::vector<std::uint64_t>{seed, seed + 100, seed + 200, seed + 300});
    const ArrayView bias = randomizer.task_values(TaskParameter::kEncoderBias),
                    delay = randomizer.task_values(TaskParameter::kActionDelay);
    EXPECT_LE(std::abs(real_at(bias, 0, info.joint("knee"))), 0.1f);
    EXPECT_NE(real_at(bias, 0, info.joint("knee")), 0);
    EXPECT_EQ(real_at(bias, 0, info.joint("hip")), 0);
    EXPECT_EQ(real_at(bias, 3, info.joint("knee")), 0) << "no episode began there";
    const double d = real_at(delay, 1, 0);
    ASSERT_TRUE(d == 1 || d == 2 || d == 3) << d;
    seen |= 1 << static_cast<int>(d);
  }
  EXPECT_EQ(seen, 14) << "every whole number of the range";
  const ArrayView force = scene->engine().view(sim::Field::kXfrcApplied);
  EXPECT_GE(real_at(force, 1, 6 * info.link("trunk") + 2), 5);
}

TEST(Randomization, AnIntervalDrawsAnewByTheEpisodesClockAlone) {
  std::unique_ptr<sim::Scene> scene = make_scene(3);
  const sim::ModelInfo& info = scene->info();
  const Randomization event =
      read("dof_damping", R"({"joints": "knee", "ranges": [1, 2], "mode": "interval", "interval_range_s": [0.1, 0.3]})",
           info);
  const int knee = info.joints[static_cast<std::size_t>(info.joint("knee"))].dof;
  Randomizer randomizer({event}, *scene, 0.02);
  const std::vector<std::uint64_t> keys{7, 8, 7};
  std::vector<std::int64_t> steps{0, 0, 0};
  randomizer.reset(std::vector<std::int32_t>{0, 1}, std::vector<std::uint64_t>{7, 8});
  std::vector<std::vector<double>> told(3);
  const auto value = [&](int env) { return real_at(scene->engine().parameter(Parameter::kDofDamping), env, knee); };
  for (int s = 0; s < 120; ++s) {
    if (s == 20) randomizer.reset(std::vector<std::int32_t>{2}, std::vector<std::uint64_t>{7}), steps[2] = 0;
    if (s < 20) steps[2] = 0;
    randomizer.step(steps, keys);
    for (int e = 0; e < 3; ++e)
      if (e < 2 || s >= 20) told[static_cast<std::size_t>(e)].push_back(value(e));
    for (std::int64_t& step : steps) ++step;
  }
  EXPECT_FLOAT_EQ(static_cast<float>(told[0].front()), 0.1f) << "the model's until the first time";
  told[0].resize(100);
  EXPECT_EQ(told[0], told[2]) << "20 steps later, the same";
  int changes = 0;
  for (std::size_t i = 1; i < told[0].size(); ++i) changes += told[0][i] != told[0][i - 1];
  EXPECT_GE(changes, 6);
  EXPECT_LE(changes, 20);
}

TEST(Randomization, PseudoInertiaIsMjlabs) {
  const Json cases =
      parse_json<Json>(read_file(std::filesystem::path(COHORT_SOURCE_DIR) / "tests" / "tasks" / "pseudo_inertia.json"));
  ASSERT_EQ(cases.size(), 12u);
  for (const Json& c : cases) {
    LinkInertia before;
    before.mass = c["mass"].get<double>();
    before.com = c["com"].get<std::array<double, 3>>();
    before.moments = c["moments"].get<std::array<double, 3>>();
    before.quat = c["quat"].get<std::array<double, 4>>();
    const LinkInertia after = perturbed(before, c["by"].get<std::array<double, 10>>());
    EXPECT_NEAR(after.mass, c["new_mass"].get<double>(), 1e-9);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(after.com[i], c["new_com"][i].get<double>(), 1e-9);
    // The axes' order and signs are free: the tensor is not.
    const auto [w, x, y, z] = after.quat;
    const double R[3][3] = {{1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)},
                            {2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)},
                            {2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)}};
    for (std::size_t i = 0; i < 3; ++i) {
      for (std::size_t j = 0; j < 3; ++j) {
        double entry = 0;
        for (std::size_t k = 0; k < 3; ++k) entry += R[i][k] * after.moments[k] * R[j][k];
        EXPECT_NEAR(entry, c["new_inertia"][3 * i + j].get<double>(), 1e-9);
      }
    }
  }
}

TEST(Randomization, InertiasCentresAndLimitsAreWrittenWhereTheyBelong) {
  const sim::ModelInfo& info = model_info();
  const auto link = [&](const char* name) { return static_cast<std::size_t>(info.link(name)); };
  std::unique_ptr<sim::Scene> scene = make_scene(1);
  const auto model = [&](Parameter p) { return scene->engine().model_values(p); };
  const auto values = [&](const char* kind, const char* event, Parameter p) {
    return draw_one(read(kind, event, info), p, 9);
  };
  // Mass and moments grow together, centre and axes stay; a whole subtree by one factor.
  const char* density = R"({"links": "thigh", "alpha_range": [0.1, 0.3]})";
  const double mass = values("pseudo_inertia", density, Parameter::kLinkMass)[link("thigh")];
  EXPECT_GE(mass, std::exp(0.2) - 1e-6);
  EXPECT_LE(mass, std::exp(0.6) + 1e-6);
  EXPECT_NEAR(values("pseudo_inertia", density, Parameter::kLinkInertia)[3 * link("thigh") + 1] /
                  static_cast<double>(model(Parameter::kLinkInertia)[3 * link("thigh") + 1]),
              mass, 1e-5);
  EXPECT_EQ(parameters_of(std::vector{read("pseudo_inertia", density, info)}).size(), 2u);
  EXPECT_EQ(parameters_of(std::vector{read("pseudo_inertia", R"({"t_range": [-0.1, 0.1]})", info)}).size(), 4u);
  const std::vector<double> tree =
      values("body_mass", R"({"links": "thigh", "subtree": true, "ranges": [1.5, 2]})", Parameter::kLinkMass);
  EXPECT_EQ(tree[link("trunk")], 4);
  EXPECT_NEAR(tree[link("thigh")] / 1, tree[link("shin")] / 0.6, 1e-6);
  const std::vector<double> com =
      values("body_com_offset", R"({"links": "trunk", "ranges": {"x": [0.1, 0.2]}})", Parameter::kLinkCom);
  EXPECT_GE(com[3 * link("trunk")], 0.1 - 1e-7);
  EXPECT_EQ(com[3 * link("trunk") + 2], 0);
  const std::vector<double> gravity = values("gravity", R"({"ranges": {"z": [-1, 1]}})", Parameter::kGravity);
  EXPECT_NE(gravity[2], -9.81f);
  EXPECT_EQ(gravity[0], 0);
  const std::vector<double> effort =
      values("effort_limits", R"({"effort_limit_range": [0.5, 0.9]})", Parameter::kActuatorForceRange);
  EXPECT_EQ(effort[0], -effort[1]);
  EXPECT_LE(effort[1], 18.0001);
  EXPECT_EQ(
      values("effort_limits", R"({"operation": "abs", "effort_limit_range": 7})", Parameter::kActuatorForceRange)[0],
      -7);
  const auto hip = static_cast<std::size_t>(info.joint("hip"));
  const std::vector<double> range =
      values("joint_limits", R"({"operation": "scale", "ranges": [0.5, 0.6]})", Parameter::kJointRange);
  EXPECT_NEAR(range[2 * hip + 1], 0.55 * info.joints[hip].range[1], 0.051 * info.joints[hip].range[1]);
  EXPECT_NE(fault(R"({"type": "jnt_range", "joints": "knee", "ranges": [0, 1]})").find("has no limits in the model"),
            std::string::npos);
  EXPECT_NE(
      fault(R"({"type": "effort_limits", "actuators": "ankle", "effort_limit_range": 1})").find("give it a forcerange"),
      std::string::npos);
}

std::string write_task(const std::string& events) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / format("cohort_randomization_{}", getpid());
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "robot.xml") << kModel;
  std::ofstream(folder / "task.yaml") << R"(
summary: stand
scene: {robot: {mjcf: robot.xml}}
simulation: {control_period: 0.02, episode_length_s: 2}
actions: {hip: {type: joint_effort, joints: ankle, scale: 1}}
observations: {policy: {q: joint_pos, b: 'joint_pos("knee") + encoder_bias("knee")', d: action_delay}}
rewards: {up: {formula: "1"}}
events:
)" << events;
  return (folder / "task.yaml").string();
}

TEST(Randomization, ATaskOfAFileIsAFunctionOfItsSeedsAndIsSavedWhole) {
  const std::string file = write_task(
      "  body_mass: {ranges: [0.5, 2]}\n  encoder_bias: {joints: knee, bias_range: [0.01, 0.2]}\n"
      "  action_delay: {delay_range: [0, 4]}\n  pseudo_inertia: {alpha_range: [-0.2, 0.2], t_range: [-0.02, 0.02]}\n"
      "  gravity: {ranges: [-0.5, 0.5]}\n  jnt_range: {operation: scale, ranges: [0.8, 1.1]}\n  effort_limits: "
      "{effort_limit_range: [0.7, 1]}\n"
      "  geom_size: {ranges: [0.7, 1.3]}\n  geom_pos: {operation: add, ranges: [-0.02, 0.02]}\n"
      "  geom_quat: {geoms: trunk, roll_range: [-0.3, 0.3], mode: interval, interval_range_s: [0.1, 0.2]}\n"
      "  dof_damping: {ranges: [0, 2], mode: interval, interval_range_s: [0.1, 0.2]}\n"
      "  apply_external_force_torque: {links: trunk, force_range: [-3, 3], mode: interval, interval_range_s: [0.1, "
      "0.3]}\n");
  for (const char* engine : {"batched", "mujoco"}) {
    const auto make = [&](int n, int threads) {
      TaskSettings s;
      s.n_envs = n;
      s.engine = engine;
      s.threads = threads;
      return make_file_task(file, s);
    };
    const auto run = [](Task& task, int steps) {
      std::vector<float> seen;
      std::vector<float> action(static_cast<std::size_t>(task.n_envs()), 0.3f);
      for (int s = 0; s < steps; ++s) {
        task.step(make_view(action.data(), {task.n_envs(), 1}));
        const ArrayView o = task.observation(0);
        seen.assign(o.span<float>().begin(), o.span<float>().end());
      }
      return seen;
    };
    const std::unique_ptr<Task> three = make(3, 1), one = make(1, 2);
    three->reset(std::vector<std::int32_t>{0, 1, 2}, std::vector<std::uint64_t>{4, 5, 6});
    one->reset(std::vector<std::int32_t>{0}, std::vector<std::uint64_t>{6});
    const std::vector<float> all = run(*three, 40), alone = run(*one, 40);
    ASSERT_EQ(all.size(), 3 * alone.size());
    for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(all[2 * alone.size() + i], alone[i]) << engine << i;
    // What is loaded goes on as what was saved.
    const TaskState saved = one->save();
    const std::unique_ptr<Task> again = make(1, 1);
    again->reset(std::vector<std::int32_t>{0}, std::vector<std::uint64_t>{99});
    again->load(saved, "a test");
    EXPECT_EQ(run(*again, 40), run(*one, 40)) << engine;
  }
  std::filesystem::remove_all(std::filesystem::path(file).parent_path());
}

}  // namespace
}  // namespace cohort::tasks
