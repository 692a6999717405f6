#include "train/part_speeds.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/nn/module.h>

#include "core/error.h"
#include "core/json_text.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/run_alone.h"

namespace cohort::train {
namespace {

using PartClock = std::chrono::steady_clock;

constexpr std::int64_t kFewestTimed = 3;
constexpr std::int64_t kMostTimed = 2000;
constexpr std::int64_t kWarmUpSteps = 3;  // the first allocate, choose kernels and warm caches

double seconds_from(PartClock::time_point begin) {
  return std::chrono::duration<double>(PartClock::now() - begin).count();
}

/// One batch, over and over.
class SameBatch final : public BatchSource {
 public:
  explicit SameBatch(parallel::Batch batch) : batch_(std::move(batch)) {}
  std::int64_t samples_per_epoch() const override { return batch_.size() * kEpoch; }
  std::int64_t batches_per_epoch() const override { return kEpoch; }
  std::int64_t start_epoch(std::int64_t, std::int64_t first_sample) override {
    return kEpoch - first_sample / batch_.size();
  }
  std::optional<parallel::Batch> next() override { return batch_; }
  double wait_seconds() const override { return 0; }

 private:
  static constexpr std::int64_t kEpoch = std::int64_t{1} << 30;  // more than anybody measures
  parallel::Batch batch_;
};

/// The next batch, over the ends of epochs.
parallel::Batch next_of(LoaderSource& source, std::int64_t& epoch) {
  auto batch = source.next();
  while (!batch) {
    COHORT_THROW_UNLESS(source.start_epoch(++epoch, 0) > 0, "an epoch of the training data has no batch");
    batch = source.next();
  }
  return std::move(*batch);
}

void time_loader(LoaderSource& source, const data::LoaderSettings& loader, double seconds, PartSpeeds& speeds) {
  std::int64_t epoch = 0;
  COHORT_THROW_UNLESS(source.start_epoch(0, 0) > 0,
                      "an epoch of the training data has no batch: {} samples do not fill one of {}; lower "
                      "train.batch_size",
                      source.samples_per_epoch(), loader.batch_size);
  // What was prepared ahead while nobody asked comes at once: it tells nothing.
  const std::int64_t ahead = std::int64_t{loader.workers} * loader.prefetch_factor + 1;
  for (std::int64_t i = 0; i < ahead; ++i) next_of(source, epoch);
  const auto begin = PartClock::now();
  std::int64_t batches = 0;
  while (batches < kFewestTimed || (batches < kMostTimed && seconds_from(begin) < seconds)) {
    next_of(source, epoch);
    ++batches;
  }
  speeds.loader_batches = batches;
  speeds.loader_s = seconds_from(begin) / static_cast<double>(batches);
}

/// The last batch of an epoch, so that the loader prepares nothing more.
parallel::Batch last_batch(LoaderSource& source, std::int64_t batch_size) {
  source.start_epoch(0, std::max<std::int64_t>(0, source.samples_per_epoch() - batch_size));
  auto batch = source.next();
  COHORT_CHECK(batch, "an epoch without a last batch");
  return std::move(*batch);
}

/// Mean seconds of the last `steps` of twice as many steps.
double time_steps(Job& job, TrainSettings settings, parallel::Strategy& strategy, BatchSource& source,
                  std::int64_t steps) {
  settings.steps = 2 * steps;
  settings.log_every = steps;
  TrainJob training = train_job(job, strategy, source);
  double mean = std::numeric_limits<double>::quiet_NaN();
  training.step_observers.push_back([&](const StepStats& s) { mean = s.step_time_s - s.data_time_s; });
  TrainLoop(std::move(settings), std::move(training)).run();
  return mean;
}

}  // namespace

PartSpeeds measure_parts(Job& job, const RunSettings& settings, const PartSpeedSettings& wanted) {
  COHORT_THROW_UNLESS(wanted.seconds > 0 && std::isfinite(wanted.seconds), "{} seconds for a measurement",
                      wanted.seconds);
  COHORT_THROW_UNLESS(!wanted.batch_size || *wanted.batch_size > 0, "a batch of {} samples",
                      wanted.batch_size.value_or(0));
  const parallel::Plan plan = plan_alone(job, settings, "cohort doctor --measure");
  const c10::Device device = tensors::to_torch_device(plan.devices.front());
  data::LoaderSettings loader = settings.loader;
  loader.batch_size = wanted.batch_size.value_or(plan.batch_size);
  loader.drop_last = settings.drop_last;
  PartSpeeds speeds{
      .job = job.name(), .device = device.str(), .batch_size = loader.batch_size, .workers = settings.loader.workers};
  LoaderSource source(job.dataset(Part::kTrain),
                      {.world_size = 1, .rank = 0, .drop_last = settings.drop_last, .seed = settings.train.seed},
                      loader, tensors::host_allocator_for(device.type()));
  time_loader(source, loader, wanted.seconds, speeds);

  const auto in_its_type = [&settings](std::shared_ptr<torch::nn::Module> made) {
    if (settings.train.weights == "bf16") convert_parameters(*made, at::kBFloat16);
    return made;
  };
  const auto strategy =
      parallel::make_strategy(plan, in_its_type(job.make_model(settings.train.seed)), nullptr, settings.parallel,
                              [&] { return in_its_type(job.make_model(settings.train.seed)); });
  SameBatch same(last_batch(source, loader.batch_size));
  TrainSettings train = settings.train;
  train.batch_size = loader.batch_size;
  train.global_batch_size.reset();
  train.gradient_accumulation_steps = plan.accumulation;
  train.early_stopping.patience = 0;
  train.hash_every = 0;
  const double first = time_steps(job, train, *strategy, same, kWarmUpSteps);
  speeds.steps =
      std::clamp(static_cast<std::int64_t>(wanted.seconds / 2 / std::max(first, 1e-9)), kFewestTimed, kMostTimed);
  speeds.step_s = time_steps(job, train, *strategy, same, speeds.steps) /
                  static_cast<double>(std::max<std::int64_t>(1, plan.accumulation));
  return speeds;
}

std::string to_json(const PartSpeeds& s) {
  return json_text(nlohmann::ordered_json{{"job", s.job},
                                          {"device", s.device},
                                          {"batch_size", s.batch_size},
                                          {"loader_workers", s.workers},
                                          {"loader_batches", s.loader_batches},
                                          {"loader_s_per_batch", s.loader_s},
                                          {"steps", s.steps},
                                          {"step_s_per_batch", s.step_s}},
                   2);
}

}  // namespace cohort::train
