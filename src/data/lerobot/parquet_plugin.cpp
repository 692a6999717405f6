// libcohort_parquet.so: everything that includes Arrow, this and parquet_writer_plugin.cpp. Loaded by parquet_file.cpp; what it takes from Cohort is in
// headers only, so that it needs nothing of the program.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <type_traits>
#include <utility>

#include <arrow/io/file.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/properties.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>

#include "core/error.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/parquet_writer_plugin.h"

namespace cohort::data {
namespace {

constexpr std::int64_t kBatch = 1024;  // values that are decoded at a time

ParquetType type_of(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  const bool plain = !logical || logical->is_none() || logical->is_int();
  switch (column.physical_type()) {
    case parquet::Type::BOOLEAN:
      return ParquetType::kBool;
    case parquet::Type::FLOAT:
      return ParquetType::kFloat32;
    case parquet::Type::DOUBLE:
      return ParquetType::kFloat64;
    case parquet::Type::INT32:
      return plain ? ParquetType::kInteger : ParquetType::kOther;
    case parquet::Type::INT64:
      if (!plain) return ParquetType::kOther;
      if (logical && logical->is_int() && !static_cast<const parquet::IntLogicalType&>(*logical).is_signed())
        return ParquetType::kUnsigned64;
      return ParquetType::kInteger;
    case parquet::Type::BYTE_ARRAY:
      return logical && logical->is_decimal() ? ParquetType::kOther : ParquetType::kBytes;
    default:
      return ParquetType::kOther;
  }
}

/// Whether int32 stands for uint32.
bool is_unsigned32(const parquet::ColumnDescriptor& column) {
  const auto& logical = column.logical_type();
  if (!logical || !logical->is_int()) return false;
  const auto& integer = static_cast<const parquet::IntLogicalType&>(*logical);
  return !integer.is_signed() && integer.bit_width() == 32;
}

class ArrowParquetFile final : public ParquetFile {
 public:
  explicit ArrowParquetFile(std::string path) : path_(std::move(path)) {
    guard("no sound Parquet file: ", [&] {
      auto file = arrow::io::MemoryMappedFile::Open(path_, arrow::io::FileMode::READ);
      if (!file.ok()) throw Error(path_ + ": " + file.status().message());
      parquet::ReaderProperties properties;
      properties.set_page_checksum_verification(true);
      reader_ = parquet::ParquetFileReader::Open(*file, properties);
      meta_ = reader_->metadata();
    });
    for (int g = 0; g < meta_->num_row_groups(); ++g)
      begins_.push_back(begins_.back() + std::max<std::int64_t>(0, meta_->RowGroup(g)->num_rows()));
    if (begins_.back() != meta_->num_rows()) throw Error(path_ + ": its row groups do not add up to its rows");
    for (int c = 0; c < meta_->num_columns(); ++c) {
      const parquet::ColumnDescriptor& column = *meta_->schema()->Column(c);
      const std::vector<std::string> parts = column.path()->ToDotVector();
      ParquetColumn known{.name = parts.front(), .leaf = "", .type = type_of(column), .type_name = ""};
      for (std::size_t p = 1; p < parts.size(); ++p) known.leaf += (p > 1 ? "." : "") + parts[p];
      known.type_name = parquet::TypeToString(column.physical_type());
      const auto& logical = column.logical_type();
      if (logical && !logical->is_none()) known.type_name += " (" + logical->ToString() + ")";
      columns_.push_back(std::move(known));
    }
  }

  std::int64_t rows() const override { return begins_.back(); }
  const std::vector<ParquetColumn>& columns() const override { return columns_; }

