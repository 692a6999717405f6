/// What a file holds and where, as libhdf5 says: in a process of its own (metadata_process.h), because damaged files
/// can make it crash. One file is looked at after the other; no data are read there but texts and arrays that lie in
/// the metadata themselves.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/hdf5/array.h"

namespace cohort::data {

/// Whether this build reads HDF5; where not, opening a file throws Error naming the package.
bool has_hdf5();

/// Attributes as texts: strings as they are, numbers in decimal, bools as true and false; others are left out.
using Hdf5Attributes = std::vector<std::pair<std::string, std::string>>;

class Hdf5Metadata {
 public:
  /// Throws Error naming the file when it is no HDF5 file, or has a user block. So do all functions when libhdf5
  /// crashes over the file.
  explicit Hdf5Metadata(const std::filesystem::path& path);
  ~Hdf5Metadata();
  Hdf5Metadata(Hdf5Metadata&&) noexcept;
  Hdf5Metadata& operator=(Hdf5Metadata&&) noexcept;

  bool has(const std::string& object) const;
  /// Names of the groups directly below a group, in the order of the file's index; links that lead nowhere are named
  /// too, so that what they stood for is not missed without a word.
  std::vector<std::string> groups(const std::string& group) const;
  /// Likewise of the data sets.
  std::vector<std::string> data_sets(const std::string& group) const;
  Hdf5Attributes attributes(const std::string& object) const;
  /// The types of all attributes: "string", "bool", "int64", "float32", …; empty where attributes() leaves one out.
  std::vector<std::pair<std::string, std::string>> attribute_types(const std::string& object) const;
  /// All arrays of numbers below a group, with their path relative to it; arrays of anything else are left out. Throws
  /// Error naming the data set for a filter or element type that cannot be read, and for one that lies in another file.
  std::vector<std::pair<std::string, Hdf5Array>> arrays(const std::string& group) const;
  /// One of them, by its path in the file.
  Hdf5Array array(const std::string& data_set) const;
  /// The extents of the arrays of numbers below a group, likewise, without looking for their bytes.
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(const std::string& group) const;
  /// A one-dimensional array of texts (a robomimic mask).
  std::vector<std::string> texts(const std::string& data_set) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
