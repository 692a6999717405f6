#include "data/lerobot/lerobot_info.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <type_traits>
#include <unordered_map>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/settings_file.h"
#include "data/lerobot/parquet_file.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

using LeRobotJson = nlohmann::ordered_json;  // features in the order of the file

/// More than these are no data set but a damaged file.
constexpr std::int64_t kMostEpisodes = std::int64_t{1} << 26, kMostSteps = std::int64_t{1} << 28,
                       kMostElements = std::int64_t{1} << 31;

constexpr std::int64_t kSmallestPixelArray = 8;  // pixels: smaller arrays of 1 or 3 channels are a few numbers

/// A number of episodes, steps or files that json must hold. Throws Error naming file and key.
std::int64_t count_of(const LeRobotJson& json, const char* key, const std::string& source) {
  const auto found = json.find(key);
  COHORT_THROW_UNLESS(found != json.end() && found->is_number_integer() && *found >= 0 && *found < kMostSteps,
                      "{}: {} is {}, not a number from 0 on", source, key,
                      found == json.end() ? "missing" : json_text(*found));
  return found->get<std::int64_t>();
}

std::string path_of(const LeRobotJson& json, const char* key, const std::string& usual) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : usual;
}

LeRobotFeature feature_of(const std::string& name, const LeRobotJson& json, const std::string& source) {
  COHORT_THROW_UNLESS(json.is_object() && json.contains("dtype") && json["dtype"].is_string(),
                      "{}: the feature {} has no dtype", source, name);
  LeRobotFeature feature{.name = name, .dtype = json["dtype"].get<std::string>(), .shape = {}};
  const auto shape = json.find("shape");
  std::int64_t elements = 1;
  if (shape != json.end() && shape->is_array())
    for (const LeRobotJson& extent : *shape) {
      const bool sound = extent.is_number_integer() && extent >= 0 && extent < kMostElements;
      if (sound) feature.shape.push_back(extent.get<std::int64_t>());
      if (sound) elements *= feature.shape.back();
      COHORT_THROW_UNLESS(sound && elements < kMostElements, "{}: the feature {} has the shape {}", source, name,
                          json_text(*shape));
    }
  const bool picture = feature.dtype == "image" || feature.dtype == "video";
  // A list, or an object with one: {"motors": [...]}.
  if (json.contains("names") && !picture) {
    const LeRobotJson& given = json["names"];
    const LeRobotJson& list = given.is_object() && given.size() == 1 ? *given.begin() : given;
    if (list.is_array() && std::all_of(list.begin(), list.end(), [](const LeRobotJson& e) { return e.is_string(); }))
      feature.names = list.get<std::vector<std::string>>();
  }
  if (picture) {
    COHORT_THROW_UNLESS(feature.shape.size() == 3, "{}: the feature {} is a picture of {} dimensions, not 3", source,
                        name, feature.shape.size());
    const auto names = json.find("names");
    const bool said = names != json.end() && names->is_array() && names->size() == 3 && (*names)[0].is_string();
    const std::string first = said ? (*names)[0].get<std::string>() : "";
    const auto channels = [](std::int64_t n) { return n == 1 || n == 3; };
    if (first.starts_with("c") || (!said && channels(feature.shape[0]) && !channels(feature.shape[2])))
      std::rotate(feature.shape.begin(), feature.shape.begin() + 1, feature.shape.end());
    for (const char* place : {"info", "video_info"})
      for (const char* key : {"is_depth_map", "video.is_depth_map"}) {
        const auto info = json.find(place);
        if (info != json.end() && info->is_object() && info->contains(key) && (*info)[key].is_boolean())
          feature.depth = feature.depth || (*info)[key].get<bool>();
      }
  } else if (feature.dtype == "uint8" && feature.shape.size() == 3) {
    const auto channels = [](std::int64_t n) { return n == 1 || n == 3; };
    const auto side = [](std::int64_t n) { return n >= kSmallestPixelArray; };
    const std::vector<std::int64_t>& s = feature.shape;
    feature.pixels = channels(s[2]) && side(s[0]) && side(s[1]);
    if (!feature.pixels && channels(s[0]) && side(s[1]) && side(s[2])) {
      feature.pixels = feature.channels_first = true;
      std::rotate(feature.shape.begin(), feature.shape.begin() + 1, feature.shape.end());
    }
  } else if (feature.shape.size() == 1 && feature.shape[0] == 1) {
    feature.shape.clear();  // lies as a plain value
  }
  return feature;
}

