#include "tasks/terrain/terrain_level.h"

#include <algorithm>

namespace cohort::tasks {

int next_terrain_level(const WalkedEpisode& e, int num_levels, double patch_size, double random) {
  const bool up = e.distance > patch_size / 2;
  const bool down = !up && e.distance < e.commanded_distance / 2;
  const int level = e.level + (up ? 1 : 0) - (down ? 1 : 0);
  if (level >= num_levels) return std::clamp(static_cast<int>(random * num_levels), 0, num_levels - 1);
  return std::max(level, 0);
}

}  // namespace cohort::tasks
