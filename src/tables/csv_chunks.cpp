#include "tables/csv_chunks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "core/error.h"

namespace cohort::tables {
namespace {

constexpr std::int64_t kLookAhead = 16 << 10;                   // bytes read at a time behind a piece, to find its end
constexpr std::int64_t kLongestRecord = std::int64_t{1} << 30;  // a longer one is a quote that was never closed

}  // namespace

void ChunkBuffer::reserve(std::int64_t bytes) {
  if (bytes <= capacity_) return;
  AlignedArray<char> larger(static_cast<std::size_t>(bytes + 2 * kChunkPadding));
  if (capacity_ > 0)
    std::memcpy(larger.data(), memory_.data(), static_cast<std::size_t>(capacity_ + kChunkPadding));
  else
    std::memset(larger.data(), '\n', kChunkPadding);
  memory_ = std::move(larger);
  capacity_ = bytes;
}

/// The text of a piece and what follows it, loaded as far as was asked for. Offsets count from the piece's grid line.
class CsvCutter::Window {
 public:
  Window(const CsvSource& source, ChunkBuffer& buffer, std::int64_t begin, std::int64_t end)
      : source_(source), buffer_(buffer), begin_(begin) {
    load(end - begin);
  }
  const char* text() const { return buffer_.text(); }
  std::int64_t loaded() const { return loaded_; }
  bool at_end() const { return begin_ + loaded_ == source_.size(); }
  std::int64_t file_offset(std::int64_t offset) const { return begin_ + offset; }

  /// Loads more; false at the end of the file.
  bool more() {
    if (at_end()) return false;
    COHORT_THROW_UNLESS(loaded_ < kLongestRecord,
                        "{}: the record around byte {} does not end within {}; is a quote in it never closed?",
                        source_.name(), begin_, format_bytes(static_cast<double>(kLongestRecord)));
    load(loaded_ + std::min(std::max(kLookAhead, loaded_), source_.size() - begin_ - loaded_));
    return true;
  }
  /// The first `c` at or behind `from`, loading as needed; the end of the file where there is none.
  std::int64_t find(char c, std::int64_t from) {
    for (;;) {
      const std::int64_t found = find_loaded(c, from, loaded_);
      if (found < loaded_) return found;
      from = std::max(from, loaded_);
      if (!more()) return loaded_;
    }
  }
  /// The first `c` in [from, to), or `to`; without loading.
  std::int64_t find_loaded(char c, std::int64_t from, std::int64_t to) const {
    return from >= to ? to : find_near(text() + from, text() + to, c) - text();
  }

