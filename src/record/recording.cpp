#include "record/recording.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "core/progress.h"
#include "core/stop_signal.h"
#include "core/threads.h"
#include "data/convert.h"
#include "data/format.h"
#include "data/images/codec.h"
#include "formats/tfrecord.h"
#include "record/finish_recording.h"
#include "record/piece_store.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace cohort::record {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kAttemptsPerEpisode = 4;

std::string data_set_name(const std::string& task_name, const RecordingSettings& settings) {
  if (!settings.name.empty()) return settings.name;
  std::string name = task_name;
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

bool is_vector(const tasks::FieldSpec& field) {
  return field.shape.size() <= 1;
}

/// The observations that LeRobot's observation.state holds; empty: the task's own `state` is it.
std::vector<std::string> state_of(const tasks::TaskSpec& spec, const RecordingSettings& s) {
  if (!s.state.empty()) return s.state;
  std::vector<std::string> state;
  for (const tasks::FieldSpec& field : spec.observations) {
    if (field.privileged || !is_vector(field)) continue;
    if (field.name == "state") return {};
    state.push_back(field.name);
  }
  return state;
}

std::string privileged_fields(const tasks::TaskSpec& spec) {
  std::vector<std::string> names;
  for (const tasks::FieldSpec& field : spec.observations)
    if (field.privileged) names.push_back(field.name);
  return join(names, ",");
}

data::LeRobotConvertSettings lerobot_settings(const tasks::TaskSpec& spec, const RecordingSettings& s) {
  data::LeRobotConvertSettings settings{.images = s.images, .vcodec = s.vcodec};
  if (spec.control_period > 0) settings.fps = std::round(1e6 / spec.control_period) / 1e6;
  for (const std::string& name : state_of(spec, s)) settings.state.push_back("observation/" + name);
  settings.names["action"] = settings.names[spec.action.field] = spec.action.names;
  return settings;
}

/// Lines about what observation.state holds, where something is left out of it.
std::vector<std::string> said_of_state(const tasks::TaskSpec& spec, const RecordingSettings& s) {
  const std::vector<std::string> state = state_of(spec, s);
  std::vector<std::string> left;
  for (const tasks::FieldSpec& field : spec.observations)
    if (field.privileged && std::find(state.begin(), state.end(), field.name) == state.end())
      left.push_back(field.name);
  if (!data::find_format(s.format).composes_state || left.empty()) return {};
  return {format("observation.state: {}; {} {} not in it, which no robot measures: --state {} puts {} in",
                 state.empty() ? "the task's state" : join(state, ", "), join(left, ", "),
                 left.size() == 1 ? "is" : "are", join(state, ",") + (state.empty() ? "" : ",") + left.front(),
                 left.front())};
}

/// Throws Error for a name that is no observation of the task's.
void check_state(const tasks::TaskSpec& spec, const RecordingSettings& s) {
  if (!s.state.empty() && !data::find_format(s.format).composes_state) {
    const std::vector<data::DataFormat>& all = data::formats();
    const auto composing = std::find_if(all.begin(), all.end(), [](const auto& f) { return f.composes_state; });
    throw Error(format(
        "--state names what {}'s observation.state holds: with --format {} every observation has a field of its own; "
        "leave --state out, or write --format {}",
        composing->title, s.format, composing->name));
  }
  std::vector<std::string> names;
  for (const tasks::FieldSpec& field : spec.observations)
    if (is_vector(field)) names.push_back(field.name);
  for (std::size_t i = 0; i < s.state.size(); ++i) {
    const std::string& name = s.state[i];
    const std::string near = config::nearest(name, names);
    COHORT_THROW_UNLESS(std::find(names.begin(), names.end(), name) != names.end(),
                        "--state {}: {} observes no vector of that name{}; it has {}", name, spec.name,
                        near.empty() ? "" : ", did you mean '" + near + "'?", join(names, ", "));
    COHORT_THROW_UNLESS(std::find(s.state.begin(), s.state.begin() + static_cast<std::ptrdiff_t>(i), name) ==
                            s.state.begin() + static_cast<std::ptrdiff_t>(i),
                        "--state names {} twice", name);
  }
}

void check(const tasks::TaskSpec& spec, const RecordingSettings& s) {
  COHORT_THROW_UNLESS(s.episodes >= 1, "{} episodes are to be recorded: at least 1 is needed", s.episodes);
  COHORT_THROW_UNLESS(s.shard_episodes >= 1, "a shard holds at least 1 episode, not {}", s.shard_episodes);
  const std::vector<data::DataFormat>& all = data::formats();
  const auto to = std::find_if(all.begin(), all.end(), [&](const data::DataFormat& f) { return f.name == s.format; });
  COHORT_THROW_UNLESS(to != all.end(), "'{}' is no format of recordings: {}", s.format, data::format_names());
  if (to->check) {
    data::PictureSize pictures;
    if (!s.pictures.cameras.empty()) pictures = {s.pictures.height, s.pictures.width};
    to->check({.to = s.format, .episodes = {}, .lerobot = lerobot_settings(spec, s)}, pictures);
  }
  COHORT_THROW_UNLESS(s.keep == "success" || s.keep == "all", "keep={} is neither success nor all", s.keep);
  COHORT_THROW_UNLESS(s.pictures.encoding == "png" || s.pictures.encoding == "jpeg",
                      "'{}' is no encoding of pictures: png or jpeg", s.pictures.encoding);
  const std::string name = data_set_name(spec.name, s);
  COHORT_THROW_UNLESS(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == std::string::npos,
                      "'{}' is no name of a data set: use small letters, digits and underscores", name);
  for (const std::string& camera : s.pictures.cameras) check_camera(spec, camera);
  check_state(spec, s);
  COHORT_CHECK(s.world_size == 1 || s.barrier, "ranks of a recording need a barrier");
}

/// What the bytes depend on, beside the program.
config::Json identity_of(const tasks::Task& task, const std::string& actor, const RecordingSettings& s) {
  config::Json json = {{"task", task.spec().name},
                       {"description", task.description()},
                       {"policy", s.actor_identity.empty() ? actor : s.actor_identity},
                       {"format", s.format},
                       {"episodes", s.episodes},
                       {"first seed", s.first_seed},
                       {"keep", s.keep},
                       {"steps of an episode", s.max_steps},
                       {"noise", s.noise},
                       {"noise seed", s.noise_seed},
                       {"episodes of a shard", s.shard_episodes},
                       {"cameras", s.pictures.cameras}};
  if (!s.pictures.cameras.empty()) {
    json["size of pictures"] = {s.pictures.height, s.pictures.width};
    json["encoding"] = s.pictures.encoding;
    json["renderer"] = s.renderer;
  }
  if (!s.state.empty()) json["state"] = s.state;
  if (data::find_format(s.format).codes_pictures && !s.pictures.cameras.empty())
    json["pictures' storage"] = {s.images, s.vcodec};
  return json;
}

/// Puts episodes together while they run, and hands whole pieces to the store.
class Recorder final : public tasks::RolloutObserver {
 public:
  Recorder(tasks::Task& task, const RecordingSettings& settings, const RecordingNotes& notes, const PieceStore& store,
           std::vector<PieceRange> pieces, std::function<void(const tasks::EpisodeOutcome&)> counted)
      : task_(task), settings_(settings), notes_(notes), store_(store), counted_(std::move(counted)) {
    for (const PieceRange& range : pieces) {
      open_.push_back({range, PieceReport{.range = range},
                       std::vector<std::string>(static_cast<std::size_t>(range.size())), range.size()});
      for (std::int64_t i = range.begin; i < range.end; ++i) place_.emplace_back(open_.size() - 1, i - range.begin);
    }
  }

  /// Of the episodes in order.
  std::vector<std::uint64_t> seeds() const {
    std::vector<std::uint64_t> seeds;
    for (const OpenPiece& piece : open_)
      for (std::int64_t i = piece.range.begin; i < piece.range.end; ++i)
        seeds.push_back(settings_.first_seed + static_cast<std::uint64_t>(i));
    return seeds;
  }

  void acting(tasks::Task& task, std::span<const tasks::RunningEpisode> running, ArrayView actions) override {
    for (const tasks::RunningEpisode& r : running)
      records_.try_emplace(r.episode, task.spec()).first->second.add_step(task, r.env, actions);
    add_pictures(running);
  }

  void stepped(tasks::Task& task, std::span<const tasks::RunningEpisode> running) override {
    const auto reward = task.reward().span<float>();
    for (const tasks::RunningEpisode& r : running)
      records_.at(r.episode).add_reward(reward[static_cast<std::size_t>(r.env)]);
  }

  void ended(const tasks::RunningEpisode& r, const tasks::EpisodeOutcome& outcome) override {
    const auto [at, place] = place_.at(r.episode);
    OpenPiece& piece = open_[at];
    const EpisodeRecord& record = records_.at(r.episode);
    if (outcome.success) ++piece.report.successes;
    if (outcome.failed) ++piece.report.faults;
    if (outcome.success || (settings_.keep == "all" && !outcome.failed)) {
      const std::string example = record.to_example(task_.spec(), settings_.pictures, notes_, outcome);
      ++piece.report.kept;
      piece.report.steps += record.steps();
      piece.report.bytes += static_cast<std::int64_t>(example.size());
      append_tfrecord(piece.records[static_cast<std::size_t>(place)], example);
    }
    records_.erase(r.episode);
    if (--piece.missing == 0) {
      std::string whole;
      for (std::string& record_bytes : piece.records) whole += record_bytes;
      piece.records.clear();
      store_.write(piece.report, whole);
    }
    counted_(outcome);
  }

 private:
  struct OpenPiece {
    PieceRange range;
    PieceReport report;
    std::vector<std::string> records;  ///< by seed; empty: not kept
    std::int64_t missing;
  };

  void add_pictures(std::span<const tasks::RunningEpisode> running) {
    const PictureRecording& p = settings_.pictures;
    std::vector<std::int32_t> envs;
    for (const tasks::RunningEpisode& r : running) envs.push_back(r.env);
    for (std::size_t camera = 0; camera < p.cameras.size(); ++camera) {
      const ArrayView pictures = task_.picture(p.cameras[camera], envs);
      const auto pixels = pictures.span<std::uint8_t>();
      COHORT_CHECK(pictures.shape[1] == p.height && pictures.shape[2] == p.width,
                   "the task draws pictures of {} x {}, not {} x {}", pictures.shape[1], pictures.shape[2], p.height,
                   p.width);
      const auto bytes = static_cast<std::size_t>(p.height) * static_cast<std::size_t>(p.width) * 3;
      std::vector<std::string> encoded(running.size());
      parallel_for(static_cast<std::int64_t>(running.size()), settings_.threads, [&](std::int64_t i) {
        const auto at = static_cast<std::size_t>(i);
        const auto row = pixels.subspan(static_cast<std::size_t>(running[at].env) * bytes, bytes);
        data::Image image{.height = p.height, .width = p.width, .pixels = {row.begin(), row.end()}};
        encoded[at] = p.encoding == "jpeg" ? data::encode_jpeg(image, p.jpeg_quality) : data::encode_png(image);
      });
      for (std::size_t i = 0; i < running.size(); ++i)
        records_.at(running[i].episode).add_picture(camera, std::move(encoded[i]));
    }
  }

  tasks::Task& task_;
  const RecordingSettings& settings_;
  const RecordingNotes& notes_;
  const PieceStore& store_;
  std::function<void(const tasks::EpisodeOutcome&)> counted_;
  std::vector<OpenPiece> open_;
  std::vector<std::pair<std::size_t, std::int64_t>> place_;  ///< of an episode: its piece, and its place in it
  std::map<std::size_t, EpisodeRecord> records_;             ///< under way
};

/// Blocks of seeds [begin, end), cut at multiples of the block's size.
std::vector<PieceRange> cut(std::int64_t begin, std::int64_t end, std::int64_t block) {
  std::vector<PieceRange> pieces;
  while (begin < end) {
    const std::int64_t next = std::min(end, (begin / block + 1) * block);
    pieces.push_back({begin, next});
    begin = next;
  }
  return pieces;
}

}  // namespace

