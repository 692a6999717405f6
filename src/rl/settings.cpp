#include "rl/settings.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"

namespace cohort::rl {

void describe(config::Fields& fields, PolicySettings& s) {
  fields.add_choice("class_name", s.class_name, {"ActorCritic", "ActorCriticRecurrent"},
                    "ActorCriticRecurrent: actor and critic each have a memory before their layers");
  fields.add("init_noise_std", s.init_noise_std,
             "deviation of the actions at the start; 1 is half of the range between their bounds");
  fields.add("actor_hidden_dims", s.actor_hidden_dims, "widths of the actor's hidden layers");
  fields.add("critic_hidden_dims", s.critic_hidden_dims, "widths of the critic's hidden layers");
  fields.add_choice("activation", s.activation, {"elu", "relu", "selu", "lrelu", "tanh"}, "between the layers");
  fields.add_choice("distribution", s.distribution, {"gaussian", "squashed"},
                    "of the actions: a Gaussian, or its tanh, which stays within the bounds");
  fields.add("critic_only", s.critic_only, "names of observations that the critic sees and the actor does not");
  fields.add("empirical_normalization", s.empirical_normalization,
             "observations are normalised by their running mean and deviation");
  fields.add_choice("rnn_type", s.rnn_type, {"gru"}, "ActorCriticRecurrent: what remembers");
  fields.add("rnn_hidden_dim", s.rnn_hidden_dim, "ActorCriticRecurrent: numbers that a layer remembers");
  fields.add("rnn_num_layers", s.rnn_num_layers, "ActorCriticRecurrent: layers that remember");
}

void describe(config::Fields& fields, PpoSettings& s) {
  fields.add("num_learning_epochs", s.num_learning_epochs, "passes over a rollout");
  fields.add("num_mini_batches", s.num_mini_batches, "of a pass; divides n_envs x num_steps_per_env");
  fields.add("clip_param", s.clip_param, "how far from 1 the ratio of new and old probability counts");
  fields.add("use_clipped_value_loss", s.use_clipped_value_loss, "values move by clip_param at most, too");
  fields.add("value_loss_coef", s.value_loss_coef, "weight of the value's loss");
  fields.add("entropy_coef", s.entropy_coef, "weight of the entropy, which keeps up exploration");
  fields.add("learning_rate", s.learning_rate, "of Adam; with the schedules adaptive and linear where it begins");
  fields.add_choice("schedule", s.schedule, {"adaptive", "fixed", "linear"},
                    "adaptive: the KL divergence moves the learning rate within 1e-5 and 1e-2; linear: it falls evenly "
                    "to a twentieth over decay_iterations, and stays there");
  fields.add(
      "decay_iterations", s.decay_iterations,
      "linear: iterations in which the learning rate falls; 0: max_iterations. With a number of its own a run that "
      "goes on beyond its max_iterations has the bits of one that never stopped");
  fields.add("desired_kl", s.desired_kl, "adaptive: the rate falls above twice this and rises below half of it");
  fields.add("gamma", s.gamma, "discount of a control step");
  fields.add("lam", s.lam, "lambda of generalized advantage estimation");
  fields.add("max_grad_norm", s.max_grad_norm, "the gradients of actor and critic are clipped to this 2-norm, apart");
}

void describe(config::Fields& fields, RunnerSettings& s) {
  fields.add("seed", s.seed, "keys initial weights, episodes, actions and the order of samples");
  fields.add("num_steps_per_env", s.num_steps_per_env, "control steps of a rollout");
  fields.add("max_iterations", s.max_iterations, "rollouts with an update each");
  fields.add("init_at_random_ep_len", s.init_at_random_ep_len,
             "the first episodes are cut off at random ages, so that later ones do not all end at once");
  fields.add("reward_scale", s.reward_scale, "what is learnt from is the task's reward times this");
  fields.add("precision", s.precision, "of the learner's forward passes: fp32, or bf16 by autocast; acting is in fp32");
  fields.section("ema", [&] { train::describe(fields, s.ema); });
}

double linear_rate(const PpoSettings& s, std::int64_t iterations, std::int64_t max_iterations) {
  constexpr double kLeast = 0.05;  // of where it begins
  const auto all = static_cast<double>(s.decay_iterations > 0 ? s.decay_iterations : max_iterations);
  return s.learning_rate * std::max(kLeast, 1 - static_cast<double>(iterations) / all);
}

train::Precision learner_precision(const RunnerSettings& s) {
  const train::Precision precision = train::parse_precision(s.precision);
  COHORT_THROW_UNLESS(precision != train::Precision::kFp16,
                      "precision=fp16 needs losses that are scaled, which PPO does not do: take precision=bf16");
  return precision;
}

void check(const PolicySettings& s) {
  COHORT_THROW_UNLESS(s.init_noise_std > 0, "policy.init_noise_std = {} must be above 0", s.init_noise_std);
  COHORT_THROW_UNLESS(s.rnn_hidden_dim >= 1, "policy.rnn_hidden_dim = {}: at least 1", s.rnn_hidden_dim);
  COHORT_THROW_UNLESS(s.rnn_num_layers >= 1, "policy.rnn_num_layers = {}: at least 1", s.rnn_num_layers);
  for (const auto& [name, dims] :
       {std::pair{"actor_hidden_dims", &s.actor_hidden_dims}, std::pair{"critic_hidden_dims", &s.critic_hidden_dims}})
    for (const int width : *dims)
      COHORT_THROW_UNLESS(width >= 1, "policy.{} holds {}: a layer has at least one unit", name, width);
}

void check(const PpoSettings& s) {
  const auto above_zero = [](const char* name, double value) {
    COHORT_THROW_UNLESS(value > 0, "algorithm.{} = {} must be above 0", name, value);
  };
  const auto share = [](const char* name, double value) {
    COHORT_THROW_UNLESS(value >= 0 && value <= 1, "algorithm.{} = {} must lie in [0, 1]", name, value);
  };
  above_zero("num_learning_epochs", s.num_learning_epochs);
  above_zero("num_mini_batches", s.num_mini_batches);
  above_zero("clip_param", s.clip_param);
  above_zero("learning_rate", s.learning_rate);
  above_zero("desired_kl", s.desired_kl);
  above_zero("max_grad_norm", s.max_grad_norm);
  COHORT_THROW_UNLESS(s.decay_iterations >= 0,
                      "algorithm.decay_iterations = {} must not be negative; 0: max_iterations", s.decay_iterations);
  share("gamma", s.gamma);
  share("lam", s.lam);
  COHORT_THROW_UNLESS(s.value_loss_coef >= 0, "algorithm.value_loss_coef = {} must not be negative", s.value_loss_coef);
  COHORT_THROW_UNLESS(s.entropy_coef >= 0, "algorithm.entropy_coef = {} must not be negative", s.entropy_coef);
}

void check(const RunnerSettings& s, const PpoSettings& ppo, int n_envs, bool recurrent) {
  check(ppo);
  COHORT_THROW_UNLESS(n_envs >= 1, "n_envs = {}: at least one environment is needed", n_envs);
  COHORT_THROW_UNLESS(s.num_steps_per_env >= 1, "num_steps_per_env = {}: a rollout has at least one step",
                      s.num_steps_per_env);
  COHORT_THROW_UNLESS(s.max_iterations >= 1, "max_iterations = {}: at least one is needed", s.max_iterations);
  COHORT_THROW_UNLESS(s.reward_scale > 0, "reward_scale = {} must be above 0", s.reward_scale);
  (void)learner_precision(s);
  s.ema.validate();
  const std::int64_t transitions = std::int64_t{n_envs} * s.num_steps_per_env;
  // n_envs must be a multiple of what the steps do not bring.
  const int unit =
      recurrent ? ppo.num_mini_batches : ppo.num_mini_batches / std::gcd(ppo.num_mini_batches, s.num_steps_per_env);
  const std::int64_t below = n_envs / unit * unit;
  const std::string nearest = format("{}{}", below > 0 ? format("{} and ", below) : std::string(), below + unit);
  COHORT_THROW_UNLESS(!recurrent || n_envs % unit == 0,
                      "n_envs = {} do not divide into algorithm.num_mini_batches = {}, and a policy with memory learns "
                      "from whole environments; the nearest n_envs that do: {}",
                      n_envs, ppo.num_mini_batches, nearest);
  COHORT_THROW_UNLESS(transitions % ppo.num_mini_batches == 0,
                      "n_envs = {} x num_steps_per_env = {} are {} transitions, which do not divide into "
                      "algorithm.num_mini_batches = {}; the nearest n_envs that do: {}",
                      n_envs, s.num_steps_per_env, transitions, ppo.num_mini_batches, nearest);
  COHORT_THROW_UNLESS(transitions > 1,
                      "a rollout of one transition has no deviation: raise n_envs or num_steps_per_env");
}

}  // namespace cohort::rl
