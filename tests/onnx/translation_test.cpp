#include "onnx/translation.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "onnx/networks.h"
#include "onnx/onnx_policy.h"
#include "tasks/registry.h"

namespace cohort::onnx {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Three joints in two stacks' order, from two poses, with actions and positions in two scales.
Contract policy_of_joints() {
  Contract contract;
  contract.observations = {{.name = "speed", .shape = {1}},
                           {.name = "joint_pos", .shape = {3}, .scale = {2}, .low = -0.5, .high = 0.5}};
  contract.joint_names = {"robot/c", "robot/a", "robot/b"};
  contract.default_joint_pos = {0.3, 0.1, 0.2};
  contract.action_scale = {0.5};
  return contract;
}
Contract task_of_joints() {
  Contract contract;
  contract.observations = {{.name = "joint_pos", .shape = {3}}, {.name = "speed", .shape = {1}}};
  contract.joint_names = contract.action_names = {"a", "b", "c"};
  contract.default_joint_pos = {0, 0, 0};
  contract.action_scale = {0.25, 0.25, 0.25};
  return contract;
}

TEST(OnnxTranslation, OrderScaleLimitsAndPoseArePutRight) {
  // The actions are the joint positions as the policy sees them.
  Model model;
  model.inputs = {{.name = "obs", .shape = {{-1, "batch"}, {4, ""}}}};
  model.outputs = {{.name = "actions", .shape = {{-1, "batch"}, {3, ""}}}};
  model.initializers = {Tensor::of("w", {4, 3}, {0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1})};
  model.nodes = {node("MatMul", {"obs", "w"}, {"actions"})};
  const Translation how = translation(policy_of_joints(), task_of_joints());
  EXPECT_EQ(how.steps.size(), 6u);
  const auto policy = translated(onnx_policy(model, {}, "joints"),
                                 {{.name = "joint_pos", .shape = {3}}, {.name = "speed", .shape = {1}}}, how);
  const auto session = policy->session({.control_period = 0.02, .observations = {}, .action_width = 3, .task = "t"});
  const std::int32_t environments[] = {0};
  const std::uint64_t seeds[] = {0};
  session->begin(environments, seeds, "");
  const std::vector<float> seen{0.2f, 0.4f, -0.9f, 7};  // a, b, c, and the speed
  const std::vector<float> actions = session->act(environments, {.low_dim = seen, .images = {}}).at(0);
  // It sees c: clip(-0.9 - 0.3) 2 = -1, a: 0.1 * 2, b: 0.2 * 2, and means the targets -0.2, 0.2 and 0.4 rad.
  ASSERT_EQ(actions.size(), 3u);
  EXPECT_NEAR(actions[0], 0.2 / 0.25, 1e-6);
  EXPECT_NEAR(actions[1], 0.4 / 0.25, 1e-6);
  EXPECT_NEAR(actions[2], -0.2 / 0.25, 1e-6);
}

TEST(OnnxTranslation, TheSameContractChangesNothing) {
  EXPECT_TRUE(translation(task_of_joints(), task_of_joints()).steps.empty());
}

TEST(OnnxTranslation, WhatIsNotObservedIsNamed) {
  Contract policy = policy_of_joints();
  policy.observations[0].name = "height";
  EXPECT_EQ(message_of([&] { translation(policy, task_of_joints()); }), "the task does not observe height");
  policy = policy_of_joints();
  policy.observations[1].history = 4;
  EXPECT_NE(message_of([&] { translation(policy, task_of_joints()); }).find("joint_pos has 3 numbers of 4 moments"),
            std::string::npos);
}

TEST(OnnxContract, ATaskFromAFileSaysAllOfIt) {
  const auto task = tasks::make_task(COHORT_SOURCE_DIR "/examples/tasks/quadruped.yaml", {});
  const Contract contract = contract_of(*task);
  EXPECT_EQ(contract.action_scale, std::vector<double>(12, 0.8));
  EXPECT_EQ(contract.joint_names.size(), 12u);
  EXPECT_EQ(contract.default_joint_pos, (std::vector<double>{0, 0.8, -1.5, 0, 0.8, -1.5, 0, 0.8, -1.5, 0, 0.8, -1.5}));
  EXPECT_EQ(contract.command_names, std::vector<std::string>{"twist"});
  EXPECT_EQ(contract.joint_stiffness.at(0), 25);
  EXPECT_EQ(contract.observations.at(0).high, kInfinity);
}

}  // namespace
}  // namespace cohort::onnx
