/// Files that are whole or absent: written aside, synced, renamed.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort {

/// Reads a whole file; throws Error with the path and the system's reason.
std::string read_file(const std::filesystem::path& path);

/// Writes `path` atomically: to a temporary file beside it, fsync, rename, fsync of the folder. On an error (a full
/// disk, say) the temporary file is removed, what was there before stays, and Error names path and reason. Parent
/// folders are created.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

/// Syncs a file's or a folder's content to the disk. Throws Error.
void sync_path(const std::filesystem::path& path);

/// Replaces the symbolic link `link` by one to `target` (relative) in one step.
void replace_symlink(const std::filesystem::path& target, const std::filesystem::path& link);

}  // namespace cohort
