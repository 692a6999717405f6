// ModelEdits: a model file's actuators, properties, sensors and start before it is compiled, beside what mjlab makes of
// the same file with the same settings.
#include <cmath>
#include <memory>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "sim/edited_model.h"
#include "sim/host/kinematics.h"
#include "sim/host/scene.h"

namespace cohort::sim {
namespace {

const std::string kFixtures = COHORT_SOURCE_DIR "/tests/sim/fixtures/";

/// The settings of make_edits_fixture.py.
ModelEdits edits_of_fixture() {
  const std::string foot = ".*_foot_collision";
  ModelEdits edits;
  edits.actuators = {
      {.joints = {"tail_joint"}, .kind = ActuatorEdit::Kind::kMotor, .effort_limit = 2, .gear = 3},
      {.joints = {".*_hip_joint"}, .stiffness = 20, .damping = 1.5, .effort_limit = 24, .armature = 0.004},
      {.joints = {"left_knee_joint"}, .stiffness = 35, .damping = 2, .friction_loss = 0.1},
      {.joints = {"right_knee_joint"},
       .kind = ActuatorEdit::Kind::kVelocity,
       .damping = 3,
       .effort_limit = 30,
       .armature = 0.01}};
  edits.disable_collisions = {".*"};
  edits.geoms = {{.pattern = foot,
                  .conaffinity = 3,
                  .condim = 6,
                  .priority = 1,
                  .friction = {1, 5e-3, 5e-4},
                  .solimp = {0.9, 0.95, 0.023},
                  .margin = 0.002},
                 {.pattern = ".*_calf_collision", .friction = {0.5}},
                 {.pattern = R"(.*_collision\d*)",
                  .contype = 1,
                  .conaffinity = 1,
                  .condim = 1,
                  .priority = 0,
                  .solref = {0.01, 1}}};
  edits.init = InitialState{.base = Pose{{0, 0, 0.35}, {0.9950041652780258, 0, 0, 0.09983341664682815}},
                            .joints = {{"left_hip_joint", 0.1}, {".*_hip_joint", -0.1}, {".*_knee_joint", -1.2}}};
  return edits;
}

std::unique_ptr<Scene> scene_of(Morph morph, const std::string& name = "robot") {
  auto scene = std::make_unique<Scene>(SceneOptions{.engine = EngineKind::kMujoco});
  scene->add_entity(std::move(morph), name);
  scene->build(1);
  return scene;
}
std::string message_with(const ModelEdits& edits) {
  return message_of([&] { scene_of(Mjcf{.file = kFixtures + "edited_robot.xml", .edits = edits}); });
}

TEST(ModelEdits, MakeTheModelThatMjlabMakes) {
  const auto expected = parse_json<nlohmann::json>(read_file(kFixtures + "edits_expected.json"));
  const auto scene = scene_of(Mjcf{.file = kFixtures + "edited_robot.xml", .edits = edits_of_fixture()});
  expect_mjlabs_model(*scene, "init_state", expected);
}

/// The base pose is in the file's frame, which the entity's pose puts into the scene; others' coordinates stay.
TEST(ModelEdits, OfAnEntityWithAPoseAreItsOwnAndItsKeyframeIsPlacedWithIt) {
  Scene scene({.engine = EngineKind::kMujoco});
  scene.add_entity(Plane{}, "floor");
  scene.add_entity(Box{.size = {0.1, 0.1, 0.1}, .shape = {.pose = {.pos = {2, 0, 0.05}}}}, "box");
  ModelEdits edits = edits_of_fixture();
  edits.geoms[0].pattern = "dog/.*_foot_collision";
  scene.add_entity(Mjcf{.file = kFixtures + "edited_robot.xml", .pose = Pose{{1, 0, 0.1}}, .edits = edits}, "dog");
  scene.build(2);
  const ModelInfo& info = scene.info();
  const KeyframeInfo& key = info.keyframes.at(static_cast<std::size_t>(info.keyframe("dog/init_state")));
  ASSERT_EQ(key.qpos.size(), 7u + 12u);
  const auto at = [&](const char* joint) {
    return key.qpos[static_cast<std::size_t>(info.joints[static_cast<std::size_t>(info.joint(joint))].qpos)];
  };
  EXPECT_EQ(key.qpos[0], 2);
  EXPECT_EQ(at("dog/root"), 1);
  EXPECT_EQ(at("dog/left_hip_joint"), 0.1);
  EXPECT_EQ(at("dog/tail_joint"), 0);
  const ActuatorInfo& knee = info.actuators.at(static_cast<std::size_t>(info.actuator("dog/left_knee_joint")));
  EXPECT_EQ(knee.kind, ActuatorInfo::Kind::kPosition);
  EXPECT_EQ(key.ctrl.at(static_cast<std::size_t>(knee.ctrl)), -1.2);
}

TEST(ModelEdits, OfTheSceneRootStandBesideOtherEntities) {
  Scene scene({.engine = EngineKind::kMujoco});
  scene.add_entity(Mjcf{.file = kFixtures + "edited_robot.xml", .edits = edits_of_fixture()}, "dog");
  scene.add_entity(Box{.size = {0.1, 0.1, 0.1}, .shape = {.pose = {.pos = {2, 0, 0.05}}}}, "box");
  scene.build(1);
  const ModelInfo& info = scene.info();
  const KeyframeInfo& key = info.keyframes.at(static_cast<std::size_t>(info.keyframe("init_state")));
  ASSERT_EQ(key.qpos.size(), 7u + 12u);
  const auto box = static_cast<std::size_t>(info.joints.back().qpos);
  EXPECT_EQ(info.joints.back().type, JointType::kFree);
  EXPECT_EQ(key.qpos[box], 2);
  EXPECT_EQ(key.qpos[2], 0.35);
}

constexpr const char* kArm = R"(<mujoco><compiler angle="degree"/><worldbody>
  <body name="stand" pos="0 0 0.5" euler="0 0 90"><geom name="stand" size="0.1"/>
    <body name="upper" pos="0 0 0.1"><joint name="turn" axis="0 0 1" range="-90 90" ref="30"/>
      <geom name="upper" type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body name="lower" pos="0.3 0 0"><joint name="reach" type="slide" axis="1 0 0" range="0 0.2"/>
        <geom name="lower" size="0.03"/><site name="grip" pos="0.1 0 0"/></body></body></body></worldbody>
  <actuator><motor name="turner" joint="turn"/><position name="pusher" joint="reach" kp="5"/></actuator>
  <keyframe><key name="home" qpos="0.5 0.1" ctrl="7 0.1"/></keyframe></mujoco>)";

TEST(ModelEdits, ReplaceAnActuatorAndKeepTheKeyframesOfTheFile) {
  ModelEdits edits;
  edits.actuators = {{.joints = {"turn"}, .stiffness = 10, .damping = 1, .effort_limit = 5, .gear = 2}};
  const auto scene = scene_of(Mjcf{.file = "", .xml = kArm, .edits = edits});
  const ModelInfo& info = scene->info();
  ASSERT_EQ(info.nu, 2);
  EXPECT_EQ(info.actuators[0].name, "pusher");
  EXPECT_EQ(info.actuators[1].name, "turn");
  const KeyframeInfo& home = info.keyframes.at(static_cast<std::size_t>(info.keyframe("home")));
  EXPECT_EQ(home.qpos, (std::vector<double>{0.5, 0.1}));
  EXPECT_EQ(home.ctrl, (std::vector<double>{0.1, 1}));  // of the new one: what holds 0.5 rad through a gear of 2
}

TEST(ModelEdits, AreInRadiansInAFileOfDegrees) {
  ModelEdits edits;
  edits.joints = {{.pattern = "turn",
                   .armature = 0.2,
                   .damping = 0.3,
                   .friction_loss = 0.4,
                   .stiffness = 0.5,
                   .range = std::array<double, 2>{-1, 1.5}},
                  {.pattern = ".*", .damping = 7}};
  edits.init = InitialState{.keyframe = "start", .joints = {{"reach", 0.15}}};
  const auto scene = scene_of(Mjcf{.file = "", .xml = kArm, .edits = edits});
  const JointInfo& turn = scene->info().joints[0];
  EXPECT_TRUE(turn.limited);
  EXPECT_NEAR(turn.range[0], -1, 1e-12);
  EXPECT_NEAR(turn.range[1], 1.5, 1e-12);
  const mj::ModelPtr m = mj::load(scene->binary_model());
  EXPECT_EQ(m->dof_armature[0], 0.2);
  EXPECT_EQ(m->dof_damping[0], 0.3);  // the first that has it
  EXPECT_EQ(m->dof_damping[1], 7);
  EXPECT_EQ(m->dof_frictionloss[0], 0.4);
  EXPECT_EQ(m->jnt_stiffness[0], 0.5);
  const ModelInfo& info = scene->info();
  const KeyframeInfo& start = info.keyframes.at(static_cast<std::size_t>(info.keyframe("start")));
  EXPECT_NEAR(start.qpos[0], std::acos(-1.0) / 6, 1e-12);  // its reference
  EXPECT_EQ(start.qpos[1], 0.15);
  EXPECT_EQ(start.ctrl, (std::vector<double>{0, 0.15}));
}

TEST(ModelEdits, FreeABaseAndFixItAgain) {
  ModelEdits edits;
  edits.free_base = true;
  auto scene = scene_of(Mjcf{.file = "", .xml = kArm, .edits = edits});
  const ModelInfo& freed = scene->info();
  EXPECT_EQ(freed.joints[0].type, JointType::kFree);
  EXPECT_FALSE(freed.is_fixed(freed.link("stand")));
  const double half = std::sqrt(0.5);
  const std::vector<double> qpos = {0, 0, 0.5, half, 0, 0, half, 0.5, 0.1};
  const KeyframeInfo& home = freed.keyframes.at(static_cast<std::size_t>(freed.keyframe("home")));
  ASSERT_EQ(home.qpos.size(), qpos.size());
  for (std::size_t i = 0; i < qpos.size(); ++i) EXPECT_NEAR(home.qpos[i], qpos[i], 1e-12) << i;
  EXPECT_EQ(home.ctrl, (std::vector<double>{7, 0.1}));

  edits = edits_of_fixture();
  edits.free_base = false;
  scene = scene_of(Mjcf{.file = kFixtures + "edited_robot.xml", .edits = edits});
  const ModelInfo& fixed = scene->info();
  ASSERT_EQ(fixed.nq, 5);
  EXPECT_TRUE(fixed.is_fixed(fixed.link("trunk")));
  const KeyframeInfo& start = fixed.keyframes.at(static_cast<std::size_t>(fixed.keyframe("init_state")));
  EXPECT_EQ(start.qpos, (std::vector<double>{0.1, -1.2, -0.1, -1.2, 0}));
  scene->forward();
  const auto trunk = static_cast<std::size_t>(fixed.link("trunk"));
  EXPECT_NEAR(scene->host_view(Field::kLinkPos).span<double>()[3 * trunk + 2], 0.35, 1e-12);
}

TEST(ModelEdits, AddSensorsAtSitesAndLinks) {
  ModelEdits edits;
  edits.imus = {{.at = "grip"}, {.at = "robot/upper", .name = "upper_imu"}};
  edits.sensors = {{.type = "framelinvel", .object = "lower", .name = "speed"},
                   {.type = "jointpos", .object = "reach", .name = "reached"}};
  const auto scene = scene_of(Mjcf{.file = "", .xml = kArm, .edits = edits});
  const ModelInfo& info = scene->info();
  ASSERT_EQ(info.sensors.size(), 10u);
  EXPECT_EQ(info.nsensordata, 2 * 13 + 3 + 1);
  scene->forward();
  const auto data = scene->host_view(Field::kSensors).span<double>();
  const auto value = [&](const char* sensor, int i) {
    return data[static_cast<std::size_t>(info.sensors[static_cast<std::size_t>(info.sensor(sensor))].address + i)];
  };
  const Kinematics& kinematics = scene->kinematics();
  const Kinematics::SiteFrame grip = kinematics.site_frame(kinematics.site("grip"));
  EXPECT_EQ(grip.link, info.link("lower"));
  EXPECT_EQ(grip.pos, (std::array<double, 3>{0.1, 0, 0}));
  const Kinematics::SiteFrame made = kinematics.site_frame(kinematics.site("upper_imu"));
  EXPECT_EQ(made.link, info.link("upper"));
  EXPECT_EQ(made.pos, (std::array<double, 3>{0, 0, 0}));
  EXPECT_EQ(made.quat, (std::array<double, 4>{1, 0, 0, 0}));
  // The arm reaches along the stand's x, which is the world's y, and holds still at first: it turns about z.
  EXPECT_NEAR(value("upper_imu_quat", 3), std::sin(std::acos(-1.0) / 4), 1e-12);
  EXPECT_EQ(value("imu_gyro", 2), 0);
  EXPECT_EQ(value("reached", 0), 0);
}

TEST(ModelEdits, OfAUrdfWithAFreeBase) {
  const std::string file = COHORT_SOURCE_DIR "/tests/sim/models/two_link.urdf";
  Scene plain({.engine = EngineKind::kMujoco});
  plain.add_entity(Urdf{.file = file}, "arm");
  plain.build(1);
  std::string joint;
  for (const JointInfo& j : plain.info().joints)
    if (j.type == JointType::kHinge && joint.empty()) joint = j.name.substr(j.name.find('/') + 1);
  ModelEdits edits;
  edits.actuators = {{.joints = {joint}, .stiffness = 10, .damping = 1}};
  edits.init = InitialState{.base = Pose{{0, 0, 0.7}}, .joints = {{joint, 0.25}}};
  Scene scene({.engine = EngineKind::kMujoco});
  scene.add_entity(Urdf{.file = file, .pose = {.pos = {1, 0, 0}}, .edits = edits}, "arm");
  scene.build(1);
  const ModelInfo& info = scene.info();
  EXPECT_EQ(info.nu, plain.info().nu + 1);
  const KeyframeInfo& key = info.keyframes.at(static_cast<std::size_t>(info.keyframe("arm/init_state")));
  ASSERT_EQ(static_cast<int>(key.qpos.size()), info.nq);
  EXPECT_EQ((std::vector<double>(key.qpos.begin(), key.qpos.begin() + 3)), (std::vector<double>{1, 0, 0.7}));
  const JointInfo& moved = info.joints.at(static_cast<std::size_t>(info.joint("arm/" + joint)));
  EXPECT_EQ(key.qpos.at(static_cast<std::size_t>(moved.qpos)), 0.25);
  EXPECT_EQ(key.ctrl.back(), 0.25);
}

TEST(ModelEdits, ThatMatchNothingSayWhatThereIs) {
  const auto expect_words = [](const std::string& text, const std::vector<std::string>& words) {
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << word << " in: " << text;
  };
  ModelEdits edits;
  edits.actuators = {{.joints = {"left_hip_jont"}, .stiffness = 1}};
  expect_words(message_with(edits),
               {"`robot`", "actuators[0]", "left_hip_jont", "is `left_hip_joint` meant?", "tail_joint"});
  edits.actuators = {{.joints = {"hip"}, .stiffness = 1}};  // a part of a name
  expect_words(message_with(edits), {"`hip`", "whole name"});
  edits.actuators = {{.joints = {".*_hip_joint"}}};
  expect_words(message_with(edits), {"stiffness of a position actuator is 0"});
  edits = {};
  edits.geoms = {{.pattern = "foot(", .condim = 3}};
  expect_words(message_with(edits), {"geoms[0]", "foot(", "no regular expression"});
  edits.geoms = {{.pattern = ".*_foot_collision", .condim = 2}};
  expect_words(message_with(edits), {"condim is 2", "1, 3, 4 or 6"});
  edits = {};
  edits.sensors = {{.type = "giro", .object = "imu", .name = "turn"}};
  expect_words(message_with(edits), {"`giro`", "is `gyro` meant?"});
  edits.sensors = {{.type = "gyro", .object = "imo", .name = "turn"}};
  expect_words(message_with(edits), {"no site is named `imo`", "is `imu` meant?"});
  edits = {};
  edits.init = InitialState{.joints = {{"left_elbow", 1}}};
  expect_words(message_with(edits), {"init.joints[0]", "left_elbow", "left_knee_joint"});
  edits = {};
  edits.free_base = true;
  expect_words(message_of([&] {
                 scene_of(Mjcf{.file = "",
                               .xml = R"(<mujoco><worldbody><body name="cart"><joint name="slider" type="slide"/>
                                         <geom size="0.1"/></body></worldbody></mujoco>)",
                               .edits = edits});
               }),
               {"free_base", "cart", "slider"});
}

