// RDT against the reference package, its unified vector, and the policy around it.
#include "policies/rdt/rdt.h"

#include <cmath>

#include <gtest/gtest.h>

#include <torch/csrc/autograd/autograd.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/initialise.h"
#include "models/language/t5.h"
#include "models/random_context.h"
#include "models/vision/siglip.h"
#include "policies/rdt/rdt_policy.h"
#include "policies/rdt/state_vector.h"

namespace cohort::models {
namespace {

// Both in float64; tables of positions, frequencies and noise levels are float32 on both sides, and differ in the last
// bit where the reference takes a root in float64, or where another processor's sine does.
constexpr double kRdtTolerance = 1e-5;
// Five steps of the solver divide differences of float32 noise levels.
constexpr double kRdtSampleTolerance = 1e-5;
// transformers takes the mean of T5's squares in float32, also in a float64 model.
constexpr double kT5Tolerance = 1e-5;

const nlohmann::ordered_json& rdt_facts() {
  static const nlohmann::ordered_json facts = read_facts("rdt");
  return facts;
}

RdtNetworkSettings small_network() {
  const auto& s = rdt_facts().at("rdt").at("small");
  RdtNetworkSettings n;
  n.hidden_size = s.at("hidden_size");
  n.depth = s.at("depth");
  n.num_heads = s.at("num_heads");
  n.horizon = s.at("horizon");
  n.img_history_size = s.at("img_history_size");
  n.num_cameras = s.at("num_cameras");
  n.lang_token_dim = s.at("lang_token_dim");
  n.img_token_dim = s.at("img_token_dim");
  n.max_lang_cond_len = s.at("max_lang_cond_len");
  return n;
}

void expect_facts(const at::Tensor& output, const nlohmann::ordered_json& facts, double tolerance) {
  const at::Tensor o = output.detach().to(at::kDouble).contiguous().flatten();
  const auto expected = facts.get<std::vector<double>>();
  const double norm = expected[0], entry = norm / std::sqrt(static_cast<double>(o.numel()));
  EXPECT_NEAR(o.norm().item<double>(), norm, tolerance * norm);
  EXPECT_NEAR(at::dot(o, formula("probe output", {o.numel()}).to(at::kDouble)).item<double>(), expected[1],
              tolerance * norm);
  for (std::size_t i = 2; i < expected.size(); ++i)
    EXPECT_NEAR(o[static_cast<std::int64_t>(i) - 2].item<double>(), expected[i], 10 * tolerance * entry) << i;
}

struct RdtCase {
  Rdt rdt;
  RdtConditions conditions;
  at::Tensor actions, noise, timesteps;

