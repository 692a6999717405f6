/// Episodes that hold several: their own flags say that one ended before the last step, or their times run back or leap.
/// Windows would go over such ends.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/episodes.h"

namespace cohort::data {

/// Looks at is_first, is_last, next.done, timeouts and truncated, and at dones, terminals and the like, which may tell of success:
/// where they are true in single steps, the last one among them; as far as the data have them, in up to 32 of the
/// episodes, spread evenly. "…: episode 3: next.done is true in step 99, and in 2 more before the last steps; …" of the first that holds
/// several; else empty. A flag that is true from some step to the last ends nothing before it. Likewise timestamp,
/// timestamps, stamp and time, in any unit: where it runs back, or leaps by more than 50 usual steps; timestamp also where it
/// goes on at another rate than fps says; and frame_index where rows are in another order.
/// all_steps: none are left out, so that times tell something.
std::string holds_several(const EpisodeSource& source, const std::vector<std::int64_t>& episodes,
                          bool all_steps = true);

}  // namespace cohort::data
