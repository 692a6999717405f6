#include "rl/environments.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "core/philox.h"
#include "rl/actor_critic.h"
#include "tasks/device_episodes.h"
#include "tasks/on_device.h"
#include "tensors/convert.h"

namespace cohort::rl {
namespace {

constexpr const char* kTaskPrefix = "envs.task.";  // of the arrays of the task's state
constexpr std::size_t kWindow = 100;               // episodes that the mean return is of

std::size_t as_size(std::int64_t n) {
  return static_cast<std::size_t>(n);
}

at::Tensor int64_tensor(const std::vector<std::int64_t>& values) {
  return torch::tensor(values, at::kLong);
}

const at::Tensor& named(const weights::NamedTensors& tensors, const std::string& name, const std::string& source) {
  for (const auto& [key, tensor] : tensors)
    if (key == name) return tensor;
  throw Error(format("{} does not say where the environments were: {} is missing", source, name));
}

}  // namespace

Environments::Environments(tasks::Task& task, std::uint64_t seed, std::int64_t first_id, bool staggered,
                           const DeviceTensors& device_tensors)
    : task_(task), seed_(seed), first_id_(first_id), staggered_(staggered), device_tensors_(device_tensors) {
  COHORT_THROW_UNLESS(
      !task.spec().reward_terms.empty(),
      "the task {} has no rewards: there is nothing that reinforcement learning could raise; `cohort tasks "
      "NAME` shows what a task's reward is the sum of",
      task.spec().name);
  const auto n = as_size(size());
  episodes_.resize(n), steps_.resize(n), return_.resize(n), reached_.resize(n);
  if (tasks::OnDevice* const there = task.on_device(); there != nullptr && device_tensors.sees(there->device()))
    there_ = std::make_unique<tasks::DeviceEpisodes>(task);
  std::vector<std::int32_t> all(n);
  std::iota(all.begin(), all.end(), 0);
  begin_episodes(all);
  if (there_) there_->take_ended();  // of none
  observations_ = observe();
}

Environments::~Environments() = default;

at::Tensor Environments::observe() {
  return there_ ? device_tensors_.read(task_.on_device()->observations()) : read_observations(task_);
}

std::uint64_t Environments::episode_seed(std::size_t env) const {
  const RandomStream random(seed_, RandomPurpose::kEnvironment, static_cast<std::uint64_t>(first_id_) + env,
                            static_cast<std::uint64_t>(episodes_[env]));
  const Philox4 bits = random.at(0);
  return (std::uint64_t{bits.v[0]} << 32) | bits.v[1];
}

std::int64_t Environments::early_after(std::size_t env) const {
  if (!staggered_ || episodes_[env] > 0) return -1;
  const RandomStream random(seed_, RandomPurpose::kEnvironment, static_cast<std::uint64_t>(first_id_) + env, 0);
  const auto horizon = static_cast<std::uint32_t>(task_.spec().horizon);
  return random.below(8, horizon);  // index 8: apart from the seed of the episode
}

bool Environments::cut_off_early(std::size_t env) const {
  const std::int64_t after = early_after(env);
  return after >= 0 && steps_[env] > after;
}

void Environments::begin_episodes(const std::vector<std::int32_t>& envs) {
  std::vector<std::uint64_t> seeds;
  std::vector<std::int64_t> early;
  for (const std::int32_t env : envs) {
    const auto e = as_size(env);
    seeds.push_back(episode_seed(e));
    if (there_) early.push_back(early_after(e));
    steps_[e] = 0;
    return_[e] = 0;
    reached_[e] = 0;
  }
  if (there_) there_->renew(envs, early);
  task_.reset(envs, seeds);
}

at::Tensor Environments::action_noise(std::int64_t width, std::int64_t step) {
  if (there_) {
    device_tensors_.write_before(task_.on_device()->reward());
    return device_tensors_.read(
        there_->normal(width, seed_, static_cast<std::uint64_t>(first_id_), static_cast<std::uint64_t>(step)));
  }
  at::Tensor noise = at::empty({size(), width});
  auto* out = noise.mutable_data_ptr<float>();
  for (std::int64_t env = 0; env < size(); ++env) {
    const RandomStream random(seed_, RandomPurpose::kAction, static_cast<std::uint64_t>(first_id_ + env),
                              static_cast<std::uint64_t>(step));
    for (std::int64_t i = 0; i < width; ++i) *out++ = random.normal(static_cast<std::uint64_t>(i));
  }
  return noise;
}

void Environments::say_broken(std::int64_t env) {
  ++broken_count_;
  // The first few, and then whenever they have become twice as many.
  if ((broken_count_ & (broken_count_ - 1)) == 0)
    log::warning("environment {} of {} broke in step {} of its episode and was reset; so far {} did", first_id_ + env,
                 task_.spec().name, steps_[as_size(env)], broken_count_);
}

const EnvironmentStep& Environments::step_there(const at::Tensor& actions) {
  // The actions come first, and whoever still reads what the last step left.
  device_tensors_.write_before(task_.on_device()->reward());
  task_.step(tensors::to_view(actions.contiguous()));
  const std::span<const std::uint8_t> flags = there_->count();
  std::vector<std::int32_t> over;
  step_.any_cut_off = false;
  for (std::size_t e = 0; e < flags.size(); ++e) {
    ++steps_[e];
    if ((flags[e] & tasks::cuda::kOver) == 0) continue;
    const bool broke = (flags[e] & tasks::cuda::kBroken) != 0;
    over.push_back(static_cast<std::int32_t>(e));
    ++episodes_[e];
    ended_there_.emplace_back(steps_[e], !broke && (flags[e] & tasks::cuda::kEarly) == 0);
    step_.any_cut_off = step_.any_cut_off || (flags[e] & tasks::cuda::kCutOff) != 0;
    if (broke) say_broken(static_cast<std::int64_t>(e));
  }
  if (!over.empty()) begin_episodes(over);
  step_.rewards = device_tensors_.read(there_->rewards()), step_.dones = device_tensors_.read(there_->dones());
  step_.cut_off = device_tensors_.read(there_->cut_off()), step_.broken = device_tensors_.read(there_->broken());
  step_.final_observations = device_tensors_.read(there_->final_observations());
  observations_ = observe();
  return step_;
}

void Environments::bring_ended() {
  if (!there_) return;
  const std::vector<tasks::DeviceEpisodes::Ended> ended = there_->take_ended();
  for (std::size_t i = 0; i < ended.size(); ++i) {
    const auto [length, counts] = ended_there_[i];
    if (!counts) continue;
    ++ended_count_;
    ended_.push_back({ended[i].episode_return, static_cast<double>(length), ended[i].reached ? 1.0 : 0.0});
    while (ended_.size() > kWindow) ended_.pop_front();
  }
  ended_there_.clear();
}

void Environments::bring_sums() {
  if (!there_) return;
  const tasks::DeviceEpisodes::Sums sums = there_->take_sums();
  payments_.with_success += sums.with_success, payments_.without_success += sums.without_success;
  payments_.steps += sums.without, payments_.successes += sums.with, payments_.ended += sums.ended;
  terms_.steps += sums.steps;
  terms_.sums.resize(sums.terms.size());
  for (std::size_t i = 0; i < sums.terms.size(); ++i) terms_.sums[i] += sums.terms[i];
  metrics_.sums.resize(sums.metrics.size()), metrics_.counts.resize(sums.metrics.size());
  for (std::size_t i = 0; i < sums.metrics.size(); ++i)
    metrics_.sums[i] += sums.metrics[i], metrics_.counts[i] += static_cast<double>(sums.metric_counts[i]);
}

const Environments::Payments& Environments::payments() {
  bring_sums();
  return payments_;
}

const EnvironmentStep& Environments::step(const at::Tensor& actions) {
  if (there_) return step_there(actions);
  const std::int64_t n = size();
  step_.any_cut_off = false;
  task_.step(tensors::to_view(actions.contiguous()));
  step_.final_observations = read_observations(task_);
  step_.rewards = tensors::to_tensor(task_.reward()).clone();
  step_.dones = at::zeros({n}), step_.cut_off = at::zeros({n}), step_.broken = at::zeros({n});
  auto* rewards = step_.rewards.mutable_data_ptr<float>();
  auto* dones = step_.dones.mutable_data_ptr<float>();
  auto* cut_off = step_.cut_off.mutable_data_ptr<float>();
  auto* broken = step_.broken.mutable_data_ptr<float>();
  const auto terminated = task_.terminated().span<std::uint8_t>(), truncated = task_.truncated().span<std::uint8_t>(),
             failed = task_.broken().span<std::uint8_t>(), success = task_.success().span<std::uint8_t>();
  const at::Tensor finite = step_.final_observations.isfinite().all(1);
  const auto* is_finite = finite.const_data_ptr<bool>();
  std::vector<std::int32_t> over;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto e = as_size(i);
    if (failed[e] || !is_finite[i] || !std::isfinite(rewards[i])) {
      broken[i] = 1;
      rewards[i] = 0;
    } else if (success[e]) {
      payments_.with_success += static_cast<double>(rewards[i]), ++payments_.successes;
      payments_.ended += terminated[e];
    } else {
      payments_.without_success += static_cast<double>(rewards[i]), ++payments_.steps;
    }
    ++steps_[e];
    return_[e] += static_cast<double>(rewards[i]);
    reached_[e] = reached_[e] || success[e];
    const bool early = !truncated[e] && cut_off_early(e);
    if (broken[i] == 0 && !terminated[e] && !truncated[e] && !early) continue;
    dones[i] = 1;
    cut_off[i] = broken[i] == 0 && !terminated[e];
    step_.any_cut_off = step_.any_cut_off || cut_off[i] != 0;
    over.push_back(static_cast<std::int32_t>(i));
    ++episodes_[e];
    if (broken[i] != 0) {
      say_broken(i);
      continue;  // its return says nothing
    }
    if (early) continue;
    ++ended_count_;
    ended_.push_back({return_[e], static_cast<double>(steps_[e]), reached_[e] ? 1.0 : 0.0});
    while (ended_.size() > kWindow) ended_.pop_front();
  }
  add_reward_terms();
  add_metrics();
  if (!over.empty()) {
    begin_episodes(over);
    observations_ = read_observations(task_);
  } else {
    observations_ = step_.final_observations;
  }
  return step_;
}

