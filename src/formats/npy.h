/// Reads and writes .npy files of float64 (NumPy enhancement proposal 1, numpy/lib/format.py).
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

namespace cohort {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< row-major
};

/// Throws Error naming the file and what is wrong with it: no .npy, another type or order, cut off.
NpyArray read_npy(const std::filesystem::path& file);

/// The same bytes as numpy.save writes. Throws Error where the file cannot be written.
void write_npy(const std::filesystem::path& file, const NpyArray& array);

}  // namespace cohort
