/// Addresses in place of paths.
#pragma once
#include <filesystem>
#include <string>

namespace cohort::data {

/// Throws Error where a path is an address such as gs://bucket/droid, s3:// or https://: data are read from the file
/// system of this machine only. It names the command that copies them.
void refuse_address(const std::filesystem::path& path);

/// What is said behind "there is no ..." where a path has the form of a name of the Hugging Face hub, lerobot/pusht: the
/// command that downloads it. "" for other paths.
std::string hub_hint(const std::filesystem::path& path);

/// Throws Error where nothing has this path: as refuse_address() does for an address, else "there is no `what` ...".
void need_local_path(const std::filesystem::path& path, const std::string& what = "file or folder");

}  // namespace cohort::data
