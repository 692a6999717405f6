#include "rl/runner.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include <ATen/core/LegacyTypeDispatch.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "parallel/data_parallel.h"
#include "parallel/module_layout.h"
#include "rl/environments_of_ranks.h"
#include "rl/gaussian.h"
#include "tensors/convert.h"
#include "weights/weights.h"

namespace cohort::rl {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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

/// Over the devices of this process, or over the ranks.
std::shared_ptr<parallel::Strategy> strategy_of(Ranks& ranks, const std::vector<DeviceId>& devices,
                                                const std::shared_ptr<ActorCritic>& networks,
                                                const PolicySettings& policy, const tasks::TaskSpec& task) {
  if (devices.size() < 2) return ranks.strategy(networks, devices.empty() ? DeviceId{} : devices.front());
  return std::make_shared<parallel::DataParallel>(networks, devices, parallel::DataParallelSettings(), [policy, task] {
    return std::make_shared<ActorCritic>(policy, task, 0);
  });
}

/// A rollout has whole environments in every minibatch, or transitions.
std::int64_t steps_of_a_sample(const PolicySettings& policy, const RunnerSettings& settings) {
  return policy.recurrent() ? 1 : settings.num_steps_per_env;
}

// Rows that a thread takes through a network while environments wait.
constexpr std::int64_t kActingRows = 256;

std::size_t index_of(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

constexpr const char* kActorMemory = "envs.actor_memory";
constexpr const char* kCriticMemory = "envs.critic_memory";

/// In checkpoints, where trainings with a state of each rank have several.
const std::string kRank = "rank_0.";

weights::NamedTensors to_tensors(const PpoState& state) {
  weights::NamedTensors tensors;
  PpoState::visit(state, [&](const char* name, const auto& value) {
    if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
      tensors.emplace_back(kRank + name, torch::tensor({value}, at::kDouble));
    else
      for (const auto& [of_each, tensor] : value) tensors.emplace_back(kRank + of_each, tensor);
  });
  return tensors;
}

/// What `tensors` lack stays as it is in `state`.
PpoState state_from(const weights::NamedTensors& tensors, PpoState state) {
  PpoState::visit(state, [&](const char* name, auto& value) {
    for (const auto& [key, tensor] : tensors) {
      if (!key.starts_with(kRank + name)) continue;
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, double>)
        value = at::Tensor(tensor).item().toDouble();
      else
        value.emplace_back(key.substr(kRank.size()), tensor);
    }
  });
  return state;
}

}  // namespace

PpoRunner::PpoRunner(tasks::Task& task, const RunnerSettings& settings, const PpoSettings& ppo,
                     const PolicySettings& policy, const PpoResources& resources)
    : ranks_(resources.ranks ? *resources.ranks : alone_),
      task_(task),
      settings_(settings),
      ppo_settings_(ppo),
      shares_((check(settings, ppo, task.n_envs() * ranks_.size(), policy.recurrent()),
               share_environments(std::int64_t{task.n_envs()} * ranks_.size(), steps_of_a_sample(policy, settings),
                                  ppo.num_mini_batches, ranks_))),
      device_(tensors::to_torch_device(resources.devices.empty() ? DeviceId{} : resources.devices.front())),
      networks_(networks_on(device_, policy, task.spec(), settings.seed)),
      strategy_(strategy_of(ranks_, resources.devices, networks_, policy, task.spec())),
      ema_(settings.ema.enabled ? std::optional<train::Ema>(std::in_place, *networks_, settings.ema) : std::nullopt),
      ppo_(*networks_, ppo,
           {.strategy = strategy_.get(),
            .threads = resources.threads,
            .ema = ema(),
            .precision = learner_precision(settings)}),
      environments_(task, settings.seed, shares_.first_environment(), settings.init_at_random_ep_len,
                    resources.device_tensors ? *resources.device_tensors : DeviceTensors::real()),
      rollout_(settings.num_steps_per_env, task.n_envs(), networks_->observation_width(), networks_->action_width(),
               device_),
      memory_(networks_->begin(whole_rows(at::empty({task.n_envs(), 0})).size(0))) {
  ppo_.weights_changed();
}

PpoRunner::~PpoRunner() = default;

