// The writing half of libcohort_parquet.so.
#include "data/lerobot/parquet_writer_plugin.h"

#include <cstring>
#include <utility>

#include <arrow/array.h>
#include <arrow/buffer.h>
#include <arrow/builder.h>
#include <arrow/io/file.h>
#include <arrow/table.h>
#include <arrow/type.h>
#include <arrow/util/key_value_metadata.h>
#include <parquet/arrow/writer.h>
#include <parquet/properties.h>

#include "core/error.h"

namespace cohort::data {
namespace {

std::shared_ptr<arrow::DataType> type_of_value(ParquetValue value) {
  switch (value) {
    case ParquetValue::kBool:
      return arrow::boolean();
    case ParquetValue::kInt8:
      return arrow::int8();
    case ParquetValue::kInt16:
      return arrow::int16();
    case ParquetValue::kInt32:
      return arrow::int32();
    case ParquetValue::kInt64:
      return arrow::int64();
    case ParquetValue::kUInt8:
      return arrow::uint8();
    case ParquetValue::kUInt16:
      return arrow::uint16();
    case ParquetValue::kUInt32:
      return arrow::uint32();
    case ParquetValue::kUInt64:
      return arrow::uint64();
    case ParquetValue::kFloat32:
      return arrow::float32();
    case ParquetValue::kFloat64:
      return arrow::float64();
    case ParquetValue::kText:
      return arrow::utf8();
    case ParquetValue::kPicture:
      return arrow::struct_({arrow::field("bytes", arrow::binary()), arrow::field("path", arrow::utf8())});
  }
  return arrow::null();
}

std::shared_ptr<arrow::DataType> type_of_column(const ParquetNewColumn& column) {
  std::shared_ptr<arrow::DataType> type = type_of_value(column.value);
  if (column.ragged) return arrow::list(type);
  if (column.shape.size() == 1 && column.fixed_size)
    return arrow::fixed_size_list(type, static_cast<std::int32_t>(column.shape[0]));
  for (std::size_t i = 0; i < column.shape.size(); ++i) type = arrow::list(type);
  return type;
}

class ArrowParquetWriter final : public ParquetWriter {
 public:
  ArrowParquetWriter(std::string path, const std::vector<ParquetNewColumn>& columns, const ParquetNotes& notes)
      : path_(std::move(path)), columns_(columns) {
    std::vector<std::shared_ptr<arrow::Field>> fields;
    for (const ParquetNewColumn& column : columns_) fields.push_back(arrow::field(column.name, type_of_column(column)));
    auto metadata = std::make_shared<arrow::KeyValueMetadata>();
    for (const auto& [key, value] : notes) metadata->Append(key, value);
    schema_ = arrow::schema(std::move(fields), std::move(metadata));
    guarded([&] {
      sink_ = value_of(arrow::io::FileOutputStream::Open(path_));
      const auto properties =
          parquet::WriterProperties::Builder().compression(arrow::Compression::SNAPPY)->enable_page_checksum()->build();
      const auto arrow_properties = parquet::ArrowWriterProperties::Builder().store_schema()->build();
      writer_ = value_of(parquet::arrow::FileWriter::Open(*schema_, arrow::default_memory_pool(), sink_, properties,
                                                          arrow_properties));
    });
  }

  ~ArrowParquetWriter() override {
    // A writer that is let go writes its footer, to no purpose where something has failed: errors are passed over.
    try {
      writer_.reset();
    } catch (const std::exception&) {
      writer_ = nullptr;
    }
  }

  void write(std::int64_t rows, const std::vector<ParquetNewValues>& values) override {
    if (values.size() != columns_.size()) throw Error(path_ + ": another number of columns is written than it has");
    guarded([&] {
      std::vector<std::shared_ptr<arrow::Array>> arrays;
      for (std::size_t c = 0; c < columns_.size(); ++c) arrays.push_back(array_of(c, rows, values[c]));
      check(writer_->WriteTable(*arrow::Table::Make(schema_, arrays, rows), rows));
      written_ = value_of(sink_->Tell());
    });
  }
  std::int64_t bytes() const override { return written_; }
  void close() override {
    guarded([&] {
      check(writer_->Close());
      check(sink_->Close());
    });
  }