  void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
            std::span<float> out) const override {
    read_numbers<parquet::FloatType>(column, begin, count, elements, out);
  }
  void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
            std::span<double> out) const override {
    read_numbers<parquet::DoubleType>(column, begin, count, elements, out);
  }
  void read(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
            std::span<std::int64_t> out) const override {
    const parquet::ColumnDescriptor& known = descriptor(column);
    if (known.physical_type() == parquet::Type::BOOLEAN)
      read_numbers<parquet::BooleanType>(column, begin, count, elements, out);
    else if (known.physical_type() == parquet::Type::INT32)
      read_numbers<parquet::Int32Type>(column, begin, count, elements, out, is_unsigned32(known));
    else
      read_numbers<parquet::Int64Type>(column, begin, count, elements, out);
  }
  void read(std::size_t column, std::int64_t begin, std::int64_t count, std::span<std::string> out) const override {
    const std::int16_t whole = descriptor(column).max_definition_level();
    decode<parquet::ByteArrayType>(column, begin, count, 1, [&](const Batch<parquet::ByteArray>& batch) {
      std::int64_t value = 0;
      for (std::int64_t i = 0; i < batch.levels; ++i) {
        std::string& text = out[static_cast<std::size_t>(batch.place + i)];
        if (whole == 0 || batch.definition[i] == whole)
          text = text_of(batch.values[value++]);
        else
          text.clear();
      }
    });
  }

  std::int64_t nulls(std::size_t column) const override {
    std::int64_t count = 0;
    guard("the statistics of the column " + columns_[column].name + " are damaged: ", [&] {
      for (int g = 0; g < meta_->num_row_groups() && count >= 0; ++g) {
        const auto chunk = meta_->RowGroup(g)->ColumnChunk(static_cast<int>(column));
        const auto statistics = chunk->is_stats_set() ? chunk->statistics() : nullptr;
        count = statistics && statistics->HasNullCount() ? count + statistics->null_count() : -1;
      }
    });
    return count;
  }

  std::vector<std::vector<std::string>> read_lists(std::size_t column) const override {
    std::vector<std::vector<std::string>> lists;
    const std::int16_t whole = descriptor(column).max_definition_level();
    decode<parquet::ByteArrayType>(column, 0, rows(), -1, [&](const Batch<parquet::ByteArray>& batch) {
      std::int64_t value = 0;
      for (std::int64_t i = 0; i < batch.levels; ++i) {
        if (batch.repetition[i] == 0) lists.emplace_back();
        if (batch.definition[i] == whole && !lists.empty()) lists.back().push_back(text_of(batch.values[value++]));
      }
    });
    if (lists.size() != static_cast<std::size_t>(rows())) throw Error(where(column) + "holds another number of rows");
    return lists;
  }

 private:
  /// Values [place, place + levels) of what is read. Those that are null are in the levels, not among the values.
  template <class T>
  struct Batch {
    std::int64_t place, levels, value_count;
    const T* values;
    const std::int16_t *definition, *repetition;
  };

  static std::string text_of(const parquet::ByteArray& bytes) {
    return {reinterpret_cast<const char*>(bytes.ptr), bytes.len};
  }
  std::string where(std::size_t column) const { return path_ + ": the column " + columns_[column].name + " "; }
  const parquet::ColumnDescriptor& descriptor(std::size_t column) const {
    return *meta_->schema()->Column(static_cast<int>(column));
  }

