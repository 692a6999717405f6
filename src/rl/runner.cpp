#include "rl/runner.h"

#include <algorithm>
#include <chrono>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"
#include "policy/weights.h"
#include "rl/environments_of_ranks.h"
#include "rl/gaussian.h"

namespace cohort::rl {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Standard normal numbers, (n, width): a function of seed, global environment id and control step.
at::Tensor action_noise(std::uint64_t seed, std::int64_t first, std::int64_t n, std::int64_t width, std::int64_t step) {
  at::Tensor noise = at::empty({n, width});
  auto* out = noise.mutable_data_ptr<float>();
  for (std::int64_t env = 0; env < n; ++env) {
    const RandomStream random(seed, RandomPurpose::kAction, static_cast<std::uint64_t>(first + env),
                              static_cast<std::uint64_t>(step));
    for (std::int64_t i = 0; i < width; ++i) *out++ = random.normal(static_cast<std::uint64_t>(i));
  }
  return noise;
}

std::shared_ptr<ActorCritic> networks_on(at::Device device, const PolicySettings& policy, const tasks::TaskSpec& task,
                                         std::uint64_t seed) {
  auto networks = std::make_shared<ActorCritic>(policy, task, seed);
  if (!device.is_cpu()) {
    networks->to(device);
    networks->moments().refresh();
  }
  return networks;
}

constexpr const char* kLearningRate = "rank_0.ppo.learning_rate";
constexpr const char* kRank = "rank_0.";

}  // namespace

PpoRunner::PpoRunner(tasks::Task& task, const RunnerSettings& settings, const PpoSettings& ppo,
                     const PolicySettings& policy, const PpoCompany& company)
    : ranks_(company.ranks ? *company.ranks : alone_),
      task_(task),
      settings_(settings),
      ppo_settings_(ppo),
      shares_((check(settings, ppo, task.n_envs() * ranks_.size()),
               share_environments(std::int64_t{task.n_envs()} * ranks_.size(), settings.num_steps_per_env,
                                  ppo.num_mini_batches, ranks_))),
      networks_(networks_on(company.device, policy, task.spec(), settings.seed)),
      ppo_(*networks_, ppo, &ranks_, company.threads),
      environments_(task, settings.seed, shares_.first_environment(), settings.init_at_random_ep_len),
      rollout_(settings.num_steps_per_env, task.n_envs(), networks_->observation_width(), networks_->action_width(),
               company.device),
      device_(company.device) {}

PpoRunner::~PpoRunner() = default;

void PpoRunner::collect() {
  const at::NoGradGuard no_grad;
  const std::int64_t n = environments_.size(), width = networks_->action_width();
  rollout_.log_std.copy_(networks_->log_std());
  const at::Tensor deviation = rollout_.log_std.exp();
  for (std::int64_t t = 0; t < settings_.num_steps_per_env; ++t) {
    const at::Tensor observations = environments_.observations().to(device_), seen = networks_->normalize(observations);
    const at::Tensor mean = networks_->mean(seen), value = networks_->value(seen);
    const at::Tensor noise = action_noise(settings_.seed, shares_.first_environment(), n, width,
                                          iteration_ * settings_.num_steps_per_env + t)
                                 .to(device_);
    const at::Tensor actions = mean + deviation * noise;
    const EnvironmentStep& step = environments_.step(networks_->to_task(actions).cpu());
    at::Tensor rewards = step.rewards.to(device_) * settings_.reward_scale;
    // What comes after the horizon is worth what the critic says of the state there; of one that broke, what it said
    // before.
    if (step.cut_off.any().item<bool>())
      rewards = rewards + ppo_settings_.gamma * step.cut_off.to(device_) *
                              networks_->value(networks_->normalize(step.final_observations.to(device_))).nan_to_num();
    rewards = rewards + ppo_settings_.gamma * step.broken.to(device_) * value;
    rollout_.observations[t].copy_(observations);
    rollout_.actions[t].copy_(actions);
    rollout_.means[t].copy_(mean);
    rollout_.log_probs[t].copy_(gaussian_log_prob(mean, rollout_.log_std, actions));
    rollout_.values[t].copy_(value);
    rollout_.rewards[t].copy_(rewards);
    rollout_.dones[t].copy_(step.dones);
  }
  rollout_.compute_returns(networks_->value(networks_->normalize(environments_.observations().to(device_))),
                           ppo_settings_.gamma, ppo_settings_.lam, &shares_);
}

