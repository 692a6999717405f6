#include "policies/rdt/data.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"
#include "data/instruction_texts.h"
#include "data/open_episodes.h"
#include "policies/instruction_embeddings.h"
#include "policies/rdt/files.h"
#include "policies/rdt/state_vector.h"
#include "policies/rdt/statistics.h"
#include "weights/checkpoint_folder.h"

namespace cohort::policies {
namespace {

/// Of the first data set, whose statistics the state is taken by.
std::string computed_from(const data::RobotDataSettings& data, const data::RobotWindows& train) {
  const data::RobotStatistics& statistics = train.statistics(0);
  return format("{} steps of {} episodes{}", statistics.transitions, statistics.trajectories,
                data.paths.size() > 1 ? format(" of {}, the first of {} data sets", data.paths[0], data.paths.size())
                                      : std::string());
}

/// Hz that a data set says itself (LeRobot's fps).
std::optional<double> frequency_of(const data::EpisodeSource& source) {
  const auto& names = source.metadata_names();
  if (std::find(names.begin(), names.end(), "fps") == names.end()) return std::nullopt;
  const auto episode = source.open(0);
  const std::string_view text = episode->metadata("fps");
  double fps = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), fps).ec != std::errc() || fps <= 0) return std::nullopt;
  return fps;
}

/// Takes the frequencies that the data say, unless somebody has said others: then names where they differ.
std::vector<std::string> take_frequencies(models::RdtSettings& rdt, const data::RobotDataSettings& data,
                                          const data::RobotWindows& train, bool said) {
  std::vector<std::string> lines;
  std::vector<double> all(data.paths.size(), rdt.ctrl_freq);
  for (std::size_t set = 0; set < data.paths.size(); ++set) {
    const std::optional<double> fps = frequency_of(train.source(set));
    if (!fps) continue;
    const double told = rdt.ctrl_freqs.empty() ? rdt.ctrl_freq : rdt.ctrl_freqs[set];
    all[set] = *fps;
    if (!said)
      lines.push_back(
          format("frequency: {:g} Hz, the fps of {}; model.rdt.ctrl_freq says another", *fps, data.paths[set]));
    else if (*fps != told)
      lines.push_back(format("frequency: {} is of {:g} Hz, but model.rdt.ctrl_freq{} says {}", data.paths[set], *fps,
                             rdt.ctrl_freqs.empty() ? "" : "s", told));
  }
  if (said || lines.empty()) return lines;
  if (std::adjacent_find(all.begin(), all.end(), std::not_equal_to<>()) == all.end())
    rdt.ctrl_freq = all.front();
  else
    rdt.ctrl_freqs = all;
  return lines;
}

/// The state's mean as the reference's statistics have it, in the network's units; empty: they are not asked for, or name
/// no such data set. Adds to `lines` what was found.
std::vector<float> given_state_mean(const models::RdtSettings& rdt, const data::RobotDataSettings& data,
                                    const data::RobotWindows& train, std::vector<std::string>& lines) {
  COHORT_THROW_UNLESS(rdt.data_sets.empty() || rdt.data_sets.size() == data.paths.size(),
                      "the reference's configuration names {} data sets ({}{}), but data.paths {}: write the names of "
                      "yours into its <type>_datasets.json (--dataset_type), in the order of data.paths",
                      rdt.data_sets.size(), rdt.data_sets.front(), rdt.data_sets.size() > 1 ? ", ..." : "",
                      data.paths.size());
  if (rdt.state_slots.empty()) return {};
  const std::string computed = format("state: mean and deviations computed from {}", computed_from(data, train));
  if (rdt.dataset_stat.empty()) {
    lines.push_back(computed + "; no dataset_stat.json is named (model.rdt.dataset_stat)");
    return {};
  }
  const std::vector<StatisticsName> names =
      statistics_names(data.paths[0], rdt.data_sets.empty() ? "" : rdt.data_sets.front());
  const std::optional<StatisticsName> found = find_statistics(rdt.dataset_stat, names);
  if (!found) {
    std::string sought;
    for (const StatisticsName& name : names) sought += (sought.empty() ? "" : ", ") + name.name;
    lines.push_back(format("{}; {} has none of {}", computed, rdt.dataset_stat, sought));
    return {};
  }
  const std::vector<double> mean = reference_state_mean(rdt.dataset_stat, found->name, rdt.state_slots);
  lines.push_back(format("state: mean of {} ({}) in {}", found->name, found->why, rdt.dataset_stat));
  std::string deviations = format("state: deviations computed from {}", computed_from(data, train));
  const auto name_small = [&](const char* key, const std::vector<int>& slots, const std::vector<double>& own) {
    const std::string small = small_deviations(rdt.dataset_stat, found->name, key, slots, own);
    if (!small.empty()) deviations += format("; not the file's: {}", small);
  };
  name_small("state_std", rdt.state_slots, train.statistics(0).proprio.std);
  name_small("action_std", rdt.action_slots, train.statistics(0).action.std);
  lines.push_back(deviations);
  std::vector<float> normalised(mean.begin(), mean.end());
  train.proprio_normalizer(0).normalize(normalised);
  return normalised;
}

}  // namespace

