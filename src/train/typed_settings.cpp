#include "train/typed_settings.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/log.h"
#include "train/run.h"

namespace cohort::train {
namespace {

/// train.batch_size is of a process and a forward pass, train.global_batch_size of an optimizer step; the second, where
/// it is set, is divided and the first not read.
void settle_batch(const run::TypedSettings& typed, TrainSettings& train) {
  if (!train.global_batch_size || !typed.has("train.batch_size")) return;
  COHORT_THROW_UNLESS(!typed.has("train.global_batch_size"),
                      "{} is of one process and forward pass, {} of an optimizer step over all processes: the second "
                      "decides about the first; leave one of them out",
                      typed.word("train.batch_size"), typed.word("train.global_batch_size"));
  log::info("{} is typed: train.global_batch_size={} of the file is left out", typed.word("train.batch_size"),
            *train.global_batch_size);
  train.global_batch_size.reset();
}

/// Above 0, train.steps ends the training whatever train.epochs is.
void settle_length(const run::TypedSettings& typed, TrainSettings& train) {
  if (train.steps <= 0 || train.epochs <= 0 || !typed.has("train.epochs")) return;
  COHORT_THROW_UNLESS(!typed.has("train.steps"),
                      "{} and {} both say when the training ends: leave one of them out, or set it to 0",
                      typed.word("train.epochs"), typed.word("train.steps"));
  log::info("{} is typed: train.steps={}, which a file or the job's defaults have, is left out",
            typed.word("train.epochs"), train.steps);
  train.steps = 0;
}

bool is_of(const std::string& device, Backend backend) {
  switch (parse_device(device).kind) {
    case DeviceKind::kCpu:
      return backend == Backend::kCpu;
    case DeviceKind::kCuda:
      return backend == Backend::kCuda;
    case DeviceKind::kMetal:
      return backend == Backend::kMetal;
  }
  return true;
}

/// devices names what backend only has the kind of. Both typed, or both of a file, are compared when devices are chosen.
void settle_devices(const run::TypedSettings& typed, RunSettings& settings) {
  const bool backend = typed.has("backend"), devices = typed.has("devices");
  if (backend == devices || settings.devices.empty()) return;
  const Backend wished = parse_backend(settings.backend);
  if (wished == Backend::kGpu ||
      std::ranges::all_of(settings.devices, [&](const std::string& name) { return is_of(name, wished); }))
    return;
  if (devices) {
    log::info("{} is typed: backend={} of the file is left out", typed.word("devices"), settings.backend);
    settings.backend = "gpu";
  } else {
    log::info("{} is typed: devices={} of the file is left out", typed.word("backend"), join(settings.devices, ","));
    settings.devices.clear();
  }
}

}  // namespace

void settle(run::TypedSettings& typed, RunSettings& settings) {
  TrainSettings& train = settings.train;
  settle_batch(typed, train);
  settle_length(typed, train);
  settle_devices(typed, settings);

  COHORT_THROW_UNLESS(!typed.has("init_from") || !typed.has("resume") || settings.resume.empty(),
                      "{} begins a new run, and {} goes on with one: leave one of them out", typed.word("init_from"),
                      typed.word("resume"));

  const ScheduleSettings& schedule = train.schedule;
  typed.needs(train.learning_rate_rule != "none", {"train.lr_base_batch"},
              "add train.learning_rate_rule=linear (or sqrt)");
  typed.needs(schedule.kind == "cosine" || schedule.kind == "linear", {"train.end_factor"},
              "add train.schedule=cosine (or linear)");
  typed.needs(schedule.kind == "halving", {"train.halving_every", "train.halving_delay"}, "add train.schedule=halving");
  typed.needs(schedule.kind == "multistep", {"train.milestones", "train.gamma"}, "add train.schedule=multistep");
  const bool sgd = train.optimizer.kind == "sgd";
  typed.needs(sgd, {"train.momentum", "train.nesterov"}, "add train.optimizer=sgd");
  typed.needs(!sgd, {"train.beta1", "train.beta2", "train.eps", "train.amsgrad"},
              "sgd has none: add train.optimizer=adamw (or adam)");
  typed.needs(train.precision == "fp16", {"train.scaler."}, "only fp16 scales the loss: add train.precision=fp16");
  // Who types the switch itself has chosen: what it leaves without effect is known.
  typed.needs(train.ema.enabled || typed.has("train.ema.enabled"), {"train.ema."},
              "there is no moving average: add train.ema.enabled=true");
  typed.needs(train.early_stopping.patience > 0, {"train.early_stopping.restore_best"},
              "training does not end early: add train.early_stopping.patience=N");
  typed.needs(settings.rollout.enabled || typed.has("rollout.enabled"), {"rollout."},
              "no episodes are played: add rollout.enabled=true");
  typed.refuse_what_does_nothing();
}

}  // namespace cohort::train
