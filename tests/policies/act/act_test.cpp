// ACT against lerobot 0.6.1 (make_act_fixtures.py), and what its reference has no word for.
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/random_context.h"
#include "policies/act/act_policy.h"
#include "policies/act/temporal_ensemble.h"
#include "policies/reference_weights.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kBatch = 3, kState = 5, kEnvironment = 4, kAction = 3, kHeight = 64, kWidth = 32;
// Our float32 against lerobot in float64: one pass forward, one back, ten steps.
constexpr double kOutputTolerance = 1e-5, kGradientTolerance = 1e-4, kRunTolerance = 1e-4;

nlohmann::ordered_json facts_of(const std::string& file) {
  return parse_json<nlohmann::ordered_json>(
      read_file(std::string(COHORT_SOURCE_DIR "/tests/policies/act/fixtures/") + file));
}

/// The networks of make_act_fixtures.py.
ActSettings settings_of(const std::string& name) {
  ActSettings s;
  s.action_width = kAction;
  s.dim_model = 32;
  s.n_heads = 4;
  s.dim_feedforward = 48;
  s.latent_dim = 8;
  s.dropout = 0;
  const ObservationSettings state{.name = "state", .shape = {kState}, .shares = ""};
  const auto camera = [](int i) {
    return ObservationSettings{.name = "camera " + std::to_string(i), .shape = {3, kHeight, kWidth}, .shares = ""};
  };
  if (name == "vectors") {
    s.observations = {state, {.name = "environment", .shape = {kEnvironment}, .shares = ""}};
    s.environment_state = {"environment"};
    s.chunk_size = s.n_action_steps = 10;
    s.n_encoder_layers = s.n_vae_encoder_layers = 2;
    return s;
  }
  s.chunk_size = 6;
  s.n_action_steps = 3;
  s.n_encoder_layers = s.n_vae_encoder_layers = 1;
  if (name == "cameras") {
    s.observations = {state, camera(0), camera(1)};
    return s;
  }
  s.observations = {camera(0)};
  s.n_decoder_layers = 2;
  s.use_vae = false;
  s.pre_norm = true;
  s.feedforward_activation = "gelu";
  return s;
}

std::shared_ptr<PolicyNetwork> network(const ActSettings& settings) {
  const auto policy = make_act_policy(settings, 1);
  fill(*policy);
  const at::NoGradGuard no_grad;
  for (const auto& item : policy->named_buffers()) {
    const std::string& name = item.key();
    if (name.ends_with("pos_enc")) continue;
    const bool around_one = name.ends_with("weight") || name.ends_with("running_var");
    item.value().copy_((around_one ? 1 : 0) + 0.1f * formula(name, item.value().sizes().vec()));
  }
  return policy;
}

struct Batch {
  Observations observations;
  at::Tensor actions, noise;
};

Batch batch_of(const ActSettings& s, const std::string& number) {
  Batch batch;
  for (const ObservationSettings& o : s.observations)
    batch.observations[o.name] = (o.is_camera() ? (formula(o.name + " " + number, {kBatch, 3, kHeight, kWidth}) + 1) / 2
                                                : formula(o.name + " " + number, {kBatch, o.shape[0]}))
                                     .unsqueeze(1);
  batch.actions = formula("action " + number, {kBatch, s.chunk_size, kAction});
  batch.noise = formula("noise " + number, {kBatch, s.latent_dim});
  at::Tensor valid = at::ones({kBatch, s.chunk_size}, at::kBool);
  valid[1].narrow(0, s.chunk_size - 3, 3).fill_(false);
  valid[2].narrow(0, 1, s.chunk_size - 1).fill_(false);
  batch.observations[kActionMaskObservation] = valid;
  return batch;
}

at::Tensor loss_of(const torch::nn::Module& policy, const Batch& batch) {
  return act_losses(policy, batch.observations, batch.actions, batch.noise).total;
}

class ActParity : public testing::TestWithParam<const char*> {};

