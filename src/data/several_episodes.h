/// Episodes that hold several: their own flags say that one ended before the last step. Windows would go over such ends.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

/// Looks at is_first, is_last, next.done, timeouts and truncated, as far as the data have them, in up to 32 of the episodes,
/// spread evenly. "…: episode 3: next.done is true in step 99, and in 2 more before the last steps; …" of the first that holds
/// several; else empty. A flag that is true from some step to the last ends nothing before it.
std::string holds_several(const EpisodeSource& source, const std::vector<std::int64_t>& episodes);

}  // namespace cohort::data
