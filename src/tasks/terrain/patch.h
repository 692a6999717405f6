/// The heights of one patch of a generated ground.
#pragma once
#include <cstdint>
#include <span>

#include "core/philox.h"
#include "tasks/terrain/terrain_settings.h"

namespace cohort::tasks {

struct PatchPlan {
  int nx = 0, ny = 0;  ///< cells along x and y, and as many heights: the last line is the next patch's first
  double cell = 0, vertical_scale = 0;  ///< m
  double difficulty = 0;                ///< 0 to 1
  std::uint64_t seed = 0;
  int id = 0;  ///< of the patch: what is drawn is a function of seed and id
};

/// What is drawn for a patch; draw: 0 its heights, 1 its type and difficulty. Episodes draw from the same purpose at
/// steps below 2^32, which these are above.
inline RandomStream terrain_draws(std::uint64_t seed, int patch, std::uint64_t draw) {
  return {seed, RandomPurpose::kEnvironment, static_cast<std::uint64_t>(patch), (std::uint64_t{0x7e} << 32) + draw};
}

/// heights: (ny, nx), m, 0 on entry.
void fill_patch(const SubTerrain& type, const PatchPlan& plan, std::span<float> heights);

}  // namespace cohort::tasks
