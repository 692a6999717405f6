#include "formats/zip_archive.h"

#include <algorithm>

#include <zlib.h>

namespace cohort {
namespace {

/// What a 32-bit field holds whose value stands in a 64-bit field.
constexpr std::uint64_t kElsewhere = 0xFFFFFFFF;
constexpr std::uint64_t kWithout64 = 20, kWith64 = 45;  ///< versions of the format, times ten
constexpr std::uint64_t kFirstDay = 0x21;               ///< 1980-01-01: the same bytes whenever it is written

void put(std::string& to, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(value >> (8 * i) & 255);
}

std::uint64_t field32(std::uint64_t value) {
  return std::min(value, kElsewhere);
}

/// From "version needed" to the length of the name, which local headers and the directory have in common.
std::string common_part(const ZipEntry& e, bool large) {
  std::string out;
  put(out, large ? kWith64 : kWithout64, 2);
  put(out, 0, 2), put(out, 0, 2), put(out, 0, 2), put(out, kFirstDay, 2);  // flags, stored, time, date
  put(out, e.crc, 4);
  put(out, field32(e.size), 4), put(out, field32(e.size), 4);
  put(out, e.name.size(), 2);
  return out;
}

/// The extra field of 64-bit values (4.5.3); empty without any.
std::string extra_of(const std::string& values) {
  std::string out;
  if (!values.empty()) put(out, 1, 2), put(out, values.size(), 2);
  return out + values;
}

}  // namespace

std::uint32_t zip_crc(std::uint32_t crc, std::string_view bytes) {
  return static_cast<std::uint32_t>(::crc32_z(crc, reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size()));
}

std::string zip_local_header(const ZipEntry& e) {
  std::string values;
  if (e.size >= kElsewhere) put(values, e.size, 8), put(values, e.size, 8);
  const std::string extra = extra_of(values);
  std::string out;
  put(out, 0x04034b50, 4);
  out += common_part(e, !extra.empty());
  put(out, extra.size(), 2);
  return out + e.name + extra;
}

std::string zip_directory(std::span<const ZipEntry> entries, std::uint64_t start) {
  std::string out;
  for (const ZipEntry& e : entries) {
    std::string values;
    if (e.size >= kElsewhere) put(values, e.size, 8), put(values, e.size, 8);
    if (e.offset >= kElsewhere) put(values, e.offset, 8);
    const std::string extra = extra_of(values);
    put(out, 0x02014b50, 4), put(out, extra.empty() ? kWithout64 : kWith64, 2);
    out += common_part(e, !extra.empty());
    put(out, extra.size(), 2);
    put(out, 0, 2), put(out, 0, 2), put(out, 0, 2), put(out, 0, 4);  // comment, disk, attributes
    put(out, field32(e.offset), 4);
    out += e.name + extra;
  }
  const std::uint64_t size = out.size(), count = entries.size();
  if (start >= kElsewhere) {
    const std::uint64_t end = start + size;
    constexpr std::uint64_t kRestOfRecord = 44;
    put(out, 0x06064b50, 4), put(out, kRestOfRecord, 8), put(out, kWith64, 2), put(out, kWith64, 2);
    put(out, 0, 4), put(out, 0, 4), put(out, count, 8), put(out, count, 8), put(out, size, 8), put(out, start, 8);
    put(out, 0x07064b50, 4), put(out, 0, 4), put(out, end, 8), put(out, 1, 4);
  }
  put(out, 0x06054b50, 4), put(out, 0, 2), put(out, 0, 2), put(out, count, 2), put(out, count, 2);
  put(out, size, 4), put(out, field32(start), 4), put(out, 0, 2);
  return out;
}

}  // namespace cohort
