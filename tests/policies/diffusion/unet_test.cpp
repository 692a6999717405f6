// The denoising networks against the reference packages, at their default sizes: names, counts, outputs, gradients.
#include "policies/diffusion/unet.h"

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/message_of.h"
#include "models/fixture.h"
#include "models/formula.h"
#include "models/initialise.h"
#include "models/random_context.h"
#include "policies/diffusion/transformer.h"

namespace cohort::models {
namespace {

// The reference ran in float64, ours in float32: sums of up to some ten thousand terms, through some twenty layers.
constexpr double kUnetTolerance = 2e-5;
constexpr double kUnetGradientTolerance = 1e-4;

template <class Settings>
struct Case {
  int chunk, action_width, observations, features;
  Settings settings;

  explicit Case(nlohmann::ordered_json json)
      : chunk(json.at("chunk")),
        action_width(json.at("action_width")),
        observations(json.at("observations")),
        features(json.at("features")) {
    for (const char* own : {"chunk", "action_width", "observations", "features"}) json.erase(own);
    apply_settings(settings, json);
  }
};

class UnetParity : public ::testing::TestWithParam<std::string> {};

TEST_P(UnetParity, OutputLossAndGradientsAreTheReferences) {
  const auto facts = read_facts("unet").at(GetParam());
  const Case<UnetSettings> c(facts.at("case"));
  const auto net = make_unet(c.settings, c.chunk, c.action_width, c.observations * c.features);
  fill(*net);
  std::int64_t count = 0;
  for (const auto& p : net->parameters()) count += p.numel();
  EXPECT_EQ(count, facts.at("parameters").get<std::int64_t>());
  const at::Tensor output = net->forward(formula("actions", {3, c.chunk, c.action_width}),
                                         torch::tensor(facts.at("timesteps").get<std::vector<std::int64_t>>()),
                                         formula("features", {3, c.observations, c.features}));
  EXPECT_LE(relative_difference(output.flatten(), tensor_of(facts.at("output")), 1.0), kUnetTolerance);
  const at::Tensor loss = at::mse_loss(output, formula("target", {3, c.chunk, c.action_width}));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kUnetTolerance * facts.at("loss").get<double>());
  loss.backward();
  expect_gradients(*net, facts.at("gradients"), kUnetGradientTolerance);
}

INSTANTIATE_TEST_SUITE_P(Reference, UnetParity, ::testing::Values("droid", "pusht_state", "small"),
                         [](const auto& param) { return param.param; });

TEST(Unet, EveryParameterHasARuleForItsInitialValue) {
  UnetSettings settings;
  settings.down_dims = {16, 32};
  const auto a = make_unet(settings, 8, 3, 4), b = make_unet(settings, 8, 3, 4);
  initialise(*a, 1);
  initialise(*b, 1);
  for (std::size_t i = 0; i < a->parameters().size(); ++i)
    EXPECT_TRUE(at::equal(a->parameters()[i], b->parameters()[i]));
}

TEST(Unet, NamesWhatIsWrongWithItsSettings) {
  EXPECT_EQ(message_of([] { make_unet({}, 10, 3, 4); }),
            "unet: an action chunk (prediction_horizon) of 10 rows cannot be halved 2 times; down_dims has 3 levels");
  UnetSettings settings;
  settings.down_dims = {12};
  EXPECT_EQ(message_of([&] { make_unet(settings, 8, 3, 4); }),
            "unet: down_dims[0] = 12, but must be a multiple of n_groups = 8");
}

class TransformerParity : public ::testing::TestWithParam<std::string> {};

TEST_P(TransformerParity, OutputLossAndGradientsAreTheReferences) {
  const auto facts = read_facts("transformer").at(GetParam());
  const Case<TransformerSettings> c(facts.at("case"));
  const auto net = make_transformer(c.settings, c.chunk, c.action_width, c.observations, c.features);
  fill(*net);
  net->eval();
  std::int64_t count = 0;
  for (const auto& p : net->parameters()) count += p.numel();
  EXPECT_EQ(count, facts.at("parameters").get<std::int64_t>());
  const auto buffers = net->named_buffers();
  for (const auto& name : facts.at("buffers")) EXPECT_TRUE(buffers.contains(name.get<std::string>())) << name;
  const at::Tensor output = net->forward(formula("actions", {3, c.chunk, c.action_width}),
                                         torch::tensor(facts.at("timesteps").get<std::vector<std::int64_t>>()),
                                         formula("features", {3, c.observations, c.features}));
  EXPECT_LE(relative_difference(output.flatten(), tensor_of(facts.at("output")), 1.0), kUnetTolerance);
  const at::Tensor loss = at::mse_loss(output, formula("target", {3, c.chunk, c.action_width}));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kUnetTolerance * facts.at("loss").get<double>());
  loss.backward();
  expect_gradients(*net, facts.at("gradients"), kUnetGradientTolerance);
}

INSTANTIATE_TEST_SUITE_P(Reference, TransformerParity, ::testing::Values("lowdim", "encoder"),
                         [](const auto& param) { return param.param; });

TEST(Transformer, DropoutBelongsToTheSampleAndItsAverageIsTheEvaluation) {
  TransformerSettings settings{.n_layer = 1, .n_head = 2, .n_emb = 16, .p_drop_emb = 0.05, .p_drop_attn = 0.05};
  const auto net = make_transformer(settings, 4, 2, 1, 3);
  initialise(*net, 1);
  const at::NoGradGuard no_grad;
  const at::Tensor actions = formula("actions", {1, 4, 2}), t = at::full({1}, 5, at::kLong),
                   seen = formula("s", {1, 1, 3});
  net->eval();
  const at::Tensor evaluated = net->forward(actions, t, seen);
  net->train();
  at::Tensor mean = at::zeros_like(evaluated), first;
  constexpr int kDraws = 400;
  for (int i = 0; i < kDraws; ++i) {
    const RandomContextGuard guard({.seed = 1, .step = static_cast<std::uint64_t>(i)});
    const at::Tensor out = net->forward(actions, t, seen);
    if (i == 0) first = out;
    mean += out / kDraws;
  }
  const double spread = (first - evaluated).abs().max().item<double>();
  EXPECT_GT(spread, 1e-3) << "training drops";
  // The mean of 400 draws lies a twentieth of a draw's deviation off, and the network is not quite linear.
  EXPECT_LT((mean - evaluated).abs().max().item<double>(), 0.5 * spread);
  const RandomContextGuard guard({.seed = 1, .step = 0});
  EXPECT_TRUE(at::equal(net->forward(actions, t, seen), first));
}

TEST(Transformer, NamesWhatIsWrongWithItsSettings) {
  EXPECT_EQ(message_of([] { make_transformer({.n_head = 3, .n_emb = 256}, 8, 2, 2, 3); }),
            "transformer: n_emb = 256, but must be even, at least 4, and a multiple of n_head = 3");
}

}  // namespace
}  // namespace cohort::models
