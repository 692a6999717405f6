#include "data/hdf5/array.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "core/error.h"
#include "data/hdf5/inflate.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kMaxChunkBytes = std::int64_t{1} << 31;

std::int64_t product(std::span<const std::int64_t> extents) {
  std::int64_t n = 1;
  for (const std::int64_t extent : extents) n *= extent;
  return n;
}

/// `out` is memory of its own, so that the packed bytes may lie in the file.
void inflate_chunk(std::string_view packed, std::string& out, std::size_t expected, const MappedFile& file,
                   const Hdf5Array& array) {
  out.resize(expected);
  COHORT_THROW_UNLESS(inflate_exactly(packed, out.data(), expected), "{}: {}: a chunk does not inflate to its {} bytes",
                      file.path(), array.path, expected);
}

/// LZF (liblzf by M. Lehmann): runs of up to 32 literals, and references of up to 264 bytes, 8 KiB back.
void unpack_lzf(std::string& bytes, std::size_t expected, const MappedFile& file, const Hdf5Array& array) {
  constexpr std::size_t kLiterals = 32, kStep = 8;
  std::string out(expected + kLiterals, '\0');  // with room behind the end: copies have fixed sizes where they can
  const char* from = bytes.data();
  const char* const end = from + bytes.size();
  char* const begin = out.data();
  char* to = begin;
  const auto need = [&](std::size_t count) {
    COHORT_THROW_UNLESS(static_cast<std::size_t>(end - from) >= count, "{}: {}: a chunk packed with lzf ends early",
                        file.path(), array.path);
  };
  const auto room = [&](std::size_t count) {
    COHORT_THROW_UNLESS(expected - static_cast<std::size_t>(to - begin) >= count,
                        "{}: {}: a chunk packed with lzf is too long", file.path(), array.path);
  };
  const auto byte = [&] { return static_cast<std::size_t>(static_cast<unsigned char>(*from++)); };
  while (from < end) {
    const std::size_t control = byte();
    if (control < kLiterals) {
      const std::size_t length = control + 1;
      need(length);
      room(length);
      std::memcpy(to, from, static_cast<std::size_t>(end - from) >= kLiterals ? kLiterals : length);
      from += length, to += length;
      continue;
    }
    std::size_t length = (control >> 5) + 2;
    need(length == 9 ? 2 : 1);
    if (length == 9) length += byte();
    const std::size_t back = ((control & 31) << 8) + byte() + 1;
    COHORT_THROW_UNLESS(back <= static_cast<std::size_t>(to - begin), "{}: {}: a chunk packed with lzf is damaged",
                        file.path(), array.path);
    room(length);
    char* const stop = to + length;
    if (back >= kStep) {
      for (; to < stop; to += kStep) std::memcpy(to, to - back, kStep);
      to = stop;
    } else {
      for (; to < stop; ++to) *to = *(to - back);  // a pattern that repeats
    }
  }
  const auto size = static_cast<std::size_t>(to - begin);
  COHORT_THROW_UNLESS(size == expected, "{}: {}: a chunk packed with lzf has {} bytes, not {}", file.path(), array.path,
                      size, expected);
  out.resize(expected);
  bytes.swap(out);
}

/// Byte k of every element lies together: put the elements together again.
void unshuffle(std::string& bytes, std::size_t element) {
  const std::size_t count = bytes.size() / element;
  if (element <= 1 || count <= 1) return;
  std::string out(bytes.size(), '\0');
  for (std::size_t k = 0; k < element; ++k)
    for (std::size_t i = 0; i < count; ++i) out[i * element + k] = bytes[k * count + i];
  std::copy(bytes.begin() + static_cast<std::ptrdiff_t>(count * element), bytes.end(),
            out.begin() + static_cast<std::ptrdiff_t>(count * element));
  bytes.swap(out);
}

/// Fletcher's checksum over big-endian 16-bit words, as HDF5 computes it.
std::uint32_t fletcher32(std::string_view bytes) {
  std::uint64_t sum1 = 0, sum2 = 0;
  for (std::size_t i = 0; i + 1 < bytes.size() + 1; i += 2) {
    std::uint64_t word = static_cast<std::uint64_t>(static_cast<unsigned char>(bytes[i])) << 8;
    if (i + 1 < bytes.size()) word |= static_cast<unsigned char>(bytes[i + 1]);
    sum1 = (sum1 + word) % 65535;
    sum2 = (sum2 + sum1) % 65535;
  }
  return static_cast<std::uint32_t>(sum2 << 16 | sum1);
}

