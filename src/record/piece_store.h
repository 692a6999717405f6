/// Where a recording lies while it is made: one folder with a pair of files for each block of episodes, so that a
/// recording goes on where it was killed.
///
///   episodes-<first>-<last>.tfrecord   the episodes that are kept, by seed
///   episodes-<first>-<last>.json       written after it: the block is complete
///   recording.json                     what is recorded; another recording does not continue this one
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::record {

/// Seeds [begin, end) counted from the recording's first seed.
struct PieceRange {
  std::int64_t begin = 0, end = 0;
  std::int64_t size() const { return end - begin; }
};

/// What became of a block.
struct PieceReport {
  PieceRange range;
  std::int64_t kept = 0, steps = 0;        ///< episodes that are kept, and their steps
  std::int64_t successes = 0, faults = 0;  ///< of all of the block's episodes
  std::int64_t bytes = 0;                  ///< of the kept records, without their frames
};

class PieceStore {
 public:
  /// Creates the folder, or goes on in it. `identity` says everything that the bytes depend on. Throws Error where the
  /// folder cannot be written, and where it holds a recording of another identity, naming what differs.
  PieceStore(std::filesystem::path folder, const config::Json& identity);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path data_file(const PieceRange& range) const;
  bool complete(const PieceRange& range) const;
  /// Throws Error where it is not complete.
  PieceReport report(const PieceRange& range) const;
  /// `records`: whole TFRecords in the order of their seeds.
  void write(const PieceReport& report, const std::string& records) const;

 private:
  std::filesystem::path stem(const PieceRange& range) const;
  std::filesystem::path folder_;
};

}  // namespace cohort::record
