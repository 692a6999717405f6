#include "data/robot_windows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <utility>

#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/threads.h"
#include "data/byte_gate.h"
#include "data/episode_notes.h"
#include "data/format.h"
#include "data/images/image_pipeline.h"
#include "data/instruction_texts.h"
#include "data/names_of_sets.h"
#include "data/open_episodes.h"
#include "data/several_episodes.h"
#include "data/stored_pictures.h"
#include "data/transforms/call.h"
#include "data/transforms/filter.h"
#include "data/transforms/permutation.h"

namespace cohort::data {
namespace {

// Indices of the goal's draw in a sample's random stream, apart from those of the image transforms.
constexpr std::uint64_t kGoalDraw = std::uint64_t{1} << 40;

enum class Goal { kNone, kLast, kUniform, kStepsAhead };

struct Set {
  std::unique_ptr<EpisodeSource> source;
  std::vector<std::string> rules;      // for its episodes
  std::vector<std::int64_t> episodes;  // that pass the filters
  std::vector<std::int64_t> ends;      // windows in the episodes up to and including this one
  std::unique_ptr<ComponentVector> action, proprio;
  std::vector<std::size_t> images;
  std::vector<std::size_t> read_fields;  // all of these and those of the vectors
  std::unique_ptr<ByteGate> gate;        // before episodes that samples are read from
  RobotStatistics statistics;
  std::unique_ptr<Normalizer> normalize_action, normalize_proprio;
  std::vector<std::int32_t> instructions;  // per kept episode
  std::int64_t begin = 0, samples = 0;     // its part of an epoch's indices
  std::int64_t windows() const { return ends.empty() ? 0 : ends.back(); }
};

std::vector<std::int64_t> widths_of(const ComponentVector& vector) {
  std::vector<std::int64_t> widths;
  for (const Component& component : vector.components()) widths.push_back(component.width());
  return widths;
}

const std::string& of_set(const std::vector<std::string>& list, std::size_t set, std::size_t sets, const char* what) {
  COHORT_THROW_UNLESS(list.size() == 1 || list.size() == sets, "{} {} for {} data sets; give one for all, or one each",
                      list.size(), what, sets);
  return list[list.size() == 1 ? 0 : set];
}

/// Why a field is no camera: what it holds, what a camera is, what to do.
std::string no_camera(const EpisodeSource& source, std::size_t f, const std::string& path) {
  const StepField& field = source.fields()[f];
  std::string shape, cameras;
  for (const std::int64_t extent : field.shape)
    shape += (shape.empty() ? " of " : " x ") + (extent < 0 ? std::string("?") : std::to_string(extent));
  for (const StepField& other : source.fields())
    if (other.kind == StepKind::kImage) cameras += (cameras.empty() ? "" : ", ") + other.name;
  const bool is_real = field.kind == StepKind::kNumber && field.type_name().find("float") != std::string::npos;
  return format(
      "the field {} of {} holds {}{} in every step; a camera is uint8 from 0 to 255: in HDF5 height x width x 1 or 3, "
      "or "
      "1 or 3 x height x width from 8 x 8 pixels on, in RLDS a feature of the kind Image. {}; cameras of these data: "
      "{}",
      field.name, path, field.kind == StepKind::kText ? "texts" : field.type_name(), shape,
      is_real ? "Convert the values, in Python (x * 255).round().clip(0, 255).astype('uint8') where they go from 0 to 1"
              : "Store it so",
      cameras.empty() ? "none" : cameras);
}

/// The rules that hold for a set: those without a number and those with its own, "0: min_steps(16)".
std::vector<std::string> rules_of_set(const std::vector<std::string>& filters, std::size_t set, std::size_t sets) {
  std::vector<std::string> rules;
  for (const std::string& filter : filters) {
    const std::size_t colon = filter.find_first_not_of("0123456789");
    if (colon == 0 || colon == std::string::npos || filter[colon] != ':') {
      rules.push_back(filter);
      continue;
    }
    std::size_t wanted = sets;
    std::from_chars(filter.data(), filter.data() + colon, wanted);
    COHORT_THROW_UNLESS(wanted < sets, "filter '{}' is for set {}, but there are {}, counted from 0", filter,
                        filter.substr(0, colon), sets);
    const std::size_t rule = std::min(filter.find_first_not_of(' ', colon + 1), filter.size());
    if (wanted == set) rules.push_back(filter.substr(rule));
  }
  return rules;
}

}  // namespace

void describe(config::Fields& fields, RobotDataSettings& s) {
  fields.add("paths", s.paths, "data sets: RLDS and LeRobot folders, HDF5 files or folders, manifests");
  fields.add("splits", s.splits,
             "of each set, or one for all: train[:95%] (RLDS, LeRobot), a mask's name or all (HDF5); auto: train, "
             "where an HDF5 "
             "file has that mask, else all");
  fields.add("weights", s.weights, "how often each set is drawn from; empty: by its number of windows");
  std::vector<std::string> format_choices{"auto"};
  for (const DataFormat& known : formats()) format_choices.push_back(known.name);
  fields.add_choice("format", s.format, format_choices, "of the files");
  fields.add_choice("on_corrupt", s.on_corrupt, {"error", "skip"}, "damaged records end the work, or are left out");
  fields.add_choice("checksums", s.checksums, {"first", "always", "never"}, "when records are verified");
  fields.add("tolerance_s", s.tolerance_s,
             "s, how far a frame's time in a LeRobot video may lie from its step's; at most half a step");
  fields.add("filters", s.filters,
             "rules that episodes must pass, e.g. min_steps(16); of set 0 only: 0: min_steps(16)");
  fields.add("step_filter", s.step_filter,
             "steps that are left out, of every set: idle(action), idle(action, 1e-4): see docs/reference/data.md");
  fields.add("actions", s.actions, "components of the action, e.g. action[0:3]");
  fields.add(
      "action_answers", s.action_answers,
      "transforms of what whoever acts is given, one for each action, e.g. rotation_6d->axis_angle; empty: none");
  fields.add("action_normalization", s.action_normalization, "none, bounds, quantiles, normal: one, or per component");
  fields.add("proprio", s.proprio, "components of the low-dimensional observation");
  fields.add("proprio_normalization", s.proprio_normalization, "likewise");
  fields.add_choice(
      "constant_elements", s.constant_elements, {"error", "keep", "zero"},
      "elements that never change: zero shows them as 0 and answers the value that they have, keep leaves "
      "them as they are, error refuses them");
  fields.add("action_width", s.action_width, "what the action must have; 0: not checked");
  fields.add("images", s.images, "image fields");
  fields.add("image_transforms", s.image_transforms, "what is done to every frame, e.g. resize(128, 128)");
  fields.add("augment", s.augment, "false leaves the random image transforms out");
  fields.add_choice("missing_image", s.missing_image, {"error", "black"}, "a step without image");
  fields.add_choice("image_colours", s.image_colours, {"rgb", "bgr"},
                    "of the stored pictures; bgr: red and blue change places, as in ALOHA's and RDT's HDF5 files");
  fields.add("names", s.names,
             "what single sets call otherwise, e.g. 1: top=laptop; or have in a component's place, 1: action[2] = "
             "action[2] | invert");
  fields.add("goal", s.goal, "none, last, uniform, steps(N)");
  fields.add("instruction", s.instruction, "text field or metadata that says what to do");
  fields.add("observation_steps", s.observation_steps, "frames that the policy sees");
  fields.add("action_steps", s.action_steps, "actions per sample");
  fields.add("action_begin", s.action_begin, "first action, relative to the last observation");
  fields.add("stride", s.stride, "steps between frames and actions");
  fields.add_choice("pad_before", s.pad_before, {"repeat", "drop"}, "windows that begin before their episode");
  fields.add_choice("pad_after", s.pad_after, {"repeat", "zero", "drop"}, "windows that end behind their episode");
  fields.add("windows_per_episode", s.windows_per_episode, "windows drawn per episode and epoch; 0: all");
  fields.add("samples_per_epoch", s.samples_per_epoch, "0: as many as there are windows");
  fields.add("shuffle_buffer_size", s.shuffle_buffer_size, "accepted; every epoch is shuffled as a whole");
  fields.add("cache_bytes", s.cache_bytes, "bytes of opened episodes that are kept for reuse");
  fields.add("statistics", s.statistics, "file to take the statistics from");
  fields.add("statistics_cache", s.statistics_cache, "auto, never, or a folder");
  fields.add("quantile_bytes", s.quantile_bytes, "of values kept for exact quantiles; beyond, every k-th step counts");
  fields.add("index_cache", s.index_cache, "where places and lengths of episodes are kept: auto, never, or a folder");
  fields.add("seed", s.seed, "of draws, goals and augmentation");
  fields.add("threads", s.threads, "for opening; 0: one per core");
}

namespace {

/// Without cameras no frame is made, and none needs a size.
std::vector<std::string> transforms_of(const RobotDataSettings& s) {
  return s.images.empty() && s.image_transforms.empty() ? RobotDataSettings().image_transforms : s.image_transforms;
}

}  // namespace

struct RobotWindows::Impl {
  explicit Impl(const RobotDataSettings& wanted) : settings(wanted), pipeline(transforms_of(wanted)) {
    check_settings();
    threads = settings.threads > 0 ? settings.threads : available_cores();
    names.emplace(settings.names, settings.paths.size());
    std::vector<std::string> components = settings.actions;
    components.insert(components.end(), settings.proprio.begin(), settings.proprio.end());
    names->check_used(components, settings.images);
    for (std::size_t d = 0; d < settings.paths.size(); ++d) open_set(d);
    for (std::size_t d = 1; d < sets.size(); ++d)
      for (const auto& [one, other, what] : {std::tuple(sets[0].action->width(), sets[d].action->width(), "action"),
                                             std::tuple(sets[0].proprio->width(), sets[d].proprio->width(), "proprio")})
        COHORT_THROW_UNLESS(one == other,
                            "the {} of {} has {} elements, but that of {} has {}: sets that are mixed must agree", what,
                            settings.paths[d], other, settings.paths[0], one);
    share_out();
  }

