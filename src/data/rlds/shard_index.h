/// What opening an RLDS set finds out about its shards, kept for the next time: where records lie, their checksums, how
/// many steps each has. A set of a terabyte is then opened without reading any of it.
///
/// The file rlds_index_<hash>.bin lies where KeptFiles says; <hash> is that of the schema. A shard is known by its
/// name, size and time of change: where one of them differs, it is read again. The numbers are little-endian:
/// "CohortRldsIndex1"; u64 hash; u32 shards; per shard u32 length of its name, the name, u64 size, i64 nanoseconds of
/// its change, u64 records, per record u64 bytes, i32 steps (-1: not counted), u32 checksum as stored, u32 1 where
/// bytes and fields were verified; at the end the u32 CRC-32C of everything before. A file that is not so is made anew.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "data/kept_files.h"

namespace cohort::data {

struct IndexedRecord {
  std::uint64_t length = 0;  ///< bytes
  std::int32_t steps = -1;   ///< -1: not counted yet
  std::uint32_t checksum = 0;
  bool verified = false;  ///< bytes had their checksum, and every field an entry per step
  bool operator==(const IndexedRecord&) const = default;
};

/// Which version of a file: changes when the file does.
struct FileIdentity {
  std::string name;
  std::uint64_t size = 0;
  std::int64_t changed = 0;  ///< ns since the epoch
  /// Throws Error when the file is not there.
  static FileIdentity of(const std::filesystem::path& path);
  bool operator==(const FileIdentity&) const = default;
};

class ShardIndex {
 public:
  /// Reads what is kept for this schema; nothing where there is no sound file.
  ShardIndex(const KeptFiles& files, std::string_view schema);

  /// All records of a shard that has not changed; empty where it is not known.
  std::span<const IndexedRecord> find(const FileIdentity& shard) const;
  /// Keeps the records of a shard, in the place of what was known of a shard of this name.
  void put(FileIdentity shard, std::vector<IndexedRecord> records);
  /// Writes everything, where put() has changed something.
  void save() const;

 private:
  struct Shard {
    FileIdentity identity;
    std::vector<IndexedRecord> records;
  };
  void parse(std::string_view bytes);

  KeptFiles files_;
  std::uint64_t schema_ = 0;
  std::map<std::string, Shard> shards_;
  bool changed_ = false;
};

}  // namespace cohort::data
