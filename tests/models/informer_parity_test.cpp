// Informer against the reference package: fixtures/*.safetensors hold its weights, inputs, outputs and gradients.
#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/files.h"
#include "core/json_text.h"
#include "models/fixture.h"
#include "models/informer/informer.h"
#include "models/informer/key_sampling.h"
#include "models/random_context.h"

namespace cohort::models {
namespace {

// The reference ran in float64; ours is float32 with sums of up to some hundred terms, so a few of its roundings (6e-8)
// add up.
constexpr double kTolerance = 1e-5;
// Below this a gradient is zero but for rounding (a bias in front of batch norm, say).
constexpr double kGradientFloor = 1e-2;

InformerSettings settings_of(const nlohmann::ordered_json& json) {
  InformerSettings settings;
  config::Fields fields;
  describe(fields, settings);
  fields.apply_json(json, "fixture");
  return settings;
}

struct Case {
  Fixture fixture;
  InformerSettings settings;
  std::shared_ptr<torch::nn::Module> model;
  InformerInput input;

  explicit Case(const std::string& name) : fixture(read_fixture(name)) {
    settings = settings_of(parse_json<nlohmann::ordered_json>(fixture.metadata.at("settings").get<std::string>()));
    model = make_informer(settings, 1);
    load_state(*model, fixture.under("weight."));
    input = {fixture.at("input.x_enc"), fixture.at("input.x_mark_enc"), fixture.at("input.x_dec"),
             fixture.at("input.x_mark_dec")};
  }

  KeySampleOverride::Give samples(const std::string& mode) const {
    return [this, mode](int position, std::int64_t, std::int64_t, std::int64_t) {
      return fixture.at("samples." + mode + "." + std::to_string(position));
    };
  }
};

class InformerParity : public ::testing::TestWithParam<std::string> {};

TEST_P(InformerParity, StateHasTheReferencesNamesAndShapes) {
  const Case c(GetParam());
  auto state = state_of(*c.model);
  for (const std::string embedding : {"enc_embedding", "dec_embedding"}) {
    const auto pe = state.extract(embedding + ".position_embedding.pe");
    ASSERT_FALSE(pe.empty());
    EXPECT_EQ(pe.mapped().sizes(), (std::vector<std::int64_t>{1, 5000, c.settings.d_model}));
    // The table's bits depend on the C library's sine; one unit in the last place of numbers up to 1.
    EXPECT_LE(relative_difference(pe.mapped()[0].narrow(0, 0, 40), c.fixture.at("pe.head"), 1.0), 1.2e-7);
    EXPECT_LE(relative_difference(pe.mapped()[0].narrow(0, 4992, 8), c.fixture.at("pe.tail"), 1.0), 1.2e-7);
  }
  const auto reference = c.fixture.under("weight.");
  ASSERT_EQ(state.size(), reference.size());
  for (const auto& [name, value] : reference) {
    ASSERT_TRUE(state.contains(name)) << name;
    EXPECT_EQ(state.at(name).sizes(), value.sizes()) << name;
    EXPECT_EQ(state.at(name).scalar_type(), value.scalar_type()) << name;
  }
}

TEST_P(InformerParity, EvaluationGivesTheReferencesOutput) {
  const Case c(GetParam());
  c.model->eval();
  const KeySampleOverride given(c.samples("eval"));
  const at::Tensor with_graph = informer_forward(*c.model, c.input);
  EXPECT_LE(relative_difference(with_graph, c.fixture.at("output.eval"), 1.0), kTolerance);
  const at::NoGradGuard no_grad;
  EXPECT_TRUE(at::equal(informer_forward(*c.model, c.input), with_graph))
      << "the path without a graph gives other bits";
}

TEST_P(InformerParity, TrainingGivesTheReferencesOutputLossGradientsAndStatistics) {
  const Case c(GetParam());
  c.model->train();
  const KeySampleOverride given(c.samples("train"));
  const RandomContextGuard guard({.seed = 1, .step = 1, .sample_ids = {}});
  const at::Tensor output = informer_forward(*c.model, c.input);
  EXPECT_LE(relative_difference(output, c.fixture.at("output.train"), 1.0), kTolerance);
  const at::Tensor loss = at::mse_loss(output, c.fixture.at("input.target"));
  EXPECT_LE(relative_difference(loss, c.fixture.at("loss"), 1e-6), kTolerance);
  loss.backward();
  const auto gradients = c.fixture.under("grad.");
  for (const auto& parameter : c.model->named_parameters()) {
    const at::Tensor& gradient = parameter.value().grad();
    ASSERT_EQ(gradient.defined(), gradients.contains(parameter.key())) << parameter.key();
    if (gradient.defined()) {
      EXPECT_LE(relative_difference(gradient, gradients.at(parameter.key()), kGradientFloor), kTolerance)
          << parameter.key();
    }
  }
  const auto state = state_of(*c.model);
  for (const auto& [name, value] : c.fixture.under("after."))
    EXPECT_LE(relative_difference(state.at(name), value, 1e-6), kTolerance) << name;
}

INSTANTIATE_TEST_SUITE_P(Reference, InformerParity,
                         ::testing::Values("multivariate_factor3", "univariate_factor5_odd", "many_to_one_no_mix",
                                           "no_distil_fixed_relu_minutes", "full_attention_learned",
                                           "full_attention_no_mix", "short_all_queries", "narrow_heads_daily", "stack",
                                           "no_label"),
                         [](const auto& param) { return param.param; });

TEST(InformerParameters, FullSizeModelsHaveTheReferencesNamesShapesOrderAndCount) {
  const auto reference = parse_json<nlohmann::ordered_json>(
      read_file(std::string(COHORT_SOURCE_DIR) + "/tests/models/fixtures/reference_models.json"));
  EXPECT_EQ(reference.at("default_multivariate").at("parameters"), 11330055);
  for (const auto& [name, expected] : reference.items()) {
    const auto model = make_informer(settings_of(expected.at("settings")), 1);
    std::int64_t count = 0;
    std::vector<std::string> names, trained;
    for (const auto& parameter : model->named_parameters()) {
      count += parameter.value().numel();
      names.push_back(parameter.key());
      if (parameter.value().requires_grad()) trained.push_back(parameter.key());
    }
    EXPECT_EQ(count, expected.at("parameters").get<std::int64_t>()) << name;
    EXPECT_EQ(names, expected.at("parameter_names").get<std::vector<std::string>>()) << name;
    EXPECT_EQ(trained, expected.at("trained").get<std::vector<std::string>>()) << name;
    const auto state = state_of(*model);
    EXPECT_EQ(state.size(), expected.at("state").size()) << name;
    for (const auto& [key, shape] : expected.at("state").items()) {
      ASSERT_TRUE(state.contains(key)) << name << ": " << key;
      EXPECT_EQ(state.at(key).sizes().vec(), shape.get<std::vector<std::int64_t>>()) << name << ": " << key;
    }
  }
}

}  // namespace
}  // namespace cohort::models
