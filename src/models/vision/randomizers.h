/// Image randomizers inside a policy, as robomimic has them: colour jitter and crops while training, centre crops at
/// evaluation. What is drawn belongs to the sample: it is keyed by (seed, sample id, step), not by a generator's state.
#pragma once
#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"

namespace cohort::models {

struct ColorRandomizerSettings {
  bool enabled = false;
  double brightness = 0.3;  ///< factor from [1 - b, 1 + b], not below 0
  double contrast = 0.3;    ///< likewise
  double saturation = 0.3;  ///< likewise
  double hue = 0.3;         ///< shift from [-h, h] of the colour circle; at most 0.5
  int num_samples = 1;      ///< jitters per image; their features are averaged
};

struct CropRandomizerSettings {
  bool enabled = false;
  int crop_height = 116;  ///< pixels
  int crop_width = 116;   ///< pixels
  int num_crops = 1;      ///< crops per image; their features are averaged
  bool random = true;     ///< at random while training; else at the centre then, too
  /// A half pixel of the centre's corner is rounded to the even pixel, as torchvision's CenterCrop does; else down, as
  /// robomimic does.
  bool half_to_even = false;
};

void describe(config::Fields& fields, ColorRandomizerSettings& settings);
void describe(config::Fields& fields, CropRandomizerSettings& settings);
void check(const ColorRandomizerSettings& settings);
/// For images of this size.
void check(const CropRandomizerSettings& settings, std::int64_t height, std::int64_t width);

/// Which images are randomized: those of one camera, sample by sample, the frames of a sample one after another.
struct ImageKeys {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;
  std::vector<std::int64_t> sample_ids;
  int frames = 1;  ///< images per sample
  int camera = 0;  ///< its place among the observations
};

/// Colour jitter of each image. factors (N, 4) float32: brightness, contrast, saturation, hue; order (N, 4) int64:
/// which of them comes first, second, ... Both on the CPU.
struct ColorJitter {
  at::Tensor factors, order;
};
ColorJitter draw_color_jitter(const ColorRandomizerSettings& settings, const ImageKeys& keys);
/// images (N, 3, H, W) float in [0, 1]; each operation is torchvision's adjust_* for tensors.
at::Tensor apply_color_jitter(const at::Tensor& images, const ColorJitter& jitter);

/// Upper left corners (N, 2) int64 on the CPU: row, column. As robomimic draws them, the last possible row and column
/// are left out.
at::Tensor draw_crop_corners(const CropRandomizerSettings& settings, const ImageKeys& keys, std::int64_t height,
                             std::int64_t width);
/// Crops (N, C, crop_height, crop_width) of images (N, C, H, W).
at::Tensor crop(const at::Tensor& images, const at::Tensor& corners, std::int64_t crop_height, std::int64_t crop_width);
at::Tensor center_crop(const at::Tensor& images, std::int64_t crop_height, std::int64_t crop_width,
                       bool half_to_even = false);

}  // namespace cohort::models
