/// What is said about the episodes of robot data in other words in each format: what they are told to do, and how often
/// they act.
///
///   const EpisodeTask task(*source);
///   const std::string told = task.at(*source->open(0), 5);         // in step 5
///   const auto rate = stated_rate(*source);                        // 20 Hz, from "data/env_args"
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "data/episodes.h"

namespace cohort::data {

/// The instruction: a text field of the steps (task, language_instruction and the like), else what is said about the
/// episode under such a name, else in its JSON (LIBERO's problem_info).
class EpisodeTask {
 public:
  /// `fixed`: of all episodes, whatever the data say; empty: what they say. The source must outlive it.
  explicit EpisodeTask(const EpisodeSource& source, std::string fixed = "");
  /// Whether there is one.
  bool found() const { return field_ || !metadata_.empty() || !json_.empty() || !fixed_.empty(); }
  /// Of a step; empty where there is none. Throws Error where an episode's JSON does not say it.
  std::string at(const Episode& episode, std::int64_t step) const;
  /// The field that it is, and the name of what is said about the episode where that is nothing else.
  std::optional<std::size_t> field() const { return field_; }
  const std::string& metadata() const { return metadata_; }

 private:
  std::optional<std::size_t> field_;
  std::string metadata_, json_, fixed_;
};

struct StatedRate {
  double hz = 0;     ///< steps per second
  std::string name;  ///< of the metadata that says it
};
/// LeRobot's fps; else control_freq, control_hz or fps, or timestep and substeps, anywhere in the JSON that is said about
/// the first episode.
std::optional<StatedRate> stated_rate(const EpisodeSource& source);

}  // namespace cohort::data