  RdtCase() : rdt(small_network(), rdt_facts().at("rdt").at("small").at("patches").get<int>()) {
    const auto& facts = rdt_facts().at("rdt");
    fill(rdt);
    rdt.to(at::kDouble);
    const auto tensor = [](const char* name, std::vector<std::int64_t> shape) {
      return formula(name, std::move(shape)).to(at::kDouble);
    };
    conditions.language_BLE = tensor("language", {3, 5, 12});
    conditions.language_mask_BL =
        torch::tensor(facts.at("seen").get<std::vector<std::vector<int>>>()[0]).unsqueeze(0).repeat({3, 1});
    for (std::int64_t i = 0; i < 3; ++i)
      conditions.language_mask_BL[i].copy_(
          torch::tensor(facts.at("seen").get<std::vector<std::vector<int>>>()[static_cast<std::size_t>(i)]));
    conditions.language_mask_BL = conditions.language_mask_BL.to(at::kBool);
    conditions.images_BLE = tensor("images", {3, 12, 10});
    conditions.state_BS = tensor("state", {3, 128});
    conditions.state_mask_BS = (tensor("mask", {3, 128}) > 0).to(at::kDouble);
    conditions.action_mask_BS = conditions.state_mask_BS;
    conditions.frequency_B = tensor_of(facts.at("frequency"));
    actions = tensor("actions", {3, 4, 128});
    noise = tensor("noise", {3, 4, 128});
    timesteps = torch::tensor(facts.at("timesteps").get<std::vector<std::int64_t>>(), at::kLong);
  }
};

TEST(Rdt, LossAndEveryGradientAreTheReferences) {
  RdtCase c;
  const auto& facts = rdt_facts().at("rdt");
  const at::Tensor factors = c.rdt.schedule().factors(c.timesteps).to(at::kDouble);
  expect_facts(c.rdt.forward(c.noise, c.timesteps, c.conditions), facts.at("output"), kRdtTolerance);
  const at::Tensor loss = rdt_loss(c.rdt, c.conditions, c.actions, c.noise, c.timesteps, factors);
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kRdtTolerance);
  loss.backward();
  expect_gradients(c.rdt, facts.at("gradients"), kRdtTolerance);
}

TEST(Rdt, LossOfTwoDrawsIsTheMeanOfTheirLosses) {
  RdtCase c;
  const at::Tensor noise = formula("more noise", {3, 2, 4, 128}).to(at::kDouble);
  const at::Tensor timesteps =
      torch::tensor(std::vector<std::int64_t>{5, 900, 640, 20, 333, 71}, at::kLong).view({3, 2});
  const auto loss_of = [&](const at::Tensor& drawn, const at::Tensor& times) {
    const at::Tensor t = times.flatten();
    return rdt_loss(c.rdt, c.conditions, c.actions, drawn, t, c.rdt.schedule().factors(t).to(at::kDouble));
  };
  const at::Tensor both = loss_of(noise.flatten(0, 1), timesteps);
  const at::Tensor apart =
      0.5 * (loss_of(noise.select(1, 0), timesteps.select(1, 0)) + loss_of(noise.select(1, 1), timesteps.select(1, 1)));
  EXPECT_NEAR(both.item<double>(), apart.item<double>(), 1e-12);
  const auto weights = c.rdt.parameters();
  const auto one = torch::autograd::grad({both}, weights), two = torch::autograd::grad({apart}, weights);
  for (std::size_t i = 0; i < weights.size(); ++i)
    EXPECT_LE((one[i] - two[i]).abs().max().item<double>(), 1e-10) << c.rdt.named_parameters()[i].key();
}

TEST(Rdt, ChunksOfFiveSolverStepsAreTheReferences) {
  RdtCase c;
  const at::Tensor chunk = rdt_sample(c.rdt, c.conditions, c.noise, c.rdt.settings().sampler);
  EXPECT_FALSE(chunk.requires_grad());
  expect_facts(chunk, rdt_facts().at("rdt").at("sample"), kRdtSampleTolerance);
}

TEST(Rdt, PositionsBeginAsTheReferences) {
  Rdt rdt(small_network(), 3);
  initialise(rdt, 1);
  for (const auto& [name, facts] : rdt_facts().at("rdt").at("positions").items())
    expect_facts(rdt.named_parameters()["model." + name], facts, 1e-6);
}

TEST(Rdt, NamesShapesAndCountsOf170MAnd1BAreTheReferences) {
  for (const auto& [name, count] : rdt_facts().at("rdt").at("parameters").items()) {
    RdtNetworkSettings n;
    if (name == "170m") {
      n.hidden_size = 1024;
      n.depth = 14;
    }
    // One block, for all are alike; weights that nobody initialises take no memory.
    RdtNetworkSettings blocks = n;
    blocks.depth = 1;
    const Rdt one(blocks, 729);
    std::map<std::string, std::vector<std::int64_t>> shapes;
    std::int64_t parameters = 0, block = 0;
    for (const auto& item : one.named_parameters()) {
      shapes[item.key()] = item.value().sizes().vec();
      (item.key().find(".blocks.") == std::string::npos ? parameters : block) += item.value().numel();
    }
    EXPECT_EQ(parameters + n.depth * block, count.get<std::int64_t>()) << name;
    std::map<std::string, std::vector<std::int64_t>> expected;
    for (const auto& [key, shape] : rdt_facts().at("rdt").at("names").at(name).items())
      expected[key] = shape.get<std::vector<std::int64_t>>();
    EXPECT_EQ(shapes, expected) << name;
  }
}

TEST(Siglip, TokensAndGradientsAreTransformers) {
  const auto& facts = rdt_facts().at("siglip");
  SiglipVisionSettings s;
  apply_settings(s, facts.at("case"));
  SiglipVision siglip(s);
  fill(siglip);
  siglip.to(at::kDouble);
  const at::Tensor output = siglip.forward(formula("pixels", {2, 3, 20, 20}).to(at::kDouble));
  expect_facts(output, facts.at("output"), kRdtTolerance);
  const at::Tensor loss = at::mse_loss(output, formula("target", output.sizes().vec()).to(at::kDouble));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kRdtTolerance);
  loss.backward();
  expect_gradients(siglip, facts.at("gradients"), kRdtTolerance);
}