  void check_settings() {
    const RobotDataSettings& s = settings;
    COHORT_THROW_UNLESS(!s.paths.empty(), "no data set is named: set paths");
    COHORT_THROW_UNLESS(!s.actions.empty(), "no action is named: set actions, e.g. actions=[action]");
    COHORT_THROW_UNLESS(s.action_answers.empty() || s.action_answers.size() == s.actions.size(),
                        "action_answers has {} transforms for {} actions: one each (\"\" for none), or none at all",
                        s.action_answers.size(), s.actions.size());
    COHORT_THROW_UNLESS(s.observation_steps >= 1 && s.action_steps >= 1 && s.stride >= 1,
                        "observation_steps, action_steps and stride are at least 1, not {}, {} and {}",
                        s.observation_steps, s.action_steps, s.stride);
    COHORT_THROW_UNLESS(s.weights.empty() || s.weights.size() == s.paths.size(), "{} weights for {} data sets",
                        s.weights.size(), s.paths.size());
    for (const double weight : s.weights)
      COHORT_THROW_UNLESS(weight >= 0 && std::isfinite(weight), "a data set's weight is {}", weight);
    COHORT_THROW_UNLESS(s.image_colours == "rgb" || s.image_colours == "bgr", "image_colours is rgb or bgr, not '{}'",
                        s.image_colours);
    const Call call = parse_call(s.goal);
    if (call.name == "none")
      goal = Goal::kNone;
    else if (call.name == "last")
      goal = Goal::kLast;
    else if (call.name == "uniform")
      goal = Goal::kUniform;
    else if (call.name == "steps") {
      call.expect_arguments(1);
      goal = Goal::kStepsAhead;
      goal_steps = static_cast<std::int64_t>(call.number(0));
      COHORT_THROW_UNLESS(goal_steps >= 1, "goal '{}': a goal lies at least one step ahead", s.goal);
    } else {
      throw Error(format("unknown goal '{}'; known are none, last, uniform, steps(N)", s.goal));
    }
  }

