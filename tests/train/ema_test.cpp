#include "train/ema.h"

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "models/layers.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

// Averages of float32 weights of size 1: a few roundings.
constexpr double kRoundings = 1e-6;

struct OneWeight : torch::nn::Module {
  explicit OneWeight(const std::vector<float>& start) { weight = register_parameter("weight", torch::tensor(start)); }
  at::Tensor weight;
};

void set(at::Tensor parameter, const std::vector<float>& values) {
  const at::NoGradGuard no_grad;
  parameter.copy_(torch::tensor(values));
}

TEST(Ema, DecaysAndAveragesAreThoseOfDiffusers) {
  const auto fixture = parse_json<nlohmann::json>(
      read_file(std::filesystem::path(COHORT_SOURCE_DIR) / "tests/train/fixtures/ema_diffusers.json"));
  for (const auto& c : fixture["cases"]) {
    EmaSettings settings{.enabled = true,
                         .counting = "diffusers",
                         .power = c["power"],
                         .inv_gamma = c["inv_gamma"],
                         .min_decay = c["min_decay"],
                         .max_decay = c["decay"],
                         .update_after_step = c["update_after_step"]};
    const auto owner = std::make_shared<OneWeight>(c["start"].get<std::vector<float>>());
    OneWeight& module = *owner;
    Ema ema(module, settings);
    std::int64_t update = 0;
    for (const auto& step : c["steps"]) {
      set(module.weight, step["weights"].get<std::vector<float>>());
      ema.update();
      EXPECT_NEAR(ema_decay(settings, ++update), step["decay"].get<double>(), 1e-15);
      const at::Tensor expected = torch::tensor(step["average"].get<std::vector<float>>());
      EXPECT_TRUE(at::allclose(ema.state()[0].second, expected, kRoundings, kRoundings)) << update;
    }
  }
}

TEST(Ema, DiffusionPolicysCountingLagsOneUpdateBehind) {
  // get_decay in its ema_model.py, which RDT copied: 0, 0, then 1 - 2^-power.
  const EmaSettings settings{.power = 0.75};
  EXPECT_EQ(ema_decay(settings, 1), 0.0);
  EXPECT_EQ(ema_decay(settings, 2), 0.0);
  EXPECT_DOUBLE_EQ(ema_decay(settings, 3), 1.0 - std::pow(2.0, -0.75));
  EXPECT_EQ(ema_decay(settings, 10'000'000), 0.9999);
  EmaSettings diffusers = settings;
  diffusers.counting = "diffusers";
  for (std::int64_t n = 1; n < 50; ++n) EXPECT_EQ(ema_decay(settings, n + 1), ema_decay(diffusers, n));
}

TEST(Ema, TheGuardShowsTheAveragesAndGivesTheWeightsBack) {
  const auto owner = std::make_shared<OneWeight>(std::vector<float>{1.0f, 2.0f});
  OneWeight& module = *owner;
  Ema ema(module, {.max_decay = 0.5});
  for (int i = 0; i < 3; ++i) ema.update();
  set(module.weight, {3.0f, 4.0f});
  ema.update();
  const void* memory = module.weight.data_ptr();
  {
    const EmaWeightsGuard averages(&ema);
    EXPECT_TRUE(at::equal(module.weight, torch::tensor({2.0f, 3.0f})));
    EXPECT_TRUE(module.weight.requires_grad());
  }
  EXPECT_TRUE(at::equal(module.weight, torch::tensor({3.0f, 4.0f})));
  EXPECT_EQ(module.weight.data_ptr(), memory);
}

TEST(Ema, StateHoldsEveryNameOfTheModelAndBatchNormAsItIs) {
  auto model = tiny_model();
  Ema ema(*model, {.max_decay = 0.5});
  for (int i = 0; i < 3; ++i) ema.update();
  {
    const at::NoGradGuard no_grad;
    for (auto& parameter : model->parameters()) parameter.add_(1.0);
    model->norm->running_mean.fill_(9.0);
  }
  ema.update();
  const auto state = ema.state();
  const auto own = weights::module_state(*model);
  ASSERT_EQ(state.size(), own.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    EXPECT_EQ(state[i].first, own[i].first);
    const bool averaged = own[i].first.starts_with("one") || own[i].first.starts_with("two");
    EXPECT_EQ(at::equal(state[i].second, own[i].second), !averaged) << own[i].first;
  }
}

/// A layer and the batch norm that our networks have, which is not LibTorch's.
struct OwnNorm : torch::nn::Module {
  OwnNorm()
      : linear(register_module("linear", std::make_shared<models::Linear>(2, 3))),
        norm(register_module("norm", std::make_shared<models::BatchNorm>(3))) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : parameters()) parameter.fill_(1.0);
  }
  std::shared_ptr<models::Linear> linear;
  std::shared_ptr<models::BatchNorm> norm;
};

TEST(Ema, TheBatchNormOfOurNetworksIsCopiedUnlessItIsToBeAveraged) {
  for (const bool copied : {true, false}) {
    const auto model = std::make_shared<OwnNorm>();
    Ema ema(*model, {.max_decay = 0.5, .copy_batch_norm = copied});
    for (int i = 0; i < 3; ++i) ema.update();
    {
      const at::NoGradGuard no_grad;
      for (auto& parameter : model->parameters()) parameter.fill_(3.0);
    }
    ema.update();
    const weights::NamedTensors state = ema.state();
    std::size_t seen = 0;
    for (const auto& [name, tensor] : state) {
      if (!name.ends_with(".weight") && !name.ends_with(".bias")) continue;  // the running statistics
      ++seen;
      const double expected = name.starts_with("norm.") && copied ? 3.0 : 2.0;
      EXPECT_TRUE(at::allclose(tensor, at::full_like(tensor, expected), kRoundings, kRoundings)) << name << copied;
    }
    EXPECT_EQ(seen, 4u);
  }
}

TEST(Ema, AReloadedAverageGoesOnToTheBit) {
  auto model = tiny_model(), other = tiny_model();
  Ema ema(*model, {}), resumed(*other, {});
  const auto move = [](TinyModel& m, double by) {
    const at::NoGradGuard no_grad;
    for (auto& parameter : m.parameters()) parameter.add_(by);
  };
  for (int i = 0; i < 5; ++i) {
    move(*model, 0.1);
    ema.update();
  }
  weights::NamedTensors saved;
  for (const auto& [name, tensor] : ema.state()) saved.emplace_back(name, tensor.clone());
  for (int i = 0; i < 5; ++i) move(*other, 0.1);
  resumed.load_state(saved, ema.updates(), "file");
  move(*model, 0.3);
  move(*other, 0.3);
  ema.update();
  resumed.update();
  for (std::size_t i = 0; i < saved.size(); ++i) {
    EXPECT_TRUE(same_bits(ema.state()[i].second, resumed.state()[i].second)) << saved[i].first;
  }
  saved.erase(saved.begin());
  EXPECT_THROW(resumed.load_state(saved, 3, "file"), Error);
  EXPECT_EQ(resumed.updates(), 6);
}

TEST(Ema, SettingsOutOfRangeAreRefused) {
  auto model = tiny_model();
  EXPECT_THROW(Ema(*model, {.counting = "other"}), Error);
  EXPECT_THROW(Ema(*model, {.power = 0.0}), Error);
  EXPECT_THROW(Ema(*model, {.min_decay = 0.9, .max_decay = 0.5}), Error);
}

}  // namespace
}  // namespace cohort::train
