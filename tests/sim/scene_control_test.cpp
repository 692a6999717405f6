// Dofs that are driven and put, on both engines: servos, force ranges, rotations.
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "core/philox.h"
#include "sim/models.h"
#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

TEST_P(SceneApi, ADofThatFollowsAVelocityOrAForceIsLetGoByItsServo) {
  const auto path = file("idle.state");
  const auto make = [&](Scene& scene) {
    Entity arm = scene.add_entity(
        Mjcf{.file = "",
             .xml = "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='a' axis='0 0 1'/>"
                    "<geom size='0.1' pos='0.5 0 0' mass='1'/></body></worldbody>"
                    "<actuator><position name='servo' joint='a' kp='40.1' kv='2'/></actuator></mujoco>"},
        "arm");
    scene.build(3);
    return arm;
  };
  Scene scene(options());
  Entity arm = make(scene);
  arm.set_dofs_kv(std::vector<float>{5});
  arm.control_dofs_position(std::vector<float>{0.5f});
  for (int i = 0; i < 50; ++i) scene.step();
  arm.control_dofs_velocity(std::vector<float>{1}, {}, {1});
  arm.control_dofs_force(std::vector<float>{0}, {}, {2});
  // What is shown, and set, are the gains that it will have again.
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {}, {0}), (std::vector<float>(3, 40.1f)));
  const float coasting = arm.get_dofs_velocity({}, {2})[0];
  EXPECT_GT(coasting, 0.1f);
  for (int i = 0; i < 700; ++i) scene.step();
  scene.save_state(path);
  EXPECT_NEAR(arm.get_dofs_position({}, {0})[0], 0.5, 1e-3);
  EXPECT_NEAR(arm.get_dofs_velocity({}, {1})[0], 1, 1e-3);
  EXPECT_NEAR(arm.get_dofs_velocity({}, {2})[0], coasting, 1e-4);
  // A loaded state goes on with the same dofs let go, and gives the gains back as well.
  Scene other(options());
  make(other);
  other.load_state(path);
  for (Scene* each : {&scene, &other}) {
    Entity its = each->entity("arm");
    for (int i = 0; i < 20; ++i) each->step();
    its.set_dofs_kp(std::vector<float>{50}, {}, {2});
    its.control_dofs_position(std::vector<float>{-0.2f}, {}, {1, 2});
    EXPECT_EQ(each->get_parameter(Parameter::kActuatorGain, {}, {0}), (std::vector<float>{40.1f, 40.1f, 50}));
    for (int i = 0; i < 1500; ++i) each->step();
    EXPECT_NEAR(its.get_dofs_position({}, {1})[0], -0.2, 1e-3);
    EXPECT_NEAR(its.get_dofs_position({}, {2})[0], -0.2, 1e-3);
  }
  EXPECT_EQ(scene.get_qpos(), other.get_qpos());
  // A reset gives a dof back to its actuator, bit for bit as if nothing had been.
  Scene fresh(options());
  Entity untouched = make(fresh);
  untouched.set_dofs_kv(std::vector<float>{5});
  arm.control_dofs_force(std::vector<float>{3}, {}, {1});
  scene.step();
  scene.reset({1});
  arm.control_dofs_position(std::vector<float>{0.5f}, {}, {1});
  untouched.control_dofs_position(std::vector<float>{0.5f}, {}, {1});
  for (int i = 0; i < 100; ++i) scene.step(), fresh.step();
  EXPECT_EQ(arm.get_dofs_position({}, {1}), untouched.get_dofs_position({}, {1}));
  std::filesystem::remove(path);
}