  /// Windows stand at the steps [first, last] of an episode.
  std::pair<std::int64_t, std::int64_t> window_range(std::int64_t steps) const {
    std::int64_t first = 0, last = steps - 1;
    if (settings.pad_before == "drop")
      first = std::int64_t{std::max({settings.observation_steps - 1, -settings.action_begin, 0})} * settings.stride;
    if (settings.pad_after == "drop")
      last -= std::int64_t{std::max(settings.action_begin + settings.action_steps - 1, 0)} * settings.stride;
    return {first, last};
  }

  /// Given, of a file, or computed.
  RobotStatistics statistics_of(const Set& set, std::size_t d) const {
    if (!settings.given_statistics.empty()) {
      const auto& given = settings.given_statistics;
      COHORT_THROW_UNLESS(given.size() == 1 || given.size() == settings.paths.size(),
                          "{} statistics for {} data sets; give one for all, or one each", given.size(),
                          settings.paths.size());
      return given[given.size() == 1 ? 0 : d];
    }
    if (settings.statistics.empty())
      return compute_statistics(
          *set.source, set.episodes, *set.action, *set.proprio, settings.paths[d],
          {.threads = threads, .quantile_bytes = settings.quantile_bytes, .cache = settings.statistics_cache});
    const auto json = try_json<nlohmann::ordered_json>(read_file(settings.statistics));
    return statistics_from_json(json, settings.statistics);
  }

