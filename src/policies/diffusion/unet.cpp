#include "policies/diffusion/unet.h"

#include <cmath>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/convolution.h"
#include "models/layers.h"
#include "models/module_list.h"
#include "models/segment.h"

namespace cohort::models {
namespace {

constexpr int kFinalGroups = 8;  // the reference's last block takes its default, not n_groups

/// A module without weights, to hold its place in a list: torch.nn.Mish, Identity, Unflatten, ...
class Weightless : public torch::nn::Module {};

void hold_place(ModuleList& list) {
  list.append(std::make_shared<Weightless>());
}

/// Convolution, group norm, Mish. Weights: block.0.*, block.1.*.
class ConvBlock : public torch::nn::Module {
 public:
  ConvBlock(std::int64_t in, std::int64_t out, int kernel, int groups) {
    const auto block = register_module("block", std::make_shared<ModuleList>());
    conv_ = block->append(std::make_shared<Convolution>(
        1, ConvolutionSettings{.in = in, .out = out, .kernel = kernel, .padding = kernel / 2}));
    norm_ = block->append(std::make_shared<GroupNorm>(groups, out));
  }
  at::Tensor forward(const at::Tensor& x_BCT) const { return at::mish(norm_->forward(conv_->forward(x_BCT))); }

 private:
  std::shared_ptr<Convolution> conv_;
  std::shared_ptr<GroupNorm> norm_;
};

/// Two blocks with FiLM between them, and a way around. Weights: blocks.0.*, blocks.1.*, cond_encoder.1.*,
/// residual_conv.*.
class ResidualBlock : public torch::nn::Module {
 public:
  ResidualBlock(std::int64_t in, std::int64_t out, std::int64_t condition, const UnetSettings& s)
      : out_(out), scales_(s.cond_predict_scale) {
    const auto blocks = register_module("blocks", std::make_shared<ModuleList>());
    first_ = blocks->append(std::make_shared<ConvBlock>(in, out, s.kernel_size, s.n_groups));
    second_ = blocks->append(std::make_shared<ConvBlock>(out, out, s.kernel_size, s.n_groups));
    const auto encoder = register_module("cond_encoder", std::make_shared<ModuleList>());
    hold_place(*encoder);  // Mish
    condition_ = encoder->append(std::make_shared<Linear>(condition, scales_ ? 2 * out : out));
    if (in != out)
      residual_ =
          register_module("residual_conv", std::make_shared<Convolution>(1, ConvolutionSettings{.in = in, .out = out}));
  }

  /// A segment (models/segment.h) on x (B, in, T), given in parts that are joined along channels.
  at::Tensor run(std::vector<at::Tensor> parts, const at::Tensor& condition) const {
    parts.push_back(condition);
    return run_segment(
        *this,
        [this](const std::vector<at::Tensor>& in) {
          return in.size() == 2 ? forward(in[0], in[1]) : forward(at::cat({in[0], in[1]}, 1), in[2]);
        },
        parts);
  }

 private:
  /// x (B, in, T); condition (B, ...) after Mish.
  at::Tensor forward(const at::Tensor& x_BCT, const at::Tensor& condition) const {
    at::Tensor y = first_->forward(x_BCT);
    const at::Tensor film = condition_->forward(condition).unsqueeze(-1);
    y = scales_ ? film.narrow(1, 0, out_) * y + film.narrow(1, out_, out_) : y + film;
    y = second_->forward(y);
    return y + (residual_ ? residual_->forward(x_BCT) : x_BCT);
  }

  std::int64_t out_;
  bool scales_;
  std::shared_ptr<ConvBlock> first_, second_;
  std::shared_ptr<Linear> condition_;
  std::shared_ptr<Convolution> residual_;
};

/// Down- and upsampling: torch.nn modules inside one more level of names, "conv".
class Resample : public torch::nn::Module {
 public:
  explicit Resample(const ConvolutionSettings& settings)
      : conv_(register_module("conv", std::make_shared<Convolution>(1, settings))) {}
  at::Tensor forward(const at::Tensor& x) const { return conv_->forward(x); }

