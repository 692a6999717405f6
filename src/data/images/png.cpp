#include <csetjmp>
#include <cstring>

#include <png.h>

#include "core/error.h"
#include "data/images/codec_parts.h"

namespace cohort::data {

bool has_png() {
  return true;
}

namespace codec {
namespace {

/// libpng reports errors by a long jump out of its C code; nothing with a destructor may live in between.
struct Session {
  const char* data;
  std::size_t size;
  std::size_t at;
  char message[160];
  std::jmp_buf jump;
};

void on_error(png_structp png, png_const_charp message) {
  auto* session = static_cast<Session*>(png_get_error_ptr(png));
  std::strncpy(session->message, message, sizeof session->message - 1);
  std::longjmp(session->jump, 1);
}

void on_warning(png_structp, png_const_charp) {}

void read_bytes(png_structp png, png_bytep out, std::size_t count) {
  auto* session = static_cast<Session*>(png_get_io_ptr(png));
  if (count > session->size - session->at) png_error(png, "the data end early");
  std::memcpy(out, session->data + session->at, count);
  session->at += count;
}

class PngReader {
 public:
  explicit PngReader(std::string_view bytes) {
    session.data = bytes.data();
    session.size = bytes.size();
    png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &session, on_error, on_warning);
    if (png) info = png_create_info_struct(png);
    if (png) png_set_read_fn(png, &session, read_bytes);
  }
  ~PngReader() { png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  /// Runs plain C code of libpng; false when it failed.
  template <class Body>
  bool run(const Body& body) {
    if (!png || !info) {
      std::strcpy(session.message, "libpng does not start");
      return false;
    }
    if (setjmp(session.jump)) return false;
    body();
    return true;
  }
  [[noreturn]] void fail() const { throw Error(format("the PNG is damaged: {}", session.message)); }

  Session session{};
  png_structp png = nullptr;
  png_infop info = nullptr;
};

void read_header(PngReader& reader, Image& image) {
  if (!reader.run([&] { png_read_info(reader.png, reader.info); })) reader.fail();
  const std::int64_t width = png_get_image_width(reader.png, reader.info);
  const std::int64_t height = png_get_image_height(reader.png, reader.info);
  COHORT_THROW_UNLESS(width * height <= kMaxImagePixels, "the PNG's header says {} x {} pixels", width, height);
  image.height = height;
  image.width = width;
  image.channels = png_get_channels(reader.png, reader.info);
}

}  // namespace

Image png_header(std::string_view bytes) {
  PngReader reader(bytes);
  Image image;
  read_header(reader, image);
  return image;
}

void decode_png(std::string_view bytes, std::int64_t channels, Image& out) {
  PngReader reader(bytes);
  Image header;
  read_header(reader, header);
  // 16 bits of grey are a distance or the like: their upper eight alone are a black picture.
  COHORT_THROW_UNLESS(
      png_get_bit_depth(reader.png, reader.info) < 16 ||
          (png_get_color_type(reader.png, reader.info) & PNG_COLOR_MASK_COLOR) != 0,
      "the PNG holds 16 bits of grey, as depth maps do, and no picture: leave the field out, or store it as "
      "numbers");
  const auto set_up = [&] {
    const int colour = png_get_color_type(reader.png, reader.info);
    png_set_strip_16(reader.png);
    png_set_expand(reader.png);  // palettes and few bits
    png_set_strip_alpha(reader.png);
    const bool grey = (colour & PNG_COLOR_MASK_COLOR) == 0;
    if (grey && channels == 3) png_set_gray_to_rgb(reader.png);
    if (!grey && channels == 1) png_set_rgb_to_gray(reader.png, 1, -1, -1);
    png_set_interlace_handling(reader.png);
    png_read_update_info(reader.png, reader.info);
  };
  if (!reader.run(set_up)) reader.fail();
  const auto row_bytes = static_cast<std::int64_t>(png_get_rowbytes(reader.png, reader.info));
  COHORT_THROW_UNLESS(row_bytes == header.width * channels, "the PNG's rows have {} bytes, not {}", row_bytes,
                      header.width * channels);
  out.resize(header.height, header.width, channels);
  thread_local std::vector<png_bytep> rows;
  rows.resize(static_cast<std::size_t>(header.height));
  for (std::size_t y = 0; y < rows.size(); ++y) rows[y] = out.row(static_cast<std::int64_t>(y));
  if (!reader.run([&] {
        png_read_image(reader.png, rows.data());
        png_read_end(reader.png, nullptr);
      }))
    reader.fail();
}

}  // namespace codec

std::string encode_png(const Image& image) {
  COHORT_CHECK(image.channels == 1 || image.channels == 3, "a PNG is written with 1 or 3 channels, not {}",
               image.channels);
  png_image control;
  std::memset(&control, 0, sizeof control);
  control.version = PNG_IMAGE_VERSION;
  control.width = static_cast<png_uint_32>(image.width);
  control.height = static_cast<png_uint_32>(image.height);
  control.format = image.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  // Pictures of a simulation, 96 px: four to six times as quick as without, and read in a quarter less; a fifth larger at most.
  control.flags = PNG_IMAGE_FLAG_FAST;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(control);
  std::string bytes(size, '\0');
  const int written = png_image_write_to_memory(&control, bytes.data(), &size, 0, image.pixels.data(), 0, nullptr);
  COHORT_THROW_UNLESS(written != 0, "a PNG of {} x {} pixels could not be written: {}", image.width, image.height,
                      control.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace cohort::data
