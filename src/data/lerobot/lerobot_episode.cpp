#include "data/lerobot/lerobot_episode.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "core/error.h"

namespace cohort::data {
namespace {

const char* kind_of_field(StepKind kind) {
  return kind == StepKind::kNumber ? "numbers" : kind == StepKind::kImage ? "images" : "texts";
}

}  // namespace

std::vector<std::string> lerobot_metadata_names() {
  return {"language_instruction", "episode_index", "fps", "robot_type"};
}

std::size_t find_bytes(const ParquetFile& file, const StepField& field, const std::string& where) {
  std::optional<std::size_t> column = find_column(file, field.name, "");
  if (!column && field.kind == StepKind::kImage) column = find_column(file, field.name, "bytes");
  COHORT_THROW_UNLESS(column && file.columns()[*column].type == ParquetType::kBytes, "{}: {}", where,
                      find_column(file, field.name)
                          ? format("the column {} holds no {}, but {}", field.name, kind_of_field(field.kind),
                                   file.columns()[*find_column(file, field.name)].type_name)
                          : format("the table lacks the column {}", field.name));
  return *column;
}

LeRobotEpisode::LeRobotEpisode(const LeRobotDetails& details, std::int64_t number, const LeRobotEpisodeInfo& episode)
    : details_(details),
      number_(number),
      episode_(episode),
      table_(details.table(episode.file)),
      columns_(details.step_fields().size()),
      loaded_(details.step_fields().size()) {
  metadata_ = {episode.tasks.empty() ? "" : episode.tasks.front(), std::to_string(episode.number),
               format("{}", details.info().fps), details.info().robot_type};
  // That the rows are this episode's: a table of another version of the set has others there.
  const std::string remedy = format("the table and meta/ do not belong together: copy both again, or {}", kSkipDamaged);
  COHORT_THROW_UNLESS(episode.first_row + episode.steps <= table_->rows(),
                      "{}: rows {} to {} are the episode's, but the table has {}; {}", location(), episode.first_row,
                      episode.first_row + episode.steps - 1, table_->rows(), remedy);
  const auto column = find_column(*table_, "episode_index", "");
  COHORT_THROW_UNLESS(column && table_->columns()[*column].type == ParquetType::kInteger,
                      "{}: the table has no column episode_index of integers", location());
  for (const std::int64_t found : numbers<std::int64_t>(*column, 1))
    COHORT_THROW_UNLESS(found == episode.number, "{}: a row of the episode has the episode_index {}; {}", location(),
                        found, remedy);
  if (episode.tasks.empty()) metadata_[0] = task_of_rows();
}

std::string LeRobotEpisode::task_of_rows() const {
  const auto column = find_column(*table_, "task_index", "");
  if (!column || table_->columns()[*column].type != ParquetType::kInteger) return "";
  std::int64_t first = 0;
  table_->read(*column, episode_.first_row, 1, 1, std::span(&first, 1));
  const auto known = details_.info().tasks.find(first);
  return known == details_.info().tasks.end() ? "" : known->second;
}

std::string LeRobotEpisode::location() const {
  return format("{}: episode {}", details_.info().data_files[episode_.file].string(), episode_.number);
}

std::int64_t LeRobotEpisode::bytes() const {
  std::size_t total = sizeof(*this) + columns_.size() * (sizeof(columns_[0]) + sizeof(loaded_[0]));
  for (const std::string& text : metadata_) total += sizeof(text) + text.capacity();
  return static_cast<std::int64_t>(total);
}

void LeRobotEpisode::check_steps(std::size_t field, std::int64_t begin, std::int64_t count, StepKind kind) const {
  const auto& fields = details_.step_fields();
  COHORT_CHECK(field < fields.size() && begin >= 0 && count >= 0 && begin + count <= steps(),
               "steps [{}, {}) of field {} are asked from an episode of {}", begin, begin + count, field, steps());
  COHORT_THROW_UNLESS(fields[field].kind == kind, "{}: the field {} holds {}", location(), fields[field].name,
                      kind_of_field(fields[field].kind));
}

std::size_t LeRobotEpisode::named(const char* field) const {
  const auto& fields = details_.step_fields();
  const auto found = std::find_if(fields.begin(), fields.end(), [&](const StepField& f) { return f.name == field; });
  COHORT_THROW_UNLESS(found != fields.end(), "{}: meta/info.json names no feature {}", location(), field);
  return static_cast<std::size_t>(found - fields.begin());
}

template <class T>
std::vector<T> LeRobotEpisode::numbers(std::size_t column, std::int64_t elements) const {
  std::vector<T> values(static_cast<std::size_t>(steps() * elements));
  table_->read(column, episode_.first_row, steps(), elements, std::span(values));
  return values;
}

LeRobotEpisode::Column LeRobotEpisode::load(std::size_t f) const {
  const StepField& field = details_.step_fields()[f];
  if (details_.places()[f].place == LeRobotField::Place::kTask) {
    std::vector<std::string> texts;
    std::vector<std::int64_t> tasks(static_cast<std::size_t>(steps()));
    read(named("task_index"), 0, steps(), std::span(tasks));
    for (const std::int64_t task : tasks) {
      const auto known = details_.info().tasks.find(task);
      COHORT_THROW_UNLESS(known != details_.info().tasks.end(), "{}: task_index is {}, which meta/tasks does not name",
                          location(), task);
      texts.push_back(known->second);
    }
    return texts;
  }
  if (field.kind == StepKind::kText) {
    std::vector<std::string> texts(static_cast<std::size_t>(steps()));
    table_->read(find_bytes(*table_, field, location()), episode_.first_row, steps(), std::span(texts));
    return texts;
  }
  const auto column = find_column(*table_, field.name);
  COHORT_THROW_UNLESS(column, "{}: the table lacks the column {}, which meta/info.json names", location(), field.name);
  const ParquetColumn& found = table_->columns()[*column];
  const bool real = found.type == ParquetType::kFloat32 || found.type == ParquetType::kFloat64;
  const bool wants_real = field.type == ElementType::kFloat32 || field.type == ElementType::kFloat64;
  COHORT_THROW_UNLESS(found.type != ParquetType::kOther && found.type != ParquetType::kBytes && (wants_real || !real),
                      "{}: the column {} holds {}, but meta/info.json says {}", location(), field.name, found.type_name,
                      field.type_name());
  const std::int64_t elements = field.elements();
  if (found.type == ParquetType::kFloat32) return numbers<float>(*column, elements);
  if (found.type == ParquetType::kFloat64) return numbers<double>(*column, elements);
  std::vector<std::int64_t> integers = numbers<std::int64_t>(*column, elements);
  if (found.type != ParquetType::kUnsigned64) return integers;
  return std::vector<std::uint64_t>(integers.begin(), integers.end());
}

const LeRobotEpisode::Column& LeRobotEpisode::column(std::size_t field) const {
  if (loaded_[field].load(std::memory_order_acquire)) return columns_[field];
  Column read = load(field);  // without the lock: two threads may read the same, one is kept
  std::int64_t bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (!loaded_[field].load(std::memory_order_relaxed)) {
      columns_[field] = std::move(read);
      bytes = std::visit(
          [](const auto& values) -> std::int64_t {
            if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::monostate>) {
              return 0;
            } else {
              std::size_t total = values.capacity() * sizeof(values[0]);
              if constexpr (std::is_same_v<std::decay_t<decltype(values)>, std::vector<std::string>>)
                for (const std::string& text : values) total += text.capacity();
              return static_cast<std::int64_t>(total);
            }
          },
          columns_[field]);
      loaded_[field].store(true, std::memory_order_release);
    }
  }
  if (bytes > 0) details_.count_bytes(number_, bytes);
  return columns_[field];
}

