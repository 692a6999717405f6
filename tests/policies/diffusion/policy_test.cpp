// Whole policies against the reference packages: a training run, a chunk of actions, behaviour cloning; and acting.
#include <set>

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/optim/adamw.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/receding_horizon.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/diffusion/reference_run.h"
#include "policies/weight_names.h"
#include "weights/foreign_weights.h"

namespace cohort::models {
namespace {

// One forward pass in float32 against float64.
constexpr double kPolicyTolerance = 2e-5;
constexpr double kPolicyGradientTolerance = 1e-4;

/// The policy of make_policy_fixtures.py.
DiffusionPolicySettings small_policy() {
  DiffusionPolicySettings settings;
  settings.action_width = kWidth;
  settings.noise_samples = 2;
  settings.encoder.observations = {{"state", {kState}, ""}};
  settings.encoder.combine = true;
  settings.unet.down_dims = {16, 32};
  settings.unet.diffusion_step_embed_dim = 32;
  return settings;
}

at::Tensor ids(std::int64_t first, std::int64_t count) {
  return at::arange(first, first + count);
}

TEST(DiffusionPolicy, HundredTrainingStepsAndTheActionsAfterThemAreTheReferences) {
  const auto facts = read_facts("policy");
  const auto policy = make_diffusion_policy(small_policy(), 1);
  std::vector<std::string> names;
  for (const auto& item : policy->named_parameters()) names.push_back(item.key());
  EXPECT_EQ(names, facts.at("names").get<std::vector<std::string>>());
  expect_reference_losses(*policy, facts);
  policy->eval();
  const at::Tensor chunk = sample_actions(*policy, {{"state", formula("state to act on", {1, 2, kState})}},
                                          {{.seed = facts.at("seed").get<std::uint64_t>(), .id = 3, .count = 2}});
  const at::Tensor actions = executed_part(*policy, chunk);
  EXPECT_EQ(actions.sizes().vec(), (std::vector<std::int64_t>{1, 8, kWidth}));
  // Ten network calls after a hundred steps of training.
  EXPECT_LE(relative_difference(actions.flatten(), tensor_of(facts.at("actions")), 1.0), 1e-3);
}

/// Two cameras through one ResNet-18 with a spatial softmax, and the state.
TEST(DiffusionPolicy, GradientsAndStepsOfAdamWWithCamerasAreTheReferences) {
  const auto facts = read_facts("policy_pictures");
  const std::vector<std::string> cameras{"camera/image/varied_camera_1_left_image",
                                         "camera/image/varied_camera_2_left_image"};
  DiffusionPolicySettings settings = small_policy();
  settings.encoder.observations = {
      {cameras[0], {3, 64, 64}, ""}, {"state", {kState}, ""}, {cameras[1], {3, 64, 64}, ""}};
  share_cameras(settings.encoder.observations, "camera/image/varied_camera");
  settings.encoder.core.backbone_class = "ResNet18Conv";
  settings.encoder.core.feature_dimension = 16;
  settings.encoder.core.pool_class = "SpatialSoftmax";
  settings.encoder.core.pool.num_kp = 8;
  const auto policy = make_diffusion_policy(settings, 1);
  fill(*policy);
  std::int64_t parameters = 0;
  for (const at::Tensor& parameter : policy->parameters()) parameters += parameter.numel();
  EXPECT_EQ(parameters, facts.at("parameters").get<std::int64_t>());
  torch::optim::AdamW adam(policy->parameters(), torch::optim::AdamWOptions(facts.at("learning_rate").get<double>())
                                                     .weight_decay(facts.at("weight_decay").get<double>()));
  const std::int64_t batch = facts.at("batch");
  const auto losses = facts.at("losses").get<std::vector<double>>();
  ASSERT_EQ(losses.size(), 3u);
  for (std::size_t step = 0; step < losses.size(); ++step) {
    const std::string number = " " + std::to_string(step);
    Observations seen{{"state", formula("state" + number, {batch, 2, kState})}};
    for (const std::string& camera : cameras) seen[camera] = (formula(camera + number, {batch, 2, 3, 64, 64}) + 1) / 2;
    const RandomContextGuard guard({.seed = facts.at("seed").get<std::uint64_t>(),
                                    .step = step,
                                    .sample_ids = ids(static_cast<std::int64_t>(step) * batch, batch)});
    adam.zero_grad();
    const at::Tensor loss = diffusion_loss(*policy, seen, formula("actions" + number, {batch, kChunk, kWidth}));
    EXPECT_NEAR(loss.item<double>(), losses[step], (step == 0 ? kPolicyTolerance : kRunTolerance) * losses[step])
        << "step " << step;
    loss.backward();
    if (step == 0) expect_gradients(*policy, facts.at("gradients"), kPolicyGradientTolerance);
    adam.step();
  }
}

TEST(DiffusionPolicy, LossOfABatchIsTheMeanOfItsHalves) {
  const auto policy = make_diffusion_policy(small_policy(), 1);
  const at::Tensor state = formula("state", {4, 2, kState}), actions = formula("actions", {4, kChunk, kWidth});
  const auto loss = [&](std::int64_t first, std::int64_t count) {
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = ids(70 + first, count)});
    return diffusion_loss(*policy, {{"state", state.narrow(0, first, count)}}, actions.narrow(0, first, count))
        .item<double>();
  };
  EXPECT_NEAR(loss(0, 4), 0.5 * (loss(0, 2) + loss(2, 2)), 1e-6) << "as two ranks or replicas see it";
  EXPECT_GT(std::abs(loss(0, 2) - loss(2, 2)), 1e-4);
}

