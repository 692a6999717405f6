#include "train/loop.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/log.h"
#include "dist/cuda_plugin.h"
#include "models/random_context.h"
#include "models/segment.h"
#include "run/stop_request.h"
#include "train/deterministic.h"
#include "train/gradient_checkpoint.h"
#include "train/loop_impl.h"
#include "train/memory_recovery.h"
#include "train/random_state.h"

namespace cohort::train {
namespace {

c10::Device device_of(const torch::nn::Module& module) {
  const auto parameters = module.parameters();
  COHORT_THROW_UNLESS(!parameters.empty(), "the model has no parameters: there is nothing to train");
  return parameters.front().device();
}

const TrainJob& checked(const TrainJob& job) {
  COHORT_CHECK(job.strategy && job.batches && job.loss, "a training needs a strategy, a loss and batches");
  return job;
}

const TrainSettings& checked(const TrainSettings& settings) {
  settings.validate();
  return settings;
}

/// The first field of a batch that holds a NaN or an inf, with the first sample where it does; empty: none does.
std::string describe_bad_input(const parallel::Batch& batch) {
  for (const auto& [name, tensor] : batch.fields) {
    if (!tensor.is_floating_point() || tensor.numel() == 0) continue;
    const at::Tensor good = tensor.isfinite().reshape({tensor.size(0), -1}).all(1).cpu();
    const auto* rows = good.const_data_ptr<bool>();
    for (std::int64_t i = 0; i < good.numel(); ++i) {
      if (rows[i]) continue;
      const auto id = batch.sample_ids.defined() ? batch.sample_ids[i].item<std::int64_t>() : i;
      return format(" The batch's field '{}' holds a NaN or inf in sample {}.", name, id);
    }
  }
  return "";
}

}  // namespace

TrainLoop::Impl::~Impl() = default;

TrainLoop::Impl::Impl(TrainSettings s, TrainJob j)
    : settings(checked(s)),
      job(std::move(j)),
      strategy(*checked(job).strategy),
      shards(strategy.shards()),
      batches(*job.batches),
      module(strategy.module()),
      device(device_of(module)),
      precision(parse_precision(settings.precision)),
      writes_files(!job.checkpoints.empty() && strategy.rank() == 0),
      optimizer(own_groups(), settings.optimizer, settings.weights == "bf16"),
      monitor(device, settings.non_finite == "skip", /*deferred=*/!device.is_cpu() || job.make_graph),
      in_flight(device) {
  if (settings.deterministic) set_deterministic();
  if (precision == Precision::kFp16) scaler.emplace(settings.scaler, device);
  if (settings.ema.enabled) ema.emplace(module, settings.ema, ema_origin());
  if (shards) prepare_shards();
  if (settings.non_finite == "skip" || scaler) buffers.emplace(module);
  const std::int64_t accumulation = settings.gradient_accumulation_steps;
  const std::int64_t per_epoch = (batches.batches_per_epoch() + accumulation - 1) / accumulation;
  COHORT_THROW_UNLESS(
      per_epoch > 0,
      "an epoch of the training data has no batch: {} samples for {} process(es) do not fill one of {}; "
      "lower batch_size, or take batches that are not full, too",
      batches.samples_per_epoch(), strategy.world_size(), batch_per_process(settings, strategy.world_size()));
  total_steps = settings.steps > 0 ? settings.steps : settings.epochs * per_epoch;
  base_lr = scaled_learning_rate(settings.lr, settings.learning_rate_rule,
                                 effective_batch(settings, strategy.world_size()), settings.lr_base_batch);
  if (base_lr != settings.lr) {
    log::info("learning rate {:g}: {} rule from {:g} at batch {}, effective batch {}", base_lr,
              settings.learning_rate_rule, settings.lr, settings.lr_base_batch,
              effective_batch(settings, strategy.world_size()));
  }
  if (settings.cuda_graph) prepare_graph();
  loss = [this](torch::nn::Module& replica, const parallel::Batch& batch) { return replica_loss(replica, batch); };
  if (job.recovery) recovery = std::make_unique<MemoryRecovery>(*this, *job.recovery);
}

/// Runs in a replica's thread.
at::Tensor TrainLoop::Impl::replica_loss(torch::nn::Module& replica, const parallel::Batch& batch) {
  // Keyed by the optimizer step and not by the micro-batch: two ranks, and one process that accumulates the same two
  // halves, draw the same numbers for the same samples.
  const models::RandomContextGuard random(
      {.seed = settings.seed, .step = static_cast<std::uint64_t>(state.step), .sample_ids = batch.sample_ids});
  const models::SegmentRunnerGuard segments(settings.gradient_checkpointing ? checkpointing_runner()
                                                                            : models::SegmentRunner());
  at::Tensor result;
  {
    const PrecisionGuard autocast(precision,
                                  batch.fields.empty() ? device.type() : batch.fields[0].second.device().type());
    result = job.loss(replica, batch);
  }
  COHORT_THROW_UNLESS(result.defined() && result.numel() == 1 && result.requires_grad(),
                      "the loss function must return one number that depends on the model's parameters");
  if (result.scalar_type() != at::kFloat && result.scalar_type() != at::kDouble) result = result.to(at::kFloat);
  poison_gradient(result);
  return result;
}

/// To the launcher, which looks for ranks that hang, and to whoever watches the training.
void TrainLoop::Impl::say(rank::Phase phase) const {
  if (!job.beat) return;
  job.beat({.phase = phase,
            .step = state.step,
            .total_steps = total_steps,
            .batches_per_epoch = batches.batches_per_epoch()},
           [this] { return totals(); });
}

bool TrainLoop::Impl::done() const {
  return state.early_stop || state.stop_agreed || state.step >= total_steps ||
         (settings.steps == 0 && state.epoch >= settings.epochs);
}

TrainResult TrainLoop::Impl::run() {
  if (writes_files)
    writer.emplace(weights::CheckpointFolder(job.checkpoints), settings.checkpoint.keep, job.checkpoint_links);
  seed_rank(settings.seed, strategy.rank(), 0);
  const bool replaces = recovery && recovery->replaces();
  if (replaces) {
    if (!recovery->take_state()) return make_result(TrainStatus::kParked);
  } else if (!recovery || !recovery->resume_parked()) {
    resume();
  }
  if (job.leave_finished && state.resumed_from >= 0 && done()) return make_result(TrainStatus::kNothingLeft);
  run_begin = interval_begin = Clock::now();
  exchange_begin = interval_exchange_begin = strategy.exchange_seconds();
  if (!replaces) state.first_step = state.step;
  monitor.begin_at(state.step);
  if (job.started) job.started(state.step);
  say(rank::Phase::kTraining);
  module.train();
  if (!train(state.resumed_from >= 0 || replaces)) return make_result(TrainStatus::kParked);
  // Before anything of the last steps is validated or saved.
  if (compares_ranks() && state.step > state.first_step && state.compared_step != state.step) compare_parameters();
  const bool stopped = state.stop_agreed && !state.early_stop && state.step < total_steps;
  // A run that is continued reports where an undisturbed one does: the checkpoint keeps what has been summed so far.
  if (state.interval_steps > 0 && !stopped) report();
  if (job.validator && !stopped && state.step > state.first_step && state.validated_step != state.step) validate(false);
  if (!job.checkpoints.empty() && state.saved_step != state.step) save_checkpoint(is_best_now());
  if (writer) writer->wait();
  const auto reading = monitor.read(optimizer);
  agree_on_health(reading);  // also: has everything been saved?
  state.skipped_steps = earlier_skips + static_cast<std::int64_t>(reading.skipped);
  strategy.barrier();
  const std::vector<rank::Totals> totals = totals_of_ranks();
  const bool restored = !stopped && restore_best();
  TrainResult result = make_result(stopped            ? TrainStatus::kStopped
                                   : state.early_stop ? TrainStatus::kEarlyStopped
                                                      : TrainStatus::kFinished);
  result.ranks = totals;
  if (restored) result.weights_step = state.early_stopping.best_step;
  return result;
}

/// The steps, to the last. just_resumed: an epoch that has begun is gone on with. False when the job goes on with other
/// ranks.
bool TrainLoop::Impl::train(bool just_resumed) {
  if (recovery) recovery->begin();
  for (;;) {
    try {
      finish_step();  // of a state that was taken over
      while (!done()) train_epoch(just_resumed);
      break;
    } catch (const std::exception&) {
      if (recovery && recovery->can_help()) {
        data_failed = false;
      } else {
        if (data_failed) save_before_end();
        throw;
      }
    }
    if (!recovery->recover()) return false;
    just_resumed = true;
  }
  if (recovery) recovery->end();
  say(rank::Phase::kEnd);
  return true;
}

TrainResult TrainLoop::Impl::make_result(TrainStatus status) const {
  TrainResult result;
  result.status = status;
  result.step = result.weights_step = state.step;
  result.epoch = state.epoch;
  result.skipped_steps = state.skipped_steps;
  result.best = state.early_stopping.best;
  result.best_step = state.early_stopping.best_step;
  if (state.resumed_from >= 0) result.resumed_from = state.resumed_from;
  return result;
}

/// Short trainings are compared too: after the first step of this process and at the end.
bool TrainLoop::Impl::compares_ranks() const {
  return settings.hash_every > 0 && strategy.world_size() > 1;
}

bool TrainLoop::Impl::is_best_now() const {
  return state.validated_step == state.step && state.early_stopping.best_step == state.step &&
         state.early_stopping.best;
}

void TrainLoop::Impl::train_epoch(bool& just_resumed) {
  std::int64_t batches_left = batches.start_epoch(state.epoch, state.samples_in_epoch);
  if (!just_resumed || state.samples_in_epoch == 0) monitor.begin_epoch();
  COHORT_THROW_UNLESS(batches_left > 0 || state.samples_in_epoch > 0, "epoch {} of the training data has no batch",
                      state.epoch);
  just_resumed = false;
  if (batches_left == 0) {  // resumed with other batches, whose last one would not be full
    ++state.epoch;
    state.samples_in_epoch = 0;
    return;
  }
  while (batches_left > 0 && !done()) {
    const std::int64_t micro_batches = std::min(settings.gradient_accumulation_steps, batches_left);
    train_step(micro_batches);
    batches_left -= micro_batches;
    after_step(/*end_of_epoch=*/batches_left == 0);
  }
}

/// Until all has advanced, nothing of the state has: a step that is not finished leaves no trace in it.
void TrainLoop::Impl::train_step(std::int64_t micro_batches) {
  step_samples = 0;
  state.lr = base_lr * learning_rate_factor(settings.schedule, {state.step, state.epoch, total_steps});
  if (!graph || !graph_step()) eager_step(micro_batches);
  if (scaler) scaler->update();
  begin(rank::StepPart::kAverage);
  if (ema) ema->update();
  strategy.parameters_changed();
  ++state.step;
  state.samples_in_epoch += step_samples * strategy.world_size();
  state.samples += step_samples * strategy.world_size();
  begin(rank::StepPart::kBetween);
  ++state.interval_steps;
  state.step_epoch = state.epoch;
  if (state.step == state.first_step + 1 && job.first_step) job.first_step();
  if (!monitor.may_update() && settings.non_finite == "error") agree_on_health(monitor.read(optimizer));
}

parallel::Batch TrainLoop::Impl::next_batch() {
  if (kept_batch) return *std::exchange(kept_batch, std::nullopt);
  in_flight.release(1);
  const auto before = Clock::now();
  say(rank::Phase::kData);
  data_failed = true;
  auto batch = batches.next();
  data_failed = false;
  const double waited = seconds_since(before);
  interval_data_s += waited;
  total_data_s += waited;
  say(rank::Phase::kTraining);
  COHORT_CHECK(batch, "the source of batches ended before its epoch");
  return std::move(*batch);
}

void TrainLoop::Impl::consumed(parallel::Batch batch) {
  const std::int64_t samples = batch.size();
  interval_samples += static_cast<double>(samples);
  total_samples += samples;
  step_samples += samples;
  in_flight.hold(std::move(batch));
}

void TrainLoop::Impl::micro_step(const parallel::Batch& batch, double weight, bool last) {
  parallel::LossFunction told;
  if (last && events.last_loss)
    told = [&](torch::nn::Module& replica, const parallel::Batch& part) {
      at::Tensor result = loss(replica, part);
      events.last_loss(result.item<double>() * weight, part.size());
      return result;
    };
  const at::Tensor micro_loss = strategy.forward_backward(
      batch, told ? told : loss,
      {.synchronise = last, .weight = weight, .loss_scale = scaler ? scaler->scale() : at::Tensor()});
  monitor.add_loss(micro_loss, weight);
  if (device.is_cpu() && !std::isfinite(micro_loss.item<double>())) bad_input = describe_bad_input(batch);
}

/// `rate`: a number, or a scalar on the device.
template <class Rate>
void TrainLoop::Impl::update(const Rate& rate) {
  const auto& gradients = optimizer.gradients();
  if (scaler) scaler->unscale(gradients);
  if (scaler && shards) agree_on_overflow();
  monitor.finish_step(gradients, scaler ? &*scaler : nullptr);
  if (settings.clip_norm > 0.0) monitor.clip(gradients, settings.clip_norm);
  begin(rank::StepPart::kOptimizer);
  if (monitor.may_update()) optimizer.step(rate, monitor.found_inf());
}

void TrainLoop::Impl::eager_step(std::int64_t micro_batches) {
  begin(rank::StepPart::kForward);
  strategy.zero_grad();
  if (buffers) buffers->keep();
  for (std::int64_t i = 0; i < micro_batches; ++i) {
    parallel::Batch batch = next_batch();
    micro_step(batch, 1.0 / static_cast<double>(micro_batches), i + 1 == micro_batches);
    consumed(std::move(batch));
  }
  begin(rank::StepPart::kReduced);
  if (buffers) buffers->restore();
  update(state.lr);
}

/// False when this step needs another way; the batch is then kept for it.
bool TrainLoop::Impl::graph_step() {
  parallel::Batch batch = next_batch();
  const models::RandomContext context{
      .seed = settings.seed, .step = static_cast<std::uint64_t>(state.step), .sample_ids = batch.sample_ids};
  if (!graph->step(batch, state.lr, context)) {
    kept_batch = std::move(batch);
    return false;
  }
  consumed(std::move(batch));
  return true;
}

/// Why steps cannot be recorded; empty: they can.
std::string TrainLoop::Impl::against_graph() const {
  if (!device.is_cuda() && !job.make_graph) return "the model is not on a CUDA device";
  if (strategy.world_size() > 1 || strategy.replicas() > 1) return "several devices take part";
  if (settings.gradient_accumulation_steps > 1) return "gradients are accumulated over several batches";
  if (scaler) return "in fp16 the loss is scaled";
  if (buffers) return "train.non_finite=skip restores what bad steps changed";
  if (settings.gradient_checkpointing)
    return "train.gradient_checkpointing asks LibTorch's generators for their states, which a recording must not";
  return "";
}

void TrainLoop::Impl::prepare_graph() {
  if (const std::string why = against_graph(); !why.empty()) {
    log::warning("train.cuda_graph: steps are launched kernel by kernel, because {}", why);
    return;
  }
  graph.emplace(job.make_graph ? job.make_graph() : dist::load_cuda_plugin().make_graph(device.index()), device,
                [this](const parallel::Batch& batch, const at::Tensor& rate) {
                  strategy.zero_grad();
                  micro_step(batch, 1.0, true);
                  update(rate);
                });
}

void TrainLoop::Impl::after_step(bool end_of_epoch) {
  if (end_of_epoch) {
    ++state.epoch;
    state.samples_in_epoch = 0;
  }
  state.ended_epoch = end_of_epoch;
  state.after_step = 0;
  finish_step();
}

/// What is left to do after a step; state.after_step counts it.
void TrainLoop::Impl::finish_step() {
  static constexpr void (Impl::*kTasks[kAfterStepCount])() = {
      &Impl::report_if_due, &Impl::compare_if_due, &Impl::validate_if_due, &Impl::save_if_due, &Impl::agree_on_stop};
  for (; state.after_step < kAfterStepCount; ++state.after_step) (this->*kTasks[state.after_step])();
}

void TrainLoop::Impl::report_if_due() {
  if (writer && strategy.world_size() == 1) writer->check();
  if (state.step % settings.log_every == 0) report();
}

void TrainLoop::Impl::compare_if_due() {
  const bool first_of_ranks = compares_ranks() && state.step == state.first_step + 1;
  if (first_of_ranks || (settings.hash_every > 0 && state.step % settings.hash_every == 0)) compare_parameters();
}

void TrainLoop::Impl::validate_if_due() {
  state.validation_improved = false;
  const bool due = settings.validate_every > 0 ? state.step % settings.validate_every == 0 : state.ended_epoch;
  if (!job.validator || !due) return;
  validate(state.ended_epoch);
  state.validation_improved = is_best_now();
}

void TrainLoop::Impl::save_if_due() {
  const auto& c = settings.checkpoint;
  const bool due = (c.every > 0 && state.step % c.every == 0) ||
                   (c.every_epochs > 0 && state.ended_epoch && state.epoch % c.every_epochs == 0) ||
                   ((c.save_best || settings.early_stopping.restores()) && state.validation_improved);
  if (due && !job.checkpoints.empty()) save_checkpoint(state.validation_improved);
}

TrainLoop::TrainLoop(TrainSettings settings, TrainJob job)
    : impl_(std::make_unique<Impl>(std::move(settings), std::move(job))) {}
TrainLoop::~TrainLoop() = default;

TrainResult TrainLoop::run() {
  return impl_->run();
}
std::int64_t TrainLoop::total_steps() const {
  return impl_->total_steps;
}
KeptBytes TrainLoop::kept_bytes() const {
  KeptBytes kept;
  const auto bytes = [](const at::Tensor& tensor) {
    return tensor.defined() ? static_cast<std::int64_t>(tensor.nbytes()) : std::int64_t{0};
  };
  for (const at::Tensor& parameter : impl_->module.parameters()) {
    kept.weights += bytes(parameter);
    kept.gradients += bytes(parameter.grad());
  }
  for (const at::Tensor& buffer : impl_->module.buffers()) kept.weights += bytes(buffer);
  kept.optimizer = impl_->optimizer.state_bytes();
  if (impl_->ema) kept.ema = impl_->ema->bytes();
  return kept;
}
Ema* TrainLoop::ema() {
  return impl_->ema ? &*impl_->ema : nullptr;
}

}  // namespace cohort::train