 private:
  std::shared_ptr<Convolution> conv_;
};

/// Two residual blocks and a change of resolution, or none. Weights: 0.*, 1.*, 2.conv.*.
class Level : public ModuleList {
 public:
  Level(std::int64_t in, std::int64_t out, std::int64_t condition, const UnetSettings& s,
        const ConvolutionSettings* resample)
      : first_(append(std::make_shared<ResidualBlock>(in, out, condition, s))),
        second_(append(std::make_shared<ResidualBlock>(out, out, condition, s))) {
    if (resample) resample_ = append(std::make_shared<Resample>(*resample));
  }
  /// `parts` (B, ..., T) are joined along channels first.
  at::Tensor blocks(const std::vector<at::Tensor>& parts, const at::Tensor& condition) const {
    return second_->run({first_->run(parts, condition)}, condition);
  }
  at::Tensor resample(const at::Tensor& x) const { return resample_ ? resample_->forward(x) : x; }

 private:
  std::shared_ptr<ResidualBlock> first_, second_;
  std::shared_ptr<Resample> resample_;
};

class Unet : public Denoiser {
 public:
  Unet(const UnetSettings& s, int chunk, int action_width, int condition_width)
      : Denoiser("Unet"), settings_(s), chunk_(chunk), action_width_(action_width), condition_width_(condition_width) {
    const std::int64_t embedding = s.diffusion_step_embed_dim, condition = embedding + condition_width;
    std::vector<std::int64_t> widths{action_width};
    widths.insert(widths.end(), s.down_dims.begin(), s.down_dims.end());
    const std::size_t levels = s.down_dims.size();
    // Registered in the reference's order.
    const auto mid = register_module("mid_modules", std::make_shared<ModuleList>());
    for (int i = 0; i < 2; ++i)
      mid_.push_back(mid->append(std::make_shared<ResidualBlock>(widths.back(), widths.back(), condition, s)));
    const auto step = register_module("diffusion_step_encoder", std::make_shared<ModuleList>());
    hold_place(*step);  // the sinusoids
    expand_ = step->append(std::make_shared<Linear>(embedding, 4 * embedding));
    hold_place(*step);  // Mish
    contract_ = step->append(std::make_shared<Linear>(4 * embedding, embedding));
    const auto up = register_module("up_modules", std::make_shared<ModuleList>());
    for (std::size_t i = levels - 1; i >= 1; --i) {
      // Every level but the first brings the resolution back.
      const ConvolutionSettings wider{
          .in = widths[i], .out = widths[i], .kernel = 4, .stride = 2, .padding = 1, .transposed = true};
      up_.push_back(up->append(std::make_shared<Level>(2 * widths[i + 1], widths[i], condition, s, &wider)));
    }
    const auto down = register_module("down_modules", std::make_shared<ModuleList>());
    for (std::size_t i = 0; i < levels; ++i) {
      const ConvolutionSettings narrower{
          .in = widths[i + 1], .out = widths[i + 1], .kernel = 3, .stride = 2, .padding = 1};
      down_.push_back(down->append(
          std::make_shared<Level>(widths[i], widths[i + 1], condition, s, i + 1 < levels ? &narrower : nullptr)));
    }
    const auto last = register_module("final_conv", std::make_shared<ModuleList>());
    final_block_ = last->append(std::make_shared<ConvBlock>(widths[1], widths[1], s.kernel_size, kFinalGroups));
    final_conv_ =
        last->append(std::make_shared<Convolution>(1, ConvolutionSettings{.in = widths[1], .out = action_width}));
  }

  at::Tensor forward(const at::Tensor& actions_BTA, const at::Tensor& timesteps_B,
                     const at::Tensor& features_BOF) const override {
    COHORT_CHECK(actions_BTA.dim() == 3 && actions_BTA.size(1) == chunk_ && actions_BTA.size(2) == action_width_,
                 "U-Net: actions have shape {}, but must be (samples, {}, {})", c10::str(actions_BTA.sizes()), chunk_,
                 action_width_);
    const at::Tensor seen = features_BOF.flatten(1);
    COHORT_CHECK(seen.size(1) == condition_width_, "U-Net: observations have {} numbers, but must have {}",
                 seen.size(1), condition_width_);
    const at::Tensor embedded = timestep_embedding(timesteps_B, settings_.diffusion_step_embed_dim);
    const at::Tensor step = contract_->forward(at::mish(expand_->forward(embedded)));
    // Every block begins its FiLM with Mish of the same vector.
    const at::Tensor condition = at::mish(at::cat({step.to(seen.scalar_type()), seen}, -1));
    at::Tensor x = actions_BTA.transpose(1, 2);
    std::vector<at::Tensor> kept;
    for (std::size_t i = 0; i < down_.size(); ++i) {
      x = down_[i]->blocks({x}, condition);
      kept.push_back(x);
      x = down_[i]->resample(x);
    }
    for (const auto& block : mid_) x = block->run({x}, condition);
    for (const auto& level : up_) {
      x = level->resample(level->blocks({x, kept.back()}, condition));
      kept.pop_back();
    }
    return final_conv_->forward(final_block_->forward(x)).transpose(1, 2);
  }

