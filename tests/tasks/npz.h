// Reads arrays of float64 and uint8 from uncompressed .npz files, for reference data.
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/files.h"

namespace cohort::test {

struct NpzArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
};

/// The float64 and uint8 arrays of the file by name, from the archive's central directory (APPNOTE.TXT 4.3.12); others are left
/// out.
inline std::map<std::string, NpzArray> read_npz(const std::string& path) {
  const std::string file = read_file(path);
  const auto number = [&](std::size_t at, int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i)
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(file.at(at + static_cast<std::size_t>(i))))
               << (8 * i);
    return static_cast<std::size_t>(value);
  };
  const std::size_t end = file.rfind("PK\5\6");
  COHORT_THROW_UNLESS(end != std::string::npos, "{} is no zip file", path);
  std::size_t at = number(end + 16, 4);
  std::map<std::string, NpzArray> arrays;
  for (std::size_t i = 0; i < number(end + 10, 2); ++i) {
    const std::size_t name_size = number(at + 28, 2), local = number(at + 42, 4);
    std::string name = file.substr(at + 46, name_size);
    COHORT_THROW_UNLESS(number(at + 10, 2) == 0, "{}: {} is compressed", path, name);
    at += 46 + name_size + number(at + 30, 2) + number(at + 32, 2);
    const std::size_t data = local + 30 + number(local + 26, 2) + number(local + 28, 2);
    const std::size_t header_size = number(data + 8, 2);
    const std::string header = file.substr(data + 10, header_size);
    const bool bytes = header.find("'|u1'") != std::string::npos;
    if (header.find("'<f8'") == std::string::npos && !bytes) continue;
    COHORT_THROW_UNLESS(header.find("'fortran_order': False") != std::string::npos, "{}: {}", path, header);
    NpzArray array;
    std::size_t size = 1, digit = header.find('(') + 1;
    while (header[digit] != ')') {
      if (header[digit] >= '0' && header[digit] <= '9') {
        std::size_t used = 0;
        array.shape.push_back(std::stoll(header.substr(digit), &used));
        size *= static_cast<std::size_t>(array.shape.back());
        digit += used;
      } else {
        ++digit;
      }
    }
    array.values.resize(size);
    const char* first = file.data() + data + 10 + header_size;
    if (bytes)
      for (std::size_t k = 0; k < size; ++k) array.values[k] = static_cast<unsigned char>(first[k]);
    else
      std::memcpy(array.values.data(), first, size * sizeof(double));
    name.resize(name.size() - 4);  // .npy
    arrays[name] = std::move(array);
  }
  return arrays;
}

}  // namespace cohort::test
