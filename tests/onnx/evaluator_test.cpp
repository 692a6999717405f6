// Operators beside onnxruntime, by tests/onnx/make_operator_fixtures.py.
#include "onnx/evaluator.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "onnx/networks.h"
#include "onnx/operators.h"

namespace cohort::onnx {
namespace {

/// Sums of a few numbers, in another order.
constexpr float kRounding = 2e-6f;

std::string bytes_of(const std::string& hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return bytes;
}

Tensor tensor_of(const nlohmann::json& json) {
  const auto shape = json.at("shape").get<std::vector<std::int64_t>>();
  if (json.contains("ints"))
    return Tensor::of_ints(json.at("name"), shape, json.at("ints").get<std::vector<std::int64_t>>());
  return Tensor::of(json.at("name"), shape, json.at("floats").get<std::vector<float>>());
}

nlohmann::json fixture_cases(const std::string& file) {
  return parse_json<nlohmann::json>(read_file(COHORT_SOURCE_DIR "/tests/onnx/" + file)).at("cases");
}

void expect_near(const Tensor& got, const Tensor& expected, const std::string& name) {
  EXPECT_EQ(got.shape, expected.shape) << name;
  EXPECT_EQ(got.integral, expected.integral) << name;
  EXPECT_EQ(got.ints, expected.ints) << name;
  ASSERT_EQ(got.floats.size(), expected.floats.size()) << name;
  for (std::size_t i = 0; i < got.floats.size(); ++i)
    EXPECT_NEAR(got.floats[i], expected.floats[i], kRounding * (1 + std::abs(expected.floats[i])))
        << name << ", number " << i;
}

/// Computes every case of a file beside its outputs. The operators that were seen.
std::set<std::string> compare_with(const std::string& file) {
  std::set<std::string> seen;
  const nlohmann::json cases = fixture_cases(file);
  EXPECT_FALSE(cases.empty());
  for (const auto& one : cases) {
    const std::string name = one.at("name");
    const Evaluator evaluator(parse_model(bytes_of(one.at("model")), name));
    for (const Node& node : evaluator.model().nodes) seen.insert(node.op);
    std::vector<Tensor> inputs;
    for (const auto& input : one.at("inputs")) inputs.push_back(tensor_of(input));
    const std::vector<Tensor> outputs = evaluator.run(inputs);
    EXPECT_EQ(outputs.size(), one.at("outputs").size()) << name;
    for (std::size_t i = 0; i < outputs.size(); ++i) expect_near(outputs[i], tensor_of(one.at("outputs")[i]), name);
  }
  return seen;
}

TEST(OnnxEvaluator, EveryOperatorGivesWhatOnnxruntimeGives) {
  const std::set<std::string> seen = compare_with("operators.json");
  for (const std::string& op : operator_names()) EXPECT_TRUE(seen.contains(op)) << op << " is tried by no fixture";
}

// tests/onnx/make_torch_export_fixtures.py: with and without memory, as mjlab and Isaac Lab write them.
TEST(OnnxEvaluator, ActorsThatPyTorchHasExportedGiveWhatOnnxruntimeGives) {
  EXPECT_TRUE(compare_with("torch_exports.json").contains("LSTM"));
}

TEST(OnnxEvaluator, ModelsThatWereWrittenGiveTheSameBits) {
  const nlohmann::json cases = fixture_cases("operators.json");
  for (const auto& one : cases) {
    const std::string name = one.at("name");
    const Model model = parse_model(bytes_of(one.at("model")), name);
    std::vector<Tensor> inputs;
    for (const auto& input : one.at("inputs")) inputs.push_back(tensor_of(input));
    const std::vector<Tensor> before = Evaluator(model).run(inputs),
                              after = Evaluator(parse_model(serialized(model), name)).run(inputs);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].floats, after[i].floats) << name;
      EXPECT_EQ(before[i].ints, after[i].ints) << name;
    }
  }
}

TEST(OnnxEvaluator, ARowIsTheSameBitsBesideAnyOthers) {
  const Evaluator evaluator(to_zero());
  const std::vector<float> rows{0.1f, 0.2f, 0.3f, -0.7f, 0.5f, 0.25f, 0.9f, -1.0f, 2.0f};
  const std::vector<float> together = evaluator.run({Tensor::of("obs", {3, 3}, rows)})[0].floats;
  for (std::size_t i = 0; i < 3; ++i) {
    const std::vector<float> row(rows.begin() + static_cast<std::ptrdiff_t>(3 * i),
                                 rows.begin() + static_cast<std::ptrdiff_t>(3 * i + 3));
    EXPECT_EQ(evaluator.run({Tensor::of("obs", {1, 3}, row)})[0].floats[0], together[i]) << i;
  }
}

TEST(OnnxEvaluator, AnUnknownOperatorIsNamedWithItsNode) {
  Model model = to_zero();
  model.nodes[1].op = "Tan";
  const std::string message = message_of([&] { Evaluator{model}; });
  EXPECT_NE(message.find("node 'Tanh_1' (Tan): the operator Tan is not computed here"), std::string::npos) << message;
  EXPECT_NE(message.find("Gemm"), std::string::npos) << message;
  model.nodes[1].op = "FusedGemm";
  model.nodes[1].domain = "com.microsoft";
  EXPECT_NE(message_of([&] { Evaluator{model}; }).find("com.microsoft.FusedGemm"), std::string::npos);
}

TEST(OnnxEvaluator, ShapesThatDoNotFitAreNamedWithTheirNode) {
  Model model = to_zero();
  model.initializers[0] = Tensor::of("w", {2, 1}, {1, 2});
  const std::string message = message_of([&] { Evaluator(model).run({Tensor::of("obs", {1, 3}, {1, 2, 3})}); });
  EXPECT_EQ(message, "node 'Gemm_1' (Gemm): a matrix of (1, 3) is multiplied with one of (2, 1)");
  const std::string given = message_of([&] { Evaluator(to_zero()).run({Tensor::of("obs", {1, 2}, {1, 2})}); });
  EXPECT_EQ(given, "the input 'obs' of float (batch, 3) is given float of (1, 2)");
}

}  // namespace
}  // namespace cohort::onnx
