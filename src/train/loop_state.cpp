// The loop's state as plain values and tensors, and back: what checkpoints, recovery and parked states are made of.
#include <unordered_map>
#include <unordered_set>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "parallel/module_layout.h"
#include "train/loop_impl.h"
#include "train/random_state.h"

namespace cohort::train {

weights::TrainerState TrainLoop::Impl::present_state(const StepMonitor::Reading& reading) const {
  weights::TrainerState present = state;
  present.skipped_steps = earlier_skips + static_cast<std::int64_t>(reading.skipped);
  present.ema_updates = ema ? ema->updates() : 0;
  present.world_size = strategy.world_size();
  present.batch_size = batch_per_process(settings, strategy.world_size());
  present.gradient_accumulation_steps = settings.gradient_accumulation_steps;
  present.seed = settings.seed;
  present.optimizer = settings.optimizer.kind;
  if (scaler) present.scaler = scaler->state();
  present.configuration = job.configuration;
  return present;
}

StateImage TrainLoop::Impl::image() {
  TrainState present = state;
  static_cast<weights::TrainerState&>(present) = present_state(monitor.read(optimizer));
  present.configuration = "null";  // every process has its own
  StateImage image{.text = to_text(present), .tensors = {}};
  std::unordered_set<const c10::TensorImpl*> known;  // buffers that RankState has, then what the model has
  for (const auto& buffer : parallel::changing_buffers_of(module, job.constant_buffers))
    known.insert(buffer.tensor.unsafeGetTensorImpl());
  const auto add = [&](const char* prefix, const weights::NamedTensors& tensors) {
    for (const auto& [name, tensor] : tensors)
      if (!known.contains(tensor.unsafeGetTensorImpl())) image.tensors.emplace_back(prefix + name, tensor.detach());
  };
  const weights::NamedTensors model = weights::module_state(module);
  add("model.", model);
  for (const auto& [name, tensor] : model) known.insert(tensor.unsafeGetTensorImpl());
  if (ema) add("ema.", ema->state());
  add("optimizer.", optimizer.state());
  return image;
}

void TrainLoop::Impl::load(const StateImage& image) {
  const std::string source = "the state of another rank";
  const at::NoGradGuard no_grad;
  weights::NamedTensors averages, optimizer_state;
  std::unordered_map<std::string, at::Tensor> own;
  for (const auto& [name, tensor] : weights::module_state(module)) own[name] = tensor.detach();
  for (const auto& [name, tensor] : image.tensors) {
    if (name.starts_with("model."))
      own.at(name.substr(6)).copy_(tensor);
    else if (name.starts_with("ema."))
      averages.emplace_back(name.substr(4), tensor);
    else
      optimizer_state.emplace_back(name.substr(10), tensor);
  }
  const std::string configuration = state.configuration;
  state = train_state_from(image.text, source);
  state.configuration = configuration;
  state.loss_sums.clear();
  optimizer.load_state(optimizer_state, source);
  if (ema) ema->load_state(averages, state.ema_updates, source);
  if (scaler && state.scaler) scaler->load_state(*state.scaler);
  earlier_skips = state.skipped_steps - static_cast<std::int64_t>(monitor.read(optimizer).skipped);
}

RankState TrainLoop::Impl::rank_state(const weights::LossSums& sums, double samples) const {
  RankState own{.loss_sums = sums, .interval_samples = samples, .random = random_state(device), .buffers = {}};
  for (const auto& buffer : parallel::changing_buffers_of(module, job.constant_buffers))
    own.buffers.emplace_back(buffer.name, buffer.tensor);
  return own;
}

void TrainLoop::Impl::restore(const RankState& own) {
  restore_random_state(own.random, device);
  {
    const at::NoGradGuard no_grad;
    const auto buffers_of_model = parallel::changing_buffers_of(module, job.constant_buffers);
    for (std::size_t i = 0; i < buffers_of_model.size(); ++i) {
      at::Tensor to = buffers_of_model[i].tensor;
      to.copy_(own.buffers[i].second);
    }
  }
  monitor.restore(own.loss_sums);
  interval_samples = own.interval_samples;
  // A rank's state is as of before the report.
  if (state.after_step > kReport && state.step % settings.log_every == 0) {
    monitor.begin_interval();
    interval_samples = 0.0;
  }
  monitor.begin_at(state.step);
  strategy.parameters_changed();
}

}  // namespace cohort::train
