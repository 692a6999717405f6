/// Which episodes take part, by rules written as texts:
///
///   metadata_contains(NAME, TEXT)   the episode's metadata NAME has TEXT in it: metadata_contains(
///                                   episode_metadata/file_path, /success/) is DROID's rule
///   metadata_lacks(NAME, TEXT)
///   labeled(FIELD)                  the text field is not empty in some step (octo's skip_unlabeled)
///   min_steps(N), max_steps(N)
///   finite(FIELD)                   no NaN or infinity in the field
///   max_abs(FIELD, LIMIT)           no element beyond ± LIMIT (max_action)
///   moves(FIELD, DISTANCE)          the field's first element to last spreads over more than DISTANCE: no idle
///   episodes
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

class EpisodeNotes;

/// Numbers of the episodes that pass all rules, in order. Runs on `threads` threads. With `notes`, rules that open
/// episodes are applied once and the result is kept. Throws Error naming the rule at fault, and where nothing is left.
std::vector<std::int64_t> filter_episodes(const EpisodeSource& source, const std::vector<std::string>& rules,
                                          int threads, const EpisodeNotes* notes = nullptr);

}  // namespace cohort::data