TEST(ModelEdits, RemovedActuatorsAreGoneThoseOfTendonsToo) {
  const char* xml = R"(<mujoco><worldbody>
      <body name="a"><joint name="left" type="slide"/><geom size="0.1"/></body>
      <body name="b" pos="1 0 0"><joint name="right" type="slide"/><geom size="0.1"/></body></worldbody>
    <tendon><fixed name="both"><joint joint="left" coef="0.5"/><joint joint="right" coef="0.5"/></fixed></tendon>
    <actuator><position name="grip" tendon="both" kp="100"/><motor name="push" joint="left"/></actuator>
    <keyframe><key name="home" qpos="0.1 0.2" ctrl="3 4"/></keyframe></mujoco>)";
  ModelEdits edits;
  edits.remove_actuators = true;
  edits.actuators = {{.joints = {"right"}, .stiffness = 7}};
  Scene scene({.engine = EngineKind::kMujoco});
  scene.add_entity(Mjcf{.file = "", .xml = xml, .edits = edits}, "gripper");
  scene.build(1);
  ASSERT_EQ(scene.info().actuators.size(), 1U);
  EXPECT_EQ(scene.info().actuators[0].name, "right");
  EXPECT_EQ(scene.info().keyframes[0].ctrl, std::vector<double>{0.2}) << "what holds the joint there";
}

}  // namespace
}  // namespace cohort::sim