TEST(Siglip, ImagesBecomeSquaresOnGreyInPlusMinusOne) {
  const at::Tensor wide = siglip_pixels(at::ones({1, 3, 4, 8}), 8);
  EXPECT_EQ(wide.sizes().vec(), (std::vector<std::int64_t>{1, 3, 8, 8}));
  EXPECT_NEAR(wide[0][0][0][0].item<double>(), 2 * 127.0 / 255 - 1, 1e-6) << "padded above";
  EXPECT_EQ(wide[0][0][4][4].item<double>(), 1.0);
  EXPECT_LE(siglip_pixels(formula("image", {1, 3, 9, 9}).abs(), 5).abs().max().item<double>(), 1.0);
}

TEST(T5, TokensAndGradientsAreTransformers) {
  const auto& facts = rdt_facts().at("t5");
  T5Settings s;
  apply_settings(s, facts.at("case"));
  T5Encoder encoder(s);
  fill(encoder);
  encoder.to(at::kDouble);
  const auto length = facts.at("length").get<std::int64_t>();
  const at::Tensor ids = (at::arange(2 * length, at::kLong) * 7 % 40).view({2, length});
  at::Tensor mask = at::ones({2, length}, at::kLong);
  mask[1].narrow(0, 5, length - 5).zero_();
  const at::Tensor output = encoder.forward(ids, mask) * mask.unsqueeze(-1);
  expect_facts(output, facts.at("output"), kT5Tolerance);
  const at::Tensor loss = at::mse_loss(output, formula("target", output.sizes().vec()).to(at::kDouble));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kT5Tolerance);
  loss.backward();
  expect_gradients(encoder, facts.at("gradients"), kT5Tolerance);
}

TEST(StateVector, SlotsAreTheReferencesTable) {
  EXPECT_EQ(slot_named("right_arm_joint_6_pos"), 6);
  EXPECT_EQ(slot_named("gripper_open"), 10);
  EXPECT_EQ(slot_named("eef_angle_5"), 38);
  EXPECT_EQ(slot_named("left_eef_angular_vel_yaw"), 94);
  EXPECT_EQ(slot_named("left_gripper_open"), 60);
  EXPECT_EQ(slot_named("base_angular_vel"), 102);
  EXPECT_EQ(slot_name(45), "") << "reserved";
  EXPECT_EQ(slots_of("obs/robot0_eef_pos", 3, {}), (std::vector<int>{30, 31, 32}));
  EXPECT_EQ(slots_of("action[0:3]", 3, {"action[0:3]: eef_vel_x, eef_vel_y, 41"}), (std::vector<int>{39, 40, 41}));
  EXPECT_EQ(slots_of("x", 4, {"x: 103-106"}), (std::vector<int>{103, 104, 105, 106}));
}

