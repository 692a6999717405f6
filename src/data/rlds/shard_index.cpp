#include "data/rlds/shard_index.h"

#include <cerrno>
#include <cstring>
#include <type_traits>

#include <sys/stat.h>

#include "core/error.h"
#include "core/log.h"
#include "data/episodes.h"
#include "formats/crc32c.h"
#include "formats/tfrecord.h"

namespace cohort::data {
namespace {

constexpr std::string_view kMagic = "CohortRldsIndex1";
constexpr std::uint64_t kFraming = kTfrecordHeader + kTfrecordFooter;

template <class T>
void append(std::string& out, T value) {
  static_assert(std::is_integral_v<T>);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// Takes numbers off the front; throws Error at the end.
class IndexReader {
 public:
  explicit IndexReader(std::string_view bytes) : bytes_(bytes) {}
  template <class T>
  T take() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view take(std::size_t size) {
    COHORT_THROW_UNLESS(size <= bytes_.size(), "the file ends early");
    const std::string_view taken = bytes_.substr(0, size);
    bytes_.remove_prefix(size);
    return taken;
  }
  std::size_t left() const { return bytes_.size(); }

 private:
  std::string_view bytes_;
};

std::string file_name(std::uint64_t schema) {
  return format("rlds_index_{:016x}.bin", schema);
}

}  // namespace

FileIdentity FileIdentity::of(const std::filesystem::path& path) {
  struct stat status {};
  COHORT_THROW_UNLESS(::stat(path.c_str(), &status) == 0, "cannot open {}: {}", path.string(), std::strerror(errno));
  return {path.filename().string(), static_cast<std::uint64_t>(status.st_size),
          std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec};
}

ShardIndex::ShardIndex(const KeptFiles& files, std::string_view schema) : files_(files) {
  ContentHash hash;
  hash.add(schema);
  schema_ = hash.value();
  const auto kept = files_.read(file_name(schema_));
  if (!kept) return;
  try {
    parse(kept->content);
  } catch (const Error& e) {
    log::debug("{}: {}; it is made anew", kept->path.string(), e.what());
    shards_.clear();
  }
}

void ShardIndex::parse(std::string_view bytes) {
  COHORT_THROW_UNLESS(bytes.size() >= kMagic.size() + 16 && bytes.starts_with(kMagic), "no index of shards");
  std::uint32_t checksum = 0;
  std::memcpy(&checksum, bytes.data() + bytes.size() - 4, 4);
  bytes.remove_suffix(4);
  COHORT_THROW_UNLESS(crc32c(bytes) == checksum, "the file does not have its checksum");
  IndexReader reader(bytes.substr(kMagic.size()));
  COHORT_THROW_UNLESS(reader.take<std::uint64_t>() == schema_, "it is of another schema");
  for (auto left = reader.take<std::uint32_t>(); left > 0; --left) {
    Shard shard;
    shard.identity.name = reader.take(reader.take<std::uint32_t>());
    shard.identity.size = reader.take<std::uint64_t>();
    shard.identity.changed = reader.take<std::int64_t>();
    const auto records = reader.take<std::uint64_t>();
    constexpr std::size_t kRecordBytes = 20;
    COHORT_THROW_UNLESS(records <= reader.left() / kRecordBytes, "the file ends early");
    std::uint64_t bytes_of_records = 0;
    for (std::uint64_t r = 0; r < records; ++r) {
      IndexedRecord record{.length = reader.take<std::uint64_t>(),
                           .steps = reader.take<std::int32_t>(),
                           .checksum = reader.take<std::uint32_t>(),
                           .verified = reader.take<std::uint32_t>() == 1};
      COHORT_THROW_UNLESS(record.length <= shard.identity.size, "a record is larger than its shard");
      bytes_of_records += record.length + kFraming;
      shard.records.push_back(record);
    }
    COHORT_THROW_UNLESS(bytes_of_records == shard.identity.size, "the records do not fill the shard {}",
                        shard.identity.name);
    std::string name = shard.identity.name;
    shards_.insert_or_assign(std::move(name), std::move(shard));
  }
  COHORT_THROW_UNLESS(reader.left() == 0, "{} bytes follow the last shard", reader.left());
}

std::span<const IndexedRecord> ShardIndex::find(const FileIdentity& shard) const {
  const auto found = shards_.find(shard.name);
  if (found == shards_.end() || found->second.identity != shard) return {};
  return found->second.records;
}

void ShardIndex::put(FileIdentity shard, std::vector<IndexedRecord> records) {
  Shard& known = shards_[shard.name];
  if (known.identity == shard && known.records == records) return;
  known = {std::move(shard), std::move(records)};
  changed_ = true;
}

void ShardIndex::save() const {
  if (!changed_ || !files_.any()) return;
  std::string out(kMagic);
  append(out, schema_);
  append(out, static_cast<std::uint32_t>(shards_.size()));
  for (const auto& [name, shard] : shards_) {
    append(out, static_cast<std::uint32_t>(name.size()));
    out += name;
    append(out, shard.identity.size);
    append(out, shard.identity.changed);
    append(out, static_cast<std::uint64_t>(shard.records.size()));
    for (const IndexedRecord& record : shard.records) {
      append(out, record.length);
      append(out, record.steps);
      append(out, record.checksum);
      append(out, std::uint32_t{record.verified});
    }
  }
  append(out, crc32c(out));
  files_.write(file_name(schema_), out, "places and lengths of the records");
}

}  // namespace cohort::data