TEST_P(SceneApi, ServosWithAGearOrAFilterAndDofsOfATendonReachTheirTargets) {
  Scene scene(options());
  Entity hand = scene.add_entity(
      Mjcf{.file = "",
           .xml =
               "<mujoco><option gravity='0 0 0'/><default><joint damping='1'/><geom contype='0'/></default><worldbody>"
               "<body><joint name='geared' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='filtered' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='left' type='slide' axis='0 0 1'/><geom size='0.1' mass='1'/></body>"
               "<body><joint name='right' type='slide' axis='0 0 1'/><geom size='0.1' mass='1'/></body></worldbody>"
               "<tendon><fixed name='both'><joint joint='left' coef='0.5'/><joint joint='right' coef='0.5'/></fixed>"
               "</tendon><actuator><position joint='geared' kp='1' gear='-3'/>"
               "<position joint='filtered' kp='9' timeconst='0.05'/><position name='grip' tendon='both' kp='50'/>"
               "</actuator></mujoco>"},
      "hand");
  scene.build(2);
  EXPECT_NE(message_of([&] { hand.control_dofs_position(std::vector<float>{0.1f}, {2}); }).find("left"),
            std::string::npos);
  hand.set_dofs_kp(std::vector<float>{18, 12, 40, 40});
  EXPECT_EQ(scene.get_parameter(Parameter::kActuatorGain, {1}, {0, 10, 20}), (std::vector<float>{2, 12, 50}));
  hand.set_dofs_kv(std::vector<float>{12, 12}, {2, 3});
  const std::vector<float> target{0.3f, -0.2f, 0.04f, 0.02f};
  hand.control_dofs_position(target);
  for (int i = 0; i < 2500; ++i) scene.step();
  const std::vector<float> q = hand.get_dofs_position({}, {1});
  for (std::size_t i = 0; i < 4; ++i) EXPECT_NEAR(q[i], target[i], 1e-4) << i;
}

TEST_P(SceneApi, AForceRangeThatAnActuatorWouldNotKeepIsRefused) {
  Scene scene(options());
  Entity arm = scene.add_entity(
      Mjcf{.file = "",
           .xml = "<mujoco><worldbody><body><joint name='a' axis='0 1 0'/><geom size='0.1' pos='0.5 0 0'/><body>"
                  "<joint name='b' axis='0 1 0'/><geom size='0.1' pos='0.9 0 0'/></body></body></worldbody><actuator>"
                  "<position name='servo' joint='a' kp='40' gear='2' forcerange='-8 8'/></actuator></mujoco>"});
  scene.build(2);
  const std::string text = message_of([&] {
    arm.set_dofs_force_range(std::vector<float>{-0.1f, -1}, std::vector<float>{0.1f, 1});
  });
  EXPECT_NE(text.find("servo"), std::string::npos) << text;
  EXPECT_NE(text.find("[-16, 16]"), std::string::npos) << text;
  arm.set_dofs_force_range(std::vector<float>{-16, -1}, std::vector<float>{16, 1});
}

TEST_P(SceneApi, ARotationIsSetAsOneVector) {
  Scene scene(options());
  Entity ball = scene.add_entity(Sphere{0.1}, "ball");
  scene.build(2);
  ball.set_dofs_position(std::vector<float>{0, 0, 0, 2.5f, 2.5f, 2.5f}, {}, {1});
  const std::vector<float> q = ball.get_quat({1});
  const double angle = 2.5 * std::sqrt(3.0);
  const float sign = q[0] < 0 ? 1 : -1;  // a quaternion and its opposite are one rotation; this one's first is negative
  EXPECT_NEAR(sign * q[0], std::cos(angle / 2), 1e-6);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_NEAR(sign * q[i], std::sin(angle / 2) / std::sqrt(3.0), 1e-6);
  ball.set_dofs_position(std::vector<float>{0.2f, 0.1f, 0.3f}, {4, 3, 5}, {0});
  const std::vector<float> v = ball.get_dofs_position({3, 4, 5}, {0});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(v[i], 0.1 * (static_cast<double>(i) + 1), 1e-6);
}

TEST_P(SceneApi, AControlAboveWhatAStateMayHoldStopsItsEnvironment) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "",
                        .xml = "<mujoco><worldbody><body><joint name='a'/><geom size='0.1'/></body></worldbody>"
                               "<actuator><motor joint='a'/></actuator></mujoco>"});
  scene.build(2);
  scene.set_ctrl(std::vector<float>{2e10f}, {1});
  scene.step();
  const auto status = scene.host_view(Field::kStatus).span<std::int32_t>();
  EXPECT_EQ(status[0], kStatusOk);
  EXPECT_EQ(status[1], kStatusBadState);
}

