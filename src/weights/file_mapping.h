/// A file of weights in memory: pages come from the disk when they are touched, and are copied when they are written to,
/// so that the file is never changed.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace cohort::weights {

class FileMapping {
 public:
  /// Throws Error naming the path and the system's reason.
  explicit FileMapping(const std::filesystem::path& path);
  ~FileMapping();
  FileMapping(const FileMapping&) = delete;
  FileMapping& operator=(const FileMapping&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(data_); }
  std::uint64_t size() const { return size_; }

 private:
  void* data_ = nullptr;
  std::uint64_t size_ = 0;
};

/// Lets the system take the pages of what will not be read again soon; their content stays what it is. A hint: where the
/// kernel does not know it (before Linux 5.4), nothing happens.
void page_out(const void* data, std::size_t bytes);

}  // namespace cohort::weights
