#include "train/gradient_checkpoint.h"

#include <gtest/gtest.h>

#include <torch/torch.h>

#include "core/error.h"
#include "models/random_context.h"
#include "train/precision.h"

namespace cohort::train {
namespace {

/// Two layers with ATen's dropout and a term that depends on the RandomContext.
struct Block : torch::nn::Module {
  torch::nn::Linear first{8, 16}, second{16, 8};
  int calls = 0;
  Block() {
    register_module("first", first);
    register_module("second", second);
  }
  at::Tensor forward(const at::Tensor& x) {
    ++calls;
    const double keyed = static_cast<double>(models::random_context().step) * 0.1;
    return x + second(torch::dropout(torch::gelu(first(x)), 0.3, true)) * keyed;
  }
};

struct Result {
  std::vector<at::Tensor> tensors;  // output, gradient of the input, gradients of the parameters
  int calls;
  at::Tensor next_random;
};

Result run(bool with_checkpoint, bool input_requires_grad, Precision precision) {
  torch::manual_seed(7);
  Block block;
  at::Tensor x = torch::randn({4, 8}).set_requires_grad(input_requires_grad);
  torch::manual_seed(8);
  at::Tensor y;
  {
    const models::RandomContextGuard random({.seed = 1, .step = 5, .sample_ids = {}});
    const PrecisionGuard guard(precision, c10::kCPU);
    const auto segment = [&block](const at::Tensor& input) { return block.forward(input); };
    y = with_checkpoint ? checkpoint(segment, x) : segment(x);
    y = (with_checkpoint ? checkpoint(segment, y) : segment(y)).to(torch::kFloat).pow(2).mean();
  }
  const at::Tensor next = torch::rand({3});
  y.backward();
  Result result{{y.detach()}, block.calls, next};
  if (input_requires_grad) result.tensors.push_back(x.grad());
  for (const auto& p : block.parameters()) result.tensors.push_back(p.grad());
  return result;
}

TEST(GradientCheckpoint, LossAndGradientsAreTheSameBits) {
  for (const bool input_requires_grad : {true, false})
    for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
      const Result plain = run(false, input_requires_grad, precision);
      const Result saved = run(true, input_requires_grad, precision);
      EXPECT_EQ(plain.calls, 2);
      EXPECT_EQ(saved.calls, 4) << "the segment was not computed again";
      ASSERT_EQ(plain.tensors.size(), saved.tensors.size());
      for (std::size_t i = 0; i < plain.tensors.size(); ++i) {
        ASSERT_TRUE(saved.tensors[i].defined()) << "tensor " << i;
        EXPECT_TRUE(torch::equal(plain.tensors[i], saved.tensors[i])) << "tensor " << i;
      }
      EXPECT_TRUE(torch::equal(plain.next_random, saved.next_random)) << "the recomputation moved the generator";
    }
}

TEST(GradientCheckpoint, SeveralTensorsAndUnusedOutputsWork) {
  const at::Tensor a = torch::arange(3.0).set_requires_grad(true), b = torch::ones(3).set_requires_grad(true);
  const auto outputs = checkpoint(
      [](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{in[0] * in[1], in[0] + 2 * in[1]};
      },
      {a, b});
  outputs[1].sum().backward();
  EXPECT_TRUE(torch::equal(a.grad(), torch::ones(3)));
  EXPECT_TRUE(torch::equal(b.grad(), torch::full(3, 2.0)));
}

TEST(GradientCheckpoint, ASegmentThatChangesIsAnError) {
  int call = 0;
  const at::Tensor x = torch::ones(4).set_requires_grad(true);
  const at::Tensor y =
      checkpoint([&call](const at::Tensor& in) { return call++ == 0 ? in * 2 : in.slice(0, 0, 2) * 2; }, x);
  EXPECT_THROW(y.sum().backward(), Error);
}

TEST(GradientCheckpoint, WithoutGradModeItIsAPlainCall) {
  at::NoGradGuard no_grad;
  const at::Tensor x = torch::ones(4);
  const at::Tensor y = checkpoint([](const at::Tensor& in) { return in * 2; }, x);
  EXPECT_FALSE(y.requires_grad());
}

}  // namespace
}  // namespace cohort::train