TEST_P(ActParity, NamesLossesGradientsTenStepsAndChunksAreLeRobots) {
  const auto facts = facts_of("networks.json").at(GetParam());
  const ActSettings settings = settings_of(GetParam());
  const auto policy = network(settings);
  const auto state = state_of(*policy);
  EXPECT_EQ(state.size(), facts.at("names").size());
  for (const auto& [name, shape] : facts.at("names").items()) {
    ASSERT_TRUE(state.contains(name)) << name;
    EXPECT_EQ(state.at(name).sizes().vec(), shape.get<std::vector<std::int64_t>>()) << name;
  }
  const Batch batch = batch_of(settings, "0");
  const ActLosses losses = act_losses(*policy, batch.observations, batch.actions, batch.noise);
  const double loss = facts.at("loss");
  EXPECT_NEAR(losses.total.item<double>(), loss, kOutputTolerance * loss);
  EXPECT_NEAR(losses.l1.item<double>(), facts.at("parts").at("l1_loss").get<double>(), kOutputTolerance * loss);
  EXPECT_EQ(losses.kl.defined(), settings.use_vae);
  losses.total.backward();
  expect_gradients(*policy, facts.at("gradients"), kGradientTolerance);
  policy->eval();
  EXPECT_LE(relative_difference(act_chunk(*policy, batch.observations).flatten(), tensor_of(facts.at("chunk")), 1.0),
            kOutputTolerance);
  EXPECT_NEAR(loss_of(*policy, batch).item<double>(), facts.at("evaluation_loss").get<double>(),
              kOutputTolerance * facts.at("evaluation_loss").get<double>());
  policy->train();
  torch::optim::AdamW adam(policy->parameters(),
                           torch::optim::AdamWOptions(facts.at("learning_rate").get<double>()).weight_decay(1e-2));
  const auto run = facts.at("losses").get<std::vector<double>>();
  for (std::size_t step = 0; step < run.size(); ++step) {
    adam.zero_grad();
    const at::Tensor value = loss_of(*policy, batch_of(settings, std::to_string(step)));
    EXPECT_NEAR(value.item<double>(), run[step], kRunTolerance * run[step]) << step;
    value.backward();
    adam.step();
  }
  policy->eval();
  EXPECT_LE(
      relative_difference(act_chunk(*policy, batch.observations).flatten(), tensor_of(facts.at("trained_chunk")), 1.0),
      kRunTolerance);
}

INSTANTIATE_TEST_SUITE_P(LeRobot, ActParity, testing::Values("vectors", "cameras", "camera_alone"));

TEST(Act, DefaultNetworkHasLeRobotsParametersAndTensors) {
  const auto facts = facts_of("networks.json").at("default");
  ActSettings settings;
  settings.observations = {{.name = "state", .shape = {14}, .shares = ""},
                           {.name = "top", .shape = {3, 480, 640}, .shares = ""}};
  const auto policy = make_act_policy(settings, 1);
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : policy->parameters()) parameters += parameter.numel();
  EXPECT_EQ(parameters, 51613582);
  EXPECT_EQ(parameters, facts.at("parameters").get<std::int64_t>());
  const auto state = state_of(*policy);
  EXPECT_EQ(state.size(), 234u);
  for (const auto& [name, shape] : facts.at("names").items()) {
    ASSERT_TRUE(state.contains(name)) << name;
    EXPECT_EQ(state.at(name).sizes().vec(), shape.get<std::vector<std::int64_t>>()) << name;
  }
}

TEST(Act, PaddedRowsCountNeitherInTheEncoderNorInTheLoss) {
  const ActSettings settings = settings_of("vectors");
  const auto policy = network(settings);
  Batch batch = batch_of(settings, "0");
  const double loss = loss_of(*policy, batch).item<double>();
  batch.actions[2].narrow(0, 1, settings.chunk_size - 1).fill_(5.0);
  EXPECT_NEAR(loss_of(*policy, batch).item<double>(), loss, kOutputTolerance * loss);
  batch.actions[2][0].fill_(5.0);
  EXPECT_GT(std::abs(loss_of(*policy, batch).item<double>() - loss), 0.01);
}

