/// dataset_info.json of tensorflow-datasets: name, version, and which shards hold how many records of each split; and
/// the expressions that select from splits.
#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cohort::data {

struct SplitInfo {
  std::string name;
  std::vector<std::int64_t> shard_lengths;  ///< records per shard
  std::string filepath_template = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}";
  std::int64_t bytes = 0;
  std::int64_t size() const;
};

struct DatasetInfo {
  std::string name, version, description;
  std::string file_format = "tfrecord";
  std::vector<SplitInfo> splits;
};

/// Throws Error naming `source` and the field.
DatasetInfo parse_dataset_info(std::string_view json, const std::string& source);
std::string write_dataset_info(const DatasetInfo& info);

/// The file name of a shard, e.g. droid-train.tfrecord-00000-of-00002.
std::string shard_name(const DatasetInfo& info, const SplitInfo& split, std::int64_t shard);

/// The first file called *.tfrecord* in a folder, its data sets or their versions.
std::optional<std::filesystem::path> find_shard(const std::filesystem::path& folder);

/// The folder that holds dataset_info.json: `path` itself, or its newest version (`1.0.0`), or that of the only data
/// set in it. Throws Error saying what was looked for and what is there instead.
std::filesystem::path find_dataset_folder(const std::filesystem::path& path);

/// Records [begin, end) of a split.
struct SplitRange {
  std::string split;
  std::int64_t begin = 0, end = 0;
  bool operator==(const SplitRange&) const = default;
};

/// Reads what tfds.load takes as `split`: "train", "train[:95%]", "train[10%:20%]", "train[100:-50]", "train[2shard:]",
/// "train[0shard]", "all", and sums "train[:10]+test". Percentages are rounded to the closest record, halves to the
/// even one (tfds's rounding='closest'). Throws Error for an unknown split, a slice beyond it, or one that is empty.
std::vector<SplitRange> select_split(const DatasetInfo& info, const std::string& expression);

}  // namespace cohort::data
