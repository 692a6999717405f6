// Noise schedules and samplers against the diffusers package (fixtures/diffusion/schedulers.json).
#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/json_text.h"
#include "core/message_of.h"
#include "models/diffusion/sampler.h"
#include "models/fixture.h"
#include "models/formula.h"

namespace cohort::models {
namespace {

// What issue and users ask for. Both sides compute in float32.
constexpr double kSchedulerTolerance = 1e-5;

const std::vector<std::int64_t> kShape{2, 4, 3};

TEST(NoiseSchedule, IsThatOfDiffusers) {
  const auto facts = read_facts("schedulers");
  for (const auto& expected : facts.at("schedules")) {
    NoiseScheduleSettings settings;
    apply_settings(settings, expected.at("schedule"));
    const NoiseSchedule schedule(settings);
    const auto at = expected.at("at").get<std::vector<std::size_t>>();
    const auto alphas = expected.at("alphas_cumprod").get<std::vector<double>>();
    for (std::size_t i = 0; i < at.size(); ++i)
      EXPECT_NEAR(schedule.alphas_cumprod()[at[i]], alphas[i], 1e-6 * alphas[i]) << settings.beta_schedule << at[i];
    const at::Tensor t = torch::tensor(expected.at("timesteps").get<std::vector<std::int64_t>>());
    const at::Tensor x0 = formula("clean", {t.size(0), 2, 3}), noise = formula("noise", {t.size(0), 2, 3});
    EXPECT_LE(relative_difference(schedule.add_noise(x0, noise, t).flatten(), tensor_of(expected.at("add_noise")), 1.0),
              kSchedulerTolerance);
    EXPECT_LE(relative_difference(schedule.velocity(x0, noise, t).flatten(), tensor_of(expected.at("velocity")), 1.0),
              kSchedulerTolerance);
    EXPECT_TRUE(at::equal(schedule.target(x0, noise, t), noise));
  }
}

TEST(Sampler, EveryStepIsThatOfDiffusers) {
  const auto facts = read_facts("schedulers");
  ASSERT_GE(facts.at("cases").size(), 29u);
  for (const auto& expected : facts.at("cases")) {
    NoiseScheduleSettings schedule;
    apply_settings(schedule, expected.at("schedule"));
    SamplerSettings settings;
    apply_settings(settings, expected.at("settings"));
    settings.kind = expected.at("kind");
    const std::string name = settings.kind + json_text(expected.at("schedule")) + json_text(expected.at("settings"));
    const auto sampler = make_sampler(settings, NoiseSchedule(schedule));
    ASSERT_EQ(sampler->timesteps(), expected.at("timesteps").get<std::vector<std::int64_t>>()) << name;
    at::Tensor x = formula("start", kShape);
    std::size_t compared = 0;
    for (std::size_t i = 0; i < sampler->timesteps().size(); ++i) {
      const at::Tensor output = 0.3 * x + 0.5 * formula("model " + std::to_string(sampler->timesteps()[i]), kShape);
      x = sampler->step(i, output, x,
                        sampler->needs_noise(i) ? formula("noise " + std::to_string(i), kShape) : at::Tensor());
      const auto state = expected.at("states").find(std::to_string(i));
      if (state == expected.at("states").end()) continue;
      ++compared;
      EXPECT_LE(relative_difference(x.flatten(), tensor_of(*state), 1.0), kSchedulerTolerance) << name << " step " << i;
    }
    EXPECT_EQ(compared, expected.at("states").size()) << name;
  }
}

TEST(Sampler, RecoversTheCleanActionsFromAPerfectNetwork) {
  // A closed formula beside the reference: with the true noise as prediction, every deterministic sampler ends at x0.
  const at::Tensor x0 = formula("clean", kShape, 0.9);
  for (const char* kind : {"ddim", "dpm_solver++"})
    for (const int order : {1, 2, 3}) {
      const NoiseSchedule schedule(NoiseScheduleSettings{});
      SamplerSettings settings;
      settings.kind = kind;
      settings.solver_order = order;
      const auto sampler = make_sampler(settings, schedule);
      const at::Tensor start = formula("noise", kShape);
      at::Tensor x = start;
      for (std::size_t i = 0; i < sampler->timesteps().size(); ++i) {
        const float alpha = schedule.alphas_cumprod()[static_cast<std::size_t>(sampler->timesteps()[i])];
        x = sampler->step(i, (x - std::sqrt(alpha) * x0) / std::sqrt(1 - alpha), x, {});
      }
      EXPECT_LE((x - x0).abs().max().item<double>(), 1e-4) << kind << order;
    }
}

TEST(Sampler, NamesWhatIsWrongWithItsSettings) {
  const NoiseSchedule schedule(NoiseScheduleSettings{});
  SamplerSettings settings;
  settings.num_inference_timesteps = 101;
  EXPECT_EQ(message_of([&] { make_sampler(settings, schedule); }),
            "sampler: num_inference_timesteps = 101, but must be 1 to 100, as num_train_timesteps = 100");
  settings = {};
  settings.kind = "ddpmx";
  EXPECT_NE(message_of([&] { make_sampler(settings, schedule); }).find("kind = \"ddpmx\""), std::string::npos);
  settings = {};
  settings.steps_offset = 20;
  EXPECT_NE(message_of([&] { make_sampler(settings, schedule); }).find("steps_offset = 20"), std::string::npos);
  EXPECT_NE(
      message_of([&] { NoiseSchedule(NoiseScheduleSettings{.beta_schedule = "cosine"}); }).find("squaredcos_cap_v2"),
      std::string::npos);
}

}  // namespace
}  // namespace cohort::models
