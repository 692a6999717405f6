// What the training loop offers every job, with diffusion policies and ACT: accumulation, gradient checkpointing, half
// precision, learning-rate rules, channels_last. Cameras with jitter and crops, a transformer with dropout, and ACT.
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "models/convolution.h"
#include "models/random_context.h"
#include "models/segment.h"
#include "train/gradient_checkpoint.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/ready_policy.h"
#include "train/step_graph.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

// Means and gradients of float32 values in another order, over five steps of Adam.
constexpr double kOrderOfSums = 1e-5;
/// How a difference in rounding may grow from one step of the optimizer to the next. Seen: below 1e-5 in the second
/// step, 3.4e-5 in the third, with channels last on a processor without AVX-512.
constexpr double kGrowthOfRounding = 3;
// bf16 has 8 bits, so that a prediction is off by about 2^-8 of its size and the mean of its squared errors by a few of
// these; fp16 has 11 bits.
constexpr double kBf16Tolerance = 0.03, kFp16Tolerance = 0.01;
constexpr std::int64_t kSteps = 5;  // an epoch of 20 windows in batches of 4

/// With a camera through ResNet-18, jitter and crops.
std::vector<std::string> with_camera(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = small_diffusion();
  for (const char* text :
       {"data.images=observation/image", "data.image_transforms=[\"resize(32, 32)\"]", "model.rgb=camera",
        "model.images.core.backbone_class=ResNet18Conv", "model.images.core.feature_dimension=8",
        "model.images.color.enabled=true", "model.images.crop.enabled=true", "model.images.crop.crop_height=28",
        "model.images.crop.crop_width=28"})
    overrides.emplace_back(text);
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

std::vector<std::string> with_transformer(std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = small_diffusion();
  for (const char* text : {"model.diffusion.network=transformer", "model.diffusion.transformer.n_layer=2",
                           "model.diffusion.transformer.n_head=2", "model.diffusion.transformer.n_emb=16",
                           "model.diffusion.transformer.n_cond_layers=1", "model.diffusion.transformer.p_drop_emb=0.1",
                           "model.diffusion.transformer.p_drop_attn=0.3"})
    overrides.emplace_back(text);
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

/// ACT with dropout and the autoencoder, and one camera if asked for. Whole chunks only: where rows are padded, each
/// share of a batch has a mean of its own, over the rows that count in it (LeRobot's under Accelerate, too).
std::vector<std::string> with_act(bool camera, std::vector<std::string> more = {}) {
  std::vector<std::string> overrides = small_diffusion();
  for (const char* text :
       {"model.algorithm=act", "data.pad_after=drop", "model.act.chunk_size=3", "model.act.n_action_steps=3",
        "model.act.dim_model=16", "model.act.n_heads=2", "model.act.dim_feedforward=32", "model.act.latent_dim=4",
        "model.act.n_encoder_layers=2", "model.act.n_vae_encoder_layers=1", "data.samples_per_epoch=20"})
    overrides.emplace_back(text);
  if (camera)
    for (const char* text :
         {"data.images=observation/image", "data.image_transforms=[\"resize(32, 32)\"]", "model.rgb=camera"})
      overrides.emplace_back(text);
  overrides.insert(overrides.end(), more.begin(), more.end());
  return overrides;
}

struct Trained {
  std::vector<StepStats> reports;
  TrainResult result;
  std::shared_ptr<torch::nn::Module> model;
};

/// A device's graph as the CPU can have it: what was recorded, run again.
class Replayed final : public dist::DeviceGraph {
 public:
  struct Calls {
    int warm_ups = 0, recordings = 0, replays = 0;
  };
  explicit Replayed(Calls& calls) : calls_(calls) {}
  void warm_up(const std::function<void()>& work) override {
    ++calls_.warm_ups;
    work();
  }
  void record(const std::function<void()>& work) override {
    ++calls_.recordings;
    recorded_ = work;
  }
  void replay() override {
    ++calls_.replays;
    recorded_();
  }

 private:
  Calls& calls_;
  std::function<void()> recorded_;
};

/// A training of kSteps steps in batches of `batch`, with settings as a command line gives them. With `calls`, steps
/// are recorded as a graph if they can be.
Trained train(std::vector<std::string> overrides, std::int64_t batch = 4, Replayed::Calls* calls = nullptr) {
  for (const std::string& text : {format("train.steps={}", kSteps), format("train.batch_size={}", batch),
                                  std::string("train.lr=1e-4"), std::string("train.log_every=1")})
    overrides.insert(overrides.begin(), text);
  ReadyPolicy ready(overrides);
  ready.job->load();
  Trained trained;
  const TrainSettings& settings = ready.settings.train;
  trained.model = ready.job->make_model(settings.seed);
  PlainStrategy strategy(trained.model);
  LoaderSource source(ready.job->dataset(Part::kTrain), {.drop_last = true, .seed = settings.seed},
                      {.batch_size = batch, .workers = 0, .drop_last = true}, host_allocator());
  TrainJob job{
      .strategy = &strategy,
      .loss = [&](torch::nn::Module& model, const parallel::Batch& samples) { return ready.job->loss(model, samples); },
      .batches = &source};
  job.step_observers.push_back([&](const StepStats& stats) { trained.reports.push_back(stats); });
  if (calls) job.make_graph = [calls] { return std::make_unique<Replayed>(*calls); };
  trained.result = TrainLoop(settings, std::move(job)).run();
  return trained;
}

/// Within `tolerance` at the first step, and `growth` times more at each later one: the optimizer divides small
/// gradients by their own size, so that what was rounding in one step is more in the next. How much depends on the
/// processor.
void expect_losses(const Trained& run, const Trained& expected, double tolerance, double growth = 1) {
  ASSERT_EQ(expected.reports.size(), static_cast<std::size_t>(kSteps));
  ASSERT_EQ(run.reports.size(), expected.reports.size());
  for (std::size_t i = 0; i < run.reports.size(); ++i) {
    EXPECT_TRUE(std::isfinite(expected.reports[i].loss));
    EXPECT_NEAR(run.reports[i].loss, expected.reports[i].loss, tolerance * expected.reports[i].loss)
        << "step " << i + 1;
    tolerance *= growth;
  }
}

bool same_weights(const Trained& a, const Trained& b) {
  const auto one = a.model->parameters(), two = b.model->parameters();
  bool same = one.size() == two.size() && !one.empty();
  for (std::size_t i = 0; same && i < one.size(); ++i) same = same_bits(one[i], two[i]);
  return same;
}

TEST(PolicyTraining, StepsReplayedAsAGraphAreTheStepsThatWereNot) {
  for (auto policy : {small_diffusion(), with_camera({"model.images.color.enabled=false"})}) {
    for (const char* text : {"train.schedule=cosine", "train.clip_norm=0.5", "train.ema.enabled=true"})
      policy.emplace_back(text);
    const Trained plain = train(policy);
    policy.emplace_back("train.cuda_graph=true");
    Replayed::Calls calls;
    const Trained replayed = train(policy, 4, &calls);
    EXPECT_EQ(calls.warm_ups, StepGraph::kWarmUps);
    EXPECT_EQ(calls.recordings, 1);
    EXPECT_EQ(calls.replays, kSteps - StepGraph::kWarmUps);
    expect_losses(replayed, plain, 0.0);
    EXPECT_TRUE(same_weights(replayed, plain));
    EXPECT_NE(plain.reports[3].loss, plain.reports[4].loss);
  }
}

TEST(PolicyTraining, WhatNoGraphCanRecordIsTrainedWithoutOne) {
  for (auto policy : {with_camera(), with_transformer()}) {  // colour jitter, dropout
    const Trained plain = train(policy);
    policy.emplace_back("train.cuda_graph=true");
    Replayed::Calls calls;
    const Trained other = train(policy, 4, &calls);
    EXPECT_EQ(calls.warm_ups, 1);
    EXPECT_EQ(calls.recordings, 0);
    expect_losses(other, plain, 0.0);
    EXPECT_TRUE(same_weights(other, plain));
    policy.emplace_back("train.gradient_accumulation_steps=2");
    train(policy, 2, &calls);
    EXPECT_EQ(calls.warm_ups, 1) << "accumulation is not recorded";
  }
}

TEST(StepGraph, ABatchOfAnotherShapeIsLeftToTheCaller) {
  Replayed::Calls calls;
  double sum = 0, rate = 0;
  StepGraph graph(std::make_unique<Replayed>(calls), c10::kCPU,
                  [&](const parallel::Batch& batch, const at::Tensor& lr) {
                    sum = batch.at("x").sum().item<double>();
                    rate = lr.item<double>();
                  });
  const auto batch = [](std::int64_t samples, float value) {
    parallel::Batch made;
    made.add("x", torch::full({samples, 3}, value));
    made.sample_ids = torch::arange(samples);
    return made;
  };
  for (int i = 0; i < 6; ++i) {
    EXPECT_TRUE(graph.step(batch(4, static_cast<float>(i)), 0.1 * i, {}));
    EXPECT_EQ(sum, 12.0 * i);
    EXPECT_EQ(rate, 0.1 * i);
  }
  sum = -1;
  EXPECT_FALSE(graph.step(batch(3, 1.0f), 0.1, {}));
  EXPECT_EQ(sum, -1) << "nothing is done";
  EXPECT_TRUE(graph.step(batch(4, 7.0f), 0.1, {})) << "and the graph stays";
  EXPECT_EQ(sum, 84.0);
  EXPECT_EQ(calls.replays, 4);
}

TEST(PolicyTraining, TwoAccumulatedHalvesAreOneBatch) {
  for (const auto& policy : {with_camera(), with_transformer(), with_act(true)}) {
    const Trained whole = train(policy);
    std::vector<std::string> halves = policy;
    halves.emplace_back("train.gradient_accumulation_steps=2");
    expect_losses(train(halves, 2), whole, kOrderOfSums, kGrowthOfRounding);
    EXPECT_NE(whole.reports[0].loss, whole.reports[4].loss);
  }
}

/// A segment's gradients are added up before they meet those of other users of its inputs; in half precision, casts
/// that autocast keeps add to it.
TEST(PolicyTraining, GradientCheckpointingChangesTheOrderOfSumsOnly) {
  const std::map<std::string, double> tolerances{{"fp32", kOrderOfSums}, {"bf16", 1e-3}};
  for (const auto& [precision, tolerance] : tolerances) {
    // Channels last: otherwise a processor without bf16 arithmetic takes a minute for its convolutions.
    for (const auto& policy :
         {with_camera({format("train.precision={}", precision), "model.images.channels_last=true"}),
          with_transformer({format("train.precision={}", precision)}),
          with_act(false, {format("train.precision={}", precision)})}) {
      const Trained plain = train(policy);
      std::vector<std::string> checkpointed = policy;
      checkpointed.emplace_back("train.gradient_checkpointing=true");
      expect_losses(train(checkpointed), plain, tolerance, kGrowthOfRounding);
    }
  }
}

/// The paths of the parts that gradient checkpointing computes twice.
std::set<std::string> segments_of(const std::vector<std::string>& overrides) {
  ReadyPolicy ready(overrides);
  ready.job->load();
  const auto model = ready.job->make_model(1);
  const parallel::Batch batch = ready.batch(Part::kTrain, 2);
  std::set<std::string> found;
  const models::RandomContextGuard context({.seed = 1, .step = 0, .sample_ids = batch.sample_ids});
  const models::SegmentRunnerGuard runner(
      [&](const torch::nn::Module& part, const models::Segment& segment, const std::vector<at::Tensor>& inputs) {
        for (const auto& item : model->named_modules())
          if (item.value().get() == &part) found.insert(item.key());
        return checkpointing_runner()(part, segment, inputs);
      });
  ready.job->loss(*model, batch).backward();
  return found;
}

TEST(PolicyTraining, GradientCheckpointingCoversTrunkUnetAndTransformer) {
  std::set<std::string> expected;
  const std::string trunk = "policy.obs_encoder.nets.obs.obs_nets.camera.backbone.nets.";
  for (int group = 4; group < 8; ++group)
    for (int block = 0; block < 2; ++block) expected.insert(format("{}{}.{}", trunk, group, block));
  for (const char* part : {"mid_modules.0", "mid_modules.1", "down_modules.0.0", "down_modules.0.1", "down_modules.1.0",
                           "down_modules.1.1", "up_modules.0.0", "up_modules.0.1"})
    expected.insert(std::string("policy.noise_pred_net.") + part);
  EXPECT_EQ(segments_of(with_camera()), expected);
  expected.clear();
  for (const char* part : {"encoder.layers.0", "decoder.layers.0", "decoder.layers.1"})
    expected.insert(std::string("policy.noise_pred_net.") + part);
  EXPECT_EQ(segments_of(with_transformer()), expected);
}

TEST(PolicyTraining, Bf16FollowsFp32) {
  for (const auto& policy : {with_camera(), with_transformer(), with_act(false)}) {
    const Trained full = train(policy);
    std::vector<std::string> half = policy;
    half.emplace_back("train.precision=bf16");
    const Trained low = train(half);
    expect_losses(low, full, kBf16Tolerance);
    EXPECT_NE(low.reports[0].loss, full.reports[0].loss) << "another precision";
    for (const at::Tensor& weight : low.model->parameters()) ASSERT_EQ(weight.scalar_type(), at::kFloat);
  }
}

TEST(PolicyTraining, Bf16ReachesTheConvolutions) {
  const at::NoGradGuard no_grad;
  for (const int dimensions : {1, 2}) {
    for (const bool transposed : {false, true}) {
      if (transposed && dimensions == 2) continue;  // no network has these
      const models::Convolution layer(dimensions, {.in = 2, .out = 3, .kernel = 3, .transposed = transposed});
      const PrecisionGuard bf16(Precision::kBf16, c10::kCPU);
      const at::Tensor x = dimensions == 1 ? at::zeros({1, 2, 8}) : at::zeros({1, 2, 8, 8});
      EXPECT_EQ(layer.forward(x).scalar_type(), at::kBFloat16) << dimensions;
    }
  }
}

TEST(PolicyTraining, Fp16FollowsFp32AndRecoversFromOverflow) {
  // Without a camera: a processor without fp16 arithmetic is slow at its convolutions.
  for (const auto& policy : {small_diffusion(), with_transformer(), with_act(false)}) {
    const Trained full = train(policy);
    std::vector<std::string> half = policy;
    half.emplace_back("train.precision=fp16");
    half.emplace_back("train.scaler.init_scale=256");
    const Trained low = train(half);
    EXPECT_EQ(low.result.skipped_steps, 0);
    expect_losses(low, full, kFp16Tolerance);
    // A factor that no gradient survives: the first steps change nothing, then training goes on.
    half.back() = "train.scaler.init_scale=1e12";
    half.emplace_back("train.scaler.backoff_factor=1e-4");
    const Trained recovered = train(half);
    EXPECT_GE(recovered.result.skipped_steps, 1);
    EXPECT_LT(recovered.result.skipped_steps, kSteps);
    EXPECT_LT(recovered.reports.back().loss_scale, 1e12);
    for (const at::Tensor& weight : recovered.model->parameters()) ASSERT_TRUE(weight.isfinite().all().item<bool>());
    EXPECT_FALSE(same_weights(recovered, low));
  }
}

TEST(PolicyTraining, Fp16TrainsPoliciesWithAMemory) {
  for (const char* type : {"LSTM", "GRU"}) {
    SCOPED_TRACE(type);
    std::vector<std::string> memory = small_diffusion();
    for (const std::string& text : {std::string("model.algorithm=bc"), std::string("model.bc.actor_layer_dims=16"),
                                    std::string("model.bc.rnn.enabled=true"), std::string("model.bc.rnn.horizon=3"),
                                    std::string("model.bc.rnn.hidden_dim=8"), format("model.bc.rnn.rnn_type={}", type)})
      memory.push_back(text);
    const Trained full = train(memory);
    memory.emplace_back("train.precision=fp16");
    memory.emplace_back("train.scaler.init_scale=256");
    const Trained low = train(memory);
    EXPECT_EQ(low.result.skipped_steps, 0);
    expect_losses(low, full, kFp16Tolerance);
    EXPECT_NE(low.reports[0].loss, full.reports[0].loss) << "the layers behind the memory are in fp16";
  }
}

TEST(PolicyTraining, LearningRateRulesAndSchedulesHold) {
  const auto rates = [](const std::vector<std::string>& more) {
    std::vector<std::string> overrides = small_diffusion();
    overrides.insert(overrides.end(), more.begin(), more.end());
    std::vector<double> found;
    for (const StepStats& stats : train(overrides).reports) found.push_back(stats.lr);
    return found;
  };
  const std::vector<double> constant(kSteps, 1e-4), linear(kSteps, 4e-4), root(kSteps, 2e-4);
  EXPECT_EQ(rates({}), constant);
  EXPECT_EQ(rates({"train.learning_rate_rule=linear", "train.lr_base_batch=1"}), linear);
  EXPECT_EQ(rates({"train.learning_rate_rule=sqrt", "train.lr_base_batch=1"}), root);
  const std::vector<double> steps = rates({"train.schedule=multistep", "train.milestones=2,4", "train.gamma=0.1"});
  for (std::size_t i = 0; i < steps.size(); ++i)
    EXPECT_NEAR(steps[i], 1e-4 * std::pow(0.1, static_cast<double>(i / 2)), 1e-12) << i;
}

TEST(PolicyTraining, ChannelsLastGivesTheSameLosses) {
  const Trained plain = train(with_camera()), last = train(with_camera({"model.images.channels_last=true"}));
  expect_losses(last, plain, kOrderOfSums, kGrowthOfRounding);
  int convolutions = 0;
  for (const auto& item : last.model->named_parameters()) {
    if (item.value().dim() != 4) continue;
    ++convolutions;
    EXPECT_TRUE(item.value().is_contiguous(at::MemoryFormat::ChannelsLast)) << item.key() << " after training";
  }
  EXPECT_EQ(convolutions, 20) << "ResNet-18's";
  expect_losses(train(with_camera({"model.images.channels_last=true", "train.precision=bf16"})), plain, kBf16Tolerance);
}

}  // namespace
}  // namespace cohort::train
