// PPO of networks with memory.
#include <numeric>
#include <set>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "rl/acting_ppo.h"
#include "rl/recall_task.h"
#include "rl/runner.h"
#include "rl/thread_ranks.h"
#include "tasks/rollout.h"
#include "train/checkpoint_writer.h"
#include "train/rank_threads.h"
#include "weights/checkpoint.h"

namespace cohort::rl {
namespace {

PolicySettings remembering(bool with_memory = true) {
  PolicySettings settings;
  settings.class_name = with_memory ? "ActorCriticRecurrent" : "ActorCritic";
  settings.actor_hidden_dims = settings.critic_hidden_dims = {16};
  settings.rnn_hidden_dim = 16;
  return settings;
}

/// A training of the task that needs memory.
struct RecallTraining {
  explicit RecallTraining(int n = 48, const PolicySettings& policy = remembering(), Ranks* ranks = nullptr,
                          const PpoSettings& ppo = {}, std::vector<DeviceId> devices = {})
      : task(n),
        runner(task, {.seed = 5, .num_steps_per_env = 20}, ppo, policy,
               {.ranks = ranks, .devices = std::move(devices)}) {}
  Iteration train(int iterations) {
    Iteration last;
    for (int i = 0; i < iterations; ++i) last = runner.iterate();
    return last;
  }
  RecallTask task;
  PpoRunner runner;
};

bool same_numbers(const PpoRunner& a, const PpoRunner& b) {
  const weights::NamedTensors one = weights::module_state(*a.networks()), other = weights::module_state(*b.networks());
  for (std::size_t i = 0; i < one.size(); ++i)
    if (!at::equal(one[i].second, other[i].second)) return false;
  return one.size() == other.size();
}

weights::CheckpointContent copy_of(weights::CheckpointContent content) {
  for (auto* part : {&content.model, &content.optimizer, &content.random})
    for (auto& [name, tensor] : *part) tensor = tensor.detach().clone();
  return content;
}

std::vector<double> returns_of(PpoRunner& runner, int n) {
  RecallTask task(n);
  ActingPpo trained(ppo_policy(runner.networks()), task);
  std::vector<double> returns;
  for (const tasks::EpisodeOutcome& episode :
       tasks::run_episodes(task, trained.actor, tasks::consecutive_seeds(900, 40)))
    returns.push_back(episode.total_reward);
  return returns;
}

TEST(RecurrentPpo, LearnsWhatNeedsMemoryAndAnMlpDoesNot) {
  RecallTraining with, without(48, remembering(false));
  with.train(60), without.train(60);
  const auto mean = [](const std::vector<double>& x) {
    return std::accumulate(x.begin(), x.end(), 0.0) / static_cast<double>(x.size());
  };
  // Episodes have 6 to 8 steps, all but the first with 1 for the right answer. Who does not know the sign has 0 at best.
  EXPECT_GT(mean(returns_of(with.runner, 8)), 5);
  EXPECT_LT(mean(returns_of(without.runner, 8)), 1);
}

TEST(RecurrentPpo, ActsTheSameWithAnyNumberOfEnvironments) {
  RecallTraining training;
  training.train(3);
  const std::vector<double> expected = returns_of(training.runner, 1);
  for (const int n : {7, 16, 33, 40}) EXPECT_EQ(returns_of(training.runner, n), expected) << n;
}

TEST(RecurrentPpo, ARolloutStartsFromWhatIsRememberedAndEpisodesFromNothing) {
  RecallTraining training;
  training.train(1);
  EXPECT_EQ(training.runner.rollout().actor_memory.abs().max().item<float>(), 0) << "nothing was seen before";
  const at::Tensor ended = training.runner.rollout().dones[19].clone();
  training.train(1);
  const Rollout& rollout = training.runner.rollout();
  const at::Tensor remembers = (rollout.actor_memory.abs().amax({0, 2}) > 0).to(at::kFloat);
  EXPECT_TRUE(at::equal(remembers, 1 - ended));
  EXPECT_GT(remembers.sum().item<float>(), 0);
  EXPECT_GT(ended.sum().item<float>(), 0);
  // What was computed step by step is what the learner finds, its weights of before the update given.
  RecallTraining again;
  again.train(1);
  const ActorCritic& networks = *again.runner.networks();
  const at::NoGradGuard no_grad;
  const at::Tensor seen = networks.normalize(rollout.observations.transpose(0, 1));
  const at::Tensor means = networks.means(seen, rollout.actor_memory, rollout.keep().t()),
                   values = networks.values(seen, rollout.critic_memory, rollout.keep().t());
  EXPECT_LT((means.transpose(0, 1) - rollout.means).abs().max().item<double>(), 1e-5);
  EXPECT_LT((values.transpose(0, 1) - rollout.values).abs().max().item<double>(), 1e-5);
}

TEST(RecurrentPpo, ResumesToTheSameBits) {
  const TemporaryFolder folder("cohort-rl-test-");
  RecallTraining whole, first, resumed;
  whole.train(7);
  first.train(3);
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path()), 0);
    writer.save(first.runner.checkpoint());
    first.train(1);  // the copy must not follow
    writer.finish();
  }
  const auto path = weights::CheckpointFolder(folder.path()).checkpoint(3);
  resumed.runner.resume(weights::read_checkpoint(path), path.string());
  resumed.train(4);
  EXPECT_TRUE(same_numbers(whole.runner, resumed.runner));
}

