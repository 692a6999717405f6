#include "models/vision/resnet.h"

#include <array>
#include <map>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/convolution.h"
#include "models/layers.h"
#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

constexpr std::int64_t kChannelsPerGroup = 16;

std::shared_ptr<Convolution> convolution(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return std::make_shared<Convolution>(
      2,
      ConvolutionSettings{
          .in = in, .out = out, .kernel = kernel, .stride = stride, .padding = kernel / 2, .bias = false},
      Convolution::Start::kFanOutNormal);
}

/// Buffers weight, bias, running_mean, running_var (c); eps 1e-5. A factor and a sum per channel, which become part of the
/// convolution before it.
class FrozenBatchNorm : public torch::nn::Module {
 public:
  explicit FrozenBatchNorm(std::int64_t channels)
      : weight_(register_buffer("weight", at::ones({channels}))),
        bias_(register_buffer("bias", at::zeros({channels}))),
        mean_(register_buffer("running_mean", at::zeros({channels}))),
        variance_(register_buffer("running_var", at::ones({channels}))) {}
  at::Tensor after(const Convolution& convolution, const at::Tensor& x) const {
    const at::Tensor scale = weight_ * (variance_ + 1e-5).rsqrt();
    return convolution.forward_scaled(x, scale, bias_ - mean_ * scale);
  }

 private:
  at::Tensor weight_, bias_, mean_, variance_;
};

/// One of the three norms.
struct Norm {
  std::shared_ptr<GroupNorm> group;
  std::shared_ptr<BatchNorm> batch;
  std::shared_ptr<FrozenBatchNorm> frozen;

  Norm() = default;
  Norm(ResNetNorm kind, std::int64_t channels) {
    if (kind == ResNetNorm::kGroup)
      group = std::make_shared<GroupNorm>(channels / kChannelsPerGroup, channels);
    else if (kind == ResNetNorm::kBatch)
      batch = std::make_shared<BatchNorm>(channels);
    else
      frozen = std::make_shared<FrozenBatchNorm>(channels);
  }
  std::shared_ptr<torch::nn::Module> module() const {
    if (group) return group;
    if (batch) return batch;
    return frozen;
  }
  /// Of the convolution's result.
  at::Tensor after(const Convolution& convolution, const at::Tensor& x) const {
    if (frozen) return frozen->after(convolution, x);
    const at::Tensor y = convolution.forward(x);
    return group ? group->forward(y) : batch->forward(y);
  }
};

/// A residual block: two 3x3 convolutions, or (bottleneck) 1x1, 3x3, 1x1 with four times the channels at the end.
/// Weights: conv1, bn1, conv2, bn2[, conv3, bn3][, downsample.0, downsample.1].
class Block : public torch::nn::Module {
 public:
  Block(std::int64_t in, std::int64_t width, std::int64_t stride, bool bottleneck, ResNetNorm norm) : kind_(norm) {
    const std::int64_t out = bottleneck ? 4 * width : width;
    if (bottleneck) {
      add(convolution(in, width, 1, 1), width);
      add(convolution(width, width, 3, stride), width);
      add(convolution(width, out, 1, 1), out);
    } else {
      add(convolution(in, width, 3, stride), width);
      add(convolution(width, out, 3, 1), out);
    }
    if (stride != 1 || in != out) {
      const auto list = register_module("downsample", std::make_shared<ModuleList>());
      shortcut_ = list->append(convolution(in, out, 1, stride));
      shortcut_norm_ = Norm(norm, out);
      list->append(shortcut_norm_.module());
    }
  }

  at::Tensor forward(const at::Tensor& x) const {
    at::Tensor y = x;
    for (std::size_t i = 0; i < convolutions_.size(); ++i) {
      y = norms_[i].after(*convolutions_[i], y);
      if (i + 1 < convolutions_.size()) y = at::relu(y);
    }
    return at::relu(y + (shortcut_ ? shortcut_norm_.after(*shortcut_, x) : x));
  }

 private:
  void add(std::shared_ptr<Convolution> conv, std::int64_t out) {
    const std::string number = std::to_string(convolutions_.size() + 1);
    convolutions_.push_back(register_module("conv" + number, std::move(conv)));
    norms_.emplace_back(kind_, out);
    register_module("bn" + number, norms_.back().module());
  }

  ResNetNorm kind_;
  std::vector<std::shared_ptr<Convolution>> convolutions_;
  std::vector<Norm> norms_;
  std::shared_ptr<Convolution> shortcut_;
  Norm shortcut_norm_;
};

}  // namespace

struct ResNet::Layers {
  std::shared_ptr<Convolution> stem;
  Norm stem_norm;
  std::vector<std::vector<std::shared_ptr<Block>>> groups;
  std::int64_t output_channels = 512;
};

ResNet::ResNet(int depth, std::int64_t input_channels, ResNetNames names, ResNetNorm norm)
    : layers_(std::make_unique<Layers>()) {
  static const std::map<int, std::array<int, 4>> kBlocks{{18, {2, 2, 2, 2}}, {34, {3, 4, 6, 3}}, {50, {3, 4, 6, 3}}};
  const auto found = kBlocks.find(depth);
  COHORT_THROW_UNLESS(found != kBlocks.end(), "there is no ResNet-{} here, only ResNet-18, -34 and -50", depth);
  const bool sequential = names == ResNetNames::kSequential, bottleneck = depth == 50;
  layers_->stem = register_module(
      sequential ? "0" : "conv1",
      std::make_shared<Convolution>(
          2,
          ConvolutionSettings{.in = input_channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3, .bias = false},
          Convolution::Start::kFanOutNormal));
  layers_->stem_norm = Norm(norm, 64);
  register_module(sequential ? "1" : "bn1", layers_->stem_norm.module());
  std::int64_t in = 64;
  for (std::size_t g = 0; g < 4; ++g) {
    const auto list = register_module(sequential ? std::to_string(g + 4) : "layer" + std::to_string(g + 1),
                                      std::make_shared<ModuleList>());
    const std::int64_t width = std::int64_t{64} << g;
    auto& group = layers_->groups.emplace_back();
    for (int b = 0; b < found->second[g]; ++b) {
      group.push_back(list->append(std::make_shared<Block>(in, width, g > 0 && b == 0 ? 2 : 1, bottleneck, norm)));
      in = bottleneck ? 4 * width : width;
    }
  }
  layers_->output_channels = in;
}

ResNet::~ResNet() = default;

std::int64_t ResNet::output_channels() const {
  return layers_->output_channels;
}

at::Tensor ResNet::forward(const at::Tensor& x_BCHW) const {
  at::Tensor x = at::relu(layers_->stem_norm.after(*layers_->stem, x_BCHW));
  x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (const auto& group : layers_->groups)
    for (const auto& held : group) {
      const Block& block = *held;
      x = run_segment(block, [&block](const std::vector<at::Tensor>& in) { return block.forward(in[0]); }, {x});
    }
  return x;
}

}  // namespace cohort::models
