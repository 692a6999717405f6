#include "rl/presets.h"

namespace cohort::rl {

PpoRunSettings preset(const std::string& task) {
  PpoRunSettings s;
  s.task = task;
  if (task == "cartpole-balance" || task == "cartpole-swingup") {
    // Rewards lie in [0, 1] and sum up to 100 under gamma = 0.99: a tenth keeps the value's loss near that of the
    // surrogate.
    s.n_envs = 256;
    s.runner.num_steps_per_env = 32;
    s.runner.reward_scale = 0.1;
    s.runner.init_at_random_ep_len = true;
    s.policy.actor_hidden_dims = s.policy.critic_hidden_dims = {64, 64};
    s.algorithm.entropy_coef = 0;
    s.algorithm.use_clipped_value_loss = false;
    s.runner.max_iterations = task == "cartpole-balance" ? 80 : 250;
  }
  if (task == "quadruped-velocity") {
    s.n_envs = 2048;
    s.runner.num_steps_per_env = 24;
    s.runner.max_iterations = 750;
    s.runner.init_at_random_ep_len = true;
    s.policy.actor_hidden_dims = s.policy.critic_hidden_dims = {128, 128, 128};
    s.policy.init_noise_std = 0.2;  // an action of 1 turns a joint by 0.8 rad
    s.algorithm.entropy_coef = 0.003;
    s.save_interval = 100;
  }
  return s;
}

}  // namespace cohort::rl
