/// Files that stand for others: a checkout without Git LFS holds pointers of three lines in place of large files, and a
/// download that was turned away holds the page that said so.
///
/// Whoever opens a file of data, weights, meshes or pictures asks here first, so that the fault is named and not what a
/// parser makes of it. read_file() asks, too.
#pragma once
#include <filesystem>
#include <string>
#include <string_view>

namespace cohort {

/// Of a file's first bytes. Format: github.com/git-lfs/git-lfs, docs/spec.md.
bool is_lfs_pointer(std::string_view first_bytes);

/// What is wrong with a file of these first bytes: "is a Git LFS pointer: ...", "is a web page, ..."; else empty.
std::string stand_in_fault(std::string_view first_bytes);

/// What is wrong and what to do, to stand behind a file's name: "is a Git LFS pointer: ...", "is empty (0 bytes): ...",
/// "is a web page, ...".
/// Empty where the file has content, or is no regular file that can be read (whoever opens it says so).
std::string placeholder_fault(const std::filesystem::path& path);

/// Throws Error naming the file where placeholder_fault() is not empty.
void refuse_placeholder(const std::filesystem::path& path);

/// The remedy that follows "is a Git LFS pointer".
inline constexpr const char* kLfsPointer =
    "is a Git LFS pointer: fetch the file itself with `git lfs pull` in the checkout (without Git LFS: copy or "
    "download "
    "it)";

}  // namespace cohort
