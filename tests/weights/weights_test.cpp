#include "weights/weights.h"

#include <gtest/gtest.h>

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>

#include "core/message_of.h"
#include "support/fresh_folder.h"
#include "train/tiny_training.h"
#include "weights/foreign_weights.h"
#include "weights/safetensors.h"

namespace cohort::weights {
namespace {

struct Tied : torch::nn::Module {
  Tied() {
    in = register_module("in", torch::nn::Linear(4, 4));
    out = register_parameter("out", in->weight);
  }
  torch::nn::Linear in{nullptr};
  at::Tensor out;
};

TEST(Weights, ParametersAndBuffersSurviveUnderTheirPyTorchNames) {
  const auto path = test::fresh_folder("weights_round") / "model.safetensors";
  auto model = train::tiny_model(1), other = train::tiny_model(2);
  model->norm->running_var.fill_(3.0);
  save_weights(*model, path);
  std::vector<std::string> names;
  for (const auto& [name, tensor] : read_safetensors(path).tensors) names.push_back(name);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names,
            (std::vector<std::string>{"norm.bias", "norm.num_batches_tracked", "norm.running_mean", "norm.running_var",
                                      "norm.weight", "one.bias", "one.weight", "two.bias", "two.weight"}));
  load_weights(*other, path);
  const auto a = module_state(*model), b = module_state(*other);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_TRUE(train::same_bits(a[i].second, b[i].second)) << a[i].first;
}

TEST(Weights, ATiedWeightIsStoredOnceAndStaysTied) {
  const auto path = test::fresh_folder("weights_tied") / "model.safetensors";
  Tied model, other;
  save_weights(model, path);
  EXPECT_EQ(read_safetensors(path).tensors.size(), 2u);
  load_weights(other, path);
  EXPECT_TRUE(at::equal(other.out, model.in->weight));
  EXPECT_TRUE(other.out.is_same(other.in->weight));
}

TEST(Weights, TypesThatMeanOtherNumbersAreRefusedAndFloatsConvertWithALine) {
  auto model = train::tiny_model(1), other = train::tiny_model(2);
  const auto as = [&](at::ScalarType type) {
    NamedTensors tensors;
    for (const auto& [name, tensor] : module_state(*model))
      tensors.emplace_back(name, tensor.is_floating_point() ? tensor.detach().to(type) : tensor.detach().clone());
    return tensors;
  };
  const at::Tensor before = other->one->weight.detach().clone();
  for (const auto& [type, name] : {std::pair(at::kChar, "int8"), std::pair(at::kByte, "uint8"),
                                   std::pair(at::kLong, "int64"), std::pair(at::kFloat8_e4m3fn, "float8_e4m3fn")}) {
    const std::string message = message_of([&] { load_weights(*other, as(type), {}, "file"); });
    EXPECT_NE(message.find(std::string("one.weight is ") + name + " in the file and float32 in the model"),
              std::string::npos)
        << message;
    EXPECT_NE(message.find("quantised"), std::string::npos) << message;
    EXPECT_TRUE(train::same_bits(other->one->weight, before)) << "nothing has been loaded";
  }
  for (const at::ScalarType type : {at::kHalf, at::kBFloat16, at::kDouble}) {
    ::testing::internal::CaptureStderr();
    load_weights(*other, as(type), {}, "file");
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find("8 tensors were converted from " + type_name(type) + " to float32"), std::string::npos) << said;
    EXPECT_TRUE(train::same_bits(other->one->weight, model->one->weight.detach().to(type).to(at::kFloat)));
  }
  // An integer that the model counts with is no float.
  NamedTensors counts = as(at::kFloat);
  for (auto& [name, tensor] : counts)
    if (name == "norm.num_batches_tracked") tensor = tensor.to(at::kFloat);
  EXPECT_NE(message_of([&] {
              load_weights(*other, counts, {}, "file");
            }).find("norm.num_batches_tracked is float32 in the file and int64 in the model"),
            std::string::npos);
}

TEST(Weights, WrappersPrefixesInKeysAreForgiven) {
  auto model = train::tiny_model(1), other = train::tiny_model(2);
  NamedTensors wrapped;
  for (const auto& [name, tensor] : module_state(*model)) {
    wrapped.emplace_back(name.starts_with("one") ? "module." + name : "_orig_mod." + name, tensor.detach());
  }
  ::testing::internal::CaptureStderr();
  load_weights(*other, wrapped, {}, "file");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("file: 9 names hold the prefixes of torch.compile (_orig_mod.)"), std::string::npos) << said;
  EXPECT_TRUE(train::same_bits(model->one->weight, other->one->weight));
  NamedTensors inside;
  for (const auto& [name, tensor] : module_state(*model)) {
    std::string key = name;
    key.insert(key.find('.') + 1, "module.");
    inside.emplace_back(key, tensor.detach());
  }
  auto third = train::tiny_model(3);
  load_weights(*third, inside, {}, "file");
  EXPECT_TRUE(train::same_bits(model->two->bias, third->two->bias));
}

TEST(Weights, WhatDoesNotFitIsNamedAndChangesNothing) {
  auto model = train::tiny_model(1);
  const at::Tensor before = model->one->weight.detach().clone();
  NamedTensors good;
  for (const auto& [name, tensor] : module_state(*train::tiny_model(2))) good.emplace_back(name, tensor.detach());
  NamedTensors bad = good;
  bad[0].second = torch::zeros({5, 3});
  bad[1].first = "unheard.of";
  const std::string message = message_of([&] { load_weights(*model, bad, {}, "m.safetensors"); });
  EXPECT_NE(message.find("m.safetensors"), std::string::npos) << message;
  EXPECT_NE(message.find("one.weight is (5, 3) in the file and (16, 3) in the model"), std::string::npos) << message;
  EXPECT_NE(message.find("Missing: one.bias"), std::string::npos) << message;
  EXPECT_NE(message.find("Unknown to the model: unheard.of"), std::string::npos) << message;
  EXPECT_TRUE(train::same_bits(model->one->weight, before));
  bad[0] = good[0];
  load_weights(*model, bad, {}, "m.safetensors", {.strict = false});
  EXPECT_FALSE(train::same_bits(model->one->weight, before));
}

TEST(Weights, OtherElementTypesAreConverted) {
  auto model = train::tiny_model(1), other = train::tiny_model(2);
  NamedTensors half;
  for (const auto& [name, tensor] : module_state(*model)) {
    half.emplace_back(name, tensor.is_floating_point() ? tensor.detach().to(at::kBFloat16) : tensor);
  }
  load_weights(*other, half, {}, "file");
  EXPECT_EQ(other->one->weight.scalar_type(), at::kFloat);
  EXPECT_TRUE(at::allclose(other->one->weight, model->one->weight, 1e-2, 1e-2));
}

}  // namespace
}  // namespace cohort::weights
