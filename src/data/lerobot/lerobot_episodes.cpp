#include "data/lerobot/lerobot_episodes.h"

#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>

#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/episode_cache.h"
#include "data/episode_notes.h"
#include "data/lerobot/lerobot_episode.h"
#include "data/local_path.h"
#include "data/stored_pictures.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

/// Tables that stay open; each holds its footer and a mapping.
constexpr std::size_t kMostTables = 64;

std::optional<ElementType> number_type(const std::string& dtype) {
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64, ElementType::kInt64, ElementType::kInt32,
                                 ElementType::kInt16, ElementType::kUInt8, ElementType::kBool})
    if (dtype == element_name(type)) return type;
  for (const char* wider : {"int8", "uint16", "uint32", "uint64"})
    if (dtype == wider) return ElementType::kInt64;
  return std::nullopt;
}

/// Opened tables by number, the least recently used one goes first.
class OpenTables {
 public:
  template <class Open>
  std::shared_ptr<const ParquetFile> get(std::size_t file, const Open& open) {
    if (auto known = find(file)) return known;
    std::shared_ptr<const ParquetFile> opened = open();
    const std::lock_guard lock(mutex_);
    recent_.emplace_front(file, opened);
    if (recent_.size() > kMostTables) recent_.pop_back();
    return opened;
  }

 private:
  std::shared_ptr<const ParquetFile> find(std::size_t file) {
    const std::lock_guard lock(mutex_);
    const auto known =
        std::find_if(recent_.begin(), recent_.end(), [&](const auto& table) { return table.first == file; });
    if (known == recent_.end()) return nullptr;
    recent_.splice(recent_.begin(), recent_, known);
    return recent_.front().second;
  }

  std::mutex mutex_;
  std::list<std::pair<std::size_t, std::shared_ptr<const ParquetFile>>> recent_;
};

/// A set is opened more than once: to look at it, for training, for validation.
void warn_once(const std::string& line) {
  static std::mutex mutex;
  static std::set<std::string> said;
  const std::lock_guard lock(mutex);
  if (said.insert(line).second) log::warning("{}", line);
}

/// Tables that lack pictures, by the statistics that they hold themselves: no picture is read.
class MissingPictures {
 public:
  /// Of one table. May be called from several threads.
  void count(const LeRobotInfo& known, std::size_t file, const ParquetFile& table) {
    for (const LeRobotFeature& feature : known.features) {
      if (feature.dtype != "image") continue;
      const auto column = find_column(table, feature.name, "bytes");
      const std::int64_t nulls = column ? table.nulls(*column) : 0;
      if (nulls <= 0) continue;
      const std::lock_guard lock(mutex_);
      const auto [first, is_new] = found_.try_emplace(feature.name, file, nulls);
      if (!is_new && file < first->second.first) first->second = {file, nulls};
    }
  }
  /// By the feature's name the first such table, and how many it lacks.
  const std::map<std::string, std::pair<std::size_t, std::int64_t>>& found() const { return found_; }

 private:
  std::mutex mutex_;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> found_;
};

}  // namespace

struct LeRobotEpisodes::Impl final : LeRobotDetails {
  Impl(const fs::path& path, const LeRobotSettings& wanted)
      : settings(wanted),
        folder(path),
        name(path.string()),
        known(read_lerobot_info(path)),
        frames(wanted.cache_bytes / 2),
        cache(wanted.cache_bytes - wanted.cache_bytes / 2) {
    COHORT_THROW_UNLESS(
        settings.tolerance_s > 0 && settings.tolerance_s <= 0.5 / known.fps,
        "{}: tolerance_s={} is not above 0 and at most {}, half a step: else it is not known which frame "
        "is meant",
        name, settings.tolerance_s, 0.5 / known.fps);
    for (const std::string& note : known.notes)
      if (std::find(metadata.begin(), metadata.end(), note) == metadata.end()) metadata.push_back(note);
    for (const std::size_t e : select_episodes(known, settings.split)) episodes.push_back(&known.episodes[e]);
    COHORT_THROW_UNLESS(!episodes.empty(), "{}: the split {} has no episodes", name, settings.split);
    place_rows();
    if (settings.on_corrupt != "skip") check_files();
    find_fields();
  }

