#include "data/rlds/rlds_writer.h"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <vector>

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "data/rlds/dataset_info.h"
#include "data/rlds/tfrecord.h"

namespace cohort::data {
namespace fs = std::filesystem;

struct RldsWriter::Impl {
  fs::path target, work;
  Feature schema;
  RldsWriterSettings settings;
  SplitInfo split;
  std::ofstream shard;
  std::int64_t shard_size = 0;
  std::vector<fs::path> created;  // folders that were not there before, outermost first
  bool finished = false;

  fs::path shard_path(std::size_t i) const { return work / format("shard-{}", i); }

  void close_shard() {
    if (!shard.is_open()) return;
    const fs::path path = shard_path(split.shard_lengths.size() - 1);
    shard.close();
    COHORT_THROW_UNLESS(!shard.fail(), "cannot write {}: {}", path.string(), std::strerror(errno));
    sync_path(path);
  }
};

RldsWriter::RldsWriter(const fs::path& folder, Feature schema, RldsWriterSettings settings)
    : impl_(std::make_unique<Impl>()) {
  COHORT_THROW_UNLESS(!settings.name.empty() &&
                          settings.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos,
                      "'{}' is no name of a data set: use small letters, digits and underscores", settings.name);
  impl_->target = folder / settings.name / settings.version;
  COHORT_THROW_UNLESS(!fs::exists(impl_->target), "{} exists already; remove it or choose another name or version",
                      impl_->target.string());
  impl_->work = impl_->target;
  impl_->work += format(".incomplete{}", ::getpid());
  impl_->schema = std::move(schema);
  impl_->split.name = settings.split;
  impl_->settings = std::move(settings);
  std::error_code error;
  for (fs::path above = impl_->work.parent_path(); !above.empty() && !fs::exists(above, error);
       above = above.parent_path())
    impl_->created.insert(impl_->created.begin(), above);
  error.clear();
  fs::create_directories(impl_->work, error);
  COHORT_THROW_UNLESS(!error, "cannot create {}: {}", impl_->work.string(), error.message());
}

RldsWriter::~RldsWriter() {
  if (impl_->finished) return;
  impl_->shard.close();
  std::error_code ignored;
  fs::remove_all(impl_->work, ignored);
  for (auto above = impl_->created.rbegin(); above != impl_->created.rend(); ++above)
    fs::remove(*above, ignored);  // empty ones only
}

void RldsWriter::add(std::string_view example) {
  Impl& impl = *impl_;
  if (!impl.shard.is_open() || impl.shard_size >= impl.settings.shard_bytes) {
    impl.close_shard();
    impl.split.shard_lengths.push_back(0);
    impl.shard_size = 0;
    impl.shard.open(impl.shard_path(impl.split.shard_lengths.size() - 1), std::ios::binary);
  }
  std::string framed;
  append_tfrecord(framed, example);
  impl.shard.write(framed.data(), static_cast<std::streamsize>(framed.size()));
  COHORT_THROW_UNLESS(impl.shard.good(), "cannot write {}: {}",
                      impl.shard_path(impl.split.shard_lengths.size() - 1).string(), std::strerror(errno));
  impl.shard_size += static_cast<std::int64_t>(framed.size());
  impl.split.bytes += static_cast<std::int64_t>(example.size());
  ++impl.split.shard_lengths.back();
}

void RldsWriter::add_file(const fs::path& file) {
  std::error_code error;
  fs::copy_file(file, impl_->work / file.filename(), error);
  COHORT_THROW_UNLESS(!error, "cannot copy {} to {}: {}", file.string(), impl_->work.string(), error.message());
}

fs::path RldsWriter::finish() {
  Impl& impl = *impl_;
  COHORT_THROW_UNLESS(!impl.split.shard_lengths.empty(), "no episode was written to {}", impl.target.string());
  impl.close_shard();
  DatasetInfo info{.name = impl.settings.name,
                   .version = impl.settings.version,
                   .description = impl.settings.description,
                   .splits = {impl.split}};
  for (std::size_t i = 0; i < impl.split.shard_lengths.size(); ++i)
    fs::rename(impl.shard_path(i), impl.work / shard_name(info, impl.split, static_cast<std::int64_t>(i)));
  write_file_atomically(impl.work / "features.json", impl.settings.features_json.empty() ? write_features(impl.schema)
                                                                                         : impl.settings.features_json);
  write_file_atomically(impl.work / "dataset_info.json", write_dataset_info(info));
  std::error_code error;
  fs::rename(impl.work, impl.target, error);
  COHORT_THROW_UNLESS(!error, "cannot move {} into place: {}", impl.target.string(), error.message());
  impl.finished = true;
  return impl.target;
}

}  // namespace cohort::data
