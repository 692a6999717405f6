/// A file of weights in memory: pages come from the disk when they are touched, and are copied when they are written to,
/// so that the file is never changed.
#pragma once
#include <cstdint>
#include <filesystem>

namespace cohort::policy {

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

}  // namespace cohort::policy
