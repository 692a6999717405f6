/// Any robot data as a LeRobot data set: the part of data/convert.h that names its features.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/convert.h"
#include "data/episodes.h"
#include "data/lerobot/lerobot_episodes.h"

namespace cohort::data {

/// As convert_episodes() with settings.to == "lerobot"; `episodes` are those to write.
void convert_to_lerobot(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                        const std::filesystem::path& out, const ConvertSettings& settings, ConvertReport& report);

/// A LeRobot set, or some of its episodes.
struct LeRobotPart {
  const LeRobotEpisodes* source = nullptr;
  std::vector<std::int64_t> episodes;  ///< of the source, at least one
};

/// Writes the parts, one behind the other, as one LeRobot set of version 3.0 whose videos are the parts' files. Names,
/// types and numbers stay but for settings.lerobot.renamed, retasked and task. Throws Error where the parts differ in
/// features, rate or robot, saying how; where a name or task that is to be changed is not there.
void edit_lerobot(const std::vector<LeRobotPart>& parts, const std::filesystem::path& out, ConvertSettings settings,
                  ConvertReport& report);

}  // namespace cohort::data
