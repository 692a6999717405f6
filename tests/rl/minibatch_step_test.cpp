// What follows a minibatch's gradients, at once and on a device, is one rule.
#include "rl/minibatch_step.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

namespace cohort::rl {
namespace {

struct Learner {
  std::vector<at::Tensor> actor, critic;
  train::Optimizer optimizer;
  Learner()
      : actor{parameter(1), parameter(2)},
        critic{parameter(3)},
        optimizer({train::ParameterGroup{.parameters = {{"a", actor[0]}, {"b", actor[1]}, {"c", critic[0]}}}}, adam()) {
  }
  static at::Tensor parameter(double scale) {
    return (at::arange(12, at::kFloat).view({3, 4}) * 0.1 * scale).requires_grad_();
  }
  static train::OptimizerSettings adam() {
    train::OptimizerSettings settings;
    settings.kind = "adam";
    return settings;
  }
  void fill_gradients(int step, double factor) {
    std::int64_t place = 0;
    for (const auto* parameters : {&actor, &critic})
      for (const at::Tensor& p : *parameters)
        p.mutable_grad() = ((at::arange(12, at::kFloat).view({3, 4}) + step + place++) * factor).sin();
  }
};

PpoSettings adaptive() {
  PpoSettings settings;
  settings.schedule = "adaptive";
  settings.max_grad_norm = 1.5;
  settings.num_learning_epochs = 4, settings.num_mini_batches = 3;
  return settings;
}

at::Tensor losses(int step, double loss) {
  // KL far above what is wanted, far below it, and in between.
  const double kl[] = {0.05, 0.001, 0.01};
  return at::tensor({loss, 0.2 * step, 0.3, 0.4, kl[step % 3]}, at::kDouble);
}

TEST(MinibatchSteps, AtOnceAndOnADeviceHaveTheSameWeightsRatesAndFigures) {
  Learner one, other;
  const PpoSettings settings = adaptive();
  const auto at_once = MinibatchSteps::at_once({settings, one.optimizer, one.actor, one.critic}, 1e-3);
  const auto device = MinibatchSteps::on_device({settings, other.optimizer, other.actor, other.critic}, 1e-3, at::kCPU);
  for (int step = 0; step < 10; ++step) {
    for (Learner* learner : {&one, &other})
      learner->fill_gradients(step, step % 2 == 0 ? 0.01 : 1.0);  // unclipped, clipped
    EXPECT_TRUE(at_once->step(losses(step, 0.5 + step)));
    EXPECT_TRUE(device->step(losses(step, 0.5 + step)));
  }
  const UpdateFigures a = at_once->figures(), b = device->figures();
  for (int i = 0; i < kFigures; ++i) EXPECT_NEAR(a.mean[i], b.mean[i], 1e-6 * (1 + std::abs(a.mean[i]))) << i;
  EXPECT_GT(a.mean[kActorNorm], 1.5) << "some were clipped";
  EXPECT_DOUBLE_EQ(a.learning_rate, b.learning_rate);
  EXPECT_NE(a.learning_rate, 1e-3);
  EXPECT_EQ(a.last_kl, b.last_kl);
  for (std::size_t i = 0; i < one.actor.size(); ++i)
    EXPECT_TRUE(at::allclose(one.actor[i], other.actor[i], 1e-6, 1e-7));
  EXPECT_TRUE(at::allclose(one.critic[0], other.critic[0], 1e-6, 1e-7));
}

TEST(MinibatchSteps, WhatIsNotFiniteIsToldAndNothingChangesFromThereOn) {
  Learner one, other;
  const PpoSettings settings = adaptive();
  const auto at_once = MinibatchSteps::at_once({settings, one.optimizer, one.actor, one.critic}, 1e-3);
  const auto device = MinibatchSteps::on_device({settings, other.optimizer, other.actor, other.critic}, 1e-3, at::kCPU);
  const auto both = [&](int step, double loss) {
    for (Learner* learner : {&one, &other}) learner->fill_gradients(step, 1.0);
    const bool sound = at_once->step(losses(step, loss));
    device->step(losses(step, loss));
    return sound;
  };
  EXPECT_TRUE(both(0, 1.0));
  const at::Tensor before = one.actor[0].detach().clone(), beside = other.actor[0].detach().clone();
  EXPECT_FALSE(both(1, std::numeric_limits<double>::quiet_NaN()));
  other.fill_gradients(2, 1.0);
  device->step(losses(2, 3.0));  // a device learns of it at the end only
  const UpdateFigures a = at_once->figures(), b = device->figures();
  for (const UpdateFigures* found : {&a, &b}) {
    EXPECT_TRUE(found->diverged);
    EXPECT_TRUE(std::isnan(found->bad[kLoss]));
    EXPECT_NEAR(found->bad[kSurrogate], 0.2, 1e-12);
    EXPECT_EQ(found->last_kl, 0.05);
  }
  EXPECT_TRUE(at::equal(one.actor[0], before));
  EXPECT_TRUE(at::equal(other.actor[0], beside));
}

}  // namespace
}  // namespace cohort::rl
