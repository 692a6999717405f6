#include "models/vision/visual_core.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/convolution.h"
#include "models/layers.h"
#include "models/module_list.h"
#include "models/vision/resnet.h"
#include "models/vision/shallow_conv.h"

namespace cohort::models {
namespace {

constexpr const char* kShallow = "ShallowConv";

int depth_of(const std::string& backbone_class) {
  if (backbone_class == "ResNet18Conv") return 18;
  if (backbone_class == "ResNet34Conv") return 34;
  if (backbone_class == "ResNet50Conv") return 50;
  COHORT_THROW_UNLESS(false,
                      "backbone_class = \"{}\", but must be ShallowConv, ResNet18Conv, ResNet34Conv or ResNet50Conv",
                      backbone_class);
  return 0;
}

/// A module with one child of the given name.
class Wrapper : public torch::nn::Module {
 public:
  template <class M>
  std::shared_ptr<M> hold(const std::string& name, std::shared_ptr<M> child) {
    return register_module(name, std::move(child));
  }
};

}  // namespace

void describe(config::Fields& fields, VisualCoreSettings& s) {
  fields.add_choice("backbone_class", s.backbone_class, {"ShallowConv", "ResNet18Conv", "ResNet34Conv", "ResNet50Conv"},
                    "image trunk; ShallowConv: four convolutions, for small pictures");
  fields.add_choice("pool_class", s.pool_class, {"none", "SpatialSoftmax"},
                    "none: the whole feature map goes on; SpatialSoftmax: image coordinates of learned keypoints");
  fields.section("pool_kwargs", [&] {
    fields.add("num_kp", s.pool.num_kp, "keypoints");
    fields.add("temperature", s.pool.temperature, "of the softmax; smaller is sharper");
    fields.add("learnable_temperature", s.pool.learnable_temperature, "train the temperature, too");
  });
  fields.add_choice("norm", s.norm, {"group", "batch"}, "normalisation in the trunk");
  fields.add("feature_dimension", s.feature_dimension, "numbers per image; 0: as many as the trunk or pool gives");
}

void check(const VisualCoreSettings& s) {
  if (s.backbone_class != kShallow) depth_of(s.backbone_class);
  COHORT_THROW_UNLESS(s.pool_class == "none" || s.pool_class == "SpatialSoftmax",
                      "pool_class = \"{}\", but must be none or SpatialSoftmax", s.pool_class);
  COHORT_THROW_UNLESS(s.norm == "group" || s.norm == "batch", "norm = \"{}\", but must be group or batch", s.norm);
  COHORT_THROW_UNLESS(s.pool.num_kp >= 1, "pool_kwargs.num_kp = {}, but must be at least 1", s.pool.num_kp);
  COHORT_THROW_UNLESS(s.pool.temperature > 0, "pool_kwargs.temperature = {}, but must be positive", s.pool.temperature);
  COHORT_THROW_UNLESS(s.feature_dimension >= 0, "feature_dimension = {}, but must not be negative",
                      s.feature_dimension);
}

SpatialSoftmax::SpatialSoftmax(const SpatialSoftmaxSettings& settings, std::int64_t channels, std::int64_t height,
                               std::int64_t width)
    : start_temperature_(settings.temperature), learnable_(settings.learnable_temperature) {
  convolution_ = register_module(
      "nets", std::make_shared<Convolution>(2, ConvolutionSettings{.in = channels, .out = settings.num_kp}));
  temperature_ = at::full({1}, settings.temperature, at::kFloat);
  temperature_ =
      learnable_ ? register_parameter("temperature", temperature_) : register_buffer("temperature", temperature_);
  const auto line = [](std::int64_t n) { return at::linspace(-1.0, 1.0, n, at::TensorOptions(at::kDouble)); };
  pos_x_ = register_buffer("pos_x", line(width).repeat({height}).reshape({1, -1}).to(at::kFloat));
  pos_y_ = register_buffer("pos_y", line(height).repeat_interleave(width).reshape({1, -1}).to(at::kFloat));
}

at::Tensor SpatialSoftmax::forward(const at::Tensor& x_BCHW) const {
  const at::Tensor maps = static_cast<const Convolution&>(*convolution_).forward(x_BCHW);
  const std::int64_t batch = maps.size(0), points = maps.size(1);
  const at::Tensor attention = at::softmax(maps.reshape({batch * points, -1}) / temperature_, -1);
  const at::Tensor x = (pos_x_ * attention).sum(1, true), y = (pos_y_ * attention).sum(1, true);
  return at::cat({x, y}, 1).view({batch, points, 2});
}

void SpatialSoftmax::initialise(Initialiser& initialiser) {
  if (learnable_) initialiser.constant(temperature_, start_temperature_);
}

struct VisualCore::Layers {
  std::shared_ptr<ResNet> trunk;         ///< this or
  std::shared_ptr<ShallowConv> shallow;  ///< this
  std::shared_ptr<SpatialSoftmax> pool;
  std::shared_ptr<Linear> linear;
};

VisualCore::VisualCore(const VisualCoreSettings& settings, std::array<std::int64_t, 3> image)
    : layers_(std::make_unique<Layers>()), image_(image) {
  check(settings);
  const auto backbone = register_module("backbone", std::make_shared<Wrapper>());
  const bool shallow = settings.backbone_class == kShallow;
  if (shallow)
    layers_->shallow = backbone->hold("nets", std::make_shared<ShallowConv>(image[0]));
  else
    layers_->trunk = backbone->hold(
        "nets", std::make_shared<ResNet>(depth_of(settings.backbone_class), image[0], ResNetNames::kSequential,
                                         settings.norm == "group" ? ResNetNorm::kGroup : ResNetNorm::kBatch));
  const std::int64_t channels = shallow ? ShallowConv::kOutputChannels : layers_->trunk->output_channels();
  const std::int64_t shrinks = shallow ? 2 : 32;
  const std::int64_t height = (image[1] + shrinks - 1) / shrinks, width = (image[2] + shrinks - 1) / shrinks;
  width_ = channels * height * width;
  if (settings.pool_class == "SpatialSoftmax") {
    layers_->pool = register_module("pool", std::make_shared<SpatialSoftmax>(settings.pool, channels, height, width));
    width_ = 2 * settings.pool.num_kp;
  }
  if (settings.feature_dimension > 0) {
    // Sequential(trunk[, pool], Flatten, Linear).
    const auto nets = register_module("nets", std::make_shared<Wrapper>());
    layers_->linear =
        nets->hold(layers_->pool ? "3" : "2", std::make_shared<Linear>(width_, settings.feature_dimension));
    width_ = settings.feature_dimension;
  }
}

VisualCore::~VisualCore() = default;

at::Tensor VisualCore::forward(const at::Tensor& x_BCHW) const {
  COHORT_CHECK(x_BCHW.dim() == 4 && x_BCHW.sizes().slice(1) == at::IntArrayRef(image_),
               "image encoder: images have shape {}, but must be (samples, {}, {}, {})", c10::str(x_BCHW.sizes()),
               image_[0], image_[1], image_[2]);
  at::Tensor x = layers_->shallow ? layers_->shallow->forward(x_BCHW) : layers_->trunk->forward(x_BCHW);
  if (layers_->pool) x = layers_->pool->forward(x);
  x = x.flatten(1);
  return layers_->linear ? layers_->linear->forward(x) : x;
}

}  // namespace cohort::models
