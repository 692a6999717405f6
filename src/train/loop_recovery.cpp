// When another rank has died, and a new process takes its place (dist/recovery.h): the training goes on from what the
// others have in memory, with the bits of an undisturbed run.
//
// A step is made when weights, optimizer, average, schedule and counters have all advanced. In between there is no
// communication, so that a rank whose group breaks stands at a whole step. A gradient reaches the others only when all
// have given theirs, so that ranks differ by one step at most; whoever has made the most gives its state to the others.
// What only one rank has (sums of losses, generators, buffers) it leaves in its page before it gives its gradients:
// whatever step the others have made, the page holds that step's.
#include <nlohmann/json.hpp>
#include <unordered_map>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "dist/group.h"
#include "parallel/module_layout.h"
#include "train/loop_impl.h"
#include "train/loop_standing.h"
#include "train/random_state.h"

namespace cohort::train {
namespace {
using config::Json;
}  // namespace

/// This training can go on from memory, should a rank die.
bool TrainLoop::Impl::recovers() const {
  // Where ranks divide the optimizer's state, a dead rank's part is nowhere else.
  return job.recovery && job.group && job.recovery->offered() && strategy.world_size() > 1 && device.is_cpu() &&
         !job.make_graph && !shards && !(settings.early_stopping.restores() && job.checkpoints.empty());
}

/// The error that has been met is that of a group that broke.
bool TrainLoop::Impl::can_recover() const {
  return recovers() && job.group->failed();
}

void TrainLoop::Impl::keep_own(std::int64_t step, const weights::LossSums& sums, double samples) {
  own_bytes.clear();
  append(own_bytes, &sums, sizeof sums);
  append(own_bytes, &samples, sizeof samples);
  for (const auto& [name, bytes] : random_state(device)) append(own_bytes, bytes);
  for (const auto& buffer : parallel::changing_buffers_of(module, job.constant_buffers))
    append(own_bytes, buffer.tensor);
  job.recovery->keep(step, own_bytes);
}

void TrainLoop::Impl::restore_own() {
  const std::optional<std::string> kept = job.recovery->kept(state.step);
  COHORT_THROW_UNLESS(kept, "rank {}: nothing was kept of step {}", strategy.rank(), state.step);
  const at::NoGradGuard no_grad;
  Bytes bytes(*kept);
  weights::LossSums sums;
  bytes.take(&sums, sizeof sums);
  bytes.take(&interval_samples, sizeof interval_samples);
  weights::NamedTensors generators = random_state(device);
  for (auto& [name, tensor] : generators) bytes.take(tensor);
  for (const auto& buffer : parallel::changing_buffers_of(module, job.constant_buffers)) {
    at::Tensor own = buffer.tensor;
    bytes.take(own);
  }
  bytes.end();
  restore_random_state(generators, device);
  monitor.restore(sums);
  // What was kept is as of before the report.
  if (after >= kReported && state.step % settings.log_every == 0) {
    monitor.begin_interval();
    interval_samples = 0.0;
  }
}

/// What all ranks have in common: counters as text, and tensors.
std::string TrainLoop::Impl::common_state(weights::NamedTensors& tensors) {
  const auto changing = parallel::changing_buffers_of(module, job.constant_buffers);
  std::unordered_map<const c10::TensorImpl*, bool> own;
  for (const auto& buffer : changing) own[buffer.tensor.unsafeGetTensorImpl()] = true;
  tensors.clear();
  const weights::NamedTensors model = weights::module_state(module);
  for (const auto& [name, tensor] : model)
    if (!own.contains(tensor.unsafeGetTensorImpl())) tensors.emplace_back("model." + name, tensor.detach());
  if (ema) {
    std::unordered_map<const c10::TensorImpl*, bool> of_model;
    for (const auto& [name, tensor] : model) of_model[tensor.unsafeGetTensorImpl()] = true;
    for (const auto& [name, tensor] : ema->state())
      if (!of_model.contains(tensor.unsafeGetTensorImpl())) tensors.emplace_back("ema." + name, tensor.detach());
  }
  for (const auto& [name, tensor] : optimizer.state()) tensors.emplace_back("optimizer." + name, tensor.detach());
  const StepMonitor::Reading reading = monitor.read(optimizer);
  weights::TrainerState present = present_state(reading);
  present.configuration = "null";
  Json json;
  json["trainer"] = weights::to_json(present);
  json["step_epoch"] = step_epoch;
  json["lr"] = lr;
  json["first_step"] = first_step;
  json["resumed_from"] = resumed_from ? Json(*resumed_from) : Json();
  json["saved_step"] = saved_step;
  json["validated_step"] = validated_step;
  json["compared_step"] = compared_step;
  json["early_stop"] = early_stop;
  json["stop_agreed"] = stop_agreed;
  json["interval_steps"] = interval_steps;
  json["agreed_step_s"] = agreed_step_s;
  json["ended_epoch"] = ended_epoch;
  json["validation_improved"] = validation_improved;
  return json.dump();
}

void TrainLoop::Impl::load_common_state(const std::string& text, const weights::NamedTensors& tensors) {
  const Json json = Json::parse(text);
  const std::string source = "the state of another rank";
  const weights::TrainerState theirs = weights::trainer_state_from_json(json.at("trainer"), source);
  const at::NoGradGuard no_grad;
  weights::NamedTensors averages, optimizer_state;
  std::unordered_map<std::string, at::Tensor> own;
  for (const auto& [name, tensor] : weights::module_state(module)) own[name] = tensor.detach();
  for (const auto& [name, tensor] : tensors) {
    if (name.starts_with("model."))
      own.at(name.substr(6)).copy_(tensor);
    else if (name.starts_with("ema."))
      averages.emplace_back(name.substr(4), tensor);
    else
      optimizer_state.emplace_back(name.substr(10), tensor);
  }
  optimizer.load_state(optimizer_state, source);
  if (ema) ema->load_state(averages, theirs.ema_updates, source);
  if (scaler && theirs.scaler) scaler->load_state(*theirs.scaler);
  const std::string configuration = state.configuration;
  state = theirs;
  state.configuration = configuration;
  state.loss_sums.clear();
  earlier_skips = theirs.skipped_steps - static_cast<std::int64_t>(monitor.read(optimizer).skipped);
  step_epoch = json.at("step_epoch");
  lr = json.at("lr");
  first_step = json.at("first_step");
  resumed_from.reset();
  if (!json.at("resumed_from").is_null()) resumed_from = json.at("resumed_from").get<std::int64_t>();
  saved_step = json.at("saved_step");
  validated_step = json.at("validated_step");
  compared_step = json.at("compared_step");
  early_stop = json.at("early_stop");
  stop_agreed = json.at("stop_agreed");
  interval_steps = json.at("interval_steps");
  agreed_step_s = json.at("agreed_step_s");
  ended_epoch = json.at("ended_epoch");
  validation_improved = json.at("validation_improved");
}

/// All ranks agree on the state to go on with, and take it over where they lack it. Collective. Throws Error on all
/// ranks when memory cannot help; the launcher then starts the job again.
void TrainLoop::Impl::agree_on_state() {
  dist::Group& group = *job.group;
  const bool has_state = !job.recovery->replaces() || took_place;
  weights::NamedTensors tensors;
  const std::string text = common_state(tensors);
  Standing own{has_state, state.step, after, has_state ? hash_of(text, tensors) : 0};
  std::vector<Standing> ranks;
  for (const std::string& bytes : group.all_gather_bytes(to_json(own).dump())) ranks.push_back(standing_from(bytes));
  const auto refuse = [&](const std::string& why) {
    job.recovery->ask_for_restart();
    throw Error(why + "; the job has to start again from its last checkpoint");
  };
  const int giver = giver_of(ranks);
  if (giver < 0) refuse("no rank is left that has the state of the training");
  const Standing& chosen = ranks[static_cast<std::size_t>(giver)];
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Standing& other = ranks[r];
    if (!other.has_state) continue;
    if (other.step < chosen.step - 1)
      refuse(format("rank {} has made {} steps and rank {} {}", r, other.step, giver, chosen.step));
    if (other.step == chosen.step && other.after == chosen.after && other.hash != chosen.hash)
      refuse(format("ranks {} and {} have different states after step {}", giver, r, chosen.step));
  }