TEST(RecurrentPpo, NewEpisodesOfARunThatGoesOnBeginWithNothingToRemember) {
  RecallTraining training, resumed;
  training.train(1);
  weights::CheckpointContent content = copy_of(training.runner.checkpoint());
  const auto memory_of = [](const weights::CheckpointContent& of) {
    for (const auto& [name, tensor] : of.random)
      if (name == "rank_0.envs.actor_memory") return tensor;
    return at::Tensor();
  };
  ASSERT_GT(memory_of(content).abs().sum().item<float>(), 0);
  content.random.emplace_back("rank_0.envs.actions", at::zeros({48, 1, 1}));  // of an earlier version: not restored
  resumed.runner.resume(content, "the test");
  EXPECT_EQ(memory_of(resumed.runner.checkpoint()).abs().sum().item<float>(), 0);
}

TEST(RecurrentPpo, ACheckpointWithoutMemoriesIsRefusedByName) {
  RecallTraining training, other;
  training.train(1);
  weights::CheckpointContent content = copy_of(training.runner.checkpoint());
  std::erase_if(content.random, [](const auto& named) { return named.first == "rank_0.envs.critic_memory"; });
  try {
    other.runner.resume(content, "checkpoint-1");
    ADD_FAILURE() << "was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("envs.critic_memory is missing"), std::string::npos) << e.what();
  }
}

TEST(RecurrentPpo, ActsFromItsCheckpointAsItLearnt) {
  const TemporaryFolder folder("cohort-rl-test-");
  RecallTraining training;
  training.train(2);
  weights::CheckpointContent content = training.runner.checkpoint();
  std::set<std::string> names;
  for (const auto& [name, tensor] : content.model) names.insert(name);
  for (const char* name : {"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"})
    EXPECT_EQ(names.count(format("actor_memory.{}", name)), 1u) << name;
  content.state.configuration =
      R"({"job": "ppo", "task": "recall", "policy": {"class_name": "ActorCriticRecurrent", "rnn_hidden_dim": 16,
          "actor_hidden_dims": [16], "critic_hidden_dims": [16]}})";
  {
    train::CheckpointWriter writer(weights::CheckpointFolder(folder.path() / "checkpoints"), 0);
    writer.save(content);
    writer.finish();
  }
  RecallTask task(4), same(4);
  ActingPpo from_file(load_ppo_policy(folder.path(), {}), task), own(ppo_policy(training.runner.networks()), task);
  const std::vector<std::uint64_t> seeds = tasks::consecutive_seeds(1, 12);
  const auto one = tasks::run_episodes(task, from_file.actor, seeds),
             other = tasks::run_episodes(same, own.actor, seeds);
  for (std::size_t i = 0; i < seeds.size(); ++i) EXPECT_EQ(one[i].total_reward, other[i].total_reward) << i;
}

