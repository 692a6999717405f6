/// Hdf5Metadata's answers by libhdf5 in this process, for one thread at a time. Only the process that
/// metadata_process.h starts uses it: damaged files can make the library crash.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "core/byte_stream.h"
#include "data/hdf5/metadata_process.h"

namespace cohort::data {

class Hdf5MetadataReader {
 public:
  /// Throws Error as Hdf5Metadata. `name` stands for the file in messages: the path as the caller knows it.
  Hdf5MetadataReader(const std::filesystem::path& path, std::string name);
  ~Hdf5MetadataReader();
  Hdf5MetadataReader(Hdf5MetadataReader&&) noexcept;
  Hdf5MetadataReader& operator=(Hdf5MetadataReader&&) noexcept;

  /// What the function of Hdf5Metadata that `question` stands for returns, by put() (metadata_wire.h); nothing for
  /// kOpen. Throws its Error.
  void answer(Hdf5Question question, const std::string& object, ByteWriter& out) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
