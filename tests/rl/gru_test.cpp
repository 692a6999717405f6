// Gated recurrent units beside LibTorch's, step by step and through time.
#include "rl/gru.h"

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "models/initialise.h"
#include "rl/fused_gru.h"

namespace cohort::rl {
namespace {

constexpr std::int64_t kIn = 7, kHidden = 12, kLayers = 2;

std::shared_ptr<Gru> make_gru() {
  auto gru = std::make_shared<Gru>(kIn, kHidden, kLayers);
  models::initialise(*gru, 4);
  return gru;
}

/// LibTorch's own, from a state on: (T, B, H).
at::Tensor libtorchs(const Gru& gru, const at::Tensor& x, const at::Tensor& state) {
  return std::get<0>(at::gru(x, state, gru.parameters(), true, kLayers, 0.0, false, false, false));
}

/// Everything is forgotten before step `cut`: two sequences.
at::Tensor libtorchs_cut(const Gru& gru, const at::Tensor& x, const at::Tensor& state, std::int64_t cut) {
  return at::cat({libtorchs(gru, x.narrow(0, 0, cut), state),
                  libtorchs(gru, x.narrow(0, cut, x.size(0) - cut), at::zeros_like(state))});
}

double distance(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / (b.norm() + 1e-12)).item<double>();
}

std::vector<at::Tensor> gradients_of(Gru& gru) {
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : gru.parameters()) result.push_back(parameter.grad().clone());
  gru.zero_grad();
  return result;
}

TEST(Gru, AStepIsLibTorchs) {
  torch::manual_seed(1);
  const auto gru = make_gru();
  const at::Tensor x = 2 * at::randn({5, 32, kIn}), begin = at::randn({kLayers, 32, kHidden});
  const at::Tensor expected = libtorchs(*gru, x, begin).detach();
  at::Tensor state = begin;
  for (std::int64_t t = 0; t < x.size(0); ++t) EXPECT_LT(distance(gru->step(x[t], state), expected[t]), 1e-6) << t;
  EXPECT_LT(distance(state[kLayers - 1], expected[4]), 1e-6);
}

TEST(Gru, ARowHasTheSameBitsInAnySixteen) {
  torch::manual_seed(2);
  const auto gru = make_gru();
  const at::Tensor x = at::randn({96, kIn}), begin = at::randn({kLayers, 96, kHidden});
  at::Tensor all = begin, few = begin.narrow(1, 48, 16).contiguous();
  const at::Tensor of_all = gru->step(x, all), of_few = gru->step(x.narrow(0, 48, 16).contiguous(), few);
  EXPECT_TRUE(at::equal(of_all.narrow(0, 48, 16), of_few));
  EXPECT_TRUE(at::equal(all.narrow(1, 48, 16), few));
}

TEST(Gru, WhatIsNotFiniteStaysSo) {
  const auto gru = make_gru();
  at::Tensor state = gru->begin(16), x = at::zeros({16, kIn});
  x[3].fill_(std::numeric_limits<double>::quiet_NaN());
  const at::Tensor out = gru->step(x, state);
  EXPECT_TRUE(out[3].isnan().all().item<bool>());
  EXPECT_TRUE(out[4].isfinite().all().item<bool>());
}

TEST(Gru, OutputsAndGradientsThroughTimeAreLibTorchs) {
  for (const std::int64_t n : {1, 16, 70, 200}) {
    torch::manual_seed(static_cast<std::uint64_t>(n));
    const auto gru = make_gru();
    const at::Tensor x = 2 * at::randn({6, n, kIn}), state = at::randn({kLayers, n, kHidden}),
                     weight = at::randn({6, n, kHidden});
    at::Tensor keep = at::ones({6, n});
    keep[4].zero_();
    const at::Tensor expected = libtorchs_cut(*gru, x, state, 4);
    (expected * weight).mean().backward();
    const std::vector<at::Tensor> gradients = gradients_of(*gru);

    const at::Tensor by_autograd = gru->forward(x, state, keep);
    EXPECT_LT(distance(by_autograd.detach(), expected.detach()), 1e-6);
    (by_autograd * weight).mean().backward();
    const std::vector<at::Tensor> of_autograd = gradients_of(*gru);

    FusedGru pass(*gru, std::make_shared<ThreadTeam>(2));
    const at::Tensor out = pass.forward(x, state, keep);
    EXPECT_FALSE(out.requires_grad());
    EXPECT_LT(distance(out, expected.detach()), 1e-6) << n;
    pass.backward(weight / static_cast<double>(weight.numel()));
    const std::vector<at::Tensor> of_pass = gradients_of(*gru);
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      EXPECT_LT(distance(of_autograd[i], gradients[i]), 1e-5) << n << " " << i;
      EXPECT_LT(distance(of_pass[i], gradients[i]), 1e-5) << n << " " << i;
    }
  }
}

TEST(FusedGru, AnyNumberOfThreadsGivesTheSameBits) {
  torch::manual_seed(5);
  const auto gru = make_gru();
  const at::Tensor x = at::randn({5, 300, kIn}), state = at::randn({kLayers, 300, kHidden}),
                   keep = (at::rand({5, 300}) > 0.2).to(at::kFloat), gradient = at::randn({5, 300, kHidden});
  std::vector<std::vector<at::Tensor>> found;
  for (const int threads : {1, 2, 3}) {
    FusedGru pass(*gru, std::make_shared<ThreadTeam>(threads));
    const at::Tensor out = pass.forward(x, state, keep);
    pass.backward(gradient);
    found.push_back(gradients_of(*gru));
    found.back().push_back(out);
  }
  for (const auto& other : {found[1], found[2]})
    for (std::size_t i = 0; i < other.size(); ++i) EXPECT_TRUE(at::equal(found[0][i], other[i])) << i;
}

}  // namespace
}  // namespace cohort::rl
