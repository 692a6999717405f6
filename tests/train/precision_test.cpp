#include "train/precision.h"

#include <thread>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"

namespace cohort::train {
namespace {

at::ScalarType type_of_a_product() {
  return torch::mm(torch::ones({2, 2}), torch::ones({2, 2})).scalar_type();
}

TEST(Precision, AGuardHoldsForItsScopeAndNests) {
  EXPECT_EQ(type_of_a_product(), at::kFloat);
  {
    const PrecisionGuard bf16(Precision::kBf16, c10::kCPU);
    EXPECT_EQ(type_of_a_product(), at::kBFloat16);
    {
      const PrecisionGuard fp16(Precision::kFp16, c10::kCPU);
      EXPECT_EQ(type_of_a_product(), at::kHalf);
      const PrecisionGuard fp32(Precision::kFp32, c10::kCPU);
      EXPECT_EQ(type_of_a_product(), at::kFloat);
    }
    EXPECT_EQ(type_of_a_product(), at::kBFloat16);
  }
  EXPECT_EQ(type_of_a_product(), at::kFloat);
}

TEST(Precision, AutocastBelongsToOneThreadOnly) {
  const PrecisionGuard bf16(Precision::kBf16, c10::kCPU);
  at::ScalarType other = at::kDouble;
  std::thread([&] { other = type_of_a_product(); }).join();
  EXPECT_EQ(other, at::kFloat);
}

TEST(Precision, ACastOfAWeightIsNotKeptBeyondTheScope) {
  // Otherwise the forward pass after an optimizer step would use the weight before it.
  at::Tensor weight = torch::ones({2, 2}, torch::requires_grad());
  const auto product = [&] {
    const PrecisionGuard bf16(Precision::kBf16, c10::kCPU);
    return torch::mm(torch::ones({2, 2}), weight).sum().item<float>();
  };
  EXPECT_EQ(product(), 8.0f);
  {
    const at::NoGradGuard no_grad;
    weight.mul_(2);
  }
  EXPECT_EQ(product(), 16.0f);
}

TEST(Precision, NamesAreReadAndOthersRefused) {
  EXPECT_EQ(parse_precision("bf16"), Precision::kBf16);
  EXPECT_EQ(parse_precision("no"), Precision::kFp32);
  EXPECT_STREQ(to_string(parse_precision("fp16")), "fp16");
  EXPECT_THROW(parse_precision("fp8"), Error);
}

}  // namespace
}  // namespace cohort::train
