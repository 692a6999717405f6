#include "data/lerobot/lerobot_writer.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "data/images/codec.h"
#include "data/lerobot/lerobot_meta.h"
#include "data/lerobot/lerobot_statistics.h"
#include "data/lerobot/lerobot_videos.h"
#include "data/lerobot/parquet_file.h"
#include "data/lerobot/parquet_writer.h"
#include "data/lerobot/video_frames.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

constexpr std::size_t kMostDimensions = 5;  // Array5D is the last of Hugging Face's datasets

/// What every set has, in LeRobot's order (utils.py, DEFAULT_FEATURES).
const std::vector<std::pair<const char*, const char*>> kEverySetHas{{"timestamp", "float32"},
                                                                    {"frame_index", "int64"},
                                                                    {"episode_index", "int64"},
                                                                    {"index", "int64"},
                                                                    {"task_index", "int64"}};

/// A feature's values in the episode that is being written.
struct FeatureValues {
  std::vector<std::byte> numbers = {};
  std::vector<std::string> texts = {}, paths = {};
  std::int64_t pictures = 0;
  PictureStatistics statistics = {};
};

std::vector<double> as_doubles(const std::string& dtype, std::span<const std::byte> bytes) {
  std::vector<double> values;
  const auto convert = [&](auto sample) {
    using T = decltype(sample);
    values.resize(bytes.size() / sizeof(T));
    for (std::size_t i = 0; i < values.size(); ++i) {
      T value;
      std::memcpy(&value, bytes.data() + i * sizeof(T), sizeof(T));
      values[i] = static_cast<double>(value);
    }
  };
  if (dtype == "float32") convert(float{});
  if (dtype == "float64") convert(double{});
  if (dtype == "int64") convert(std::int64_t{});
  if (dtype == "int32") convert(std::int32_t{});
  if (dtype == "int16") convert(std::int16_t{});
  if (dtype == "int8") convert(std::int8_t{});
  if (dtype == "uint64") convert(std::uint64_t{});
  if (dtype == "uint32") convert(std::uint32_t{});
  if (dtype == "uint16") convert(std::uint16_t{});
  if (dtype == "uint8" || dtype == "bool") convert(std::uint8_t{});
  return values;
}

std::int64_t elements_of(const LeRobotFeature& feature) {
  std::int64_t elements = 1;
  for (const std::int64_t extent : feature.shape) elements *= extent;
  return elements;
}

void check_feature(const LeRobotFeature& feature) {
  const bool picture = feature.dtype == "image" || feature.dtype == "video";
  COHORT_THROW_UNLESS(!feature.name.empty() && feature.name.find('/') == std::string::npos,
                      "'{}' is no name of a feature: LeRobot takes none with a '/'", feature.name);
  COHORT_THROW_UNLESS(
      !feature.shape.empty() && feature.shape.size() <= kMostDimensions && elements_of(feature) > 0,
      "the feature {} has {} dimensions and {} elements: LeRobot holds 1 to {} dimensions, none of them "
      "empty",
      feature.name, feature.shape.size(), elements_of(feature), kMostDimensions);
  COHORT_THROW_UNLESS(!picture || (feature.shape.size() == 3 && (feature.shape[2] == 3 || feature.shape[2] == 1)),
                      "the feature {} has no pictures of height, width and 1 or 3 channels", feature.name);
  COHORT_THROW_UNLESS(feature.dtype != "video" || feature.shape[2] == 3, "the video {} has 3 channels", feature.name);
}

}  // namespace