  bool skips() const { return settings.on_corrupt == "skip"; }
  int threads() const { return settings.threads > 0 ? settings.threads : available_cores(); }

  /// The rows of an episode are those with its episode_index. Where the tables have other numbers of rows than meta/
  /// says (its file numbers may be those of the files before a conversion, and episodes deleted from it by hand leave
  /// their rows behind), they are looked for in all tables, as LeRobot does, which takes file numbers for nothing else
  /// than to make names. What is not found stays where meta/ has it, for check_files() to speak of.
  void place_rows() {
    std::vector<std::int64_t> rows(known.data_files.size(), 0);
    for (const LeRobotEpisodeInfo& episode : known.episodes) rows[episode.file] += episode.steps;
    std::vector<char> differs(rows.size(), 0);
    parallel_for(static_cast<std::int64_t>(rows.size()), threads(), [&](std::int64_t i) {
      const auto file = static_cast<std::size_t>(i);
      std::error_code error;
      try {
        differs[file] = !fs::is_regular_file(known.data_files[file], error) || table(file)->rows() != rows[file];
      } catch (const Error&) {  // said where it is read
      }
    });
    if (std::find(differs.begin(), differs.end(), 1) == differs.end()) return;
    std::error_code error;
    for (fs::recursive_directory_iterator entry(folder / "data", error), end; !error && entry != end;
         entry.increment(error)) {
      if (entry->path().extension() != ".parquet" || !fs::is_regular_file(entry->path())) continue;
      const auto same = [&](const fs::path& file) {
        return file.lexically_normal() == entry->path().lexically_normal();
      };
      if (std::none_of(known.data_files.begin(), known.data_files.end(), same))
        known.data_files.push_back(entry->path());
    }
    struct Run {
      std::int64_t first = 0, rows = 0, runs = 0;
    };
    std::vector<std::map<std::int64_t, Run>> found(known.data_files.size());  // by episode_index
    parallel_for(static_cast<std::int64_t>(found.size()), threads(), [&](std::int64_t i) {
      const auto file = static_cast<std::size_t>(i);
      try {
        const auto opened = table(file);
        const auto column = find_column(*opened, "episode_index", "");
        if (!column || opened->columns()[*column].type != ParquetType::kInteger) return;
        std::vector<std::int64_t> numbers(static_cast<std::size_t>(opened->rows()));
        opened->read(*column, 0, opened->rows(), 1, std::span(numbers));
        for (std::size_t row = 0; row < numbers.size(); ++row) {
          Run& run = found[file][numbers[row]];
          if (row == 0 || numbers[row - 1] != numbers[row]) ++run.runs, run.first = static_cast<std::int64_t>(row);
          ++run.rows;
        }
      } catch (const Error&) {  // a damaged table, of which is said where it is read
      }
    });
    std::int64_t moved = 0;
    for (LeRobotEpisodeInfo& episode : known.episodes) {
      std::size_t places = 0, place = 0;
      for (std::size_t file = 0; file < found.size(); ++file)
        if (const auto run = found[file].find(episode.number);
            run != found[file].end() && run->second.runs == 1 && run->second.rows == episode.steps)
          ++places, place = file;
      if (places != 1) continue;  // none, or copies that differ perhaps
      const std::int64_t first = found[place].at(episode.number).first;
      moved += place != episode.file || first != episode.first_row;
      episode.file = place;
      episode.first_row = first;
      placed.insert(episode.number);
    }
    if (moved > 0)
      log::warning(
          "{}: the rows of {} of {} episodes lie elsewhere than meta/ says (file numbers and row numbers of "
          "meta/episodes); they are read by the rows' own episode_index",
          name, moved, known.episodes.size());
  }

  /// ", the first in episode 4, step 3".
  std::string first_without_picture(std::size_t file, const std::string& feature) const {
    const auto opened = table(file);
    const auto column = find_column(*opened, feature, "bytes");
    std::string bytes;
    for (const LeRobotEpisodeInfo* episode : episodes)
      for (std::int64_t step = 0; column && episode->file == file && step < episode->steps; ++step) {
        opened->read(*column, episode->first_row + step, 1, std::span(&bytes, 1));
        if (bytes.empty()) return format(", the first in episode {}, step {}", episode->number, step);
      }
    return "";
  }