TEST(Act, BytesAreColoursBetweenZeroAndOneAndStatisticsMayDifferByCamera) {
  ActSettings settings = settings_of("cameras");
  const at::Tensor bytes = (formula("bytes", {1, 1, kHeight, kWidth, 3}) * 127 + 128).to(at::kByte);
  Observations given{{"state", formula("state", {1, 1, kState})}};
  for (const char* camera : {"camera 0", "camera 1"}) given[camera] = bytes;
  Observations floats = given;
  floats["camera 1"] = (bytes.to(at::kFloat) / 255).permute({0, 1, 4, 2, 3});
  const auto policy = network(settings);
  policy->eval();
  EXPECT_LE(relative_difference(act_chunk(*policy, given), act_chunk(*policy, floats), 1.0), kOutputTolerance);
  // Twice as far from the mean by half the deviation, in the second camera alone.
  ActSettings apart = settings;
  apart.image_mean.insert(apart.image_mean.end(), {0.485, 0.456, 0.406});
  apart.image_std.insert(apart.image_std.end(), {0.1145, 0.112, 0.1125});
  const auto other = network(apart);
  other->eval();
  Observations nearer = given;
  const at::Tensor mean = torch::tensor({0.485f, 0.456f, 0.406f}).view({3, 1, 1});
  nearer["camera 1"] = (floats["camera 1"] - mean) / 2 + mean;
  EXPECT_LE(relative_difference(act_chunk(*other, nearer), act_chunk(*policy, given), 1.0), 1e-4);
  EXPECT_GT(relative_difference(act_chunk(*other, given), act_chunk(*policy, given), 1.0), 1e-3);
}

TEST(Act, LossOfABatchIsTheMeanOfItsHalvesWhateverIsDrawn) {
  ActSettings settings = settings_of("vectors");
  settings.dropout = 0.1;
  const auto policy = network(settings);
  const at::Tensor state = formula("state", {4, 1, kState}), environment = formula("environment", {4, 1, kEnvironment}),
                   actions = formula("actions", {4, settings.chunk_size, kAction});
  const auto loss = [&](std::int64_t first, std::int64_t count) {
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(70 + first, 70 + first + count)});
    return policy
        ->loss({{"state", state.narrow(0, first, count)}, {"environment", environment.narrow(0, first, count)}},
               actions.narrow(0, first, count))
        .item<double>();
  };
  EXPECT_NEAR(loss(0, 4), 0.5 * (loss(0, 2) + loss(2, 2)), 1e-4) << "as two ranks or replicas see it";
  EXPECT_GT(std::abs(loss(0, 2) - loss(2, 2)), 1e-3);
}

TEST(TemporalEnsemble, ActionsAreLeRobots) {
  const auto facts = facts_of("ensemble.json");
  const int rows = facts.at("rows");
  ActSettings settings = settings_of("vectors");
  const auto policy = network(settings);
  policy->eval();
  int step = 0;
  TemporalEnsemble control(*policy, rows, facts.at("coefficient"), [&](const Observations& seen) {
    return formula("chunk " + std::to_string(step), {1, rows, kAction})
        .expand({seen.at("state").size(0), rows, kAction});
  });
  const Observations frame{{"state", at::zeros({1, kState})}, {"environment", at::zeros({1, kEnvironment})}};
  for (int episode = 0; episode < 2; ++episode) {
    control.begin(4);
    for (step = 0; step < static_cast<int>(facts.at("actions").size()); ++step)
      EXPECT_LE(relative_difference(control.act({4}, frame).flatten(),
                                    tensor_of(facts.at("actions")[static_cast<std::size_t>(step)]), 1.0),
                1e-6)
          << step;
  }
}

