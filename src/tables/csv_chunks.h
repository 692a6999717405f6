/// Cuts a CSV file into pieces of whole records that can be parsed at the same time.
#pragma once
#include <algorithm>
#include <bit>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <limits>
#include <mutex>

#include "tables/csv_layout.h"
#include "tables/csv_source.h"
#include "tables/table.h"

namespace cohort::tables {

/// So many bytes before and behind a piece's text may be read, and those behind may be written.
inline constexpr std::int64_t kChunkPadding = 64;

/// Memory for the text of one piece, which grows as records turn out longer than thought.
class ChunkBuffer {
 public:
  /// Room for `bytes` of text; what was there is kept.
  void reserve(std::int64_t bytes);
  char* text() { return memory_.data() + kChunkPadding; }

 private:
  AlignedArray<char> memory_;
  std::int64_t capacity_ = 0;
};

/// Whole records: starts where a record starts and ends behind a line end, or at the end of the file. May be empty.
struct CsvChunk {
  char* begin = nullptr;  ///< in the buffer
  char* end = nullptr;
  std::int64_t first_line = 1;  ///< line of the file on which it starts, from 1
  std::int64_t lines = 0;       ///< it holds at most so many records
  std::int64_t first_row = 0;   ///< the pieces before it hold at most so many records
};

/// Reads pieces and finds their ends. A piece reaches from where the one before it ended to the first record end at or
/// behind the next multiple of the piece size; so the cuts do not depend on the threads. Where a piece has no quotes
/// its end is found without waiting for the piece before it. A line end inside a quoted field never cuts.
class CsvCutter {
 public:
  CsvCutter(const CsvSource& source, const CsvLayout& layout, std::int64_t chunk_bytes);

  std::int64_t count() const { return count_; }

  /// Reads piece `index` into `buffer`. To be called once for each index, from any thread, lower indices first: it
  /// waits until piece index - 1 has been cut. Returns false when a piece before was given up. Throws Error, and gives
  /// this piece up, when the file cannot be read or a quote is not closed.
  bool take(std::int64_t index, ChunkBuffer& buffer, CsvChunk& chunk);

  /// Says that piece `index` will not be taken, so that nobody waits for it.
  void give_up(std::int64_t index);

 private:
  class Window;
  std::int64_t find_cut(Window& window, std::int64_t start, std::int64_t target) const;
  bool opens_field(const Window& window, std::int64_t quote, std::int64_t start, std::int64_t floor) const;

  const CsvSource& source_;
  const CsvLayout& layout_;
  std::int64_t chunk_bytes_;
  std::int64_t count_;

  std::mutex mutex_;
  std::condition_variable moved_;
  // Everything before piece next_ has been cut.
  std::int64_t next_ = 0;
  std::int64_t offset_, line_, row_ = 0;
  std::int64_t given_up_ = std::numeric_limits<std::int64_t>::max();
};

/// The first `c` in [begin, end), or `end`. For text in which it is near: memchr, but without its call for the first 32
/// bytes. Reads up to 7 bytes behind `end`.
inline const char* find_near(const char* begin, const char* end, char c) {
  constexpr std::uint64_t kOnes = 0x0101010101010101, kTops = 0x8080808080808080;
  const std::uint64_t wanted = kOnes * static_cast<unsigned char>(c);
  const char* p = begin;
  for (int i = 0; i < 4; ++i, p += 8) {
    if (p >= end) return end;
    std::uint64_t word;
    std::memcpy(&word, p, sizeof word);
    word ^= wanted;  // a byte that was `c` is 0; the lowest top bit that the next line leaves is that of the first such
    const std::uint64_t found = (word - kOnes) & ~word & kTops;
    if (found != 0) return std::min(end, p + std::countr_zero(found) / 8);
  }
  if (p >= end) return end;
  const void* found = std::memchr(p, c, static_cast<std::size_t>(end - p));
  return found == nullptr ? end : static_cast<const char*>(found);
}

/// Line feeds in [begin, end).
std::int64_t count_lines(const char* begin, const char* end);

/// About how many records the file holds: exact or too high for small files, for large ones judged from samples.
std::int64_t estimate_rows(const CsvSource& source, const CsvLayout& layout);

}  // namespace cohort::tables
