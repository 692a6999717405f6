// `cohort export`, and policies in ONNX files as a user meets them.
#include <cmath>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "onnx/model.h"
#include "support/process.h"

namespace cohort::testing {
namespace {

using Words = std::vector<std::string>;

class ExportCommand : public ::testing::Test {
 protected:
  Outcome cohort(Words words) const {
    words.insert(words.begin(), cohort_path());
    return run(words, {{"OMP_NUM_THREADS", "1"}});
  }
  std::string trained(const std::string& name, const Words& more) const {
    Words words{"train",
                "ppo",
                "task=cartpole-balance",
                "name=" + name,
                "output_dir=" + (folder_.path() / "out").string(),
                "n_envs=32",
                "num_steps_per_env=16",
                "max_iterations=3",
                "policy.actor_hidden_dims=[16,16]",
                "policy.critic_hidden_dims=[8]",
                "charts=false",
                "task_settings=[horizon=200]"};
    words.insert(words.end(), more.begin(), more.end());
    const Outcome outcome = cohort(words);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return (folder_.path() / "out" / name / "latest").string();
  }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

  TemporaryFolder folder_;
};

/// A regulator by hand in a file: it pushes the cart towards where the pole leans. The observations stand in the order
/// `names` (of which pole_direction has two numbers), and the metadata say so.
onnx::Model regulator(const Words& names) {
  onnx::Model model;
  model.inputs = {{.name = "obs", .shape = {{-1, "batch"}, {5, ""}}}};
  model.outputs = {{.name = "actions", .shape = {{-1, "batch"}, {1, ""}}}};
  std::vector<float> weights;
  std::string shapes, list;
  for (const std::string& name : names) {
    if (name == "cart_pos") weights.push_back(0.2f);
    if (name == "cart_vel") weights.push_back(0.4f);
    if (name == "pole_vel") weights.push_back(1.0f);
    if (name == "pole_direction") weights.insert(weights.end(), {4.0f, 0.0f});
    list += (list.empty() ? "" : ",") + name;
    shapes += std::string(shapes.empty() ? "" : ",") + (name == "pole_direction" ? "2" : "1");
  }
  model.initializers = {onnx::Tensor::of("w", {5, 1}, weights), onnx::Tensor::of("low", {}, {-1}),
                        onnx::Tensor::of("high", {}, {1})};
  model.nodes = {
      {.name = "push", .op = "MatMul", .domain = "", .inputs = {"obs", "w"}, .outputs = {"force"}, .attributes = {}},
      {.name = "bound",
       .op = "Clip",
       .domain = "",
       .inputs = {"force", "low", "high"},
       .outputs = {"actions"},
       .attributes = {}}};
  model.metadata = {{"observation_names", list}, {"observation_shapes", shapes}, {"control_period", "0.02"}};
  return model;
}

/// "success in 20 of" of the line that begins so; -1: there is none.
int successes(const std::string& text, const std::string& line) {
  const std::size_t at = text.find("\n" + line);
  const std::size_t found = at == std::string::npos ? at : text.find("success in ", at);
  return found == std::string::npos ? -1 : std::atoi(text.c_str() + found + 11);
}

TEST_F(ExportCommand, AnExportedPolicyFitsItsTaskAndActsAsItsRun) {
  const std::string run_path = trained("mlp", {});
  const Outcome written = cohort({"export", run_path, file("mlp.onnx")});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_NE(written.out.find("obs: cart_pos [0:1] pole_direction [1:3] cart_vel [3:4] pole_vel [4:5]"),
            std::string::npos)
      << written.out;
  const Outcome checked =
      cohort({"tasks", "cartpole-balance", "horizon=200", "--check-policy", file("mlp.onnx"), "--episodes", "4"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
  EXPECT_NE(checked.out.find("mlp.onnx fits cartpole-balance"), std::string::npos) << checked.out;
  EXPECT_EQ(checked.out.find("by contract"), std::string::npos) << checked.out;
  std::vector<double> returns;
  for (const std::string& policy : {run_path, file("mlp.onnx")}) {
    const std::string out = file("evaluated" + std::to_string(returns.size()));
    const Outcome evaluated = cohort(
        {"evaluate", "--task", "cartpole-balance", "horizon=200", "--episodes", "4", "--out", out, "--policy", policy});
    ASSERT_EQ(evaluated.code, 0) << evaluated.err;
    EXPECT_EQ(evaluated.err.find("it has learnt"), std::string::npos) << evaluated.err;
    const auto table = parse_json<nlohmann::json>(text_of(fs::path(out) / "evaluation.json"));
    returns.push_back(table.at("policies").at(0).at("mean_return").get<double>());
  }
  EXPECT_NEAR(returns[0], returns[1], 1e-3 * std::abs(returns[0]));
}

TEST_F(ExportCommand, TheContractIsThatOfTheFileFromWhichThePolicyHasLearnt) {
  const fs::path source = fs::path(COHORT_SOURCE_DIR) / "examples" / "tasks";
  const std::string task = file("cartpole.yaml");
  fs::copy_file(source / "cartpole.yaml", task);
  const Outcome run = cohort({"train", "ppo", "task=" + task, "name=file", "output_dir=" + file("outputs"), "n_envs=16",
                              "num_steps_per_env=8", "max_iterations=1"});
  ASSERT_EQ(run.code, 0) << run.err;
  std::string changed = text_of(task);
  changed.replace(changed.find("scale: 1}"), 9, "scale: 0.5}");
  std::ofstream(task) << changed;
  const std::string path = file("outputs") + "/file/latest";
  const Outcome written = cohort({"export", path, file("policy.onnx")});
  ASSERT_EQ(written.code, 0) << written.err;
  EXPECT_NE(written.err.find("which has changed since"), std::string::npos) << written.err;
  EXPECT_NE(written.out.find("cohort tasks " + task + " --check-policy"), std::string::npos) << written.out;
  const Outcome checked = cohort({"tasks", task, "--check-policy", file("policy.onnx"), "--episodes", "2"});
  EXPECT_EQ(checked.code, 1) << checked.out;
  EXPECT_NE(checked.out.find("action scale  FAIL  slider 1 (here 0.5)"), std::string::npos) << checked.out;
}

TEST_F(ExportCommand, APolicyWithMemoryIsAFileWithMemory) {
  const std::string run_path = trained("gru", {"policy.class_name=ActorCriticRecurrent", "policy.rnn_hidden_dim=12",
                                               "policy.rnn_num_layers=2", "policy.critic_only=[cart_vel,pole_vel]"});
  ASSERT_EQ(cohort({"export", run_path, file("gru.onnx")}).code, 0);
  const onnx::Model model = onnx::read_model(file("gru.onnx"));
  ASSERT_EQ(model.inputs.size(), 2u);
  EXPECT_EQ(model.inputs[0].shape[1].size, 3);
  EXPECT_EQ(model.inputs[1].name, "h_in");
  EXPECT_EQ(model.metadata.at("observation_names"), "cart_pos,pole_direction");
  EXPECT_EQ(model.metadata.at("task_settings"), R"({"engine":"batched","horizon":"200"})");
  const Outcome checked =
      cohort({"tasks", "cartpole-balance", "horizon=200", "--check-policy", file("gru.onnx"), "--episodes", "2"});
  EXPECT_EQ(checked.code, 0) << checked.out << checked.err;
}

TEST_F(ExportCommand, AnotherOrderOfObservationsIsNamedAndWhatItCosts) {
  const Words order{"cart_pos", "pole_direction", "cart_vel", "pole_vel"};
  onnx::write_model(file("same.onnx"), regulator(order));
  onnx::write_model(file("other.onnx"), regulator({"pole_vel", "cart_vel", "pole_direction", "cart_pos"}));
  const Outcome same = cohort({"tasks", "cartpole-balance", "--check-policy", file("same.onnx"), "--episodes", "5"});
  EXPECT_EQ(same.code, 0) << same.out << same.err;
  EXPECT_EQ(successes(same.out, "as it stands"), 5) << same.out;
  const Outcome other = cohort({"tasks", "cartpole-balance", "--check-policy", file("other.onnx"), "--episodes", "5"});
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_NE(
      other.out.find("observations  FAIL  another order, from observation 1 on (pole_vel in the policy, cart_pos in "
                     "the task)"),
      std::string::npos)
      << other.out;
  EXPECT_EQ(successes(other.out, "as it stands"), 0) << other.out;
  EXPECT_EQ(successes(other.out, "by contract"), 5) << other.out;
  EXPECT_NE(other.out.find("put right: observations by name"), std::string::npos) << other.out;
  EXPECT_EQ(successes(other.out, "random"), 0) << other.out;
}

TEST_F(ExportCommand, WhatDoesNotFitIsSaidWithoutPlayingIt) {
  onnx::write_model(file("same.onnx"), regulator({"cart_pos", "pole_direction", "cart_vel", "pole_vel"}));
  const Outcome other = cohort({"tasks", "quadruped-velocity", "--check-policy", file("same.onnx")});
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.out.find("numbers       FAIL  it sees 5 and gives 1; the task has 48 and takes 12"),
            std::string::npos)
      << other.out;
  EXPECT_EQ(other.out.find("as it stands"), std::string::npos);
  const Outcome wrong = cohort({"export", folder_.path().string(), file("policy.pt")});
  EXPECT_NE(wrong.code, 0);
  EXPECT_NE(wrong.err.find("the name of an ONNX file ends in .onnx"), std::string::npos) << wrong.err;
  const Outcome none = cohort({"export", folder_.path().string(), file("policy.onnx")});
  EXPECT_NE(none.code, 0);
  EXPECT_FALSE(fs::exists(file("policy.onnx")));
}

}  // namespace
}  // namespace cohort::testing
