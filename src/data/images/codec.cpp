#include "data/images/codec.h"

#include "core/error.h"
#include "data/images/codec_parts.h"

namespace cohort::data {

void Image::resize(std::int64_t new_height, std::int64_t new_width, std::int64_t new_channels) {
  height = new_height;
  width = new_width;
  channels = new_channels;
  pixels.resize(static_cast<std::size_t>(height * width * channels));
}

namespace {

bool is_jpeg(std::string_view bytes) {
  return bytes.starts_with("\xFF\xD8\xFF");
}

bool is_png(std::string_view bytes) {
  return bytes.starts_with("\x89PNG\r\n\x1A\n");
}

[[noreturn]] void throw_unknown(std::string_view bytes) {
  std::string start;
  for (const char c : bytes.substr(0, 8))
    start += format("{}{:02x}", start.empty() ? "" : " ", static_cast<unsigned char>(c));
  const bool webp = bytes.starts_with("RIFF") && bytes.size() > 12 && bytes.substr(8, 4) == "WEBP";
  throw Error(format("the image is neither JPEG nor PNG{}: its {} bytes begin with {}",
                     webp ? ", but WebP: save it as PNG (Python: PIL.Image.open(...).save('x.png'))" : "", bytes.size(),
                     start.empty() ? "nothing" : start));
}

}  // namespace

void decode_image(std::string_view bytes, std::int64_t channels, Image& out) {
  COHORT_CHECK(channels == 1 || channels == 3, "images are decoded to 1 or 3 channels, not {}", channels);
  if (is_jpeg(bytes)) return codec::decode_jpeg(bytes, channels, out);
  if (is_png(bytes)) return codec::decode_png(bytes, channels, out);
  throw_unknown(bytes);
}

Image image_header(std::string_view bytes) {
  if (is_jpeg(bytes)) return codec::jpeg_header(bytes);
  if (is_png(bytes)) return codec::png_header(bytes);
  throw_unknown(bytes);
}

}  // namespace cohort::data
