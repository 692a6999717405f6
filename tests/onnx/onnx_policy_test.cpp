#include "onnx/onnx_policy.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "actor/policy_actor.h"
#include "core/message_of.h"
#include "onnx/networks.h"
#include "support/fresh_folder.h"
#include "tasks/line_task.h"
#include "tasks/rollout.h"

namespace cohort::onnx {
namespace {

std::vector<tasks::EpisodeOutcome> episodes_of(policy::Policy& policy, int n_envs) {
  testing::LineTask task(n_envs);
  actor::PolicyActor actor(policy, task, "onnx");
  return tasks::run_episodes(task, actor, tasks::consecutive_seeds(0, 14));
}

Contract line_contract() {
  testing::LineTask task(1);
  return contract_of(task);
}

/// h_out = h_in + x, actions = h_out: it gives the sum of the x that it has seen in an episode.
Model summing() {
  Model model;
  model.inputs = {{.name = "obs", .shape = {{-1, "batch"}, {3, ""}}},
                  {.name = "h_in", .shape = {{1, ""}, {-1, "batch"}, {1, ""}}}};
  model.outputs = {{.name = "actions", .shape = {{-1, "batch"}, {1, ""}}},
                   {.name = "h_out", .shape = {{1, ""}, {-1, "batch"}, {1, ""}}}};
  model.initializers = {Tensor::of("w", {3, 1}, {1, 0, 0}), Tensor::of_ints("first", {1}, {0})};
  model.nodes = {node("MatMul", {"obs", "w"}, {"x"}), node("Unsqueeze", {"x", "first"}, {"x3"}),
                 node("Add", {"h_in", "x3"}, {"h_out"}), node("Squeeze", {"h_out", "first"}, {"actions"})};
  return model;
}

TEST(OnnxPolicy, AFileActsInATaskByItsName) {
  Model model = to_zero();
  model.metadata = to_metadata(line_contract());
  const auto path = test::fresh_folder("onnx") / "line.onnx";
  write_model(path, model);
  register_onnx_policies();
  const auto policy = policy::load(path.string());
  ASSERT_EQ(policy->spec().observations.size(), 2u);
  EXPECT_EQ(policy->spec().observations[1].name, "clock");
  EXPECT_EQ(policy->spec().learnt.name, "line");
  EXPECT_NEAR(policy->spec().control_frequency, 10, 1e-9);
  const auto outcomes = episodes_of(*policy, 4);
  std::int64_t solved = 0;
  for (const auto& outcome : outcomes) solved += outcome.success;
  EXPECT_EQ(solved, 12);  // the others have a wind that nobody beats
}

TEST(OnnxPolicy, AModelOfOneRowActsAsOneOfMany) {
  const auto many = onnx_policy(to_zero(), {}, "many"), one = onnx_policy(to_zero(1), {}, "one");
  const auto a = episodes_of(*many, 5), b = episodes_of(*one, 3);
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_EQ(a[i].steps, b[i].steps) << i;
    EXPECT_EQ(a[i].total_reward, b[i].total_reward) << i;
  }
}

TEST(OnnxPolicy, MemoryIsOfAnEnvironmentAndEndsWithItsEpisode) {
  const auto policy = onnx_policy(summing(), {}, "sums");
  EXPECT_TRUE(policy->spec().remembers);
  const auto session = policy->session(
      {.control_period = 0.1, .observations = {{.name = "x", .shape = {3}}}, .action_width = 1, .task = "line"});
  const std::int32_t both[] = {2, 0}, last[] = {0};
  const std::uint64_t seeds[] = {0, 1};
  session->begin(both, seeds, "");
  const std::vector<float> rows{1, 0, 0, 10, 0, 0}, row{100, 0, 0};
  EXPECT_EQ(session->act(both, {.low_dim = rows, .images = {}})[1], std::vector<float>{10});
  session->see(last, {.low_dim = row, .images = {}});
  const auto now = session->act(both, {.low_dim = rows, .images = {}});
  EXPECT_EQ(now[0], std::vector<float>{2});
  EXPECT_EQ(now[1], std::vector<float>{120});
  session->begin(last, std::span(seeds, 1), "");
  EXPECT_EQ(session->act(last, {.low_dim = row, .images = {}})[0], std::vector<float>{100});
}

TEST(OnnxPolicy, WhatItCannotBeIsSaidWhenItIsRead) {
  Model two = to_zero();
  two.inputs.push_back({.name = "time_step", .shape = {{1, ""}, {1, ""}}});
  EXPECT_EQ(message_of([&] { onnx_policy(two, {}, "p.onnx"); }),
            "p.onnx: its input 'time_step' is neither what it sees ('obs') nor what it remembers");
  Contract contract = line_contract();
  contract.observations.pop_back();
  EXPECT_EQ(message_of([&] { onnx_policy(to_zero(), contract, "p.onnx"); }),
            "p.onnx: its metadata name observations of 1 numbers (observation_names, observation_shapes), and its "
            "input 'obs' takes 3");
  Model unknown = to_zero();
  unknown.nodes[1].op = "Einsum";
  EXPECT_NE(message_of([&] { onnx_policy(unknown, {}, "p.onnx"); }).find("p.onnx: node 'Tanh_1' (Einsum)"),
            std::string::npos);
  const auto path = test::fresh_folder("onnx") / "line.onnx";
  write_model(path, to_zero());
  EXPECT_NE(message_of([&] { load_onnx_policy(path, {.device = "cuda:0"}); }).find("leave --device out"),
            std::string::npos);
}

TEST(OnnxPolicy, ATaskWithOtherObservationsIsRefusedByName) {
  Contract contract = line_contract();
  contract.observations[0].name = "place";
  const auto policy = onnx_policy(to_zero(), contract, "p.onnx");
  EXPECT_NE(message_of([&] { episodes_of(*policy, 1); }).find("it sees 'place'"), std::string::npos);
}

}  // namespace
}  // namespace cohort::onnx