void strip_checksum(std::string& bytes, const MappedFile& file, const Hdf5Array& array) {
  COHORT_THROW_UNLESS(bytes.size() >= 4, "{}: {}: a chunk is too short for its checksum", file.path(), array.path);
  std::uint32_t stored = 0;
  std::memcpy(&stored, bytes.data() + bytes.size() - 4, 4);
  bytes.resize(bytes.size() - 4);
  const std::uint32_t found = fletcher32(bytes);
  // Sums are equal modulo 65535, where 0 and 65535 are the same.
  const auto same = [](std::uint32_t a, std::uint32_t b) { return a % 65535 == b % 65535; };
  COHORT_THROW_UNLESS(same(found >> 16, stored >> 16) && same(found & 0xFFFF, stored & 0xFFFF),
                      "{}: {}: a chunk does not have its checksum", file.path(), array.path);
}

std::string_view file_bytes(const MappedFile& file, const Hdf5Array& array, std::uint64_t offset,
                            std::uint64_t length) {
  COHORT_THROW_UNLESS(offset <= file.size() && length <= file.size() - offset,
                      "{}: {} lies at byte {}, behind the file's end of {}: the file was cut; copy it again",
                      file.path(), array.path, offset + length, file.size());
  return file.bytes().substr(offset, length);
}

/// The chunk's elements, with the filters undone.
std::string_view chunk_bytes(const MappedFile& file, const Hdf5Array& array, const Hdf5Chunk& chunk,
                             std::string& scratch) {
  const std::int64_t expected = product(array.chunk_shape) * array.element.bytes;
  COHORT_THROW_UNLESS(expected > 0 && expected <= kMaxChunkBytes, "{}: {}: a chunk of {} bytes", file.path(),
                      array.path, expected);
  if (chunk.bytes == 0) {
    scratch.resize(static_cast<std::size_t>(expected));
    for (std::size_t i = 0; i < scratch.size(); ++i)
      scratch[i] = array.fill.empty() ? '\0' : array.fill[i % array.fill.size()];
    return scratch;
  }
  const std::string_view stored = file_bytes(file, array, chunk.offset, chunk.bytes);
  bool filtered = false;
  for (std::size_t f = array.filters.size(); f-- > 0;) {
    if ((chunk.skipped_filters >> f) & 1u) continue;
    const bool first = !filtered;
    // A chunk that is inflated first, as nearly all are, is inflated from where it lies.
    if (first && array.filters[f] != Hdf5Filter::kDeflate) scratch.assign(stored);
    filtered = true;
    switch (array.filters[f]) {
      case Hdf5Filter::kDeflate:
      case Hdf5Filter::kLzf: {
        // What was packed may carry a checksum that was added before.
        std::size_t size = static_cast<std::size_t>(expected);
        for (std::size_t before = 0; before < f; ++before)
          if (array.filters[before] == Hdf5Filter::kFletcher32 && !((chunk.skipped_filters >> before) & 1u)) size += 4;
        if (array.filters[f] == Hdf5Filter::kLzf) {
          unpack_lzf(scratch, size, file, array);
        } else if (first) {
          inflate_chunk(stored, scratch, size, file, array);
        } else {
          const std::string packed = std::move(scratch);
          inflate_chunk(packed, scratch, size, file, array);
        }
        break;
      }
      case Hdf5Filter::kShuffle:
        unshuffle(scratch, static_cast<std::size_t>(array.element.bytes));
        break;
      case Hdf5Filter::kFletcher32:
        strip_checksum(scratch, file, array);
        break;
    }
  }
  const std::string_view bytes = filtered ? std::string_view(scratch) : stored;
  COHORT_THROW_UNLESS(bytes.size() == static_cast<std::size_t>(expected), "{}: {}: a chunk has {} bytes, not {}",
                      file.path(), array.path, bytes.size(), expected);
  return bytes;
}

