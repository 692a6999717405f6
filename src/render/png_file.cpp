// PNG (ISO/IEC 15948:2004): a header, one stream of filtered rows, an end.
#include <array>
#include <string>

#include <zlib.h>

#include "core/error.h"
#include "core/files.h"
#include "render/video.h"
#include "sim/index.h"

namespace cohort::render {

namespace {

void put_number(std::string& to, std::uint32_t n) {
  for (int shift = 24; shift >= 0; shift -= 8) to += static_cast<char>(n >> shift & 255u);
}

void put_chunk(std::string& to, const std::string& type, const std::string& data) {
  put_number(to, static_cast<std::uint32_t>(data.size()));
  const std::string body = type + data;
  to += body;
  put_number(to, static_cast<std::uint32_t>(
                     crc32(0, reinterpret_cast<const Bytef*>(body.data()), static_cast<uInt>(body.size()))));
}

}  // namespace

void write_png(const std::filesystem::path& path, std::span<const std::uint8_t> rgb, int width, int height) {
  COHORT_CHECK(width > 0 && height > 0 && rgb.size() == 3 * sim::at(width) * sim::at(height),
               "{} bytes are no picture of {} x {}", rgb.size(), width, height);
  const std::size_t row = 3 * sim::at(width);
  std::string rows;
  rows.reserve((row + 1) * sim::at(height));
  for (std::size_t y = 0; y < sim::at(height); ++y) {
    // Each byte less the one above it (filter 2), which pictures compress well by.
    rows += y == 0 ? '\0' : '\2';
    for (std::size_t i = 0; i < row; ++i) {
      const std::uint8_t above = y == 0 ? 0 : rgb[(y - 1) * row + i];
      rows += static_cast<char>(static_cast<std::uint8_t>(rgb[y * row + i] - above));
    }
  }
  uLongf size = compressBound(rows.size());
  std::string packed(size, '\0');
  const int code = compress2(reinterpret_cast<Bytef*>(packed.data()), &size,
                             reinterpret_cast<const Bytef*>(rows.data()), rows.size(), 6);
  COHORT_CHECK(code == Z_OK, "zlib says {}", code);
  packed.resize(size);
  std::string header;
  put_number(header, static_cast<std::uint32_t>(width)), put_number(header, static_cast<std::uint32_t>(height));
  header += std::string("\x08\x02\x00\x00\x00", 5);  // 8 bits, RGB
  std::string file("\x89PNG\r\n\x1a\n", 8);
  put_chunk(file, "IHDR", header), put_chunk(file, "IDAT", packed), put_chunk(file, "IEND", "");
  write_file_atomically(path, file);
}

}  // namespace cohort::render
