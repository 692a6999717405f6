/// A file that grows by whole records only.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string_view>

namespace cohort::report {

class AppendFile {
 public:
  /// Opens for appending; creates the file and its folders. Throws Error with path and reason.
  explicit AppendFile(const std::filesystem::path& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Appends all of `record` or, when that fails (a full disk), nothing of it, and throws Error with path and reason.
  /// What was appended is in the system's hands: a killed process loses none of it.
  void append(std::string_view record);

  /// Syncs to the disk: a machine without power loses none of it. Throws Error.
  void sync();

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  std::int64_t size_ = 0;
};

}  // namespace cohort::report