  void open_set(std::size_t d) {
    const std::string& path = settings.paths[d];
    const std::int64_t cache_bytes = settings.cache_bytes / static_cast<std::int64_t>(settings.paths.size());
    Set set;
    set.gate = std::make_unique<ByteGate>(cache_bytes);
    set.source = open_episodes(path, {.format = settings.format,
                                      .split = of_set(settings.splits, d, settings.paths.size(), "splits"),
                                      .on_corrupt = settings.on_corrupt,
                                      .checksums = settings.checksums,
                                      .cache_bytes = cache_bytes,
                                      .tolerance_s = settings.tolerance_s,
                                      .step_filter = settings.step_filter,
                                      .threads = threads,
                                      .index_cache = settings.index_cache});
    const auto of_this_set = [&](const char* what, const std::vector<std::string>& common, const auto& read) {
      try {
        read();
      } catch (const Error& e) {
        if (settings.paths.size() == 1 || common.empty()) throw;
        throw Error(
            format("{}; where {} calls {} otherwise than the other data sets, data.names=[\"{}: {}=NAME\"] says so",
                   e.what(), path, what, d, common.size() == 1 ? common.front() : "NAME OF THE OTHERS"));
      }
    };
    for (const std::string& image : names->pictures(d, settings.images)) {
      of_this_set("a camera", settings.images, [&] { set.images.push_back(set.source->field_index(image)); });
      COHORT_THROW_UNLESS(set.source->fields()[set.images.back()].kind == StepKind::kImage, "images: {}",
                          no_camera(*set.source, set.images.back(), path));
      const std::string fault = set.source->fields()[set.images.back()].fault();
      COHORT_THROW_UNLESS(fault.empty(), "images: the field {} of {} {}, so it is no camera to train from", image, path,
                          fault);
    }
    of_this_set("an action", settings.actions, [&] {
      set.action = std::make_unique<ComponentVector>(names->components(d, settings.actions), *set.source, "actions");
    });
    of_this_set("an observation", settings.proprio, [&] {
      set.proprio = std::make_unique<ComponentVector>(names->components(d, settings.proprio), *set.source, "proprio");
    });
    set.read_fields = set.images;
    for (const ComponentVector* vector : {set.action.get(), set.proprio.get()})
      for (const Component& component : vector->components()) set.read_fields.push_back(component.field());
    std::sort(set.read_fields.begin(), set.read_fields.end());
    set.read_fields.erase(std::unique(set.read_fields.begin(), set.read_fields.end()), set.read_fields.end());
    COHORT_THROW_UNLESS(
        settings.action_width == 0 || set.action->width() == settings.action_width,
        "the action of {} has {} elements, but action_width says {}: adapt actions to the data's fields "
        "and slices, or action_width",
        path, set.action->width(), settings.action_width);
    const EpisodeNotes notes(*set.source, path, settings.index_cache);
    set.rules = rules_of_set(settings.filters, d, settings.paths.size());
    set.episodes = filter_episodes(*set.source, set.rules, threads, &notes);
    std::int64_t windows = 0;
    for (const std::int64_t episode : set.episodes) {
      const auto [first, last] = window_range(set.source->steps(episode));
      std::int64_t count = std::max<std::int64_t>(0, last - first + 1);
      if (settings.windows_per_episode > 0) count = std::min(count, settings.windows_per_episode);
      set.ends.push_back(windows += count);
    }
    COHORT_THROW_UNLESS(windows > 0, "{}: no episode is long enough for a window of {} observations and {} actions",
                        path, settings.observation_steps, settings.action_steps);
    set.statistics = statistics_of(set, d);
    // Computing statistics reads every value; so does this, where they are given.
    if (!settings.given_statistics.empty() || !settings.statistics.empty()) check_values(set, notes);
    set.normalize_action =
        std::make_unique<Normalizer>(settings.action_normalization, widths_of(*set.action), set.statistics.action,
                                     settings.constant_elements, path + ": actions");
    if (set.proprio->width() > 0)
      set.normalize_proprio =
          std::make_unique<Normalizer>(settings.proprio_normalization, widths_of(*set.proprio), set.statistics.proprio,
                                       settings.constant_elements, path + ": proprio");
    if (settings.given_statistics.empty())  // else said where they were computed
      for (const auto* normalizer : {set.normalize_action.get(), set.normalize_proprio.get()})
        if (normalizer != nullptr)
          for (const std::string& note : normalizer->notes()) log::warning("{}", note);
    if (!settings.instruction.empty()) read_instructions(set, notes);
    if (const std::string line = holds_several(*set.source, set.episodes, settings.step_filter.empty()); !line.empty())
      log::warning("{}", line);
    check_first_pictures(*set.source, set.episodes, set.images, settings.missing_image == "black", threads);
    sets.push_back(std::move(set));
  }

  /// Reads the vectors of all episodes once. Throws Error at a value that is not finite or that gives no rotation,
  /// which would end the work when its window comes.
  void check_values(const Set& set, const EpisodeNotes& notes) const {
    const std::string question =
        "values of " + set.action->text() + " and " + set.proprio->text() + " in the episodes that pass" + rules(set);
    notes.answer(
        question, [](const nlohmann::json& answer) { return answer == "sound"; },
        [&] {
          parallel_for(static_cast<std::int64_t>(set.episodes.size()), threads, [&](std::int64_t i) {
            thread_local std::vector<float> rows;
            const auto episode = set.source->open(set.episodes[static_cast<std::size_t>(i)]);
            for (const ComponentVector* vector : {set.action.get(), set.proprio.get()}) {
              if (vector->width() == 0) continue;
              rows.resize(static_cast<std::size_t>(episode->steps() * vector->width()));
              vector->read(*episode, 0, episode->steps(), rows);
            }
          });
          return nlohmann::json("sound");
        });
  }

  /// Of questions about the episodes that pass the set's filters.
  static std::string rules(const Set& set) {
    std::string which;
    for (const std::string& rule : set.rules) which += ", " + rule;
    return which;
  }

  /// Names of what could tell an episode's task instead.
  static std::string texts_of(const EpisodeSource& source) {
    std::string names;
    for (const StepField& field : source.fields())
      if (field.kind == StepKind::kText) names += (names.empty() ? "texts of steps: " : ", ") + field.name;
    return names.empty() ? "the data have no text of a step" : names;
  }

