/// Plain data as bytes and back: compiled models, and what is seen of them.
///
///   struct Point { std::string name; double x; };
///   template <class Action, class T> requires std::is_same_v<std::remove_const_t<T>, Point>
///   void for_each_member(Action& io, T& p) { io(p.name), io(p.x); }
///   BytesWriter writer;  writer(point);                     // to writer.bytes
///   BytesReader reader(bytes, "a.cohort");  reader(point);  // throws Error where the bytes are cut off
///
/// What for_each_member exists for is written member by member, vectors and texts with their length (8 bytes) before
/// them; everything else as it lies in memory, little-endian.
#pragma once
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/error.h"

namespace cohort::sim {

class BytesWriter {
 public:
  template <class T>
  void operator()(const T& value) {
    if constexpr (requires { for_each_member(*this, value); }) {
      for_each_member(*this, value);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    }
  }
  void operator()(const std::string& text) {
    (*this)(static_cast<std::uint64_t>(text.size()));
    bytes += text;
  }
  template <class T>
  void operator()(const std::vector<T>& items) {
    (*this)(static_cast<std::uint64_t>(items.size()));
    if constexpr (requires(const T& item) { for_each_member(*this, item); }) {
      for (const T& item : items) for_each_member(*this, item);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      bytes.append(reinterpret_cast<const char*>(items.data()), items.size() * sizeof(T));
    }
  }
  std::string bytes;
};

class BytesReader {
 public:
  /// file: named in errors.
  BytesReader(std::string_view bytes, std::string file) : bytes_(bytes), file_(std::move(file)) {}

  template <class T>
  void operator()(T& value) {
    if constexpr (requires { for_each_member(*this, value); }) {
      for_each_member(*this, value);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      take(&value, sizeof value);
    }
  }
  void operator()(bool& value) {
    unsigned char byte = 0;
    take(&byte, 1);
    COHORT_THROW_UNLESS(byte <= 1, "{} is damaged: {} stands for true or false", file_, byte);
    value = byte == 1;
  }
  void operator()(std::string& text) {
    text.resize(count(1));
    take(text.data(), text.size());
  }
  template <class T>
  void operator()(std::vector<T>& items) {
    if constexpr (requires(T & item) { for_each_member(*this, item); }) {
      items.resize(count(1));
      for (T& item : items) for_each_member(*this, item);
    } else {
      static_assert(std::is_trivially_copyable_v<T>);
      items.resize(count(sizeof(T)));
      take(items.data(), items.size() * sizeof(T));
    }
  }
  bool at_end() const { return bytes_.empty(); }

 private:
  void take(void* to, std::size_t size) {
    COHORT_THROW_UNLESS(size <= bytes_.size(), "{} is cut off", file_);
    if (size > 0) std::memcpy(to, bytes_.data(), size);
    bytes_.remove_prefix(size);
  }
  std::size_t count(std::size_t unit) {
    std::uint64_t n = 0;
    take(&n, sizeof n);
    COHORT_THROW_UNLESS(n <= bytes_.size() / unit, "{} is cut off", file_);
    return static_cast<std::size_t>(n);
  }

  std::string_view bytes_;
  std::string file_;
};

/// What stands before a part of a compiled model's file.
struct PartHeader {
  char magic[8];
  std::uint32_t version;
  std::uint32_t record_bytes;  ///< of what is written as it lies in memory, where a part has such a record; or 0
  std::uint64_t bytes;         ///< of the part, behind this
  std::uint64_t checksum;      ///< part_checksum of them
};

/// FNV-1a over words of eight bytes: textures and meshes are large. Shows damage, not malice.
inline std::uint64_t part_checksum(std::string_view bytes) {
  std::uint64_t hash = 14695981039346656037ull;
  while (!bytes.empty()) {
    std::uint64_t word = 0;
    const std::size_t n = bytes.size() < sizeof word ? bytes.size() : sizeof word;
    std::memcpy(&word, bytes.data(), n);
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 29;
    bytes.remove_prefix(n);
  }
  return hash;
}

/// A part with its header. magic: eight letters.
inline std::string part_of_file(std::string_view magic, std::uint32_t version, std::uint32_t record_bytes,
                                std::string_view bytes) {
  PartHeader header{{}, version, record_bytes, bytes.size(), part_checksum(bytes)};
  COHORT_CHECK(magic.size() == sizeof header.magic, "{} is no mark of a part", magic);
  std::memcpy(header.magic, magic.data(), sizeof header.magic);
  std::string part(reinterpret_cast<const char*>(&header), sizeof header);
  return part.append(bytes);
}

/// False where these are too few bytes for a header.
inline bool read_part_header(std::string_view file, PartHeader& header) {
  if (file.size() < sizeof header) return false;
  std::memcpy(&header, file.data(), sizeof header);
  return true;
}
inline bool is_part(const PartHeader& header, std::string_view magic) {
  return std::string_view(header.magic, sizeof header.magic) == magic;
}

}  // namespace cohort::sim
