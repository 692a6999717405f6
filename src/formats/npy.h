/// Reads and writes .npy files of float64 (NumPy enhancement proposal 1, numpy/lib/format.py).
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

struct NpyArray {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  ///< row-major
};

/// Throws Error naming the file and what is wrong with it: no .npy, another type or order, cut off.
NpyArray read_npy(const std::filesystem::path& file);

/// The same of an .npy file's bytes, which are named `name` in errors.
NpyArray parse_npy(std::string_view bytes, const std::string& name);

/// One array of an .npz file, which numpy.savez and numpy.savez_compressed write: a zip archive of .npy files, stored or
/// deflated (PKWARE APPNOTE 6.3.10, sections 4.3.7, 4.3.12 and 4.3.16). Throws Error naming the file, and which arrays
/// it has where `array` is not among them.
NpyArray read_npz(const std::filesystem::path& file, const std::string& array);

/// The same bytes as numpy.save writes. Throws Error where the file cannot be written.
void write_npy(const std::filesystem::path& file, const NpyArray& array);

}  // namespace cohort
