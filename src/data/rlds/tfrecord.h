/// TFRecord files, mapped (core/tfrecord.h has their framing).
#pragma once
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/mapped_file.h"
#include "data/rlds/shard_index.h"
#include "formats/tfrecord.h"

namespace cohort::data {

/// A place where a file is damaged.
struct RecordFault {
  std::string path;
  std::uint64_t offset = 0;  ///< byte at which the record's header starts
  std::string what;
  std::int64_t records = 1;  ///< that it took
  bool is_gap = false;       ///< a damaged header: the file does not say how many records lie up to the next sound one
  std::string message() const;
};

/// One mapped file and where its records lie.
class TfRecordFile {
 public:
  /// Maps the file and walks over the headers, whose checksums are verified; the bytes themselves are not read. Throws
  /// Error naming file and offset at the first damaged header or where the file ends inside a record.
  explicit TfRecordFile(const std::filesystem::path& path);

  /// The same, but leaves out what is damaged, bytes included (all of them are read, to verify their checksums), and
  /// adds a fault for each gap. Behind a damaged header the next sound record is searched.
  TfRecordFile(const std::filesystem::path& path, std::vector<RecordFault>& faults);

  /// A file whose records are known: nothing of it is read. Throws Error when they do not fill it.
  TfRecordFile(const std::filesystem::path& path, std::span<const IndexedRecord> known);

  const std::string& path() const { return file_.path(); }
  std::size_t size() const { return records_.size(); }
  /// Of the file.
  std::uint64_t bytes() const { return file_.size(); }
  /// The bytes of record i, in the mapping; not verified.
  std::string_view payload(std::size_t i) const;
  /// Offset of record i's header in the file.
  std::uint64_t offset(std::size_t i) const { return records_[i].offset; }
  std::uint64_t length(std::size_t i) const { return records_[i].length; }
  /// The checksum stored behind record i when the file was opened, or when what is known of it was found out.
  std::uint32_t stored_checksum(std::size_t i) const { return records_[i].checksum; }
  /// Throws Error naming file and offset when the header or the bytes of record i do not have their checksum, or the
  /// header says another length.
  void verify(std::size_t i) const;
  /// Lets go of the pages of record i (MappedFile::release).
  void release(std::size_t i) const;

 private:
  struct Record {
    std::uint64_t offset, length;
    std::uint32_t checksum;
  };
  void add(std::uint64_t offset, std::uint64_t length);
  MappedFile file_;
  std::vector<Record> records_;
};

}  // namespace cohort::data