void Environments::add_reward_terms() {
  const std::size_t terms = task_.spec().reward_terms.size();
  const ArrayView view = task_.reward_terms();
  const bool shown = as_size(view.shape[1]) == terms;
  if (!shown && terms != 1) return;  // the task does not say what its terms are
  const auto* rows = shown ? view.span<float>().data() : step_.rewards.const_data_ptr<float>();
  const auto* broken = step_.broken.const_data_ptr<float>();
  terms_.sums.resize(terms);
  for (std::int64_t e = 0; e < size(); ++e) {
    if (broken[e] != 0) continue;
    ++terms_.steps;
    for (std::size_t i = 0; i < terms; ++i) terms_.sums[i] += static_cast<double>(rows[as_size(e) * terms + i]);
  }
}

void Environments::add_metrics() {
  const std::vector<tasks::MetricSpec>& specs = task_.spec().metrics;
  if (specs.empty()) return;
  const auto rows = task_.metrics().span<float>();
  const auto* broken = step_.broken.const_data_ptr<float>();
  const auto* dones = step_.dones.const_data_ptr<float>();
  metrics_.sums.resize(specs.size()), metrics_.counts.resize(specs.size());
  for (std::int64_t e = 0; e < size(); ++e) {
    if (broken[e] != 0) continue;
    for (std::size_t i = 0; i < specs.size(); ++i) {
      if (specs[i].at_end && dones[e] == 0) continue;
      metrics_.sums[i] += static_cast<double>(rows[as_size(e) * specs.size() + i]);
      ++metrics_.counts[i];
    }
  }
}

