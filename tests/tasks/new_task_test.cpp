// The first file of a task: what `cohort tasks new` makes of a robot's own file.
#include "tasks/file/new_task.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "sim/host/scene.h"
#include "support/process.h"
#include "tasks/file/robot_survey.h"
#include "tasks/registry.h"
#include "tasks/shown_scene.h"
#include "tasks/task_check.h"

namespace cohort::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kModels = COHORT_SOURCE_DIR "/src/tasks/library/";

/// Two links of a point mass each at the end of a rod without one, the second turned aside so that both joints see it.
constexpr const char* kArm = R"(
<mujoco model="arm"><compiler angle="radian"/><worldbody><body name="upper" pos="0 0 0.5">
  <joint name="shoulder" axis="0 1 0" range="-2 2" limited="true"/>
  <geom type="sphere" size="0.001" mass="2" pos="0.5 0 0" contype="0" conaffinity="0"/>
  <body name="fore.arm" pos="0.5 0 0">
    <joint name="elbow" axis="0 1 0" range="0.5 1.5" limited="true"/>
    <geom type="sphere" size="0.001" mass="1" pos="0.4 0 0" contype="0" conaffinity="0"/>
    <site name="grip" pos="0.4 0 0"/>
  </body></body></worldbody></mujoco>)";

class NewTaskFile : public ::testing::Test {
 protected:
  fs::path path(const std::string& name) const { return folder_.path() / name; }
  fs::path write(const std::string& name, const std::string& text) const {
    write_file_atomically(path(name), text);
    return path(name);
  }
  static void expect_passes(const fs::path& file) {
    for (const CheckRow& row : check_task([&](int n_envs) { return make_task(file.string(), {.n_envs = n_envs}); }))
      EXPECT_NE(row.outcome, CheckRow::Outcome::kFail) << file << " " << row.name << ": " << row.found;
  }

  testing::TemporaryFolder folder_;
};

TEST_F(NewTaskFile, ARobotOnFeetFollowsVelocitiesWithThoseFeet) {
  const NewTask task = write_new_task({.file = path("dog.yaml"), .robot = fs::path(kModels) / "quadruped.xml"});
  EXPECT_EQ(task.like, "velocity");
  EXPECT_NE(task.text.find("foot_contact: {feet: '.*_foot'}"), std::string::npos) << task.text;
  EXPECT_EQ(task.text, read_file(path("dog.yaml").string()));
  EXPECT_EQ(make_task(path("dog.yaml").string(), {})->spec().action.width(), 12);
  expect_passes(path("dog.yaml"));
}

TEST_F(NewTaskFile, AThingThatLiesAboutInARobotsFileIsNotItsBase) {
  std::string scene = kArm;
  scene.insert(scene.find("</worldbody>"), R"(<geom type="plane" size="1 1 0.1"/>
    <body name="cube" pos="0.3 0 0.02"><freejoint/><geom type="box" size="0.02 0.02 0.02" mass="0.1"/></body>)");
  const NewTask task = write_new_task({.file = path("arm.yaml"), .robot = write("arm.xml", scene)});
  EXPECT_EQ(task.like, "reach");
  EXPECT_EQ(task.text.find("base_pos"), std::string::npos) << task.text;
  EXPECT_NE(task.text.find("hand: 'site_position(\"grip\")'"), std::string::npos) << task.text;
  expect_passes(path("arm.yaml"));
}

TEST_F(NewTaskFile, AThingThatLiesAboutInARobotsFileIsAnEntityByItsName) {
  std::string scene = kArm;
  scene.insert(scene.find("</worldbody>"), R"(<geom type="plane" size="2 2 0.1"/>
    <body name="cube" pos="0.3 0 0.05"><freejoint/><geom type="box" size="0.05 0.05 0.05" mass="0.1"/></body>)");
  scene.insert(scene.find("</mujoco>"), R"(<actuator><motor name="m" joint="shoulder"/></actuator>)");
  write("arm.xml", scene);
  const fs::path file = write("cube.yaml", R"(
scene: {robot: {mjcf: arm.xml}}
simulation: {timestep: 0.002, decimation: 5, episode_length_s: 1}
actions: {joint_effort: {joints: shoulder}}
observations: {policy: {joint_pos: {}, cube: 'entity_position("cube")'}}
events:
  cube: {type: reset_root_state_uniform, entity: cube, pose_range: {x: [-0.2, 0.2], y: [-0.2, 0.2]}}
)");
  const auto task = make_task(file.string(), {.n_envs = 2});
  const std::vector<std::int32_t> envs{0, 1};
  const std::vector<std::uint64_t> seeds{1, 2};
  task->reset(envs, seeds);
  const auto cube = task->observation(1).span<float>();
  EXPECT_NE(cube[0], cube[3]);
  for (const std::size_t e : {std::size_t{0}, std::size_t{1}}) {
    EXPECT_NEAR(cube[3 * e], 0.3, 0.2);
    EXPECT_NEAR(cube[3 * e + 1], 0, 0.2);
    EXPECT_NEAR(cube[3 * e + 2], 0.05, 1e-5);
  }
  expect_passes(file);
}

