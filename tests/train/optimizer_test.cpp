#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"

namespace cohort::train {
namespace {

struct Net : torch::nn::Module {
  Net() {
    one = register_module("one", torch::nn::Linear(4, 3));
    norm = register_module("norm", torch::nn::LayerNorm(torch::nn::LayerNormOptions({3})));
    frozen = register_parameter("frozen", torch::zeros({2}), false);
    tied = register_parameter("tied", one->weight);
  }
  torch::nn::Linear one{nullptr};
  torch::nn::LayerNorm norm{nullptr};
  at::Tensor frozen, tied;
};

void set_gradients(Optimizer& optimizer, double value) {
  for (const auto& [name, parameter] : optimizer.parameters()) {
    at::Tensor writable = parameter;
    writable.mutable_grad() = torch::full_like(parameter, value);
  }
}

TEST(Optimizer, TiedWeightsAreSteppedOnceAndFrozenOnesNever) {
  Net net;
  OptimizerSettings settings{.kind = "sgd"};
  Optimizer optimizer(parameter_groups(net, settings), settings);
  EXPECT_EQ(optimizer.parameters().size(), 4u);
  const at::Tensor before = net.one->weight.detach().clone();
  set_gradients(optimizer, 1.0);
  net.frozen.mutable_grad() = torch::ones({2});
  optimizer.step(0.5);
  EXPECT_TRUE(at::equal(net.one->weight, before - 0.5));
  EXPECT_TRUE(at::equal(net.frozen, torch::zeros({2})));
}

TEST(Optimizer, VectorsAreSparedFromDecayWhenAsked) {
  Net net;
  OptimizerSettings settings{.kind = "adamw", .weight_decay = 0.5, .decay_vectors = false};
  Optimizer optimizer(parameter_groups(net, settings), settings);
  const at::Tensor bias = net.one->bias.detach().clone(), weight = net.one->weight.detach().clone();
  set_gradients(optimizer, 0.0);
  optimizer.step(0.1);
  EXPECT_TRUE(at::equal(net.one->bias, bias));
  EXPECT_TRUE(at::allclose(net.one->weight, weight * 0.95));
}

TEST(Optimizer, FoundInfLeavesParametersStateAndCountAsTheyWere) {
  for (const char* kind : {"adamw", "adam", "sgd"}) {
    Net net;
    OptimizerSettings settings{.kind = kind, .momentum = 0.9};
    Optimizer optimizer(parameter_groups(net, settings), settings);
    const auto snapshot = [&] {
      std::vector<at::Tensor> all;
      for (const auto& [name, tensor] : optimizer.parameters()) all.push_back(tensor.detach().clone());
      for (const auto& [name, tensor] : optimizer.state()) all.push_back(tensor.clone());
      return all;
    };
    const auto expect_equal = [&](const std::vector<at::Tensor>& a, const std::vector<at::Tensor>& b) {
      ASSERT_EQ(a.size(), b.size());
      for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(at::equal(a[i], b[i])) << kind << " " << i;
    };
    // Also in the very first step, when the state is new.
    set_gradients(optimizer, std::numeric_limits<double>::quiet_NaN());
    optimizer.step(0.1, torch::ones({}));
    const auto first = snapshot();
    for (const auto& tensor : first) EXPECT_TRUE(tensor.isfinite().all().item<bool>()) << kind;
    set_gradients(optimizer, 1.0);
    optimizer.step(0.1, torch::zeros({}));
    const auto second = snapshot();
    EXPECT_FALSE(at::equal(first[0], second[0]));
    set_gradients(optimizer, std::numeric_limits<double>::infinity());
    optimizer.step(0.1, torch::ones({}));
    expect_equal(snapshot(), second);
  }
}

TEST(Optimizer, GradScaleDividesTheGradients) {
  for (const char* kind : {"adamw", "sgd"}) {
    torch::manual_seed(0);
    Net a;
    torch::manual_seed(0);
    Net b;
    OptimizerSettings settings{.kind = kind};
    Optimizer plain(parameter_groups(a, settings), settings), scaled(parameter_groups(b, settings), settings);
    set_gradients(plain, 0.25);
    plain.step(0.1);
    set_gradients(scaled, 0.25 * 1024);
    scaled.step(0.1, torch::zeros({}), torch::full({}, 1024.0f));
    EXPECT_TRUE(at::equal(a.one->weight, b.one->weight)) << kind;
  }
}

TEST(Optimizer, AStateOfAnotherModelOrKindIsRefusedByName) {
  Net net;
  OptimizerSettings adam{.kind = "adamw"}, sgd{.kind = "sgd", .momentum = 0.9};
  Optimizer source(parameter_groups(net, adam), adam);
  set_gradients(source, 1.0);
  source.step(0.1);
  const weights::NamedTensors good = source.state();
  const auto error = [&](const weights::NamedTensors& state, const OptimizerSettings& settings) {
    Optimizer optimizer(parameter_groups(net, settings), settings);
    const std::string text = message_of([&] { optimizer.load_state(state, "optimizer.safetensors"); });
    EXPECT_EQ(optimizer.state().empty(), !text.empty()) << "something was taken over";
    return text;
  };
  EXPECT_EQ(error(good, adam), "");
  EXPECT_NE(error(good, sgd).find("no state of this model's sgd optimizer"), std::string::npos);
  weights::NamedTensors missing(good.begin() + 1, good.end());
  EXPECT_NE(error(missing, adam).find("incomplete (2 of 3"), std::string::npos);
  weights::NamedTensors shape = good;
  shape[1].second = torch::zeros({5});
  EXPECT_NE(error(shape, adam).find("another shape"), std::string::npos);
  weights::NamedTensors extra = good;
  extra.emplace_back("state.other.exp_avg", torch::zeros({5}));
  EXPECT_NE(error(extra, adam).find("'state.other.exp_avg'"), std::string::npos);
}

TEST(Optimizer, SettingsOutOfRangeAreRefused) {
  Net net;
  const auto make = [&](OptimizerSettings settings) { Optimizer(parameter_groups(net, {}), settings); };
  EXPECT_THROW(make({.kind = "lion"}), Error);
  EXPECT_THROW(make({.beta1 = 1.0}), Error);
  EXPECT_THROW(make({.kind = "sgd", .nesterov = true}), Error);
  EXPECT_THROW(make({.weight_decay = -1.0}), Error);
  torch::nn::Sequential empty;
  EXPECT_THROW(parameter_groups(*empty, {}), Error);
}

}  // namespace
}  // namespace cohort::train