Environments::Metrics Environments::take_metrics() {
  bring_sums();
  return std::exchange(metrics_, {});
}

Environments::RewardTerms Environments::take_reward_terms() {
  bring_sums();
  return std::exchange(terms_, {});
}

Environments::Episodes Environments::episodes() {
  bring_ended();
  Episodes result{.ended = ended_count_, .broken = broken_count_, .counted = std::ssize(ended_)};
  for (const Ended& e : ended_)
    result.mean_return += e.episode_return, result.mean_length += e.length, result.success_rate += e.success;
  // 0 / 0 before the first: NaN.
  const auto count = static_cast<double>(ended_.size());
  result.mean_return /= count, result.mean_length /= count, result.success_rate /= count;
  return result;
}

weights::NamedTensors Environments::state() {
  bring_ended();
  if (there_) return_ = there_->returns(), reached_ = there_->reached();
  at::Tensor ended = at::zeros({std::ssize(ended_), 3}, at::kDouble);
  auto* rows = ended.mutable_data_ptr<double>();
  for (const Ended& e : ended_) *rows++ = e.episode_return, *rows++ = e.length, *rows++ = e.success;
  weights::NamedTensors state{{"envs.episodes", int64_tensor(episodes_)},
                              {"envs.steps", int64_tensor(steps_)},
                              {"envs.returns", torch::tensor(return_, at::kDouble)},
                              {"envs.reached", torch::tensor(reached_, at::kByte)},
                              {"envs.ended", ended},
                              {"envs.counts", int64_tensor({ended_count_, broken_count_})}};
  for (const tasks::StateArray& array : task_.save()) {
    at::Tensor tensor = at::empty(array.shape, at::dtype(tensors::to_scalar_type(array.type)));
    std::copy(array.bytes.begin(), array.bytes.end(), static_cast<std::uint8_t*>(tensor.mutable_data_ptr()));
    state.emplace_back(kTaskPrefix + array.name, tensor);
  }
  return state;
}