/// A finger whose two far joints one tendon bends, and a thumb that a muscle pulls.
constexpr const char* kHand = R"(
<mujoco model="hand"><compiler angle="radian"/><worldbody><body name="palm" pos="0 0 0.3">
  <geom type="box" size="0.04 0.05 0.01" mass="0.3"/>
  <body name="near" pos="0.05 0 0"><joint name="knuckle" axis="0 1 0" range="-0.3 1.5" limited="true" damping="0.01"/>
    <geom type="capsule" size="0.008" fromto="0.01 0 0 0.04 0 0" mass="0.02"/>
    <body name="middle" pos="0.05 0 0"><joint name="middle" axis="0 1 0" range="0 1.5" limited="true" damping="0.01"/>
      <geom type="capsule" size="0.008" fromto="0.01 0 0 0.03 0 0" mass="0.02"/>
      <body name="tip" pos="0.04 0 0"><joint name="far" axis="0 1 0" range="0 1.5" limited="true" damping="0.01"/>
        <geom type="capsule" size="0.008" fromto="0.01 0 0 0.02 0 0" mass="0.02"/></body></body></body>
  <body name="thumb" pos="0 0.06 0"><joint name="thumb" axis="1 0 0" range="-1 1" limited="true" damping="0.01"/>
    <geom type="capsule" size="0.008" fromto="0 0.01 0 0 0.04 0" mass="0.02"/></body></body></worldbody>
  <tendon><fixed name="bend"><joint joint="middle" coef="1"/><joint joint="far" coef="0.7"/></fixed></tendon>
  <actuator><position name="knuckle" joint="knuckle" kp="1" ctrlrange="-0.3 1.5" ctrllimited="true"/>
    <position name="bend" tendon="bend" kp="1" ctrlrange="0 2" ctrllimited="true"/>
    <muscle name="pull" joint="thumb" lengthrange="-1 1" ctrlrange="0 1" ctrllimited="true"/></actuator></mujoco>)";

TEST_F(NewTaskFile, TendonsAndMusclesAreDrivenFromOneEndOfTheirRangeToTheOther) {
  const NewTask task = write_new_task({.file = path("hand.yaml"), .robot = write("hand.xml", kHand)});
  EXPECT_EQ(task.like, "reach") << "all joints are driven";
  EXPECT_NE(task.text.find("actuator: {actuators: "), std::string::npos) << task.text;
  expect_passes(path("hand.yaml"));
  const auto made = make_task(path("hand.yaml").string(), {});
  EXPECT_EQ(made->spec().action.names, (std::vector<std::string>{"knuckle", "bend", "pull"}));
  sim::Scene& scene = *scene_of(*made);
  const std::vector<std::int32_t> envs{0};
  const std::vector<std::uint64_t> seeds{0};
  made->reset(envs, seeds);
  std::vector<float> actions{0, 1, -1};
  made->step(make_view(actions.data(), {1, 3}));
  const std::vector<float> ctrl = scene.get_ctrl();
  EXPECT_FLOAT_EQ(ctrl[1], 2) << "the tendon's far end";
  EXPECT_FLOAT_EQ(ctrl[2], 0) << "a muscle at rest";
}

TEST_F(NewTaskFile, AnActionOfActuatorsSaysWhatIsWrong) {
  write("hand.xml", kHand);
  const auto wrong = [&](const std::string& actions) {
    const fs::path file =
        write("wrong.yaml", "scene: {robot: {mjcf: hand.xml}}\nsimulation: {episode_length_s: 1}\nactions: {" +
                                actions + "}\nobservations: {policy: {joint_pos: {}}}\n");
    return message_of([&] { make_task(file.string(), {}); });
  };
  EXPECT_EQ(wrong("a: {type: actuator, scale: 0.5}"), "");
  EXPECT_NE(wrong("a: {type: actuator, actuators: bent}").find("did you mean 'bend'?"), std::string::npos);
  EXPECT_NE(
      wrong("a: {type: actuator, actuators: bend}, b: {type: actuator, actuators: '.*'}").find("has an action already"),
      std::string::npos);
  EXPECT_NE(wrong("a: {type: joint_position, joints: middle}").find("`type: actuator`"), std::string::npos);
}

