// The training pass without autograd, beside autograd.
#include "rl/fused_mlp.h"

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "models/initialise.h"
#include "rl/actor_critic.h"

namespace cohort::rl {
namespace {

double relative(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / (b.norm() + 1e-12)).item<double>();
}

struct Network {
  explicit Network(const std::string& activation)
      : mlp(std::make_shared<Mlp>(19, std::vector<int>{64, 48, 32}, 5, activation)) {
    models::initialise(*mlp, 3);
  }
  std::vector<at::Tensor> gradients() const {
    std::vector<at::Tensor> result;
    for (const at::Tensor& parameter : mlp->parameters()) result.push_back(parameter.grad().clone());
    return result;
  }
  std::shared_ptr<Mlp> mlp;
};

class FusedActivation : public ::testing::TestWithParam<const char*> {};

TEST_P(FusedActivation, OutputsAndGradientsAreThoseOfAutograd) {
  for (const std::int64_t rows : {1, 63, 64, 700, 5000}) {
    torch::manual_seed(static_cast<std::uint64_t>(rows));
    Network network(GetParam());
    const at::Tensor x = 2 * at::randn({rows, 19}), weight = at::randn({rows, 5});
    const at::Tensor expected = network.mlp->forward(x);
    (expected * weight).mean().backward();
    const std::vector<at::Tensor> gradients = network.gradients();
    network.mlp->zero_grad();
    FusedMlp pass(network.mlp->parameters_of_layers(), *FusedMlp::activation(GetParam()), 2);
    const at::Tensor out = pass.forward(x);
    EXPECT_FALSE(out.requires_grad());
    EXPECT_LT(relative(out, expected.detach()), 1e-6) << rows;
    pass.backward(weight / static_cast<double>(weight.numel()));
    const std::vector<at::Tensor> found = network.gradients();
    for (std::size_t i = 0; i < found.size(); ++i)
      EXPECT_LT(relative(found[i], gradients[i]), 1e-5) << rows << " " << i;
    // Gradients add up, as autograd's do.
    pass.forward(x);
    pass.backward(weight / static_cast<double>(weight.numel()));
    EXPECT_LT(relative(network.gradients()[0], 2 * gradients[0]), 1e-5);
  }
}
INSTANTIATE_TEST_SUITE_P(All, FusedActivation, ::testing::Values("elu", "relu", "tanh"),
                         [](const auto& of) { return std::string(of.param); });

TEST(FusedMlp, AnyNumberOfThreadsGivesTheSameBits) {
  torch::manual_seed(5);
  const at::Tensor x = at::randn({3000, 19}), gradient = at::randn({3000, 5});
  std::vector<std::vector<at::Tensor>> found;
  for (const int threads : {1, 2, 3}) {
    Network network("elu");
    FusedMlp pass(network.mlp->parameters_of_layers(), FusedMlp::Activation::kElu, threads);
    const at::Tensor out = pass.forward(x);
    pass.backward(gradient);
    found.push_back(network.gradients());
    found.back().push_back(out);
  }
  for (const auto& other : {found[1], found[2]})
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(at::equal(found[0][i], other[i])) << i;
}

TEST(FusedMlp, WhicheverThreadHasAPieceItsBitsAreTheSame) {
  at::set_num_threads(1);  // as `cohort train ppo` does; the team's other threads are new
  auto mlp = std::make_shared<Mlp>(17, std::vector<int>{64, 64}, 6, "elu");
  models::initialise(*mlp, 3);
  torch::manual_seed(1);
  const at::Tensor x = at::randn({1024, 17}), weight = at::randn({1024, 6});
  FusedMlp pass(mlp->parameters_of_layers(), FusedMlp::Activation::kElu, 4);
  std::vector<at::Tensor> first;
  for (int round = 0; round < 100; ++round) {
    mlp->zero_grad();
    pass.forward(x);
    pass.backward(weight);
    std::vector<at::Tensor> now;
    for (const at::Tensor& parameter : mlp->parameters()) now.push_back(parameter.grad().clone());
    if (first.empty()) first = now;
    for (std::size_t i = 0; i < now.size(); ++i) ASSERT_TRUE(at::equal(first[i], now[i])) << round << " " << i;
  }
}

TEST(FusedMlp, WhatIsNotFiniteStaysSo) {
  Network network("elu");
  FusedMlp pass(network.mlp->parameters_of_layers(), FusedMlp::Activation::kElu, 1);
  at::Tensor x = at::zeros({2, 19});
  x[1].fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor out = pass.forward(x);
  EXPECT_TRUE(out[0].isfinite().all().item<bool>());
  EXPECT_TRUE(out[1].isnan().all().item<bool>());
}

TEST(FusedMlp, OtherActivationsAreLibTorchs) {
  EXPECT_FALSE(FusedMlp::activation("selu").has_value());
  EXPECT_FALSE(FusedMlp::activation("lrelu").has_value());
}

}  // namespace
}  // namespace cohort::rl