std::pair<at::Tensor, at::Tensor> PpoRunner::act(const at::Tensor& seen) {
  const std::int64_t rows = seen.size(0), pieces = device_.is_cpu() ? (rows + kActingRows - 1) / kActingRows : 1;
  if (pieces == 1) return {networks_->mean(seen, memory_.actor), networks_->value(seen, memory_.critic)};
  // The same pieces for any number of threads.
  std::vector<at::Tensor> means(index_of(pieces)), values(index_of(pieces));
  std::vector<at::Tensor> of_actor(index_of(pieces)), of_critic(index_of(pieces));
  ppo_.team().for_each(2 * pieces, [&](std::int64_t i, int) {
    const at::AutoDispatchBelowADInplaceOrView none;
    const bool acts = i < pieces;
    const std::int64_t p = i % pieces, first = p * kActingRows, count = std::min(kActingRows, rows - first);
    at::Tensor& memory = (acts ? of_actor : of_critic)[index_of(p)];
    if (networks_->recurrent()) memory = (acts ? memory_.actor : memory_.critic).narrow(1, first, count).contiguous();
    const at::Tensor part = seen.narrow(0, first, count);
    if (acts)
      means[index_of(p)] = networks_->mean(part, memory);
    else
      values[index_of(p)] = networks_->value(part, memory);
  });
  if (networks_->recurrent()) memory_ = {at::cat(of_actor, 1), at::cat(of_critic, 1)};
  return {at::cat(means), at::cat(values)};
}

double PpoRunner::collect() {
  const at::NoGradGuard no_grad;
  double simulating = 0;
  const std::int64_t n = environments_.size(), width = networks_->action_width();
  const auto seen_of = [&](const at::Tensor& observations) { return whole_rows(networks_->normalize(observations)); };
  const auto value_of = [&](const at::Tensor& observations) {
    at::Tensor memory = memory_.critic;  // a look ahead, which is not remembered
    return networks_->value(seen_of(observations), memory).narrow(0, 0, n);
  };
  rollout_.log_std.copy_(networks_->log_std());
  if (networks_->recurrent()) {
    rollout_.actor_memory = memory_.actor.narrow(1, 0, n).clone();
    rollout_.critic_memory = memory_.critic.narrow(1, 0, n).clone();
  }
  const at::Tensor deviation = rollout_.log_std.exp();
  for (std::int64_t t = 0; t < settings_.num_steps_per_env; ++t) {
    const at::Tensor observations = environments_.observations().to(device_), seen = seen_of(observations);
    const auto [means, values] = act(seen);
    const at::Tensor mean = means.narrow(0, 0, n), value = values.narrow(0, 0, n);
    const at::Tensor noise =
        environments_.action_noise(width, iteration_ * settings_.num_steps_per_env + t).to(device_);
    const at::Tensor actions = mean + deviation * noise;
    const at::Tensor of_task = networks_->to_task(actions).to(environments_.observations().device());
    rollout_.observations[t].copy_(observations);  // the next step may write where they lie
    const auto begin = std::chrono::steady_clock::now();
    const EnvironmentStep& step = environments_.step(of_task);
    simulating += seconds_since(begin);
    at::Tensor rewards = step.rewards.to(device_) * settings_.reward_scale;
    // What comes after the horizon is worth what the critic says of the state there; of one that broke, what it said
    // before.
    if (step.any_cut_off)
      rewards = rewards + ppo_settings_.gamma * step.cut_off.to(device_) *
                              value_of(step.final_observations.to(device_)).nan_to_num();
    rewards = rewards + ppo_settings_.gamma * step.broken.to(device_) * value;
    memory_.forget(whole_rows(step.dones.unsqueeze(-1)).squeeze(-1));
    rollout_.actions[t].copy_(actions);
    rollout_.means[t].copy_(mean);
    rollout_.log_probs[t].copy_(gaussian_log_prob(mean, rollout_.log_std, actions));
    rollout_.values[t].copy_(value);
    rollout_.rewards[t].copy_(rewards);
    rollout_.dones[t].copy_(step.dones);
  }
  rollout_.compute_returns(value_of(environments_.observations().to(device_)), ppo_settings_.gamma, ppo_settings_.lam,
                           &shares_);
  return simulating;
}