  /// Every table has the rows that meta/ says, every video is there.
  void check_files() const {
    std::vector<std::int64_t> rows(known.data_files.size(), 0);
    for (const LeRobotEpisodeInfo& episode : known.episodes) rows[episode.file] += episode.steps;
    const auto [used, shown] = used_files();
    const std::vector<std::size_t> numbers(used.begin(), used.end());
    MissingPictures lacking;
    std::set<std::size_t> unplaced;  // tables of episodes that are where meta/ says, and nowhere else
    for (const LeRobotEpisodeInfo* episode : episodes)
      if (!placed.contains(episode->number)) unplaced.insert(episode->file);
    parallel_for(static_cast<std::int64_t>(numbers.size()), threads(), [&](std::int64_t i) {
      const std::size_t file = numbers[static_cast<std::size_t>(i)];
      if (!unplaced.contains(file)) return;
      std::error_code missing;
      COHORT_THROW_UNLESS(fs::is_regular_file(known.data_files[file], missing),
                          "there is no file {}: copy it; where its episodes were deleted on purpose, take them out of "
                          "meta/, too ({}); or {} to go on without them",
                          known.data_files[file].string(),
                          known.version.starts_with("v2")
                              ? "their lines in meta/episodes.jsonl, total_episodes and splits in meta/info.json"
                              : "cohort data delete-episodes makes a set without episodes",
                          kSkipDamaged);
      const auto opened = table(file);
      COHORT_THROW_UNLESS(opened->rows() == rows[file],
                          "{} has {} rows, but meta/ lists episodes of {} steps in it: copy both again, or {} to go on "
                          "with the episodes that are whole",
                          known.data_files[file].string(), opened->rows(), rows[file], kSkipDamaged);
      lacking.count(known, file, *opened);
    });
    for (const auto& [feature, found] : lacking.found()) {
      const auto [file, count] = found;
      warn_once(
          format("{}: {} of its {} steps have no picture {}{}: a training with this camera ends there, unless "
                 "data.missing_image=black is set",
                 known.data_files[file].string(), count, rows[file], feature, first_without_picture(file, feature)));
    }
    for (const std::size_t file : shown) {
      std::error_code error;
      COHORT_THROW_UNLESS(fs::is_regular_file(known.video_files[file], error),
                          "there is no video {}; copy it, or {} to go on without its episodes",
                          known.video_files[file].string(), kSkipDamaged);
    }
    if (video_frames_unavailable().empty()) check_videos(shown);  // else numbers are read all the same
  }

  /// Every video is as long as its episodes, by its container's index: found now, not when its step comes.
  void check_videos(const std::set<std::size_t>& shown) const {
    std::vector<VideoSummary> found(known.video_files.size());
    const std::vector<std::size_t> numbers(shown.begin(), shown.end());
    parallel_for(static_cast<std::int64_t>(numbers.size()), threads(), [&](std::int64_t i) {
      const std::size_t file = numbers[static_cast<std::size_t>(i)];
      try {
        found[file] = read_video_index(known.video_files[file]);
      } catch (const Error& error) {
        throw Error(format("{}; or {} to go on without its episodes", error.what(), kSkipDamaged));
      }
    });
    for (const LeRobotEpisodeInfo* episode : episodes)
      for (std::size_t c = 0; c < episode->videos.size(); ++c) {
        const LeRobotVideo& video = episode->videos[c];
        const VideoSummary& summary = found[video.file];
        const double half = 0.5 / known.fps;
        const bool own_file = video.begin == 0 && video.end == 0;  // of the versions 2
        const double needed = video.end > 0 ? video.end : video.begin + static_cast<double>(episode->steps) / known.fps;
        const bool too_short = own_file && summary.frames > 0 ? summary.frames < episode->steps
                                                              : summary.end > 0 && summary.end < needed - half;
        const bool squeezed = own_file && summary.frames != episode->steps && summary.end > 0 &&
                              summary.end < needed - half;  // else frames are matched by their number
        COHORT_THROW_UNLESS(
            !too_short && !squeezed,
            "{} is too short: it ends at {:.3f} s{}, but episode {} has {} steps, to {:.3f} s ({}); copy "
            "the video again, or {} to go on without such episodes",
            known.video_files[video.file].string(), summary.end,
            summary.frames > 0 ? format(" after {} frames", summary.frames) : "", episode->number, episode->steps,
            needed, known.cameras[c], kSkipDamaged);
        const std::vector<std::int64_t>& shape = feature_of(known.cameras[c]).shape;
        COHORT_THROW_UNLESS(
            summary.height == 0 || shape.size() != 3 || (summary.height == shape[0] && summary.width == shape[1]),
            "{}: its pictures are {} x {}, but meta/info.json says {} x {} (height x width) of {}; write there what "
            "they "
            "are, or {} to go on without such episodes",
            known.video_files[video.file].string(), summary.height, summary.width, shape[0], shape[1], known.cameras[c],
            kSkipDamaged);
      }
  }

