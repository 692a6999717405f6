#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/log.h"
#include "run/changed_settings.h"
#include "train/loop_impl.h"
#include "train/random_state.h"
#include "weights/weights.h"

namespace cohort::train {
namespace {

/// The same values, however they are spelled.
bool same_json(const std::string& a, const std::string& b) {
  return a == b || try_json<nlohmann::json>(a) == try_json<nlohmann::json>(b);
}

/// What a configuration trains, "policy" or "regressor"; empty: it does not say it. A job and its algorithm may have the
/// same name.
std::string learner_of(const std::string& configuration) {
  const nlohmann::json json = try_json<nlohmann::json>(configuration);
  for (const char* place : {"/model/algorithm", "/job"})
    if (const nlohmann::json::json_pointer at(place); json.contains(at) && json.at(at).is_string())
      return json.at(at).get<std::string>();
  return "";
}

}  // namespace

void TrainLoop::Impl::save_checkpoint(bool is_best) {
  say(rank::Phase::kCheckpoint);
  const auto begin = Clock::now();
  write_checkpoint(is_best);
  const double taken = seconds_since(begin);
  interval_checkpoint_s += taken;
  total_checkpoint_s += taken;
}

void TrainLoop::Impl::write_checkpoint(bool is_best) {
  if (writer) writer->wait();  // so that its error, if any, is known before the ranks agree
  const auto reading = monitor.read(optimizer);
  agree_on_health(reading);  // nothing of a bad step is saved
  weights::CheckpointContent content;
  content.state = present_state(reading);
  const RankState own{.loss_sums = reading.sums, .interval_samples = 0, .random = random_state(device), .buffers = {}};
  const std::vector<std::string> of_ranks = gather_over_ranks(strategy, to_bytes(own));
  state.saved_step = state.step;
  // Where ranks look after parts, rank 0 gets all of them: the file is that of one rank, and any number resumes from it.
  if (ema) content.ema = weights::distinct(ema->state()).tensors;
  content.optimizer = shards ? shards->collect(optimizer.state()) : optimizer.state();
  if (!writes_files) return;
  for (int rank = 0; rank < strategy.world_size(); ++rank) {
    const RankState of_rank = rank_state_from(of_ranks[static_cast<std::size_t>(rank)], own);
    content.state.loss_sums.push_back(of_rank.loss_sums);
    for (const auto& [name, bytes] : of_rank.random)
      content.random.emplace_back(format("rank_{}.{}", rank, name), bytes);
  }
  auto weights = weights::distinct(weights::module_state(module));
  content.model = std::move(weights.tensors);
  content.model_aliases = std::move(weights.aliases);
  content.dataset_statistics = job.dataset_statistics;
  content.is_best = is_best;
  const auto before = Clock::now();
  writer->save(content);
  log::debug("checkpoint of step {}: training waited {:.3f} s", state.step,
             std::chrono::duration<double>(Clock::now() - before).count());
}

void TrainLoop::Impl::save_before_end() {
  // Other ranks are in the midst of a step, and a checkpoint is of all of them.
  if (!writes_files || strategy.world_size() > 1 || state.step == state.first_step || state.saved_step == state.step)
    return;
  // A step that is not finished has changed neither weights nor optimizer.
  if (buffers) buffers->restore();
  try {
    save_checkpoint(false);
    writer->wait();
    log::info("the data ended the training; what was learnt up to step {} is saved, and `resume` goes on from there",
              state.step);
  } catch (const std::exception& e) {  // the data's error is the one to tell
    log::warning("the checkpoint of step {} could not be saved: {}", state.step, e.what());
  }
}

/// What goes on with another schedule, rate or length than before does not go on where the rate was: a cosine that had
/// come down to its end is stretched, and the rate leaps.
void TrainLoop::Impl::say_change_of_rate(const weights::TrainerState& saved) const {
  if (done()) return;  // no step is made
  const config::Json configuration = try_json<config::Json>(saved.configuration);
  if (!configuration.is_object() || !configuration.contains("train")) return;
  TrainSettings before;
  try {
    config::Fields fields;
    describe(fields, before);
    fields.apply_json(configuration.at("train"), "train");
  } catch (const std::exception&) {
    return;  // of another version, whose settings are not these
  }
  const std::int64_t per_epoch = settings.epochs > 0 && settings.steps == 0 ? total_steps / settings.epochs : 0;
  const std::int64_t steps_before = before.steps > 0 ? before.steps : before.epochs * per_epoch;
  if (steps_before <= 0) return;
  const double factor = settings.lr > 0 ? base_lr / settings.lr : 1.0;  // of the rule, for the batch
  const auto rate_before = [&](std::int64_t step) {
    return before.lr * factor * learning_rate_factor(before.schedule, {step, state.epoch, steps_before});
  };
  const double now = base_lr * learning_rate_factor(settings.schedule, {saved.step, state.epoch, total_steps});
  // The last step had that of the step before it.
  const double last = rate_before(std::max<std::int64_t>(0, saved.step - 1));
  const double would_be = rate_before(saved.step);
  if (std::abs(now - would_be) <= 1e-6 * std::max(now, would_be)) return;
  log::warning(
      "the learning rate was {:.3g} in step {} and goes on with {:.3g}: train.schedule was {} over {} steps from {:g}, "
      "and "
      "is {} over {} from {:g} now. To go on with the rate it had: train.schedule=constant train.lr={:.3g}",
      last, saved.step, now, before.schedule.kind, steps_before, before.lr, settings.schedule.kind, total_steps,
      settings.lr, last);
}

std::optional<weights::ResumePoint> TrainLoop::Impl::choose_resume_point() {
  std::optional<weights::ResumePoint> point;
  std::string error;
  double chosen = -1.0;
  // Rank 0 chooses; everybody else reads the same checkpoint.
  const bool decides = strategy.rank() == 0;
  if (decides) {
    try {
      point = weights::find_resume_point(settings.checkpoint.resume, job.checkpoints);
      if (point) chosen = static_cast<double>(point->content.state.step);
    } catch (const Error& e) {
      error = e.what();
    }
  }
  if (strategy.world_size() > 1) {
    at::Tensor decision = torch::tensor({chosen, error.empty() ? 0.0 : 1.0}, at::kDouble);
    strategy.max_over_ranks(decision);
    chosen = decision.const_data_ptr<double>()[0];
    if (!decides && chosen >= 0.0) {
      try {
        const bool by_path = settings.checkpoint.resume != "auto";
        point = by_path
                    ? weights::find_resume_point(settings.checkpoint.resume, job.checkpoints)
                    : weights::ResumePoint{
                          weights::CheckpointFolder(job.checkpoints).checkpoint(static_cast<std::int64_t>(chosen)), {}};
        if (!by_path) point->content = weights::read_checkpoint(point->path);
        COHORT_THROW_UNLESS(
            point && static_cast<double>(point->content.state.step) == chosen,
            "rank {} does not see the checkpoint of step {} that rank 0 resumes from; all ranks must see the "
            "same folder",
            strategy.rank(), chosen);
      } catch (const Error& e) {
        error = format("rank {}: {}", strategy.rank(), e.what());
      }
    }
    at::Tensor failed = torch::tensor({error.empty() ? 0.0 : 1.0}, at::kDouble);
    strategy.max_over_ranks(failed);
    COHORT_THROW_UNLESS(error.empty(), "{}", error);
    COHORT_THROW_UNLESS(failed.item<double>() == 0.0, "another rank cannot read the checkpoint; its message says why");
  }
  COHORT_THROW_UNLESS(error.empty(), "{}", error);
  return point;
}

void TrainLoop::Impl::resume() {
  const std::optional<weights::ResumePoint> point = choose_resume_point();
  if (!point) {
    if (settings.checkpoint.resume == "auto" && !job.checkpoints.empty()) log::debug("no checkpoint to resume from");
    return;
  }
  const weights::CheckpointContent& content = point->content;
  const std::string where = point->path.string();
  const weights::TrainerState& saved = content.state;
  const std::string theirs = learner_of(saved.configuration), ours = learner_of(job.configuration);
  COHORT_THROW_UNLESS(theirs.empty() || ours.empty() || theirs == ours,
                      "{} is a checkpoint of {}, and this is a training of {}: name one of the same kind", where,
                      theirs, ours);
  COHORT_THROW_UNLESS(
      saved.optimizer == settings.optimizer.kind,
      "{} was trained with the optimizer {}, this run asks for {}; load its weights instead of resuming", where,
      saved.optimizer, settings.optimizer.kind);
  weights::load_weights(module, content.model, content.model_aliases, (point->path / weights::kModelFile).string());
  optimizer.load_state(own_part(content.optimizer), (point->path / weights::kOptimizerFile).string());
  if (ema && content.ema.empty()) {
    log::warning("{} holds no moving average of the weights; it starts from the weights", where);
    ema.emplace(module, settings.ema, ema_origin());
  } else if (ema) {
    ema->load_state(content.ema, saved.ema_updates, (point->path / weights::kEmaFile).string());
  }
  if (scaler && saved.scaler) scaler->load_state(*saved.scaler);
  static_cast<weights::TrainerState&>(state) = saved;
  state.loss_sums.clear();
  state.early_stop = should_stop(settings.early_stopping, state.early_stopping);
  earlier_skips = saved.skipped_steps;
  state.saved_step = saved.step;
  state.resumed_from = saved.step;

  const auto rank = static_cast<std::size_t>(strategy.rank());
  const bool same_world =
      saved.world_size == strategy.world_size() && saved.loss_sums.size() == static_cast<std::size_t>(saved.world_size);
  monitor.restore(same_world ? saved.loss_sums[rank] : mean_of(saved.loss_sums));
  weights::NamedTensors generators;
  const std::string prefix = format("rank_{}.", rank);
  for (const auto& [name, bytes] : content.random) {
    if (name.starts_with(prefix)) generators.emplace_back(name.substr(prefix.size()), bytes);
  }
  if (generators.empty()) {
    seed_rank(settings.seed, strategy.rank(), saved.step);
    log::warning("{} was written by {} process(es); LibTorch's generators of rank {} start anew", where,
                 saved.world_size, rank);
  } else {
    restore_random_state(generators, device);
  }
  strategy.parameters_changed();

  log::info("resuming from {}: step {}, epoch {}, {} samples into it", where, saved.step, saved.epoch,
            saved.samples_in_epoch);
  say_change_of_rate(saved);
  if (state.early_stop)
    log::info(
        "{} validations without improvement have used up train.early_stopping.patience = {}: raise it to train on",
        state.early_stopping.validations_since_best, settings.early_stopping.patience);
  warn_of_other_run(*point);
}

/// How a continued run is set otherwise than when it was saved. What the lines above and below say is not said again.
void TrainLoop::Impl::say_other_settings(const weights::ResumePoint& point) const {
  static constexpr std::string_view kFree[] = {"loader.",
                                               "parallel.",
                                               "data.threads",
                                               "data.csv.threads",
                                               "data.cache_bytes",
                                               "data.index_cache",
                                               "data.statistics_cache",
                                               "train.steps",
                                               "train.epochs",
                                               "train.batch_size",
                                               "train.global_batch_size",
                                               "train.gradient_accumulation_steps",
                                               "train.seed",
                                               "train.optimizer",
                                               "train.checkpoint.",
                                               "train.log_every",
                                               "train.hash_every"};
  const config::Json before = try_json<config::Json>(point.content.state.configuration);
  const config::Json now = try_json<config::Json>(job.configuration);
  run::say_changed_settings(run::changed_settings(before, now, kFree));
  std::error_code ignored;
  const bool own = std::filesystem::equivalent(point.path.parent_path(), job.checkpoints, ignored);
  run::say_what_only_a_beginning_reads(before, now, point.path.string(),
                                       own ? job.checkpoints.parent_path().string() : "");
}

/// What keeps a continued run from being the one that was saved.
void TrainLoop::Impl::warn_of_other_run(const weights::ResumePoint& point) const {
  const weights::CheckpointContent& content = point.content;
  const weights::TrainerState& saved = content.state;
  const std::string where = point.path.string();
  const auto warn = [&](const char* what, auto before, auto now) {
    if (before != now)
      log::warning("{} was {} when {} was written and is {} now: the run will not be the same", what, before, where,
                   now);
  };
  warn("the number of processes", saved.world_size, strategy.world_size());
  warn("the batch size per process", saved.batch_size, batch_per_process(settings, strategy.world_size()));
  warn("gradient_accumulation_steps", saved.gradient_accumulation_steps, settings.gradient_accumulation_steps);
  warn("the seed", saved.seed, settings.seed);
  if (strategy.rank() == 0) say_other_settings(point);
  if (!content.dataset_statistics.empty() && !job.dataset_statistics.empty() &&
      !same_json(content.dataset_statistics, job.dataset_statistics))
    log::warning(
        "the statistics of the training data are others than those in {}: with other data, or another split of them, "
        "the run will not be the same, and samples are scaled otherwise than before",
        (point.path / weights::kStatisticsFile).string());
}

/// False where the last weights stay: nothing is to be restored, they are the best ones, or the best are not at hand.
bool TrainLoop::Impl::restore_best() {
  if (!settings.early_stopping.restores() || !state.early_stopping.best) return false;
  const std::int64_t best_step = state.early_stopping.best_step;
  if (best_step == state.step) return false;
  if (!best_weights.empty()) {
    weights::NamedTensors model, averages;
    for (const auto& [name, tensor] : best_weights) {
      if (name.starts_with("ema/")) {
        averages.emplace_back(name.substr(4), tensor);
      } else {
        model.emplace_back(name, tensor);
      }
    }
    weights::load_weights(module, model, {}, "the best weights");
    if (ema) ema->load_state(averages, ema->updates(), "the best weights");
  } else if (const auto path = weights::CheckpointFolder(job.checkpoints).checkpoint(best_step);
             std::filesystem::exists(path)) {
    const auto content = weights::read_checkpoint(path);
    weights::load_weights(module, content.model, content.model_aliases, path.string());
    if (ema && !content.ema.empty()) ema->load_state(content.ema, ema->updates(), path.string());
  } else {
    log::warning("the weights of the best validation (step {}) are not at hand; the last ones stay", best_step);
    return false;
  }
  strategy.parameters_changed();
  log::info("the model has the weights of step {}, the best validation", best_step);
  return true;
}

}  // namespace cohort::train
