// The networks at their full sizes: that of the DROID configuration, and a training run of the U-Net on states.
#include <cmath>
#include <cstdlib>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/types.h>

#include "models/formula.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/diffusion/reference_run.h"

namespace cohort::models {
namespace {

const char* const kCamera1 = "camera/image/varied_camera_1_left_image";
const char* const kCamera2 = "camera/image/varied_camera_2_left_image";

DiffusionPolicySettings droid() {
  DiffusionPolicySettings settings;
  settings.encoder.observations = {{kCamera1, {3, 128, 128}, ""},
                                   {kCamera2, {3, 128, 128}, ""},
                                   {"robot_state/cartesian_position", {6}, ""},
                                   {"robot_state/gripper_position", {1}, ""}};
  share_cameras(settings.encoder.observations, "camera/image/varied_camera");
  settings.encoder.color.enabled = settings.encoder.crop.enabled = true;
  return settings;
}

std::int64_t parameters_of(const torch::nn::Module& module) {
  std::int64_t count = 0;
  for (const auto& p : module.parameters()) count += p.numel();
  return count;
}

TEST(DroidPolicy, HasTheReferencesNumberOfParameters) {
  const auto facts = read_facts("encoder");
  const auto& encoder = facts.at("cases").at("droid");
  const auto& unet = facts.at("unet_parameters");
  DiffusionPolicySettings settings = droid();
  const auto joined = make_diffusion_policy(settings, 1);
  EXPECT_EQ(parameters_of(*joined), 135070794) << "135.1 M";
  EXPECT_EQ(parameters_of(*joined),
            encoder.at("joined").at("parameters").get<std::int64_t>() + unet.at("joined").get<std::int64_t>());
  settings.encoder.combine = true;
  const auto combined = make_diffusion_policy(settings, 1);
  EXPECT_EQ(parameters_of(*combined),
            encoder.at("parameters").get<std::int64_t>() + unet.at("combined").get<std::int64_t>());
}

// The U-Net of the package's own default size, with the MLP in front of it.
// 20 of the hundred recorded steps, COHORT_LONG=1 all of them (half a minute more); the small policy does a hundred anyway.
TEST(DroidPolicy, TrainingStepsAtTheDefaultSizeAreTheReferences) {
  const auto facts = read_facts("policy_default");
  DiffusionPolicySettings settings;
  settings.action_width = kWidth;
  settings.noise_samples = facts.at("draws").get<int>();
  settings.encoder.observations = {{"state", {kState}, ""}};
  settings.encoder.combine = true;
  const auto policy = make_diffusion_policy(settings, 1);
  EXPECT_EQ(parameters_of(*policy), facts.at("parameters").get<std::int64_t>());
  expect_reference_losses(*policy, facts, std::getenv("COHORT_LONG") ? 100 : 20);
}

TEST(DroidPolicy, TakesStepsAtBatchTwoWithin24GigabytesAndDrawsActions) {
  const auto policy = make_diffusion_policy(droid(), 1);
  torch::optim::Adam adam(policy->parameters(), torch::optim::AdamOptions(1e-4));
  Observations observations;
  for (const char* camera : {kCamera1, kCamera2})
    observations[camera] = ((formula(camera, {2, 2, 128, 128, 3}) + 1) * 127).to(at::kByte);
  observations["robot_state/cartesian_position"] = formula("position", {2, 2, 6});
  observations["robot_state/gripper_position"] = formula("gripper", {2, 2, 1});
  const at::Tensor actions = formula("actions", {2, 16, 10});
  std::vector<double> losses;
  for (int i = 0; i < 3; ++i) {
    // One step's noise and crops throughout: the loss of the same problem must fall.
    const RandomContextGuard guard({.seed = 1, .step = 0});
    adam.zero_grad();
    const at::Tensor loss = diffusion_loss(*policy, observations, actions);
    losses.push_back(loss.item<double>());
    loss.backward();
    adam.step();
  }
  EXPECT_TRUE(std::isfinite(losses[2]));
  EXPECT_LT(losses[2], losses[0]);
  policy->eval();
  const at::Tensor chunk = executed_part(*policy, sample_actions(*policy, observations, {{1, 0, 0}, {1, 1, 0}}));
  EXPECT_EQ(chunk.sizes().vec(), (std::vector<std::int64_t>{2, 8, 10}));
  EXPECT_TRUE(chunk.isfinite().all().item<bool>());
  rusage usage{};
  ASSERT_EQ(getrusage(RUSAGE_SELF, &usage), 0);
  const double gigabytes = static_cast<double>(usage.ru_maxrss) * 1024 / 1e9;
  // Weights, gradients and Adam's two averages alone are 2.2 GB.
  EXPECT_GT(gigabytes, 2.1);
  EXPECT_LT(gigabytes, 24.0);
}

}  // namespace
}  // namespace cohort::models
