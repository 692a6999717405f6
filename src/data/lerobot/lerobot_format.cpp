#include "data/lerobot/lerobot_format.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <memory>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/observation_names.h"
#include "core/stop_signal.h"
#include "data/convert.h"
#include "data/episode_task.h"
#include "data/images/codec.h"
#include "data/lerobot/lerobot_episodes.h"
#include "data/lerobot/lerobot_info.h"
#include "data/lerobot/lerobot_videos.h"
#include "data/lerobot/lerobot_writer.h"
#include "data/lerobot/parquet_file.h"
#include "data/open_episodes.h"
#include "data/transforms/component.h"

namespace cohort::data {
namespace {

/// What LeRobot's recorder takes where nothing else is said.
constexpr double kAssumedFps = 30;

/// Features that the writer adds.
const std::set<std::string> kWritten{"timestamp", "frame_index", "episode_index", "index", "task_index"};

/// Of RLDS and HDF5.
bool is_in_observations(const std::string& name) {
  return name.starts_with("obs/") || name.starts_with("observation/") || name.starts_with("observations/");
}

/// The name of a source's field in LeRobot: obs/agentview_image becomes observation.images.agentview.
std::string name_in_lerobot(const StepField& field, bool rename) {
  std::string name = field.name;
  if (rename && is_in_observations(name)) {
    name.erase(0, name.find('/') + 1);
    if (field.kind == StepKind::kImage) {
      for (const char* before : {"images/", "images_"})
        if (name.starts_with(before) && name.size() > std::strlen(before)) name.erase(0, std::strlen(before));
      constexpr std::string_view kBehind = "_image";
      if (name.ends_with(kBehind) && name.size() > kBehind.size()) name.erase(name.size() - kBehind.size());
      name.insert(0, "images/");
    }
    name.insert(0, "observation/");
  } else if (rename) {
    for (const auto& [from, to] :
         {std::pair{"actions", "action"}, std::pair{"reward", "next.reward"}, std::pair{"rewards", "next.reward"},
          std::pair{"dones", "next.done"}, std::pair{"is_terminal", "next.done"}, std::pair{"success", "next.success"}})
      if (name == from) {
        name = to;
        break;
      }
  }
  std::replace(name.begin(), name.end(), '/', '.');
  return name;
}

/// An element of a feature's type.
template <class T>
void append_as(std::vector<std::byte>& bytes, auto value) {
  const T converted = static_cast<T>(value);
  const auto* begin = reinterpret_cast<const std::byte*>(&converted);
  bytes.insert(bytes.end(), begin, begin + sizeof(T));
}

bool is_true(std::string_view text) {
  return text == "true" || text == "1" || text == "True";
}

class ToLeRobot {
 public:
  ToLeRobot(const EpisodeSource& source, const std::vector<std::int64_t>& episodes, const ConvertSettings& settings,
            ConvertReport& report)
      : source_(source),
        episodes_(episodes),
        settings_(settings),
        report_(report),
        first_(source.open(episodes.front())),
        task_(source, settings.lerobot.task) {
    if (!task_.found()) report_.said.push_back("task: the data have no instruction, so it is empty; --task gives one");
    find_vectors();
    find_fields();
    find_success();
    find_notes();
    for (std::size_t i = 0; i < features_.size(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        COHORT_THROW_UNLESS(features_[i].name != features_[j].name, "the feature {} would be written twice: {}",
                            features_[i].name,
                            settings_.lerobot.renamed.empty()
                                ? "keep the names with --keep-names"
                                : "the set has one of this name; choose another new name, or rename that one, too");
  }

  const std::vector<LeRobotFeature>& features() const { return features_; }
  const std::vector<std::string>& notes() const { return notes_; }

  /// Steps per second, from the settings or the data, or assumed, which is said.
  double fps() const {
    if (settings_.lerobot.fps > 0) return settings_.lerobot.fps;
    if (const auto stated = stated_rate(source_)) {
      if (!from_lerobot()) report_.said.push_back(format("fps: {}, from {}", stated->hz, stated->name));
      return stated->hz;
    }
    report_.said.push_back(format("fps: {} is assumed, the data say none; --fps says another", kAssumedFps));
    return kAssumedFps;
  }

  /// `number`: of the episode in the source.
  void write(const Episode& episode, std::int64_t number, LeRobotWriter& out) const {
    const std::int64_t steps = episode.steps();
    out.begin_episode(steps);
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      const Field& field = fields_[f];
      if (field.components) {
        std::vector<float> values(static_cast<std::size_t>(steps * field.components->width()));
        field.components->read(episode, 0, steps, values);
        out.add(f, std::as_bytes(std::span(values)));
      } else if (field.success) {
        std::vector<std::byte> flags(static_cast<std::size_t>(steps), std::byte{0});
        if (is_true(episode.metadata(success_))) flags.back() = std::byte{1};
        out.add(f, flags);
      } else if (source_.fields()[field.index].kind == StepKind::kText) {
        std::vector<std::string> texts;
        for (std::int64_t t = 0; t < steps; ++t) texts.emplace_back(episode.text(field.index, t));
        out.add_texts(f, std::move(texts));
      } else if (const auto video = kept_video(number, field.index)) {
        out.keep_video(f, video->file, video->begin, video->end, sampled_pictures(episode, field.index));
      } else if (source_.fields()[field.index].kind == StepKind::kImage) {
        std::string scratch;
        for (std::int64_t t = 0; t < steps; ++t) {
          const StoredImage picture = episode.image(field.index, t, scratch);
          try {
            out.add_picture(f, picture);
          } catch (const Error& e) {
            throw Error(format("{}: {}", episode.location(), e.what()));
          }
        }
      } else {
        out.add(f, numbers(episode, field.index, features_[f]));
      }
    }
    std::vector<std::string> tasks, notes;
    for (std::int64_t t = 0; t < steps; ++t)
      tasks.push_back(other_name(settings_.lerobot.retasked, task_.at(episode, t)));
    for (const std::string& name : note_sources_) notes.emplace_back(episode.metadata(name));
    out.end_episode(tasks, notes);
  }

  /// The texts of its steps' tasks, as the data have them.
  void add_tasks(const Episode& episode, std::set<std::string>& tasks) const {
    for (std::int64_t t = 0; t < episode.steps(); ++t) tasks.insert(task_.at(episode, t));
  }

 private:
  /// Of the feature at the same place.
  struct Field {
    std::size_t index = 0;                                        // of the source
    std::shared_ptr<const ComponentVector> components = nullptr;  // in its place
    bool success = false;                                         // from what is said about the episode
  };

  static std::string other_name(const std::vector<std::pair<std::string, std::string>>& changed, std::string name) {
    for (const auto& [from, to] : changed)
      if (name == from) return to;
    return name;
  }

  /// Where the frames lie that are taken over as they are.
  std::optional<LeRobotInterval> kept_video(std::int64_t number, std::size_t field) const {
    const auto* lerobot = dynamic_cast<const LeRobotEpisodes*>(&source_);
    if (!settings_.lerobot.keep_videos || lerobot == nullptr) return std::nullopt;
    if (source_.fields()[field].kind != StepKind::kImage) return std::nullopt;
    return lerobot->video(number, field);
  }

  static PictureStatistics sampled_pictures(const Episode& episode, std::size_t field) {
    PictureStatistics statistics;
    std::string scratch;
    Image image;
    for (const std::int64_t t : sampled_frames(episode.steps())) {
      const StoredImage picture = episode.image(field, t, scratch);
      image.resize(picture.height, picture.width, picture.channels);
      std::memcpy(image.pixels.data(), picture.bytes.data(), picture.bytes.size());
      statistics.add(image);
    }
    return statistics;
  }

  bool from_lerobot() const { return source_.format_name() == "lerobot"; }
  bool has_metadata(const std::string& name) const {
    const auto& names = source_.metadata_names();
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  /// observation.state and action, where they are put together of several fields.
  void find_vectors() {
    const auto derive = [&](const char* feature, const std::vector<std::string>& texts) {
      const auto vector = std::make_shared<const ComponentVector>(texts, source_, feature);
      LeRobotFeature made{.name = feature, .dtype = "float32", .shape = {vector->width()}};
      for (const Component& component : vector->components())
        for (std::int64_t i = 0; i < component.width(); ++i)
          made.names.push_back(component.width() == 1 ? bare_observation(component.text())
                                                      : format("{}.{}", bare_observation(component.text()), i));
      features_.push_back(std::move(made));
      fields_.push_back({.components = vector});
    };
    std::vector<std::string> state = settings_.lerobot.state;
    bool has_state = !state.empty(), has_action = !settings_.lerobot.action.empty();
    std::vector<std::string> all;
    for (const StepField& field : source_.fields()) {
      const bool number = field.kind == StepKind::kNumber && field.elements() > 0;
      const std::string name = name_in_lerobot(field, settings_.rename);
      has_state = has_state || (number && name == "observation.state");
      has_action = has_action || (number && name == "action");
      if (number && is_real(field.type) && field.shape.size() <= 1 && is_in_observations(field.name))
        all.push_back(field.name);
    }
    if (!has_state && settings_.rename && !all.empty()) {
      state = all;
      std::string names;
      for (const std::string& name : all) names += (names.empty() ? "" : ", ") + name;
      report_.said.push_back(format("observation.state: {}; --state names others",
                                    all.size() > 1 ? names + ", one behind the other" : names));
    } else if (!has_state) {
      report_.said.push_back("there is no observation.state, which LeRobot's policies see; --state names its parts");
    }
    if (!has_action)
      report_.said.push_back("there is no action, which LeRobot's policies learn; --action names its parts");
    if (!state.empty()) derive("observation.state", state);
    if (!settings_.lerobot.action.empty()) derive("action", settings_.lerobot.action);
  }

  static bool is_real(ElementType type) {
    return type == ElementType::kFloat32 || type == ElementType::kFloat64 || type == ElementType::kFloat16 ||
           type == ElementType::kBFloat16;
  }

  void find_fields() {
    const auto leave = [&](const StepField& field, const std::string& why) {
      report_.left_out.push_back(format("{}: {}", field.name, why));
    };
    std::string narrowed;
    for (std::size_t f = 0; f < source_.fields().size(); ++f) {
      const StepField& field = source_.fields()[f];
      if (f == task_.field() || (from_lerobot() && (kWritten.contains(field.name) || field.name == "task"))) continue;
      LeRobotFeature feature{.name = other_name(settings_.lerobot.renamed, name_in_lerobot(field, settings_.rename)),
                             .dtype = "",
                             .shape = field.shape};
      // A name that LeRobot has for something else.
      if (kWritten.contains(feature.name) ||
          std::any_of(features_.begin(), features_.end(), [&](const LeRobotFeature& known) {
            return known.name == feature.name &&
                   fields_[static_cast<std::size_t>(&known - features_.data())].components;
          }))
        feature.name.insert(0, "recorded.");
      if (field.kind == StepKind::kNumber) {
        if (field.elements() < 1) {
          leave(field, field.elements() < 0 ? "its size varies from step to step" : "it has no elements");
          continue;
        }
        if (feature.shape.empty()) feature.shape = {1};
        if (feature.shape.size() > 5) {
          leave(field, "LeRobot holds arrays of up to 5 dimensions");
          continue;
        }
        feature.dtype = number_dtype(field, feature.name);
        feature.names = source_.element_names(field.name);
        if (field.type == ElementType::kFloat64 && feature.dtype == "float32")
          narrowed += (narrowed.empty() ? "" : ", ") + field.name;
      } else if (!field.fault().empty()) {
        leave(field, "it " + field.fault());
        continue;
      } else if (field.kind == StepKind::kText) {
        feature.dtype = "string";
        feature.shape = {1};
      } else if (changes_size(f)) {
        leave(field, "its pictures are not all of one size");
        continue;
      } else {
        const bool video = settings_.lerobot.keep_videos ? kept_video(episodes_.front(), f).has_value()
                                                         : settings_.lerobot.images == "video";
        feature.dtype = video ? "video" : "image";
        feature.shape = picture_shape(f);
        if (video) feature.shape[2] = 3;
      }
      features_.push_back(std::move(feature));
      fields_.push_back({.index = f});
    }
    for (LeRobotFeature& feature : features_)
      if (const auto known = settings_.lerobot.names.find(feature.name);
          feature.names.empty() && known != settings_.lerobot.names.end() && feature.shape.size() == 1 &&
          std::ssize(known->second) == feature.shape[0])
        feature.names = known->second;
    if (!narrowed.empty())
      report_.said.push_back(format(
          "float64 is written as float32, which LeRobot's policies take ({}); --keep-float64 leaves it", narrowed));
  }

  std::string number_dtype(const StepField& field, const std::string& name) const {
    if (name == "next.done" || name == "next.success") return "bool";
    if (field.type == ElementType::kFloat64) return settings_.lerobot.keep_float64 ? "float64" : "float32";
    if (is_real(field.type)) return "float32";
    if (field.type == ElementType::kBool) return "bool";
    for (const char* known : {"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"})
      if (field.type_name() == known) return known;
    return "int64";
  }

  /// Whether pictures whose size the schema leaves open have several, or a step has none. Their headers are looked at.
  bool changes_size(std::size_t f) const {
    const std::vector<std::int64_t>& declared = source_.fields()[f].shape;
    if (declared.size() >= 2 && declared[0] > 0 && declared[1] > 0) return false;
    std::string scratch;
    std::optional<std::pair<std::int64_t, std::int64_t>> size;
    for (const std::int64_t e : episodes_) {
      const auto episode = source_.open(e);
      for (std::int64_t t = 0; t < episode->steps(); ++t) {
        const StoredImage stored = episode->image(f, t, scratch);
        if (stored.bytes.empty()) return true;
        std::pair found{stored.height, stored.width};
        if (stored.encoding == ImageEncoding::kJpegOrPng) {
          const Image header = image_header(stored.bytes);
          found = {header.height, header.width};
        }
        if (size && *size != found) return true;
        size = found;
      }
    }
    return false;
  }

  /// Height, width and channels, of the first picture where the schema does not say it.
  std::vector<std::int64_t> picture_shape(std::size_t f) const {
    std::string scratch;
    const StoredImage stored = first_->image(f, 0, scratch);
    COHORT_THROW_UNLESS(!stored.bytes.empty(), "{}: {} has no picture in step 0, and LeRobot wants one in every step",
                        first_->location(), source_.fields()[f].name);
    std::vector<std::int64_t> shape{stored.height, stored.width, stored.channels};
    if (stored.encoding == ImageEncoding::kJpegOrPng) {
      const Image header = image_header(stored.bytes);
      shape = {header.height, header.width, header.channels <= 2 ? 1 : 3};
    }
    return shape;
  }

  void find_success() {
    for (const LeRobotFeature& feature : features_)
      if (feature.name == "next.success") return;
    for (const char* name : {"success", "episode_metadata/success"})
      if (has_metadata(name) && settings_.rename) {
        success_ = name;
        features_.push_back({.name = "next.success", .dtype = "bool", .shape = {1}});
        fields_.push_back({.success = true});
        return;
      }
  }

  /// What is said about every episode goes into meta/episodes.
  void find_notes() {
    for (const std::string& name : source_.metadata_names()) {
      if (name == task_.metadata() || name == "num_samples" || name == "data/total" || name == "data/step_texts" ||
          (from_lerobot() &&
           (name == "language_instruction" || name == "episode_index" || name == "fps" || name == "robot_type")))
        continue;
      constexpr std::string_view kPrefix = "episode_metadata/";
      const std::string column =
          std::string(kLeRobotNote) + (name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name);
      if (std::find(notes_.begin(), notes_.end(), column) != notes_.end()) {
        report_.left_out.push_back(format("{}: {} has another value already", name, column));
        continue;
      }
      notes_.push_back(column);
      note_sources_.push_back(name);
    }
  }

  std::vector<std::byte> numbers(const Episode& episode, std::size_t index, const LeRobotFeature& feature) const {
    const StepField& field = source_.fields()[index];
    const auto count = static_cast<std::size_t>(episode.steps() * field.elements());
    std::vector<std::byte> bytes;
    const auto read = [&]<class T>(T) {
      std::vector<T> values(count);
      episode.read(index, 0, episode.steps(), std::span(values));
      return values;
    };
    if (feature.dtype == "bool") {
      for (std::size_t i = 0; const double value : read(double{})) {
        COHORT_THROW_UNLESS(value == 0 || value == 1,
                            "{}: {} is neither 0 nor 1 in step {}, but {} is a flag in LeRobot; keep the name with "
                            "--keep-names, or convert other episodes",
                            episode.location(), field.name, i / static_cast<std::size_t>(field.elements()),
                            feature.name);
        append_as<std::uint8_t>(bytes, value);
        ++i;
      }
      return bytes;
    }
    if (feature.dtype == "float32") {
      for (const float value : read(float{})) append_as<float>(bytes, value);
    } else if (feature.dtype == "float64") {
      for (const double value : read(double{})) append_as<double>(bytes, value);
    } else {
      for (const std::int64_t value : read(std::int64_t{})) {
        if (feature.dtype == "int8") append_as<std::int8_t>(bytes, value);
        if (feature.dtype == "int16") append_as<std::int16_t>(bytes, value);
        if (feature.dtype == "int32") append_as<std::int32_t>(bytes, value);
        if (feature.dtype == "int64") append_as<std::int64_t>(bytes, value);
        if (feature.dtype == "uint8") append_as<std::uint8_t>(bytes, value);
        if (feature.dtype == "uint16") append_as<std::uint16_t>(bytes, value);
        if (feature.dtype == "uint32") append_as<std::uint32_t>(bytes, value);
        if (feature.dtype == "uint64") append_as<std::uint64_t>(bytes, value);
      }
    }
    return bytes;
  }

  const EpisodeSource& source_;
  const std::vector<std::int64_t>& episodes_;
  const ConvertSettings& settings_;
  ConvertReport& report_;
  std::shared_ptr<const Episode> first_;
  EpisodeTask task_;
  std::string success_;
  std::vector<LeRobotFeature> features_;
  std::vector<Field> fields_;
  std::vector<std::string> notes_, note_sources_;
};

void check_images(const ConvertSettings& settings) {
  COHORT_THROW_UNLESS(settings.lerobot.images == "video" || settings.lerobot.images == "image",
                      "pictures are stored as video or image, not '{}'", settings.lerobot.images);
}

void write_lerobot(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                   const std::filesystem::path& out, const ConvertSettings& settings, ConvertReport& report) {
  for (const std::string& line : source.left_out()) report.left_out.push_back(line);
  check_images(settings);
  COHORT_THROW_UNLESS(settings.lerobot.fps >= 0, "{} steps per second: more than 0, or 0 for what the data say",
                      settings.lerobot.fps);
  const ToLeRobot converter(source, episodes, settings, report);
  const std::string_view robot_type = source.open(episodes.front())->metadata("robot_type");
  LeRobotWriter writer(out, converter.features(),
                       {.fps = converter.fps(),
                        .robot_type = std::string(robot_type),
                        .vcodec = settings.lerobot.vcodec,
                        .data_files_size_in_mb = settings.lerobot.data_files_size_in_mb,
                        .video_files_size_in_mb = settings.lerobot.video_files_size_in_mb},
                       converter.notes());
  if (const std::string codecs = writer.codecs(); !codecs.empty())
    report.said.push_back(format("video: {}, which is lossy; --images image keeps every pixel", codecs));
  for (const std::int64_t e : episodes) {
    const auto episode = source.open(e);
    converter.write(*episode, e, writer);
    ++report.episodes;
    report.steps += episode->steps();
    if (const int signal = stop_wanted())
      throw Stopped(signal, format("stopped after {} of {} episodes; nothing is left at {}", report.episodes,
                                   episodes.size(), out.string()));
  }
  for (const std::string& feature : writer.not_finite())
    report.said.push_back(format("{}: values that are not finite are passed over in its statistics", feature));
  writer.finish();
  report.path = out;
}

std::string features_text(const std::vector<LeRobotFeature>& features) {
  std::string text;
  for (const LeRobotFeature& feature : features) {
    text += format("{} {} (", feature.name, feature.dtype);
    for (std::size_t d = 0; d < feature.shape.size(); ++d)
      text += format("{}{}", d == 0 ? "" : " x ", feature.shape[d]);
    text += ")\n";
  }
  return text;
}

/// The first line of one that the other has not.
std::string first_difference(const std::string& a, const std::string& b) {
  std::set<std::string> lines;
  for (std::size_t begin = 0, end; (end = a.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.insert(a.substr(begin, end - begin));
  for (std::size_t begin = 0, end; (end = b.find('\n', begin)) != std::string::npos; begin = end + 1)
    if (!lines.contains(b.substr(begin, end - begin))) return b.substr(begin, end - begin);
  return "";
}

const LeRobotEpisodes& set_of(const EpisodePart& part) {
  const auto* set = dynamic_cast<const LeRobotEpisodes*>(part.source);
  COHORT_CHECK(set != nullptr, "{} is no LeRobot set", part.source->name());
  return *set;
}

/// Names, types and numbers stay but for settings.lerobot.renamed, retasked and task; the videos are the parts' files.
/// Throws Error where the parts differ in features, rate or robot, saying how; where a name or task that is to be
/// changed is not there.
void edit_lerobot(const std::vector<EpisodePart>& parts, const std::filesystem::path& out,
                  const ConvertSettings& changes, ConvertReport& report) {
  ConvertSettings settings = changes;
  COHORT_CHECK(!parts.empty(), "no part of a LeRobot set is given");
  settings.rename = false;
  settings.lerobot.keep_videos = settings.lerobot.keep_float64 = true;
  const LeRobotEpisodes& first = set_of(parts.front());
  for (const auto& [from, to] : settings.lerobot.renamed) {
    COHORT_THROW_UNLESS(!kWritten.contains(from) && from != "task", "{} is LeRobot's own feature and keeps its name",
                        from);
    first.field_index(from);  // throws, with the names that are there
  }
  std::list<ConvertReport> reports;  // of the parts; outlive the converters
  std::vector<std::unique_ptr<ToLeRobot>> converters;
  for (const EpisodePart& part : parts) {
    const LeRobotEpisodes& set = set_of(part);
    COHORT_THROW_UNLESS(!part.episodes.empty(), "{}: no episode is left", set.name());
    ConvertReport& own = reports.emplace_back();
    converters.push_back(std::make_unique<ToLeRobot>(*part.source, part.episodes, settings, own));
    for (const auto& [lines, all] : {std::pair{&own.left_out, &report.left_out}, std::pair{&own.said, &report.said}})
      for (const std::string& line : *lines)
        if (std::find(all->begin(), all->end(), line) == all->end()) all->push_back(line);
    const std::string wanted = features_text(converters.front()->features());
    const std::string found = features_text(converters.back()->features());
    if (found != wanted) {
      const std::string missing = first_difference(found, wanted), more = first_difference(wanted, found);
      throw Error(
          format("{} and {} have other features{}{}: rename them (cohort data rename), or convert one set like the "
                 "other",
                 first.name(), set.name(), missing.empty() ? "" : format("; only the first has {}", missing),
                 more.empty() ? (missing.empty() ? "; they are in another order" : "")
                              : format("; only the second has {}", more)));
    }
    COHORT_THROW_UNLESS(converters.front()->notes() == converters.back()->notes(),
                        "{} and {} say other things about their episodes (columns metadata/ of meta/episodes)",
                        first.name(), set.name());
    COHORT_THROW_UNLESS(set.fps() == first.fps(), "{} has {} steps per second, {} has {}", first.name(), first.fps(),
                        set.name(), set.fps());
    if (set.robot_type() != first.robot_type())
      report.said.push_back(
          format("robot_type: {} is written, {} has {}", first.robot_type(), set.name(), set.robot_type()));
  }
  std::set<std::string> told;
  LeRobotWriter writer(out, converters.front()->features(),
                       {.fps = first.fps(), .robot_type = first.robot_type(), .keep_videos = true},
                       converters.front()->notes());
  for (std::size_t p = 0; p < parts.size(); ++p)
    for (const std::int64_t e : parts[p].episodes) {
      const auto episode = parts[p].source->open(e);
      converters[p]->write(*episode, e, writer);
      converters[p]->add_tasks(*episode, told);
      ++report.episodes;
      report.steps += episode->steps();
    }
  for (const auto& [from, to] : settings.lerobot.retasked) {
    std::string names;
    for (const std::string& task : told) names += (names.empty() ? "" : "', '") + task;
    COHORT_THROW_UNLESS(told.contains(from), "no episode has the task '{}'; the tasks are '{}'", from, names);
  }
  writer.finish();
  report.path = out;
}

/// What would be missed at the end only.
void check_lerobot(const ConvertSettings& settings, PictureSize pictures) {
  check_images(settings);
  const std::string missing = parquet_unavailable();
  COHORT_THROW_UNLESS(missing.empty(), "{}", missing);
  if (pictures.height > 0 && settings.lerobot.images == "video")
    lerobot_video_settings(settings.lerobot.vcodec, pictures.height, pictures.width);
}

std::string lerobot_hint(const std::filesystem::path& path) {
  const std::string extension = path.extension().string();
  std::error_code error;
  if (!std::filesystem::is_directory(path, error))
    return extension != ".parquet" && extension != ".mp4"
               ? ""
               : format(
                     "{} is one file of a LeRobot data set: name the set's folder, which holds meta/, data/ and "
                     "videos/",
                     path.string());
  std::string sets;
  for (const auto& entry : std::filesystem::directory_iterator(path))
    if (entry.is_directory(error) && holds_lerobot(entry.path()))
      sets += (sets.empty() ? "" : ", ") + entry.path().string();
  return sets.empty() ? "" : format("{} holds LeRobot data sets: name one of {}", path.string(), sets);
}

std::unique_ptr<EpisodeSource> open_lerobot(const std::filesystem::path& path, const OpenSettings& settings) {
  const bool is_train = settings.split == "auto" || settings.split == "whole";
  return std::make_unique<LeRobotEpisodes>(path, LeRobotSettings{.split = is_train                 ? "train"
                                                                          : settings.split.empty() ? "all"
                                                                                                   : settings.split,
                                                                 .on_corrupt = settings.on_corrupt,
                                                                 .cache_bytes = settings.cache_bytes,
                                                                 .tolerance_s = settings.tolerance_s,
                                                                 .threads = settings.threads,
                                                                 .index_cache = settings.index_cache});
}

}  // namespace

DataFormat lerobot_format() {
  return {.name = "lerobot",
          .title = "LeRobot",
          .contents = "a folder with meta/info.json (LeRobot)",
          .precedence = 2,
          .composes_state = true,
          .codes_pictures = true,
          .probe = holds_lerobot,
          .hint = lerobot_hint,
          .open = open_lerobot,
          .check = check_lerobot,
          .write = write_lerobot,
          .edit = edit_lerobot,
          .recording_path = [](const std::filesystem::path& out, const std::string& name) { return out / name; }};
}

}  // namespace cohort::data