bool Environments::restore(const weights::NamedTensors& state, const std::string& source) {
  const at::Tensor episodes = named(state, "envs.episodes", source), steps = named(state, "envs.steps", source),
                   ended = named(state, "envs.ended", source), counts = named(state, "envs.counts", source);
  const std::int64_t n = size();
  COHORT_THROW_UNLESS(episodes.numel() == n && steps.numel() == n && ended.dim() == 2 &&
                          (ended.size(1) == 3 || ended.size(1) == 2) && counts.numel() == 2,
                      "{} holds {} environments; here there are {}: keep the task and n_envs", source, episodes.numel(),
                      n);
  for (std::int64_t e = 0; e < n; ++e) episodes_[as_size(e)] = episodes.const_data_ptr<std::int64_t>()[e];
  bool go_on = true;
  try {
    restore_episodes(state, source);
  } catch (const Error& e) {
    // The run's settings may have changed, and say so.
    go_on = false;
    log::warning(
        "the episodes that were running begin anew, so that the bits are others than those of a run that never "
        "stopped: {}",
        e.what());
    for (std::int64_t& episode : episodes_) ++episode;
    std::vector<std::int32_t> all(as_size(n));
    std::iota(all.begin(), all.end(), 0);
    begin_episodes(all);
  }
  if (there_) there_->take_ended(), ended_there_.clear();
  observations_ = observe();
  ended_.clear();
  const auto* rows = ended.const_data_ptr<double>();
  for (std::int64_t i = 0; i < ended.size(0); ++i, rows += ended.size(1))
    ended_.push_back({rows[0], rows[1], ended.size(1) == 3 ? rows[2] : std::numeric_limits<double>::quiet_NaN()});
  ended_count_ = counts.const_data_ptr<std::int64_t>()[0], broken_count_ = counts.const_data_ptr<std::int64_t>()[1];
  return go_on;
}

void Environments::restore_episodes(const weights::NamedTensors& state, const std::string& source) {
  COHORT_THROW_UNLESS(std::none_of(state.begin(), state.end(), [](const auto& t) { return t.first == "envs.actions"; }),
                      "{} is of an earlier version, which kept their actions instead of their states", source);
  const at::Tensor steps = named(state, "envs.steps", source), returns = named(state, "envs.returns", source),
                   reached = named(state, "envs.reached", source);
  COHORT_THROW_UNLESS(returns.numel() == size() && reached.numel() == size(), "{} holds {} returns of {} environments",
                      source, returns.numel(), size());
  tasks::TaskState task;
  for (const auto& [name, tensor] : state) {
    if (!name.starts_with(kTaskPrefix)) continue;
    const at::Tensor rows = tensor.contiguous();
    const auto* bytes = static_cast<const std::uint8_t*>(rows.const_data_ptr());
    task.push_back({name.substr(std::string_view(kTaskPrefix).size()),
                    tensors::to_element_type(rows.scalar_type()),
                    rows.sizes().vec(),
                    {bytes, bytes + rows.nbytes()}});
  }
  task_.load(task, source);
  for (std::int64_t e = 0; e < size(); ++e) {
    const auto i = as_size(e);
    steps_[i] = steps.const_data_ptr<std::int64_t>()[e];
    return_[i] = returns.const_data_ptr<double>()[e];
    reached_[i] = reached.const_data_ptr<std::uint8_t>()[e];
  }
  if (!there_) return;
  std::vector<std::int64_t> early;
  for (std::size_t e = 0; e < steps_.size(); ++e) early.push_back(early_after(e));
  there_->set(steps_, return_, reached_, early);
}

}  // namespace cohort::rl
