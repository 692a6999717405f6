/// The safetensors format (https://github.com/huggingface/safetensors, README "Format"): eight bytes of header length,
/// a JSON header, the tensors' bytes without gaps. Nothing in such a file is ever executed.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "weights/named_tensors.h"

namespace cohort::weights {

struct SafetensorsFile {
  NamedTensors tensors;  ///< in the order of their bytes; on the CPU
  std::map<std::string, std::string> metadata;
};

/// Maps the file into memory: the tensors share its pages (copied on write, so that the file is never changed) and keep
/// the mapping alive. The few whose bytes are not aligned to their element are copied. Throws Error naming the file and
/// what is wrong: missing, truncated, of another format, a header that is no JSON or too large, unknown element type,
/// bytes that overlap, leave gaps or do not fit the shape.
SafetensorsFile read_safetensors(const std::filesystem::path& path);

/// Writes a file as the safetensors package does: tensors ordered by falling alignment, then by name; equal input gives
/// equal bytes. Tensors on other devices or with gaps in memory are copied first. The file appears whole or not at all:
/// it is written aside, synced and renamed. Throws Error with path and reason ("No space left on device").
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const std::map<std::string, std::string>& metadata = {});

/// As above without writing aside: for a file inside a folder that is itself renamed when whole. Synced; removed on an
/// error. Returns the CRC-32C of the file's bytes.
std::uint32_t write_safetensors_in_place(const std::filesystem::path& path, const NamedTensors& tensors,
                                         const std::map<std::string, std::string>& metadata = {});

}  // namespace cohort::weights
