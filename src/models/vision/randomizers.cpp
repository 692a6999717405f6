#include "models/vision/randomizers.h"

#include <algorithm>
#include <array>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/philox.h"

namespace cohort::models {
namespace {

/// Each image's numbers begin here: two Philox calls of four words.
constexpr std::uint64_t kWordsPerImage = 8;
/// Crops draw beyond all colour jitters of a sample.
constexpr std::uint64_t kCropStart = std::uint64_t{1} << 32;

/// Calls draw(n, stream, first index) for image n of all.
template <class Draw>
void for_each_image(const ImageKeys& keys, int copies, std::uint64_t start, const Draw& draw) {
  std::int64_t n = 0;
  for (const std::int64_t id : keys.sample_ids) {
    const RandomStream stream(keys.seed, RandomPurpose::kAugmentation, static_cast<std::uint64_t>(id), keys.step);
    for (int image = 0; image < keys.frames * copies; ++image) {
      const auto place = static_cast<std::uint64_t>(keys.camera) * 65536u + static_cast<std::uint64_t>(image);
      draw(n++, stream, start + place * kWordsPerImage);
    }
  }
}

/// ratio·image + (1 - ratio)·other, in [0, 1]. ratio (n, 1, 1, 1).
at::Tensor blend(const at::Tensor& image, const at::Tensor& other, const at::Tensor& ratio) {
  return (ratio * image + (1.0 - ratio) * other).clamp(0.0, 1.0);
}

at::Tensor gray(const at::Tensor& x) {
  return 0.2989 * x.narrow(1, 0, 1) + 0.587 * x.narrow(1, 1, 1) + 0.114 * x.narrow(1, 2, 1);
}

/// Through hue, saturation and value (Smith 1978). shift (n, 1, 1, 1).
at::Tensor shift_hue(const at::Tensor& x, const at::Tensor& shift) {
  const at::Tensor r = x.narrow(1, 0, 1), g = x.narrow(1, 1, 1), b = x.narrow(1, 2, 1);
  const at::Tensor value = x.amax(1, true), range = value - x.amin(1, true);
  const at::Tensor is_gray = range == 0, one = at::ones_like(value);
  const at::Tensor saturation = range / at::where(is_gray, one, value);
  const at::Tensor divisor = at::where(is_gray, one, range);
  const at::Tensor from_r = (value - r) / divisor, from_g = (value - g) / divisor, from_b = (value - b) / divisor;
  const at::Tensor r_leads = value == r, g_leads = (value == g) & ~r_leads, b_leads = ~(value == g) & ~r_leads;
  at::Tensor hue = r_leads * (from_b - from_g) + g_leads * (2.0 + from_r - from_b) + b_leads * (4.0 + from_g - from_r);
  hue = at::fmod(hue / 6.0 + 1.0, 1.0);
  hue = at::remainder(hue + shift, 1.0);
  const at::Tensor sector = at::floor(hue * 6.0), f = hue * 6.0 - sector;
  const at::Tensor p = (value * (1.0 - saturation)).clamp(0.0, 1.0);
  const at::Tensor q = (value * (1.0 - saturation * f)).clamp(0.0, 1.0);
  const at::Tensor t = (value * (1.0 - saturation * (1.0 - f))).clamp(0.0, 1.0);
  const at::Tensor index = at::remainder(sector.to(at::kLong), 6);
  const auto pick = [&](const std::array<at::Tensor, 6>& by_sector) {
    return at::cat(at::TensorList(by_sector), 1).gather(1, index);
  };
  return at::cat({pick({value, q, p, p, t, value}), pick({t, value, value, q, p, p}), pick({p, p, t, value, value, q})},
                 1);
}

at::Tensor adjusted(const at::Tensor& x, std::int64_t operation, const at::Tensor& factor) {
  switch (operation) {
    case 0:
      return blend(x, at::zeros_like(x), factor);
    case 1:
      return blend(x, gray(x).mean({1, 2, 3}, true), factor);
    case 2:
      return blend(x, gray(x), factor);
    default:
      return shift_hue(x, factor);
  }
}

}  // namespace

void describe(config::Fields& fields, ColorRandomizerSettings& s) {
  fields.add("enabled", s.enabled, "jitter the colours of training images");
  fields.add("brightness", s.brightness, "factor from 1 +- this");
  fields.add("contrast", s.contrast, "factor from 1 +- this");
  fields.add("saturation", s.saturation, "factor from 1 +- this");
  fields.add("hue", s.hue, "shift from +- this part of the colour circle");
  fields.add("num_samples", s.num_samples, "jitters per image, whose features are averaged");
}

void describe(config::Fields& fields, CropRandomizerSettings& s) {
  fields.add("enabled", s.enabled, "crop images: at random while training, else at the centre");
  fields.add("crop_height", s.crop_height, "pixels");
  fields.add("crop_width", s.crop_width, "pixels");
  fields.add("num_crops", s.num_crops, "crops per image, whose features are averaged");
  fields.add("random", s.random, "crop at random while training; false: at the centre then, too");
  fields.add("half_to_even", s.half_to_even,
             "round half a pixel of the centre's corner to the even one, as torchvision does; false: down");
}

void check(const ColorRandomizerSettings& s) {
  const std::array<std::pair<const char*, double>, 3> factors{
      {{"brightness", s.brightness}, {"contrast", s.contrast}, {"saturation", s.saturation}}};
  for (const auto& [name, value] : factors)
    COHORT_THROW_UNLESS(value >= 0, "ColorRandomizer: {} = {}, but must not be negative", name, value);
  COHORT_THROW_UNLESS(s.hue >= 0 && s.hue <= 0.5, "ColorRandomizer: hue = {}, but must be in [0, 0.5]", s.hue);
  COHORT_THROW_UNLESS(s.num_samples >= 1, "ColorRandomizer: num_samples = {}, but must be at least 1", s.num_samples);
}

void check(const CropRandomizerSettings& s, std::int64_t height, std::int64_t width) {
  COHORT_THROW_UNLESS(
      s.crop_height >= 1 && s.crop_height < height && s.crop_width >= 1 && s.crop_width < width,
      "CropRandomizer: crop_height = {} and crop_width = {}, but must be smaller than the image's {} x {} pixels",
      s.crop_height, s.crop_width, height, width);
  COHORT_THROW_UNLESS(s.num_crops >= 1, "CropRandomizer: num_crops = {}, but must be at least 1", s.num_crops);
}

ColorJitter draw_color_jitter(const ColorRandomizerSettings& s, const ImageKeys& keys) {
  const auto count = static_cast<std::int64_t>(keys.sample_ids.size()) * keys.frames * s.num_samples;
  ColorJitter jitter{at::empty({count, 4}, at::kFloat), at::empty({count, 4}, at::kLong)};
  float* factors = jitter.factors.mutable_data_ptr<float>();
  std::int64_t* orders = jitter.order.mutable_data_ptr<std::int64_t>();
  for_each_image(keys, s.num_samples, 0, [&](std::int64_t n, const RandomStream& stream, std::uint64_t first) {
    const std::array<double, 4> low{std::max(0.0, 1 - s.brightness), std::max(0.0, 1 - s.contrast),
                                    std::max(0.0, 1 - s.saturation), -s.hue};
    const std::array<double, 4> high{1 + s.brightness, 1 + s.contrast, 1 + s.saturation, s.hue};
    std::array<std::int64_t, 4> order{0, 1, 2, 3};
    for (std::uint64_t k = 0; k < 4; ++k)
      factors[n * 4 + static_cast<std::int64_t>(k)] =
          static_cast<float>(low[k] + (high[k] - low[k]) * static_cast<double>(stream.uniform(first + k)));
    for (std::uint32_t k = 3; k > 0; --k) std::swap(order[k], order[stream.below(first + 4 + k, k + 1)]);
    std::copy(order.begin(), order.end(), orders + n * 4);
  });
  return jitter;
}

at::Tensor apply_color_jitter(const at::Tensor& images, const ColorJitter& jitter) {
  const at::NoGradGuard no_grad;
  COHORT_CHECK(images.dim() == 4 && images.size(1) == 3 && jitter.factors.size(0) == images.size(0),
               "colour jitter works on colour images (N, 3, H, W), not {}", c10::str(images.sizes()));
  at::Tensor out = images.clone();
  const at::Tensor factors = jitter.factors.to(images.options());
  for (std::int64_t place = 0; place < 4; ++place) {
    const at::Tensor operations = jitter.order.select(1, place);
    for (std::int64_t operation = 0; operation < 4; ++operation) {
      const at::Tensor chosen = (operations == operation).nonzero().flatten();
      if (chosen.numel() == 0) continue;
      const at::Tensor index = chosen.to(images.device());
      const at::Tensor factor = factors.select(1, operation).index_select(0, index).view({-1, 1, 1, 1});
      out.index_copy_(0, index, adjusted(out.index_select(0, index), operation, factor));
    }
  }
  return out;
}

at::Tensor draw_crop_corners(const CropRandomizerSettings& s, const ImageKeys& keys, std::int64_t height,
                             std::int64_t width) {
  const auto count = static_cast<std::int64_t>(keys.sample_ids.size()) * keys.frames * s.num_crops;
  at::Tensor corners = at::empty({count, 2}, at::kLong);
  std::int64_t* out = corners.mutable_data_ptr<std::int64_t>();
  for_each_image(keys, s.num_crops, kCropStart, [&](std::int64_t n, const RandomStream& stream, std::uint64_t first) {
    out[2 * n] = stream.below(first, static_cast<std::uint32_t>(height - s.crop_height));
    out[2 * n + 1] = stream.below(first + 1, static_cast<std::uint32_t>(width - s.crop_width));
  });
  return corners;
}

at::Tensor crop(const at::Tensor& images, const at::Tensor& corners, std::int64_t crop_height,
                std::int64_t crop_width) {
  const at::Device device = images.device();
  const at::Tensor places = corners.to(device);
  const auto indices = [&](std::int64_t n) { return at::arange(n, at::TensorOptions(at::kLong).device(device)); };
  const at::Tensor rows = places.select(1, 0).unsqueeze(1) + indices(crop_height).unsqueeze(0);
  const at::Tensor columns = places.select(1, 1).unsqueeze(1) + indices(crop_width).unsqueeze(0);
  using torch::indexing::TensorIndex;
  return images.index({TensorIndex(indices(images.size(0)).view({-1, 1, 1, 1})),
                       TensorIndex(indices(images.size(1)).view({1, -1, 1, 1})),
                       TensorIndex(rows.view({-1, 1, crop_height, 1})),
                       TensorIndex(columns.view({-1, 1, 1, crop_width}))});
}

at::Tensor center_crop(const at::Tensor& images, std::int64_t crop_height, std::int64_t crop_width, bool half_to_even) {
  const auto corner = [half_to_even](std::int64_t spare) {
    return spare / 2 + (half_to_even && spare % 4 == 3 ? 1 : 0);
  };
  return images.narrow(2, corner(images.size(2) - crop_height), crop_height)
      .narrow(3, corner(images.size(3) - crop_width), crop_width);
}

}  // namespace cohort::models