TEST(DiffusionPolicy, TrainsWithTheTransformerAndItsDropout) {
  DiffusionPolicySettings settings = small_policy();
  settings.network = "transformer";
  settings.transformer = {.n_layer = 1, .n_head = 2, .n_emb = 16, .p_drop_emb = 0.1, .p_drop_attn = 0.1};
  const auto policy = make_diffusion_policy(settings, 1);
  const at::Tensor state = formula("state", {2, 2, kState}), actions = formula("actions", {2, kChunk, kWidth});
  const auto loss = [&](std::int64_t first, std::int64_t count) {
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = ids(first, count)});
    return diffusion_loss(*policy, {{"state", state.narrow(0, first, count)}}, actions.narrow(0, first, count));
  };
  EXPECT_NEAR(loss(0, 2).item<double>(), 0.5 * (loss(0, 1) + loss(1, 1)).item<double>(), 1e-6)
      << "dropout masks belong to the sample and the noise draw";
  loss(0, 2).backward();
  for (const auto& item : policy->named_parameters()) EXPECT_TRUE(item.value().grad().defined()) << item.key();
}

TEST(DiffusionPolicy, SamplesAreAFunctionOfTheirKeyInAnyBatchAndWithAnySampler) {
  const auto policy = make_diffusion_policy(small_policy(), 1);
  policy->eval();
  const at::Tensor state = formula("state", {3, 2, kState});
  for (const char* kind : {"ddim", "ddpm", "dpm_solver++"}) {
    SamplerSettings sampler;
    sampler.kind = kind;
    sampler.num_inference_timesteps = 5;
    const auto run = [&](std::int64_t first, const std::vector<SamplingKey>& keys) {
      return sample_actions(*policy, {{"state", state.narrow(0, first, static_cast<std::int64_t>(keys.size()))}}, keys,
                            sampler);
    };
    const at::Tensor all = run(0, {{1, 10, 0}, {1, 11, 0}, {1, 12, 4}});
    EXPECT_EQ(all.sizes().vec(), (std::vector<std::int64_t>{3, kChunk, kWidth}));
    EXPECT_LE(relative_difference(run(1, {{1, 11, 0}})[0], all[1], 1.0), kPolicyTolerance) << kind;
    EXPECT_TRUE(at::equal(run(0, {{1, 10, 0}, {1, 11, 0}, {1, 12, 4}}), all));
    EXPECT_GT((run(1, {{1, 11, 1}})[0] - all[1]).abs().max().item<double>(), 1e-3) << "another chunk, other noise";
    EXPECT_FALSE(all.requires_grad());
  }
}