  const LeRobotFeature& feature_of(const std::string& feature) const {
    return *std::find_if(known.features.begin(), known.features.end(),
                         [&](const LeRobotFeature& one) { return one.name == feature; });
  }

  /// Tables and videos of the selected episodes.
  std::pair<std::set<std::size_t>, std::set<std::size_t>> used_files() const {
    std::pair<std::set<std::size_t>, std::set<std::size_t>> used;
    for (const LeRobotEpisodeInfo* episode : episodes) {
      used.first.insert(episode->file);
      for (const LeRobotVideo& video : episode->videos) used.second.insert(video.file);
    }
    return used;
  }

  /// The first that can be opened; with on_corrupt=skip others may be damaged.
  std::shared_ptr<const ParquetFile> first_table() const {
    std::string fault;
    for (const std::size_t file : used_files().first) {
      try {
        return table(file);
      } catch (const Error& error) {
        if (!skips()) throw;
        if (fault.empty()) fault = error.what();
      }
    }
    throw Error(format("{} holds no sound episode; the first fault: {}", name, fault));
  }

  void find_fields() {
    const auto example = first_table();
    const auto leave = [&](const std::string& feature, const std::string& why) { others.emplace_back(feature, why); };
    for (const LeRobotFeature& feature : known.features) {
      StepField field{.name = feature.name, .shape = feature.shape, .stored_type = feature.dtype};
      const bool video = feature.dtype == "video", picture = video || feature.dtype == "image";
      if (feature.depth) {
        leave(feature.name, "a depth map, which is not read");
        continue;
      }
      if (video && feature.shape[2] != 3 && feature.shape[2] != 1) {
        leave(feature.name, format("a video of {} channels", feature.shape[2]));
        continue;
      }
      const auto column = find_column(*example, feature.name);
      if (!video && !column) {
        leave(feature.name, format("meta/info.json names it, but {} has no such column",
                                   known.data_files[episodes.front()->file].string()));
        continue;
      }
      if (picture) {
        field.kind = StepKind::kImage;
        field.stored_type = "uint8";
        if (video) field.shape[2] = 3;
      } else if (feature.pixels) {
        field.kind = StepKind::kImage;
        field.type = ElementType::kUInt8;
      } else if (feature.dtype == "string") {
        field.kind = StepKind::kText;
        field.stored_type.clear();
        if (!feature.shape.empty()) {
          leave(feature.name, "it holds several texts in a step");
          continue;
        }
      } else if (const auto type = number_type(feature.dtype)) {
        field.type = *type;
        if (field.elements() < 1) {
          leave(feature.name, "it has no elements");
          continue;
        }
      } else {
        leave(feature.name, format("its dtype {} is not read", feature.dtype));
        continue;
      }
      LeRobotField where{.place = video            ? LeRobotField::Place::kVideo
                                  : feature.pixels ? LeRobotField::Place::kPixels
                                                   : LeRobotField::Place::kColumn,
                         .channels_first = feature.channels_first};
      if (video)
        where.camera = static_cast<std::size_t>(std::find(known.cameras.begin(), known.cameras.end(), feature.name) -
                                                known.cameras.begin());
      fields.push_back(std::move(field));
      field_places.push_back(where);
    }
    const auto has = [&](const char* wanted) {
      return std::any_of(fields.begin(), fields.end(), [&](const StepField& f) { return f.name == wanted; });
    };
    if (!known.tasks.empty() && has("task_index") && !has(kLeRobotTask)) {
      fields.push_back({.name = kLeRobotTask, .kind = StepKind::kText});
      field_places.push_back({.place = LeRobotField::Place::kTask});
    }
    std::set<std::string> named;
    for (const LeRobotFeature& feature : known.features) named.insert(feature.name);
    for (const ParquetColumn& column : example->columns())
      if (named.insert(column.name).second)
        leave(column.name, "a column of the tables that meta/info.json does not name");
    COHORT_THROW_UNLESS(!fields.empty(), "{}: no feature of meta/info.json can be read{}", name,
                        others.empty() ? "" : ": " + others.front().first + ": " + others.front().second);
  }