std::vector<std::string> place_rdt_numbers(models::RdtSettings& rdt, const data::RobotDataSettings& data,
                                           const std::vector<int>& state_widths, const std::vector<int>& action_widths,
                                           const data::RobotWindows& train, RdtKept keep) {
  std::vector<std::string> components = data.proprio;
  components.insert(components.end(), data.actions.begin(), data.actions.end());
  models::check_assigned(components, rdt.slots);
  const auto place = [&](const std::vector<std::string>& names, const std::vector<int>& widths, const char* what) {
    std::vector<std::vector<int>> slots;
    std::vector<int> all;
    for (std::size_t i = 0; i < names.size(); ++i) {
      slots.push_back(models::slots_of(names[i], widths[i], rdt.slots));
      all.insert(all.end(), slots.back().begin(), slots.back().end());
    }
    models::check_slots(names, slots, what);
    return all;
  };
  rdt.state_slots = place(data.proprio, state_widths, "data.proprio");
  rdt.action_slots = place(data.actions, action_widths, "data.actions");
  COHORT_THROW_UNLESS(rdt.ctrl_freqs.empty() || rdt.ctrl_freqs.size() == data.paths.size(),
                      "model.rdt.ctrl_freqs names {} frequencies for {} data sets", rdt.ctrl_freqs.size(),
                      data.paths.size());
  std::vector<std::string> lines = take_frequencies(rdt, data, train, keep.frequency);
  // What the network sees in the mean, and how far it strays.
  const data::VectorStatistics& statistics = train.statistics(0).proprio;
  std::vector<float> low(statistics.mean.begin(), statistics.mean.end()), high = low;
  for (std::size_t i = 0; i < high.size(); ++i) high[i] += static_cast<float>(statistics.std[i]);
  if (!low.empty()) {
    train.proprio_normalizer(0).normalize(low);
    train.proprio_normalizer(0).normalize(high);
  }
  rdt.state_std.clear();
  for (std::size_t i = 0; i < low.size(); ++i) rdt.state_std.push_back(static_cast<double>(high[i] - low[i]));
  if (keep.mean && rdt.state_mean.size() == low.size()) {
    if (!low.empty())
      lines.push_back(format("state: mean of the checkpoint; deviations computed from {}", computed_from(data, train)));
    return lines;
  }
  const std::vector<float> given = given_state_mean(rdt, data, train, lines);
  const std::vector<float>& mean = given.empty() ? low : given;
  rdt.state_mean.assign(mean.begin(), mean.end());
  return lines;
}

std::string before_episode_of(const std::filesystem::path& checkpoint) {
  namespace fs = std::filesystem;
  fs::path state = checkpoint / weights::kStateFile;
  std::error_code error;
  for (const fs::path& folder : {checkpoint, checkpoint / "checkpoints"}) {
    if (fs::exists(state, error)) break;
    const weights::CheckpointFolder checkpoints(folder);
    const std::vector<std::int64_t> steps = checkpoints.steps();
    if (steps.empty()) continue;
    state = checkpoints.checkpoint(checkpoints.last().value_or(steps.back())) / weights::kStateFile;
  }
  std::string said = models::RdtSettings().before_episode;
  // What is wrong with a checkpoint is said where it is read as a whole.
  if (!fs::exists(state, error)) return said;
  const config::Json json = try_json<config::Json>(read_file(state));
  if (json.is_discarded()) return said;
  const config::Json::json_pointer place("/configuration/model/rdt/before_episode");
  if (json.contains(place) && json.at(place).is_string()) said = json.at(place).get<std::string>();
  return said;
}

std::string rdt_instruction_field(const models::RdtSettings& rdt, const data::RobotDataSettings& data, bool carried) {
  const bool several = carried ? !rdt.instructions.empty() : has_instruction_texts(rdt);
  COHORT_THROW_UNLESS(rdt.instruction.empty() || several,
                      "model.rdt.instruction=\"{}\": model.rdt.lang_embed must name embeddings with their texts, as "
                      "`cohort data embed` writes them",
                      rdt.instruction);
  if (!rdt.instruction.empty()) return "";
  if (!several || !data.instruction.empty()) return data.instruction;
  const auto source = data::open_episodes(data.paths[0], {.format = data.format,
                                                          .split = data.splits.at(0),
                                                          .on_corrupt = data.on_corrupt,
                                                          .checksums = data.checksums,
                                                          .tolerance_s = data.tolerance_s,
                                                          .index_cache = data.index_cache});
  return data::has_instructions(*source, "language_instruction") ? "language_instruction" : "";
}

std::vector<std::string> told_by(const models::RdtSettings& rdt,
                                 std::initializer_list<const data::RobotWindows*> windows) {
  std::vector<std::string> told;
  if (!rdt.instruction.empty()) told.push_back(rdt.instruction);
  for (const data::RobotWindows* one : windows) {
    if (one == nullptr) continue;
    for (const std::string& text : one->instructions())
      if (std::find(told.begin(), told.end(), text) == told.end()) told.push_back(text);
  }
  return told;
}

std::vector<std::int64_t> rdt_instruction_rows(const models::RdtSettings& rdt, const data::RobotWindows& windows,
                                               bool data_say_it) {
  if (rdt.instructions.empty()) return {};
  if (!data_say_it) return {0};
  std::vector<std::int64_t> rows;
  for (const std::string& text : windows.instructions()) {
    const auto found = std::find(rdt.instructions.begin(), rdt.instructions.end(), text);
    COHORT_THROW_UNLESS(found != rdt.instructions.end(),
                        "the data tell {}, which the policy has no lang_embed of; it carries those that it was "
                        "trained with: begin a training with model.rdt.lang_embed=FILE that has it ({})",
                        shown_instruction(text), embed_command(text));
    rows.push_back(found - rdt.instructions.begin());
  }
  return rows;
}

}  // namespace cohort::policies
