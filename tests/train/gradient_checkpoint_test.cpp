#include "train/gradient_checkpoint.h"

#include <map>
#include <thread>

#include <gtest/gtest.h>

#include <torch/autograd.h>
#include <torch/csrc/autograd/utils/lambda_post_hook.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/random_context.h"
#include "train/precision.h"
#include "train/tiny_training.h"

namespace cohort::train {
namespace {

enum class How { kPlain, kModules, kListed, kRunner };

/// A residual block with dropout of both kinds and BatchNorm; its input is used twice.
struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    in = register_module("in", torch::nn::Linear(8, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    out = register_module("out", torch::nn::Linear(16, 8));
  }
  at::Tensor forward(const at::Tensor& x) {
    at::Tensor h = norm(torch::gelu(in(x)));
    if (is_training()) h = keyed_dropout(h.to(torch::kFloat));
    return x + torch::dropout(out(h), 0.3, is_training());
  }
  torch::nn::Linear in{nullptr}, out{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
};

struct CheckpointedNet : torch::nn::Module {
  CheckpointedNet() {
    head = register_module("head", torch::nn::Linear(8, 1));
    for (int i = 0; i < 3; ++i) {
      blocks.push_back(std::make_shared<BlockImpl>());
      register_module("block" + std::to_string(i), blocks.back());
    }
  }
  at::Tensor forward(at::Tensor x, How how) {
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      const auto block = blocks[i];
      const SegmentFunction run = [block](const std::vector<at::Tensor>& in) {
        return std::vector<at::Tensor>{block->forward(in[0])};
      };
      if (how == How::kPlain) x = block->forward(x);
      if (how == How::kModules) x = gradient_checkpoint(*block, run, {x})[0];
      if (how == How::kListed) x = gradient_checkpoint(run, {x}, block->parameters())[0];
      if (how == How::kRunner) {
        x = models::run_segment(*block, [block](const std::vector<at::Tensor>& in) { return block->forward(in[0]); },
                                {x});
      }
    }
    return head(x);
  }
  std::vector<std::shared_ptr<BlockImpl>> blocks;
  torch::nn::Linear head{nullptr};
};

struct Outcome {
  std::vector<at::Tensor> tensors;  // loss, gradients, buffers, gradient of the input, next random number
};

Outcome run(How how, Precision precision, bool input_needs_gradient, bool in_another_thread = false) {
  torch::manual_seed(3);
  const auto owner = std::make_shared<CheckpointedNet>();
  CheckpointedNet& net = *owner;
  const at::Tensor x = torch::randn({6, 8}, torch::TensorOptions().requires_grad(input_needs_gradient));
  at::Tensor loss;
  {
    const models::RandomContextGuard random(
        {.seed = 9, .step = 4, .sample_ids = torch::tensor({5, 9, 11, 2, 3, 77}, torch::kLong)});
    const PrecisionGuard autocast(precision, c10::kCPU);
    const models::SegmentRunnerGuard runner(how == How::kRunner ? checkpointing_runner() : models::SegmentRunner());
    loss = net.forward(x, how).pow(2).mean();
  }
  // The engine may run backward in a thread that has none of this thread's surroundings.
  if (in_another_thread) {
    std::thread([&] { loss.backward(); }).join();
  } else {
    loss.backward();
  }
  Outcome outcome;
  outcome.tensors.push_back(loss.detach());
  for (const auto& parameter : net.parameters()) outcome.tensors.push_back(parameter.grad());
  for (const auto& buffer : net.buffers()) outcome.tensors.push_back(buffer);
  if (input_needs_gradient) outcome.tensors.push_back(x.grad());
  outcome.tensors.push_back(torch::rand(3));
  return outcome;
}

void expect_same(const Outcome& a, const Outcome& b, const std::string& what) {
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    ASSERT_EQ(a.tensors[i].defined(), b.tensors[i].defined()) << what << " " << i;
    EXPECT_TRUE(same_bits(a.tensors[i], b.tensors[i])) << what << ": tensor " << i << " differs";
  }
}

TEST(GradientCheckpoint, LossGradientsBuffersAndGeneratorsAreThoseWithoutIt) {
  for (const Precision precision : {Precision::kFp32, Precision::kBf16}) {
    for (const bool input_needs_gradient : {false, true}) {
      const Outcome plain = run(How::kPlain, precision, input_needs_gradient);
      for (const How how : {How::kModules, How::kRunner}) {
        expect_same(plain, run(how, precision, input_needs_gradient),
                    std::string(to_string(precision)) + " way " + std::to_string(static_cast<int>(how)));
      }
    }
  }
}

TEST(GradientCheckpoint, BackwardInAnotherThreadMeetsTheSameSurroundings) {
  expect_same(run(How::kPlain, Precision::kBf16, true, true), run(How::kModules, Precision::kBf16, true, true),
              "thread");
}

TEST(GradientCheckpoint, KeepsInputsAndNothingElse) {
  // Count what a segment saves: after forward, the activations inside are gone.
  std::weak_ptr<int> inside;
  at::Tensor x = torch::randn({4, 8}, torch::requires_grad());
  int calls = 0;
  const SegmentFunction forward = [&](const std::vector<at::Tensor>& in) {
    ++calls;
    const auto token = std::make_shared<int>(0);
    inside = token;
    at::Tensor memory = torch::zeros({4, 8});
    const at::Tensor kept = at::from_blob(
        memory.data_ptr(), {4, 8}, [token, memory](void*) {}, torch::kFloat);
    return std::vector<at::Tensor>{
        (in[0] * (kept + 2)).sin()};  // the product saves `kept`'s sum; sin saves the product
  };
  const auto plain = forward({x});
  (void)plain;
  const auto out = gradient_checkpoint(forward, {x}, {});
  EXPECT_TRUE(inside.expired());
  EXPECT_EQ(calls, 2);
  out[0].sum().backward();
  EXPECT_EQ(calls, 3);
  EXPECT_TRUE(at::allclose(x.grad(), 2 * (2 * x).cos()));
}

TEST(GradientCheckpoint, SeveralOutputsUndefinedInputsAndUnusedOnesWork) {
  at::Tensor a = torch::randn({3}, torch::requires_grad()), b = torch::randn({3}),
             unused = torch::randn({3}, torch::requires_grad());
  const SegmentFunction forward = [](const std::vector<at::Tensor>& in) {
    EXPECT_FALSE(in[1].defined());
    return std::vector<at::Tensor>{in[0] * in[2], in[0].exp(), in[2] + 1};
  };
  const auto out = gradient_checkpoint(forward, {a, at::Tensor(), b, unused}, {});
  ASSERT_EQ(out.size(), 3u);
  (out[0].sum() + out[1].sum()).backward();
  EXPECT_TRUE(at::allclose(a.grad(), b + a.exp()));
  EXPECT_FALSE(unused.grad().defined());
  const at::NoGradGuard no_grad;
  EXPECT_FALSE(gradient_checkpoint(forward, {a, at::Tensor(), b, unused}, {})[0].requires_grad());
}

TEST(GradientCheckpoint, APartInsideAPartWorks) {
  at::Tensor x = torch::randn({4}, torch::requires_grad()), w = torch::randn({4}, torch::requires_grad());
  const SegmentFunction inner = [w](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{(in[0] * w).sin()};
  };
  const SegmentFunction outer = [&](const std::vector<at::Tensor>& in) {
    return gradient_checkpoint(inner, {in[0].exp()}, {w});
  };
  gradient_checkpoint(outer, {x}, {w})[0].sum().backward();
  const at::Tensor gx = x.grad().clone(), gw = w.grad().clone();
  x.mutable_grad().reset();
  w.mutable_grad().reset();
  (x.exp() * w).sin().sum().backward();
  EXPECT_TRUE(same_bits(gx, x.grad()));
  EXPECT_TRUE(same_bits(gw, w.grad()));
}

TEST(GradientCheckpoint, AWeightThatIsNotListedIsAnErrorAndNoLostGradient) {
  at::Tensor x = torch::randn({4}, torch::requires_grad()), w = torch::randn({4, 2}, torch::requires_grad());
  const SegmentFunction forward = [w](const std::vector<at::Tensor>& in) {
    return std::vector<at::Tensor>{torch::matmul(in[0], w)};
  };
  const auto out = gradient_checkpoint(forward, {x}, {});
  try {
    out[0].sum().backward();
    FAIL() << "the gradient of w was lost silently";
  } catch (const std::exception& e) {
    EXPECT_NE(std::string(e.what()).find("[4, 2]"), std::string::npos) << e.what();
  }
}

TEST(GradientCheckpoint, EachParameterBecomesReadyOnce) {
  // DistributedDataParallel counts on its hooks running once per backward pass, when the gradient is complete.
  torch::manual_seed(3);
  const auto owner = std::make_shared<CheckpointedNet>();
  CheckpointedNet& net = *owner;
  std::map<std::string, int> ready;
  std::vector<std::shared_ptr<torch::autograd::Node>> alive;
  for (const auto& item : net.named_parameters()) {
    alive.push_back(torch::autograd::impl::grad_accumulator(item.value()));
    const std::string name = item.key();
    alive.back()->add_post_hook(std::make_unique<torch::autograd::utils::LambdaPostHook>(
        [&ready, name](const torch::autograd::variable_list& outputs, const torch::autograd::variable_list&) {
          ++ready[name];
          return outputs;
        }));
  }
  const models::RandomContextGuard random({.seed = 9, .step = 4, .sample_ids = torch::arange(6)});
  net.forward(torch::randn({6, 8}), How::kModules).pow(2).mean().backward();
  EXPECT_EQ(ready.size(), net.parameters().size());
  for (const auto& [name, count] : ready) EXPECT_EQ(count, 1) << name;
}

}  // namespace
}  // namespace cohort::train