TEST(StateVector, WhatMapsNowhereIsRefusedWithARemedy) {
  EXPECT_NE(message_of([] { slots_of("obs/cube_pos", 3, {}); }).find("model.rdt.slots=[\"obs/cube_pos: 30-32\"]"),
            std::string::npos);
  EXPECT_NE(message_of([] { slots_of("a", 1, {"a: eef_pos_w"}); }).find("did you mean 'eef_pos_"), std::string::npos);
  EXPECT_NE(message_of([] { slots_of("a", 2, {"a: 1"}); }).find("names 1 slots, but a has 2 numbers"),
            std::string::npos);
  EXPECT_NE(message_of([] { slots_of("a", 1, {"a: 128"}); }).find("0 to 127"), std::string::npos);
  EXPECT_NE(message_of([] { slots_of("a", 1, {"a"}); }).find("COMPONENT: SLOT"), std::string::npos);
  EXPECT_NE(message_of([] {
              check_slots({"a", "b"}, {{30}, {30}}, "data.proprio");
            }).find("a and b share slot 30 (right_eef_pos_x)"),
            std::string::npos);
  EXPECT_NE(message_of([] { check_assigned({"obs/eef_pos"}, {"obs/eef_po: 30-32"}); }).find("did you mean"),
            std::string::npos);
}

RdtSettings small_policy_settings() {
  RdtSettings s;
  s.network = small_network();
  s.network.img_token_dim = 24;
  s.network.num_cameras = 3;
  s.vision = {.image_size = 12,
              .patch_size = 6,
              .hidden_size = 24,
              .num_hidden_layers = 1,
              .num_attention_heads = 3,
              .intermediate_size = 24};
  s.train_vision = true;
  s.exec_horizon = 2;
  s.observations = {{"eef_pos", {3}, ""}, {"front", {3, 16, 12}, ""}, {"wrist", {3, 16, 12}, ""}};
  s.state_slots = {30, 31, 32};
  s.action_slots = {39, 40, 41, 10};
  s.state_std = {1, 1, 1};
  return s;
}

Observations rdt_observations(std::int64_t first, std::int64_t samples) {
  const auto part = [&](const char* name, std::vector<std::int64_t> shape) {
    shape.insert(shape.begin(), 8);
    return formula(name, shape).abs().narrow(0, first, samples);
  };
  return {{"eef_pos", part("eef", {2, 3})},
          {"front", part("front", {2, 3, 16, 12})},
          {"wrist", part("wrist", {2, 3, 16, 12})}};
}

double policy_loss(PolicyNetwork& policy, std::int64_t first, std::int64_t samples, std::uint64_t step = 9) {
  const RandomContextGuard guard({.seed = 2, .step = step, .sample_ids = at::arange(70 + first, 70 + first + samples)});
  return policy.loss(rdt_observations(first, samples), formula("actions", {8, 4, 4}).narrow(0, first, samples))
      .item<double>();
}

TEST(RdtPolicy, LossOfABatchIsTheMeanOfItsHalvesWhateverIsHidden) {
  RdtSettings s = small_policy_settings();
  s.cond_mask_prob = 0.5;
  s.state_noise_snr = 20;
  s.image_aug = true;
  const auto policy = make_rdt_policy(s, 1);
  fill(*policy);
  EXPECT_NEAR(policy_loss(*policy, 0, 8), 0.5 * (policy_loss(*policy, 0, 4) + policy_loss(*policy, 4, 4)), 1e-5);
  EXPECT_GT(std::abs(policy_loss(*policy, 0, 8) - policy_loss(*policy, 0, 8, 10)), 1e-5) << "another step";
}

TEST(RdtPolicy, MoreNoisyChunksOfASampleMakeTheLossSteadier) {
  // Over 40 steps, the losses of the same samples: their deviation falls with the number of draws, their mean does not.
  const auto losses = [](int draws) {
    RdtSettings s = small_policy_settings();
    s.cond_mask_prob = 0;
    s.noise_samples = draws;
    const auto policy = make_rdt_policy(s, 1);
    fill(*policy);
    std::vector<double> all;
    for (std::uint64_t step = 0; step < 40; ++step) all.push_back(policy_loss(*policy, 0, 4, step));
    return torch::tensor(all, at::kDouble);
  };
  const at::Tensor one = losses(1), eight = losses(8);
  EXPECT_NE(one[0].item<double>(), eight[0].item<double>());
  EXPECT_LT(eight.std().item<double>(), 0.6 * one.std().item<double>());
  EXPECT_NEAR(eight.mean().item<double>(), one.mean().item<double>(), 3 * one.std().item<double>() / std::sqrt(40.0));
}

