/// Any robot data as a LeRobot data set: the part of data/convert.h that names its features.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/convert.h"
#include "data/episodes.h"

namespace cohort::data {

/// As convert_episodes() with settings.to == "lerobot"; `episodes` are those to write.
void convert_to_lerobot(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                        const std::filesystem::path& out, const ConvertSettings& settings, ConvertReport& report);

}  // namespace cohort::data
