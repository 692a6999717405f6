// The losses in one pass, beside autograd.
#include "rl/fused_losses.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "rl/gaussian.h"
#include "rl/ppo.h"

namespace cohort::rl {
namespace {

/// Rows of which about half lie beyond the bounds, of the ratio and of the values.
LossInputs random_rows(std::int64_t rows, std::int64_t width) {
  torch::manual_seed(static_cast<std::uint64_t>(rows));
  const at::Tensor means = at::randn({rows, width}), old_log_std = 0.3 * at::randn({width});
  const at::Tensor actions = means + old_log_std.exp() * at::randn({rows, width});
  return {.mean = means + 0.15 * at::randn({rows, width}),
          .value = at::randn({rows}),
          .log_std = old_log_std + 0.05 * at::randn({width}),
          .old_log_std = old_log_std,
          .actions = actions,
          .old_means = means,
          .old_log_probs = gaussian_log_prob(means, old_log_std, actions),
          .old_values = at::randn({rows}) * 0.3,
          .advantages = at::randn({rows}),
          .returns = at::randn({rows})};
}

TEST(FusedLosses, FiguresAndDerivativesAreThoseOfAutograd) {
  for (const bool clipped : {true, false}) {
    for (const std::int64_t rows : {1, 500, 5000}) {
      PpoSettings settings;
      settings.use_clipped_value_loss = clipped, settings.value_loss_coef = 0.7, settings.entropy_coef = 0.03;
      const LossInputs x = random_rows(rows, 3);
      ThreadTeam team(2);
      const FusedLosses found = fused_losses(x, settings, team);

      const at::Tensor mean = x.mean.clone().requires_grad_(), value = x.value.clone().requires_grad_(),
                       log_std = x.log_std.clone().requires_grad_();
      const at::Tensor surrogate = surrogate_loss(gaussian_log_prob(mean, log_std, x.actions), x.old_log_probs,
                                                  x.advantages, settings.clip_param),
                       values = value_loss(value, x.old_values, x.returns, clipped, settings.clip_param),
                       entropy = gaussian_entropy(log_std),
                       loss = surrogate + settings.value_loss_coef * values - settings.entropy_coef * entropy,
                       kl = gaussian_kl(x.old_means, x.old_log_std, mean, log_std).mean();
      loss.backward();
      const at::Tensor figures = at::stack({loss, surrogate, values, entropy, kl}).detach();
      EXPECT_LT((found.figures - figures).abs().max().item<double>(), 1e-5) << rows;
      const auto distance_of = [](const at::Tensor& a, const at::Tensor& b) {
        return ((a - b).norm() / (b.norm() + 1e-12)).item<double>();
      };
      EXPECT_LT(distance_of(found.d_mean, mean.grad()), 1e-5) << rows;
      EXPECT_LT(distance_of(found.d_value, value.grad()), 1e-5) << rows;
      EXPECT_LT(distance_of(found.d_log_std, log_std.grad()), 1e-5) << rows;
    }
  }
}

TEST(FusedLosses, RoundingIsNoDivergence) {
  LossInputs x = random_rows(100, 3);
  x.mean = x.old_means * (1 + 1e-7), x.log_std = x.old_log_std;
  ThreadTeam team(1);
  EXPECT_EQ(fused_losses(x, {}, team).figures[4].item<float>(), 0.0f) << "else it would raise the learning rate";
}

TEST(FusedLosses, AnyNumberOfThreadsGivesTheSameBits) {
  const LossInputs x = random_rows(9000, 2);
  ThreadTeam one(1), three(3);
  const FusedLosses a = fused_losses(x, {}, one), b = fused_losses(x, {}, three);
  EXPECT_TRUE(at::equal(a.figures, b.figures));
  EXPECT_TRUE(at::equal(a.d_mean, b.d_mean));
  EXPECT_TRUE(at::equal(a.d_log_std, b.d_log_std));
}

TEST(FusedLosses, WhatIsNotFiniteShows) {
  LossInputs x = random_rows(10, 2);
  x.mean[4][1] = std::numeric_limits<float>::quiet_NaN();
  ThreadTeam team(1);
  EXPECT_FALSE(std::isfinite(fused_losses(x, {}, team).figures[0].item<double>()));
  x = random_rows(10, 2);
  x.value[2] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(std::isfinite(fused_losses(x, {}, team).figures[0].item<double>()));
}

}  // namespace
}  // namespace cohort::rl
