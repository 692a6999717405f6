/// An RLDS data set: one tf.train.Example per episode, in TFRecord shards that tensorflow-datasets wrote.
#pragma once
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "data/episodes.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/example.h"
#include "data/rlds/schema.h"
#include "data/rlds/shard_index.h"
#include "data/rlds/tfrecord.h"

namespace cohort::config {
class Fields;
}

namespace cohort::data {

struct RldsSettings {
  std::string split = "train";          ///< as tfds.load takes it: dataset_info.h, select_split()
  std::string on_corrupt = "error";     ///< error; or skip: leave damaged records out, count and name them
  std::string checksums = "first";      ///< verify a record's bytes: first (when it is first opened), always, never
  std::int64_t cache_bytes = 64 << 20;  ///< memory of opened episodes, mapped pages included, that is kept for reuse
  int threads = 0;                      ///< that index the shards; 0: as many as the process has cores
  /// Where it is kept where records lie and how many steps they have (shard_index.h): as KeptFiles takes it, but auto
  /// is for selections of 64 MiB or more only, for others are read in no time.
  std::string index_cache = "auto";
};

void describe(config::Fields& fields, RldsSettings& settings);

/// The values of one leaf of the schema in one record, with the lengths of its sequences.
struct LeafValues {
  ExampleList list;  ///< numbers (texts and images: `texts`)
  std::vector<std::string_view> texts;
  std::vector<std::vector<std::int64_t>> row_lengths;  ///< of ragged sequences, outermost first; else empty
  std::vector<std::int64_t> dynamic_shape;             ///< of a tensor with several unknown dimensions
};

/// Finds a leaf in a record. A key that the record lacks is an empty list. Throws Error where the list holds another
/// kind of value than the schema says.
LeafValues read_leaf(const Example& example, const FeatureLeaf& leaf);

/// Names of fields' elements, which features.json has no place for: {"action": ["dx", "dy", "grip"]}. Others do not
/// read it.
inline constexpr const char* kElementNamesFile = "element_names.json";

/// The numbers of an encoded tensor (FeatureEncoding::kBytes, kZlib) from its bytes, as float64. `shape` bounds them;
/// throws Error when their number does not fit or the bytes do not inflate.
std::vector<double> decode_tensor(std::string_view bytes, const FeatureLeaf& leaf, std::int64_t elements);
/// Likewise the integers or bools of one, exactly (uint64 as the same 64 bits), out.size() of them.
void decode_tensor(std::string_view bytes, const FeatureLeaf& leaf, std::span<std::int64_t> out);

/// A data set on disk: records of any schema. RldsEpisodes gives those of the RLDS schema a meaning.
class RldsRecords {
 public:
  /// `path` as find_dataset_folder() takes it. Throws Error naming a missing or truncated shard, or a shard that holds
  /// another number of records than dataset_info.json says.
  RldsRecords(const std::filesystem::path& path, const RldsSettings& settings);

  const DatasetInfo& info() const { return info_; }
  const Feature& schema() const { return schema_; }
  const std::filesystem::path& folder() const { return folder_; }
  /// The expression that the records were selected with.
  const std::string& split() const { return split_; }
  std::int64_t size() const { return static_cast<std::int64_t>(records_.size()); }
  std::string_view payload(std::int64_t i) const;
  /// Bytes of the record, without looking at it.
  std::uint64_t length(std::int64_t i) const;
  /// "…/droid-train.tfrecord-00000-of-00002: record at offset 0"
  std::string location(std::int64_t i) const;
  /// The two parts of it: the shard, and "record at offset 0".
  std::pair<std::filesystem::path, std::string> place(std::int64_t i) const;
  void verify(std::int64_t i) const;
  void release(std::int64_t i) const;
  std::uint32_t stored_checksum(std::int64_t i) const;
  const std::vector<RecordFault>& faults() const { return faults_; }
  /// Bytes of the shards that the selection touches.
  std::int64_t stored_bytes() const;

  /// Steps of record i as the index knows them; nothing where it does not, or where on_corrupt=skip wants the record
  /// looked through and it has not been.
  std::optional<std::int64_t> known_steps(std::int64_t i) const;
  /// Keeps the steps of all records for the next time; -1 for those that are damaged.
  void keep_steps(std::span<const std::int64_t> steps);

 private:
  struct Place {
    std::uint32_t file, record;
  };
  void open_shards(const std::vector<std::filesystem::path>& paths, const std::vector<std::int64_t>& lengths,
                   const RldsSettings& settings, std::vector<std::vector<RecordFault>>& faults);
  std::filesystem::path folder_;
  std::string split_;
  DatasetInfo info_;
  Feature schema_;
  std::vector<TfRecordFile> files_;
  std::vector<Place> records_;
  std::vector<RecordFault> faults_;
  /// While the set is being opened: what the next opening need not find out again.
  struct Index {
    ShardIndex kept;
    std::vector<FileIdentity> shards;                 ///< by file
    std::vector<std::vector<IndexedRecord>> records;  ///< by file, all of its records; empty where damaged
    bool look_through = false;                        ///< on_corrupt=skip
  };
  std::unique_ptr<Index> index_;
};

class RldsEpisodes final : public EpisodeSource {
 public:
  /// Throws Error as RldsRecords does, for a schema without `steps`, and for an episode without steps or with fields of
  /// different lengths (on_corrupt=skip leaves those out too).
  RldsEpisodes(const std::filesystem::path& path, const RldsSettings& settings = {});
  ~RldsEpisodes() override;

  const RldsRecords& records() const;
  const std::string& name() const override;
  std::int64_t size() const override;
  const std::vector<StepField>& fields() const override;
  const std::vector<std::string>& metadata_names() const override;
  std::int64_t steps(std::int64_t episode) const override;
  std::shared_ptr<const Episode> open(std::int64_t episode) const override;
  /// The record, whose pages come in whichever of its fields are read, and its index.
  std::int64_t bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const override;
  /// The tf.train.Example as it is stored, in the mapping. Throws Error where its bytes do not have their checksum.
  std::string_view record(std::int64_t episode) const;
  std::uint64_t content_hash() const override;
  std::int64_t bytes_held() const override;
  std::int64_t stored_bytes() const override;
  const std::vector<std::string>& skipped() const override;
  std::int64_t skipped_count() const override;
  std::pair<std::filesystem::path, std::string> place(std::int64_t episode) const override;
  /// Of kElementNamesFile beside features.json, where there is one: recordings of tasks have it.
  std::vector<std::string> element_names(const std::string& field_name) const override;
  std::string_view format_name() const override { return "rlds"; }
  std::vector<MetadataType> metadata_types(std::int64_t episode, std::vector<std::string>& left_out) const override;
  std::vector<std::string> unselected_splits() const override;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
