/// Writes a data set that tensorflow-datasets reads (tfds.builder_from_directory): shards, features.json and
/// dataset_info.json. Nothing is at the destination before finish(): the work is done in a folder beside it, which is
/// renamed at the end, or removed when the writer goes away before.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "data/rlds/schema.h"

namespace cohort::data {

struct RldsWriterSettings {
  std::string name = "robot_data";  ///< of the data set; small letters, digits, underscores
  std::string version = "1.0.0";
  std::string split = "train";
  std::string description;
  std::string features_json;             ///< text of features.json; empty: written from the schema
  std::int64_t shard_bytes = 256 << 20;  ///< a shard is closed when it has so many
};

class RldsWriter {
 public:
  /// Files come to `folder`/name/version. Throws Error when that exists, or the name is none that tensorflow-datasets
  /// takes.
  RldsWriter(const std::filesystem::path& folder, Feature schema, RldsWriterSettings settings);
  ~RldsWriter();
  RldsWriter(const RldsWriter&) = delete;
  RldsWriter& operator=(const RldsWriter&) = delete;

  /// Appends one serialised tf.train.Example (rlds/example.h); its keys must be the schema's leaves.
  void add(std::string_view example);
  /// Copies a file that belongs to the set beside its shards.
  void add_file(const std::filesystem::path& file);
  /// Writes what remains and moves everything into place. Returns the folder. Throws Error for a data set without
  /// records.
  std::filesystem::path finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::data
