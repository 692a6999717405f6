/// A generated ground as data. The names and what they mean are those of Isaac Lab and mjlab (`TerrainGeneratorCfg` and
/// its sub-terrains) wherever both agree:
///
///   size: [8, 8]
///   num_rows: 10            # levels of difficulty
///   num_cols: 20
///   border_width: 20
///   horizontal_scale: 0.1
///   sub_terrains:
///     - {type: flat, proportion: 0.2}
///     - {type: pyramid_stairs, proportion: 0.4, step_height_range: [0, 0.1], step_width: 0.3}
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/config.h"

namespace cohort::tasks {

/// One kind of ground. Each type reads its own parameters and no others; the rest keep what terrain_type() gave them.
struct SubTerrain {
  using Range = std::array<double, 2>;  ///< at difficulty 0 and at difficulty 1, unless said otherwise

  std::string type = "flat";
  double proportion = 1;      ///< share of the columns
  double border_width = 0;    ///< m, level at the patch's edge
  double platform_width = 1;  ///< m, level in the patch's middle

  Range step_height_range{0, 0.2};  ///< pyramid_stairs, pyramid_stairs_inverted: m
  double step_width = 0.3;          ///< m
  Range slope_range{0, 0.7};        ///< pyramid_slope, pyramid_slope_inverted: rise over run
  Range noise_range{0.02, 0.1};     ///< random_uniform: m, least and greatest height
  double noise_step = 0.02;         ///< m between two of the heights that are drawn from
  double downsampled_scale = 0;     ///< m between two drawn heights, linear between them; 0: as the grid
  bool scale_with_difficulty = false;
  Range rise_range{0, 0};  ///< m from the patch's middle: level within the first, all of its height from the second on
  Range amplitude_range{0, 0.2};           ///< waves: m, from trough to crest of one direction
  int num_waves = 4;                       ///< over the patch
  double grid_width = 0.4;                 ///< random_grid: m, side of a box
  Range grid_height_range{0, 0.3};         ///< m, greatest height and depth
  Range obstacle_width_range{0.3, 1};      ///< discrete_obstacles: m, least and greatest
  Range obstacle_height_range{0.05, 0.3};  ///< m
  int num_obstacles = 40;
  std::string obstacle_height_mode = "choice";  ///< choice: of -h, -h/2, h/2, h; fixed: h
  Range stone_size_range{0.4, 0.8};             ///< stepping_stones: m; least (difficulty 1) and greatest (0)
  Range stone_distance_range{0.2, 0.5};         ///< m; the first says how many stones there are
  double stone_height = 0.2, stone_height_variation = 0.1, stone_size_variation = 0.2, displacement_range = 0.1;  ///< m
  double floor_depth = 2;                                                                                         ///< m
};

struct TerrainSettings {
  std::array<double, 2> size{8, 8};  ///< m along x and y, of one patch; whole cells
  int num_rows = 10;                 ///< along x: difficulty grows with the row
  int num_cols = 20;                 ///< along y: types by proportion
  double border_width = 20;          ///< m, level, around all patches
  double horizontal_scale = 0.1;     ///< m, a cell's side
  double vertical_scale =
      0.005;  ///< m, that heights of slopes, waves, random fields and obstacles are whole multiples of
  std::array<double, 2> difficulty_range{0, 1};
  bool curriculum = true;  ///< false: every patch's type and difficulty are drawn
  std::uint64_t seed = 0;
  std::vector<SubTerrain> sub_terrains{SubTerrain{}};
};

/// flat, random_uniform, ...
const std::vector<std::string>& terrain_types();

/// A type with its parameters as mjlab's presets have them. Throws Error for an unknown name, with the nearest.
SubTerrain terrain_type(const std::string& type);

/// Reads settings; `path` is what messages begin with. What is wrong is added to `refused`: path, value, reason.
TerrainSettings read_terrain(const config::Json& json, const std::string& path, std::vector<std::string>& refused);

/// Throws Error for numbers that make no ground: sizes, shares, ranges, a grid above the memory limit.
void check_terrain(const TerrainSettings& settings);

}  // namespace cohort::tasks
