#include <torch/nn/module.h>
#include <torch/types.h>

#include "support/fresh_folder.h"
#include "support/python.h"
#include "train/optimizer.h"
#include "weights/safetensors.h"

namespace cohort::train {
namespace {

constexpr int kSteps = 6;
const char* const kNames[] = {"a.weight", "a.bias", "b.weight", "late"};

struct Case {
  const char* name;
  OptimizerSettings settings;
  double lr;
};

std::vector<Case> cases() {
  return {{"adamw", {.kind = "adamw"}, 3e-3},
          {"adamw_decay", {.kind = "adamw", .beta1 = 0.8, .beta2 = 0.95, .eps = 1e-6, .weight_decay = 0.3}, 3e-3},
          {"adamw_amsgrad", {.kind = "adamw", .amsgrad = true}, 3e-3},
          {"adam", {.kind = "adam"}, 3e-3},
          {"adam_decay", {.kind = "adam", .weight_decay = 0.3}, 3e-3},
          {"sgd", {.kind = "sgd"}, 3e-2},
          {"sgd_momentum", {.kind = "sgd", .weight_decay = 0.1, .momentum = 0.9}, 3e-2},
          {"sgd_nesterov", {.kind = "sgd", .momentum = 0.9, .nesterov = true}, 3e-2}};
}

std::map<std::string, at::Tensor> read_map(const std::filesystem::path& path) {
  const auto file = weights::read_safetensors(path);
  return {file.tensors.begin(), file.tensors.end()};
}

/// Steps [first, last) with the gradients and learning rates of the Python script.
void make_steps(
    Optimizer& optimizer, const Case& c, const std::map<std::string, at::Tensor>& peer, int first, int last,
    const std::function<void(int)>& after = [](int) {}) {
  for (int step = first; step < last; ++step) {
    for (const auto& [name, parameter] : optimizer.parameters()) {
      const auto gradient = peer.find("gradient" + std::to_string(step) + "." + name);
      at::Tensor writable = parameter;
      writable.mutable_grad() = gradient == peer.end() ? at::Tensor() : gradient->second.clone();
    }
    optimizer.step(c.lr * (1.0 - 0.1 * step));
    after(step);
  }
}

ParameterGroup group_from(const std::map<std::string, at::Tensor>& tensors, const std::string& prefix, const Case& c) {
  ParameterGroup group{{}, 1.0, c.settings.resolved_weight_decay()};
  for (const char* name : kNames) {
    group.parameters.emplace_back(name, tensors.at(prefix + name).clone().requires_grad_(true));
  }
  return group;
}

TEST(OptimizerParity, EveryStepAndStateEqualsTorchOptimFusedToTheBit) {
  COHORT_NEEDS_PYTHON();
  const auto folder = test::fresh_folder("optimizer_parity");
  ASSERT_TRUE(test::python_agrees("train/optimizer_parity.py", {"write", folder.string()}));
  for (const auto& c : cases()) {
    SCOPED_TRACE(c.name);
    const auto peer = read_map(folder / (std::string(c.name) + ".safetensors"));
    Optimizer optimizer({group_from(peer, "start.", c)}, c.settings);
    weights::NamedTensors ours;
    make_steps(optimizer, c, peer, 0, kSteps, [&](int step) {
      for (const auto& [name, parameter] : optimizer.parameters()) {
        const std::string key = "after" + std::to_string(step) + "." + name;
        EXPECT_TRUE(at::equal(parameter, peer.at(key))) << key;
        ours.emplace_back(key, parameter.detach().clone());
      }
      if (step == 2) {
        for (const auto& [name, tensor] : optimizer.state()) ours.emplace_back(name, tensor.clone());
      }
    });
    std::size_t states = 0;
    for (const auto& [name, tensor] : optimizer.state()) {
      ASSERT_TRUE(peer.count(name)) << name;
      EXPECT_TRUE(at::equal(tensor, peer.at(name))) << name;
      ++states;
    }
    std::size_t expected = 0;
    for (const auto& [name, unused] : peer) expected += name.starts_with("state.");
    EXPECT_EQ(states, expected);
    weights::write_safetensors(folder / (std::string(c.name) + ".ours.safetensors"), ours);

    // Our own resume from the file.
    const auto saved = weights::read_safetensors(folder / (std::string(c.name) + ".ours.safetensors"));
    const std::map<std::string, at::Tensor> by_name(saved.tensors.begin(), saved.tensors.end());
    Optimizer resumed({group_from(by_name, "after2.", c)}, c.settings);
    weights::NamedTensors state;
    for (const auto& item : saved.tensors) {
      if (item.first.starts_with("state.")) state.push_back(item);
    }
    resumed.load_state(state, "saved");
    make_steps(resumed, c, peer, 3, kSteps);
    for (const auto& [name, parameter] : resumed.parameters()) {
      EXPECT_TRUE(at::equal(parameter, peer.at("after5." + name))) << name;
    }
  }
  // PyTorch's optimizer goes on from our state.
  EXPECT_TRUE(test::python_agrees("train/optimizer_parity.py", {"resume", folder.string()}));
}

}  // namespace
}  // namespace cohort::train
