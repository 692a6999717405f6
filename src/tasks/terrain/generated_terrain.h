/// Makes a ground from settings (terrain_settings.h): one height field over all patches, and where an episode begins on
/// each. A function of the settings and their seed.
///
///   const GeneratedTerrain ground = generate_terrain(settings);
///   if (ground.is_flat()) scene.add("ground", sim::Plane{});
///   else scene.add("ground", ground.entity());
///   const auto [x, y, z] = ground.spawn(level, column);
#pragma once
#include <array>
#include <vector>

#include "sim/host/entity.h"
#include "tasks/terrain/terrain_height.h"
#include "tasks/terrain/terrain_settings.h"

namespace cohort::tasks {

/// 64 MB of heights. Whoever draws or casts rays at the ground keeps 72 bytes more for every cell.
constexpr int kMostTerrainNodes = 1 << 24;

struct GeneratedTerrain {
  int rows = 0, cols = 0;                          ///< heights along y and along x
  double cell = 0;                                 ///< m
  double x = 0, y = 0;                             ///< m: where heights[0] stands; the middle of all is the origin
  std::vector<float> heights;                      ///< (rows, cols), m
  double patch_size = 0;                           ///< m, of a patch along x
  int num_levels = 0, num_columns = 0;             ///< patches along x (difficulty) and y
  std::vector<std::array<float, 3>> spawn_points;  ///< m, (num_levels, num_columns): middle of a patch, on the ground
  std::vector<int> kinds;                          ///< (num_levels, num_columns): which of settings.sub_terrains
  std::vector<double> difficulty;                  ///< (num_levels, num_columns), 0 to 1

  const std::array<float, 3>& spawn(int level, int column) const;
  /// Whether every height is 0, so that a plane does.
  bool is_flat() const;
  /// For sim::Scene::add.
  sim::Terrain entity() const;
  /// Of these heights; valid as long as they are.
  sim::TerrainView view() const;
};

/// How many heights the grid has.
double terrain_nodes(const TerrainSettings& settings);

/// Checks the settings (check_terrain) and makes the ground.
GeneratedTerrain generate_terrain(const TerrainSettings& settings);

}  // namespace cohort::tasks