 private:
  void load(std::int64_t length) {
    const std::int64_t spare = loaded_ == 0 ? kLookAhead : 0;
    buffer_.reserve(length + spare);
    source_.read(begin_ + loaded_, length - loaded_, buffer_.text() + loaded_);
    loaded_ = length;
  }
  const CsvSource& source_;
  ChunkBuffer& buffer_;
  std::int64_t begin_;
  std::int64_t loaded_ = 0;
};

CsvCutter::CsvCutter(const CsvSource& source, const CsvLayout& layout, std::int64_t chunk_bytes)
    : source_(source),
      layout_(layout),
      chunk_bytes_(chunk_bytes),
      count_((source.size() - layout.data_begin + chunk_bytes - 1) / chunk_bytes),
      offset_(layout.data_begin),
      line_(layout.data_line) {}

void CsvCutter::give_up(std::int64_t index) {
  std::lock_guard lock(mutex_);
  given_up_ = std::min(given_up_, index);
  moved_.notify_all();
}

/// Whether the quote starts a quoted field: it stands where a field starts, and not in a comment. `floor` is the end of
/// the last quoted field, or the start.
bool CsvCutter::opens_field(const Window& window, std::int64_t quote, std::int64_t start, std::int64_t floor) const {
  const char* text = window.text();
  if (quote > start && text[quote - 1] != layout_.separator && text[quote - 1] != '\n') return false;
  if (layout_.comment == '\0') return true;
  const std::size_t line_end = std::string_view(text + floor, static_cast<std::size_t>(quote - floor)).rfind('\n');
  // A line with a quoted field before this quote is no comment.
  if (line_end == std::string_view::npos && floor != start) return true;
  const std::int64_t line_start =
      line_end == std::string_view::npos ? start : floor + static_cast<std::int64_t>(line_end) + 1;
  return text[line_start] != layout_.comment;
}

/// From a record's start: the offset behind the first record end at or behind `target`. The end of the file where a
/// quoted field does not end: the parser will come upon it.
std::int64_t CsvCutter::find_cut(Window& window, std::int64_t start, std::int64_t target) const {
  if (start >= target) return start;
  std::int64_t p = start, floor = start, line_end = -1;
  for (;;) {
    if (line_end < p) line_end = window.find('\n', std::max(p, target - 1));
    const std::int64_t quote = window.find_loaded('"', p, line_end);
    if (quote == line_end) return std::min(line_end + 1, window.loaded());
    p = quote + 1;
    if (!opens_field(window, quote, start, floor)) continue;
    for (;;) {
      const std::int64_t close = window.find('"', p);
      if (close == window.loaded()) return close;
      if (close + 1 == window.loaded()) window.more();
      p = close + 1;
      if (p == window.loaded() || window.text()[p] != '"') break;
      ++p;
    }
    floor = p;
  }
}

bool CsvCutter::take(std::int64_t index, ChunkBuffer& buffer, CsvChunk& chunk) {
  try {
    const std::int64_t grid_begin = layout_.data_begin + index * chunk_bytes_;
    const std::int64_t grid_end = std::min(source_.size(), grid_begin + chunk_bytes_);
    const std::int64_t target = grid_end - grid_begin;
    Window window(source_, buffer, grid_begin, grid_end);
    const std::int64_t lines = count_lines(window.text(), window.text() + target);
    const bool has_quotes = window.find_loaded('"', 0, target) < target;
    // Without quotes the last line end in the piece ends a record, unless a quoted field from before spans it.
    const std::size_t last_line_end = std::string_view(window.text(), static_cast<std::size_t>(target)).rfind('\n');
    const std::int64_t last_record =
        last_line_end == std::string_view::npos ? 0 : static_cast<std::int64_t>(last_line_end) + 1;
    std::int64_t cut = !has_quotes && last_record > 0 ? find_cut(window, last_record, target) : -1;

    std::unique_lock lock(mutex_);
    moved_.wait(lock, [&] { return next_ == index || given_up_ < index; });
    if (given_up_ < index) return false;
    const std::int64_t begin = offset_ - grid_begin;
    chunk.first_line = line_;
    chunk.first_row = row_;
    std::int64_t line_ends = 0;
    if (begin >= target) {
      cut = begin;  // the record that the piece before ended with fills this one
    } else if (cut >= 0 && begin <= last_record) {
      line_ends = lines - count_lines(window.text(), window.text() + begin) +
                  count_lines(window.text() + target, window.text() + cut);
    } else {
      cut = find_cut(window, begin, target);
      line_ends = count_lines(window.text() + begin, window.text() + cut);
    }
    chunk.begin = buffer.text() + (cut > begin ? begin : 0);
    chunk.end = cut > begin ? buffer.text() + cut : chunk.begin;
    chunk.lines = line_ends;
    if (cut > begin && chunk.end[-1] != '\n') ++chunk.lines;
    offset_ = grid_begin + cut;
    line_ += line_ends;
    row_ += chunk.lines;
    ++next_;
    moved_.notify_all();
    return true;
  } catch (...) {  // the lock, if held, is gone by now
    give_up(index);
    throw;
  }
}

std::int64_t count_lines(const char* begin, const char* end) {
  // Lanes of bytes count to 255 before they are summed; four registers of lanes hide the latency.
  typedef unsigned char Bytes __attribute__((vector_size(16)));
  constexpr std::ptrdiff_t kStep = 4 * sizeof(Bytes);
  const auto line_feeds = [](const char* text) {
    Bytes bytes;
    std::memcpy(&bytes, text, sizeof bytes);
    return (Bytes)(bytes == static_cast<unsigned char>('\n'));  // 255 where equal, that is -1
  };
  std::int64_t count = 0;
  const char* p = begin;
  while (end - p >= kStep) {
    const std::ptrdiff_t steps = std::min<std::ptrdiff_t>((end - p) / kStep, 255);
    Bytes a = {}, b = {}, c = {}, d = {};
    for (std::ptrdiff_t i = 0; i < steps; ++i, p += kStep) {
      a -= line_feeds(p);
      b -= line_feeds(p + 16);
      c -= line_feeds(p + 32);
      d -= line_feeds(p + 48);
    }
    for (int lane = 0; lane < 16; ++lane) count += a[lane] + b[lane] + c[lane] + d[lane];
  }
  for (; p < end; ++p) count += *p == '\n';
  return count;
}

std::int64_t estimate_rows(const CsvSource& source, const CsvLayout& layout) {
  constexpr std::int64_t kCountedWhole = 4 << 20, kSample = 64 << 10, kSamples = 8;
  const std::int64_t bytes = source.size() - layout.data_begin;
  std::vector<char> text(static_cast<std::size_t>(std::min(bytes, kSample)));
  const auto lines_at = [&](std::int64_t offset) {
    const std::int64_t length = std::min(kSample, bytes - offset);
    source.read(layout.data_begin + offset, length, text.data());
    return count_lines(text.data(), text.data() + length);
  };
  if (bytes <= kCountedWhole) {
    std::int64_t lines = 1;  // the last one may lack its line feed
    for (std::int64_t offset = 0; offset < bytes; offset += kSample) lines += lines_at(offset);
    return lines;
  }
  std::int64_t densest = 1;
  for (std::int64_t i = 0; i < kSamples; ++i)
    densest = std::max(densest, lines_at((bytes - kSample) / (kSamples - 1) * i));
  constexpr double kMargin = 1.1;  // memory that is not touched costs nothing
  const double rows = kMargin * static_cast<double>(densest) / kSample * static_cast<double>(bytes);
  return std::min(bytes, static_cast<std::int64_t>(std::ceil(rows)) + 1);
}

}  // namespace cohort::tables
