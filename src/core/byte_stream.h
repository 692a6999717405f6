/// Numbers, texts and lists in a row of bytes: what processes of one machine tell each other.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace cohort {

class ByteWriter {
 public:
  void bytes(const void* data, std::size_t size) { data_.append(static_cast<const char*>(data), size); }
  void number(std::uint64_t n) { bytes(&n, sizeof n); }
  void text(std::string_view s) {
    number(s.size());
    bytes(s.data(), s.size());
  }
  const std::string& data() const { return data_; }

 private:
  std::string data_;
};

/// Reads what a ByteWriter has written. Throws Error where the bytes end before.
class ByteReader {
 public:
  explicit ByteReader(std::string data) : data_(std::move(data)) {}

  void bytes(void* to, std::size_t size);
  std::uint64_t number();
  std::string text();
  /// The length of a list whose elements take `unit` bytes each, or more; it fits into what is left.
  std::size_t count(std::size_t unit);
  bool at_end() const { return at_ == data_.size(); }

 private:
  std::string data_;
  std::size_t at_ = 0;
};

}  // namespace cohort
