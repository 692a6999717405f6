#include "data/lerobot/lerobot_meta.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

using MetaJson = nlohmann::ordered_json;

/// Episodes of a row group in meta/episodes.
constexpr std::size_t kEpisodesOfGroup = 256;

bool holds_pictures(const LeRobotFeature& feature) {
  return feature.dtype == "image" || feature.dtype == "video";
}

/// A column of meta/episodes while its rows are put together.
struct MetaColumn {
  ParquetNewColumn column;
  std::vector<std::int64_t> integers = {};
  std::vector<double> reals = {};
  std::vector<std::string> texts = {};
  std::vector<std::int64_t> lengths = {};

  ParquetNewValues values() const {
    return {.numbers = column.value == ParquetValue::kInt64 ? std::as_bytes(std::span(integers))
                                                            : std::as_bytes(std::span(reals)),
            .texts = texts,
            .lengths = lengths};
  }
};

/// Rows, column by column: the first row's order of names is that of all.
class MetaTable {
 public:
  void begin_row() { at_ = 0; }
  void integer(const std::string& name, std::int64_t value, std::vector<std::int64_t> shape = {}) {
    next({name, ParquetValue::kInt64, std::move(shape), false}).integers.push_back(value);
  }
  void reals(const std::string& name, const std::vector<double>& values, std::vector<std::int64_t> shape) {
    auto& all = next({name, ParquetValue::kFloat64, std::move(shape), false}).reals;
    all.insert(all.end(), values.begin(), values.end());
  }
  void text(const std::string& name, const std::string& value) {
    next({name, ParquetValue::kText}).texts.push_back(value);
  }
  void texts(const std::string& name, const std::vector<std::string>& values) {
    MetaColumn& column = next({.name = name, .value = ParquetValue::kText, .ragged = true});
    column.texts.insert(column.texts.end(), values.begin(), values.end());
    column.lengths.push_back(static_cast<std::int64_t>(values.size()));
  }
  std::vector<ParquetNewColumn> columns() const {
    std::vector<ParquetNewColumn> all;
    for (const MetaColumn& column : columns_) all.push_back(column.column);
    return all;
  }
  std::vector<ParquetNewValues> values() const {
    std::vector<ParquetNewValues> all;
    for (const MetaColumn& column : columns_) all.push_back(column.values());
    return all;
  }

 private:
  MetaColumn& next(ParquetNewColumn column) {
    if (at_ == columns_.size()) columns_.push_back({.column = std::move(column)});
    return columns_[at_++];
  }
  std::vector<MetaColumn> columns_;
  std::size_t at_ = 0;
};

template <class Use>
void for_each_statistic(const FeatureStatistics& statistics, const Use& use) {
  use("min", statistics.min);
  use("max", statistics.max);
  use("mean", statistics.mean);
  use("std", statistics.std);
  for (std::size_t q = 0; q < kLeRobotQuantiles.size(); ++q)
    use(lerobot_quantile_name(kLeRobotQuantiles[q]).c_str(), statistics.quantiles[q]);
}

std::string chunk_file(std::int64_t number, std::int64_t chunks_size) {
  return format("chunk-{:03}/file-{:03}", number / chunks_size, number % chunks_size);
}

/// A number as Python's json writes it: whole ones without a fraction.
MetaJson number_of(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) return static_cast<std::int64_t>(value);
  return value;
}

/// A type of Hugging Face's datasets.
MetaJson hugging_face_type(const LeRobotFeature& feature) {
  if (feature.dtype == "image") return {{"_type", "Image"}};
  const MetaJson value = {{"dtype", feature.dtype}, {"_type", "Value"}};
  if (feature.shape == std::vector<std::int64_t>{1}) return value;
  if (feature.shape.size() == 1) return {{"feature", value}, {"length", feature.shape[0]}, {"_type", "Sequence"}};
  return {{"shape", feature.shape}, {"dtype", feature.dtype}, {"_type", format("Array{}D", feature.shape.size())}};
}

ParquetValue value_of_dtype(const LeRobotFeature& feature) {
  if (feature.dtype == "image") return ParquetValue::kPicture;
  const std::pair<const char*, ParquetValue> known[] = {
      {"bool", ParquetValue::kBool},       {"int8", ParquetValue::kInt8},       {"int16", ParquetValue::kInt16},
      {"int32", ParquetValue::kInt32},     {"int64", ParquetValue::kInt64},     {"uint8", ParquetValue::kUInt8},
      {"uint16", ParquetValue::kUInt16},   {"uint32", ParquetValue::kUInt32},   {"uint64", ParquetValue::kUInt64},
      {"float32", ParquetValue::kFloat32}, {"float64", ParquetValue::kFloat64}, {"string", ParquetValue::kText}};
  for (const auto& [name, value] : known)
    if (feature.dtype == name) return value;
  throw Error(format("the feature {} has the dtype {}, which LeRobot does not hold", feature.name, feature.dtype));
}

}  // namespace