/// The paths of files, each once.
class FileNumbers {
 public:
  explicit FileNumbers(std::vector<fs::path>& files) : files_(files) {}
  std::size_t of(const fs::path& file) {
    const auto [known, is_new] = numbers_.try_emplace(file.string(), files_.size());
    if (is_new) files_.push_back(file);
    return known->second;
  }

 private:
  std::vector<fs::path>& files_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

/// The whole column of numbers of a table, as float64 or int64.
template <class T>
std::vector<T> whole_column(const ParquetFile& table, const std::string& name, const std::string& source) {
  const auto column = find_column(table, name);
  COHORT_THROW_UNLESS(column, "{} has no column {}: it is no table of a LeRobot data set of version 3", source, name);
  COHORT_THROW_UNLESS(table.rows() < kMostEpisodes, "{} claims {} rows", source, table.rows());
  const auto rows = static_cast<std::size_t>(table.rows());
  std::vector<T> values(rows);
  const auto read_as = [&]<class Stored>(Stored) {
    std::vector<Stored> stored(rows);
    table.read(*column, 0, table.rows(), 1, std::span(stored));
    std::transform(stored.begin(), stored.end(), values.begin(), [](Stored v) { return static_cast<T>(v); });
  };
  const ParquetType type = table.columns()[*column].type;
  const bool integer = type == ParquetType::kInteger || type == ParquetType::kUnsigned64;
  COHORT_THROW_UNLESS(integer || (!std::is_integral_v<T> && type != ParquetType::kBytes), "{}: the column {} holds {}",
                      source, name, table.columns()[*column].type_name);
  if (integer)
    read_as(std::int64_t{});
  else if (type == ParquetType::kFloat32)
    read_as(float{});
  else
    read_as(double{});
  return values;
}

/// The objects of a file with one JSON object on each line, with the number of the line.
std::vector<std::pair<std::int64_t, LeRobotJson>> read_json_lines(const fs::path& path, const char* example) {
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  const std::string text = read_file(path);
  std::vector<std::pair<std::int64_t, LeRobotJson>> objects;
  std::int64_t line = 0;
  for (std::size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view entry = std::string_view(text).substr(begin, end - begin);
    begin = end + 1, ++line;
    if (entry.find_first_not_of(" \r\t") == std::string_view::npos) continue;
    LeRobotJson json = try_json<LeRobotJson>(entry);
    COHORT_THROW_UNLESS(
        json.is_object(), "{}: line {} is no JSON object, but '{}': the file has one object on each line, such as {}",
        path.string(), line, entry.substr(0, entry.find_last_not_of(" \r\t") + 1).substr(0, 60), example);
    objects.emplace_back(line, std::move(json));
  }
  return objects;
}

/// A task's number and text; each number has one text.
void add_task(LeRobotInfo& info, std::int64_t number, std::string text, const fs::path& path) {
  const auto [known, is_new] = info.tasks.try_emplace(number, std::move(text));
  COHORT_THROW_UNLESS(is_new, "{}: task_index {} stands there twice, the first time for '{}': give every task a number",
                      path.string(), number, known->second);
}

/// meta/tasks.parquet of version 3, meta/tasks.jsonl of the versions 2. Where a version's own file is missing the other
/// one is read: sets that were converted half or put together by hand have it.
void read_tasks(const fs::path& folder, LeRobotInfo& info, bool tables) {
  const auto path_of_kind = [&](bool table) { return folder / "meta" / (table ? "tasks.parquet" : "tasks.jsonl"); };
  std::error_code error;
  if (!fs::exists(path_of_kind(tables), error)) tables = !tables;
  const fs::path path = path_of_kind(tables);
  if (!fs::exists(path, error)) return;
  if (tables) {
    const auto table = open_parquet(path);
    const auto numbers = whole_column<std::int64_t>(*table, "task_index", path.string());
    // pandas calls the texts, its index, "task" or by a name of its own.
    std::optional<std::size_t> column = find_column(*table, "task");
    for (std::size_t c = 0; c < table->columns().size() && !column; ++c)
      if (table->columns()[c].type == ParquetType::kBytes) column = c;
    COHORT_THROW_UNLESS(column, "{} has no column of texts", path.string());
    std::vector<std::string> texts(numbers.size());
    table->read(*column, 0, table->rows(), std::span(texts));
    for (std::size_t i = 0; i < numbers.size(); ++i) add_task(info, numbers[i], std::move(texts[i]), path);
    return;
  }
  constexpr const char* kExample = R"({"task_index": 0, "task": "open the drawer"})";
  for (const auto& [line, json] : read_json_lines(path, kExample)) {
    COHORT_THROW_UNLESS(json.contains("task") && json["task"].is_string(),
                        "{}: line {} has no text `task`; a line is such as {}", path.string(), line, kExample);
    add_task(info, count_of(json, "task_index", path.string()), json["task"].get<std::string>(), path);
  }
}

/// Version 3: meta/episodes/chunk-000/file-000.parquet and on.
void read_episode_tables(const fs::path& folder, LeRobotInfo& info, const std::string& data_path,
                         const std::string& video_path) {
  std::vector<fs::path> tables;
  const fs::path below = folder / "meta" / "episodes";
  std::error_code error;
  for (fs::recursive_directory_iterator entry(below, error), end; !error && entry != end; entry.increment(error)) {
    std::error_code nowhere;  // of a link
    if (entry->path().extension() == ".parquet" && entry->is_regular_file(nowhere)) tables.push_back(entry->path());
  }
  std::sort(tables.begin(), tables.end());
  COHORT_THROW_UNLESS(!tables.empty(),
                      "there is no .parquet file in {}, which says where the episodes lie; copy meta/ again",
                      below.string());
  FileNumbers data_files(info.data_files), video_files(info.video_files);
  for (const fs::path& path : tables) {
    const std::string source = path.string();
    const auto table = open_parquet(path);
    const auto ints = [&](const std::string& name) { return whole_column<std::int64_t>(*table, name, source); };
    const auto numbers = ints("episode_index"), lengths = ints("length"), chunks = ints("data/chunk_index"),
               files = ints("data/file_index"), begins = ints("dataset_from_index"), ends = ints("dataset_to_index");
    std::vector<std::vector<std::string>> tasks(numbers.size());
    if (const auto column = find_column(*table, "tasks");
        column && table->columns()[*column].type == ParquetType::kBytes)
      tasks = table->read_lists(*column);
    std::vector<std::vector<std::string>> notes;  // by name
    for (std::size_t n = 0, c = 0; c < table->columns().size(); ++c) {
      const ParquetColumn& column = table->columns()[c];
      if (column.type != ParquetType::kBytes || !column.leaf.empty() || !column.name.starts_with(kLeRobotNote))
        continue;
      const std::string name = column.name.substr(std::string_view(kLeRobotNote).size());
      if (path == tables.front())
        info.notes.push_back(name);
      else if (n >= info.notes.size() || info.notes[n] != name)
        continue;  // the first table has no such column
      ++n;
      notes.emplace_back(numbers.size());
      table->read(c, 0, table->rows(), std::span(notes.back()));
    }
    const std::size_t known = info.episodes.size();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      COHORT_THROW_UNLESS(
          lengths[i] > 0 && lengths[i] < kMostSteps && begins[i] >= 0 &&
              begins[i] < std::numeric_limits<std::int64_t>::max() - kMostSteps && ends[i] == begins[i] + lengths[i],
          "{}: episode {} has the length {}, but rows {} to {}", source, numbers[i], lengths[i], begins[i], ends[i]);
      const fs::path file =
          folder / fill_path(data_path, {{"chunk_index", chunks[i]}, {"file_index", files[i]}}, "", source);
      info.episodes.push_back({.number = numbers[i],
                               .steps = lengths[i],
                               .file = data_files.of(file),
                               .first_row = begins[i],  // of the whole set; see rows_in_files()
                               .tasks = std::move(tasks[i]),
                               .videos = {}});
      for (std::vector<std::string>& texts : notes) info.episodes.back().notes.push_back(std::move(texts[i]));
    }
    for (const std::string& camera : info.cameras) {
      const std::string key = "videos/" + camera + "/";
      const auto video_chunks = ints(key + "chunk_index"), video_numbers = ints(key + "file_index");
      const auto from = whole_column<double>(*table, key + "from_timestamp", source);
      const auto to = find_column(*table, key + "to_timestamp")
                          ? whole_column<double>(*table, key + "to_timestamp", source)
                          : std::vector<double>(from.size(), 0);
      for (std::size_t i = 0; i < numbers.size(); ++i) {
        COHORT_THROW_UNLESS(std::isfinite(from[i]) && from[i] >= 0, "{}: {}from_timestamp of episode {} is {}", source,
                            key, numbers[i], from[i]);
        COHORT_THROW_UNLESS(to[i] == 0 || to[i] > from[i],
                            "{}: {}to_timestamp of episode {} is {}, but it begins at {}", source, key, numbers[i],
                            to[i], from[i]);
        const fs::path file =
            folder /
            fill_path(video_path, {{"chunk_index", video_chunks[i]}, {"file_index", video_numbers[i]}}, camera, source);
        info.episodes[known + i].videos.push_back({.file = video_files.of(file), .begin = from[i], .end = to[i]});
      }
    }
  }
  std::sort(info.episodes.begin(), info.episodes.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  // Rows count through the whole set: a file begins with the first of its episodes.
  std::vector<std::int64_t> first(info.data_files.size(), std::numeric_limits<std::int64_t>::max());
  for (const LeRobotEpisodeInfo& episode : info.episodes)
    first[episode.file] = std::min(first[episode.file], episode.first_row);
  for (LeRobotEpisodeInfo& episode : info.episodes) episode.first_row -= first[episode.file];
}

/// Versions 2: meta/episodes.jsonl, a file per episode and camera.
void read_episode_lines(const fs::path& folder, LeRobotInfo& info, const std::string& data_path,
                        const std::string& video_path, std::int64_t chunk_size) {
  const fs::path path = folder / "meta" / "episodes.jsonl";
  for (const auto& [line, json] :
       read_json_lines(path, R"({"episode_index": 0, "tasks": ["open the drawer"], "length": 120})")) {
    const std::string source = format("{}: line {}", path.string(), line);
    LeRobotEpisodeInfo episode{.number = count_of(json, "episode_index", source),
                               .steps = count_of(json, "length", source)};
    COHORT_THROW_UNLESS(episode.steps > 0, "{}: episode {} has no steps", source, episode.number);
    if (const auto tasks = json.find("tasks"); tasks != json.end()) {
      if (tasks->is_string()) episode.tasks.push_back(tasks->get<std::string>());
      if (tasks->is_array())
        for (const LeRobotJson& task : *tasks)
          if (task.is_string()) episode.tasks.push_back(task.get<std::string>());
    }
    info.episodes.push_back(std::move(episode));
  }
  std::sort(info.episodes.begin(), info.episodes.end(),
            [](const auto& a, const auto& b) { return a.number < b.number; });
  const std::string source = (folder / "meta" / "info.json").string();
  for (LeRobotEpisodeInfo& episode : info.episodes) {
    const std::vector<std::pair<std::string, std::int64_t>> numbers{
        {"episode_chunk", episode.number / chunk_size},
        {"episode_index", episode.number},
        {"total_episodes", static_cast<std::int64_t>(info.episodes.size())}};
    episode.file = info.data_files.size();
    info.data_files.push_back(folder / fill_path(data_path, numbers, "", source));
    for (const std::string& camera : info.cameras) {
      episode.videos.push_back({.file = info.video_files.size()});
      info.video_files.push_back(folder / fill_path(video_path, numbers, camera, source));
    }
  }
}

/// "0:50" per name; all episodes are train where there are none.
void read_splits(const LeRobotJson& json, LeRobotInfo& info, const std::string& source) {
  const auto total = static_cast<std::int64_t>(info.episodes.size());
  const auto add = [&](const std::string& name, std::int64_t begin, std::int64_t end) {
    info.splits.splits.push_back({.name = name, .shard_lengths = {end - begin}});
    info.split_begins[name] = begin;
  };
  const auto splits = json.find("splits");
  if (splits != json.end() && splits->is_object())
    for (const auto& [name, range] : splits->items()) {
      std::int64_t begin = -1, end = -1;
      if (range.is_string()) {
        const std::string text = range.get<std::string>();
        const char *from = text.data(), *to = from + text.size();
        const auto first = std::from_chars(from, to, begin);
        if (first.ec == std::errc() && first.ptr != to && *first.ptr == ':')
          if (std::from_chars(first.ptr + 1, to, end).ptr != to) end = -1;
      }
      COHORT_THROW_UNLESS(
          begin >= 0 && end >= begin && end <= total,
          "{}: the split {} is {}; it is FIRST:END within the {} episodes that meta/ lists: write \"0:{}\" "
          "there where it is all of them (episodes are counted in their order, gaps in their numbers are "
          "no matter)",
          source, name, json_text(range), total, total);
      add(name, begin, end);
    }
  if (info.splits.splits.empty()) add("train", 0, total);
}

}  // namespace