TEST(RecedingHorizon, ExecutesChunksAndKeepsEnvironmentsApart) {
  DiffusionPolicySettings settings = small_policy();
  settings.horizon.action_horizon = 3;
  const auto policy = make_diffusion_policy(settings, 1);
  policy->eval();
  const auto frame = [](const std::string& name, std::int64_t n) {
    return Observations{{"state", formula(name, {n, kState})}};
  };
  RecedingHorizon both(chunk_source(*policy), 5), alone(chunk_source(*policy), 5);
  std::vector<at::Tensor> actions;
  for (int t = 0; t < 7; ++t) {
    if (t == 4) both.begin(21);  // one episode ends
    const Observations seen = frame("frame " + std::to_string(t), 2);
    actions.push_back(both.act({20, 21}, seen));
    const at::Tensor single = alone.act({20}, {{"state", seen.at("state").narrow(0, 0, 1)}});
    EXPECT_LE(relative_difference(single[0], actions.back()[0], 1.0), kPolicyTolerance) << t;
  }
  // Environment 20 draws at frames 0, 3 and 6; 21 at 0 and 3, and at 4 as its second episode begins.
  EXPECT_EQ(alone.chunks(), 3u);
  EXPECT_EQ(both.chunks(), 3u + 3u);
  // The second chunk of environment 20 comes from frames 2 and 3, by its second key.
  const at::Tensor window =
      at::stack({formula("frame 2", {2, kState})[0], formula("frame 3", {2, kState})[0]}).unsqueeze(0);
  const at::Tensor chunk = executed_part(*policy, sample_actions(*policy, {{"state", window}}, {{5, 20, 1}}))[0];
  for (int t = 3; t < 6; ++t)
    EXPECT_LE(relative_difference(actions[static_cast<std::size_t>(t)][0], chunk[t - 3], 1.0), kPolicyTolerance) << t;
  // At the start of an episode the first frame stands for those before it.
  const at::Tensor first = formula("frame 4", {2, kState})[1];
  const at::Tensor begun = executed_part(
      *policy, sample_actions(*policy, {{"state", at::stack({first, first}).unsqueeze(0)}}, {{5, 21, 0}}))[0];
  EXPECT_LE(relative_difference(actions[4][1], begun[0], 1.0), kPolicyTolerance);
  policy->train();
  EXPECT_NE(message_of([&] { both.act({20}, frame("x", 1)); }).find("evaluation mode"), std::string::npos);
}

TEST(RecedingHorizon, AnEpisodeThatIsPlayedAgainIsTheSame) {
  const auto policy = make_diffusion_policy(small_policy(), 1);
  policy->eval();
  RecedingHorizon control(chunk_source(*policy), 5);
  std::vector<at::Tensor> actions[2];
  for (std::vector<at::Tensor>& episode : actions) {
    control.begin(21);
    for (int t = 0; t < 5; ++t)
      episode.push_back(control.act({21}, {{"state", formula("frame " + std::to_string(t), {1, kState})}}));
  }
  for (std::size_t t = 0; t < actions[0].size(); ++t) EXPECT_TRUE(at::equal(actions[0][t], actions[1][t])) << t;
}

