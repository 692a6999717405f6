/// checksums.json of a checkpoint: a CRC-32C of every file beside it, so that a bit that has turned over on a disk or
/// on the way is found before anything is computed with it.
///
///   {"algorithm": "crc32c", "files": {"model.safetensors": "9d0cf3a1", ..., "trainer_state.json": "00c3e1f2"}}
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace cohort::weights {

inline constexpr const char* kChecksumsFile = "checksums.json";

/// Of each file, by its name within the checkpoint.
using Checksums = std::map<std::string, std::uint32_t>;

/// The text of checksums.json.
std::string to_text(const Checksums& checksums);

/// Holds the files of a checkpoint against its checksums.json; `names`: only those of them that are listed there.
/// Without that file (a checkpoint of an earlier version) nothing is checked. Throws Error naming the file that is
/// missing, cannot be read or has changed since it was written.
void verify_checksums(const std::filesystem::path& checkpoint, const std::vector<std::string>& names);

}  // namespace cohort::weights
