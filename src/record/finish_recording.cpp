#include "record/finish_recording.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "data/convert.h"
#include "data/open_episodes.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/rlds_episodes.h"
#include "data/rlds/rlds_format.h"

namespace cohort::record {
namespace fs = std::filesystem;
namespace {

/// The same file under another name, without its bytes being written again where the file system can do that.
void link_or_copy(const fs::path& from, const fs::path& to) {
  std::error_code error;
  fs::create_hard_link(from, to, error);
  if (!error) return;
  error.clear();
  fs::copy_file(from, to, error);
  COHORT_THROW_UNLESS(!error, "cannot copy {} to {}: {}", from.string(), to.string(), error.message());
}

/// A folder that is removed unless it has been moved away.
class UnfinishedFolder {
 public:
  explicit UnfinishedFolder(fs::path path) : path_(std::move(path)) {
    std::error_code error;
    fs::remove_all(path_, error);
    fs::create_directories(path_, error);
    COHORT_THROW_UNLESS(!error, "cannot create {}: {}", path_.string(), error.message());
  }
  ~UnfinishedFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  UnfinishedFolder(const UnfinishedFolder&) = delete;
  UnfinishedFolder& operator=(const UnfinishedFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

void write_rlds(const PieceStore& store, const std::vector<PieceReport>& pieces, const data::Feature& schema,
                const FinishSettings& settings, const fs::path& folder) {
  data::SplitInfo split{.name = "train"};
  for (const PieceReport& piece : pieces) {
    if (piece.kept == 0) continue;
    split.shard_lengths.push_back(piece.kept);
    split.bytes += piece.bytes;
  }
  const data::DatasetInfo info{.name = settings.name,
                               .version = "1.0.0",
                               .description = format("{}: {}", settings.task, settings.description),
                               .splits = {split}};
  std::int64_t shard = 0;
  for (const PieceReport& piece : pieces)
    if (piece.kept > 0) link_or_copy(store.data_file(piece.range), folder / data::shard_name(info, split, shard++));
  write_file_atomically(folder / "features.json", data::write_features(schema));
  write_file_atomically(folder / data::kElementNamesFile,
                        json_text(nlohmann::ordered_json{{settings.action_field, settings.action_names}}) + "\n");
  write_file_atomically(folder / "dataset_info.json", data::write_dataset_info(info));
}

}  // namespace

std::vector<std::string> finish_recording(const PieceStore& store, const std::vector<PieceReport>& pieces,
                                          const data::Feature& schema, const fs::path& target,
                                          const FinishSettings& settings) {
  const UnfinishedFolder folder(store.folder() / "finished");
  write_rlds(store, pieces, schema, settings, folder.path());
  std::error_code error;
  std::vector<std::string> said;
  if (settings.format == data::rlds_format().name) {  // the pieces are its shards
    fs::rename(folder.path(), target, error);
    COHORT_THROW_UNLESS(!error, "cannot move {} into place: {}", target.string(), error.message());
    sync_path(target.parent_path());
  } else {
    // For formats that name the environment, as robomimic does; its type 2: an environment of Gym's interface.
    const data::ConvertSettings to{.to = settings.format,
                                   .episodes = {},
                                   .env_args = json_text(nlohmann::ordered_json{
                                       {"env_name", settings.task},
                                       {"type", 2},
                                       {"env_kwargs", try_json<nlohmann::ordered_json>(settings.description)}}),
                                   .lerobot = settings.lerobot};
    const auto episodes = data::open_episodes(folder.path(), {.threads = settings.threads, .index_cache = "never"});
    said = data::convert_episodes(*episodes, target, to).said;
  }
  fs::remove_all(store.folder(), error);
  return said;
}

}  // namespace cohort::record