Iteration PpoRunner::iterate() {
  const auto begin = std::chrono::steady_clock::now();
  if (ppo_settings_.schedule == "linear")
    ppo_.set_learning_rate(linear_rate(ppo_settings_, iteration_, settings_.max_iterations));
  const double simulating = collect();
  const double collecting = seconds_since(begin);
  const auto pass = [this](int epoch) {
    return minibatch_order(shares_, networks_->recurrent() ? 1 : settings_.num_steps_per_env,
                           ppo_settings_.num_mini_batches, settings_.seed,
                           iteration_ * ppo_settings_.num_learning_epochs + epoch);
  };
  Iteration result{.losses = ppo_.update(rollout_, pass)};
  if (!result.losses.diverged.empty())
    throw Diverged(format("PPO diverged in iteration {}: {}", iteration_ + 1, result.losses.diverged));
  networks_->moments().merge(moments_of(rollout_.observations, shares_));
  ++iteration_;
  result.number = iteration_;
  result.steps = iteration_ * rollout_.transitions() * ranks_.size();
  result.episodes = episodes_of_all();
  result.reward_terms = reward_terms_of_all();
  result.metrics = metrics_of_all();
  result.learning_rate = ppo_.learning_rate();
  result.noise_std = networks_->log_std().detach().exp().mean().item<double>();
  result.collecting_s = collecting;
  result.simulating_s = simulating;
  result.learning_s = seconds_since(begin) - collecting;
  return result;
}

Environments::Episodes PpoRunner::episodes_of_all() {
  const Environments::Episodes own = environments_.episodes();
  if (ranks_.size() == 1) return own;
  const auto counted = static_cast<double>(own.counted);
  const at::Tensor gift =
      torch::tensor({own.counted > 0 ? own.mean_return * counted : 0.0,
                     own.counted > 0 ? own.mean_length * counted : 0.0, counted, static_cast<double>(own.ended),
                     static_cast<double>(own.broken), own.counted > 0 ? own.success_rate * counted : 0.0},
                    at::kDouble);
  const at::Tensor sum = at::stack(ranks_.gather(gift)).sum(0);
  const auto* of_all = sum.const_data_ptr<double>();
  // 0 / 0 before the first episode has ended: NaN, as of one rank.
  return {.mean_return = of_all[0] / of_all[2],
          .mean_length = of_all[1] / of_all[2],
          .success_rate = of_all[5] / of_all[2],
          .ended = static_cast<std::int64_t>(of_all[3]),
          .broken = static_cast<std::int64_t>(of_all[4]),
          .counted = static_cast<std::int64_t>(of_all[2])};
}

std::vector<std::pair<std::string, double>> PpoRunner::reward_terms_of_all() {
  const Environments::RewardTerms own = environments_.take_reward_terms();
  // As many numbers on every rank, also where one rank's environments all broke.
  const std::vector<std::string>& names = task_.spec().reward_terms;
  std::vector<double> numbers(names.size() + 1);
  std::copy(own.sums.begin(), own.sums.end(), numbers.begin());
  numbers.back() = static_cast<double>(own.steps);
  const at::Tensor sum = at::stack(ranks_.gather(torch::tensor(numbers, at::kDouble))).sum(0);
  const auto* of_all = sum.const_data_ptr<double>();
  const double steps = of_all[names.size()];
  if (steps == 0) return {};
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < names.size(); ++i) means.emplace_back(names[i], of_all[i] / steps);
  return means;
}

std::vector<std::pair<std::string, double>> PpoRunner::metrics_of_all() {
  const std::vector<tasks::MetricSpec>& specs = task_.spec().metrics;
  const Environments::Metrics own = environments_.take_metrics();
  if (specs.empty()) return {};
  // As many numbers on every rank, also where one rank's environments all broke.
  std::vector<double> numbers(2 * specs.size());
  std::copy(own.sums.begin(), own.sums.end(), numbers.begin());
  std::copy(own.counts.begin(), own.counts.end(), numbers.begin() + std::ssize(specs));
  const at::Tensor sum = at::stack(ranks_.gather(torch::tensor(numbers, at::kDouble))).sum(0);
  const auto* of_all = sum.const_data_ptr<double>();
  std::vector<std::pair<std::string, double>> means;
  for (std::size_t i = 0; i < specs.size(); ++i)
    if (of_all[specs.size() + i] > 0) means.emplace_back(specs[i].name, of_all[i] / of_all[specs.size() + i]);
  return means;
}

