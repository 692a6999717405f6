#include "formats/npy.h"

#include <cstring>
#include <string>

#include "core/error.h"
#include "core/files.h"
#include "core/format.h"

namespace cohort {

NpyArray read_npy(const std::filesystem::path& file) {
  return parse_npy(read_file(file), file.string());
}

NpyArray parse_npy(std::string_view bytes, const std::string& name) {
  COHORT_THROW_UNLESS(bytes.size() >= 12 && bytes.compare(0, 6, "\x93NUMPY") == 0, "{} is no .npy file", name);
  const auto byte = [&](std::size_t i) { return static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])); };
  const bool first_version = byte(6) == 1;
  const std::size_t start = first_version ? 10 : 12;
  const std::size_t length =
      first_version ? byte(8) | byte(9) << 8 : byte(8) | byte(9) << 8 | byte(10) << 16 | byte(11) << 24;
  COHORT_THROW_UNLESS(start + length <= bytes.size(), "{} is cut off in its header", name);
  const std::string header(bytes.substr(start, length));
  COHORT_THROW_UNLESS(
      header.find("'<f8'") != std::string::npos && header.find("'fortran_order': False") != std::string::npos,
      "{}: float64 in C order is needed, and it says {}", name, header);
  NpyArray array;
  std::size_t at = header.find('('), count = 1;
  COHORT_THROW_UNLESS(at != std::string::npos, "{}: its header names no shape", name);
  for (++at; at < header.size() && header[at] != ')';) {
    if (header[at] < '0' || header[at] > '9') {
      ++at;
      continue;
    }
    std::int64_t size = 0;
    for (; at < header.size() && header[at] >= '0' && header[at] <= '9'; ++at) {
      size = 10 * size + (header[at] - '0');
      COHORT_THROW_UNLESS(size <= std::int64_t{1} << 40, "{}: a dimension of more than 2^40", name);
    }
    array.shape.push_back(size);
    COHORT_THROW_UNLESS(size == 0 || count <= (std::size_t{1} << 40) / static_cast<std::size_t>(size),
                        "{}: more than 2^40 numbers", name);
    count *= static_cast<std::size_t>(size);
  }
  const std::size_t data = start + length;
  COHORT_THROW_UNLESS(bytes.size() - data == count * sizeof(double), "{} has {} bytes of numbers, not {}", name,
                      bytes.size() - data, count * sizeof(double));
  array.values.resize(count);
  if (count > 0) std::memcpy(array.values.data(), bytes.data() + data, count * sizeof(double));
  return array;
}

void write_npy(const std::filesystem::path& file, const NpyArray& array) {
  constexpr std::size_t kAligned = 64, kBeforeHeader = 10;
  std::string shape;
  for (const std::int64_t size : array.shape) shape += format("{}{}", shape.empty() ? "" : ", ", size);
  if (array.shape.size() == 1) shape += ',';
  std::string header = format("{{'descr': '<f8', 'fortran_order': False, 'shape': ({}), }}", shape);
  header.append(kAligned - 1 - (kBeforeHeader + header.size()) % kAligned, ' ') += '\n';
  std::string bytes = "\x93NUMPY";
  bytes += {'\x01', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  bytes += header;
  bytes.append(reinterpret_cast<const char*>(array.values.data()), array.values.size() * sizeof(double));
  write_file_atomically(file, bytes);
}

}  // namespace cohort
