// The denoising networks against the reference packages, at their default sizes: names, counts, outputs, gradients.
#include "models/diffusion_policy/unet.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "models/diffusion_policy/formula.h"
#include "models/fixture.h"
#include "models/initialise.h"

namespace cohort::models {
namespace {

// The reference ran in float64, ours in float32: sums of up to some ten thousand terms, through some twenty layers.
constexpr double kOutputTolerance = 2e-5;
constexpr double kGradientTolerance = 1e-4;

struct Case {
  int chunk, action_width, observations, features;
  UnetSettings settings;

  explicit Case(nlohmann::ordered_json json)
      : chunk(json.at("chunk")),
        action_width(json.at("action_width")),
        observations(json.at("observations")),
        features(json.at("features")) {
    for (const char* own : {"chunk", "action_width", "observations", "features"}) json.erase(own);
    apply_settings(settings, json);
  }
};

class UnetParity : public testing::TestWithParam<std::string> {};

TEST_P(UnetParity, OutputLossAndGradientsAreTheReferences) {
  const auto facts = read_facts("unet").at(GetParam());
  const Case c(facts.at("case"));
  const auto net = make_unet(c.settings, c.chunk, c.action_width, c.observations * c.features);
  fill(*net);
  std::int64_t count = 0;
  for (const auto& p : net->parameters()) count += p.numel();
  EXPECT_EQ(count, facts.at("parameters").get<std::int64_t>());
  const at::Tensor output = net->forward(formula("actions", {3, c.chunk, c.action_width}),
                                         torch::tensor(facts.at("timesteps").get<std::vector<std::int64_t>>()),
                                         formula("features", {3, c.observations, c.features}));
  EXPECT_LE(relative_difference(output.flatten(), tensor_of(facts.at("output")), 1.0), kOutputTolerance);
  const at::Tensor loss = at::mse_loss(output, formula("target", {3, c.chunk, c.action_width}));
  EXPECT_NEAR(loss.item<double>(), facts.at("loss").get<double>(), kOutputTolerance * facts.at("loss").get<double>());
  loss.backward();
  expect_gradients(*net, facts.at("gradients"), kGradientTolerance);
}

INSTANTIATE_TEST_SUITE_P(Reference, UnetParity, testing::Values("droid", "pusht_state", "small"),
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
  EXPECT_EQ(error_of([] { make_unet({}, 10, 3, 4); }),
            "unet: an action chunk (prediction_horizon) of 10 rows cannot be halved 2 times; down_dims has 3 levels");
  UnetSettings settings;
  settings.down_dims = {12};
  EXPECT_EQ(error_of([&] { make_unet(settings, 8, 3, 4); }),
            "unet: down_dims[0] = 12, but must be a multiple of n_groups = 8");
}

}  // namespace
}  // namespace cohort::models