/// Ids on both sides of 2^32, where the stream's key changes; more environments than are drawn side by side, and not a
/// multiple of them; controls with a range and without, more than a call of Philox makes.
TEST_P(SceneApi, RandomControlsAreAFunctionOfSeedEnvironmentAndStep) {
  SceneOptions o = options();
  o.seed = (std::uint64_t{5} << 32) + 9;
  o.first_environment = (std::int64_t{1} << 32) - 20;
  Scene scene(o);
  std::string joints, motors;
  for (int i = 0; i < 9; ++i) {
    joints += format("<body><joint name='j{}'/><geom size='0.1'/></body>", i);
    motors += format("<motor joint='j{}'{}/>", i, i % 3 == 1 ? format(" ctrlrange='{} 2.{}'", -0.1 * i, i) : "");
  }
  scene.add_entity(Mjcf{
      .file = "", .xml = format("<mujoco><worldbody>{}</worldbody><actuator>{}</actuator></mujoco>", joints, motors)});
  scene.build(37);
  for (const std::int64_t step : {std::int64_t{0}, std::int64_t{7}, std::int64_t{1} << 33}) {
    scene.set_random_ctrl(step);
    std::vector<float> expected;
    for (std::uint64_t e = 0; e < 37; ++e) {
      const RandomStream random(o.seed, RandomPurpose::kAction, static_cast<std::uint64_t>(o.first_environment) + e,
                                static_cast<std::uint64_t>(step));
      for (int i = 0; i < 9; ++i) {
        const ActuatorInfo& motor = scene.info().actuators[static_cast<std::size_t>(i)];
        ASSERT_EQ(motor.limited, i % 3 == 1);
        const float lower = motor.limited ? static_cast<float>(motor.range[0]) : -1.0f;
        const float upper = motor.limited ? static_cast<float>(motor.range[1]) : 1.0f;
        expected.push_back(lower + (upper - lower) * random.uniform(static_cast<std::uint64_t>(i)));
      }
    }
    EXPECT_TRUE(same_bits(scene.get_ctrl(), expected)) << "step " << step;
  }
}

/// An arm of light links; `inside` of each joint, and what drives them.
std::string light_arm(const std::string& actuators) {
  return "<mujoco><compiler autolimits='true'/><worldbody><body pos='0 0 1'><joint name='lift' axis='0 1 0' "
         "damping='0.1'/><geom type='capsule' fromto='0 0 0 0.3 0 0' size='0.02' mass='0.4'/><body pos='0.3 0 0'>"
         "<joint name='bend' axis='0 1 0'/><geom type='capsule' fromto='0 0 0 0.2 0 0' size='0.02' mass='0.2'/>"
         "<body pos='0.2 0 0'><joint name='twist' axis='1 0 0'/><geom type='capsule' fromto='0 0 0 0.05 0 0' "
         "size='0.01' mass='0.02'/></body></body></body></worldbody><actuator>" +
         actuators + "</actuator></mujoco>";
}