/// `count` runs of bytes, each a step behind the one before. Chunks that cut through colours have runs of one or two
/// bytes, for which a call of memcpy costs more than the copy.
template <std::size_t kRun>
void copy_short_runs(const char* from, std::int64_t from_step, char* to, std::int64_t to_step, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, kRun);
}
void copy_runs(const char* from, std::int64_t from_step, char* to, std::int64_t to_step, std::int64_t count,
               std::size_t run) {
  switch (run) {
    case 1:
      return copy_short_runs<1>(from, from_step, to, to_step, count);
    case 2:
      return copy_short_runs<2>(from, from_step, to, to_step, count);
    case 3:
      return copy_short_runs<3>(from, from_step, to, to_step, count);
    case 4:
      return copy_short_runs<4>(from, from_step, to, to_step, count);
    case 8:
      return copy_short_runs<8>(from, from_step, to, to_step, count);
    default:
      for (std::int64_t i = 0; i < count; ++i) std::memcpy(to + i * to_step, from + i * from_step, run);
  }
}

/// Copies the part of a chunk (whose first element has the index `origin`) that lies in rows [begin, begin + count).
void copy_chunk(const Hdf5Array& array, std::span<const std::int64_t> origin, const char* chunk, std::int64_t begin,
                std::int64_t count, char* out) {
  const std::size_t rank = array.shape.size();
  std::array<std::int64_t, kMaxRank> low{}, extent{}, index{};
  for (std::size_t d = 0; d < rank; ++d) {
    const std::int64_t first = d == 0 ? std::max(begin, origin[0]) : origin[d];
    const std::int64_t limit = d == 0 ? begin + count : array.shape[d];
    low[d] = first - origin[d];
    extent[d] = std::min(origin[d] + array.chunk_shape[d], limit) - first;
    if (extent[d] <= 0) return;
  }
  if (std::equal(array.shape.begin() + 1, array.shape.end(), array.chunk_shape.begin() + 1)) {  // whole rows
    std::memcpy(out + (origin[0] + low[0] - begin) * array.row_bytes(), chunk + low[0] * array.row_bytes(),
                static_cast<std::size_t>(extent[0] * array.row_bytes()));
    return;
  }
  const auto run = static_cast<std::size_t>(extent[rank - 1] * array.element.bytes);
  const std::size_t inner = rank - 2;
  const std::int64_t element = array.element.bytes, from_step = array.chunk_shape[rank - 1] * element,
                     to_step = array.shape[rank - 1] * element;
  for (;;) {
    std::int64_t from = 0, to = 0;
    for (std::size_t d = 0; d < rank; ++d) {
      const std::int64_t in_chunk = low[d] + index[d];
      from = from * array.chunk_shape[d] + in_chunk;
      to = to * (d == 0 ? count : array.shape[d]) + origin[d] + in_chunk - (d == 0 ? begin : 0);
    }
    copy_runs(chunk + from * element, from_step, out + to * element, to_step, extent[inner], run);
    std::size_t d = inner;  // the last two dimensions were copied as runs
    do {
      if (d == 0) return;
      --d;
    } while (++index[d] == extent[d] && (index[d] = 0, true));
  }
}

/// The indices of a chunk's first element, by its place in the file's list.
void origin_of(const Hdf5Array& array, std::int64_t chunk, std::span<std::int64_t> origin) {
  for (std::size_t d = array.shape.size(); d-- > 0;) {
    const std::int64_t grid = (array.shape[d] + array.chunk_shape[d] - 1) / array.chunk_shape[d];
    origin[d] = chunk % grid * array.chunk_shape[d];
    chunk /= grid;
  }
}

/// Rows of packed chunks that a thread unpacked last: the frames of a window lie in the same chunks, which h5py likes
/// to cut across several frames. Keeps at most kEntries times kMostBytes per thread.
class UnpackedRows {
 public:
  static constexpr std::int64_t kMostBytes = 1 << 20;

  struct Entry {
    std::uint64_t file = 0, offset = 0;  // of the first chunk: which array and which rows of it
    std::string rows;
  };

