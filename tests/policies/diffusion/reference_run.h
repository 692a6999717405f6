/// The training run of make_policy_fixtures.py, on our side: the same weights, batches, timesteps and noise.
#pragma once
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "models/formula.h"
#include "models/random_context.h"
#include "policies/diffusion/diffusion_policy.h"

namespace cohort::models {

/// Numbers that are observed, numbers per action, rows of a chunk.
inline constexpr int kState = 5, kWidth = 3, kChunk = 16;

/// What the issue asks for of a training run; our float32 against the reference's float64 over 100 steps.
inline constexpr double kRunTolerance = 1e-4;

/// Trains `policy`, whose weights this sets, and compares the loss of every step.
inline void expect_reference_losses(torch::nn::Module& policy, const nlohmann::ordered_json& facts,
                                    std::size_t steps = 100) {
  fill(policy);
  torch::optim::Adam adam(policy.parameters(), torch::optim::AdamOptions(facts.at("learning_rate").get<double>()));
  const auto losses = facts.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 100u);
  const std::int64_t batch = facts.at("batch");
  for (std::size_t step = 0; step < steps; ++step) {
    const std::string number = std::to_string(step);
    const at::Tensor state = formula("state " + number, {batch, 2, kState});
    const at::Tensor actions =
        0.5 * formula("actions " + number, {batch, kChunk, kWidth}) + 0.5 * state.narrow(1, 1, 1).narrow(2, 0, kWidth);
    const auto first = static_cast<std::int64_t>(step) * batch;
    const RandomContextGuard guard(
        {.seed = facts.at("seed").get<std::uint64_t>(), .step = step, .sample_ids = at::arange(first, first + batch)});
    adam.zero_grad();
    const at::Tensor loss = diffusion_loss(policy, {{"state", state}}, actions);
    ASSERT_NEAR(loss.item<double>(), losses[step], kRunTolerance * losses[step]) << "step " << step;
    loss.backward();
    adam.step();
  }
  EXPECT_LT(losses.back(), 0.5 * losses.front()) << "the run learns";
}

}  // namespace cohort::models
