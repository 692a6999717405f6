#include "models/formula.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/message_of.h"

namespace cohort::models {
namespace {

std::uint32_t fnv1a(const std::string& text) {
  std::uint32_t h = 2166136261u;
  for (const char c : text) h = (h ^ static_cast<unsigned char>(c)) * 16777619u;
  return h;
}

}  // namespace

at::Tensor formula(const std::string& name, std::vector<std::int64_t> shape, double scale) {
  at::Tensor out = at::empty(shape, at::kFloat);
  float* values = out.mutable_data_ptr<float>();
  const std::uint32_t start = fnv1a(name) * 2654435761u;
  for (std::int64_t i = 0; i < out.numel(); ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) + start;
    x ^= x >> 16;
    x *= 0x7FEB352Du;
    x ^= x >> 15;
    x *= 0x846CA68Bu;
    x ^= x >> 16;
    values[i] = (static_cast<float>(x >> 8) * (1.0f / 8388608.0f) - 1.0f) * static_cast<float>(scale);
  }
  return out;
}

void fill(torch::nn::Module& module) {
  const at::NoGradGuard no_grad;
  for (const auto& item : module.named_parameters()) {
    at::Tensor p = item.value();
    const std::string& name = item.key();
    const at::Tensor u = formula(name, p.sizes().vec());
    if (p.dim() >= 2)
      p.copy_(u * static_cast<float>(std::sqrt(3.0 / static_cast<double>(p.numel() / p.size(0)))));
    else if (name.ends_with("weight"))
      p.copy_(1 + 0.1f * u);
    else
      p.copy_(0.1f * u);
  }
}

nlohmann::ordered_json read_facts(const std::string& name) {
  return parse_json<nlohmann::ordered_json>(
      read_file(format(COHORT_SOURCE_DIR "/tests/models/fixtures/diffusion/{}.json", name)));
}

at::Tensor tensor_of(const nlohmann::ordered_json& numbers) {
  return torch::tensor(numbers.get<std::vector<double>>(), at::kDouble);
}

void expect_gradients(const torch::nn::Module& module, const nlohmann::ordered_json& facts, double tolerance) {
  std::vector<std::string> names, expected_names;
  for (const auto& item : facts.items()) expected_names.push_back(item.key());
  for (const auto& item : module.named_parameters())
    if (item.value().requires_grad()) names.push_back(item.key());
  ASSERT_EQ(names, expected_names) << "names and order of the parameters";
  // Gradients that are tiny beside those of other parameters are sums that cancel: they are held against the average
  // entry of all gradients.
  double squares = 0;
  std::int64_t count = 0;
  for (const auto& item : module.named_parameters()) {
    const double norm = facts.at(item.key()).at(0).get<double>();
    squares += norm * norm;
    count += item.value().numel();
  }
  const double floor = std::sqrt(squares / static_cast<double>(count));
  for (const auto& item : module.named_parameters()) {
    ASSERT_TRUE(item.value().grad().defined()) << item.key();
    // A DataParallel or channels-last gradient may be strided; entries are in the parameter's order.
    const at::Tensor g = item.value().grad().to(at::kDouble).contiguous().flatten();
    const at::Tensor probe = formula("probe " + item.key(), {g.numel()}).to(at::kDouble);
    const auto expected = facts.at(item.key()).get<std::vector<double>>();
    const double size = std::sqrt(static_cast<double>(g.numel()));
    const double norm = std::max(expected[0], floor * size);
    EXPECT_NEAR(g.norm().item<double>(), expected[0], tolerance * norm) << item.key();
    EXPECT_NEAR(at::dot(g, probe).item<double>(), expected[1], tolerance * norm) << item.key();
    for (std::size_t i = 2; i < expected.size(); ++i)
      EXPECT_NEAR(g[static_cast<std::int64_t>(i) - 2].item<double>(), expected[i], tolerance * norm) << item.key();
  }
}

}  // namespace cohort::models