  void read_instructions(Set& set, const EpisodeNotes& notes) {
    const auto sound = [&](const nlohmann::json& answer) {
      return answer.is_array() && answer.size() == set.episodes.size() &&
             std::all_of(answer.begin(), answer.end(), [](const auto& text) { return text.is_string(); });
    };
    const auto texts = notes.answer(
        "first step's " + settings.instruction + " of the episodes that pass" + rules(set), sound,
        [&] { return nlohmann::json(episode_instructions(*set.source, set.episodes, settings.instruction, threads)); });
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const auto& text = texts[i];
      COHORT_THROW_UNLESS(
          text.get_ref<const std::string&>().find_first_not_of(" \t\r\n") != std::string::npos,
          "{}: its {} is empty, and a policy that follows instructions would learn to act without one: leave such "
          "episodes out with data.filters=[\"labeled({})\"], or name another text with data.instruction ({})",
          set.source->open(set.episodes[i])->location(), settings.instruction, settings.instruction,
          texts_of(*set.source));
      const auto [known, is_new] =
          instruction_ids.try_emplace(text.get<std::string>(), static_cast<std::int32_t>(instructions.size()));
      if (is_new) instructions.push_back(known->first);
      set.instructions.push_back(known->second);
    }
  }

  /// How many of an epoch's samples each set gives: by its weight, rounded by largest remainders.
  void share_out() {
    std::int64_t all = 0;
    for (const Set& set : sets) all += set.windows();
    total = settings.samples_per_epoch > 0 ? settings.samples_per_epoch : all;
    std::vector<double> weights = settings.weights;
    if (weights.empty())
      for (const Set& set : sets) weights.push_back(static_cast<double>(set.windows()));
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    COHORT_THROW_UNLESS(sum > 0, "the weights of all data sets are 0");
    std::vector<std::pair<double, std::size_t>> remainders;
    std::int64_t given = 0;
    for (std::size_t d = 0; d < sets.size(); ++d) {
      const double share = weights[d] / sum * static_cast<double>(total);
      sets[d].samples = static_cast<std::int64_t>(std::floor(share));
      given += sets[d].samples;
      remainders.emplace_back(-(share - std::floor(share)), d);
    }
    std::sort(remainders.begin(), remainders.end());
    for (std::int64_t left = total - given; left > 0; --left)
      ++sets[remainders[static_cast<std::size_t>(total - given - left) % sets.size()].second].samples;
    std::int64_t begin = 0;
    for (Set& set : sets) {
      set.begin = begin;
      begin += set.samples;
    }
  }

  struct Place {
    std::size_t set;
    std::size_t kept;  // place among the set's episodes
    std::int64_t step;
  };

  Place locate(std::int64_t index, std::uint64_t epoch) const {
    std::size_t d = 0;
    while (d + 1 < sets.size() && index >= sets[d + 1].begin) ++d;
    const Set& set = sets[d];
    const auto windows = static_cast<std::uint64_t>(set.windows());
    auto place = static_cast<std::uint64_t>(index - set.begin);
    std::uint64_t pass = epoch;
    if (set.samples != set.windows()) {
      // The set is gone through pass by pass, each in an order of its own, wherever epochs begin and end.
      const std::uint64_t position = epoch * static_cast<std::uint64_t>(set.samples) + place;
      pass = position / windows;
      place = KeyedPermutation(windows, settings.seed, d + 1, pass).at(position % windows);
    }
    const auto found = std::upper_bound(set.ends.begin(), set.ends.end(), static_cast<std::int64_t>(place));
    const auto kept = static_cast<std::size_t>(found - set.ends.begin());
    auto window = static_cast<std::int64_t>(place) - (kept == 0 ? 0 : set.ends[kept - 1]);
    const auto [first, last] = window_range(set.source->steps(set.episodes[kept]));
    if (settings.windows_per_episode > 0 && last - first + 1 > settings.windows_per_episode)
      window = static_cast<std::int64_t>(
          KeyedPermutation(static_cast<std::uint64_t>(last - first + 1), settings.seed,
                           (static_cast<std::uint64_t>(d) + 1) << 32 | static_cast<std::uint64_t>(kept), pass)
              .at(static_cast<std::uint64_t>(window)));
    return {d, kept, first + window};
  }

  std::int64_t goal_step(std::int64_t step, std::int64_t steps, const RandomStream& random) const {
    switch (goal) {
      case Goal::kUniform: {
        // octo, goal_relabeling.uniform: from step + 1 on, the last step at the latest
        const double u = static_cast<double>(random.uniform(kGoalDraw));
        return std::min(steps - 1, static_cast<std::int64_t>(u * static_cast<double>(steps - step - 1)) + step + 1);
      }
      case Goal::kStepsAhead:
        return std::min(steps - 1, step + goal_steps);
      case Goal::kLast:
      case Goal::kNone:
        break;
    }
    return steps - 1;
  }

