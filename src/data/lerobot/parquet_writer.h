/// Writes a Parquet file, a row group at a time, by Arrow's C++ library in libcohort_parquet.so (parquet_file.h).
///
///   const auto file = create_parquet("file-000.parquet", {{"action", ParquetValue::kFloat32, {7}}}, {});
///   std::vector<float> actions(20 * 7);
///   file->write(20, {{.numbers = std::as_bytes(std::span(actions))}});
///   file->close();
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace cohort::data {

/// kPicture: a struct of `bytes`, an encoded picture, and `path`, its name, as Hugging Face's datasets stores one.
enum class ParquetValue : std::uint8_t {
  kBool,
  kInt8,
  kInt16,
  kInt32,
  kInt64,
  kUInt8,
  kUInt16,
  kUInt32,
  kUInt64,
  kFloat32,
  kFloat64,
  kText,
  kPicture
};
/// Bytes of a number; 0 of texts and pictures.
constexpr std::size_t parquet_value_size(ParquetValue value) {
  switch (value) {
    case ParquetValue::kBool:
    case ParquetValue::kInt8:
    case ParquetValue::kUInt8:
      return 1;
    case ParquetValue::kInt16:
    case ParquetValue::kUInt16:
      return 2;
    case ParquetValue::kInt32:
    case ParquetValue::kUInt32:
    case ParquetValue::kFloat32:
      return 4;
    case ParquetValue::kInt64:
    case ParquetValue::kUInt64:
    case ParquetValue::kFloat64:
      return 8;
    default:
      return 0;
  }
}

struct ParquetNewColumn {
  std::string name;
  ParquetValue value = ParquetValue::kFloat32;
  /// Of a row: {} is a value, {n} a list, more are lists in lists.
  std::vector<std::int64_t> shape = {};
  bool fixed_size = true;  ///< whether Arrow's schema says that lists of one dimension have one length
  bool ragged = false;     ///< a list of texts of any length in each row; shape is not used
};

/// A column's values in a row group.
struct ParquetNewValues {
  std::span<const std::byte> numbers = {};     ///< (rows, elements), contiguous; a bool is a byte of 0 or 1
  std::span<const std::string> texts = {};     ///< or the pictures' bytes, one for each element
  std::span<const std::string> paths = {};     ///< of pictures
  std::span<const std::int64_t> lengths = {};  ///< of the rows of a ragged column
};

class ParquetWriter {
 public:
  /// A file that was not closed is no Parquet.
  virtual ~ParquetWriter() = default;
  /// One row group. Throws Error naming the file where it cannot be written.
  virtual void write(std::int64_t rows, const std::vector<ParquetNewValues>& columns) = 0;
  /// Bytes that have been written.
  virtual std::int64_t bytes() const = 0;
  /// Writes what a reader begins with. Throws Error.
  virtual void close() = 0;
};

using ParquetNotes = std::vector<std::pair<std::string, std::string>>;

/// Pages are compressed with Snappy and have checksums. `notes` are the file's key-value metadata. Throws Error where
/// the file cannot be made, and where Arrow is missing, with the remedy.
std::unique_ptr<ParquetWriter> create_parquet(const std::filesystem::path& path,
                                              const std::vector<ParquetNewColumn>& columns, const ParquetNotes& notes);

}  // namespace cohort::data
