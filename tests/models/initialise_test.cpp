#include "models/initialise.h"

#include <cmath>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "models/fixture.h"
#include "models/informer/informer.h"
#include "models/layers.h"

namespace cohort::models {
namespace {

TEST(Initialise, LinearHasPyTorchsDistribution) {
  // torch.nn.Linear(200, 300): weight and bias uniform in ±1/sqrt(200).
  Linear layer(200, 300);
  initialise(layer, 5);
  const double bound = 1 / std::sqrt(200.0);
  for (const at::Tensor& value : {layer.weight(), layer.bias()}) {
    const double n = static_cast<double>(value.numel());
    EXPECT_LE(value.abs().max().item<double>(), bound);
    EXPECT_GT(value.abs().max().item<double>(), bound * (1 - 20 / n)) << "the whole range is used";
    EXPECT_NEAR(value.mean().item<double>(), 0.0, 5 * bound / std::sqrt(3 * n));
    EXPECT_NEAR(value.square().mean().item<double>(), bound * bound / 3, 5 * bound * bound * 0.3 / std::sqrt(n));
  }
}

TEST(Initialise, TokenConvolutionHasTheReferencesNormalDistribution) {
  CircularConv conv(7, 4096, CircularConv::Start::kKaimingNormal);
  initialise(conv, 5);
  const at::Tensor weight = conv.named_parameters()["weight"];
  const double n = static_cast<double>(weight.numel()), variance = 2.0 / 21;
  EXPECT_NEAR(weight.mean().item<double>(), 0.0, 5 * std::sqrt(variance / n));
  EXPECT_NEAR(weight.square().mean().item<double>(), variance, 5 * variance * std::sqrt(2 / n));
  const double within = (weight.abs() < std::sqrt(variance)).to(at::kDouble).mean().item<double>();
  EXPECT_NEAR(within, 0.6827, 5 * std::sqrt(0.6827 * 0.3173 / n)) << "as many within one deviation as a normal has";
  EXPECT_LE(conv.bias().abs().max().item<double>(), 1 / std::sqrt(21.0));
}

TEST(Initialise, WeightsAreAFunctionOfSeedAndPositionAlone) {
  const InformerSettings small{.d_model = 32, .n_heads = 4, .d_ff = 64};
  const auto state = state_of(*make_informer(small, 7));
  torch::manual_seed(99);  // ATen's generator plays no part
  at::rand({10});
  const auto again = state_of(*make_informer(small, 7));
  const auto other = state_of(*make_informer(small, 8));
  int differing = 0;
  for (const auto& [name, value] : state) {
    EXPECT_TRUE(at::equal(value, again.at(name))) << name;
    if (!at::equal(value, other.at(name))) ++differing;
  }
  EXPECT_GE(differing, 40) << "another seed gives other weights";
  // And the numbers are those of the stream, position by position.
  const auto model = make_informer(small, 7);
  std::uint64_t position = 0;
  for (const auto& parameter : model->named_parameters()) {
    if (parameter.key() == "encoder.attn_layers.1.conv2.weight") {
      const RandomStream stream(7, RandomPurpose::kModelInit, position, 0);
      const double bound = 1 / std::sqrt(64.0);
      const at::Tensor flat = parameter.value().flatten();
      for (const std::int64_t i : {0, 1, 2, 3, 4, 1001})
        EXPECT_NEAR(flat[i].item<double>(), (2.0 * stream.uniform(static_cast<std::uint64_t>(i)) - 1) * bound, 1e-7);
      return;
    }
    ++position;
  }
  FAIL() << "the parameter is missing";
}

TEST(Initialise, EverySingleParameterOfInformerIsDrawnOrConstant) {
  const auto model = make_informer({.d_model = 64, .n_heads = 4, .d_ff = 128}, 3);
  for (const auto& parameter : model->named_parameters()) {
    const at::Tensor value = parameter.value();
    ASSERT_TRUE(value.isfinite().all().item<bool>()) << parameter.key();
    if (parameter.key().find("norm") != std::string::npos) {
      EXPECT_TRUE((value == (parameter.key().ends_with("weight") ? 1.0 : 0.0)).all().item<bool>()) << parameter.key();
    } else {
      EXPECT_GT(value.std().item<double>(), 0.0) << parameter.key();
    }
  }
}

class Forgetful : public torch::nn::Module {
 public:
  Forgetful() { register_parameter("weight", at::empty({2, 2})); }
};

TEST(Initialise, AParameterWithoutARuleIsAnErrorThatNamesIt) {
  Forgetful module;
  try {
    initialise(module, 1);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("parameter weight has no rule"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace cohort::models