struct LeRobotWriter::Impl {
  Impl(const fs::path& folder, std::vector<LeRobotFeature> wanted, const LeRobotWriterSettings& s,
       std::vector<std::string> note_names)
      : target(folder), settings(s), notes(std::move(note_names)), features(std::move(wanted)), given(features.size()) {
    COHORT_THROW_UNLESS(settings.fps > 0 && settings.fps <= 1000, "{} steps per second; more than 0, at most 1000",
                        settings.fps);
    COHORT_THROW_UNLESS(
        settings.chunks_size > 0 && settings.data_files_size_in_mb > 0 && settings.video_files_size_in_mb > 0,
        "files of a LeRobot set and folders of them hold at least 1 MB and 1 file");
    for (const auto& [name, dtype] : kEverySetHas) features.push_back({.name = name, .dtype = dtype, .shape = {1}});
    for (std::size_t f = 0; f < features.size(); ++f) {
      check_feature(features[f]);
      for (std::size_t other = 0; other < f; ++other)
        COHORT_THROW_UNLESS(features[other].name != features[f].name, "the feature {} would be written twice",
                            features[f].name);
    }
    columns = lerobot_columns(features);
    const std::string missing = parquet_unavailable();
    COHORT_THROW_UNLESS(missing.empty(), "{}", missing);
    std::error_code error;
    if (target.filename().empty()) target = target.parent_path();
    COHORT_THROW_UNLESS(!fs::exists(target, error) || fs::is_empty(target, error),
                        "{} exists already and is not empty; remove it or choose another folder", target.string());
    work = target;
    work += format(".incomplete{}", ::getpid());
    for (const LeRobotFeature& feature : features) {
      if (feature.dtype != "video") continue;
      if (settings.keep_videos) {
        video_codecs.emplace_back();
        kept.push_back({.name = feature.name});
        continue;
      }
      const int height = static_cast<int>(feature.shape[0]), width = static_cast<int>(feature.shape[1]);
      VideoSettings coding = lerobot_video_settings(settings.vcodec, height, width);
      video_codecs.push_back(lerobot_codec_name(coding));
      videos.emplace_back(
          [this, name = feature.name](std::int64_t number) {
            return work / lerobot_video_path(name, number, settings.chunks_size);
          },
          height, width, settings.fps, settings.video_files_size_in_mb << 20, std::move(coding));
    }
    for (fs::path above = work.parent_path(); !above.empty() && !fs::exists(above, error); above = above.parent_path())
      created.insert(created.begin(), above);
    error.clear();
    fs::create_directories(work / "meta", error);
    COHORT_THROW_UNLESS(!error, "cannot create {}: {}", work.string(), error.message());
    meta.emplace(work, features, settings, notes);
  }

  ~Impl() {
    if (finished) return;
    table.reset();
    videos.clear();
    meta.reset();
    std::error_code ignored;
    fs::remove_all(work, ignored);
    for (auto above = created.rbegin(); above != created.rend(); ++above)
      fs::remove(*above, ignored);  // empty ones only
  }

  /// Of the feature among those of the dtype video.
  std::size_t camera_of(std::size_t feature) const {
    return static_cast<std::size_t>(std::count_if(features.begin(),
                                                  features.begin() + static_cast<std::ptrdiff_t>(feature),
                                                  [](const LeRobotFeature& f) { return f.dtype == "video"; }));
  }

  void close_table() {
    if (!table) return;
    table->close();
    sync_path(table_path);
    table.reset();
  }

  /// The table that the episode goes into.
  void choose_table() {
    if (table && table_rows > 0 &&
        table->bytes() + table->bytes() / table_rows * steps >= settings.data_files_size_in_mb << 20)
      close_table();
    if (table) return;
    table_path = work / lerobot_data_path(++table_number, settings.chunks_size);
    fs::create_directories(table_path.parent_path());
    table = create_parquet(table_path, columns, lerobot_column_notes(features));
    table_rows = 0;
  }

  /// Files of a camera that exist already.
  struct KeptVideos {
    std::string name;                            // of the feature
    std::map<fs::path, std::int64_t> numbers{};  // by the file that was copied
    LeRobotVideoPlace place{};                   // of the episode that is being written
  };

  fs::path target, work, table_path;
  LeRobotWriterSettings settings;
  std::vector<std::string> notes;
  std::vector<LeRobotFeature> features;
  std::size_t given;  // features that the caller named
  std::vector<ParquetNewColumn> columns;
  std::vector<LeRobotVideos> videos;
  std::vector<KeptVideos> kept;
  std::vector<std::string> video_codecs;
  std::optional<LeRobotMeta> meta;
  std::unique_ptr<ParquetWriter> table;
  std::int64_t table_number = -1, table_rows = 0, steps = 0;
  std::vector<FeatureValues> values;
  std::vector<std::int64_t> sampled;
  Image image;
  std::vector<fs::path> created;  // folders that were not there before, outermost first
  bool finished = false;
};