fs::path lerobot_data_path(std::int64_t number, std::int64_t chunks_size) {
  return "data/" + chunk_file(number, chunks_size) + ".parquet";
}

fs::path lerobot_video_path(const std::string& feature, std::int64_t number, std::int64_t chunks_size) {
  return "videos/" + feature + "/" + chunk_file(number, chunks_size) + ".mp4";
}

std::vector<ParquetNewColumn> lerobot_columns(const std::vector<LeRobotFeature>& features) {
  std::vector<ParquetNewColumn> columns;
  for (const LeRobotFeature& feature : features) {
    if (feature.dtype == "video") continue;
    const bool single = feature.dtype == "image" || feature.shape == std::vector<std::int64_t>{1};
    columns.push_back({feature.name, value_of_dtype(feature), single ? std::vector<std::int64_t>() : feature.shape});
  }
  return columns;
}

ParquetNotes lerobot_column_notes(const std::vector<LeRobotFeature>& features) {
  MetaJson types = MetaJson::object();
  for (const LeRobotFeature& feature : features)
    if (feature.dtype != "video") types[feature.name] = hugging_face_type(feature);
  return {{"huggingface", json_text(MetaJson{{"info", {{"features", types}}}})}};
}

LeRobotMeta::LeRobotMeta(fs::path folder, const std::vector<LeRobotFeature>& features,
                         const LeRobotWriterSettings& settings, const std::vector<std::string>& notes)
    : folder_(std::move(folder)),
      features_(features),
      settings_(settings),
      notes_(notes),
      statistics_(features.size()) {}
LeRobotMeta::~LeRobotMeta() = default;

std::int64_t LeRobotMeta::task_index(const std::string& task) {
  const auto [known, is_new] = task_numbers_.try_emplace(task, static_cast<std::int64_t>(tasks_.size()));
  if (is_new) tasks_.push_back(task);
  return known->second;
}

void LeRobotMeta::add(LeRobotEpisodeEntry episode) {
  ++episodes_;
  frames_ += episode.steps;
  for (std::size_t f = 0; f < features_.size(); ++f)
    if (!episode.statistics[f].mean.empty()) statistics_[f].add(episode.statistics[f]);
  pending_.push_back(std::move(episode));
  if (pending_.size() >= kEpisodesOfGroup) write_episodes();
}

void LeRobotMeta::write_episodes() {
  if (pending_.empty()) return;
  if (table_ && table_->bytes() >= settings_.data_files_size_in_mb << 20) {
    table_->close();
    sync_path(table_path_);
    table_.reset();
  }
  if (!table_) ++table_number_;
  const std::int64_t chunks = settings_.chunks_size;
  MetaTable rows;
  for (const LeRobotEpisodeEntry& episode : pending_) {
    rows.begin_row();
    rows.integer("episode_index", episode.number);
    rows.texts("tasks", episode.tasks);
    rows.integer("length", episode.steps);
    rows.integer("data/chunk_index", episode.data_file / chunks);
    rows.integer("data/file_index", episode.data_file % chunks);
    rows.integer("dataset_from_index", episode.begin);
    rows.integer("dataset_to_index", episode.begin + episode.steps);
    std::size_t camera = 0;
    for (const LeRobotFeature& feature : features_) {
      if (feature.dtype != "video") continue;
      const LeRobotVideoPlace& place = episode.videos[camera++];
      const std::string key = "videos/" + feature.name + "/";
      rows.integer(key + "chunk_index", place.number / chunks);
      rows.integer(key + "file_index", place.number % chunks);
      rows.reals(key + "from_timestamp", {place.begin}, {});
      rows.reals(key + "to_timestamp", {place.end}, {});
    }
    for (std::size_t f = 0; f < features_.size(); ++f) {
      const FeatureStatistics& statistics = episode.statistics[f];
      if (statistics.mean.empty()) continue;
      const std::string key = "stats/" + features_[f].name + "/";
      const auto width = static_cast<std::int64_t>(statistics.mean.size());
      for_each_statistic(statistics, [&](const char* name, const std::vector<double>& values) {
        rows.reals(key + name, values,
                   holds_pictures(features_[f]) ? std::vector<std::int64_t>{width, 1, 1} : std::vector{width});
      });
      rows.integer(key + "count", statistics.count, {1});
    }
    rows.integer("meta/episodes/chunk_index", table_number_ / chunks);
    rows.integer("meta/episodes/file_index", table_number_ % chunks);
    for (std::size_t n = 0; n < notes_.size(); ++n) rows.text(notes_[n], episode.notes[n]);
  }
  if (!table_) {
    table_path_ = folder_ / "meta" / "episodes" / (chunk_file(table_number_, chunks) + ".parquet");
    fs::create_directories(table_path_.parent_path());
    table_ = create_parquet(table_path_, rows.columns(), {});
  }
  table_->write(static_cast<std::int64_t>(pending_.size()), rows.values());
  pending_.clear();
}