  /// Arrow's exceptions as ours.
  template <class Body>
  void guard(const std::string& what, const Body& body) const {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      throw Error(path_ + ": " + what + e.what());
    }
  }

  template <class DType, class Out>
  void read_numbers(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
                    std::span<Out> out, bool is_unsigned = false) const {
    using T = typename DType::c_type;
    decode<DType>(column, begin, count, elements, [&](const Batch<T>& batch) {
      if (batch.value_count != batch.levels)
        throw Error(where(column) + "has no value in a row of " + std::to_string(begin) + " to " +
                    std::to_string(begin + count - 1));
      Out* to = out.data() + batch.place;
      for (std::int64_t i = 0; i < batch.levels; ++i) {
        if constexpr (std::is_same_v<T, std::int32_t>)
          to[i] = is_unsigned ? static_cast<Out>(static_cast<std::uint32_t>(batch.values[i]))
                              : static_cast<Out>(batch.values[i]);
        else
          to[i] = static_cast<Out>(batch.values[i]);
      }
    });
  }

  /// Gives rows [begin, begin + count) to `take`, batch by batch; elements < 0: rows of any length, whole row groups.
  template <class DType, class Take>
  void decode(std::size_t column, std::int64_t begin, std::int64_t count, std::int64_t elements,
              const Take& take) const {
    const parquet::ColumnDescriptor& known = descriptor(column);
    if (known.physical_type() != DType::type_num)
      throw Error(where(column) + "holds " + columns_[column].type_name + ", not " +
                  parquet::TypeToString(DType::type_num));
    if (begin < 0 || count < 0 || begin + count > rows())
      throw Error(where(column) + "has " + std::to_string(rows()) + " rows, but rows up to " +
                  std::to_string(begin + count) + " are asked for");
    guard("the column " + columns_[column].name + " is damaged: ", [&] {
      std::int64_t place = 0;
      while (count > 0) {
        const auto group =
            static_cast<std::size_t>(std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1);
        const std::int64_t here = std::min(count, begins_[group + 1] - begin);
        decode_group<DType>(column, group, begin - begins_[group], here, elements, place, take);
        begin += here, count -= here;
      }
    });
  }

  template <class DType, class Take>
  void decode_group(std::size_t column, std::size_t group, std::int64_t begin, std::int64_t count,
                    std::int64_t elements, std::int64_t& place, const Take& take) const {
    using T = typename DType::c_type;
    const parquet::ColumnDescriptor& known = descriptor(column);
    std::unique_ptr<parquet::PageReader> pages;
    std::int64_t stored = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto row_group = reader_->RowGroup(static_cast<int>(group));
      stored = row_group->metadata()->ColumnChunk(static_cast<int>(column))->num_values();
      pages = row_group->GetColumnPageReader(static_cast<int>(column));
    }
    const std::int64_t group_rows = begins_[group + 1] - begins_[group];
    if (elements >= 0 && stored != group_rows * elements)
      throw Error(where(column) + "holds " + std::to_string(stored) + " values in " + std::to_string(group_rows) +
                  " rows, which is not " + std::to_string(elements) + " in each");
    const std::int64_t first = elements < 0 ? 0 : begin * elements;
    const std::int64_t last = elements < 0 ? stored : first + count * elements;
    std::int64_t passed = 0;  // values of the pages that were passed over
    bool found = false;
    pages->set_data_page_filter([&](const parquet::DataPageStats& page) {
      found = found || passed + page.num_values > first;
      if (!found) passed += page.num_values;
      return !found;
    });
    const auto reader = std::static_pointer_cast<parquet::TypedColumnReader<DType>>(
        parquet::ColumnReader::Make(&known, std::move(pages)));
    const auto ended = [&] { return Error(where(column) + "ends before its last row"); };
    if (first < last && !reader->HasNext()) throw ended();
    if (first > passed && reader->Skip(first - passed) != first - passed) throw ended();
    const auto values = std::make_unique<T[]>(kBatch);
    std::vector<std::int16_t> definition(kBatch), repetition(kBatch);
    for (std::int64_t at = first; at < last;) {
      std::int64_t value_count = 0;
      const std::int64_t levels = reader->ReadBatch(std::min(kBatch, last - at), definition.data(), repetition.data(),
                                                    values.get(), &value_count);
      if (levels <= 0) throw ended();
      if (elements >= 0 && known.max_repetition_level() > 0)
        for (std::int64_t i = 0; i < levels; ++i)
          if (((at + i) % elements == 0) != (repetition[static_cast<std::size_t>(i)] == 0))
            throw Error(where(column) + "has another number of values than " + std::to_string(elements) +
                        " in a row about " + std::to_string(begins_[group] + (at + i) / elements));
      take(Batch<T>{place, levels, value_count, values.get(), definition.data(), repetition.data()});
      at += levels, place += levels;
    }
  }

  const std::string path_;
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::shared_ptr<parquet::FileMetaData> meta_;
  std::vector<std::int64_t> begins_{0};  // first rows of the row groups, and the end
  std::vector<ParquetColumn> columns_;
  mutable std::mutex mutex_;  // of reader_
};

std::unique_ptr<ParquetFile> open_with_arrow(const std::string& path) {
  return std::make_unique<ArrowParquetFile>(path);
}

constexpr ParquetPlugin kParquetPlugin{
    .interface_version = kParquetPluginVersion, .open = open_with_arrow, .create = create_with_arrow};

}  // namespace
}  // namespace cohort::data

extern "C" __attribute__((visibility("default"))) const cohort::data::ParquetPlugin* cohort_parquet_plugin() {
  return &cohort::data::kParquetPlugin;
}
