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

}  // namespace
}  // namespace cohort::sim
