#include "data/rlds/tfrecord.h"

#include "core/error.h"
#include "core/placeholder_file.h"
#include "data/episodes.h"
#include "formats/tfrecord.h"

namespace cohort::data {
namespace {

constexpr std::uint64_t kHeader = kTfrecordHeader, kFooter = kTfrecordFooter;

/// Why no whole record starts at `offset`; empty when one does.
std::string fault_at(std::string_view bytes, std::uint64_t offset) {
  const std::uint64_t left = bytes.size() - offset;
  if (const std::string fault = offset == 0 ? stand_in_fault(bytes.substr(0, 256)) : ""; !fault.empty())
    return format("the file {}", fault);
  if (left < kHeader) return format("truncated: the file ends after {} of the 12 bytes of a record's header", left);
  if (!is_sound_tfrecord_header(bytes.data() + offset)) return "the record's length does not have its checksum";
  const auto length = tfrecord_length(bytes.data() + offset);
  if (length > left - kHeader || left - kHeader - length < kFooter)
    return format("truncated: the record has {} bytes, but the file ends after {}", length, left - kHeader);
  return "";
}

bool sound_payload(std::string_view bytes, std::uint64_t offset, std::uint64_t length) {
  return is_sound_tfrecord(bytes.substr(offset + kHeader, length));
}

}  // namespace

std::string RecordFault::message() const {
  return format("{}: record at offset {}: {}{}", path, offset, what,
                records > 1 ? format("; {} records are lost", records) : "");
}

TfRecordFile::TfRecordFile(const std::filesystem::path& path) : file_(path) {
  const std::string_view bytes = file_.bytes();
  for (std::uint64_t offset = 0; offset < bytes.size();) {
    const std::string fault = fault_at(bytes, offset);
    COHORT_THROW_UNLESS(fault.empty(), "{}; copy the file again, or {} to go on without it",
                        (RecordFault{.path = file_.path(), .offset = offset, .what = fault}.message()), kSkipDamaged);
    const auto length = tfrecord_length(bytes.data() + offset);
    add(offset, length);
    offset += kHeader + length + kFooter;
  }
}

TfRecordFile::TfRecordFile(const std::filesystem::path& path, std::vector<RecordFault>& faults) : file_(path) {
  const std::string_view bytes = file_.bytes();
  for (std::uint64_t offset = 0; offset < bytes.size();) {
    std::string fault = fault_at(bytes, offset);
    if (fault.empty()) {
      const auto length = tfrecord_length(bytes.data() + offset);
      if (sound_payload(bytes, offset, length))
        add(offset, length);
      else
        faults.push_back(
            {.path = file_.path(), .offset = offset, .what = "the record's bytes do not have their checksum"});
      offset += kHeader + length + kFooter;
      continue;
    }
    faults.push_back({.path = file_.path(), .offset = offset, .what = std::move(fault), .is_gap = true});
    // A false find needs a 32-bit coincidence of the header and one of the bytes.
    for (++offset; offset + kHeader + kFooter <= bytes.size(); ++offset)
      if (fault_at(bytes, offset).empty() && sound_payload(bytes, offset, tfrecord_length(bytes.data() + offset)))
        break;
    if (offset + kHeader + kFooter > bytes.size()) break;
  }
}

TfRecordFile::TfRecordFile(const std::filesystem::path& path, std::span<const IndexedRecord> known) : file_(path) {
  std::uint64_t offset = 0;
  records_.reserve(known.size());
  for (const IndexedRecord& record : known) {
    records_.push_back({offset, record.length, record.checksum});
    offset += kHeader + record.length + kFooter;
  }
  COHORT_THROW_UNLESS(offset == file_.size(), "{} changed while it was opened; try again", file_.path());
}

void TfRecordFile::add(std::uint64_t offset, std::uint64_t length) {
  records_.push_back({offset, length, stored_tfrecord_checksum(file_.bytes().substr(offset + kHeader, length))});
}

std::string_view TfRecordFile::payload(std::size_t i) const {
  return file_.bytes().substr(records_[i].offset + kHeader, records_[i].length);
}

void TfRecordFile::verify(std::size_t i) const {
  const auto [offset, length, checksum] = records_[i];
  const char* header = file_.bytes().data() + offset;
  std::string fault;
  if (!is_sound_tfrecord_header(header))
    fault = "the record's length does not have its checksum";
  else if (tfrecord_length(header) != length)
    fault = "the record has another length than when the shard was opened first";
  else if (!sound_payload(file_.bytes(), offset, length))
    fault = "the record's bytes do not have their checksum";
  COHORT_THROW_UNLESS(fault.empty(), "{}; copy the file again, or {} to go on without it",
                      (RecordFault{.path = path(), .offset = offset, .what = fault}.message()), kSkipDamaged);
}

void TfRecordFile::release(std::size_t i) const {
  file_.release(records_[i].offset, kHeader + records_[i].length + kFooter);
}

}  // namespace cohort::data