  /// Reads everything once: which episodes are damaged is kept in `notes`.
  void leave_damaged_out(const EpisodeNotes& notes) {
    const std::vector<std::string> faults =
        notes.faults(static_cast<std::int64_t>(episodes.size()), threads(), [&](std::int64_t e) -> std::string {
          try {
            check_episode(e);
          } catch (const Error& error) {
            return format("episode {}: {}", episodes[static_cast<std::size_t>(e)]->number, error.what());
          }
          return "";
        });
    std::vector<const LeRobotEpisodeInfo*> kept;
    for (std::size_t e = 0; e < episodes.size(); ++e) {
      if (faults[e].empty())
        kept.push_back(episodes[e]);
      else
        skipped.push_back(faults[e]);
    }
    COHORT_THROW_UNLESS(!kept.empty(), "{} holds no sound episode; the first fault: {}", name, skipped.front());
    episodes = std::move(kept);
  }

  /// All columns, all pictures of the tables, the first and the last frame of every video.
  void check_episode(std::int64_t e) const {
    const LeRobotEpisode episode(*this, e, *episodes[static_cast<std::size_t>(e)]);
    episode.check_columns();
    for (std::size_t f = 0; f < fields.size(); ++f) {
      if (fields[f].kind != StepKind::kImage) continue;
      const std::int64_t stride =
          field_places[f].place == LeRobotField::Place::kVideo ? std::max<std::int64_t>(1, episode.steps() - 1) : 1;
      for (std::int64_t step = 0; step < episode.steps(); step += stride)
        check_stored_picture(episode, fields[f], f, step);
    }
  }

  const LeRobotInfo& info() const override { return known; }
  const std::vector<StepField>& step_fields() const override { return fields; }
  const std::vector<LeRobotField>& places() const override { return field_places; }
  const VideoFrames& videos() const override { return frames; }
  double tolerance() const override { return settings.tolerance_s; }
  std::shared_ptr<const ParquetFile> table(std::size_t file) const override {
    return tables.get(file, [&] { return open_parquet(known.data_files[file]); });
  }
  void count_bytes(std::int64_t episode, std::int64_t bytes) const override { cache.grow(episode, bytes); }
  void say_matched_by_number(std::int64_t number, double farthest, double rate) const override {
    std::call_once(said_matched, [&] {
      const std::string why = farthest > kFrameTolerance
                                  ? format(
                                        "timestamps of episode {} lie up to {:.3f} s from its number of steps at {} "
                                        "per second",
                                        number, farthest, known.fps)
                                  : format(
                                        "the video of episode {} shows {:.4g} frames per second or begins late, its "
                                        "table has {} steps",
                                        number, rate, known.fps);
      log::warning(
          "{}: {}; its video has one frame per step, so frames are matched by their number, there and wherever it is "
          "so",
          name, why);
    });
  }

  LeRobotSettings settings;
  fs::path folder;
  std::string name;
  LeRobotInfo known;
  std::vector<const LeRobotEpisodeInfo*> episodes;  // that are selected
  std::set<std::int64_t> placed;                    // numbers of episodes that place_rows() found
  std::vector<StepField> fields;
  std::vector<LeRobotField> field_places;
  std::vector<std::pair<std::string, std::string>> others;  // what is no field, and why
  std::vector<std::string> metadata = lerobot_metadata_names(), skipped;
  VideoFrames frames;
  mutable OpenTables tables;
  mutable std::once_flag said_matched;
  mutable EpisodeCache cache;
};