bool holds_lerobot(const fs::path& folder) {
  std::error_code error;
  return fs::is_regular_file(folder / "meta" / "info.json", error);
}

std::string fill_path(std::string_view path, const std::vector<std::pair<std::string, std::int64_t>>& numbers,
                      const std::string& video_key, const std::string& source) {
  std::string filled;
  while (!path.empty()) {
    const std::size_t open = std::min(path.find('{'), path.size());
    filled += path.substr(0, open);
    path.remove_prefix(open);
    if (path.empty()) break;
    const std::size_t close = path.find('}');
    COHORT_THROW_UNLESS(close != std::string_view::npos, "{}: a path has {{ without }}", source);
    const std::string_view inside = path.substr(1, close - 1);
    path.remove_prefix(close + 1);
    const std::string_view name = inside.substr(0, std::min(inside.find(':'), inside.size()));
    if (name == "video_key") {
      filled += video_key;
      continue;
    }
    const auto known = std::find_if(numbers.begin(), numbers.end(), [&](const auto& n) { return n.first == name; });
    COHORT_THROW_UNLESS(known != numbers.end(), "{}: a path names {{{}}}, which is not known", source, inside);
    int digits = 0;  // of "03d"
    if (name.size() < inside.size())
      std::from_chars(inside.data() + name.size() + 1, inside.data() + inside.size(), digits);
    std::string number = std::to_string(known->second);
    if (digits > 0 && digits < 32 && static_cast<std::size_t>(digits) > number.size())
      number.insert(0, static_cast<std::size_t>(digits) - number.size(), '0');
    filled += number;
  }
  return filled;
}