void LeRobotMeta::write_tasks() const {
  // As pandas stores a table whose index is the texts.
  const auto column = [](const char* name, const char* type, const char* numpy) {
    return MetaJson{{"name", name == std::string("__index_level_0__") ? MetaJson(nullptr) : MetaJson(name)},
                    {"field_name", name},
                    {"pandas_type", type},
                    {"numpy_type", numpy},
                    {"metadata", nullptr}};
  };
  const MetaJson pandas = {
      {"index_columns", {"__index_level_0__"}},
      {"column_indexes",
       {{{"name", nullptr},
         {"field_name", nullptr},
         {"pandas_type", "unicode"},
         {"numpy_type", "object"},
         {"metadata", {{"encoding", "UTF-8"}}}}}},
      {"columns", {column("task_index", "int64", "int64"), column("__index_level_0__", "unicode", "object")}},
      {"creator", {{"library", "cohort"}, {"version", "0"}}},
      {"pandas_version", "2.0.0"}};
  std::vector<std::int64_t> numbers;
  for (std::size_t i = 0; i < tasks_.size(); ++i) numbers.push_back(static_cast<std::int64_t>(i));
  const fs::path path = folder_ / "meta" / "tasks.parquet";
  const auto table =
      create_parquet(path, {{"task_index", ParquetValue::kInt64}, {"__index_level_0__", ParquetValue::kText}},
                     {{"pandas", json_text(pandas)}});
  table->write(static_cast<std::int64_t>(tasks_.size()),
               {{.numbers = std::as_bytes(std::span(numbers))}, {.texts = tasks_}});
  table->close();
  sync_path(path);
}

void LeRobotMeta::write_info(const std::vector<std::string>& codecs) const {
  MetaJson features = MetaJson::object();
  std::size_t videos = 0;
  for (const LeRobotFeature& feature : features_) {
    MetaJson json = {{"dtype", feature.dtype}, {"shape", feature.shape}, {"names", nullptr}};
    if (!feature.names.empty()) json["names"] = feature.names;
    if (holds_pictures(feature)) json["names"] = {"height", "width", "channels"};
    if (feature.dtype == "video") {
      json["info"] = {{"video.height", feature.shape[0]},   {"video.width", feature.shape[1]},
                      {"video.codec", codecs[videos++]},    {"video.pix_fmt", "yuv420p"},
                      {"video.is_depth_map", false},        {"video.fps", number_of(settings_.fps)},
                      {"video.channels", feature.shape[2]}, {"has_audio", false}};
    }
    features[feature.name] = std::move(json);
  }
  const MetaJson info = {
      {"codebase_version", "v3.0"},
      {"robot_type", settings_.robot_type.empty() ? MetaJson(nullptr) : MetaJson(settings_.robot_type)},
      {"total_episodes", episodes_},
      {"total_frames", frames_},
      {"total_tasks", tasks_.size()},
      {"chunks_size", settings_.chunks_size},
      {"data_files_size_in_mb", settings_.data_files_size_in_mb},
      {"video_files_size_in_mb", settings_.video_files_size_in_mb},
      {"fps", number_of(settings_.fps)},
      {"splits", {{"train", format("0:{}", episodes_)}}},
      {"data_path", "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"},
      {"video_path", videos > 0 ? MetaJson("videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4")
                                : MetaJson(nullptr)},
      {"features", features}};
  write_file_atomically(folder_ / "meta" / "info.json", json_text(info, 4) + "\n");
}

void LeRobotMeta::write_statistics() const {
  MetaJson json = MetaJson::object();
  for (std::size_t f = 0; f < features_.size(); ++f) {
    const FeatureStatistics statistics = statistics_[f].finish();
    if (statistics.mean.empty()) continue;
    MetaJson entry = MetaJson::object();
    for_each_statistic(statistics, [&](const char* name, const std::vector<double>& values) {
      MetaJson list = MetaJson::array();
      for (const double value : values) {
        MetaJson element = value;
        if (holds_pictures(features_[f])) element = MetaJson::array({MetaJson::array({value})});
        list.push_back(std::move(element));
      }
      entry[name] = std::move(list);
    });
    entry["count"] = MetaJson::array({statistics.count});
    json[features_[f].name] = std::move(entry);
  }
  write_file_atomically(folder_ / "meta" / "stats.json", json_text(json, 4) + "\n");
}

void LeRobotMeta::finish(const std::vector<std::string>& codecs) {
  write_episodes();
  table_->close();
  sync_path(table_path_);
  write_tasks();
  write_statistics();
  write_info(codecs);
}

std::vector<std::string> LeRobotMeta::not_finite() const {
  std::vector<std::string> names;
  for (std::size_t f = 0; f < features_.size(); ++f)
    if (!statistics_[f].finish().finite) names.push_back(features_[f].name);
  return names;
}

}  // namespace cohort::data