LeRobotEpisodes::LeRobotEpisodes(const fs::path& folder, const LeRobotSettings& settings) {
  need_local_path(folder, "folder");
  COHORT_THROW_UNLESS(holds_lerobot(folder),
                      "{} has no meta/info.json: name the folder of a LeRobot data set, which holds meta/ and data/",
                      folder.string());
  impl_ = std::make_unique<Impl>(folder, settings);
  if (impl_->skips()) impl_->leave_damaged_out(EpisodeNotes(*this, folder, settings.index_cache));
}
LeRobotEpisodes::~LeRobotEpisodes() = default;

const std::string& LeRobotEpisodes::name() const {
  return impl_->name;
}
std::int64_t LeRobotEpisodes::size() const {
  return static_cast<std::int64_t>(impl_->episodes.size());
}
const std::vector<StepField>& LeRobotEpisodes::fields() const {
  return impl_->fields;
}
const std::vector<std::string>& LeRobotEpisodes::metadata_names() const {
  return impl_->metadata;
}
std::int64_t LeRobotEpisodes::steps(std::int64_t episode) const {
  return impl_->episodes[static_cast<std::size_t>(episode)]->steps;
}
const std::vector<std::string>& LeRobotEpisodes::skipped() const {
  return impl_->skipped;
}

std::shared_ptr<const Episode> LeRobotEpisodes::open(std::int64_t episode) const {
  COHORT_CHECK(episode >= 0 && episode < size(), "episode {} of {}", episode, size());
  return impl_->cache.get(episode, 0, [this, episode]() -> EpisodeCache::Made {
    auto opened =
        std::make_shared<const LeRobotEpisode>(*impl_, episode, *impl_->episodes[static_cast<std::size_t>(episode)]);
    const std::int64_t bytes = opened->bytes();
    return {std::move(opened), bytes};
  });
}

std::int64_t LeRobotEpisodes::bytes_when_open(std::int64_t episode, std::span<const std::size_t> fields) const {
  std::int64_t bytes = 0;
  for (const std::size_t f : fields) {
    const StepField& field = impl_->fields[f];
    if (field.kind == StepKind::kImage) continue;
    const std::size_t one = field.kind == StepKind::kText         ? sizeof(std::string)
                            : field.type == ElementType::kFloat32 ? sizeof(float)
                                                                  : sizeof(double);
    bytes += steps(episode) * static_cast<std::int64_t>(one) * field.elements();
  }
  return bytes;
}

std::uint64_t LeRobotEpisodes::content_hash() const {
  const LeRobotInfo& info = impl_->known;
  ContentHash hash;
  hash.add(read_file(impl_->folder / "meta" / "info.json"));
  for (const auto& [number, task] : info.tasks) {
    hash.add(static_cast<std::uint64_t>(number));
    hash.add(task);
  }
  for (const LeRobotEpisodeInfo* episode : impl_->episodes) {
    for (const std::int64_t word :
         {episode->number, episode->steps, episode->first_row, static_cast<std::int64_t>(episode->file)})
      hash.add(static_cast<std::uint64_t>(word));
    for (const LeRobotVideo& video : episode->videos) {
      hash.add(static_cast<std::uint64_t>(video.file));
      hash.add(format("{}", video.begin));
    }
  }
  const auto add_files = [&](const std::set<std::size_t>& used, const std::vector<fs::path>& files) {
    for (const std::size_t file : used) {
      std::error_code error;
      hash.add(files[file].lexically_relative(impl_->folder).string());
      const std::uintmax_t size = fs::file_size(files[file], error);
      if (error) continue;  // left out, as on_corrupt=skip says
      hash.add(static_cast<std::uint64_t>(size));
      hash.add(static_cast<std::uint64_t>(fs::last_write_time(files[file]).time_since_epoch().count()));
    }
  };
  const auto [tables, videos] = impl_->used_files();
  add_files(tables, info.data_files);
  add_files(videos, info.video_files);
  // With another tolerance other episodes are damaged.
  if (impl_->settings.tolerance_s != kFrameTolerance) hash.add(format("tolerance_s {}", impl_->settings.tolerance_s));
  return hash.value();
}

std::int64_t LeRobotEpisodes::bytes_held() const {
  std::size_t bytes = 0;
  for (const LeRobotEpisodeInfo& episode : impl_->known.episodes) {
    bytes += sizeof(episode) + episode.videos.capacity() * sizeof(LeRobotVideo);
    for (const auto* texts : {&episode.tasks, &episode.notes})
      for (const std::string& text : *texts) bytes += sizeof(text) + text.capacity();
  }
  for (const auto* files : {&impl_->known.data_files, &impl_->known.video_files})
    for (const fs::path& file : *files) bytes += sizeof(file) + file.native().capacity();
  return static_cast<std::int64_t>(bytes) + impl_->cache.bytes() + impl_->frames.bytes();
}