  void read_image(const Set& set, const Episode& episode, std::size_t camera, std::int64_t step,
                  const RandomStream& random, std::uint8_t* out) const {
    thread_local std::string scratch;
    thread_local Image decoded;
    const std::size_t field = set.images[camera];
    const StoredImage stored = episode.image(field, step, scratch);
    const auto where = [&] {
      return format("{}: {} of step {}", episode.location(), set.source->fields()[field].name, step);
    };
    if (stored.bytes.empty()) {
      COHORT_THROW_UNLESS(settings.missing_image == "black",
                          "{}: there is no image; set data.missing_image=black to go on with a black one", where());
      std::memset(out, 0, static_cast<std::size_t>(pipeline.height() * pipeline.width() * 3));
      return;
    }
    try {
      if (stored.encoding == ImageEncoding::kJpegOrPng) {
        decode_image(stored.bytes, 3, decoded);
      } else {
        decoded.resize(stored.height, stored.width, 3);
        if (stored.channels == 3)
          std::memcpy(decoded.pixels.data(), stored.bytes.data(), decoded.pixels.size());
        else
          for (std::size_t i = 0; i < stored.bytes.size(); ++i)
            std::fill_n(decoded.pixels.data() + 3 * i, 3, static_cast<std::uint8_t>(stored.bytes[i]));
      }
      if (settings.image_colours == "bgr")
        for (std::size_t i = 0; i + 2 < decoded.pixels.size(); i += 3)
          std::swap(decoded.pixels[i], decoded.pixels[i + 2]);
      pipeline.run(decoded, settings.augment, random, camera, out);
    } catch (const Error& e) {
      throw Error(format("{}: {}{}", where(), e.what(), picture_remedy(stored)));
    }
  }

  void read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const {
    const Place place = locate(index, epoch);
    const Set& set = sets[place.set];
    const std::int64_t number = set.episodes[place.kept];
    const auto pass = set.gate->enter(number, set.source->bytes_when_open(number, set.read_fields));
    const auto episode = set.source->open(number);
    const std::int64_t steps = episode->steps(), t = place.step;
    const RandomStream random(settings.seed, RandomPurpose::kAugmentation, static_cast<std::uint64_t>(index), epoch);
    const std::int64_t goal_at = goal == Goal::kNone ? steps - 1 : goal_step(t, steps, random);
    std::size_t row = 0;

    // Actions: those behind the goal repeat the goal's, as octo's chunk_act_obs does.
    const auto action = rows[row++].span<float>();
    auto* action_mask = static_cast<bool*>(rows[row++].data);
    const auto width = static_cast<std::size_t>(set.action->width());
    thread_local std::vector<std::int64_t> real_steps;
    real_steps.clear();
    for (std::int64_t k = 0; k < settings.action_steps; ++k) {
      const std::int64_t at = t + (settings.action_begin + k) * settings.stride;
      real_steps.push_back(std::clamp<std::int64_t>(at, 0, goal_at));
      action_mask[k] = at == real_steps.back();
    }
    set.action->read_at(*episode, real_steps, action);
    for (std::size_t k = 0; k < real_steps.size(); ++k)
      set.normalize_action->normalize(action.subspan(k * width, width));
    if (settings.pad_after == "zero")
      for (std::int64_t k = 0; k < settings.action_steps; ++k)
        if (t + (settings.action_begin + k) * settings.stride > goal_at) {
          const auto out = action.subspan(static_cast<std::size_t>(k) * width, width);
          std::fill(out.begin(), out.end(), 0.0f);
        }

    const auto proprio_width = static_cast<std::size_t>(set.proprio->width());
    const std::size_t proprio_row = row;
    if (proprio_width > 0) ++row;
    auto* observation_mask = static_cast<bool*>(rows[row++].data);
    const std::size_t image_row = row;
    row += set.images.size();
    const auto frame = static_cast<std::size_t>(pipeline.height() * pipeline.width() * 3);
    real_steps.clear();
    for (std::int64_t k = 0; k < settings.observation_steps; ++k)
      real_steps.push_back(std::max<std::int64_t>(t - (settings.observation_steps - 1 - k) * settings.stride, 0));
    if (proprio_width > 0) {
      const auto proprio = rows[proprio_row].span<float>();
      set.proprio->read_at(*episode, real_steps, proprio);
      for (std::size_t k = 0; k < real_steps.size(); ++k)
        set.normalize_proprio->normalize(proprio.subspan(k * proprio_width, proprio_width));
    }
    for (std::int64_t k = 0; k < settings.observation_steps; ++k) {
      const std::int64_t real = real_steps[static_cast<std::size_t>(k)];
      observation_mask[k] = t - (settings.observation_steps - 1 - k) * settings.stride == real;
      for (std::size_t camera = 0; camera < set.images.size(); ++camera) {
        auto* frames = static_cast<std::uint8_t*>(rows[image_row + camera].data);
        if (k > 0 && real == 0)  // the first frame again
          std::memcpy(frames + static_cast<std::size_t>(k) * frame, frames + static_cast<std::size_t>(k - 1) * frame,
                      frame);
        else
          read_image(set, *episode, camera, real, random, frames + static_cast<std::size_t>(k) * frame);
      }
    }
    if (goal != Goal::kNone) {
      for (std::size_t camera = 0; camera < set.images.size(); ++camera)
        read_image(set, *episode, camera, goal_at, random, static_cast<std::uint8_t*>(rows[row++].data));
      if (proprio_width > 0) {
        const auto out = rows[row++].span<float>();
        set.proprio->read(*episode, goal_at, 1, out);
        set.normalize_proprio->normalize(out);
      }
    }
    if (!settings.instruction.empty()) rows[row++].span<std::int64_t>()[0] = set.instructions[place.kept];
  }