TEST(RdtPolicy, HiddenConditionsNoLongerMatter) {
  RdtSettings s = small_policy_settings();
  s.cond_mask_prob = 1;
  const auto policy = make_rdt_policy(s, 1);
  fill(*policy);
  const auto loss = [&](double brightness, double position) {
    Observations seen = rdt_observations(0, 2);
    seen["front"] = seen["front"] * brightness;
    seen["eef_pos"] = seen["eef_pos"] + position;
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    return policy->loss(seen, formula("actions", {2, 4, 4})).item<double>();
  };
  EXPECT_EQ(loss(1, 0), loss(0.5, 3));
  s.cond_mask_prob = 0;
  const auto all = make_rdt_policy(s, 1);
  fill(*all);
  const auto seen_loss = [&](double brightness) {
    Observations seen = rdt_observations(0, 2);
    seen["front"] = seen["front"] * brightness;
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    return all->loss(seen, formula("actions", {2, 4, 4})).item<double>();
  };
  EXPECT_NE(seen_loss(1), seen_loss(0.5));
  s.cam_ext_mask_prob = 1;
  const auto no_front = make_rdt_policy(s, 1);
  fill(*no_front);
  const auto front_loss = [&](const char* camera) {
    Observations seen = rdt_observations(0, 2);
    seen[camera] = seen[camera] * 0.5;
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    return no_front->loss(seen, formula("actions", {2, 4, 4})).item<double>();
  };
  EXPECT_NE(front_loss("front"), front_loss("wrist")) << "only the first camera is hidden";
  EXPECT_EQ(front_loss("front"), [&] {
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    return no_front->loss(rdt_observations(0, 2), formula("actions", {2, 4, 4})).item<double>();
  }());
}

TEST(RdtPolicy, EveryTrainedWeightGetsAGradientAndAFrozenEncoderNone) {
  for (const bool train_vision : {true, false}) {
    RdtSettings s = small_policy_settings();
    s.train_vision = train_vision;
    const auto policy = make_rdt_policy(s, 1);
    fill(*policy);
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    policy->loss(rdt_observations(0, 2), formula("actions", {2, 4, 4})).backward();
    for (const auto& item : policy->named_parameters()) {
      const bool trained = train_vision || !item.key().starts_with("vision_encoder.");
      EXPECT_EQ(item.value().requires_grad(), trained) << item.key();
      EXPECT_EQ(item.value().grad().defined(), trained) << item.key();
    }
  }
}

TEST(RdtPolicy, ActsByChunksWhicheverEnvironmentsActTogether) {
  const auto policy = make_rdt_policy(small_policy_settings(), 1);
  fill(*policy);
  policy->eval();
  const auto both = policy->control(3), alone = policy->control(3);
  for (int t = 0; t < 5; ++t) {
    Observations frame;
    for (const auto& [name, x] : rdt_observations(0, 2)) frame[name] = (x.select(1, 0) * (1 + 0.1 * t)).clamp(0, 1);
    const at::Tensor actions = both->act({20, 21}, frame);
    ASSERT_EQ(actions.sizes().vec(), (std::vector<std::int64_t>{2, 4}));
    Observations second;
    for (const auto& [name, x] : frame) second[name] = x.narrow(0, 1, 1);
    EXPECT_TRUE(at::equal(alone->act({21}, second)[0], actions[1])) << t;
  }
}

// The reference's images of before an episode: data/hdf5_vla_dataset.py masks them, train/dataset.py replaces masked ones
// by pictures of int(255 · image_mean), 127 with SigLIP's processor; scripts/agilex_model.py does so with None.
constexpr double kGreyOf127 = 127.0 / 255.0;

