#include "train/memory_recovery.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/log.h"
#include "dist/group.h"

namespace cohort::train {

StateImage broadcast(dist::Group* group, int source, const StateImage* image, bool keep) {
  if (!group) return *image;
  StateImage received = StateImage::with_layout(group->broadcast_bytes(image ? image->text : "", source),
                                                group->broadcast_bytes(image ? image->layout() : "", source));
  for (std::size_t i = 0; i < received.tensors.size(); ++i) {
    at::Tensor& tensor = received.tensors[i].second;
    if (image) tensor = image->tensors[i].second.contiguous();
    group->broadcast(tensor, source);
    if (!keep) tensor.reset();
  }
  return received;
}

TrainLoop::MemoryRecovery::MemoryRecovery(Impl& loop, dist::Recovery& page)
    : loop_(loop),
      page_(page),
      // Where ranks divide the optimizer's state, a dead rank's part is nowhere else.
      possible_(loop.job.group && page.offered() && loop.strategy.world_size() > 1 && loop.device.is_cpu() &&
                !loop.job.make_graph && !loop.shards &&
                !(loop.settings.early_stopping.restores() && loop.job.checkpoints.empty())),
      has_state_(!page.replaces()) {
  loop.events.part = [this](rank::StepPart part) { page_.set_part(part); };
  if (!possible_) return;
  // The forward passes of the step are over; no rank can end the step before this one has given its gradients.
  loop.events.last_loss = [this](double loss, std::int64_t samples) {
    page_.set_part(rank::StepPart::kBackward);
    keep(loop_.state.step + 1, loop_.monitor.sums_with(loss), loop_.interval_samples + static_cast<double>(samples));
  };
}

bool TrainLoop::MemoryRecovery::can_help() const {
  return possible_ && loop_.job.group->failed();
}

bool TrainLoop::MemoryRecovery::replaces() const {
  return possible_ && page_.replaces();
}

void TrainLoop::MemoryRecovery::keep(std::int64_t step, const weights::LossSums& sums, double samples) {
  page_.keep(step, to_bytes(loop_.rank_state(sums, samples)));
}

void TrainLoop::MemoryRecovery::begin() {
  if (!possible_) return say_why_not();
  if (!replaces()) keep(loop_.state.step, loop_.monitor.read(loop_.optimizer).sums, loop_.interval_samples);
  page_.set_ready(true);
}

void TrainLoop::MemoryRecovery::say_why_not() const {
  if (!page_.offered()) return;
  if (loop_.shards)
    log::info("parallel.zero: should a rank die, the job starts again from its last checkpoint, not from memory");
  else if (!loop_.device.is_cpu() && loop_.strategy.world_size() > 1)
    log::info("on {}: should a rank die, the job starts again from its last checkpoint, not from memory{}",
              loop_.device.str(),
              loop_.settings.checkpoint.every + loop_.settings.checkpoint.every_epochs > 0
                  ? ""
                  : "; none is written on the way: train.checkpoint.every=500 does");
}

void TrainLoop::MemoryRecovery::end() {
  if (possible_) page_.set_ready(false);
}

/// All ranks agree on the state to go on with, and take it over where they lack it. Collective. Throws Error on all
/// ranks when memory cannot help; the launcher then starts the job again.
void TrainLoop::MemoryRecovery::agree_on_state() {
  dist::Group& group = *loop_.job.group;
  StateImage image;
  if (has_state_) image = loop_.image();
  Progress mine;
  if (has_state_) mine = {true, loop_.state.step, loop_.state.after_step, image.hash()};
  std::vector<Progress> ranks;
  for (const std::string& text : group.all_gather_bytes(to_text(mine))) ranks.push_back(progress_from(text));
  const auto refuse = [&](const std::string& why) {
    page_.ask_for_restart();
    throw Error(why + "; the job has to start again from its last checkpoint");
  };
  const int source = source_rank(ranks);
  if (source < 0) refuse("no rank is left that has the state of the training");
  const Progress& chosen = ranks[static_cast<std::size_t>(source)];
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (ranks[r].has_state && ranks[r].step < chosen.step - 1)
      refuse(format("rank {} has made {} steps and rank {} {}", r, ranks[r].step, source, chosen.step));
    if (ranks[r].same_point(chosen) && ranks[r].hash != chosen.hash)
      refuse(format("ranks {} and {} have different states after step {}", source, r, chosen.step));
  }

  // Into spare memory first. A rank that has the state already takes part, and drops what it gets.
  const bool takes = !mine.same_point(chosen);
  const StateImage received = broadcast(&group, source, group.rank() == source ? &image : nullptr, takes);
  std::string problem;
  if (takes && received.hash() != chosen.hash) problem = "what arrived is not what was sent";
  const std::optional<std::string> kept = page_.kept(chosen.step);
  if (problem.empty() && !kept)
    problem = format("rank {} has nothing of its own of step {}", group.rank(), chosen.step);
  for (const std::string& of_rank : group.all_gather_bytes(problem))
    if (!of_rank.empty()) refuse(of_rank);

  if (takes) loop_.load(received);
  loop_.state.after_step = chosen.after_step;
  loop_.restore(rank_state_from(*kept, loop_.rank_state({}, 0)));
  has_state_ = true;
}

bool TrainLoop::MemoryRecovery::take_state() {
  try {
    agree_on_state();
  } catch (const std::exception&) {
    if (!can_help()) throw;
    if (!recover()) return false;
  }
  log::info("rank {} has taken a dead rank's place after step {}", loop_.strategy.rank(), loop_.state.step);
  return true;
}

bool TrainLoop::MemoryRecovery::recover() {
  const auto begin = Clock::now();
  const std::string cause = loop_.job.group->failure();
  loop_.kept_batch.reset();
  log::warning("{}; this rank keeps what it has in memory, and waits for a new one", cause);
  for (;;) {
    loop_.strategy.leave_group();
    if (!page_.rejoin(*loop_.job.group)) {
      park();
      return false;
    }
    try {
      loop_.strategy.join_group();
      agree_on_state();
      break;
    } catch (const std::exception&) {
      if (!can_help()) throw;
    }
  }
  loop_.module.train();
  loop_.interval_begin += Clock::now() - begin;  // no time of the steps
  log::info("all {} ranks are there again: going on after step {}, from memory, {:.2f} s after the loss was noticed",
            loop_.strategy.world_size(), loop_.state.step, seconds_since(begin));
  return true;
}

}  // namespace cohort::train
