// Optimizer states in 8 bits against bitsandbytes (fixtures/adamw_8bit.json, written by make_8bit_fixture.py).
#include "train/quantized_state.h"

#include <cmath>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "train/optimizer.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

const nlohmann::json& bitsandbytes_facts() {
  static const nlohmann::json facts =
      parse_json<nlohmann::json>(read_file(std::string(COHORT_SOURCE_DIR) + "/tests/train/fixtures/adamw_8bit.json"));
  return facts;
}

at::Tensor floats_of(const char* name) {
  return torch::tensor(bitsandbytes_facts().at(name).get<std::vector<float>>());
}

/// The script's numbers.
at::Tensor whole_numbers(std::int64_t salt, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i)
    values.push_back(static_cast<float>(static_cast<double>((i * 7919 + salt * 104729) % 2003 - 1001) *
                                        std::pow(2.0, -static_cast<double>((i + salt) % 11 + 10))));
  return torch::tensor(values);
}

TEST(QuantizedState, MapsAreThoseOfBitsandbytes) {
  EXPECT_TRUE(at::equal(dynamic_map(true), floats_of("signed")));
  EXPECT_TRUE(at::equal(dynamic_map(false), floats_of("unsigned")));
}

TEST(QuantizedState, NumbersAreRoundedAsBitsandbytesRoundsThem) {
  const auto codes = [](const char* name) {
    return torch::tensor(bitsandbytes_facts().at(name).get<std::vector<int>>()).to(at::kByte);
  };
  const at::Tensor x = whole_numbers(1, 1300);
  const QuantizedState state = quantize_state(x, true);
  EXPECT_TRUE(at::equal(state.scales, floats_of("absmax_signed")));
  // Their optimizers keep the sign of what would become zero; their rounding alone does not.
  const at::Tensor theirs = codes("codes_signed"), zero = dynamic_map(true).index_select(0, theirs.to(at::kInt)) == 0;
  EXPECT_TRUE(at::equal(state.codes, at::where(zero.logical_and(x < 0), theirs - 1, theirs)));
  // Their library for the CPU puts -1 in the place of a map's first value, so that zero becomes the second one.
  EXPECT_TRUE(at::equal(quantize_state(x.abs(), false).codes,
                        at::where(x == 0, 0, codes("codes_unsigned").to(at::kInt)).to(at::kByte)));
  const at::Tensor scales = state.scales.repeat_interleave(kStateBlock).narrow(0, 0, x.numel());
  const at::Tensor kept = (dynamic_map(true).index_select(0, state.codes.view(-1).to(at::kInt)) * scales).view_as(x);
  EXPECT_LT((kept - x).abs().max().item<double>(), 0.01 * x.abs().max().item<double>());
}

TEST(QuantizedState, StepsOfAdamwAreThoseOfTorchBetweenTheirRoundings) {
  for (const bool by_tensors : {false, true}) {
    const at::Tensor p = whole_numbers(0, 1300), number = torch::zeros({});
    const QuantizedState mean = zero_state(p), variance = zero_state(p);
    for (int step = 1; step <= 4; ++step) {
      number.fill_(step);
      (by_tensors ? adamw_8bit_by_tensors : adamw_8bit)(p, whole_numbers(step, 1300), mean, variance,
                                                        {.lr = 1e-2, .weight_decay = 1e-2, .step = number});
    }
    // A number between two values may fall to either; the next step then differs by what lies between them.
    const at::Tensor expected = floats_of("parameter");
    const at::Tensor equal = (p - expected).abs() < 1e-6 * expected.abs() + 1e-7;
    EXPECT_GT(equal.to(at::kDouble).mean().item<double>(), 0.995) << by_tensors;
    EXPECT_TRUE(at::allclose(p, expected, 1e-2, 1e-3)) << by_tensors;
  }
}

