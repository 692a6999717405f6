#include "data/images/image_pipeline.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "core/error.h"
#include "data/images/colour.h"
#include "data/images/rdt_augment.h"
#include "data/images/resize.h"
#include "data/transforms/call.h"

namespace cohort::data {

struct ImagePipeline::Step {
  enum class Kind { kResize, kCrop, kResizedCrop, kBrightness, kContrast, kSaturation, kHue, kFlip, kRdtAugment } kind;
  std::string text;
  double a = 0, b = 0, c = 0, d = 0;
  ResizeMethod method = ResizeMethod::kLanczos3;

  bool is_colour() const { return kind >= Kind::kBrightness && kind <= Kind::kHue; }
  bool is_random() const {
    return is_colour() || kind == Kind::kCrop || kind == Kind::kResizedCrop || kind == Kind::kRdtAugment;
  }
};

namespace {

/// Uniform numbers of one step of one camera: apart from those of every other.
float draw(const RandomStream& random, std::uint64_t camera, std::size_t step, std::uint64_t which, double low,
           double high) {
  const auto u = static_cast<double>(random.uniform((camera << 16) + static_cast<std::uint64_t>(step) * 8 + which));
  return static_cast<float>(low + u * (high - low));
}

void crop(const Image& from, std::int64_t top, std::int64_t left, Image& to) {
  const std::int64_t bytes = to.width * to.channels;
  for (std::int64_t y = 0; y < to.height; ++y) std::copy_n(from.row(top + y) + left * from.channels, bytes, to.row(y));
}

}  // namespace

ImagePipeline::~ImagePipeline() = default;
ImagePipeline::ImagePipeline(ImagePipeline&&) noexcept = default;

ImagePipeline::ImagePipeline(const std::vector<std::string>& texts) {
  for (const std::string& text : texts) {
    const Call call = parse_call(text);
    Step step{.kind = Step::Kind::kFlip, .text = text};
    const auto size = [&] {
      step.a = call.number(0);
      step.b = call.number(1);
      COHORT_THROW_UNLESS(step.a >= 1 && step.b >= 1 && step.a <= 16384 && step.b <= 16384 &&
                              step.a == std::floor(step.a) && step.b == std::floor(step.b),
                          "image transform '{}': {} x {} is no size in pixels", text, step.a, step.b);
      height_ = static_cast<std::int64_t>(step.a);
      width_ = static_cast<std::int64_t>(step.b);
    };
    if (call.name == "resize") {
      step.kind = Step::Kind::kResize;
      if (call.arguments.size() == 3)
        step.method = parse_resize_method(call.arguments[2]);
      else
        call.expect_arguments(2);
      size();
    } else if (call.name == "crop") {
      step.kind = Step::Kind::kCrop;
      call.expect_arguments(2);
      const std::int64_t before_height = height_, before_width = width_;
      size();
      COHORT_THROW_UNLESS(before_height == 0 || (height_ <= before_height && width_ <= before_width),
                          "image transform '{}' is larger than the {} x {} pixels before it", text, before_height,
                          before_width);
    } else if (call.name == "random_resized_crop") {
      step.kind = Step::Kind::kResizedCrop;
      call.expect_arguments(4);
      step.a = call.number(0), step.b = call.number(1), step.c = call.number(2), step.d = call.number(3);
      COHORT_THROW_UNLESS(step.a > 0 && step.a <= step.b && step.b <= 1 && step.c > 0 && step.c <= step.d,
                          "image transform '{}': parts of the area lie in (0, 1], ratios above 0, in rising order",
                          text);
    } else if (call.name == "brightness" || call.name == "hue") {
      step.kind = call.name == "hue" ? Step::Kind::kHue : Step::Kind::kBrightness;
      call.expect_arguments(1);
      step.b = call.number(0);
      COHORT_THROW_UNLESS(step.b >= 0 && step.b <= 1, "image transform '{}': the amount lies in [0, 1]", text);
      step.a = -step.b;
    } else if (call.name == "contrast" || call.name == "saturation") {
      step.kind = call.name == "contrast" ? Step::Kind::kContrast : Step::Kind::kSaturation;
      call.expect_arguments(2);
      step.a = call.number(0), step.b = call.number(1);
      COHORT_THROW_UNLESS(step.a >= 0 && step.a <= step.b, "image transform '{}': factors are not in rising order",
                          text);
    } else if (call.name == "flip_vertical") {
      call.expect_arguments(0);
    } else if (call.name == "rdt_augment") {
      step.kind = Step::Kind::kRdtAugment;
      call.expect_arguments(0);
    } else {
      throw Error(
          format("unknown image transform '{}'; known are resize, crop, random_resized_crop, brightness, contrast, "
                 "saturation, hue, flip_vertical, rdt_augment",
                 text));
    }
    steps_.push_back(step);
  }
  COHORT_THROW_UNLESS(height_ > 0, "the image transforms fix no size: begin with resize(H, W)");
}

bool ImagePipeline::is_random() const {
  return std::any_of(steps_.begin(), steps_.end(), [](const Step& step) { return step.is_random(); });
}

void ImagePipeline::run(const Image& frame, bool augment, const RandomStream& random, std::uint64_t camera,
                        std::uint8_t* out) const {
  thread_local Image images[2];
  thread_local Resizer resizer;
  thread_local std::vector<float> floats;
  const Image* now = &frame;
  bool as_floats = false;
  const auto next = [&](std::int64_t height, std::int64_t width) -> Image& {
    Image& image = now == &images[0] ? images[1] : images[0];
    image.resize(height, width, now->channels);
    return image;
  };
  const auto to_bytes = [&] {  // tf.image.convert_image_dtype
    Image& image = next(now->height, now->width);
    for (std::size_t i = 0; i < floats.size(); ++i)
      image.pixels[i] = static_cast<std::uint8_t>(std::clamp(floats[i] * 255.5f, 0.0f, 255.0f));
    now = &image;
    as_floats = false;
  };
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    const Step& step = steps_[s];
    if (step.is_colour()) {
      if (!augment) continue;
      if (!as_floats) {
        floats.resize(now->pixels.size());
        for (std::size_t i = 0; i < floats.size(); ++i) floats[i] = static_cast<float>(now->pixels[i]) / 255.0f;
        as_floats = true;
      }
      const float amount = draw(random, camera, s, 0, step.a, step.b);
      if (step.kind == Step::Kind::kBrightness) adjust_brightness(floats, amount);
      if (step.kind == Step::Kind::kContrast) adjust_contrast(floats, amount);
      if (step.kind == Step::Kind::kSaturation) adjust_saturation(floats, amount);
      if (step.kind == Step::Kind::kHue) adjust_hue(floats, amount);
      for (float& value : floats) value = std::clamp(value, 0.0f, 1.0f);
      continue;
    }
    if (as_floats) to_bytes();
    switch (step.kind) {
      case Step::Kind::kResize: {
        const auto height = static_cast<std::int64_t>(step.a), width = static_cast<std::int64_t>(step.b);
        Image& image = next(height, width);
        resizer.resize(*now, height, width, step.method, image.pixels.data());
        now = &image;
        break;
      }
      case Step::Kind::kCrop: {
        const auto height = static_cast<std::int64_t>(step.a), width = static_cast<std::int64_t>(step.b);
        const std::int64_t down = now->height - height, right = now->width - width;
        COHORT_THROW_UNLESS(down >= 0 && right >= 0, "image transform '{}' is larger than its image of {} x {} pixels",
                            step.text, now->height, now->width);
        std::int64_t top = down / 2, left = right / 2;
        if (augment) {
          top = std::min(down, static_cast<std::int64_t>(draw(random, camera, s, 0, 0, static_cast<double>(down + 1))));
          left =
              std::min(right, static_cast<std::int64_t>(draw(random, camera, s, 1, 0, static_cast<double>(right + 1))));
        }
        Image& image = next(height, width);
        crop(*now, top, left, image);
        now = &image;
        break;
      }
      case Step::Kind::kResizedCrop: {
        if (!augment) break;
        const auto area = static_cast<double>(draw(random, camera, s, 0, step.a, step.b));
        const double ratio =
            std::exp(static_cast<double>(draw(random, camera, s, 1, std::log(step.c), std::log(step.d))));
        const double high = std::clamp(std::sqrt(area / ratio), 0.0, 1.0);
        const double wide = std::clamp(std::sqrt(area * ratio), 0.0, 1.0);
        const auto top = static_cast<double>(draw(random, camera, s, 2, 0, 1 - high));
        const auto left = static_cast<double>(draw(random, camera, s, 3, 0, 1 - wide));
        floats.resize(now->pixels.size());
        crop_and_resize(*now, {top, left, top + high, left + wide}, now->height, now->width, floats.data());
        Image& image = next(now->height, now->width);
        for (std::size_t i = 0; i < floats.size(); ++i)
          image.pixels[i] = static_cast<std::uint8_t>(std::clamp(floats[i], 0.0f, 255.0f));
        now = &image;
        break;
      }
      case Step::Kind::kFlip: {
        Image& image = next(now->height, now->width);
        for (std::int64_t y = 0; y < now->height; ++y)
          std::copy_n(now->row(now->height - 1 - y), now->width * now->channels, image.row(y));
        now = &image;
        break;
      }
      case Step::Kind::kRdtAugment: {
        if (!augment) break;
        Image& image = next(now->height, now->width);
        image.pixels = now->pixels;
        rdt_augment(image, random, camera);
        now = &image;
        break;
      }
      default:
        break;
    }
  }
  if (as_floats) to_bytes();
  COHORT_THROW_UNLESS(now->height == height_ && now->width == width_ && now->channels == 3,
                      "an image came out with {} x {} x {} instead of {} x {} x 3", now->height, now->width,
                      now->channels, height_, width_);
  std::copy(now->pixels.begin(), now->pixels.end(), out);
}

}  // namespace cohort::data