TEST_F(NewTaskFile, ServosOfAFileWithoutActuatorsHoldWhatHangsOnThem) {
  const fs::path arm = write("arm.xml", kArm);
  const RobotSurvey robot = survey_robot(arm, false);
  ASSERT_EQ(robot.joints.size(), 2u);
  // The elbow cannot be at zero: it begins in the middle. Radii of gyration of point masses are their distances.
  EXPECT_DOUBLE_EQ(robot.joints[1].position, 1);
  const double far2 = 0.5 * 0.5 + 0.4 * 0.4 + 2 * 0.5 * 0.4 * std::cos(1.0);
  const double shoulder = 9.81 * std::sqrt(3 * (2 * 0.25 + 1 * far2)), elbow = 9.81 * 0.4;
  EXPECT_NEAR(robot.joints[0].stiffness, shoulder / 0.05, 0.05 * shoulder / 0.05);
  EXPECT_NEAR(robot.joints[1].stiffness, elbow / 0.05, 0.05 * elbow / 0.05);
  for (const SurveyedJoint& j : robot.joints) {
    const double frequency = std::sqrt(j.stiffness / j.armature);
    EXPECT_NEAR(frequency, 2 * 3.14159265 * 10, 2);
    EXPECT_NEAR(j.damping / (2 * j.armature * frequency), 2, 0.1);
  }
  const NewTask task = write_new_task({.file = path("reach.yaml"), .robot = arm});
  EXPECT_EQ(task.like, "reach");
  EXPECT_NE(task.text.find("hand: 'site_position(\"grip\")'"), std::string::npos) << task.text;
  expect_passes(path("reach.yaml"));
}

TEST_F(NewTaskFile, ServosAreAsStrongAsTheFileLetsTheirJointsBe) {
  std::string limited = kArm;
  const std::string elbow = R"(name="elbow")";
  limited.insert(limited.find(elbow) + elbow.size(), R"( actuatorfrcrange="-4.5 4.5")");
  const RobotSurvey free = survey_robot(write("arm.xml", kArm), false);
  const RobotSurvey robot = survey_robot(write("limited.xml", limited), false);
  EXPECT_EQ(robot.joints[0].effort, free.joints[0].effort);
  EXPECT_GT(free.joints[1].effort, 4.5);
  EXPECT_EQ(robot.joints[1].effort, 4.5);
}

TEST_F(NewTaskFile, RobotsWhoseBaseHasNoMassStandFixedAndImpossibleInertiasAreRepaired) {
  // As KUKA's iiwa and ANYmal's cameras are in the URDF files that people have.
  const auto urdf = [](const char* upper) {
    return format(R"(<robot name="arm"><link name="base"/><joint name="shoulder" type="revolute"><parent link="base"/>
      <child link="upper"/><axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="5" velocity="1"/></joint>
      <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>{}</inertial></link></robot>)",
                  upper);
  };
  const RobotSurvey sound = survey_robot(
      write("sound.urdf", urdf(R"(<inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/>)")), false);
  EXPECT_FALSE(sound.free_base);
  EXPECT_FALSE(sound.repair_inertia);
  const fs::path impossible =
      write("impossible.urdf", urdf(R"(<inertia ixx="0.01" iyy="0.01" izz="0.03" ixy="0" ixz="0" iyz="0"/>)"));
  const RobotSurvey repaired = survey_robot(impossible, false);
  EXPECT_FALSE(repaired.free_base);
  EXPECT_TRUE(repaired.repair_inertia);
  const NewTask task = write_new_task({.file = path("repaired.yaml"), .robot = impossible, .like = "balance"});
  EXPECT_NE(task.text.find("repair_inertia: true"), std::string::npos) << task.text;
  expect_passes(path("repaired.yaml"));
}

TEST_F(NewTaskFile, EveryKindThatGoesWithARobotPassesTheChecks) {
  const fs::path arm = write("arm.xml", kArm);
  const struct {
    const char* like;
    fs::path robot;
  } kCases[] = {{"lift", arm},
                {"balance", arm},
                {"balance", fs::path(kModels) / "quadruped.xml"},
                {"", fs::path(kModels) / "cartpole.xml"},
                {"", COHORT_SOURCE_DIR "/tests/sim/models/two_link.urdf"}};
  for (const auto& [like, robot] : kCases) {
    const fs::path file = path(format("{}_{}.yaml", robot.stem().string(), like));
    const NewTask task = write_new_task({.file = file, .robot = robot, .like = like});
    EXPECT_EQ(task.like, *like == '\0' ? "balance" : like);
    expect_passes(file);
  }
}

