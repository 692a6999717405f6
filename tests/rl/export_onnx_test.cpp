#include "rl/export_onnx.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "onnx/evaluator.h"
#include "rl/ppo_policy.h"
#include "support/fresh_folder.h"
#include "support/python.h"

namespace cohort::rl {
namespace {

/// Sums of some dozens of numbers in another order, and another tanh.
constexpr double kOnnxTolerance = 1e-6;
constexpr double kNone = std::numeric_limits<double>::infinity();

/// Networks that have seen something, for a task of 7 observations and 3 actions.
struct OnnxCase {
  std::string name;
  PolicySettings settings;
  std::vector<double> low{-1, -1, -1}, high{1, 1, 1};
  std::vector<std::int64_t> actor_columns{0, 1, 2, 3, 4, 5, 6};
};

std::vector<OnnxCase> onnx_cases() {
  std::vector<OnnxCase> cases;
  const auto add = [&](const std::string& name, const auto& change) {
    OnnxCase one{.name = name, .settings = {}};
    one.settings.actor_hidden_dims = {24, 16};
    one.settings.critic_hidden_dims = {8};
    change(one);
    cases.push_back(std::move(one));
  };
  for (const char* activation : {"elu", "relu", "selu", "lrelu", "tanh"})
    add(activation, [&](OnnxCase& one) { one.settings.activation = activation; });
  add("raw", [](OnnxCase& one) { one.settings.empirical_normalization = false; });
  add("squashed", [](OnnxCase& one) { one.settings.distribution = "squashed", one.low = {-3, -1, 0}; });
  add("unbounded", [](OnnxCase& one) { one.low = {-kNone, -kNone, -kNone}, one.high = {kNone, kNone, kNone}; });
  add("mixed", [](OnnxCase& one) { one.low = {-0.25, -kNone, -2}, one.high = {0.5, kNone, 1}; });
  add("asymmetric", [](OnnxCase& one) { one.actor_columns = {1, 2, 5}; });
  for (const int layers : {1, 2, 3})
    add("gru" + std::to_string(layers), [&](OnnxCase& one) {
      one.settings.class_name = "ActorCriticRecurrent";
      one.settings.rnn_hidden_dim = 20;
      one.settings.rnn_num_layers = layers;
      if (layers == 2) one.actor_columns = {0, 3, 4, 6};
    });
  return cases;
}

std::shared_ptr<ActorCritic> networks_of(const OnnxCase& one) {
  tasks::ActionSpec action{.names = {"a", "b", "c"}, .low = {}, .high = {}, .unit = "1"};
  action.low.assign(one.low.begin(), one.low.end());
  action.high.assign(one.high.begin(), one.high.end());
  auto networks = std::make_shared<ActorCritic>(
      one.settings, ObservationLayout{.width = 7, .actor_columns = one.actor_columns}, action, 11);
  torch::manual_seed(3);
  networks->moments().merge(torch::randn({64, 7}) * 2 + 0.5);
  return networks;
}

at::Tensor clipped_to(const OnnxCase& one, const at::Tensor& actions) {
  const at::Tensor low = torch::tensor(std::vector<double>(one.low)).to(at::kFloat),
                   high = torch::tensor(std::vector<double>(one.high)).to(at::kFloat);
  return at::minimum(at::maximum(actions, low), high);
}

std::vector<float> numbers_of(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.contiguous();
  return {flat.const_data_ptr<float>(), flat.const_data_ptr<float>() + flat.numel()};
}

/// What the networks see and give in a few steps, 32 rows each, and their memory before and after.
struct OnnxStep {
  at::Tensor seen, actions, before, after;
};
std::vector<OnnxStep> steps_of(const OnnxCase& one, const ActorCritic& networks) {
  const at::NoGradGuard no_grad;
  torch::manual_seed(5);
  std::vector<OnnxStep> steps;
  at::Tensor memory = networks.begin(32).actor;
  for (int t = 0; t < (networks.recurrent() ? 6 : 1); ++t) {
    OnnxStep step;
    step.seen = torch::randn({32, networks.actor_width()}) * 3;
    if (memory.defined()) step.before = memory.clone();
    step.actions = clipped_to(one, networks.to_task(networks.mean_of_actors_observations(step.seen, memory)));
    if (memory.defined()) step.after = memory.clone();
    steps.push_back(std::move(step));
  }
  return steps;
}

void expect_close(const std::vector<float>& got, const at::Tensor& expected, const std::string& what) {
  const std::vector<float> numbers = numbers_of(expected);
  ASSERT_EQ(got.size(), numbers.size()) << what;
  for (std::size_t i = 0; i < got.size(); ++i)
    EXPECT_NEAR(got[i], numbers[i], kOnnxTolerance * std::max(1.0, std::abs(static_cast<double>(numbers[i]))))
        << what << ", number " << i;
}

TEST(ExportOnnx, TheGraphGivesWhatThePolicyGives) {
  for (const OnnxCase& one : onnx_cases()) {
    const auto networks = networks_of(one);
    const onnx::Evaluator evaluator(
        onnx::parse_model(onnx::serialized(actor_graph(*networks, one.low, one.high)), one.name));
    std::vector<float> memory;
    for (const OnnxStep& step : steps_of(one, *networks)) {
      std::vector<onnx::Tensor> inputs{onnx::Tensor::of("obs", step.seen.sizes().vec(), numbers_of(step.seen))};
      if (step.before.defined()) {
        // The file's own memory goes on, as on a robot.
        if (memory.empty()) memory = numbers_of(step.before);
        inputs.push_back(onnx::Tensor::of("h_in", step.before.sizes().vec(), memory));
      }
      const std::vector<onnx::Tensor> outputs = evaluator.run(inputs);
      for (const onnx::Tensor& output : outputs)
        expect_close(output.floats, output.name == "actions" ? step.actions : step.after, one.name + " " + output.name);
      if (step.before.defined()) {
        ASSERT_EQ(outputs.size(), 2u);
        memory = outputs[0].name == "h_out" ? outputs[0].floats : outputs[1].floats;
      }
    }
  }
}

TEST(ExportOnnx, ActionsBeyondTheBoundsAreClipped) {
  OnnxCase one = onnx_cases()[0];
  const auto networks = networks_of(one);
  const onnx::Evaluator evaluator(actor_graph(*networks, {-0.01, -0.02, -kNone}, {0.01, 0.02, kNone}));
  const std::vector<float> actions =
      evaluator.run({onnx::Tensor::of("obs", {2, 7}, {9, -9, 9, -9, 9, -9, 9, -9, 9, -9, 9, -9, 9, -9})})[0].floats;
  for (const std::size_t row : {0u, 3u}) {
    EXPECT_LE(std::abs(actions[row]), 0.01f);
    EXPECT_LE(std::abs(actions[row + 1]), 0.02f);
  }
  EXPECT_GT(std::max(std::abs(actions[2]), std::abs(actions[5])), 0.02f);
}

// Beside onnx.checker and onnxruntime.
TEST(ExportOnnx, OnnxruntimeGivesWhatThePolicyGives) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("onnx");
  std::vector<std::string> files;
  for (const OnnxCase& one : onnx_cases()) {
    const auto networks = networks_of(one);
    const std::string model = (folder / (one.name + ".onnx")).string();
    onnx::write_model(model, actor_graph(*networks, one.low, one.high));
    nlohmann::json json{{"model", model}, {"steps", nlohmann::json::array()}};
    const auto described = [](const at::Tensor& tensor) {
      return nlohmann::json{{"shape", tensor.sizes().vec()}, {"numbers", numbers_of(tensor)}};
    };
    for (const OnnxStep& step : steps_of(one, *networks)) {
      nlohmann::json row{{"inputs", {{"obs", described(step.seen)}}},
                         {"outputs", {{"actions", described(step.actions)}}}};
      if (step.after.defined()) row["outputs"]["h_out"] = described(step.after);
      // Later steps take what onnxruntime itself gave.
      if (step.before.defined() && json["steps"].empty()) row["inputs"]["h_in"] = described(step.before);
      json["steps"].push_back(std::move(row));
    }
    files.push_back((folder / (one.name + ".json")).string());
    write_file_atomically(files.back(), json_text(json));
  }
  const test::CommandOutcome outcome = test::run_python("rl/check_onnx.py", files);
  if (outcome.code == 3) GTEST_SKIP() << "needs the wheels onnx and onnxruntime: " << outcome.output;
  EXPECT_EQ(outcome.code, 0) << outcome.output;
}

TEST(ExportOnnx, WhatIsNoRunOfPpoIsNamed) {
  const auto folder = test::fresh_folder("onnx");
  EXPECT_NE(message_of([&] { export_onnx(folder, folder / "policy.onnx", {}); }).find(folder.string()),
            std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(folder / "policy.onnx"));
}

}  // namespace
}  // namespace cohort::rl