LeRobotInfo read_lerobot_info(const fs::path& folder) {
  const std::string source = (folder / "meta" / "info.json").string();
  const LeRobotJson json = read_json_text(read_file(source), source);
  COHORT_THROW_UNLESS(json.is_object() && json.contains("codebase_version") && json["codebase_version"].is_string(),
                      "{}: no JSON object with codebase_version: this is no LeRobot data set", source);
  LeRobotInfo info{.version = json["codebase_version"].get<std::string>()};
  const bool tables = info.version.starts_with("v3.") || info.version == "v3";
  COHORT_THROW_UNLESS(
      tables || info.version == "v2.0" || info.version == "v2.1",
      "{}: codebase_version is {}; read are v2.0, v2.1 and v3: {}", source, info.version,
      info.version.starts_with("v1")
          ? "convert the data with LeRobot's own scripts (lerobot.scripts.convert_dataset_v21_to_v30 and "
            "those before it)"
          : "it is newer than this version of Cohort, or the word was changed by hand");
  const auto fps = json.find("fps");
  COHORT_THROW_UNLESS(fps != json.end() && fps->is_number() && *fps > 0, "{}: fps is {}, not a number above 0", source,
                      fps == json.end() ? "missing" : json_text(*fps));
  info.fps = fps->get<double>();
  info.robot_type = path_of(json, "robot_type", "");
  const auto features = json.find("features");
  COHORT_THROW_UNLESS(features != json.end() && features->is_object() && !features->empty(), "{}: it names no features",
                      source);
  for (const auto& [name, feature] : features->items()) {
    info.features.push_back(feature_of(name, feature, source));
    if (info.features.back().dtype == "video") info.cameras.push_back(name);
  }
  const std::string data_path = path_of(json, "data_path",
                                        tables ? "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet"
                                               : "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet");
  const std::string video_path =
      path_of(json, "video_path",
              tables ? "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4"
                     : "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4");
  read_tasks(folder, info, tables);
  if (tables) {
    read_episode_tables(folder, info, data_path, video_path);
  } else {
    const std::int64_t chunk_size = json.contains("chunks_size") ? count_of(json, "chunks_size", source) : 1000;
    COHORT_THROW_UNLESS(chunk_size > 0, "{}: chunks_size is 0", source);
    read_episode_lines(folder, info, data_path, video_path, chunk_size);
  }
  COHORT_THROW_UNLESS(!info.episodes.empty(), "{}: the data set has no episodes", source);
  const auto twice = std::adjacent_find(info.episodes.begin(), info.episodes.end(),
                                        [](const auto& a, const auto& b) { return a.number == b.number; });
  COHORT_THROW_UNLESS(twice == info.episodes.end(),
                      "{}: meta/ lists episode {} twice: take one of its lines out of meta/episodes.jsonl (v3: one of "
                      "its rows out of meta/episodes), or write the number that the other one has",
                      source, twice->number);
  if (json.contains("total_episodes")) {
    const std::int64_t total = count_of(json, "total_episodes", source);
    COHORT_THROW_UNLESS(total == static_cast<std::int64_t>(info.episodes.size()),
                        "{}: total_episodes is {}, but {} lists {} episodes: where episodes were deleted on purpose, "
                        "write \"total_episodes\": {} there, and \"splits\": {{\"train\": \"0:{}\"}}; else copy "
                        "meta/ again",
                        source, total, tables ? "meta/episodes" : "meta/episodes.jsonl", info.episodes.size(),
                        info.episodes.size(), info.episodes.size());
  }
  info.splits.name = folder.string();
  read_splits(json, info, source);
  return info;
}

std::vector<std::size_t> select_episodes(const LeRobotInfo& info, const std::string& expression) {
  std::vector<std::size_t> chosen;
  if (expression.empty() || expression == "all") {
    chosen.resize(info.episodes.size());
    std::iota(chosen.begin(), chosen.end(), std::size_t{0});
    return chosen;
  }
  for (const SplitRange& range : select_split(info.splits, expression))
    for (std::int64_t i = range.begin; i < range.end; ++i)
      chosen.push_back(static_cast<std::size_t>(info.split_begins.at(range.split) + i));
  return chosen;
}

}  // namespace cohort::data