template <class T>
void LeRobotEpisode::read_numbers(std::size_t field, std::int64_t begin, std::int64_t count, std::span<T> out) const {
  check_steps(field, begin, count, StepKind::kNumber);
  const std::int64_t elements = details_.step_fields()[field].elements();
  COHORT_CHECK(out.size() == static_cast<std::size_t>(count * elements), "room for {} values, not {}", out.size(),
               count * elements);
  std::visit(
      [&](const auto& values) {
        using Values = std::decay_t<decltype(values)>;
        if constexpr (!std::is_same_v<Values, std::monostate> && !std::is_same_v<Values, std::vector<std::string>>)
          std::transform(values.begin() + begin * elements, values.begin() + (begin + count) * elements, out.begin(),
                         [](auto value) { return static_cast<T>(value); });
      },
      column(field));
}

void LeRobotEpisode::read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<float> out) const {
  read_numbers(field, begin, count, out);
}

void LeRobotEpisode::read(std::size_t field, std::int64_t begin, std::int64_t count, std::span<double> out) const {
  read_numbers(field, begin, count, out);
}

void LeRobotEpisode::read(std::size_t field, std::int64_t begin, std::int64_t count,
                          std::span<std::int64_t> out) const {
  check_steps(field, begin, count, StepKind::kNumber);
  const StepField& known = details_.step_fields()[field];
  COHORT_THROW_UNLESS(known.type != ElementType::kFloat32 && known.type != ElementType::kFloat64,
                      "{}: the field {} holds {}, no integers", location(), known.name, known.type_name());
  read_numbers(field, begin, count, out);
}

