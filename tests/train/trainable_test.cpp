// What is trained without data sets: the loop, its checkpoints and its validation through train::Trainable alone.
#include "train/trainable.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/json_text.h"
#include "core/philox.h"
#include "support/fresh_folder.h"
#include "train/tiny_training.h"
#include "weights/checkpoint.h"

namespace cohort::train {
namespace {

/// One-step episodes: a place is seen, an action is drawn around what the network says, and its reward is minus the
/// square of how far it is from the place.
struct Bandit : torch::nn::Module {
  Bandit() { mean = register_module("mean", torch::nn::Linear(1, 1)); }
  torch::nn::Linear mean{nullptr};
};

constexpr double kSpread = 0.3;  // of actions around the mean

/// Policy gradient (Williams 1992) with the batch's mean reward as baseline.
class PolicyGradient final : public Trainable {
 public:
  std::string name() const override { return "bandit"; }
  std::string summary() const override { return "one-step episodes"; }
  std::string data_summary() const override { return "episodes of its own"; }
  std::string loss_name() const override { return "policy gradient"; }
  config::Json statistics() const override { return {{"spread", kSpread}}; }
  std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const override {
    torch::manual_seed(seed);
    return std::make_shared<Bandit>();
  }
  at::Tensor loss(torch::nn::Module& model, const parallel::Batch& batch) const override {
    const at::Tensor mean = dynamic_cast<Bandit&>(model).mean(batch.at("place"));
    const at::Tensor log_probability = -0.5 * ((batch.at("action") - mean) / kSpread).square();
    const at::Tensor advantage = batch.at("reward") - batch.at("reward").mean();
    return -(advantage * log_probability).mean();
  }
  std::vector<std::string> validation_figure_names() const override { return {"validation/reward"}; }
  std::vector<Metric> validation_figures(torch::nn::Module& model, const parallel::Batch& batch) const override {
    const at::Tensor missed = dynamic_cast<Bandit&>(model).mean(batch.at("place")) - batch.at("place");
    return {{"validation/reward", -missed.square().sum().item<double>(), static_cast<double>(batch.size())}};
  }
};

/// An epoch is a set of episodes that the model plays as it is when the epoch begins, in two batches.
class Rollouts final : public BatchSource {
 public:
  explicit Rollouts(std::shared_ptr<torch::nn::Module> model) : model_(std::move(model)) {}
  std::int64_t samples_per_epoch() const override { return 2 * kBatch; }
  std::int64_t batches_per_epoch() const override { return 2; }
  std::int64_t start_epoch(std::int64_t epoch, std::int64_t first_sample) override {
    const at::NoGradGuard no_grad;
    left_.clear();
    double sum = 0.0;
    for (std::int64_t first = first_sample; first < samples_per_epoch(); first += kBatch) {
      parallel::Batch batch;
      batch.sample_ids = at::arange(first, first + kBatch);
      at::Tensor place = at::empty({kBatch, 1}), noise = at::empty({kBatch, 1});
      for (std::int64_t i = 0; i < kBatch; ++i) {
        const RandomStream stream(1, RandomPurpose::kTest, static_cast<std::uint64_t>(first + i),
                                  static_cast<std::uint64_t>(epoch));
        place.mutable_data_ptr<float>()[i] = stream.normal(0);
        noise.mutable_data_ptr<float>()[i] = stream.normal(1);
      }
      const at::Tensor action = dynamic_cast<Bandit&>(*model_).mean(place) + kSpread * noise;
      const at::Tensor reward = -(action - place).square();
      sum += reward.mean().item<double>() / 2;
      batch.add("place", place);
      batch.add("action", action);
      batch.add("reward", reward);
      left_.push_back(std::move(batch));
    }
    rewards.push_back(sum);
    const auto count = static_cast<std::int64_t>(left_.size());
    std::reverse(left_.begin(), left_.end());
    return count;
  }
  std::optional<parallel::Batch> next() override {
    if (left_.empty()) return std::nullopt;
    parallel::Batch batch = std::move(left_.back());
    left_.pop_back();
    return batch;
  }
  double wait_seconds() const override { return 0.0; }

  std::vector<double> rewards;  ///< mean of each epoch

 private:
  static constexpr std::int64_t kBatch = 64;
  std::shared_ptr<torch::nn::Module> model_;
  std::vector<parallel::Batch> left_;
};

struct Learning {
  PolicyGradient gradient;
  std::shared_ptr<torch::nn::Module> model = gradient.make_model(3);
  PlainStrategy strategy{model};
  Rollouts episodes{model}, held_out{model};
  std::vector<std::string> figures;

  TrainResult train(const std::filesystem::path& checkpoints, std::int64_t epochs, const std::string& resume) {
    TrainJob job = train_job(gradient, strategy, episodes);
    job.validator = validator_of(gradient, held_out, Precision::kFp32, at::kCPU);
    job.checkpoints = checkpoints;
    job.validation_observers.push_back([&](const ValidationStats& stats) {
      figures.clear();
      for (const auto& [name, value] : stats.metrics) figures.push_back(name);
    });
    TrainSettings settings{.batch_size = 64, .epochs = epochs, .lr = 0.02, .clip_norm = 10.0, .hash_every = 0};
    settings.checkpoint.resume = resume;
    return TrainLoop(settings, std::move(job)).run();
  }
};

TEST(Trainable, ReinforcementLearningUsesTheLoopWithBatchesOfItsOwn) {
  const auto folder = test::fresh_folder("trainable");
  Learning whole;
  EXPECT_EQ(whole.train(folder / "whole", 200, "none").step, 400);
  EXPECT_LT(whole.episodes.rewards.front(), -0.3);
  // What is left is the spread of actions.
  EXPECT_GT(whole.episodes.rewards.back(), -kSpread * kSpread - 0.1);
  EXPECT_EQ(whole.figures, (std::vector<std::string>{"validation/loss", "validation/reward"}));
  const auto content = weights::read_checkpoint(folder / "whole" / "last");
  EXPECT_EQ(parse_json<config::Json>(content.dataset_statistics).at("spread"), kSpread);

  // Stopped after 20 epochs and continued, it is the same training to the bit.
  Learning first, second;
  first.train(folder / "parts", 20, "none");
  second.train(folder / "parts", 200, "auto");
  const auto a = weights::module_state(*whole.model), b = weights::module_state(*second.model);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(same_bits(a[i].second, b[i].second)) << a[i].first;
}

}  // namespace
}  // namespace cohort::train
