/// Where the episodes of a group end that holds several, one behind the other, as D4RL's files do (terminals, timeouts)
/// and diffusion policy's replay buffers (data/action, meta/episode_ends).
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "data/hdf5/episode_layout.h"
#include "data/hdf5/metadata.h"
#include "data/mapped_file.h"

namespace cohort::data {

struct Hdf5Cuts {
  std::vector<std::int64_t> ends;  ///< the step behind the last of each episode; the last one: all steps
  std::string how;                 ///< for people: "cut behind the steps in which terminals or timeouts is true"
  std::vector<std::string> lists;  ///< arrays of places, by their path in the file: they have no row per step
};

/// What says where episodes end, the first of these that the group has:
///   episode_ends    the step behind each episode's last; in the group, at the root or in /meta
///   episode_starts  likewise each episode's first step
///   episode_id, episode_index, traj_id, ...  a number per step: an episode ends where it changes
///   terminals, timeouts, dones, is_last, ... (and is_first)  a flag per step: D4RL's rule, the step belongs to the episode
///                   that it ends. Flags that are true in the last steps only do not cut: a success that was held.
/// One episode where there is none. Throws Error for places that are no places of the group's steps.
/// `shapes`: of all arrays of the file.
Hdf5Cuts find_cuts(const Hdf5Metadata& file, const MappedFile& mapping, const Hdf5Shapes& shapes,
                   const std::string& group, std::int64_t steps);

}  // namespace cohort::data
