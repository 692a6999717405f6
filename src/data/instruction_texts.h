/// What episodes are told to do: a text field of their steps, or a text about the whole episode.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

/// The text `name` of each of the episodes (of a field of steps: the first that is not empty). Throws Error where the data have no
/// such text, saying what they have.
std::vector<std::string> episode_instructions(const EpisodeSource& source, std::span<const std::int64_t> episodes,
                                              const std::string& name, int threads);

/// Whether the data have such a text.
bool has_instructions(const EpisodeSource& source, const std::string& name);

/// Those of all episodes, each once, in the order of the episodes.
std::vector<std::string> distinct_instructions(const EpisodeSource& source, const std::string& name, int threads);

}  // namespace cohort::data