TEST(QuantizedState, TheLoopAndTheTensorOperationsAgreeAndAnOverflowChangesNothing) {
  torch::manual_seed(1);
  const at::Tensor start = torch::randn({300, 257});  // not whole blocks
  const at::Tensor p[2] = {start.clone(), start.clone()};
  const QuantizedState mean[2] = {zero_state(p[0]), zero_state(p[1])},
                       variance[2] = {zero_state(p[0]), zero_state(p[1])};
  const at::Tensor number = torch::zeros({});
  for (int step = 1; step <= 5; ++step) {
    number.fill_(step);
    const at::Tensor gradient = torch::randn({300, 257}) * 1e-3;
    const AdamW8bitStep settings{.lr = 1e-3, .weight_decay = 1e-2, .step = number};
    adamw_8bit(p[0], gradient, mean[0], variance[0], settings);
    adamw_8bit_by_tensors(p[1], gradient, mean[1], variance[1], settings);
  }
  EXPECT_TRUE(at::allclose(p[0], p[1], 1e-5, 2e-4));
  const auto same = [](const at::Tensor& a, const at::Tensor& b) {
    return (a == b).to(at::kDouble).mean().item<double>();
  };
  EXPECT_GT(same(mean[0].codes, mean[1].codes), 0.999);
  EXPECT_GT(same(variance[0].codes, variance[1].codes), 0.999);
  const std::vector<at::Tensor> before{p[0].clone(), mean[0].codes.clone(), variance[0].scales.clone()};
  const AdamW8bitStep overflow{.lr = 1e-3, .step = number, .found_inf = torch::ones({})};
  adamw_8bit(p[0], torch::full({300, 257}, std::nan("")), mean[0], variance[0], overflow);
  EXPECT_TRUE(at::equal(p[0], before[0]) && at::equal(mean[0].codes, before[1]) &&
              at::equal(variance[0].scales, before[2]));
  const at::Tensor kept = p[1].clone();
  adamw_8bit_by_tensors(p[1], torch::full({300, 257}, std::nan("")), mean[1], variance[1], overflow);
  EXPECT_TRUE(at::equal(p[1], kept));
}

struct Regression : torch::nn::Module {
  Regression() {
    one = register_module("one", torch::nn::Linear(64, 128));
    two = register_module("two", torch::nn::Linear(128, 8));
  }
  at::Tensor loss(const at::Tensor& x, const at::Tensor& y) { return torch::mse_loss(two(torch::gelu(one(x))), y); }
  torch::nn::Linear one{nullptr}, two{nullptr};
};

/// 500 steps on noisy values of a fixed function; the mean loss of each hundred.
std::vector<double> losses_of(const std::string& kind) {
  torch::manual_seed(11);
  Regression model;
  const at::Tensor teacher = torch::randn({64, 8}) / 8;
  OptimizerSettings settings{.kind = kind};
  Optimizer optimizer(parameter_groups(model, settings), settings);
  std::vector<double> means(5, 0.0);
  for (int step = 0; step < 500; ++step) {
    const at::Tensor x = torch::randn({64, 64}), y = torch::tanh(x.matmul(teacher)) + 0.3 * torch::randn({64, 8});
    for (at::Tensor& p : model.parameters()) p.mutable_grad().reset();
    const at::Tensor loss = model.loss(x, y);
    loss.backward();
    optimizer.step(2e-3);
    means[static_cast<std::size_t>(step / 100)] += loss.item<double>() / 100;
  }
  return means;
}

TEST(QuantizedState, LossesOver500StepsStayWithinOnePercentOf32Bits) {
  const auto exact = losses_of("adamw"), quantized = losses_of("adamw8bit");
  EXPECT_LT(exact.back(), 0.65 * exact.front()) << "it learns";
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(quantized[i] / exact[i], 1.0, 0.01) << "hundred " << i;
    EXPECT_NE(quantized[i], exact[i]);
  }
}

