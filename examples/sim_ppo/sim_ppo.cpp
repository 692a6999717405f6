// A loop of reinforcement learning of one's own, with PPO's pieces called one by one: every rank simulates its share of
// the environments, gradients are averaged over the ranks, one policy learns.
//
//   sim_ppo                                                          one process
//   cohort launch --nproc_per_node=2 -- sim_ppo                      a process for each device
//   torchrun --standalone --nproc-per-node=2 --no-python sim_ppo     the same under torchrun
//
//   sim_ppo [TASK [ENVIRONMENTS [ITERATIONS]]]     over all ranks; cartpole-balance, 256 and 60 without
#include <cstdio>
#include <cstdlib>

#include <torch/torch.h>

#include "core/philox.h"
#include "dist/group.h"
#include "rl/environments.h"
#include "rl/gaussian.h"
#include "rl/ppo.h"
#include "tasks/registry.h"

using namespace cohort;

int main(int argc, char** argv) try {
  const std::string name = argc > 1 ? argv[1] : "cartpole-balance";
  const int environments = argc > 2 ? std::atoi(argv[2]) : 256, iterations = argc > 3 ? std::atoi(argv[3]) : 60;
  constexpr int kSteps = 32;
  constexpr std::uint64_t kSeed = 1;
  rl::PpoSettings settings;
  settings.entropy_coef = 0, settings.use_clipped_value_loss = false;
  rl::PolicySettings policy;
  policy.actor_hidden_dims = policy.critic_hidden_dims = {64, 64};

  // Which process is this, and who are the others? (LOCAL_RANK, init_process_group)
  at::set_num_threads(1);
  const std::shared_ptr<dist::Group> group = dist::Group::create(rank::read_environment());
  rl::GroupRanks ranks(group);
  const rl::Shares shares = rl::share_environments(environments, kSteps, settings.num_mini_batches, ranks);

  // This rank's share of the environments. What one does depends on its global id, not on who computes it.
  const auto n = static_cast<int>(shares.environments);
  const auto task = tasks::make_task(name, {.n_envs = n});
  rl::Environments world(*task, kSeed, shares.first_environment(), /*staggered=*/true);

  // Every rank has the same weights: they are drawn from the seed. The strategy averages their gradients over the ranks.
  const auto learner = std::make_shared<rl::ActorCritic>(policy, task->spec(), kSeed);
  rl::ActorCritic& networks = *learner;
  const std::shared_ptr<parallel::Strategy> strategy = ranks.strategy(learner, DeviceId{});
  rl::Ppo ppo(networks, settings, {.strategy = strategy.get()});
  const std::int64_t width = networks.action_width();
  rl::Rollout rollout(kSteps, n, networks.observation_width(), width);

  for (int iteration = 0; iteration < iterations; ++iteration) {
    at::Tensor reward = at::zeros({});
    {
      const at::NoGradGuard no_grad;
      rollout.log_std.copy_(networks.log_std());
      for (int t = 0; t < kSteps; ++t) {
        const at::Tensor seen = networks.normalize(world.observations());
        const at::Tensor mean = networks.mean(seen), value = networks.value(seen);
        at::Tensor noise = at::empty({n, width});
        for (int env = 0; env < n; ++env) {
          const RandomStream random(kSeed, RandomPurpose::kAction,
                                    static_cast<std::uint64_t>(shares.first_environment() + env),
                                    static_cast<std::uint64_t>(iteration * kSteps + t));
          for (std::int64_t i = 0; i < width; ++i) noise[env][i] = random.normal(static_cast<std::uint64_t>(i));
        }
        const at::Tensor actions = mean + rollout.log_std.exp() * noise;
        rollout.observations[t].copy_(world.observations());
        const rl::EnvironmentStep& step = world.step(networks.to_task(actions));
        reward += step.rewards.mean() / kSteps;
        // Rewards of 0 to 1 in every step: a tenth of them keeps the value's loss near that of the surrogate. An
        // episode that its horizon ends would go on: what its last state is worth is added.
        const at::Tensor end = networks.value(networks.normalize(step.final_observations)).nan_to_num();
        rollout.rewards[t].copy_(0.1 * step.rewards + settings.gamma * step.cut_off * end);
        rollout.dones[t].copy_(step.dones);
        rollout.actions[t].copy_(actions);
        rollout.means[t].copy_(mean);
        rollout.log_probs[t].copy_(rl::gaussian_log_prob(mean, rollout.log_std, actions));
        rollout.values[t].copy_(value);
      }
      rollout.compute_returns(networks.value(networks.normalize(world.observations())), settings.gamma, settings.lam,
                              &shares);
    }
    const rl::PpoLosses losses = ppo.update(rollout, [&](int epoch) {
      return rl::minibatch_order(shares, kSteps, settings.num_mini_batches, kSeed,
                                 iteration * settings.num_learning_epochs + epoch);
    });
    COHORT_THROW_UNLESS(losses.diverged.empty(), "{}", losses.diverged);
    networks.moments().merge(rl::moments_of(rollout.observations, shares));
    ranks.mean(reward);
    if (group->rank() == 0 && ((iteration + 1) % 10 == 0 || iteration + 1 == iterations))
      std::printf("iteration %d: reward of a step %.4f, KL %.4f, learning rate %.1e, on %d rank(s)\n", iteration + 1,
                  reward.item<double>(), losses.kl, ppo.learning_rate(), group->world_size());
  }
  group->close();
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "sim_ppo: %s\n", e.what());
  return 1;
}
