/// A data set of an HDF5 file, read without libhdf5: its metadata say where its bytes lie (hdf5/metadata.h), and then
/// any number of threads read, inflate and convert at the same time. libhdf5 serves one thread at a time, whatever the
/// number of files.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array_view.h"
#include "data/mapped_file.h"

namespace cohort::data {

enum class Hdf5Layout : std::uint8_t { kContiguous, kChunked, kInline, kUnwritten };

/// How one element is stored.
struct Hdf5Element {
  enum class Kind : std::uint8_t { kFloat, kSigned, kUnsigned, kBool };
  Kind kind = Kind::kFloat;
  int bytes = 4;
  bool big_endian = false;
  /// The element type that holds it: integers without one of their own become int64.
  ElementType element_type() const;
};

struct Hdf5Chunk {
  std::uint64_t offset = 0, bytes = 0;  ///< in the file; bytes = 0: never written
  std::uint32_t skipped_filters = 0;    ///< bit i: filter i was not applied
};

/// Filters that are understood, by their registered numbers.
enum class Hdf5Filter : int { kDeflate = 1, kShuffle = 2, kFletcher32 = 3, kLzf = 32000 };

struct Hdf5Array {
  std::string path;  ///< in the file, for messages: /data/demo_0/actions
  Hdf5Element element;
  std::vector<std::int64_t> shape;
  Hdf5Layout layout = Hdf5Layout::kUnwritten;
  std::uint64_t offset = 0;               ///< of a contiguous one
  std::string inline_bytes;               ///< of one that lies in the metadata
  std::vector<std::int64_t> chunk_shape;  ///< of a chunked one, as many dimensions as shape
  std::vector<Hdf5Chunk> chunks;          ///< of the grid of chunks, row-major
  std::vector<Hdf5Filter> filters;        ///< in the order in which the writer applied them
  std::string fill;                       ///< bytes of one element that was never written

  std::int64_t row_elements() const;  ///< elements per index of the first dimension
  std::int64_t row_bytes() const { return row_elements() * element.bytes; }
  std::int64_t bytes_held() const;    ///< by this description
  std::int64_t stored_bytes() const;  ///< of the file
};

/// Copies rows [begin, begin + count) of the first dimension as they are stored (byte order included) to `out`,
/// row-major without gaps. `scratch` is used for inflating. Throws Error naming file and data set where the file is cut
/// or a chunk is damaged.
void read_rows(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count, char* out,
               std::string& scratch);

/// The same rows where they lie, when they lie in one piece in the file and need no conversion; empty otherwise.
std::string_view rows_in_place(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count);

/// Goes through everything that read_rows would read of these rows, and throws what it would throw. `scratch` as there.
void check_rows(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count,
                std::string& scratch);

/// Converts stored elements.
void convert_elements(const Hdf5Element& element, const char* stored, std::span<float> out);
void convert_elements(const Hdf5Element& element, const char* stored, std::span<double> out);
/// Of integers and bools; uint64 as the same 64 bits.
void convert_elements(const Hdf5Element& element, const char* stored, std::span<std::int64_t> out);

/// Lets go of the pages that the bytes of these rows lie on.
void release_pages(const MappedFile& file, const Hdf5Array& array, std::int64_t begin, std::int64_t count);

}  // namespace cohort::data