TEST(QuantizedState, AParameterTakesTwoBytesOfStateAndSmallOnesStayIn32Bits) {
  Regression model;
  OptimizerSettings settings{.kind = "adamw8bit"};
  Optimizer optimizer(parameter_groups(model, settings), settings);
  model.loss(torch::randn({4, 64}), torch::randn({4, 8})).backward();
  optimizer.step(1e-3);
  std::int64_t bytes = 0;
  for (const auto& [name, tensor] : optimizer.state()) {
    const bool large = name.starts_with("state.one.weight.");
    const bool moment = name.ends_with(".exp_avg") || name.ends_with(".exp_avg_sq");
    if (moment) EXPECT_EQ(tensor.scalar_type(), large ? at::kByte : at::kFloat) << name;
    if (large) bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  EXPECT_EQ(bytes, 2 * (64 * 128 + 4 * 64 * 128 / 256) + 4);
  EXPECT_EQ(optimizer.state_bytes(), bytes + 3 * 4 + 2 * 4 * (128 + 8 * 128 + 8));
}

TEST(QuantizedState, ASavedStateGoesOnWithTheSameBits) {
  torch::manual_seed(2);
  Regression model;
  OptimizerSettings settings{.kind = "adamw8bit"};
  const auto step = [&](Optimizer& optimizer, int seed) {
    torch::manual_seed(static_cast<std::uint64_t>(seed));
    for (at::Tensor& p : model.parameters()) p.mutable_grad().reset();
    model.loss(torch::randn({16, 64}), torch::randn({16, 8})).backward();
    optimizer.step(1e-2);
  };
  Optimizer first(parameter_groups(model, settings), settings);
  for (int i = 0; i < 3; ++i) step(first, i);
  weights::NamedTensors state, weights;
  for (const auto& [name, tensor] : first.state()) state.emplace_back(name, tensor.clone());
  for (const auto& [name, tensor] : first.parameters()) weights.emplace_back(name, tensor.detach().clone());
  for (int i = 3; i < 6; ++i) step(first, i);
  std::vector<at::Tensor> undisturbed;
  for (const auto& [name, tensor] : first.parameters()) undisturbed.push_back(tensor.detach().clone());
  {
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < weights.size(); ++i) first.parameters()[i].second.detach().copy_(weights[i].second);
  }
  Optimizer second(parameter_groups(model, settings), settings);
  second.load_state(state, "file");
  for (int i = 3; i < 6; ++i) step(second, i);
  for (std::size_t i = 0; i < undisturbed.size(); ++i)
    EXPECT_TRUE(same_bits(second.parameters()[i].second.detach(), undisturbed[i])) << i;
  // A state of 32 bits is another optimizer's.
  OptimizerSettings plain;
  Optimizer exact(parameter_groups(model, plain), plain);
  EXPECT_THROW(exact.load_state(state, "file"), Error);
}

TEST(QuantizedState, WhatItCannotDoIsRefusedByName) {
  Regression model;
  OptimizerSettings largest{.kind = "adamw8bit", .amsgrad = true};
  EXPECT_NE(message_of([&] { largest.validate(); }).find("train.amsgrad=true"), std::string::npos);
  model.to(at::kDouble);
  OptimizerSettings settings{.kind = "adamw8bit"};
  Optimizer optimizer(parameter_groups(model, settings), settings);
  model.loss(torch::randn({4, 64}, at::kDouble), torch::randn({4, 8}, at::kDouble)).backward();
  EXPECT_NE(message_of([&] { optimizer.step(1e-3); }).find("8-bit AdamW updates dense float32 parameters"),
            std::string::npos);
}

TEST(MasterWeights, ParametersAreRoundedFromMastersThatTakeExactSteps) {
  torch::manual_seed(3);
  for (const char* kind : {"adamw", "adamw8bit", "sgd"}) {
    Regression exact, rounded;
    {
      const at::NoGradGuard no_grad;
      auto from = exact.parameters(), to = rounded.parameters();
      for (std::size_t i = 0; i < from.size(); ++i) {
        from[i].copy_(from[i].to(at::kBFloat16));
        to[i].set_data(from[i].to(at::kBFloat16));
      }
    }
    OptimizerSettings settings{.kind = kind, .momentum = 0.9};
    Optimizer a(parameter_groups(exact, settings), settings), b(parameter_groups(rounded, settings), settings, true);
    for (int step = 0; step < 3; ++step) {
      for (std::size_t i = 0; i < a.parameters().size(); ++i) {
        const at::Tensor gradient = torch::randn(a.parameters()[i].second.sizes()).to(at::kBFloat16);
        at::Tensor p = a.parameters()[i].second, q = b.parameters()[i].second;
        p.mutable_grad() = gradient.to(at::kFloat);
        q.mutable_grad() = gradient;
      }
      a.step(1e-5);  // less than bfloat16 would keep
      b.step(1e-5);
    }
    for (std::size_t i = 0; i < a.parameters().size(); ++i) {
      const at::Tensor master = b.exact(b.parameters()[i].second);
      EXPECT_TRUE(same_bits(master, a.parameters()[i].second.detach())) << kind << i;
      EXPECT_TRUE(at::equal(b.parameters()[i].second, master.to(at::kBFloat16))) << kind << i;
    }
    bool has_master = false;
    for (const auto& [name, tensor] : b.state()) has_master |= name == "state.one.weight.master";
    EXPECT_TRUE(has_master);
    Optimizer again(parameter_groups(rounded, settings), settings, true);
    again.load_state(b.state(), "file");
    EXPECT_TRUE(same_bits(again.exact(rounded.one->weight), b.exact(rounded.one->weight)));
    Optimizer without(parameter_groups(exact, settings), settings);
    EXPECT_NE(message_of([&] { without.load_state(b.state(), "file"); }).find("train.weights"), std::string::npos);
  }
}

}  // namespace
}  // namespace cohort::train
