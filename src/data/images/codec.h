/// JPEG and PNG, decoded by libjpeg-turbo and libpng.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

/// An image in memory: uint8, (height, width, channels), rows without gaps.
struct Image {
  std::int64_t height = 0, width = 0, channels = 3;
  std::vector<std::uint8_t> pixels;

  void resize(std::int64_t new_height, std::int64_t new_width, std::int64_t new_channels);
  std::uint8_t* row(std::int64_t y) { return pixels.data() + y * width * channels; }
  const std::uint8_t* row(std::int64_t y) const { return pixels.data() + y * width * channels; }
};

/// More pixels than this are taken for a damaged header.
inline constexpr std::int64_t kMaxImagePixels = std::int64_t{1} << 27;

/// Whether this build decodes the format; where not, decode_image() and the encoders throw Error naming the package.
bool has_jpeg();
bool has_png();

/// Decodes a JPEG or PNG to `channels` (1: grey, 3: RGB) into `out`, whose memory is reused. JPEG as TensorFlow's
/// decode_image does it, with the fast integer transform; PNG exactly: 16-bit values keep their upper byte, an alpha channel is dropped,
/// a palette is looked up, gamma is ignored. Throws Error saying what is wrong with the bytes; a JPEG whose data end
/// early is an error.
void decode_image(std::string_view bytes, std::int64_t channels, Image& out);

/// Height, width and channels as stored, from the header alone.
Image image_header(std::string_view bytes);

/// quality: 1 to 100; colour is not subsampled from 90 on.
std::string encode_jpeg(const Image& image, int quality = 95);
std::string encode_png(const Image& image);

}  // namespace cohort::data