  // Into spare memory first. Who has the state already takes part, and drops what it gets.
  const std::string state_text = group.broadcast_bytes(text, giver);
  Json layout = Json::array();
  for (const auto& [name, tensor] : tensors)
    layout.push_back({name, static_cast<int>(tensor.scalar_type()), tensor.sizes().vec()});
  const Json theirs = Json::parse(group.broadcast_bytes(layout.dump(), giver));
  const bool gives = group.rank() == giver;
  const bool takes = !gives && !(own.has_state && own.step == chosen.step && own.after == chosen.after);
  weights::NamedTensors received;
  for (std::size_t i = 0; i < theirs.size(); ++i) {
    const Json& entry = theirs[i];
    at::Tensor tensor = gives ? tensors[i].second.contiguous()
                              : at::empty(entry.at(2).get<std::vector<std::int64_t>>(),
                                          static_cast<at::ScalarType>(entry.at(1).get<int>()));
    group.broadcast(tensor, giver);
    if (takes) received.emplace_back(entry.at(0).get<std::string>(), tensor);
  }
  std::string problem;
  if (takes && hash_of(state_text, received) != chosen.hash) problem = "what arrived is not what was sent";
  if (problem.empty() && !job.recovery->kept(chosen.step))
    problem = format("rank {} has nothing of its own of step {}", group.rank(), chosen.step);
  for (const std::string& of_rank : group.all_gather_bytes(problem))
    if (!of_rank.empty()) refuse(of_rank);

  if (takes) load_common_state(state_text, received);
  after = chosen.after;
  restore_own();
  monitor.begin_at(state.step);
  strategy.parameters_changed();
  took_place = true;
}

/// A new process in a dead rank's place; the strategy's group stands.
void TrainLoop::Impl::take_place() {
  try {
    agree_on_state();
  } catch (const std::exception&) {
    if (!can_recover()) throw;
    recover();
  }
  if (parked) return;
  log::info("rank {} has taken a dead rank's place after step {}", strategy.rank(), state.step);
}

void TrainLoop::Impl::recover() {
  const auto begin = Clock::now();
  const std::string cause = job.group->failure();
  if (unfinished.is) {
    state.samples_in_epoch = unfinished.samples_in_epoch;
    state.samples = unfinished.samples;
    unfinished.is = false;
  }
  kept_batch.reset();
  log::warning("{}; this rank keeps what it has in memory, and waits for a new one", cause);
  for (;;) {
    strategy.leave_group();
    if (!job.recovery->rejoin(*job.group)) return park();
    try {
      strategy.join_group();
      agree_on_state();
      break;
    } catch (const std::exception&) {
      if (!can_recover()) throw;
    }
  }
  module.train();
  interval_begin += Clock::now() - begin;  // no time of the steps
  log::info("all {} ranks are there again: going on after step {}, from memory, {:.2f} s after the loss was noticed",
            strategy.world_size(), state.step, seconds_since(begin));
}

}  // namespace cohort::train
