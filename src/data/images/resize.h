/// Resizing of uint8 images, with TensorFlow's filters and conventions (half-pixel centres; results rounded half to
/// even and clipped, as dlimp.resize_image does).
#pragma once
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "data/images/codec.h"

namespace cohort::data {

enum class ResizeMethod : std::uint8_t {
  kLanczos3,           ///< antialiased, radius 3: the DROID pipeline's
  kBilinearAntialias,  ///< triangle filter as wide as the step between source pixels
  kBilinear,           ///< between the four nearest pixels
  kNearest,
};

/// "lanczos3", "bilinear_antialias", "bilinear", "nearest"; throws Error.
ResizeMethod parse_resize_method(const std::string& name);

/// Memory reused between calls; one per thread.
class Resizer {
 public:
  /// Resizes `from` into `to` (height x width x channels, uint8, contiguous).
  void resize(const Image& from, std::int64_t height, std::int64_t width, ResizeMethod method, std::uint8_t* to);

 private:
  /// Which source pixels make an output pixel, and their weights.
  struct Spans {
    std::int64_t from = 0, to = 0;  // sizes
    ResizeMethod method = ResizeMethod::kLanczos3;
    std::vector<std::int64_t> first;  // (to)
    std::vector<std::int64_t> taps;   // (to)
    std::vector<float> weights;       // (to, stride)
    std::int64_t stride = 0;
  };
  const Spans& spans_for(std::int64_t from, std::int64_t to, ResizeMethod method);

  /// Three channels: four floats at a time.
  void resize_rgb(const Image& from, const Spans& rows, const Spans& columns, std::uint8_t* to);

  std::list<Spans> known_;  // of the sizes met last, those used last at the end: cameras differ in size
  std::vector<float> line_, floats_;
};

/// tf.image.crop_and_resize: bilinear samples of the box [y1, x1, y2, x2], in parts of height - 1 and width - 1.
void crop_and_resize(const Image& from, const double (&box)[4], std::int64_t height, std::int64_t width, float* to);

}  // namespace cohort::data