  /// A camera whose pictures lie compressed in files that do not say who compressed them; empty: there is none.
  static std::string packed_camera(const Set& set) {
    if (set.source->states_colours()) return "";
    for (const std::size_t image : set.images)
      if (const StepField& field = set.source->fields()[image]; field.shape.front() < 0) return field.name;
    return "";
  }

  RobotDataSettings settings;
  ImagePipeline pipeline;
  int threads = 1;
  Goal goal = Goal::kNone;
  std::int64_t goal_steps = 0;
  std::optional<NamesOfSets> names;
  std::vector<Set> sets;
  std::vector<std::string> instructions;
  std::map<std::string, std::int32_t> instruction_ids;
  std::int64_t total = 0;
};

RobotWindows::RobotWindows(const RobotDataSettings& settings) : impl_(std::make_unique<Impl>(settings)) {}
RobotWindows::~RobotWindows() = default;

std::int64_t RobotWindows::size() const {
  return impl_->total;
}

std::vector<FieldSpec> RobotWindows::fields() const {
  const RobotDataSettings& s = impl_->settings;
  const std::int64_t action = impl_->sets[0].action->width(), proprio = impl_->sets[0].proprio->width();
  const std::int64_t height = impl_->pipeline.height(), width = impl_->pipeline.width();
  std::vector<FieldSpec> specs{{"action", ElementType::kFloat32, {s.action_steps, action}},
                               {"action_mask", ElementType::kBool, {s.action_steps}}};
  if (proprio > 0) specs.push_back({"proprio", ElementType::kFloat32, {s.observation_steps, proprio}});
  specs.push_back({"observation_mask", ElementType::kBool, {s.observation_steps}});
  for (const std::string& image : s.images)
    specs.push_back({"image/" + image, ElementType::kUInt8, {s.observation_steps, height, width, 3}});
  if (impl_->goal != Goal::kNone) {
    for (const std::string& image : s.images)
      specs.push_back({"goal/" + image, ElementType::kUInt8, {height, width, 3}});
    if (proprio > 0) specs.push_back({"goal_proprio", ElementType::kFloat32, {proprio}});
  }
  if (!s.instruction.empty()) specs.push_back({"instruction", ElementType::kInt64, {}});
  return specs;
}

void RobotWindows::read(std::int64_t index, std::uint64_t epoch, std::span<const ArrayView> rows) const {
  impl_->read(index, epoch, rows);
}

WindowAddress RobotWindows::address(std::int64_t index, std::uint64_t epoch) const {
  const Impl::Place place = impl_->locate(index, epoch);
  return {place.set, impl_->sets[place.set].episodes[place.kept], place.step};
}

const std::vector<std::string>& RobotWindows::instructions() const {
  return impl_->instructions;
}
std::size_t RobotWindows::sets() const {
  return impl_->sets.size();
}
const EpisodeSource& RobotWindows::source(std::size_t set) const {
  return *impl_->sets.at(set).source;
}
const std::vector<std::int64_t>& RobotWindows::episodes(std::size_t set) const {
  return impl_->sets.at(set).episodes;
}
const RobotStatistics& RobotWindows::statistics(std::size_t set) const {
  return impl_->sets.at(set).statistics;
}
const Normalizer& RobotWindows::action_normalizer(std::size_t set) const {
  return *impl_->sets.at(set).normalize_action;
}
const Normalizer& RobotWindows::proprio_normalizer(std::size_t set) const {
  COHORT_CHECK(impl_->sets.at(set).normalize_proprio, "there is no proprio");
  return *impl_->sets[set].normalize_proprio;
}

