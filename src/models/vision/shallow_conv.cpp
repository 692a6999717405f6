#include "models/vision/shallow_conv.h"

#include <string>

#include <torch/types.h>

namespace cohort::models {

ShallowConv::ShallowConv(std::int64_t input_channels) {
  const ConvolutionSettings settings[] = {{.in = input_channels, .out = 64, .kernel = 7, .stride = 2, .padding = 3},
                                          {.in = 64, .out = 32},
                                          {.in = 32, .out = 32, .kernel = 3, .padding = 1},
                                          {.in = 32, .out = kOutputChannels, .kernel = 3, .padding = 1}};
  // Between them stand the ReLUs of a Sequential, which have numbers, too.
  for (const ConvolutionSettings& s : settings)
    convolutions_.push_back(
        register_module(std::to_string(2 * convolutions_.size()), std::make_shared<Convolution>(2, s)));
}

at::Tensor ShallowConv::forward(const at::Tensor& x_BCHW) const {
  at::Tensor x = x_BCHW;
  for (std::size_t i = 0; i < convolutions_.size(); ++i) {
    x = convolutions_[i]->forward(x);
    if (i + 1 < convolutions_.size()) x = at::relu(x);
  }
  return x;
}

}  // namespace cohort::models
