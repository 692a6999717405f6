// Loader alone and step alone, of data that are slow on purpose and of a model that is.
#include "train/part_speeds.h"

#include <atomic>
#include <chrono>
#include <thread>

#include <gtest/gtest.h>

#include "core/message_of.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

/// Samples that take their time.
class LaggingData final : public data::Dataset {
 public:
  LaggingData(std::int64_t size, std::chrono::microseconds lag) : size_(size), lag_(lag) {}
  std::int64_t size() const override { return size_; }
  std::vector<data::FieldSpec> fields() const override {
    return {{"x", ElementType::kFloat32, {3}}, {"y", ElementType::kFloat32, {2}}};
  }
  void read(std::int64_t index, std::uint64_t, std::span<const ArrayView> rows) const override {
    const int reading = ++reading_;
    for (int most = most_at_once; reading > most && !most_at_once.compare_exchange_weak(most, reading);) {
    }
    if (lag_.count() > 0) std::this_thread::sleep_for(lag_);
    --reading_;
    for (const ArrayView& row : rows)
      for (float& value : row.span<float>()) value = static_cast<float>(index % 5) - 2;
  }
  mutable std::atomic<int> most_at_once = 0;

 private:
  std::int64_t size_;
  std::chrono::microseconds lag_;
  mutable std::atomic<int> reading_ = 0;
};

/// Of which only the training set and the model are asked for.
class LaggingJob final : public Job {
 public:
  LaggingJob(std::int64_t samples, std::chrono::microseconds of_data, std::chrono::microseconds of_step)
      : data_(std::make_shared<LaggingData>(samples, of_data)), of_step_(of_step) {}
  std::string name() const override { return "lagging"; }
  std::string summary() const override { return ""; }
  std::string data_summary() const override { return ""; }
  void describe(config::Fields&, RunSettings&) override {}
  void load() override {}
  std::shared_ptr<const data::Dataset> dataset(Part part) const override {
    return part == Part::kTrain ? data_ : nullptr;
  }
  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const override { return tiny_model(seed); }
  at::Tensor loss(torch::nn::Module& model, const parallel::Batch& batch) const override {
    ++losses;
    if (of_step_.count() > 0) std::this_thread::sleep_for(of_step_);
    return tiny_loss(model, batch);
  }
  Prediction predict(torch::nn::Module&, const parallel::Batch&) const override { throw Error("not asked for"); }
  std::vector<std::string> target_names() const override { return {}; }
  void to_data_units(std::span<float>) const override {}
  PredictionRequest load_request(const config::Json&, const std::string&) override { throw Error("not asked for"); }

  const LaggingData& data() const { return *data_; }

  mutable std::atomic<int> losses = 0;

 private:
  std::shared_ptr<LaggingData> data_;
  std::chrono::microseconds of_step_;
};

RunSettings settings_for(int workers, std::int64_t batch) {
  RunSettings settings;
  settings.backend = "cpu";
  settings.loader.workers = workers;
  settings.train.batch_size = batch;
  return settings;
}

constexpr std::chrono::microseconds kNone{0};
constexpr PartSpeedSettings kShort{.seconds = 0.2};

TEST(PartSpeeds, ASlowLoaderIsTimedAloneAndItsWorkersShareTheWork) {
  using namespace std::chrono_literals;
  LaggingJob job(40, 10ms, kNone);
  const PartSpeeds one = measure_parts(job, settings_for(1, 8), {.seconds = 1});
  EXPECT_EQ(one.job, "lagging");
  EXPECT_EQ(one.device, "cpu");
  EXPECT_EQ(one.batch_size, 8);
  EXPECT_EQ(one.workers, 1);
  EXPECT_GE(one.loader_batches, 3);
  // A worker that reads ahead may have one batch more while nobody looks, if this thread does not get a processor.
  EXPECT_GE(one.loader_s * static_cast<double>(one.loader_batches),
            0.080 * static_cast<double>(one.loader_batches - settings_for(1, 8).loader.prefetch_factor - 1))
      << "eight samples of 10 ms, one after the other";
  EXPECT_GE(measure_parts(job, settings_for(0, 8), kShort).loader_s, 0.080) << "without a worker likewise";
  EXPECT_EQ(job.data().most_at_once, 1);
  EXPECT_GT(measure_parts(job, settings_for(4, 8), {.seconds = 1}).loader_s, 0);
  EXPECT_GT(job.data().most_at_once, 1) << "four share the work";
}

TEST(PartSpeeds, ASlowStepIsTimedAloneWhateverItAccumulates) {
  using namespace std::chrono_literals;
  LaggingJob job(40, kNone, 20ms);
  for (const std::int64_t accumulation : {1, 4}) {
    RunSettings settings = settings_for(1, 8);
    settings.train.gradient_accumulation_steps = accumulation;
    job.losses = 0;
    const PartSpeeds speeds = measure_parts(job, settings, kShort);
    EXPECT_GE(speeds.step_s, 0.020) << "of one batch, however many a step accumulates";
    EXPECT_EQ(job.losses, accumulation * 2 * (3 + speeds.steps)) << "some to warm up, and as many again";
  }
}

TEST(PartSpeeds, ABatchOfOneRankMayBeOtherThanThatOfTheSettings) {
  LaggingJob job(40, kNone, kNone);
  RunSettings settings = settings_for(1, 8);
  settings.train.global_batch_size = 32;
  EXPECT_EQ(measure_parts(job, settings, kShort).batch_size, 32);
  PartSpeedSettings of_rank = kShort;
  of_rank.batch_size = 16;
  EXPECT_EQ(measure_parts(job, settings, of_rank).batch_size, 16);
}

TEST(PartSpeeds, BadInputIsRefused) {
  LaggingJob job(4, kNone, kNone);
  RunSettings settings = settings_for(1, 8);
  settings.drop_last = true;
  EXPECT_NE(message_of([&] { measure_parts(job, settings, kShort); }).find("4 samples do not fill one of 8"),
            std::string::npos);
  settings.drop_last = false;
  EXPECT_EQ(measure_parts(job, settings, kShort).batch_size, 8) << "a batch that is not full";
  EXPECT_THROW(measure_parts(job, settings, {.batch_size = -3}), Error);
  EXPECT_THROW(measure_parts(job, settings, {.seconds = 0}), Error);
  settings.train.batch_size = 0;
  EXPECT_THROW(measure_parts(job, settings, kShort), Error);
}

}  // namespace
}  // namespace cohort::train
