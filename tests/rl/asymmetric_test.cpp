// A critic that sees more than the actor, and squashed actions.
#include <cmath>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "rl/acting_ppo.h"
#include "rl/gaussian.h"
#include "rl/point_task.h"
#include "rl/runner.h"
#include "train/checkpoint_writer.h"
#include "weights/checkpoint.h"

namespace cohort::rl {
namespace {

PolicySettings policy_of(const std::string& distribution, std::vector<std::string> critic_only) {
  PolicySettings settings;
  settings.actor_hidden_dims = settings.critic_hidden_dims = {16, 16};
  settings.distribution = distribution;
  settings.critic_only = std::move(critic_only);
  return settings;
}

struct OtherTraining {
  explicit OtherTraining(const PolicySettings& policy)
      : task({.n_envs = 32}), runner(task, {.seed = 1, .num_steps_per_env = 16}, {}, policy) {}
  Iteration train(int iterations) {
    Iteration last;
    for (int i = 0; i < iterations; ++i) last = runner.iterate();
    return last;
  }
  PointTask task;
  PpoRunner runner;
};

TEST(AsymmetricCritic, SeesWhatTheActorDoesNot) {
  OtherTraining training(policy_of("gaussian", {"speed"}));
  const ActorCritic& networks = *training.runner.networks();
  EXPECT_EQ(networks.actor_width(), 1);
  EXPECT_EQ(networks.observation_width(), 2);
  at::Tensor slow = at::zeros({16, 2}), fast = at::zeros({16, 2});
  fast.select(1, 1).fill_(1.5);
  {
    const at::NoGradGuard no_grad;
    EXPECT_TRUE(at::equal(networks.mean(slow), networks.mean(fast)));
    EXPECT_GT((networks.value(slow) - networks.value(fast)).abs().max().item<double>(), 1e-4);
  }
  EXPECT_EQ(training.train(2).losses.diverged, "");
}

TEST(AsymmetricCritic, ItsActorActsWhereWhatOnlyTheCriticSeesIsMissing) {
  const TemporaryFolder folder("cohort-rl-test-");
  OtherTraining training(policy_of("gaussian", {"speed"}));
  training.train(2);
  weights::CheckpointContent content = training.runner.checkpoint();
  content.state.configuration =
      R"({"job": "ppo", "task": "point", "policy": {"actor_hidden_dims": [16, 16], "critic_hidden_dims": [16, 16],
          "critic_only": ["speed"]}})";
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path() / "checkpoints"), 0);
    writer.save(content);
    writer.finish();
  }
  PointTask poor({.n_envs = 4, .shows_speed = false}), rich({.n_envs = 4});
  const std::vector<std::int32_t> envs{0, 1, 2, 3};
  const std::vector<std::uint64_t> seeds{5, 6, 7, 8};
  poor.reset(envs, seeds), rich.reset(envs, seeds);
  ActingPpo from_file(load_ppo_policy(folder.path(), {}), poor), own(ppo_policy(training.runner.networks()), rich);
  std::vector<float> one(8, -9), other(8, -7);
  from_file.actor.begin(envs, seeds, "");
  from_file.actor.act(poor, envs, make_view(one.data(), {4, 2}));
  own.actor.begin(envs, seeds, "");
  own.actor.act(rich, envs, make_view(other.data(), {4, 2}));
  EXPECT_EQ(one, other);
}

TEST(AsymmetricCritic, UnknownFieldsAreRefusedWithTheNearest) {
  try {
    OtherTraining training(policy_of("gaussian", {"sped"}));
    ADD_FAILURE() << "was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("did you mean 'speed'"), std::string::npos) << e.what();
  }
  EXPECT_THROW(OtherTraining(policy_of("gaussian", {"speed", "position"})), Error);
}

TEST(SquashedActions, StayWithinTheirBoundsAndLearn) {
  OtherTraining training(policy_of("squashed", {}));
  const ActorCritic& networks = *training.runner.networks();
  const at::Tensor far = torch::tensor({{-50.0f, -50.0f}, {50.0f, 50.0f}});
  EXPECT_TRUE(at::allclose(networks.to_task(far), torch::tensor({{-2.0f, 0.0f}, {2.0f, 1.0f}})));
  EXPECT_GT(training.train(60).episodes.mean_return, 16.5);
}

TEST(SquashedActions, TheEntropyIsThatOfTheSquashedDensity) {
  // H(tanh u) = H(u) + E[log(1 - tanh²u)], against -∫ p log p of the density of tanh u itself.
  const double mean = 0.4, deviation = 0.7;
  double entropy = 0, correction = 0;
  const int points = 40000;
  for (int i = 0; i < points; ++i) {
    const double u = mean + deviation * 16 * ((i + 0.5) / points - 0.5), width = deviation * 16 / points;
    const double density = std::exp(-0.5 * std::pow((u - mean) / deviation, 2)) / (deviation * std::sqrt(2 * M_PI));
    const double slope = 1 - std::tanh(u) * std::tanh(u);
    if (slope > 0) entropy -= density * std::log(density / slope) * width;
    correction += density * width * log_tanh_derivative(torch::tensor({u}, at::kDouble)).item<double>();
  }
  const double gaussian = gaussian_entropy(torch::tensor({std::log(deviation)}, at::kDouble)).item<double>();
  EXPECT_NEAR(gaussian + correction, entropy, 1e-4);
  EXPECT_NEAR(log_tanh_derivative(torch::tensor({30.0f})).item<double>(), 2 * std::log(2.0) - 60, 1e-4);
}

}  // namespace
}  // namespace cohort::rl
