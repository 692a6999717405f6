/// Writes a file in robomimic's layout: data/demo_N with its arrays and attributes. It stands at its path only after
/// finish().
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/array_view.h"

namespace cohort::data {

class Hdf5Writer {
 public:
  /// Throws Error when the file exists or the build has no HDF5.
  explicit Hdf5Writer(const std::filesystem::path& path);
  ~Hdf5Writer();
  Hdf5Writer(const Hdf5Writer&) = delete;
  Hdf5Writer& operator=(const Hdf5Writer&) = delete;

  /// The next demo (demo_0, demo_1, …) of so many steps.
  void begin_demo(std::int64_t steps);
  /// An array of the demo, e.g. "obs/eef_pos"; the first extent is the number of steps. Contiguous, in host memory;
  /// float32, float64, int64, int32, uint8 or bool. `compress`: gzip, one chunk per step, for images. `is_unsigned`:
  /// the int64 are the bits of uint64.
  void add(const std::string& name, const ArrayView& values, bool compress, bool is_unsigned = false);
  /// A data set of the demo with a text per step, as h5py writes them (UTF-8 of variable length).
  void add_texts(const std::string& name, const std::vector<std::string>& texts);
  /// An attribute of the demo, or before the first one of `data`: a text as h5py writes it; or the number that the text
  /// says, as `type`: bool, int8 to int64, uint8 to uint64, float32, float64. Throws Error where the text is none.
  void attribute(const std::string& name, const std::string& text, const std::string& type = "string");
  /// Writes the totals and moves the file into place.
  void finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