TEST(Act, ActsByChunksOrByTheMeanOfAllChunks) {
  ActSettings settings = settings_of("vectors");
  settings.n_action_steps = 4;
  const auto chunks = network(settings);
  settings.n_action_steps = 1;
  settings.temporal_ensemble_coeff = 0.01;
  const auto mean = network(settings);
  for (const auto& policy : {chunks, mean}) policy->eval();
  const auto by_chunks = chunks->control(0), by_mean = mean->control(0);
  EXPECT_EQ(by_chunks->chunk(), 4);
  EXPECT_FALSE(by_chunks->remembers());
  EXPECT_TRUE(by_mean->remembers());
  const auto frame = [](const std::string& name, std::int64_t n) {
    return Observations{{"state", formula("state " + name, {n, kState})},
                        {"environment", formula("environment " + name, {n, kEnvironment})}};
  };
  std::vector<at::Tensor> first, second;
  for (int t = 0; t < 6; ++t) {
    first.push_back(by_chunks->act({1, 2}, frame(std::to_string(t), 2)));
    second.push_back(by_mean->act({1, 2}, frame(std::to_string(t), 2)));
  }
  EXPECT_LE(relative_difference(first[0], second[0], 1.0), kOutputTolerance) << "one chunk so far";
  const auto seen = frame("0", 2);
  const at::Tensor chunk = act_chunk(
      *chunks, {{"state", seen.at("state").unsqueeze(1)}, {"environment", seen.at("environment").unsqueeze(1)}});
  for (int t = 0; t < 4; ++t)
    EXPECT_LE(relative_difference(first[static_cast<std::size_t>(t)], chunk.select(1, t), 1.0), kOutputTolerance) << t;
  // Alone as beside another, bit for bit.
  const auto alone = mean->control(0);
  for (int t = 0; t < 6; ++t) {
    const Observations both = frame(std::to_string(t), 2);
    const at::Tensor action = alone->act(
        {2}, {{"state", both.at("state").narrow(0, 1, 1)}, {"environment", both.at("environment").narrow(0, 1, 1)}});
    EXPECT_TRUE(at::equal(action[0], second[static_cast<std::size_t>(t)][1])) << t;
  }
}

TEST(Act, WeightsOfTorchvisionsResNetBecomeTheBackbones) {
  const auto policy = make_act_policy(settings_of("cameras"), 1);
  weights::NamedTensors file;
  const std::string prefix = "model.backbone.";
  for (const auto& [name, tensor] : state_of(*policy))
    if (name.starts_with(prefix))
      file.emplace_back(name.substr(prefix.size()), formula("torchvision " + name, tensor.sizes().vec()));
  file.emplace_back("bn1.num_batches_tracked", at::zeros({}, at::kLong));
  file.emplace_back("fc.weight", at::zeros({1000, 512}));
  policies::load_backbones(*policy, file, "resnet18.safetensors");
  const auto state = state_of(*policy);
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer4.1.bn2.bias", "layer2.0.downsample.1.weight"})
    EXPECT_TRUE(at::equal(state.at(prefix + name),
                          formula("torchvision " + prefix + name, state.at(prefix + name).sizes().vec())))
        << name;
}

TEST(Act, SettingsThatCannotBeAreRefusedByName) {
  const auto message = [](const auto& change) {
    ActSettings settings = settings_of("cameras");
    change(settings);
    return message_of([&] { make_act_policy(settings, 1); });
  };
  EXPECT_EQ(message([](ActSettings& s) { s.n_action_steps = 7; }),
            "n_action_steps = 7, but a chunk has chunk_size = 6 actions: lower the first or raise the second");
  EXPECT_EQ(message([](ActSettings& s) { s.temporal_ensemble_coeff = 0.01; }),
            "n_action_steps = 3, but temporal ensembling draws a chunk at every step: set n_action_steps=1, or "
            "temporal_ensemble_coeff=null");
  EXPECT_EQ(message([](ActSettings& s) { s.dim_model = 30; }),
            "dim_model = 30, but must be a multiple of 4 and of n_heads = 4");
  EXPECT_EQ(message([](ActSettings& s) {
              s.image_std = {1, 1};
            }),
            "image_std has 2 numbers, but must have 3, or 3 for each of 2 cameras");
  EXPECT_EQ(message([](ActSettings& s) { s.environment_state = {"object"}; }),
            "environment_state names object, but the policy sees the vectors state");
}

}  // namespace
}  // namespace cohort::models
