/// Columns of a Parquet file, read by rows. What reads them is Arrow's C++ library, in libcohort_parquet.so, which is
/// opened when the first file is: a program that needs no Parquet neither waits for it nor
/// needs it. Files are written by parquet_writer.h.
///
///   const auto file = open_parquet("data/chunk-000/file-000.parquet");
///   const auto column = find_column(*file, "action");            // list<float>[7]
///   std::vector<float> rows(10 * 7);
///   file->read(*column, 100, 10, 7, rows);                       // rows 100 to 109
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/lerobot/parquet_writer.h"

namespace cohort::data {

/// kInteger: signed ones and unsigned ones below 64 bits, as int64; kUnsigned64: as the same 64 bits.
enum class ParquetType : std::uint8_t { kOther, kBool, kInteger, kUnsigned64, kFloat32, kFloat64, kBytes };

/// A column of values; a struct's columns are several.
struct ParquetColumn {
  std::string name;  ///< of the table's column: "observation.state"
  std::string leaf;  ///< below it: "" of plain values, "list.element", "bytes" of a struct
  ParquetType type = ParquetType::kOther;
  std::string type_name;  ///< for messages: "FLOAT"
};

/// An open file. All functions may be called from several threads. They throw Error naming the file and the column
/// where it is damaged, where a row has another number of values than `elements`, and where one has none.
class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual std::int64_t rows() const = 0;
  virtual const std::vector<ParquetColumn>& columns() const = 0;
  /// Rows [begin, begin + count) as (count, elements); pages without such rows are passed over. The type must be the
  /// column's: kFloat32, kFloat64, or one of integers and bools.
  virtual void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
                    std::span<float> out) const = 0;
  virtual void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
                    std::span<double> out) const = 0;
  virtual void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
                    std::span<std::int64_t> out) const = 0;
  /// One value of kBytes per row; empty where a row has none.
  virtual void read(std::size_t column, std::int64_t begin, std::int64_t count, std::span<std::string> out) const = 0;
  /// Values that the column lacks, as the file's own statistics count them; -1 where it has none.
  virtual std::int64_t nulls(std::size_t column) const = 0;
  /// All rows of a column of lists of kBytes.
  virtual std::vector<std::vector<std::string>> read_lists(std::size_t column) const = 0;
};

/// Throws Error naming the file where it is no Parquet or damaged, and where Arrow is missing, with the remedy.
std::shared_ptr<const ParquetFile> open_parquet(const std::filesystem::path& path);

/// Why no Parquet is read here; "" where it is.
std::string parquet_unavailable();

/// The only or the first column of this name, or of this name and leaf.
std::optional<std::size_t> find_column(const ParquetFile& file, std::string_view name);
std::optional<std::size_t> find_column(const ParquetFile& file, std::string_view name, std::string_view leaf);

/// What libcohort_parquet.so gives by its function cohort_parquet_plugin().
struct ParquetPlugin {
  int interface_version;
  std::unique_ptr<ParquetFile> (*open)(const std::string& path);
  std::unique_ptr<ParquetWriter> (*create)(const std::string& path, const std::vector<ParquetNewColumn>& columns,
                                           const ParquetNotes& notes);
};
inline constexpr int kParquetPluginVersion = 3;

}  // namespace cohort::data