TEST(RdtPolicy, FramesBeforeAnEpisodeAreTheReferencesBackgroundInTraining) {
  RdtSettings s = small_policy_settings();
  s.cond_mask_prob = 0;
  const auto first_frame = make_rdt_policy(s, 1);
  s.before_episode = "background";
  const auto background = make_rdt_policy(s, 1);
  for (const auto& policy : {first_frame, background}) fill(*policy);
  const auto loss = [](PolicyNetwork& policy, const Observations& seen) {
    const RandomContextGuard guard({.seed = 2, .step = 9, .sample_ids = at::arange(2)});
    return policy.loss(seen, formula("actions", {2, 4, 4})).item<double>();
  };
  Observations told = rdt_observations(0, 2), grey = told;
  told[kInEpisodeObservation] = torch::tensor({0, 1, 1, 1}).view({2, 2}) > 0;  // as data::RobotWindows says it
  for (const char* camera : {"front", "wrist"}) {
    grey[camera] = grey[camera].clone();
    grey[camera][0][0].fill_(kGreyOf127);
  }
  EXPECT_NEAR(loss(*background, told), loss(*first_frame, grey), 1e-6);
  EXPECT_EQ(loss(*first_frame, told), loss(*first_frame, rdt_observations(0, 2))) << "as it was trained before";
  EXPECT_GT(std::abs(loss(*background, told) - loss(*first_frame, told)), 1e-5);
  told[kInEpisodeObservation].fill_(true);
  EXPECT_EQ(loss(*background, told), loss(*first_frame, told)) << "within the episode nothing changes";
}

TEST(RdtPolicy, FramesBeforeAnEpisodeAreTheReferencesBackgroundInActing) {
  RdtSettings s = small_policy_settings();
  const auto first_frame = make_rdt_policy(s, 1);
  s.before_episode = "background";
  const auto background = make_rdt_policy(s, 1);
  for (const auto& policy : {first_frame, background}) fill(*policy), policy->eval();
  const auto frame = [](int t) {
    Observations one;
    for (const auto& [name, x] : rdt_observations(0, 1)) one[name] = (x.select(1, 0) * (1 - 0.1 * t)).clamp(0, 1);
    return one;
  };
  Observations window;
  for (const auto& [name, x] : frame(0)) {
    at::Tensor before = x.clone();
    if (name != "eef_pos") before.fill_(kGreyOf127);
    window[name] = at::stack({before, x}, 1);
  }
  const at::Tensor expected = first_frame->draw(window, {20}, 3)[0];
  const auto own = background->control(3), other = first_frame->control(3);
  for (int episode = 0; episode < 2; ++episode) {
    own->begin(20), other->begin(20);
    for (int t = 0; t < 4; ++t) {
      const at::Tensor action = own->act({20}, frame(t))[0], repeated = other->act({20}, frame(t))[0];
      if (t < 2) {
        EXPECT_TRUE(at::allclose(action, expected[t], 1e-4, 1e-5)) << t;
        EXPECT_FALSE(at::allclose(action, repeated, 1e-4, 1e-5)) << t;
      } else {
        EXPECT_TRUE(at::equal(action, repeated)) << "the second chunk sees two frames of the episode";
      }
    }
  }
}

TEST(RdtPolicy, SettingsOutOfRangeAreRefusedByName) {
  const auto refused = [](const auto& change) {
    RdtSettings s = small_policy_settings();
    change(s);
    return message_of([&] { make_rdt_policy(s, 1); });
  };
  EXPECT_NE(refused([](RdtSettings& s) { s.exec_horizon = 5; }).find("exec_horizon = 5"), std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.before_episode = "grey"; }).find("before_episode = \"grey\""),
            std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.noise_samples = 0; }).find("noise_samples = 0"), std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.network.img_token_dim = 7; }).find("img_token_dim = 7"), std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.network.num_cameras = 1; }).find("2 cameras, but num_cameras = 1"),
            std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.network.lang_adaptor = "mlpx"; }).find("lang_adaptor = \"mlpx\""),
            std::string::npos);
  EXPECT_NE(refused([](RdtSettings& s) { s.state_slots.pop_back(); }).find("3 numbers"), std::string::npos);
}

}  // namespace
}  // namespace cohort::models