void check_camera(const tasks::TaskSpec& spec, const std::string& camera) {
  if (std::find(spec.cameras.begin(), spec.cameras.end(), camera) != spec.cameras.end()) return;
  COHORT_THROW_UNLESS(!spec.cameras.empty(), "{} has no cameras: there is no '{}'", spec.name, camera);
  const std::string near = config::nearest(camera, spec.cameras);
  std::string list;
  for (const std::string& known : spec.cameras) list += (list.empty() ? "" : ", ") + known;
  throw Error(format("{} has no camera '{}'{}; it has {}", spec.name, camera,
                     near.empty() ? "" : format(", did you mean '{}'?", near), list));
}

fs::path recording_path(const fs::path& out, const std::string& task_name, const RecordingSettings& settings) {
  const std::string name = data_set_name(task_name, settings);
  return data::find_format(settings.format, "a recording is written as").recording_path(out, name);
}

RecordingReport record(tasks::Task& task, tasks::Actor& actor, const fs::path& out, const RecordingSettings& settings) {
  const tasks::TaskSpec& spec = task.spec();
  const tasks::RolloutSettings rollout{
      .max_steps = settings.max_steps, .noise = settings.noise, .noise_seed = settings.noise_seed, .instruction = ""};
  tasks::check(spec, rollout);
  check(spec, settings);
  const fs::path target = recording_path(out, spec.name, settings);
  COHORT_THROW_UNLESS(!fs::exists(target),
                      "{} exists already; remove it, or choose another folder (--out) or name (--name)",
                      target.string());
  fs::path work = target;
  work += ".recording";
  const auto wait = [&] {
    if (settings.barrier) settings.barrier();
  };
  const config::Json identity = identity_of(task, actor.name(), settings);
  if (settings.rank == 0) const PieceStore first(work, identity);
  wait();
  const PieceStore store(work, identity);
  RecordingNotes notes{.task = spec.name,
                       .description = task.description(),
                       .actor = actor.name(),
                       .renderer = "",
                       .privileged = privileged_fields(spec)};
  if (!settings.pictures.cameras.empty()) notes.renderer = settings.renderer;

  std::optional<Progress> progress;
  if (!settings.silent && settings.rank == 0)
    progress.emplace(settings.episodes, ProgressSettings{.label = "collect", .unit = "episode", .ticks = true});
  RecordingReport report;
  report.path = target;
  std::vector<PieceReport> done;
  // As many episodes are begun as are missing if all of them succeed: then the recording ends with the last of them,
  // and which seeds it holds does not depend on which episodes run at a time.
  std::int64_t tried = 0;
  while (report.episodes < settings.episodes) {
    if (tried >= kAttemptsPerEpisode * settings.episodes) {
      wait();
      std::error_code ignored;
      if (settings.rank == 0) fs::remove_all(work, ignored);
      throw Error(settings.keep == "success"
                      ? format("{} did {} in {} of {} episodes only: allow it more steps, or record the others too "
                               "(--keep all)",
                               actor.name(), spec.name, report.successes, tried)
                      : format("{} of {} episodes of {} failed by a fault of the simulation or of {}'s actions",
                               report.faults, tried, spec.name, actor.name()));
    }
    const std::int64_t end = tried + settings.episodes - report.episodes;
    const std::vector<PieceRange> pieces = cut(tried, end, settings.shard_episodes);
    std::vector<PieceRange> own;
    std::int64_t known = 0, ended = tried;
    for (const PieceRange& piece : pieces) {
      const std::int64_t block = piece.begin / settings.shard_episodes;
      if (store.complete(piece)) {
        known += store.report(piece).kept;
        report.resumed += piece.size();
        ended += piece.size();
      } else if (block % settings.world_size == settings.rank) {
        own.push_back(piece);
      }
    }
    std::int64_t kept = report.episodes + known;
    // Episodes that fail are news, too: of a policy that seldom succeeds nothing else moves.
    const auto show = [&] {
      if (progress)
        progress->update(std::min(kept, settings.episodes), {{"kept", format("{} of {} tried", kept, ended)}});
    };
    show();
    Recorder recorder(task, settings, notes, store, std::move(own), [&](const tasks::EpisodeOutcome& outcome) {
      ++ended;
      if (outcome.success || (settings.keep == "all" && !outcome.failed)) ++kept;
      show();
    });
    if (const std::vector<std::uint64_t> seeds = recorder.seeds(); !seeds.empty()) {
      try {
        tasks::run_episodes(task, actor, seeds, rollout, &recorder);
      } catch (const Stopped& stopped) {
        std::int64_t there = report.episodes;
        for (const PieceRange& piece : pieces)
          if (store.complete(piece)) there += store.report(piece).kept;
        throw Stopped(
            stopped.signal(),
            format("stopped with {} of {} episodes, of which {} in whole shards of {} are kept in {}; the same "
                   "command goes on from there",
                   kept, settings.episodes, there, settings.shard_episodes, work.string()));
      }
    }
    wait();
    for (const PieceRange& piece : pieces) {
      done.push_back(store.report(piece));
      report.episodes += done.back().kept;
      report.steps += done.back().steps;
      report.successes += done.back().successes;
      report.faults += done.back().faults;
    }
    tried = end;
  }
  report.attempts = tried;
  wait();  // no rank looks for a piece any more
  if (settings.rank == 0)
    report.said = finish_recording(store, done, recording_schema(spec, settings.pictures), target,
                                   {.name = data_set_name(spec.name, settings),
                                    .format = settings.format,
                                    .task = spec.name,
                                    .description = notes.description,
                                    .threads = settings.threads,
                                    .lerobot = lerobot_settings(spec, settings),
                                    .action_field = spec.action.field,
                                    .action_names = spec.action.names});
  if (settings.rank == 0) {
    const std::vector<std::string> lines = said_of_state(spec, settings);
    report.said.insert(report.said.end(), lines.begin(), lines.end());
  }
  wait();
  if (progress) {
    progress->update(settings.episodes, {{"kept", format("{} of {} tried", report.episodes, report.attempts)}});
    progress->finish();
  }
  return report;
}

}  // namespace cohort::record