std::string_view LeRobotEpisode::text(std::size_t field, std::int64_t step) const {
  check_steps(field, step, 1, StepKind::kText);
  return std::get<std::vector<std::string>>(column(field))[static_cast<std::size_t>(step)];
}

LeRobotEpisode::FrameTime LeRobotEpisode::frame_time(const LeRobotVideo& video, std::int64_t step) const {
  constexpr double kWithinAFrame = 0.4;  // of a frame's duration: the neighbours are left alone
  const std::size_t stamp = named("timestamp");
  std::call_once(stamps_read_, [&] {
    std::vector<double> stamps(static_cast<std::size_t>(steps()));
    read(stamp, 0, steps(), std::span(stamps));
    for (std::size_t i = 0; i < stamps.size(); ++i)
      farthest_stamp_ = std::max(farthest_stamp_, std::abs(stamps[i] - static_cast<double>(i) / details_.info().fps));
  });
  double seconds = 0;
  read(stamp, step, 1, std::span(&seconds, 1));
  const FrameTime by_stamp{.seconds = video.begin + seconds, .tolerance = details_.tolerance()};
  const bool own_file = video.begin == 0 && video.end == 0;  // of the versions 2
  if (farthest_stamp_ <= kFrameTolerance && !own_file) return by_stamp;
  const VideoSummary summary = details_.videos().look(details_.info().video_files[video.file]);
  if (summary.frames <= 0 || summary.end <= summary.begin) return by_stamp;
  const double rate = static_cast<double>(summary.frames) / (summary.end - summary.begin);
  const double fps = details_.info().fps, end = summary.begin + static_cast<double>(summary.frames) / fps;
  if (farthest_stamp_ <= kFrameTolerance && summary.begin < 0.5 / fps && std::abs(summary.end - end) < 0.5 / fps)
    return by_stamp;
  const double frames = video.end > 0 ? (video.end - video.begin) * rate : static_cast<double>(summary.frames);
  if (std::abs(frames - static_cast<double>(steps())) >= 0.5 || (video.end <= 0 && video.begin > 0)) return by_stamp;
  details_.say_matched_by_number(episode_.number, farthest_stamp_, rate);
  const double begin = video.end > 0 ? video.begin : summary.begin;
  return {.seconds = begin + static_cast<double>(step) / rate, .tolerance = kWithinAFrame / rate};
}

