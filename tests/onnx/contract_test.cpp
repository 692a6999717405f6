#include "onnx/contract.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "tasks/registry.h"

namespace cohort::onnx {
namespace {

using Outcome = tasks::CheckRow::Outcome;

Contract dog() {
  const auto task = tasks::make_task("quadruped-velocity", {.overrides = {"privileged=true"}});
  return contract_of(*task, {"privileged"});
}

const tasks::CheckRow& row_of(const std::vector<tasks::CheckRow>& rows, const std::string& name) {
  const auto at = std::find_if(rows.begin(), rows.end(), [&](const tasks::CheckRow& row) { return row.name == name; });
  if (at == rows.end()) throw Error("no row " + name);
  return *at;
}

TEST(OnnxContract, ADogsSaysJointsGainsPoseAndScale) {
  const auto metadata = to_metadata(dog());
  EXPECT_EQ(metadata.at("joint_names"),
            "fl_abduction,fl_hip,fl_knee,fr_abduction,fr_hip,fr_knee,rl_abduction,rl_hip,rl_knee,rr_abduction,rr_hip,"
            "rr_knee");
  EXPECT_EQ(metadata.at("default_joint_pos"), "0,0.8,-1.5,0,0.8,-1.5,0,0.8,-1.5,0,0.8,-1.5");
  EXPECT_EQ(metadata.at("joint_stiffness"), "25,25,25,25,25,25,25,25,25,25,25,25");
  EXPECT_EQ(metadata.at("joint_damping"), "0.6,0.6,0.6,0.6,0.6,0.6,0.6,0.6,0.6,0.6,0.6,0.6");
  EXPECT_EQ(metadata.at("command_names"), "command");
  EXPECT_EQ(metadata.at("observation_names"),
            "base_lin_vel,base_ang_vel,gravity,command,joint_pos,joint_vel,last_action");
  EXPECT_EQ(metadata.at("observation_shapes"), "3,3,3,3,12,12,12");
  EXPECT_EQ(metadata.at("observation_units"), "m/s,rad/s,1,m/s;rad/s,rad,rad/s,1");
  EXPECT_EQ(metadata.at("observation_terms_scale"), "1,1,1,1,1,1,1");
  EXPECT_EQ(metadata.at("observation_terms_clip").substr(0, 8), "-inf;inf");
  EXPECT_EQ(metadata.at("control_period"), "0.02");
}

TEST(OnnxContract, WhatATaskDoesNotHaveIsLeftOut) {
  const auto task = tasks::make_task("cartpole-balance", {});
  const auto metadata = to_metadata(contract_of(*task));
  for (const char* key : {"joint_stiffness", "joint_damping", "default_joint_pos", "command_names"})
    EXPECT_FALSE(metadata.contains(key)) << key;
  EXPECT_EQ(metadata.at("action_names"), "force");
  EXPECT_EQ(metadata.at("action_scale"), "1");
}

TEST(OnnxContract, TheTasksOwnHasNoDifferenceAfterTheFile) {
  const Contract task = dog();
  const auto rows = check_contract(read_contract(to_metadata(task), "a file"), task);
  EXPECT_GE(rows.size(), 14u);
  for (const tasks::CheckRow& row : rows) EXPECT_EQ(row.outcome, Outcome::kPass) << row.name << ": " << row.found;
}

TEST(OnnxContract, AnotherOrderOfJointsAndObservationsIsNamed) {
  const Contract task = dog();
  Contract policy = task;
  std::swap(policy.joint_names[0], policy.joint_names[3]);
  std::swap(policy.observations[0], policy.observations[2]);
  const auto rows = check_contract(policy, task);
  const tasks::CheckRow& joints = row_of(rows, "joints");
  EXPECT_EQ(joints.outcome, Outcome::kFail);
  EXPECT_NE(joints.found.find("another order, from joint 1 on (fr_abduction in the policy, fl_abduction in the task)"),
            std::string::npos)
      << joints.found;
  EXPECT_NE(row_of(rows, "observations").found.find("from observation 1 on (gravity in the policy"), std::string::npos);
  // Gains and pose are compared by name, so that the order alone fails.
  EXPECT_EQ(row_of(rows, "pose").outcome, Outcome::kPass);
  EXPECT_EQ(row_of(rows, "stiffness").outcome, Outcome::kPass);
}

TEST(OnnxContract, OtherNumbersAreNamedWithBoth) {
  const Contract task = dog();
  Contract policy = task;
  policy.action_scale = {0.5};
  policy.default_joint_pos[1] = 0.9;
  policy.joint_stiffness[2] = 20;
  policy.control_period = 0.01;
  policy.observations[1].scale = {0.25};
  policy.observations[5].low = -100, policy.observations[5].high = 100;
  policy.observations[4].history = 5;
  policy.observations[4].shape = {60};
  const auto rows = check_contract(policy, task);
  EXPECT_EQ(row_of(rows, "pose").found, "fl_hip 0.9 (here 0.8); rad or m");
  EXPECT_EQ(row_of(rows, "stiffness").found, "fl_knee 20 (here 25); N m/rad or N/m");
  EXPECT_EQ(row_of(rows, "scales").found, "base_ang_vel is scaled by 0.25 (here 1)");
  EXPECT_EQ(row_of(rows, "clips").found, "joint_vel is clipped to -100 to 100 (here not clipped)");
  EXPECT_EQ(row_of(rows, "history").found, "joint_pos is of 5 moments (here 1)");
  EXPECT_EQ(row_of(rows, "widths").found, "joint_pos has 60 numbers (here 12)");
  EXPECT_EQ(row_of(rows, "control").outcome, Outcome::kFail);
  EXPECT_NE(row_of(rows, "action scale").found.find("fl_abduction 0.5 (here "), std::string::npos);
}

// As mjlab 1.6.0 writes it: three decimals, all of the robot's joints, no widths.
TEST(OnnxContract, MjlabsMetadataAreRead) {
  const Contract policy = read_contract({{"run_path", "team/mjlab/abc"},
                                         {"joint_names", "robot/fl_abduction,robot/fl_hip,robot/fl_knee"},
                                         {"joint_stiffness", "25.000,25.000,25.000"},
                                         {"joint_damping", "0.600,0.600,0.600"},
                                         {"default_joint_pos", "0.000,0.800,-1.500"},
                                         {"command_names", "twist"},
                                         {"observation_names", "base_lin_vel,base_ang_vel,joint_pos"},
                                         {"observation_terms_scale", "1.000,0.250;0.250;0.250,1.000"},
                                         {"observation_terms_flatten_history_dim", "True,True,True"},
                                         {"observation_terms_history_length", "0,0,3"},
                                         {"observation_terms_clip", "-inf;inf,-inf;inf,-10.000;10.000"},
                                         {"action_scale", "0.250,0.250,0.250"}},
                                        "mjlab.onnx");
  ASSERT_EQ(policy.observations.size(), 3u);
  EXPECT_TRUE(policy.observations[0].shape.empty());
  EXPECT_EQ(policy.observations[1].scale, (std::vector<double>{0.25, 0.25, 0.25}));
  EXPECT_EQ(policy.observations[2].history, 3);
  EXPECT_EQ(policy.observations[2].high, 10);
  const auto rows = check_contract(policy, dog());
  EXPECT_EQ(row_of(rows, "stiffness").outcome, Outcome::kPass);
  EXPECT_EQ(row_of(rows, "pose").outcome, Outcome::kPass);
  EXPECT_EQ(row_of(rows, "control").outcome, Outcome::kSkipped);
  EXPECT_NE(row_of(rows, "observations").found.find("the policy does not name gravity, command"), std::string::npos);
  EXPECT_NE(row_of(rows, "commands").found.find("the task lacks twist"), std::string::npos);
}

TEST(OnnxContract, WhatCannotBeReadIsNamedWithKeyAndFile) {
  EXPECT_EQ(message_of([] {
              read_contract({{"action_scale", "0.5,wide"}}, "p.onnx");
            }),
            "p.onnx: the metadata action_scale has 'wide', which is no number");
  EXPECT_EQ(message_of([] {
              read_contract({{"observation_names", "a,b"}, {"observation_terms_scale", "1"}}, "p.onnx");
            }),
            "p.onnx: the metadata observation_terms_scale has 1 items, observation_names has 2");
}

}  // namespace
}  // namespace cohort::onnx
