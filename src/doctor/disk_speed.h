/// How fast a machine writes checkpoints and copies memory, measured.
#pragma once
#include <filesystem>

namespace cohort::doctor {

struct MachineSpeed {
  std::filesystem::path disk_folder;
  double disk_write = 0;   ///< bytes/s into a new file there, until it is on the disk (fsync)
  double memory_copy = 0;  ///< bytes/s of one thread; what is read and written counts once
};

/// Writes a file of 256 MiB into `folder`, or a quarter of what is free there where that is less, and removes it.
/// Throws Error where it cannot be written.
MachineSpeed measure_machine(const std::filesystem::path& folder);

}  // namespace cohort::doctor
