
#include <algorithm>

#include <torch/types.h>

#include "core/json_text.h"
#include "support/python.h"
#include "train/grad_scaler.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace cohort::train {
namespace {

// PyTorch's schedulers multiply their way forward: some tens of roundings of a double.
constexpr double kRoundings = 1e-13;

const nlohmann::json& peer() {
  static const nlohmann::json result = [] {
    const test::CommandOutcome python = test::run_python("train/scaler_schedule_parity.py");
    EXPECT_EQ(python.code, 0) << python.output;
    return python.code == 0 ? parse_json<nlohmann::json>(python.output.substr(python.output.find('{')))
                            : nlohmann::json();
  }();
  return result;
}

TEST(GradScalerParity, ScaleTrackerAndWeightsEqualTorchAmpThroughOverflows) {
  COHORT_NEEDS_PYTHON();
  ASSERT_FALSE(peer().is_null());
  const std::vector<int> overflows = {0, 1, 7, 8, 15};
  at::Tensor weight = torch::tensor({0.5f, -1.5f, 2.0f}).set_requires_grad(true);
  OptimizerSettings settings{.kind = "adamw"};
  Optimizer optimizer({ParameterGroup{{{"weight", weight}}, 1.0, settings.resolved_weight_decay()}}, settings);
  GradScaler scaler({.init_scale = 49999.0, .growth_interval = 3}, c10::kCPU);
  int step = 0;
  for (const auto& expected : peer()["scaler"]) {
    if (step == 12) {  // the state goes through a checkpoint
      const weights::GradScalerState saved = scaler.state();
      scaler = GradScaler({}, c10::kCPU);
      scaler.load_state(saved);
    }
    weight.mutable_grad() = at::Tensor();
    const at::Tensor x = torch::tensor({1.0f + static_cast<float>(step), 0.25f, -0.5f * static_cast<float>(step)});
    ((weight * x).pow(2).sum() * scaler.scale()).backward();
    if (std::count(overflows.begin(), overflows.end(), step)) {
      weight.mutable_grad()[1] = step % 2 ? std::numeric_limits<float>::infinity() : std::nanf("");
    }
    scaler.unscale(optimizer.gradients());
    optimizer.step(1e-2, scaler.found_inf());
    scaler.update();
    EXPECT_EQ(scaler.state().scale, expected["scale"].get<double>()) << step;
    EXPECT_EQ(scaler.state().growth_tracker, expected["tracker"].get<std::int64_t>()) << step;
    for (std::int64_t i = 0; i < 3; ++i) {
      EXPECT_EQ(weight[i].item<float>(), expected["weight"][static_cast<std::size_t>(i)].get<float>()) << step;
    }
    ++step;
  }
}

TEST(ScheduleParity, RatesEqualTorchsSchedulers) {
  COHORT_NEEDS_PYTHON();
  ASSERT_FALSE(peer().is_null());
  const auto compare = [](const char* name, const ScheduleSettings& settings) {
    std::int64_t step = 0;
    for (const auto& rate : peer()["schedules"][name]) {
      EXPECT_NEAR(0.1 * learning_rate_factor(settings, {.step = step, .total_steps = 30}), rate.get<double>(),
                  kRoundings)
          << name << " " << step;
      ++step;
    }
  };
  compare("cosine", {.kind = "cosine", .end_factor = 0.2});
  compare("linear", {.kind = "linear", .end_factor = 0.2});
  compare("warm_cosine", {.kind = "cosine", .warmup_steps = 5});
}

}  // namespace
}  // namespace cohort::train
