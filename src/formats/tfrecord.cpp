#include "formats/tfrecord.h"

#include <bit>
#include <cstring>

#include "formats/crc32c.h"

namespace cohort {
namespace {

static_assert(std::endian::native == std::endian::little, "TFRecord's little-endian numbers are read as they lie");

template <class T>
T load_number(const char* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void append_number(std::string& out, T value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

void append_tfrecord(std::string& out, std::string_view payload) {
  out.reserve(out.size() + payload.size() + kTfrecordHeader + kTfrecordFooter);
  const auto length = static_cast<std::uint64_t>(payload.size());
  append_number(out, length);
  append_number(out, mask_crc32c(crc32c(&length, sizeof length)));
  out += payload;
  append_number(out, mask_crc32c(crc32c(payload)));
}

std::uint64_t tfrecord_length(const char* header) {
  return load_number<std::uint64_t>(header);
}

bool is_sound_tfrecord_header(const char* header) {
  return mask_crc32c(crc32c(header, 8)) == load_number<std::uint32_t>(header + 8);
}

bool is_sound_tfrecord(std::string_view payload) {
  return mask_crc32c(crc32c(payload)) == stored_tfrecord_checksum(payload);
}

std::uint32_t stored_tfrecord_checksum(std::string_view payload) {
  return load_number<std::uint32_t>(payload.data() + payload.size());
}

}  // namespace cohort
