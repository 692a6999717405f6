/// Files that are whole or absent: written aside, synced, renamed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace cohort {

/// Reads a whole file; throws Error with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);
/// The same; none where it is not to be had: it is not there, may not be read, or goes while it is read, as a process's
/// files in /proc do.
std::optional<std::string> read_file_if_there(const std::filesystem::path& path);

/// A file that is written piece by piece and appears under its name whole or not at all.
///
/// What is written goes to a temporary file beside it, so that a name that cannot be written is found at once. A
/// symbolic link is followed: the file it leads to is written, and the link stays. Parent folders are created. Without
/// commit() the temporary file and the created folders are removed; what was there before stays.
class AtomicFile {
 public:
  /// Throws Error with path and reason: a folder in the way, no permission, a name that is too long, a pipe or a
  /// device.
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  /// Offsets count bytes from the beginning; what lies between written parts reads as zeros. These throw Error with
  /// path and reason (a full disk, say).
  void write(std::uint64_t offset, std::string_view bytes);
  /// Exactly to.size() bytes, which must have been written.
  void read(std::uint64_t offset, std::span<char> to);
  void resize(std::uint64_t bytes);
  /// Takes room on the disk for so many bytes from the beginning, so that writing them does not fail for want of it. A
  /// file system that cannot promise that does nothing.
  void reserve(std::uint64_t bytes);
  /// Up to the last byte that was written or reserved.
  std::uint64_t size() const;
  /// Bytes that its disk has left; the greatest number where the system does not tell.
  std::uintmax_t room() const;

  /// Puts the file in place: fsync, rename, fsync of the folder. Nothing may be called after it.
  void commit();

 private:
  void remove();

  std::filesystem::path path_;                  ///< as given
  std::filesystem::path target_;                ///< where the links lead
  std::filesystem::path aside_;                 ///< the temporary file
  std::vector<std::filesystem::path> created_;  ///< folders, the innermost first
  int fd_ = -1;
};

/// Writes `path` as an AtomicFile: whole, or not at all and Error names path and reason.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Syncs a file's or a folder's content to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);

/// Replaces the symbolic link `link` by one to `target` (relative) in one step.
void replace_symlink(const std::filesystem::path& target, const std::filesystem::path& link);

/// Makes a folder in TMPDIR (/tmp without it) under a name of its own that begins with `prefix`, for the caller to
/// keep. or_else: what else the user may do when it cannot be made, e.g. ", or ...". Throws Error naming TMPDIR.
std::filesystem::path make_folder_in_tmp(const std::string& prefix, const std::string& or_else = "");

/// Such a folder, removed with the object. One whose process was killed is removed by the next of its prefix: a folder
/// in use is locked (flock) by its process, and only the same user's on the same machine is looked at, by its name.
class TemporaryFolder {
 public:
  /// Throws Error as make_folder_in_tmp.
  explicit TemporaryFolder(const std::string& prefix, const std::string& or_else = "");
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int lock_ = -1;  ///< the folder, open; -1 where its file system has no locks: then it may stay behind
};

}  // namespace cohort