 private:
  /// Arrow's exceptions as ours.
  template <class Body>
  void guarded(const Body& body) const {
    try {
      body();
    } catch (const Error&) {
      throw;
    } catch (const std::exception& e) {
      throw Error("cannot write " + path_ + ": " + e.what());
    }
  }
  void check(const arrow::Status& status) const {
    if (status.ok()) return;
    const std::string system = status.detail() ? " (" + status.detail()->ToString() + ")" : "";
    throw Error("cannot write " + path_ + ": " + status.message() + system);
  }
  template <class T>
  T value_of(arrow::Result<T> result) const {
    check(result.status());
    return std::move(result).ValueUnsafe();
  }

  template <class Builder>
  std::shared_ptr<arrow::Array> of_texts(std::span<const std::string> texts) const {
    Builder builder;
    for (const std::string& text : texts) check(builder.Append(text));
    return value_of(builder.Finish());
  }

  /// The values without lists about them.
  std::shared_ptr<arrow::Array> flat(std::size_t c, std::int64_t count, const ParquetNewValues& values) const {
    const ParquetValue value = columns_[c].value;
    if (value == ParquetValue::kText) return of_texts<arrow::StringBuilder>(values.texts);
    if (value == ParquetValue::kPicture) {
      const auto type = type_of_value(value);
      return value_of(arrow::StructArray::Make(
          {of_texts<arrow::BinaryBuilder>(values.texts), of_texts<arrow::StringBuilder>(values.paths)},
          type->fields()));
    }
    if (value == ParquetValue::kBool) {
      arrow::BooleanBuilder builder;
      for (const std::byte flag : values.numbers) check(builder.Append(flag != std::byte{0}));
      return value_of(builder.Finish());
    }
    if (values.numbers.size() != static_cast<std::size_t>(count) * parquet_value_size(value))
      throw Error(path_ + ": the column " + columns_[c].name + " has another number of values than its rows");
    // Valid until the row group is written.
    const auto buffer = std::make_shared<arrow::Buffer>(reinterpret_cast<const std::uint8_t*>(values.numbers.data()),
                                                        static_cast<std::int64_t>(values.numbers.size()));
    return arrow::MakeArray(arrow::ArrayData::Make(type_of_value(value), count, {nullptr, buffer}, 0));
  }

  std::shared_ptr<arrow::Array> array_of(std::size_t c, std::int64_t rows, const ParquetNewValues& values) const {
    const ParquetNewColumn& column = columns_[c];
    if (column.ragged) {
      arrow::Int32Builder ends;
      std::int32_t end = 0;
      check(ends.Append(end));
      for (const std::int64_t length : values.lengths) check(ends.Append(end += static_cast<std::int32_t>(length)));
      return value_of(arrow::ListArray::FromArrays(*value_of(ends.Finish()), *flat(c, end, values)));
    }
    std::int64_t count = rows;
    for (const std::int64_t extent : column.shape) count *= extent;
    std::shared_ptr<arrow::Array> array = flat(c, count, values);
    if (array->length() != count)
      throw Error(path_ + ": the column " + column.name + " has another number of values than its rows");
    if (column.shape.size() == 1 && column.fixed_size)
      return value_of(arrow::FixedSizeListArray::FromArrays(array, static_cast<std::int32_t>(column.shape[0])));
    for (std::size_t i = column.shape.size(); i-- > 0;) {
      const std::int64_t extent = column.shape[i];
      arrow::Int32Builder ends;
      for (std::int64_t end = 0; end <= array->length(); end += extent)
        check(ends.Append(static_cast<std::int32_t>(end)));
      array = value_of(arrow::ListArray::FromArrays(*value_of(ends.Finish()), *array));
    }
    return array;
  }

  const std::string path_;
  const std::vector<ParquetNewColumn> columns_;
  std::shared_ptr<arrow::Schema> schema_;
  std::shared_ptr<arrow::io::FileOutputStream> sink_;
  std::unique_ptr<parquet::arrow::FileWriter> writer_;
  std::int64_t written_ = 0;
};

}  // namespace

std::unique_ptr<ParquetWriter> create_with_arrow(const std::string& path, const std::vector<ParquetNewColumn>& columns,
                                                 const ParquetNotes& notes) {
  return std::make_unique<ArrowParquetWriter>(path, columns, notes);
}

}  // namespace cohort::data