TEST(RecedingHorizon, AfterAFrameThatItRefusedItGoesOnAsIfThereHadBeenNone) {
  const auto policy = make_diffusion_policy(small_policy(), 1);
  policy->eval();
  RecedingHorizon disturbed(chunk_source(*policy), 5), plain(chunk_source(*policy), 5);
  for (int t = 0; t < 10; ++t) {  // a chunk of eight and the next
    EXPECT_EQ(message_of([&] { disturbed.act({3}, {}); }), "observation state is missing");
    EXPECT_EQ(message_of([&] {
                disturbed.act({3}, {{"state", at::zeros({2, kState})}});
              }),
              "observation state is of 2 environments, but 1 are to act");
    EXPECT_EQ(message_of([&] {
                disturbed.act({3}, {{"state", at::zeros({1, kState + 1})}});
              }),
              format("observation state has shape [1, {}], but must be [1, {}]", kState + 1, kState));
    const Observations frame{{"state", formula("frame " + std::to_string(t), {1, kState})}};
    EXPECT_TRUE(at::equal(disturbed.act({3}, frame), plain.act({3}, frame))) << t;
  }
  EXPECT_EQ(disturbed.chunks(), 2u);
}

TEST(DiffusionPolicy, NamesWhatIsWrong) {
  DiffusionPolicySettings settings = small_policy();
  settings.horizon.action_horizon = 16;
  EXPECT_EQ(message_of([&] { make_diffusion_policy(settings, 1); }),
            "diffusion policy: prediction_horizon = 16, but 16 actions are executed from row 1 on");
  const auto policy = make_diffusion_policy(small_policy(), 1);
  const RandomContextGuard guard({.seed = 1, .step = 0});
  EXPECT_EQ(message_of([&] {
              diffusion_loss(*policy, {{"state", at::zeros({2, 2, kState})}}, at::zeros({2, kChunk, 4}));
            }),
            "actions have shape [2, 16, 4], but must be (samples, 16, 3): prediction_horizon rows of actions");
}

TEST(WeightNames, AreThoseOfTheReferencesCheckpoint) {
  DiffusionPolicySettings settings = small_policy();
  settings.encoder.observations = {{"camera/image/varied_camera_1_left_image", {3, 64, 64}, ""},
                                   {"state", {kState}, ""},
                                   {"camera/image/varied_camera_2_left_image", {3, 64, 64}, ""}};
  share_cameras(settings.encoder.observations, "camera/image/varied_camera");
  settings.encoder.core = {.backbone_class = "ResNet18Conv", .pool_class = "SpatialSoftmax", .feature_dimension = 16};
  settings.encoder.core.pool.num_kp = 8;
  const auto policy = make_diffusion_policy(settings, 1);
  const auto expected = read_facts("policy").at("checkpoint_keys").get<std::vector<std::string>>();
  const auto keys = policies::reference_keys(*policy);
  std::vector<std::string> ours;
  for (const auto& [key, name] : keys) ours.push_back(key);
  EXPECT_EQ(ours, expected);
  const auto state = state_of(*policy);
  std::set<std::string> reached;
  for (const auto& [key, name] : keys) {
    EXPECT_TRUE(state.contains(name)) << name;
    EXPECT_EQ(policies::own_name(*policy, key), name);
    // A checkpoint of a policy without DataParallel.
    EXPECT_EQ(policies::own_name(*policy, weights::without_wrappers(key)), name);
    reached.insert(name);
  }
  EXPECT_EQ(reached.size(), state.size()) << "every tensor of ours is in their file";
  EXPECT_EQ(policies::own_name(*policy, "policy.obs_encoder.module.surprise"), "");
  // Ours has every tensor once, theirs up to four times.
  EXPECT_EQ(
      policies::repeats_of(
          *policy, "policy.obs_encoder.nets.obs.obs_nets.camera/image/varied_camera_1_left_image.pool.nets.weight")
          .size(),
      4u);
}

class BcParity : public ::testing::TestWithParam<std::string> {};

