#include "formats/stored_zip.h"

#include <algorithm>

#include "core/error.h"

namespace cohort {
namespace {

std::uint64_t little_endian(const std::string& bytes, std::size_t at, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes.at(at + i))} << (8 * i);
  return value;
}

}  // namespace

StoredZip::StoredZip(const std::filesystem::path& path) : path_(path.string()), file_(path, std::ios::binary) {
  COHORT_THROW_UNLESS(file_.good(), "{}: cannot be read", path_);
  size_ = std::filesystem::file_size(path);
  find_directory();
}

std::string StoredZip::read(std::uint64_t begin, std::uint64_t count) {
  check(begin, count);
  std::string bytes(static_cast<std::size_t>(count), '\0');
  read_to(begin, bytes.data(), count);
  return bytes;
}

void StoredZip::read_to(std::uint64_t begin, char* out, std::uint64_t count) {
  check(begin, count);
  file_.seekg(static_cast<std::streamoff>(begin));
  file_.read(out, static_cast<std::streamsize>(count));
  COHORT_THROW_UNLESS(file_.good(), "{}: cannot be read at byte {}", path_, begin);
}

void StoredZip::check(std::uint64_t begin, std::uint64_t count) const {
  COHORT_THROW_UNLESS(begin <= size_ && count <= size_ - begin,
                      "{}: is cut off or damaged: it has {} bytes, but bytes {} to {} are named", path_, size_, begin,
                      begin + count);
}

void StoredZip::find_directory() {
  constexpr std::uint64_t kEnd = 22, kLongestComment = 65535, kLocator = 20;
  const std::uint64_t tail_size = std::min(size_, kEnd + kLongestComment);
  const std::string tail = read(size_ - tail_size, tail_size);
  const std::size_t end = tail.rfind("PK\x05\x06");
  COHORT_THROW_UNLESS(end != std::string::npos && tail.size() - end >= kEnd,
                      "{}: the zip archive has no directory at its end: the file is cut off, copy it again", path_);
  const std::uint64_t end_at = size_ - tail_size + end;
  std::uint64_t count = little_endian(tail, end + 10, 2), size = little_endian(tail, end + 12, 4),
                at = little_endian(tail, end + 16, 4);
  if (end_at >= kLocator) {
    const std::string locator = read(end_at - kLocator, kLocator);
    if (locator.starts_with("PK\x06\x07")) {
      const std::string big = read(little_endian(locator, 8, 8), 56);
      COHORT_THROW_UNLESS(big.starts_with("PK\x06\x06"), "{}: the zip archive's directory is damaged", path_);
      count = little_endian(big, 32, 8);
      size = little_endian(big, 40, 8);
      at = little_endian(big, 48, 8);
    }
  }
  read_directory(read(at, size), count);
}

void StoredZip::read_directory(const std::string& directory, std::uint64_t count) {
  constexpr std::size_t kHeader = 46;
  std::size_t at = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    COHORT_THROW_UNLESS(directory.size() - at >= kHeader && directory.compare(at, 4, "PK\x01\x02", 4) == 0,
                        "{}: the zip archive's directory is damaged", path_);
    const std::uint64_t method = little_endian(directory, at + 10, 2);
    std::uint64_t packed = little_endian(directory, at + 20, 4), size = little_endian(directory, at + 24, 4);
    const std::size_t name_size = little_endian(directory, at + 28, 2),
                      extra_size = little_endian(directory, at + 30, 2),
                      comment_size = little_endian(directory, at + 32, 2);
    std::uint64_t local = little_endian(directory, at + 42, 4);
    COHORT_THROW_UNLESS(directory.size() - at - kHeader >= name_size + extra_size + comment_size,
                        "{}: the zip archive's directory is damaged", path_);
    const std::string name = directory.substr(at + kHeader, name_size);
    read_extra(directory.substr(at + kHeader + name_size, extra_size), size, packed, local);
    at += kHeader + name_size + extra_size + comment_size;
    if (name.ends_with('/')) continue;
    COHORT_THROW_UNLESS(method == 0 && packed == size,
                        "{}: {} is compressed, which torch.save() does not do; unpack and save the weights again",
                        path_, name);
    const std::string header = read(local, 30);
    COHORT_THROW_UNLESS(header.starts_with("PK\x03\x04"), "{}: the record {} is damaged", path_, name);
    const std::uint64_t begin = local + 30 + little_endian(header, 26, 2) + little_endian(header, 28, 2);
    check(begin, size);
    records_[name] = {begin, size};
  }
}

/// Values that do not fit 32 bits stand in the extra field 1, in this order.
void StoredZip::read_extra(const std::string& extra, std::uint64_t& size, std::uint64_t& packed,
                           std::uint64_t& local) const {
  constexpr std::uint64_t kElsewhere = 0xffffffff;
  for (std::size_t at = 0; at + 4 <= extra.size();) {
    const std::uint64_t kind = little_endian(extra, at, 2), length = little_endian(extra, at + 2, 2);
    at += 4;
    if (length > extra.size() - at) return;
    std::size_t place = at;
    if (kind == 1)
      for (std::uint64_t* value : {&size, &packed, &local}) {
        if (*value != kElsewhere) continue;
        COHORT_THROW_UNLESS(place + 8 <= at + length, "{}: the zip archive's directory is damaged", path_);
        *value = little_endian(extra, place, 8);
        place += 8;
      }
    at += static_cast<std::size_t>(length);
  }
}

}  // namespace cohort
