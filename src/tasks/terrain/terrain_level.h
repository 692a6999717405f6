/// The level at which an episode begins that follows another: the curriculum of Rudin, Hoeller, Reist and Hutter,
/// "Learning to walk in minutes using massively parallel deep reinforcement learning" (CoRL 2021, section 3.2), as Isaac
/// Lab's and mjlab's `terrain_levels_vel` have it.
#pragma once

namespace cohort::tasks {

/// What an episode came to.
struct WalkedEpisode {
  int level = 0;                  ///< 0 to num_levels - 1
  double distance = 0;            ///< m from where it began, along the ground
  double commanded_distance = 0;  ///< m: commanded speed times the episode's longest time
};

/// Farther than half a patch: one level up. Otherwise less than half of what was commanded: one down. Beyond the last
/// level: any level. random: uniform in [0, 1), read in that case only. Throws nothing; levels stay in their range.
int next_terrain_level(const WalkedEpisode& episode, int num_levels, double patch_size, double random);

}  // namespace cohort::tasks