Iteration PpoRunner::iterate() {
  const auto begin = std::chrono::steady_clock::now();
  collect();
  const double collecting = seconds_since(begin);
  const auto pass = [this](int epoch) {
    return minibatch_order(shares_, settings_.num_steps_per_env, ppo_settings_.num_mini_batches, settings_.seed,
                           iteration_ * ppo_settings_.num_learning_epochs + epoch);
  };
  Iteration result{.losses = ppo_.update(rollout_, pass)};
  COHORT_THROW_UNLESS(result.losses.diverged.empty(), "PPO diverged in iteration {}: {}", iteration_ + 1,
                      result.losses.diverged);
  networks_->moments().merge(moments_of(rollout_.observations, shares_));
  ++iteration_;
  result.number = iteration_;
  result.steps = iteration_ * rollout_.transitions() * ranks_.size();
  result.episodes = episodes_of_all();
  result.learning_rate = ppo_.learning_rate();
  result.noise_std = networks_->log_std().detach().exp().mean().item<double>();
  result.collecting_s = collecting;
  result.learning_s = seconds_since(begin) - collecting;
  return result;
}

Environments::Episodes PpoRunner::episodes_of_all() {
  const Environments::Episodes own = environments_.episodes();
  if (ranks_.size() == 1) return own;
  const auto counted = static_cast<double>(own.counted);
  const at::Tensor gift = torch::tensor(
      {own.counted > 0 ? own.mean_return * counted : 0.0, own.counted > 0 ? own.mean_length * counted : 0.0, counted,
       static_cast<double>(own.ended), static_cast<double>(own.broken)},
      at::kDouble);
  const at::Tensor sum = at::stack(ranks_.gather(gift)).sum(0);
  const auto* of_all = sum.const_data_ptr<double>();
  // 0 / 0 before the first episode has ended: NaN, as of one rank.
  return {.mean_return = of_all[0] / of_all[2],
          .mean_length = of_all[1] / of_all[2],
          .ended = static_cast<std::int64_t>(of_all[3]),
          .broken = static_cast<std::int64_t>(of_all[4]),
          .counted = static_cast<std::int64_t>(of_all[2])};
}

policy::CheckpointContent PpoRunner::checkpoint() {
  policy::CheckpointContent content;
  const std::int64_t transitions = rollout_.transitions() * ranks_.size();
  content.state.step = iteration_;
  content.state.samples = iteration_ * transitions;
  content.state.batch_size = transitions / ppo_settings_.num_mini_batches;
  content.state.seed = settings_.seed;
  content.state.optimizer = ppo_.optimizer().settings().kind;
  content.state.loss_sums.resize(1);
  content.model = policy::module_state(*networks_);
  content.optimizer = ppo_.optimizer().state();
  content.random.emplace_back(kLearningRate, torch::tensor({ppo_.learning_rate()}, at::kDouble));
  for (auto& [name, tensor] : gather_environments(environments_.state(), ranks_))
    content.random.emplace_back(kRank + name, tensor);
  return content;
}

void PpoRunner::resume(const policy::CheckpointContent& content, const std::string& source) {
  const std::int64_t transitions = rollout_.transitions() * ranks_.size();
  COHORT_THROW_UNLESS(content.state.seed == settings_.seed,
                      "{} was trained with seed={}, this run asks for {}: leave the seed out", source,
                      content.state.seed, settings_.seed);
  COHORT_THROW_UNLESS(content.state.samples == content.state.step * transitions,
                      "{} had {} transitions in an iteration, this run has {}: keep n_envs and num_steps_per_env",
                      source, content.state.samples / std::max<std::int64_t>(1, content.state.step), transitions);
  policy::NamedTensors environments;
  double rate = ppo_settings_.learning_rate;
  for (const auto& [name, tensor] : content.random) {
    if (name == kLearningRate)
      rate = tensor.item<double>();
    else if (name.starts_with(kRank))
      environments.emplace_back(name.substr(std::string(kRank).size()), tensor);
  }
  policy::load_weights(*networks_, content.model, content.model_aliases, source);
  networks_->moments().refresh();
  if (!content.optimizer.empty()) ppo_.optimizer().load_state(content.optimizer, source);
  environments_.restore(share_of_environments(environments, shares_, ranks_), source);
  ppo_.set_learning_rate(ppo_settings_.schedule == "adaptive" ? rate : ppo_settings_.learning_rate);
  iteration_ = content.state.step;
}

}  // namespace cohort::rl
