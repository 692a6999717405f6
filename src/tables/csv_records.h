/// Parses a piece of a CSV file into columns.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tables/csv_chunks.h"
#include "tables/csv_layout.h"
#include "tables/table.h"

namespace cohort::tables {

enum class MissingPolicy : std::uint8_t { kError, kDropRow, kForwardFill, kKeep };

/// Throws Error on anything but error, drop_row, forward_fill, keep.
MissingPolicy parse_missing_policy(const std::string& text);

/// Where a column of the file goes. Texts go to ChunkResult::texts.
struct ColumnTarget {
  double* float64 = nullptr;
  float* float32 = nullptr;
};

/// What a piece held.
struct ChunkResult {
  std::int64_t rows = 0;
  std::int64_t dropped_rows = 0;
  std::int64_t first_dropped_line = 0;
  std::int64_t first_row_line = 0;
  std::int64_t skipped_rows = 0;  ///< lines of skip_lines that could have been read as rows
  std::int64_t first_skipped_row = 0;
  std::vector<std::int64_t> missing;  ///< values left as NaN, per column of the file
  std::vector<std::int64_t> dropped;  ///< rows dropped, among others for this column's missing value
  std::vector<TextArray> texts;       ///< per column of the file; empty where it is no text
  /// The first fault of the piece, without the file's name; empty when there is none.
  std::string fault;
};

/// Parses one piece; writes kChunkPadding line feeds behind it. Row i of the piece goes to element first_row + i of
/// each target; there is room for chunk.lines rows. Stops at the first fault.
ChunkResult parse_chunk(const CsvLayout& layout, const CsvSettings& settings, MissingPolicy policy,
                        const CsvChunk& chunk, const std::vector<ColumnTarget>& targets, std::int64_t first_row);

}  // namespace cohort::tables
