#include "train/step_monitor.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/types.h>

#include "train/grad_scaler.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Fixture {
  std::shared_ptr<TinyModel> model = tiny_model();
  OptimizerSettings settings{.kind = "sgd"};
  Optimizer optimizer{parameter_groups(*model, settings), settings};

  const std::vector<at::Tensor>& gradients(double value) {
    for (const auto& [name, parameter] : optimizer.parameters()) {
      at::Tensor writable = parameter;
      writable.mutable_grad() = torch::full_like(parameter, value);
    }
    return optimizer.gradients();
  }
};

void one_step(StepMonitor& monitor, Fixture& fixture, double loss, double gradient) {
  monitor.add_loss(torch::tensor(loss), 1.0);
  monitor.finish_step(fixture.gradients(gradient), nullptr);
}

TEST(StepMonitor, BothWaysOfCountingAgree) {
  for (const bool deferred : {false, true}) {
    Fixture fixture;
    StepMonitor monitor(c10::kCPU, /*skip_bad_steps=*/false, deferred);
    monitor.add_loss(torch::tensor(1.0f), 0.5);
    monitor.add_loss(torch::tensor(3.0f), 0.5);
    monitor.finish_step(fixture.gradients(0.5), nullptr);
    one_step(monitor, fixture, 4.0, 0.25);
    auto reading = monitor.read(fixture.optimizer);
    EXPECT_EQ(reading.sums.interval_sum, 6.0);
    EXPECT_EQ(reading.sums.interval_count, 2.0);
    std::int64_t elements = 0;
    for (const auto& [name, parameter] : fixture.optimizer.parameters()) elements += parameter.numel();
    EXPECT_NEAR(reading.grad_norm, 0.25 * std::sqrt(static_cast<double>(elements)), 1e-6);
    EXPECT_FALSE(reading.bad);
    monitor.begin_interval();
    one_step(monitor, fixture, 1.0, 0.25);
    reading = monitor.read(fixture.optimizer);
    EXPECT_EQ(reading.sums.interval_sum, 1.0);
    EXPECT_EQ(reading.sums.epoch_sum, 7.0);
    EXPECT_EQ(reading.sums.epoch_count, 3.0);
  }
}

TEST(StepMonitor, TheFirstBadStepIsRememberedWithItsFirstBadGradient) {
  for (const bool deferred : {false, true}) {
    Fixture fixture;
    StepMonitor monitor(c10::kCPU, false, deferred);
    one_step(monitor, fixture, 1.0, 0.5);
    fixture.gradients(0.5);
    monitor.add_loss(torch::tensor(2.0), 1.0);
    fixture.model->two->weight.grad()[0][0] = kNan;
    monitor.finish_step(fixture.optimizer.gradients(), nullptr);
    if (!deferred) EXPECT_FALSE(monitor.may_update());
    if (deferred) EXPECT_EQ(monitor.found_inf().item<float>(), 1.0f);
    // Later steps are fine, but must not update after the bad one when it has not been noticed yet.
    if (deferred) {
      one_step(monitor, fixture, 1.0, 0.5);
      EXPECT_EQ(monitor.found_inf().item<float>(), 1.0f);
    }
    const auto reading = monitor.read(fixture.optimizer);
    ASSERT_TRUE(reading.bad) << deferred;
    EXPECT_EQ(reading.bad->step, 2);
    EXPECT_EQ(reading.bad->loss, 2.0);
    EXPECT_TRUE(std::isnan(reading.bad->grad_norm));
    EXPECT_EQ(reading.bad->parameter, "two.weight");
  }
}

TEST(StepMonitor, SkippedStepsAreCountedAndLeftOutOfTheMeans) {
  for (const bool deferred : {false, true}) {
    Fixture fixture;
    StepMonitor monitor(c10::kCPU, true, deferred);
    one_step(monitor, fixture, 1.0, 0.5);
    one_step(monitor, fixture, kNan, kNan);
    one_step(monitor, fixture, 3.0, 0.5);
    if (deferred) EXPECT_EQ(monitor.found_inf().item<float>(), 0.0f) << "a later good step updates";
    EXPECT_TRUE(monitor.may_update());
    const auto reading = monitor.read(fixture.optimizer);
    EXPECT_FALSE(reading.bad);
    EXPECT_EQ(reading.skipped, 1.0);
    EXPECT_EQ(reading.sums.interval_sum, 4.0);
    EXPECT_EQ(reading.sums.interval_count, 2.0);
  }
}

TEST(StepMonitor, AnOverflowUnderAScalerIsNoError) {
  for (const bool deferred : {false, true}) {
    Fixture fixture;
    GradScaler scaler({}, c10::kCPU);
    StepMonitor monitor(c10::kCPU, false, deferred);
    monitor.add_loss(torch::tensor(1.0), 1.0);
    const auto& gradients = fixture.gradients(kInf);
    scaler.unscale(gradients);
    monitor.finish_step(gradients, &scaler);
    EXPECT_EQ(monitor.found_inf().item<float>(), 1.0f);
    EXPECT_FALSE(monitor.read(fixture.optimizer).bad);
    // A loss that is itself infinite is one: no scale will help.
    monitor.add_loss(torch::tensor(kInf), 1.0);
    scaler.unscale(gradients);
    monitor.finish_step(gradients, &scaler);
    const auto reading = monitor.read(fixture.optimizer);
    ASSERT_TRUE(reading.bad);
    EXPECT_EQ(reading.bad->step, 2);
    EXPECT_EQ(reading.skipped, 2.0);
  }
}

TEST(StepMonitor, ClippingIsThatOfPyTorch) {
  for (const bool deferred : {false, true}) {
    for (const double limit : {0.5, 1e6}) {
      Fixture fixture, peer;
      StepMonitor monitor(c10::kCPU, false, deferred);
      const auto& gradients = fixture.gradients(0.5);
      monitor.add_loss(torch::tensor(1.0), 1.0);
      monitor.finish_step(gradients, nullptr);
      monitor.clip(gradients, limit);
      peer.gradients(0.5);
      torch::nn::utils::clip_grad_norm_(peer.model->parameters(), limit);
      for (std::size_t i = 0; i < gradients.size(); ++i) {
        EXPECT_TRUE(at::allclose(gradients[i], peer.model->parameters()[i].grad(), 1e-6, 0.0)) << limit;
      }
    }
  }
}

TEST(StepMonitor, APoisonedLossMakesEveryGradientNanAndAGoodOneChangesNoBit) {
  at::Tensor a = torch::randn({3}, torch::requires_grad()), b = a.detach().clone().set_requires_grad(true);
  const at::Tensor loss = (a * a * 0.3).sum();
  poison_gradient(loss);
  loss.backward();
  (b * b * 0.3).sum().backward();
  EXPECT_TRUE(same_bits(a.grad(), b.grad()));
  at::Tensor c = torch::randn({3}, torch::requires_grad());
  const at::Tensor infinite = c.sum() + kInf;  // the plain gradient would be 1
  poison_gradient(infinite);
  infinite.backward();
  EXPECT_EQ(infinite.item<double>(), kInf);
  EXPECT_TRUE(c.grad().isnan().all().item<bool>());
}

}  // namespace
}  // namespace cohort::train