/// Gains that makers give for a robot of 20 kg, on links of 20 g: held over a step they would be 30,000 times too much.
TEST_P(SceneApi, GainsOnJointsWithoutActuatorsMoveThemAsActuatorsWithTheseGainsWould) {
  SceneOptions o = options();
  o.timestep = 0.005;
  o.integrator = "implicitfast";
  Scene driven(o), reference(o);
  driven.add_entity(Mjcf{.file = "", .xml = light_arm("")});
  reference.add_entity(
      Mjcf{.file = "",
           .xml = light_arm("<position joint='lift' kp='4500' kv='450'/><position joint='bend' kp='3500' kv='350' "
                            "forcerange='-2 2'/><position joint='twist' kp='2000' kv='200'/>")});
  driven.build(2);
  reference.build(2);
  driven.set_dofs_kp(std::vector<float>{4500, 3500, 2000});
  driven.set_dofs_kv(std::vector<float>{450, 350, 200});
  driven.set_dofs_force_range(std::vector<float>{-2}, std::vector<float>{2}, {1});
  // Environment 1 has gains of its own.
  for (Scene* scene : {&driven, &reference}) {
    scene->set_dofs_kp(std::vector<float>{900}, {0}, {1});
    scene->set_dofs_kv(std::vector<float>{30}, {0}, {1});
  }
  const std::vector<float> target{0.4f, -0.6f, 0.3f};
  driven.control_dofs_position(target);
  reference.control_dofs_position(target);
  for (int i = 0; i < 300; ++i) {
    driven.step();
    reference.step();
    const std::vector<float> q = driven.get_dofs_position(), wanted = reference.get_dofs_position();
    for (std::size_t k = 0; k < q.size(); ++k) ASSERT_NEAR(q[k], wanted[k], 5e-4) << "step " << i << ", dof " << k;
  }
  EXPECT_NEAR(driven.get_dofs_position({0}, {0})[0], 0.4, 0.01);
  EXPECT_EQ(driven.why_stopped(0), "");
  // What a joint has besides is shown, set and given back as its own.
  EXPECT_EQ(driven.get_parameter(Parameter::kDofDamping, {0}), (std::vector<float>{0.1f, 0, 0}));
  driven.set_dofs_damping(std::vector<float>{0.3f}, {1}, {0});
  driven.step();
  EXPECT_EQ(driven.get_parameter(Parameter::kDofDamping, {0}), (std::vector<float>{0.1f, 0.3f, 0}));
  driven.reset();
  EXPECT_EQ(driven.get_parameter(Parameter::kDofDamping, {0}), (std::vector<float>{0.1f, 0.3f, 0}));
  // Let go, the arm falls as one that nothing ever drove.
  driven.set_dofs_damping(std::vector<float>{0}, {1}, {0});
  Scene plain(o);
  plain.add_entity(Mjcf{.file = "", .xml = light_arm("")});
  plain.build(2);
  for (int i = 0; i < 50; ++i) driven.step(), plain.step();
  const std::vector<float> fallen = driven.get_dofs_position(), expected = plain.get_dofs_position();
  for (std::size_t k = 0; k < fallen.size(); ++k) EXPECT_NEAR(fallen[k], expected[k], 1e-6);
}

TEST_P(SceneApi, AnEnvironmentThatBreaksIsAnErrorWithItsJointOnceNoneGoesOn) {
  const auto run = [](Scene& scene) {
    scene.add_entity(Mjcf{.file = "", .xml = light_arm("")});
    scene.build(2);
    scene.set_dofs_kp(std::vector<float>{10, 10, 1e7f}, {}, {1});
    scene.set_dofs_kp(std::vector<float>{10, 10, 0.001f}, {}, {0});
    scene.control_dofs_position(std::vector<float>{0.1f, 0.1f, 0.1f}, {}, {0, 1});
    for (int i = 0; i < 200; ++i) scene.step();
  };
  SceneOptions o = options();
  o.timestep = 0.005;
  Scene scene(o);
  run(scene);  // the other environment goes on
  EXPECT_EQ(scene.why_stopped(0), "");
  const std::string why = scene.why_stopped(1);
  for (const char* words : {"joint `twist`", "rad/s", "kv 0", "a timestep below 0.005 s", "step"}) {
    EXPECT_NE(why.find(words), std::string::npos) << why << "\nwanted: " << words;
  }
  scene.set_dofs_kp(std::vector<float>{1e7f}, {2}, {0});
  const std::string all = message_of([&] {
    for (int i = 0; i < 200; ++i) scene.step();
  });
  EXPECT_NE(all.find("every environment stopped; environment 0: "), std::string::npos) << all;
  EXPECT_NE(all.find("joint `twist`"), std::string::npos) << all;
  // Who reads kStatus may ask for silence.
  o.report_stops = false;
  Scene silent(o);
  silent.add_entity(Mjcf{.file = "", .xml = light_arm("<motor name='push' joint='bend'/>")});
  silent.build(1);
  silent.set_ctrl(std::vector<float>{NAN});
  for (int i = 0; i < 200; ++i) silent.step();
  EXPECT_NE(silent.why_stopped(0).find("the control of actuator `push` is nan"), std::string::npos)
      << silent.why_stopped(0);
}

