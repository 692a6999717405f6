#include "core/byte_stream.h"

#include <cstring>

#include "core/error.h"

namespace cohort {

void ByteReader::bytes(void* to, std::size_t size) {
  COHORT_THROW_UNLESS(size <= data_.size() - at_, "the answer of another process is cut off");
  std::memcpy(to, data_.data() + at_, size);
  at_ += size;
}

std::uint64_t ByteReader::number() {
  std::uint64_t n = 0;
  bytes(&n, sizeof n);
  return n;
}

std::string ByteReader::text() {
  std::string s(count(1), '\0');
  bytes(s.data(), s.size());
  return s;
}

std::size_t ByteReader::count(std::size_t unit) {
  const std::uint64_t n = number();
  COHORT_THROW_UNLESS(n <= (data_.size() - at_) / unit, "the answer of another process is cut off");
  return static_cast<std::size_t>(n);
}

}  // namespace cohort
