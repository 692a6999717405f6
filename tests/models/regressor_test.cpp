#include "models/regressor/regressor.h"

#include <string>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

TEST(Regressor, HasTheGuidesParameters) {
  const auto model = make_regressor({}, 1);
  std::int64_t count = 0;
  for (const at::Tensor& p : model->parameters()) count += p.numel();
  // 128 input map, 2 x 33,472 encoder layers, 12,480 distilling, 8,320 + 258 MLP.
  EXPECT_EQ(count, 88130);
  const auto parameters = model->named_parameters();
  EXPECT_EQ(parameters["value_embedding.weight"].sizes(), (std::vector<std::int64_t>{64, 1}));
  EXPECT_EQ(parameters["encoder.attn_layers.1.conv1.weight"].sizes(), (std::vector<std::int64_t>{128, 64, 1}));
  EXPECT_EQ(parameters["encoder.conv_layers.0.downConv.weight"].sizes(), (std::vector<std::int64_t>{64, 64, 3}));
  EXPECT_EQ(parameters["head.0.weight"].sizes(), (std::vector<std::int64_t>{128, 64}));
  EXPECT_EQ(parameters["head.2.weight"].sizes(), (std::vector<std::int64_t>{2, 128}));
}

TEST(Regressor, LearnsASmoothFunctionOfItsColumns) {
  RegressorSettings settings;
  settings.dropout = 0.0;
  const auto model = make_regressor(settings, 1);
  torch::manual_seed(1);
  const at::Tensor x = at::randn({64, 10});
  const at::Tensor y = at::stack({x.select(1, 0) + 0.5 * x.select(1, 3).sin(), x.select(1, 7) - x.select(1, 9)}, 1);
  torch::optim::AdamW adam(model->parameters(), torch::optim::AdamWOptions(2e-3));
  double loss_value = 0;
  for (std::uint64_t step = 0; step < 150; ++step) {
    adam.zero_grad();
    const RandomContextGuard guard({.seed = 1, .step = step, .sample_ids = {}});
    const at::Tensor loss = at::mse_loss(regressor_forward(*model, x), y);
    loss.backward();
    adam.step();
    loss_value = loss.item<double>();
  }
  EXPECT_LT(loss_value, 0.05 * y.var().item<double>()) << "explains more than 95 % of the variance";
}

TEST(Regressor, DistinguishesItsColumns) {
  const auto model = make_regressor({}, 1);
  model->eval();
  const at::NoGradGuard no_grad;
  const at::Tensor x = at::randn({5, 10});
  const at::Tensor out = regressor_forward(*model, x);
  EXPECT_EQ(out.sizes(), (std::vector<std::int64_t>{5, 2}));
  EXPECT_TRUE(at::equal(regressor_forward(*model, x), out)) << "evaluation repeats";
  EXPECT_GT((regressor_forward(*model, x.flip(1)) - out).abs().max().item<double>(), 1e-3)
      << "positions tell columns apart";
}

TEST(Regressor, LongRowsUseSparseAttention) {
  RegressorSettings settings;
  settings.inputs = 100;
  settings.factor = 2;
  const auto model = make_regressor(settings, 1);
  const RandomContextGuard guard({.seed = 1, .step = 0, .sample_ids = {}});
  const at::Tensor out = regressor_forward(*model, at::randn({3, 100}));
  out.sum().backward();
  EXPECT_TRUE(out.isfinite().all().item<bool>());
}

TEST(Regressor, WrongShapesAndSettingsAreNamed) {
  const auto message = [](const auto& call) {
    try {
      call();
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  const auto model = make_regressor({}, 1);
  EXPECT_EQ(message([&] {
              regressor_forward(*model, at::zeros({4, 12}));
            }),
            "regressor: x has shape [4, 12], but must be (samples, 10): inputs columns");
  RegressorSettings settings;
  settings.d_model = 63;
  EXPECT_NE(message([&] { make_regressor(settings, 1); }).find("d_model = 63"), std::string::npos);
  settings = {};
  settings.activation = "tanh";
  EXPECT_NE(message([&] { make_regressor(settings, 1); }).find("gelu or relu"), std::string::npos);
}

}  // namespace
}  // namespace cohort::models