  /// Nothing where they are not there.
  const std::string* find(std::uint64_t file, std::uint64_t offset) {
    for (std::size_t i = 0; i < entries_.size(); ++i)
      if (entries_[i].file == file && entries_[i].offset == offset) {
        std::rotate(entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(i),
                    entries_.begin() + static_cast<std::ptrdiff_t>(i) + 1);
        return &entries_.front().rows;
      }
    return nullptr;
  }
  /// Memory for such rows, in the place of what was not used for longest; named by keep() when it is filled.
  std::string& oldest() {
    std::rotate(entries_.begin(), entries_.end() - 1, entries_.end());
    entries_.front().file = 0;
    return entries_.front().rows;
  }
  void keep(std::uint64_t file, std::uint64_t offset) {
    entries_.front().file = file;
    entries_.front().offset = offset;
  }

 private:
  static constexpr std::size_t kEntries = 4;
  std::array<Entry, kEntries> entries_;
};

/// The chunks that hold these rows.
std::span<const Hdf5Chunk> chunks_of(const Hdf5Array& array, std::int64_t begin, std::int64_t count) {
  if (array.layout != Hdf5Layout::kChunked || count == 0) return {};
  std::int64_t per_row = 1;
  for (std::size_t d = 1; d < array.shape.size(); ++d)
    per_row *= (array.shape[d] + array.chunk_shape[d] - 1) / array.chunk_shape[d];
  const std::int64_t first = begin / array.chunk_shape[0], last = (begin + count - 1) / array.chunk_shape[0];
  return std::span(array.chunks)
      .subspan(static_cast<std::size_t>(first * per_row), static_cast<std::size_t>((last + 1 - first) * per_row));
}

template <class Stored, class Out>
void convert_run(const char* stored, bool swap, std::span<Out> out) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::array<char, sizeof(Stored)> bytes;
    std::memcpy(bytes.data(), stored + i * sizeof(Stored), sizeof(Stored));
    if (swap) std::reverse(bytes.begin(), bytes.end());
    out[i] = static_cast<Out>(std::bit_cast<Stored>(bytes));
  }
}

template <class Out>
void convert(const Hdf5Element& element, const char* stored, std::span<Out> out) {
  using Kind = Hdf5Element::Kind;
  const bool swap = element.big_endian && element.bytes > 1;
  const auto key = [](Kind kind, int bytes) { return static_cast<int>(kind) * 16 + bytes; };
  const int wanted = key(element.kind == Kind::kBool ? Kind::kUnsigned : element.kind, element.bytes);
  if (wanted == key(Kind::kFloat, 4)) return convert_run<float>(stored, swap, out);
  if (wanted == key(Kind::kFloat, 8)) return convert_run<double>(stored, swap, out);
  if (wanted == key(Kind::kFloat, 2)) return convert_run<_Float16>(stored, swap, out);
  if (wanted == key(Kind::kSigned, 1)) return convert_run<std::int8_t>(stored, swap, out);
  if (wanted == key(Kind::kSigned, 2)) return convert_run<std::int16_t>(stored, swap, out);
  if (wanted == key(Kind::kSigned, 4)) return convert_run<std::int32_t>(stored, swap, out);
  if (wanted == key(Kind::kSigned, 8)) return convert_run<std::int64_t>(stored, swap, out);
  if (wanted == key(Kind::kUnsigned, 1)) return convert_run<std::uint8_t>(stored, swap, out);
  if (wanted == key(Kind::kUnsigned, 2)) return convert_run<std::uint16_t>(stored, swap, out);
  if (wanted == key(Kind::kUnsigned, 4)) return convert_run<std::uint32_t>(stored, swap, out);
  if (wanted == key(Kind::kUnsigned, 8)) return convert_run<std::uint64_t>(stored, swap, out);
  throw Error(format("elements of {} bytes are not read", element.bytes));
}

}  // namespace

ElementType Hdf5Element::element_type() const {
  if (kind == Kind::kBool) return ElementType::kBool;
  if (kind == Kind::kFloat)
    return bytes == 8 ? ElementType::kFloat64 : bytes == 2 ? ElementType::kFloat16 : ElementType::kFloat32;
  if (kind == Kind::kUnsigned && bytes == 1) return ElementType::kUInt8;
  if (kind == Kind::kSigned && bytes == 4) return ElementType::kInt32;
  if (kind == Kind::kSigned && bytes == 2) return ElementType::kInt16;
  return ElementType::kInt64;
}