LeRobotWriter::LeRobotWriter(const fs::path& folder, std::vector<LeRobotFeature> features,
                             const LeRobotWriterSettings& settings, std::vector<std::string> notes)
    : impl_(std::make_unique<Impl>(folder, std::move(features), settings, std::move(notes))) {}
LeRobotWriter::~LeRobotWriter() = default;

void LeRobotWriter::begin_episode(std::int64_t steps) {
  COHORT_CHECK(steps > 0, "an episode of {} steps", steps);
  impl_->steps = steps;
  impl_->values.assign(impl_->features.size(), {});
  impl_->sampled = sampled_frames(steps);
}

void LeRobotWriter::add(std::size_t feature, std::span<const std::byte> values) {
  impl_->values.at(feature).numbers.assign(values.begin(), values.end());
}

void LeRobotWriter::add_texts(std::size_t feature, std::vector<std::string> texts) {
  impl_->values.at(feature).texts = std::move(texts);
}

void LeRobotWriter::add_picture(std::size_t f, const StoredImage& picture) {
  Impl& impl = *impl_;
  const LeRobotFeature& feature = impl.features[f];
  FeatureValues& values = impl.values.at(f);
  const std::int64_t step = values.pictures++;
  const bool video = feature.dtype == "video", raw = picture.encoding == ImageEncoding::kRaw;
  COHORT_THROW_UNLESS(!picture.bytes.empty(), "{} has no picture in step {}, and LeRobot wants one in every step",
                      feature.name, step);
  const bool in_statistics = std::binary_search(impl.sampled.begin(), impl.sampled.end(), step);
  Image& image = impl.image;
  if (raw) {
    image.resize(picture.height, picture.width, picture.channels);
    std::memcpy(image.pixels.data(), picture.bytes.data(), picture.bytes.size());
  } else if (video || in_statistics) {
    decode_image(picture.bytes, video || image_header(picture.bytes).channels > 2 ? 3 : 1, image);
  } else {
    image = image_header(picture.bytes);
    image.channels = image.channels <= 2 ? 1 : 3;
  }
  COHORT_THROW_UNLESS(image.height == feature.shape[0] && image.width == feature.shape[1] &&
                          (video || image.channels == feature.shape[2]),
                      "the pictures of {} change their size in step {}: {} x {} x {}, not {} x {} x {}", feature.name,
                      step, image.height, image.width, image.channels, feature.shape[0], feature.shape[1],
                      feature.shape[2]);
  if (video && image.channels == 1) {
    Image colour;
    colour.resize(image.height, image.width, 3);
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
      std::fill_n(colour.pixels.begin() + static_cast<std::ptrdiff_t>(3 * i), 3, image.pixels[i]);
    image = std::move(colour);
  }
  if (in_statistics) values.statistics.add(image);
  if (video) {
    LeRobotVideos& videos = impl.videos[impl.camera_of(f)];
    if (step == 0) videos.begin_episode(impl.steps);
    videos.add(image.pixels);
    return;
  }
  values.texts.push_back(raw ? encode_png(image) : std::string(picture.bytes));
  values.paths.push_back(format("frame-{:06}.{}", step, values.texts.back().starts_with("\x89PNG") ? "png" : "jpg"));
}

void LeRobotWriter::keep_video(std::size_t f, const fs::path& file, double begin, double end,
                               const PictureStatistics& sampled) {
  Impl& impl = *impl_;
  COHORT_CHECK(impl.settings.keep_videos && impl.features[f].dtype == "video", "{} is no video that is kept",
               impl.features[f].name);
  Impl::KeptVideos& kept = impl.kept[impl.camera_of(f)];
  const auto [known, is_new] = kept.numbers.try_emplace(file, static_cast<std::int64_t>(kept.numbers.size()));
  if (is_new) {
    const fs::path to = impl.work / lerobot_video_path(kept.name, known->second, impl.settings.chunks_size);
    fs::create_directories(to.parent_path());
    std::error_code error;
    fs::copy_file(file, to, error);
    COHORT_THROW_UNLESS(!error, "cannot copy {} to {}: {}", file.string(), to.string(), error.message());
    sync_path(to);
    std::string& codec = impl.video_codecs[impl.camera_of(f)];
    if (codec.empty()) codec = read_video_index(file).codec;
  }
  kept.place = {.number = known->second, .begin = begin, .end = end};
  impl.values.at(f).pictures = impl.steps;
  impl.values.at(f).statistics = sampled;
}