 private:
  UnetSettings settings_;
  int chunk_, action_width_, condition_width_;
  std::shared_ptr<Linear> expand_, contract_;
  std::vector<std::shared_ptr<ResidualBlock>> mid_;
  std::vector<std::shared_ptr<Level>> down_, up_;
  std::shared_ptr<ConvBlock> final_block_;
  std::shared_ptr<Convolution> final_conv_;
};

}  // namespace

at::Tensor timestep_embedding(const at::Tensor& timesteps_B, std::int64_t width) {
  COHORT_THROW_UNLESS(width % 2 == 0 && width >= 4, "a timestep's embedding needs an even width of at least 4, not {}",
                      width);
  const std::int64_t half = width / 2;
  const auto options = at::TensorOptions(at::kFloat).device(timesteps_B.device());
  const at::Tensor rates = at::exp(at::arange(half, options) * -(std::log(10000.0) / static_cast<double>(half - 1)));
  const at::Tensor angle = timesteps_B.to(at::kFloat).unsqueeze(1) * rates.unsqueeze(0);
  return at::cat({angle.sin(), angle.cos()}, -1);
}

void describe(config::Fields& fields, UnetSettings& s) {
  fields.add("diffusion_step_embed_dim", s.diffusion_step_embed_dim, "width of the timestep's embedding");
  fields.add("down_dims", s.down_dims, "channels of each level; each level but the first halves the chunk");
  fields.add("kernel_size", s.kernel_size, "of the convolutions along the chunk; odd");
  fields.add("n_groups", s.n_groups, "of group norm");
  fields.add("cond_predict_scale", s.cond_predict_scale, "observations scale and shift channels; false: shift only");
}

void check(const UnetSettings& s, int chunk) {
  COHORT_THROW_UNLESS(s.diffusion_step_embed_dim >= 4 && s.diffusion_step_embed_dim % 2 == 0,
                      "unet: diffusion_step_embed_dim = {}, but must be even and at least 4",
                      s.diffusion_step_embed_dim);
  COHORT_THROW_UNLESS(!s.down_dims.empty(), "unet: down_dims is empty, but must name the channels of each level");
  for (std::size_t i = 0; i < s.down_dims.size(); ++i)
    COHORT_THROW_UNLESS(s.down_dims[i] >= 1 && s.n_groups >= 1 && s.down_dims[i] % s.n_groups == 0,
                        "unet: down_dims[{}] = {}, but must be a multiple of n_groups = {}", i, s.down_dims[i],
                        s.n_groups);
  COHORT_THROW_UNLESS(s.down_dims[0] % kFinalGroups == 0,
                      "unet: down_dims[0] = {}, but must be a multiple of {}, the groups of the last block's norm",
                      s.down_dims[0], kFinalGroups);
  COHORT_THROW_UNLESS(s.kernel_size >= 1 && s.kernel_size % 2 == 1, "unet: kernel_size = {}, but must be odd",
                      s.kernel_size);
  const int halvings = static_cast<int>(s.down_dims.size()) - 1;
  COHORT_THROW_UNLESS(
      chunk >= 1 && halvings < 31 && chunk % (1 << halvings) == 0,
      "unet: an action chunk (prediction_horizon) of {} rows cannot be halved {} times; down_dims has {} "
      "levels",
      chunk, halvings, s.down_dims.size());
}

std::shared_ptr<Denoiser> make_unet(const UnetSettings& s, int chunk, int action_width, int condition) {
  check(s, chunk);
  COHORT_THROW_UNLESS(action_width >= 1 && condition >= 0, "unet: {} action columns and {} observed numbers",
                      action_width, condition);
  return std::make_shared<Unet>(s, chunk, action_width, condition);
}

}  // namespace cohort::models