TEST_P(BcParity, LossGradientsAndActionsAreRobomimics) {
  const auto facts = read_facts("bc").at(GetParam());
  BcSettings settings;
  config::Fields fields;
  describe(fields, settings);
  for (const auto& [path, value] : facts.at("case").items())
    fields.apply_override(path + "=" + (value.is_string() ? value.get<std::string>() : json_text(value)));
  settings.encoder.observations = {{"eef", {3}, ""}, {"gripper", {2}, ""}};
  const auto policy = make_bc_policy(settings, 1);
  fill(*policy);
  const at::Tensor loss =
      bc_loss(*policy, {{"eef", formula("eef", {3, 4, 3})}, {"gripper", formula("gripper", {3, 4, 2})}},
              formula("actions", {3, 4, 7}, 0.9));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(),
              kPolicyTolerance * std::abs(facts.at("loss").get<double>()));
  loss.backward();
  expect_gradients(*policy, facts.at("gradients"), kPolicyGradientTolerance);
  policy->eval();
  if (settings.gmm.enabled) return;
  BcControl control(*policy, 1);
  std::vector<at::Tensor> actions;
  for (int t = 0; t < 12; ++t) {
    const std::string step = " " + std::to_string(t);
    actions.push_back(
        control.act({4, 9}, {{"eef", formula("eef" + step, {2, 3})}, {"gripper", formula("gripper" + step, {2, 2})}}));
  }
  EXPECT_LE(relative_difference(at::stack(actions).flatten(), tensor_of(facts.at("actions")), 1.0), kPolicyTolerance);
}

INSTANTIATE_TEST_SUITE_P(Reference, BcParity,
                         ::testing::Values("bc", "bc_losses", "bc_gmm", "bc_rnn", "bc_rnn_gmm", "bc_rnn_gmm_exp"),
                         [](const auto& param) { return param.param; });

TEST(BcControl, DrawsModesByTheirWeightsAndOnlyWithItsOwnKey) {
  BcSettings settings;
  settings.action_width = 1;
  settings.encoder.observations = {{"x", {1}, ""}};
  settings.actor_layer_dims = {4};
  settings.gmm = {.enabled = true, .num_modes = 2, .min_std = 0.0, .low_noise_eval = true};
  const auto policy = make_bc_policy(settings, 1);
  const at::NoGradGuard no_grad;
  // Whatever is seen: means tanh(±1), weights 1/4 and 3/4.
  for (const auto& item : policy->named_parameters()) {
    at::Tensor p = item.value();
    p.zero_();
    if (item.key().ends_with("mean.bias")) p.copy_(torch::tensor({-1.0f, 1.0f}));
    if (item.key().ends_with("logits.bias")) p.copy_(torch::tensor({0.0f, std::log(3.0f)}));
  }
  policy->eval();
  BcControl control(*policy, 1), again(*policy, 1);
  constexpr int kDraws = 2000;
  std::vector<std::uint64_t> environments;
  for (std::uint64_t i = 0; i < kDraws; ++i) environments.push_back(i);
  const Observations frame{{"x", at::zeros({kDraws, 1})}};
  const at::Tensor actions = control.act(environments, frame);
  EXPECT_LE(((actions.abs() - std::tanh(1.0)).abs()).max().item<double>(), 6e-4) << "deviations of 1e-4";
  // A share of 2000 draws has a deviation of 0.0097; five of these.
  EXPECT_NEAR((actions > 0).to(at::kDouble).mean().item<double>(), 0.75, 0.05);
  EXPECT_TRUE(at::equal(again.act({7}, {{"x", at::zeros({1, 1})}})[0], actions[7])) << "whoever acts beside it";
  EXPECT_FALSE(at::equal(control.act(environments, frame), actions)) << "the next step draws anew";
  for (const std::uint64_t environment : environments) control.begin(environment);
  EXPECT_TRUE(at::equal(control.act(environments, frame), actions)) << "an episode that is played again";
}

}  // namespace
}  // namespace cohort::models