constexpr const char* kServosAndKeyframes =
    "<mujoco><option gravity='0 0 0'/><worldbody><body><joint name='turn' axis='0 0 1' damping='1' ref='20'/>"
    "<geom size='0.1' pos='0.3 0 0' mass='1'/></body><body pos='1 0 0'><joint name='slide' type='slide' axis='0 0 1' "
    "damping='1'/><geom size='0.1' mass='1'/></body><body pos='2 0 0'><joint name='free' type='slide' axis='0 0 1' "
    "damping='1'/><geom size='0.1' mass='1'/></body></worldbody><tendon><fixed name='string'><joint joint='slide' "
    "coef='3'/></fixed></tendon><actuator><position joint='turn' kp='40' kv='2' gear='2'/><position tendon='string' "
    "kp='30'/><motor joint='free'/></actuator><keyframe><key qpos='0.7 -0.2 0' ctrl='0 0 0.5'/><key qpos='-0.3 0.1 0'/>"
    "</keyframe></mujoco>";

TEST_P(SceneApi, ServosHoldTheStateThatIsThereAndOtherControlsStay) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = kServosAndKeyframes});
  scene.build(3);
  scene.reset_to_keyframe("0", {0});
  scene.reset_to_keyframe(1, {1});
  scene.set_qpos(std::vector<float>{1.1f, 0.3f, 0}, {2});
  const std::vector<float> before = scene.get_qpos();
  EXPECT_TRUE(scene.hold().empty());
  EXPECT_EQ(scene.get_ctrl()[2], 0.5f);  // a motor's, of the keyframe
  for (int i = 0; i < 300; ++i) scene.step();
  const std::vector<float> after = scene.get_qpos();
  for (std::size_t i = 0; i < after.size(); ++i) {
    if (i % 3 != 2) EXPECT_NEAR(after[i], before[i], 1e-5) << i;
  }
  EXPECT_GT(after[2], 0.01f);
}

TEST_P(SceneApi, KeyframesWithoutNamesAreFoundByTheirIndex) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = kServosAndKeyframes});
  scene.build(1);
  scene.reset_to_keyframe("1");
  EXPECT_FLOAT_EQ(scene.get_qpos()[0], -0.3f);
  const auto message = [&](const char* wanted) { return message_of([&] { scene.reset_to_keyframe(wanted); }); };
  EXPECT_EQ(message("home"), "the model has no keyframe `home`: name 0 to 1, their indices; they have no names");
  EXPECT_EQ(message("2"), "the model has no keyframe `2`: name 0 to 1, their indices; they have no names");
  Scene named(options());
  named.add_entity(Mjcf{.file = "",
                        .xml =
                            "<mujoco><worldbody><body><joint axis='0 0 1'/><geom size='0.1'/></body></worldbody>"
                            "<keyframe><key name='1' qpos='0.1'/><key name='home' qpos='0.2'/></keyframe></mujoco>"});
  named.build(1);
  named.reset_to_keyframe("1");  // a name first
  EXPECT_FLOAT_EQ(named.get_qpos()[0], 0.1f);
  EXPECT_NE(message_of([&] { named.reset_to_keyframe("hoem"); }).find("is `home` meant?"), std::string::npos);
}

TEST_P(SceneApi, LinksThatOverlapWhereTheyStartAreNamedUnlessTheyAreLeftOut) {
  const auto build = [](Scene& scene) {
    scene.add_entity(
        Mjcf{.file = "",
             .xml = "<mujoco><worldbody><body name='base'><joint axis='0 0 1'/><geom size='0.1'/><body name='mid' "
                    "pos='0 0 0.05'><joint axis='0 1 0'/><geom size='0.01'/><body name='tip' pos='0 0 0.05'>"
                    "<joint axis='0 1 0'/><geom size='0.05'/></body></body></body></worldbody></mujoco>",
             .pose = Pose{}},
        "robot");
    scene.build(1);
  };
  SceneOptions o = options();
  Scene scene(o);
  build(scene);
  EXPECT_NE(scene.overlaps().find("1 pair of links overlaps: `robot/base` and `robot/tip` by 0.05 m"),
            std::string::npos)
      << scene.overlaps();
  for (const char* base : {"base", "robot/base"}) {
    o.exclude = {{base, "tip"}};
    Scene apart(o);
    build(apart);
    EXPECT_EQ(apart.overlaps(), "");
  }
  o.exclude = {{"bsae", "tip"}};
  Scene wrong(o);
  const std::string text = message_of([&] { build(wrong); });
  EXPECT_NE(text.find("exclude names the link `bsae`, and no link has that name; is `base` meant?"), std::string::npos)
      << text;
}

}  // namespace
}  // namespace cohort::sim