std::int64_t Hdf5Array::row_elements() const {
  return shape.empty() ? 1 : product(std::span(shape).subspan(1));
}

std::int64_t Hdf5Array::bytes_held() const {
  return static_cast<std::int64_t>(sizeof(*this) + path.capacity() + inline_bytes.capacity() +
                                   chunks.capacity() * sizeof(Hdf5Chunk) +
                                   (shape.capacity() + chunk_shape.capacity()) * sizeof(std::int64_t));
}

std::int64_t Hdf5Array::stored_bytes() const {
  if (layout == Hdf5Layout::kContiguous) return shape[0] * row_bytes();
  std::int64_t bytes = 0;
  for (const Hdf5Chunk& chunk : chunks) bytes += static_cast<std::int64_t>(chunk.bytes);
  return bytes;
}

std::string_view rows_in_place(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count) {
  if (array.element.big_endian && array.element.bytes > 1) return {};
  const auto length = static_cast<std::uint64_t>(count * array.row_bytes());
  const auto skip = static_cast<std::uint64_t>(begin * array.row_bytes());
  if (array.layout == Hdf5Layout::kContiguous) return file_bytes(file, array, array.offset + skip, length);
  // A chunk of whole rows without filters.
  if (array.layout == Hdf5Layout::kChunked && array.filters.empty() && count > 0 &&
      std::equal(array.shape.begin() + 1, array.shape.end(), array.chunk_shape.begin() + 1)) {
    const std::int64_t rows = array.chunk_shape[0], chunk = begin / rows;
    if ((begin + count - 1) / rows == chunk && array.chunks[static_cast<std::size_t>(chunk)].bytes > 0)
      return file_bytes(file, array,
                        array.chunks[static_cast<std::size_t>(chunk)].offset +
                            static_cast<std::uint64_t>((begin - chunk * rows) * array.row_bytes()),
                        length);
  }
  return {};
}

void read_rows(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count, char* out,
               std::string& scratch) {
  COHORT_CHECK(!array.shape.empty() && begin >= 0 && count >= 0 && begin + count <= array.shape[0],
               "rows [{}, {}) of {} ({})", begin, begin + count, array.path, array.shape.empty() ? 0 : array.shape[0]);
  const auto length = static_cast<std::size_t>(count * array.row_bytes());
  if (length == 0) return;
  const auto skip = static_cast<std::size_t>(begin * array.row_bytes());
  switch (array.layout) {
    case Hdf5Layout::kContiguous:
      std::memcpy(out, file_bytes(file, array, array.offset + skip, length).data(), length);
      return;
    case Hdf5Layout::kInline:
      COHORT_THROW_UNLESS(skip + length <= array.inline_bytes.size(), "{}: {} has {} bytes inline", file.path(),
                          array.path, array.inline_bytes.size());
      std::memcpy(out, array.inline_bytes.data() + skip, length);
      return;
    case Hdf5Layout::kUnwritten:
      for (std::size_t i = 0; i < length; ++i) out[i] = array.fill.empty() ? '\0' : array.fill[i % array.fill.size()];
      return;
    case Hdf5Layout::kChunked:
      break;
  }
  const std::size_t rank = array.shape.size();
  std::array<std::int64_t, kMaxRank> origin{};
  std::int64_t chunks_per_row = 1;
  for (std::size_t d = 1; d < rank; ++d)
    chunks_per_row *= (array.shape[d] + array.chunk_shape[d] - 1) / array.chunk_shape[d];
  const auto copy_chunks = [&](std::int64_t chunk_row, std::int64_t first, std::int64_t rows, char* to) {
    for (std::int64_t c = chunk_row * chunks_per_row; c < (chunk_row + 1) * chunks_per_row; ++c) {
      origin_of(array, c, std::span(origin.data(), rank));
      const std::string_view bytes = chunk_bytes(file, array, array.chunks[static_cast<std::size_t>(c)], scratch);
      copy_chunk(array, std::span(origin.data(), rank), bytes.data(), first, rows, to);
    }
  };
  thread_local UnpackedRows unpacked;
  const std::int64_t rows_per_chunk = array.chunk_shape[0];
  for (std::int64_t r = begin / rows_per_chunk; r <= (begin + count - 1) / rows_per_chunk; ++r) {
    const std::int64_t chunk_begin = r * rows_per_chunk;
    const std::int64_t chunk_rows = std::min(rows_per_chunk, array.shape[0] - chunk_begin);
    const std::int64_t low = std::max(begin, chunk_begin), high = std::min(begin + count, chunk_begin + chunk_rows);
    const Hdf5Chunk& leader = array.chunks[static_cast<std::size_t>(r * chunks_per_row)];
    if (array.filters.empty() || leader.bytes == 0 || high - low == chunk_rows ||
        chunk_rows * array.row_bytes() > UnpackedRows::kMostBytes) {
      copy_chunks(r, begin, count, out);
      continue;
    }
    const std::string* rows = unpacked.find(file.id(), leader.offset);
    if (!rows || rows->size() != static_cast<std::size_t>(chunk_rows * array.row_bytes())) {
      std::string& memory = unpacked.oldest();
      memory.resize(static_cast<std::size_t>(chunk_rows * array.row_bytes()));
      copy_chunks(r, chunk_begin, chunk_rows, memory.data());
      unpacked.keep(file.id(), leader.offset);
      rows = &memory;
    }
    std::memcpy(out + (low - begin) * array.row_bytes(), rows->data() + (low - chunk_begin) * array.row_bytes(),
                static_cast<std::size_t>((high - low) * array.row_bytes()));
  }
}