void LeRobotEpisode::read_pixels(const StepField& field, const LeRobotField& place, std::int64_t step,
                                 std::string& bytes) const {
  const auto column = find_column(*table_, field.name);
  COHORT_THROW_UNLESS(column && table_->columns()[*column].type == ParquetType::kInteger,
                      "{}: {} is a uint8 array of pixels in meta/info.json, but the table {}", location(), field.name,
                      column ? format("holds {}", table_->columns()[*column].type_name) : "has no such column");
  const std::int64_t pixels = field.shape[0] * field.shape[1], channels = field.shape[2];
  thread_local std::vector<std::int64_t> values;
  values.resize(static_cast<std::size_t>(pixels * channels));
  table_->read(*column, episode_.first_row + step, 1, pixels * channels, std::span(values));
  bytes.resize(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    COHORT_THROW_UNLESS(values[i] >= 0 && values[i] <= 255, "{}: {} of step {} has the pixel {}: not from 0 to 255",
                        location(), field.name, step, values[i]);
    const auto at = static_cast<std::int64_t>(i);
    // (channels, height, width) becomes (height, width, channels).
    const std::int64_t to = place.channels_first ? at % pixels * channels + at / pixels : at;
    bytes[static_cast<std::size_t>(to)] = static_cast<char>(values[i]);
  }
}

StoredImage LeRobotEpisode::image(std::size_t field, std::int64_t step, std::string& scratch) const {
  check_steps(field, step, 1, StepKind::kImage);
  const StepField& known = details_.step_fields()[field];
  const LeRobotField& place = details_.places()[field];
  if (place.place == LeRobotField::Place::kColumn) {
    table_->read(find_bytes(*table_, known, location()), episode_.first_row + step, 1, std::span(&scratch, 1));
    if (scratch.empty()) {
      std::string path;
      if (const auto column = find_column(*table_, known.name, "path"))
        table_->read(*column, episode_.first_row + step, 1, std::span(&path, 1));
      COHORT_THROW_UNLESS(path.empty(),
                          "{}: {} of step {} lies beside the table, in {}: pictures are read from the table only; "
                          "save the data set with LeRobot again, which puts them into it",
                          location(), known.name, step, path);
    }
    return {.encoding = ImageEncoding::kJpegOrPng, .bytes = scratch};
  }
  if (place.place == LeRobotField::Place::kPixels) {
    read_pixels(known, place, step, scratch);
    return {.encoding = ImageEncoding::kRaw,
            .bytes = scratch,
            .height = known.shape[0],
            .width = known.shape[1],
            .channels = known.shape[2]};
  }
  const LeRobotVideo& video = episode_.videos[place.camera];
  try {
    const FrameTime at = frame_time(video, step);
    const VideoFrame frame =
        details_.videos().read(details_.info().video_files[video.file], at.seconds, at.tolerance, scratch);
    COHORT_THROW_UNLESS(frame.time >= video.begin - 0.5 / details_.info().fps &&
                            (video.end <= 0 || frame.time < video.end - kFrameTolerance),
                        "{}: the frame nearest to {:.6f} s, at {:.6f} s, is another episode's: this one's are from "
                        "{:.6f} to {:.6f} s",
                        details_.info().video_files[video.file].string(), at.seconds, frame.time, video.begin,
                        video.end);
    COHORT_THROW_UNLESS(frame.height == known.shape[0] && frame.width == known.shape[1],
                        "{}: its pictures are {} x {}, but meta/info.json says {} x {} (height x width)",
                        details_.info().video_files[video.file].string(), frame.height, frame.width, known.shape[0],
                        known.shape[1]);
    return {
        .encoding = ImageEncoding::kRaw, .bytes = scratch, .height = frame.height, .width = frame.width, .channels = 3};
  } catch (const Error& error) {
    throw Error(format("{} (step {} of episode {}, {}; tolerance_s={}, which may be up to half a step, {:g})",
                       error.what(), step, episode_.number, known.name, details_.tolerance(),
                       0.5 / details_.info().fps));
  }
}

std::string_view LeRobotEpisode::metadata(std::string_view name) const {
  const std::vector<std::string> names = lerobot_metadata_names();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == name) return metadata_[i];
  const std::vector<std::string>& notes = details_.info().notes;
  for (std::size_t i = 0; i < notes.size() && i < episode_.notes.size(); ++i)
    if (notes[i] == name) return episode_.notes[i];
  return "";
}

void LeRobotEpisode::check_columns() const {
  for (std::size_t f = 0; f < columns_.size(); ++f)
    if (details_.step_fields()[f].kind != StepKind::kImage) column(f);
}

}  // namespace cohort::data
