#include <algorithm>
#include <string>
#include <vector>

#include <zlib.h>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "formats/npy.h"

namespace cohort {
namespace {

constexpr std::size_t kLargest = std::size_t{1} << 32;  // bytes of an array: what archives without 64-bit fields hold

/// A little-endian number of an archive whose end may be missing.
class Bytes {
 public:
  Bytes(const std::string& bytes, const std::string& name) : bytes_(bytes), name_(name) {}

  std::size_t number(std::size_t at, std::size_t count) const {
    need(at, count);
    std::size_t value = 0;
    for (std::size_t i = 0; i < count; ++i)
      value |= static_cast<std::size_t>(static_cast<unsigned char>(bytes_[at + i])) << (8 * i);
    return value;
  }
  std::string_view text(std::size_t at, std::size_t count) const {
    need(at, count);
    return std::string_view(bytes_).substr(at, count);
  }

 private:
  void need(std::size_t at, std::size_t count) const {
    COHORT_THROW_UNLESS(at <= bytes_.size() && count <= bytes_.size() - at,
                        "{} is cut off or damaged: it has {} bytes, and bytes {} to {} are named", name_, bytes_.size(),
                        at, at + count);
  }

  const std::string& bytes_;
  const std::string& name_;
};

/// `size` bytes of a raw deflate stream (RFC 1951).
std::string inflated(std::string_view packed, std::size_t size, const std::string& name) {
  std::string out(size, '\0');
  z_stream stream{};
  COHORT_CHECK(inflateInit2(&stream, -MAX_WBITS) == Z_OK, "zlib does not begin");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int code = inflate(&stream, Z_FINISH);
  const bool whole = code == Z_STREAM_END && stream.avail_out == 0;
  inflateEnd(&stream);
  COHORT_THROW_UNLESS(whole, "{} is damaged: its compressed bytes do not give {} bytes; copy it again", name, size);
  return out;
}

}  // namespace

NpyArray read_npz(const std::filesystem::path& file, const std::string& array) {
  const std::string name = file.string(), archive = read_file(file);
  const Bytes bytes(archive, name);
  const std::size_t end = archive.rfind("PK\5\6");
  COHORT_THROW_UNLESS(end != std::string::npos, "{} is no .npz file: a zip archive's directory is not at its end",
                      name);
  std::vector<std::string> known;
  std::size_t at = bytes.number(end + 16, 4);
  for (std::size_t left = bytes.number(end + 10, 2); left > 0; --left) {
    COHORT_THROW_UNLESS(bytes.text(at, 4) == "PK\1\2", "{} is damaged: its directory ends before byte {}", name, at);
    const std::size_t method = bytes.number(at + 10, 2), crc = bytes.number(at + 16, 4),
                      packed = bytes.number(at + 20, 4), size = bytes.number(at + 24, 4),
                      name_size = bytes.number(at + 28, 2), local = bytes.number(at + 42, 4);
    const std::string entry(bytes.text(at + 46, name_size));
    at += 46 + name_size + bytes.number(at + 30, 2) + bytes.number(at + 32, 2);
    known.push_back(entry.ends_with(".npy") ? entry.substr(0, entry.size() - 4) : entry);
    if (known.back() != array) continue;
    COHORT_THROW_UNLESS(method == 0 || method == 8, "{}: {} is compressed by method {}; stored and deflated are read",
                        name, entry, method);
    // A damaged size must not ask for memory that the bytes cannot fill: deflate makes 1032 of one at most.
    COHORT_THROW_UNLESS(size < kLargest && size <= 1032 * (packed + 1), "{}: {} of {} bytes is said to be {} bytes",
                        name, entry, packed, size);
    const std::size_t data = local + 30 + bytes.number(local + 26, 2) + bytes.number(local + 28, 2);
    const std::string_view kept = bytes.text(data, packed);
    const std::string content = method == 0 ? std::string(kept) : inflated(kept, size, name);
    COHORT_THROW_UNLESS(
        crc32(0, reinterpret_cast<const Bytef*>(content.data()), static_cast<uInt>(content.size())) == crc,
        "{} is damaged: the checksum of {} differs; copy it again", name, entry);
    return parse_npy(content, name + ": " + entry);
  }
  throw Error(format("{}: there is no array `{}` in it; it has {}", name, array, join(known, ", ")));
}

}  // namespace cohort