weights::CheckpointContent PpoRunner::checkpoint() {
  weights::CheckpointContent content;
  const std::int64_t transitions = rollout_.transitions() * ranks_.size();
  content.state.step = iteration_;
  content.state.samples = iteration_ * transitions;
  content.state.batch_size = transitions / ppo_settings_.num_mini_batches;
  content.state.seed = settings_.seed;
  content.state.optimizer = ppo_.optimizer().settings().kind;
  content.state.loss_sums.resize(1);
  content.model = weights::module_state(*networks_);
  if (ema_) {
    content.ema = ema_->state();
    content.state.ema_updates = ema_->updates();
  }
  content.optimizer = ppo_.optimizer().state();
  content.random = to_tensors(state());
  return content;
}

PpoState PpoRunner::state() {
  weights::NamedTensors environments = environments_.state();
  if (networks_->recurrent()) {
    const std::int64_t n = environments_.size();
    // (n, layers, H): environments first, as all that is said of them.
    const auto of_each = [n](const at::Tensor& memory) {
      return memory.narrow(1, 0, n).transpose(0, 1).cpu().contiguous();
    };
    environments.emplace_back(kActorMemory, of_each(memory_.actor));
    environments.emplace_back(kCriticMemory, of_each(memory_.critic));
  }
  return {.learning_rate = ppo_.learning_rate(), .environments = gather_environments(environments, ranks_)};
}

void PpoRunner::load(const PpoState& state, const std::string& source) {
  const weights::NamedTensors own = share_of_environments(state.environments, shares_, ranks_);
  // New episodes begin with nothing to remember.
  if (environments_.restore(own, source) && networks_->recurrent()) restore_memory(own, source);
  // A linear schedule's rate is a function of the iteration: iterate() sets it.
  ppo_.set_learning_rate(ppo_settings_.schedule == "adaptive" ? state.learning_rate : ppo_settings_.learning_rate);
}

void PpoRunner::begin_with(const run::InitialWeights& weights) {
  run::load(*networks_, weights);
  networks_->moments().refresh();
  if (ema_) ema_.emplace(*networks_, settings_.ema);
  ppo_.weights_changed();
}

void PpoRunner::resume(const weights::CheckpointContent& content, const std::string& source) {
  const std::int64_t transitions = rollout_.transitions() * ranks_.size();
  COHORT_THROW_UNLESS(content.state.seed == settings_.seed,
                      "{} was trained with seed={}, this run asks for {}: leave the seed out", source,
                      content.state.seed, settings_.seed);
  COHORT_THROW_UNLESS(content.state.samples == content.state.step * transitions,
                      "{} had {} transitions in an iteration, this run has {}: keep n_envs and num_steps_per_env",
                      source, content.state.samples / std::max<std::int64_t>(1, content.state.step), transitions);
  weights::load_weights(*networks_, content.model, content.model_aliases, source);
  networks_->moments().refresh();
  if (ema_ && content.ema.empty()) {
    log::warning("{} holds no moving average of the weights; it starts from the weights", source);
    ema_.emplace(*networks_, settings_.ema);
  } else if (ema_) {
    ema_->load_state(content.ema, content.state.ema_updates, source);
  }
  if (!content.optimizer.empty()) ppo_.optimizer().load_state(content.optimizer, source);
  ppo_.weights_changed();
  load(state_from(content.random, {.learning_rate = ppo_settings_.learning_rate, .environments = {}}), source);
  iteration_ = content.state.step;
}

void PpoRunner::restore_memory(const weights::NamedTensors& environments, const std::string& source) {
  memory_ = networks_->begin(memory_.actor.size(1));
  for (const auto& [name, memory] :
       {std::pair{kActorMemory, &memory_.actor}, std::pair{kCriticMemory, &memory_.critic}}) {
    const auto kept = std::find_if(environments.begin(), environments.end(),
                                   [key = name](const auto& named) { return named.first == key; });
    COHORT_THROW_UNLESS(kept != environments.end(), "{} does not say what the networks remember: {} is missing", source,
                        name);
    const at::Tensor of_each = memory->narrow(1, 0, environments_.size()).transpose(0, 1);
    COHORT_THROW_UNLESS(kept->second.sizes() == of_each.sizes(), "{} remembers other numbers of the environments",
                        source);
    of_each.copy_(kept->second);
  }
}

}  // namespace cohort::rl