void check_rows(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count,
                std::string& scratch) {
  switch (array.layout) {
    case Hdf5Layout::kContiguous:
      file_bytes(file, array, array.offset + static_cast<std::uint64_t>(begin * array.row_bytes()),
                 static_cast<std::uint64_t>(count * array.row_bytes()));
      return;
    case Hdf5Layout::kInline:
      COHORT_THROW_UNLESS(array.inline_bytes.size() == static_cast<std::size_t>(array.shape[0] * array.row_bytes()),
                          "{}: {} has {} bytes inline", file.path(), array.path, array.inline_bytes.size());
      return;
    case Hdf5Layout::kUnwritten:
      return;
    case Hdf5Layout::kChunked:
      for (const Hdf5Chunk& chunk : chunks_of(array, begin, count))
        if (chunk.bytes > 0) chunk_bytes(file, array, chunk, scratch);
      return;
  }
}

void convert_elements(const Hdf5Element& element, const char* stored, std::span<float> out) {
  convert(element, stored, out);
}

void convert_elements(const Hdf5Element& element, const char* stored, std::span<double> out) {
  convert(element, stored, out);
}

void convert_elements(const Hdf5Element& element, const char* stored, std::span<std::int64_t> out) {
  COHORT_CHECK(element.kind != Hdf5Element::Kind::kFloat, "floating-point numbers are asked for as integers");
  convert(element, stored, out);
}

void release_pages(const MappedFile& file, const Hdf5Array& array, std::int64_t begin_row, std::int64_t count) {
  if (array.layout == Hdf5Layout::kContiguous)
    file.release(array.offset + static_cast<std::uint64_t>(begin_row * array.row_bytes()),
                 static_cast<std::size_t>(count * array.row_bytes()));
  // Chunks that lie near each other go together: one call of the system for each of a thousand frames takes long.
  constexpr std::uint64_t kNear = 64 << 10;
  std::uint64_t begin = 0, end = 0;
  for (const Hdf5Chunk& chunk : chunks_of(array, begin_row, count)) {
    if (chunk.bytes == 0 || chunk.offset > file.size() || chunk.bytes > file.size() - chunk.offset) continue;
    if (chunk.offset >= begin && chunk.offset <= end + kNear) {
      end = std::max(end, chunk.offset + chunk.bytes);
      continue;
    }
    file.release(begin, end - begin);
    begin = chunk.offset;
    end = chunk.offset + chunk.bytes;
  }
  file.release(begin, end - begin);
}

}  // namespace cohort::data