std::int64_t LeRobotEpisodes::stored_bytes() const {
  std::int64_t bytes = 0;
  const auto add = [&](const std::set<std::size_t>& used, const std::vector<fs::path>& files) {
    std::error_code error;
    for (const std::size_t file : used)
      if (const std::uintmax_t size = fs::file_size(files[file], error); !error)
        bytes += static_cast<std::int64_t>(size);
  };
  const auto [tables, videos] = impl_->used_files();
  add(tables, impl_->known.data_files);
  add(videos, impl_->known.video_files);
  return bytes;
}

std::pair<fs::path, std::string> LeRobotEpisodes::place(std::int64_t episode) const {
  return {impl_->folder / "meta" / "info.json",
          format("episode {}", impl_->episodes[static_cast<std::size_t>(episode)]->number)};
}

std::string LeRobotEpisodes::selection() const {
  const std::size_t chosen = impl_->episodes.size() + impl_->skipped.size(), all = impl_->known.episodes.size();
  return chosen == all ? "" : format("{}: {} of {} episodes", impl_->settings.split, chosen, all);
}

std::vector<std::string> LeRobotEpisodes::left_out() const {
  std::vector<std::string> lines;
  for (const auto& [feature, why] : impl_->others) lines.push_back(feature + ": " + why);
  return lines;
}

std::vector<std::string> LeRobotEpisodes::element_names(const std::string& field_name) const {
  for (const LeRobotFeature& feature : impl_->known.features)
    if (feature.name == field_name) return feature.names;
  return {};
}

std::string LeRobotEpisodes::schema_name(const std::string& field_name) const {
  std::string name = field_name;
  constexpr std::string_view kObservation = "observation.";
  for (const auto& [lerobot, schema] : {std::pair{"task", "language_instruction"}, std::pair{"next.reward", "reward"},
                                        std::pair{"next.done", "is_terminal"}})
    if (name == lerobot) return schema;
  const bool observed = name.starts_with(kObservation);
  std::replace(name.begin(), name.end(), '.', '_');
  if (observed) name[kObservation.size() - 1] = '/';
  return name;
}
std::vector<MetadataType> LeRobotEpisodes::metadata_types(std::int64_t episode,
                                                          std::vector<std::string>& left_out_lines) const {
  std::vector<MetadataType> metadata = EpisodeSource::metadata_types(episode, left_out_lines);
  // The steps' task says it, where meta/ lists the tasks.
  if (std::ranges::any_of(fields(), [](const StepField& field) { return field.name == kLeRobotTask; }))
    std::erase_if(metadata, [](const MetadataType& m) { return m.name == "language_instruction"; });
  for (const std::string& line : left_out()) left_out_lines.push_back(line);
  return metadata;
}
std::int64_t LeRobotEpisodes::number(std::int64_t episode) const {
  return impl_->episodes[static_cast<std::size_t>(episode)]->number;
}
double LeRobotEpisodes::fps() const {
  return impl_->known.fps;
}
const std::string& LeRobotEpisodes::robot_type() const {
  return impl_->known.robot_type;
}

std::optional<LeRobotInterval> LeRobotEpisodes::video(std::int64_t episode, std::size_t field) const {
  const LeRobotField& place = impl_->field_places[field];
  if (place.place != LeRobotField::Place::kVideo) return std::nullopt;
  const LeRobotEpisodeInfo& info = *impl_->episodes[static_cast<std::size_t>(episode)];
  const LeRobotVideo& video = info.videos[place.camera];
  const double end = video.end > 0 ? video.end : video.begin + static_cast<double>(info.steps) / impl_->known.fps;
  return LeRobotInterval{.file = impl_->known.video_files[video.file], .begin = video.begin, .end = end};
}

std::string LeRobotEpisodes::why_no_field(const std::string& field_name) const {
  for (const auto& [feature, why] : impl_->others)
    if (feature == field_name) return why;
  return "";
}

}  // namespace cohort::data
