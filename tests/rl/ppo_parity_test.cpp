// An update as rsl-rl-lib makes it, of MLPs and of networks with memory, and as stable-baselines3 does; from fixtures that
// make_rsl_rl_fixture.py and make_stable_baselines3_fixture.py wrote.
#include <cmath>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/config.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "parallel/data_parallel.h"
#include "rl/gaussian.h"
#include "rl/ppo.h"
#include "rl/rollout.h"
#include "weights/named_tensors.h"
#include "weights/weights.h"

namespace cohort::rl {
namespace {

constexpr double kTolerance = 1e-5;  // float32 sums in another order, over twelve steps of Adam

at::Tensor tensor_of(const config::Json& numbers, at::IntArrayRef shape) {
  return torch::tensor(numbers.get<std::vector<float>>(), at::kFloat).reshape(shape);
}

double farthest(const at::Tensor& a, const at::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

class RslRl : public ::testing::TestWithParam<const char*> {
 protected:
  RslRl()
      : json(parse_json<config::Json>(read_file(format("{}/tests/rl/{}.json", COHORT_SOURCE_DIR, GetParam())))),
        steps(json["steps"].get<std::int64_t>()),
        envs(json["envs"].get<std::int64_t>()),
        observations(json["observation_width"].get<std::int64_t>()),
        actions(json["action_width"].get<std::int64_t>()),
        rollout(steps, envs, observations, actions) {
    const config::Json& r = json["rollout"];
    rollout.observations = tensor_of(r["observations"], {steps, envs, observations});
    rollout.actions = tensor_of(r["actions"], {steps, envs, actions});
    rollout.means = tensor_of(r["means"], {steps, envs, actions});
    rollout.log_std = tensor_of(r["stds"], {steps, envs, actions})[0][0].log();
    rollout.log_probs = tensor_of(r["log_probs"], {steps, envs});
    rollout.values = tensor_of(r["values"], {steps, envs});
    rollout.rewards = tensor_of(r["rewards"], {steps, envs});
    rollout.dones = tensor_of(r["dones"], {steps, envs});
    config::Fields fields;
    describe(fields, settings);
    fields.apply_json(json["settings"], "the fixture");

    task.name = "fixture";
    task.observations = {{"all", {observations}, "1", ""}};
    task.action.names.assign(static_cast<std::size_t>(actions), "a");
    task.action.low.assign(task.action.names.size(), -1);
    task.action.high.assign(task.action.names.size(), 1);
    PolicySettings policy;
    policy.actor_hidden_dims = policy.critic_hidden_dims = {8, 8};
    if (json.contains("memory")) {
      const config::Json& memory = json["memory"];
      policy.class_name = "ActorCriticRecurrent";
      policy.rnn_type = memory["rnn_type"];
      policy.rnn_hidden_dim = memory["rnn_hidden_dim"];
      policy.rnn_num_layers = memory["rnn_num_layers"];
      const std::vector<std::int64_t> sizes{policy.rnn_num_layers, envs, policy.rnn_hidden_dim};
      rollout.actor_memory = tensor_of(r["actor_memory"], sizes);
      rollout.critic_memory = tensor_of(r["critic_memory"], sizes);
    }
    networks = std::make_shared<ActorCritic>(policy, task, 1);
  }

  weights::NamedTensors weights(const char* when) const {
    weights::NamedTensors result;
    for (const auto& [name, parameter] : weights::trainable_parameters(*networks))
      result.emplace_back(name, tensor_of(json[when][name], parameter.sizes()));
    return result;
  }
  void load_weights() {
    weights::load_weights(*networks, weights("weights_before"), {}, "the fixture", {.strict = false});
  }
  void compute_returns() {
    rollout.compute_returns(tensor_of(json["last_values"], {envs}), settings.gamma, settings.lam);
  }
  /// Two on the CPU.
  parallel::DataParallel two_devices() const {
    const PolicySettings policy = networks->settings();
    const ObservationLayout layout{.width = observations, .actor_columns = {0, 1, 2}};
    return {networks, std::vector<DeviceId>(2), {}, [policy, layout, action = task.action] {
              return std::make_shared<ActorCritic>(policy, layout, action, 7);
            }};
  }
  /// What a minibatch of everything finds.
  struct Found {
    at::Tensor gradient;
    PpoLosses losses;
  };
  Found found_in_one_minibatch(train::Precision precision, parallel::Strategy* devices = nullptr) {
    load_weights();
    PpoSettings one = settings;
    one.num_learning_epochs = one.num_mini_batches = 1, one.max_grad_norm = 1e9;
    one.schedule = "fixed", one.learning_rate = 1e-12;
    Ppo ppo(*networks, one, {.strategy = devices, .precision = precision});
    ppo.weights_changed();
    const std::int64_t n = networks->recurrent() ? envs : steps * envs;
    Found found;
    found.losses = ppo.update(rollout, [n](int) { return at::arange(n, at::kLong); });
    std::vector<at::Tensor> flat;
    for (const auto& [name, parameter] : weights::trainable_parameters(*networks))
      flat.push_back(parameter.grad().flatten());
    found.gradient = at::cat(flat).clone();
    return found;
  }

  config::Json json;
  std::int64_t steps, envs, observations, actions;
  Rollout rollout;
  PpoSettings settings;
  tasks::TaskSpec task;
  std::shared_ptr<ActorCritic> networks;
};

TEST_P(RslRl, ReturnsAndAdvantagesAreTheSame) {
  compute_returns();
  EXPECT_LT(farthest(rollout.returns, tensor_of(json["returns"], {steps, envs})), kTolerance);
  EXPECT_LT(farthest(rollout.advantages, tensor_of(json["advantages"], {steps, envs})), kTolerance);
}

TEST_P(RslRl, NetworksAndProbabilitiesAreTheSame) {
  load_weights();
  const at::NoGradGuard no_grad;
  NetworkMemory memory{rollout.actor_memory, rollout.critic_memory};
  for (std::int64_t t = 0; t < steps; ++t) {
    const at::Tensor seen = networks->normalize(rollout.observations[t]);
    const at::Tensor mean = networks->mean(seen, memory.actor);
    EXPECT_LT(farthest(mean, rollout.means[t]), kTolerance) << t;
    EXPECT_LT(farthest(networks->value(seen, memory.critic), rollout.values[t]), kTolerance) << t;
    EXPECT_LT(farthest(gaussian_log_prob(mean, networks->log_std(), rollout.actions[t]), rollout.log_probs[t]),
              kTolerance)
        << t;
    memory.forget(rollout.dones[t]);
  }
}

TEST_P(RslRl, AWholeUpdateIsTheSame) {
  load_weights();
  compute_returns();
  Ppo ppo(*networks, settings);
  // rsl_rl draws one permutation for all passes.
  const at::Tensor permutation = torch::tensor(json["permutation"].get<std::vector<std::int64_t>>(), at::kLong);
  const PpoLosses losses = ppo.update(rollout, [&](int) { return permutation; });
  EXPECT_EQ(losses.diverged, "");
  EXPECT_NEAR(losses.surrogate, json["losses"]["surrogate"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.value, json["losses"]["value"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.entropy, json["losses"]["entropy"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.kl, json["kl_of_last_minibatch"].get<double>(), kTolerance);
  EXPECT_NEAR(ppo.learning_rate(), json["learning_rate"].get<double>(), 1e-12);
  const weights::NamedTensors expected = weights("weights_after"), before = weights("weights_before");
  const weights::NamedTensors found = weights::trainable_parameters(*networks);
  ASSERT_EQ(found.size(), networks->recurrent() ? 29u : 13u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(farthest(found[i].second.detach(), expected[i].second), kTolerance) << found[i].first;
    EXPECT_GT(farthest(before[i].second, expected[i].second), 1e-3) << found[i].first << " has not moved";
  }
}

TEST_P(RslRl, SeveralDevicesOfAProcessMakeTheSameUpdate) {
  load_weights();
  compute_returns();
  parallel::DataParallel devices = two_devices();
  Ppo ppo(*networks, settings, {.strategy = &devices});
  ppo.weights_changed();
  const at::Tensor permutation = torch::tensor(json["permutation"].get<std::vector<std::int64_t>>(), at::kLong);
  const PpoLosses losses = ppo.update(rollout, [&](int) { return permutation; });
  EXPECT_NEAR(losses.surrogate, json["losses"]["surrogate"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.value, json["losses"]["value"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.entropy, json["losses"]["entropy"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.kl, json["kl_of_last_minibatch"].get<double>(), kTolerance);
  const weights::NamedTensors expected = weights("weights_after");
  const weights::NamedTensors found = weights::trainable_parameters(*networks);
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_LT(farthest(found[i].second.detach(), expected[i].second), kTolerance) << found[i].first;
}

TEST_P(RslRl, UnderBf16GradientsLieWithinItsRoundingOnOneDeviceAndOnTwo) {
  compute_returns();
  const Found exact = found_in_one_minibatch(train::Precision::kFp32),
              rounded = found_in_one_minibatch(train::Precision::kBf16);
  const double norm = exact.gradient.norm().item<double>(),
               error = (rounded.gradient - exact.gradient).norm().item<double>();
  EXPECT_EQ(rounded.gradient.scalar_type(), at::kFloat);
  EXPECT_LT(error, 0.01 * norm);  // of 2^-9 for a number, through a few layers
  EXPECT_GT(error, 1e-4 * norm) << "not in bf16 at all";
  parallel::DataParallel devices = two_devices();
  const Found of_two = found_in_one_minibatch(train::Precision::kBf16, &devices);
  EXPECT_LT((of_two.gradient - rounded.gradient).norm().item<double>(), error);  // each rounds the sum of its rows
  // What a row gives is the same: the thread of each replica is in bf16.
  EXPECT_LT(of_two.losses.kl, 1e-9);
  EXPECT_LT(std::abs(of_two.losses.value - rounded.losses.value),
            0.01 * std::abs(rounded.losses.value - exact.losses.value));
}

TEST_P(RslRl, UnderBf16NothingHasMovedInTheFirstMinibatch) {
  compute_returns();
  const PpoLosses losses = found_in_one_minibatch(train::Precision::kBf16).losses;
  EXPECT_LT(losses.kl, 1e-9);
  EXPECT_NEAR(losses.surrogate, -rollout.advantages.mean().item<double>(), 1e-6) << "all ratios are 1";
}

TEST_P(RslRl, UnderBf16AWholeUpdateLiesWithinItsRounding) {
  load_weights();
  compute_returns();
  Ppo ppo(*networks, settings, {.precision = train::Precision::kBf16});
  const at::Tensor permutation = torch::tensor(json["permutation"].get<std::vector<std::int64_t>>(), at::kLong);
  const PpoLosses losses = ppo.update(rollout, [&](int) { return permutation; });
  EXPECT_NEAR(losses.surrogate, json["losses"]["surrogate"].get<double>(), 1e-2);
  EXPECT_NEAR(losses.value, json["losses"]["value"].get<double>(), 1e-2 * json["losses"]["value"].get<double>());
  EXPECT_NEAR(losses.entropy, json["losses"]["entropy"].get<double>(), 1e-3);
  EXPECT_EQ(ppo.learning_rate(), json["learning_rate"].get<double>()) << "the KL divergence says the same";
  const weights::NamedTensors expected = weights("weights_after"), before = weights("weights_before");
  const weights::NamedTensors found = weights::trainable_parameters(*networks);
  double error = 0, moved = 0;
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].second.scalar_type(), at::kFloat);
    error += (found[i].second.detach() - expected[i].second).square().sum().item<double>();
    moved += (before[i].second - expected[i].second).square().sum().item<double>();
  }
  EXPECT_LT(std::sqrt(error), 0.1 * std::sqrt(moved));
  EXPECT_GT(error, 0);
}

INSTANTIATE_TEST_SUITE_P(All, RslRl, ::testing::Values("rsl_rl_update", "rsl_rl_recurrent_update"),
                         [](const auto& of) { return std::string(of.param).substr(7); });

class StableBaselines3 : public RslRl {};

TEST_P(StableBaselines3, AWholeUpdateWithOneMinibatchAndNoClippingOfGradientsIsTheSame) {
  load_weights();
  const at::Tensor mean = networks->mean(networks->normalize(rollout.observations.flatten(0, 1))).detach();
  EXPECT_LT(farthest(mean, rollout.means.flatten(0, 1)), kTolerance);
  EXPECT_LT(farthest(gaussian_log_prob(mean, networks->log_std(), rollout.actions.flatten(0, 1)).detach(),
                     rollout.log_probs.flatten()),
            kTolerance);
  compute_returns();
  EXPECT_LT(farthest(rollout.returns, tensor_of(json["returns"], {steps, envs})), kTolerance);
  EXPECT_LT(farthest(rollout.advantages, tensor_of(json["advantages"], {steps, envs})), kTolerance);
  Ppo ppo(*networks, settings);
  const PpoLosses losses = ppo.update(rollout, [&](int) { return at::arange(steps * envs, at::kLong); });
  EXPECT_NEAR(losses.surrogate, json["losses"]["surrogate"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.value, json["losses"]["value"].get<double>(), kTolerance);
  EXPECT_NEAR(losses.entropy, json["losses"]["entropy"].get<double>(), kTolerance);
  const weights::NamedTensors expected = weights("weights_after"), before = weights("weights_before");
  const weights::NamedTensors found = weights::trainable_parameters(*networks);
  ASSERT_EQ(found.size(), 13u);
  for (std::size_t i = 0; i < found.size(); ++i) {
    EXPECT_LT(farthest(found[i].second.detach(), expected[i].second), kTolerance) << found[i].first;
    EXPECT_GT(farthest(before[i].second, expected[i].second), 1e-3) << found[i].first << " has not moved";
  }
}
INSTANTIATE_TEST_SUITE_P(All, StableBaselines3, ::testing::Values("stable_baselines3_update"));

}  // namespace
}  // namespace cohort::rl
