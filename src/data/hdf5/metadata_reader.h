/// Hdf5Metadata by libhdf5 in this process, for one thread at a time. Only the process that metadata_process.h starts
/// uses it: damaged files can make the library crash.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "data/hdf5/metadata.h"

namespace cohort::data {

class Hdf5MetadataReader {
 public:
  // The functions of Hdf5Metadata, with the same errors.
  /// `name` stands for the file in messages: the path as the caller knows it.
  Hdf5MetadataReader(const std::filesystem::path& path, std::string name);
  ~Hdf5MetadataReader();
  Hdf5MetadataReader(Hdf5MetadataReader&&) noexcept;
  Hdf5MetadataReader& operator=(Hdf5MetadataReader&&) noexcept;

  bool has(const std::string& object) const;
  std::vector<std::string> groups(const std::string& group) const;
  std::vector<std::string> data_sets(const std::string& group) const;
  Hdf5Attributes attributes(const std::string& object) const;
  std::vector<std::pair<std::string, std::string>> attribute_types(const std::string& object) const;
  std::vector<std::pair<std::string, Hdf5Array>> arrays(const std::string& group) const;
  Hdf5Array array(const std::string& data_set) const;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> shapes(const std::string& group) const;
  std::vector<std::string> texts(const std::string& data_set) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