void LeRobotWriter::end_episode(const std::vector<std::string>& tasks, const std::vector<std::string>& notes) {
  Impl& impl = *impl_;
  const auto steps = static_cast<std::size_t>(impl.steps);
  COHORT_CHECK(tasks.size() == steps && notes.size() == impl.notes.size(), "{} tasks and {} notes of {} steps",
               tasks.size(), notes.size(), steps);
  LeRobotEpisodeEntry entry{.number = impl.meta->episodes(),
                            .steps = impl.steps,
                            .begin = impl.meta->frames(),
                            .tasks = {},
                            .videos = {},
                            .statistics = {},
                            .notes = notes};
  std::vector<float> times(steps);
  std::vector<std::int64_t> frames(steps), episodes(steps, entry.number), indices(steps), task_numbers(steps);
  for (std::size_t t = 0; t < steps; ++t) {
    times[t] = static_cast<float>(static_cast<double>(t) / impl.settings.fps);
    frames[t] = static_cast<std::int64_t>(t);
    indices[t] = entry.begin + frames[t];
    task_numbers[t] = impl.meta->task_index(tasks[t]);
    if (std::find(entry.tasks.begin(), entry.tasks.end(), tasks[t]) == entry.tasks.end())
      entry.tasks.push_back(tasks[t]);
  }
  add(impl.given, std::as_bytes(std::span(times)));
  std::size_t own = impl.given;
  for (const auto* column : {&frames, &episodes, &indices, &task_numbers})
    add(++own, std::as_bytes(std::span(*column)));
  std::vector<ParquetNewValues> row_group;
  for (std::size_t f = 0; f < impl.features.size(); ++f) {
    const LeRobotFeature& feature = impl.features[f];
    const FeatureValues& values = impl.values[f];
    const bool picture = feature.dtype == "video" || feature.dtype == "image";
    COHORT_CHECK(!picture || values.pictures == impl.steps, "{} pictures of {} in {} steps", values.pictures,
                 feature.name, steps);
    if (feature.dtype == "video")
      entry.videos.push_back(impl.settings.keep_videos ? impl.kept[impl.camera_of(f)].place
                                                       : impl.videos[impl.camera_of(f)].end_episode());
    if (picture)
      entry.statistics.push_back(values.statistics.finish());
    else if (feature.dtype == "string")
      entry.statistics.emplace_back();
    else
      entry.statistics.push_back(
          statistics_of(as_doubles(feature.dtype, values.numbers), feature.shape.back(), impl.steps));
    if (feature.dtype != "video")
      row_group.push_back({.numbers = values.numbers, .texts = values.texts, .paths = values.paths});
  }
  impl.choose_table();
  impl.table->write(impl.steps, row_group);
  impl.table_rows += impl.steps;
  entry.data_file = impl.table_number;
  impl.meta->add(std::move(entry));
}

void LeRobotWriter::finish() {
  Impl& impl = *impl_;
  COHORT_THROW_UNLESS(impl.meta->episodes() > 0, "no episode was written to {}", impl.target.string());
  impl.close_table();
  for (LeRobotVideos& videos : impl.videos) videos.finish();
  impl.meta->finish(impl.video_codecs);
  std::error_code error;
  fs::rename(impl.work, impl.target, error);
  COHORT_THROW_UNLESS(!error, "cannot move {} into place: {}", impl.target.string(), error.message());
  impl.finished = true;
  sync_path(impl.target.has_parent_path() ? impl.target.parent_path() : fs::path("."));
}

std::string LeRobotWriter::codecs() const {
  std::string all;
  for (const std::string& codec : impl_->video_codecs)
    if (all.find(codec) == std::string::npos) all += (all.empty() ? "" : ", ") + codec;
  return all;
}

std::vector<std::string> LeRobotWriter::not_finite() const {
  return impl_->meta->not_finite();
}

}  // namespace cohort::data