TEST_F(NewTaskFile, ADroneWithoutJointsHoversByItsThrusts) {
  std::string sites, motors;
  for (int i = 0; i < 4; ++i) {
    sites += format("<site name='s{}' pos='{} {} 0'/>", i, i < 2 ? 0.1 : -0.1, i % 2 == 0 ? 0.1 : -0.1);
    motors += format("<motor name='thrust{0}' site='s{0}' gear='0 0 1 0 0 {1}' ctrlrange='0 6'/>", i,
                     i == 0 || i == 3 ? 0.01 : -0.01);
  }
  const fs::path drone = write("drone.xml",
                               "<mujoco><worldbody><body name='drone'><freejoint/><geom type='box' "
                               "size='0.1 0.1 0.02' mass='1'/>" +
                                   sites + "</body></worldbody><actuator>" + motors + "</actuator></mujoco>");
  const NewTask task = write_new_task({.file = path("drone.yaml"), .robot = drone, .like = ""});
  EXPECT_EQ(task.like, "balance");
  EXPECT_NE(task.text.find("actuator: {actuators: '.*'}"), std::string::npos) << task.text;
  expect_passes(path("drone.yaml"));
}

TEST_F(NewTaskFile, WhatCannotBeIsSaidAndNoFileIsTouched) {
  const fs::path arm = write("arm.xml", kArm), dog = fs::path(kModels) / "quadruped.xml";
  const auto complaint = [&](const fs::path& robot, const std::string& like, const std::string& file = "new.yaml") {
    return message_of([&] { write_new_task({.file = path(file), .robot = robot, .like = like}); });
  };
  write("mine.yaml", "mine");
  const struct {
    std::string said, says;
  } kCases[] = {
      {complaint(dog, "", "mine.yaml"), "mine.yaml is there already, and stays as it is: choose another name"},
      {complaint(dog, "", "new.json"), "ends in .yaml"},
      {complaint(dog, "velocty"), "--like velocty: there are velocity, reach, lift, balance, is velocity meant?"},
      {complaint(arm, "velocity"), "needs a base that moves freely, and this one's is fixed to the world"},
      {complaint(dog, "reach"), "needs a base that is fixed"},
      {complaint(path("none.xml"), ""), "none.xml"},
      {complaint(
           write("ball.xml", "<mujoco><worldbody><body><freejoint/><geom size='0.1'/></body></worldbody></mujoco>"),
           ""),
       "has no hinges or slides"},
  };
  // As Fetch's: a mocap body draws the hand, and the file's actuators move fingers.
  const fs::path drawn = write("drawn.xml", R"xml(
<mujoco>
  <worldbody>
    <body name="draws" mocap="true" pos="0.6 0 0.5"/>
    <body pos="0 0 0.5"><joint name="shoulder" axis="0 0 1"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
      <body pos="0.3 0 0"><joint name="elbow" axis="0 1 0"/><geom type="capsule" size="0.03" fromto="0 0 0 0.3 0 0"/>
        <body name="hand" pos="0.3 0 0"><joint name="wrist" axis="1 0 0"/><geom type="box" size="0.02 0.03 0.02"/>
          <body pos="0.02 0.02 0"><joint name="left" type="slide" axis="0 1 0" range="0 0.02"/><geom type="box" size="0.03 0.005 0.01"/></body>
          <body pos="0.02 -0.02 0"><joint name="right" type="slide" axis="0 -1 0" range="0 0.02"/><geom type="box" size="0.03 0.005 0.01"/></body>
        </body>
      </body>
    </body>
  </worldbody>
  <equality><weld body1="draws" body2="hand"/></equality>
  <actuator><position joint="left" kp="100"/><position joint="right" kp="100"/></actuator>
</mujoco>)xml");
  EXPECT_NE(complaint(drawn, "lift").find("only its fingers have actuators, and nothing that a task could move brings"),
            std::string::npos)
      << complaint(drawn, "lift");
  EXPECT_NE(complaint(drawn, "lift").find("<position joint=\"shoulder\""), std::string::npos);
  for (const auto& [said, says] : kCases) EXPECT_NE(said.find(says), std::string::npos) << said << "\nwanted: " << says;
  EXPECT_EQ(read_file(path("mine.yaml").string()), "mine");
  EXPECT_FALSE(fs::exists(path("new.yaml")));
}

}  // namespace
}  // namespace cohort::tasks