std::vector<at::Tensor> gradients_of(const PpoRunner& runner) {
  std::vector<at::Tensor> all;
  for (const at::Tensor& parameter : runner.networks()->parameters()) all.push_back(parameter.grad().clone());
  return all;
}

TEST(RecurrentPpo, TwoRanksWithHalfOfTheEnvironmentsFindTheGradientsOfOne) {
  PpoSettings ppo;
  ppo.num_learning_epochs = 1, ppo.num_mini_batches = 2, ppo.learning_rate = 1e-9, ppo.schedule = "fixed";
  RecallTraining one(48, remembering(), nullptr, ppo);
  one.train(2);
  std::vector<at::Tensor> actions(2), memories(2);
  std::vector<std::vector<at::Tensor>> gradients(2);
  weights::CheckpointContent kept;
  const auto errors = train::run_ranks(2, [&](int rank, train::Meeting& meeting) {
    const auto r = static_cast<std::size_t>(rank);
    ThreadRanks ranks(rank, 2, meeting);
    RecallTraining two(24, remembering(), &ranks, ppo);
    two.train(2);
    actions[r] = two.runner.rollout().actions.clone();
    memories[r] = two.runner.rollout().actor_memory.clone();
    gradients[r] = gradients_of(two.runner);
    const weights::CheckpointContent content = two.runner.checkpoint();
    if (rank == 0) kept = copy_of(content);
  });
  EXPECT_EQ(errors, std::vector<std::string>(2, ""));
  EXPECT_LT((at::cat(memories, 1) - one.runner.rollout().actor_memory).abs().max().item<double>(), 1e-6);
  EXPECT_LT((at::cat(actions, 1) - one.runner.rollout().actions).abs().max().item<double>(), 1e-6);
  const std::vector<at::Tensor> expected = gradients_of(one.runner);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(at::equal(gradients[0][i], gradients[1][i]));
    EXPECT_LT((gradients[0][i] - expected[i]).abs().max().item<double>(), 1e-5) << i;
    EXPECT_GT(expected[i].abs().max().item<double>(), 1e-5) << i;
  }
  // One goes on where two were.
  RecallTraining next(48, remembering(), nullptr, ppo);
  next.runner.resume(kept, "the test");
  next.train(1), one.train(1);
  EXPECT_LT((next.runner.rollout().actor_memory - one.runner.rollout().actor_memory).abs().max().item<double>(), 1e-6);
}

TEST(PpoOnSeveralDevices, LearnsAsOnOne) {
  for (const bool with_memory : {false, true}) {
    PpoSettings ppo;
    ppo.num_learning_epochs = 2, ppo.schedule = "fixed";
    RecallTraining one(48, remembering(with_memory), nullptr, ppo),
        three(48, remembering(with_memory), nullptr, ppo, std::vector<DeviceId>(3));
    const Iteration of_one = one.train(1), of_three = three.train(1);
    EXPECT_NEAR(of_three.losses.loss, of_one.losses.loss, 1e-5) << with_memory;
    EXPECT_NEAR(of_three.losses.kl, of_one.losses.kl, 1e-5) << with_memory;
    const std::vector<at::Tensor> expected = one.runner.networks()->parameters(),
                                  found = three.runner.networks()->parameters();
    for (std::size_t k = 0; k < found.size(); ++k)
      EXPECT_LT((found[k] - expected[k]).abs().max().item<double>(), 1e-5) << with_memory << " " << k;
  }
}

TEST(RecurrentPpo, EnvironmentsThatDoNotDivideAreRefusedWithTheNearestThatDo) {
  try {
    RecallTraining training(50);
    ADD_FAILURE() << "was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("the nearest n_envs that do: 48 and 52"), std::string::npos) << e.what();
  }
  PolicySettings policy = remembering();
  policy.rnn_hidden_dim = 0;
  EXPECT_THROW(RecallTraining(48, policy), Error);
}

}  // namespace
}  // namespace cohort::rl