std::vector<std::string> RobotWindows::differences() const {
  constexpr double kShared = 0.5;  // of what both reach together
  constexpr std::size_t kMost = 6;
  std::vector<std::string> lines;
  std::size_t more = 0;
  const auto compare = [&](const char* what, std::size_t d, const VectorStatistics& a, const VectorStatistics& b) {
    for (std::size_t e = 0; e < std::min(a.width(), b.width()); ++e) {
      // What a few steps reach says little; where most are alike, all of it is looked at.
      const bool rare =
          a.q01.size() != a.width() || b.q01.size() != b.width() || a.q01[e] >= a.q99[e] || b.q01[e] >= b.q99[e];
      const double low_a = rare ? a.min[e] : a.q01[e], high_a = rare ? a.max[e] : a.q99[e];
      const double low_b = rare ? b.min[e] : b.q01[e], high_b = rare ? b.max[e] : b.q99[e];
      const double shared = std::min(high_a, high_b) - std::max(low_a, low_b),
                   all = std::max(high_a, high_b) - std::min(low_a, low_b);
      if (all <= 0 || shared > kShared * all) continue;
      if (lines.size() == kMost) {
        ++more;
        continue;
      }
      lines.push_back(format("{}, element {}: {:.4g} to {:.4g} in {}, {:.4g} to {:.4g} in {}", what, e, low_a, high_a,
                             impl_->settings.paths[0], low_b, high_b, impl_->settings.paths[d]));
    }
  };
  for (std::size_t d = 1; d < impl_->sets.size(); ++d) {
    compare("action", d, impl_->sets[0].statistics.action, impl_->sets[d].statistics.action);
    compare("state", d, impl_->sets[0].statistics.proprio, impl_->sets[d].statistics.proprio);
  }
  if (more > 0) lines.push_back(format("and {} more", more));
  return lines;
}

std::int64_t RobotWindows::bytes_held() const {
  std::int64_t bytes = 0;
  for (const Set& set : impl_->sets)
    bytes += set.source->bytes_held() +
             static_cast<std::int64_t>((set.episodes.capacity() + set.ends.capacity()) * sizeof(std::int64_t) +
                                       set.instructions.capacity() * sizeof(std::int32_t));
  return bytes;
}

namespace {

/// "actions 3, 5" of a vector's normalised elements that never change; "": all of them do.
std::string constant_elements_of(const char* what, const std::vector<std::string>& kinds,
                                 const std::vector<std::int64_t>& widths, const VectorStatistics& statistics) {
  std::vector<std::string> found;
  std::size_t element = 0;
  for (std::size_t c = 0; c < widths.size(); ++c)
    for (std::int64_t i = 0; i < widths[c] && element < statistics.min.size(); ++i, ++element)
      if (kinds[kinds.size() == 1 ? 0 : c] != "none" && statistics.min[element] >= statistics.max[element])
        found.push_back(format("{} (always {:g})", element, statistics.min[element]));
  return found.empty() ? "" : format("{} {}", what, join(found, ", "));
}

}  // namespace

std::string RobotWindows::summary() const {
  std::string text;
  for (std::size_t d = 0; d < impl_->sets.size(); ++d) {
    const Set& set = impl_->sets[d];
    text += format("{}: {} of {} episodes, {} windows, {} samples per epoch", impl_->settings.paths[d],
                   set.episodes.size(), set.source->size(), set.windows(), set.samples);
    if (!set.source->selection().empty()) text += ", " + set.source->selection();
    if (!set.source->skipped().empty()) text += format(", {} damaged ones left out", set.source->skipped_count());
    text += "\n";
  }
  if (impl_->settings.constant_elements != "error")
    for (std::size_t d = 0; d < impl_->sets.size(); ++d) {
      const Set& set = impl_->sets[d];
      const RobotDataSettings& s = impl_->settings;
      const std::string actions =
          constant_elements_of("actions", s.action_normalization, widths_of(*set.action), set.statistics.action);
      const std::string proprio = set.proprio->width() == 0
                                      ? ""
                                      : constant_elements_of("proprio", s.proprio_normalization,
                                                             widths_of(*set.proprio), set.statistics.proprio);
      if (actions.empty() && proprio.empty()) continue;
      text += format("{}: elements that never change: {}{}{}; {}\n", s.paths[d], actions,
                     actions.empty() || proprio.empty() ? "" : ", ", proprio,
                     s.constant_elements == "zero"
                         ? "they are learnt as 0 and answered as they are (data.constant_elements=zero)"
                         : "they are left as they are (data.constant_elements=keep)");
    }
  if (impl_->settings.image_colours == "rgb")
    for (std::size_t d = 0; d < impl_->sets.size(); ++d)
      if (const std::string packed = impl_->packed_camera(impl_->sets[d]); !packed.empty())
        text += format(
            "{}: {} holds compressed pictures: where OpenCV was given RGB to write, as in ALOHA's and RDT's "
            "recordings, "
            "red and blue have changed places, and data.image_colours=bgr puts them right\n",
            impl_->settings.paths[d], packed);
  text += format("memory: {} now, opened episodes at most {}, or the largest one\n",
                 format_bytes(static_cast<double>(bytes_held())),
                 format_bytes(static_cast<double>(impl_->settings.cache_bytes)));
  if (impl_->settings.shuffle_buffer_size > 0)
    text += format("shuffle_buffer_size {}: not needed, each epoch is a seeded permutation of all its windows\n",
                   impl_->settings.shuffle_buffer_size);
  return text;
}

}  // namespace cohort::data
