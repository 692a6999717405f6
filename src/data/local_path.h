/// Addresses in place of paths.
#pragma once
#include <filesystem>

namespace cohort::data {

/// Throws Error where a path is an address such as gs://bucket/droid, s3:// or https://: data are read from the file
/// system of this machine only. It names the command that copies them.
void refuse_address(const std::filesystem::path& path);

}  // namespace cohort::data
