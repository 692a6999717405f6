#include "tasks/terrain/generated_terrain.h"

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "tasks/terrain/patch.h"

namespace cohort::tasks {

namespace {

constexpr double kBase = 1.0;        ///< m below the lowest point: what falls fast does not fall through
constexpr double kSpawnReach = 0.5;  ///< m around a patch's middle: an episode begins above all of it

struct Extent {
  int nx, ny, border, cols, rows;  ///< cells of a patch and of the border; heights of all
};
Extent extent_of(const TerrainSettings& s) {
  const auto whole = [&](double length) { return static_cast<int>(std::lround(length / s.horizontal_scale)); };
  Extent e{whole(s.size[0]), whole(s.size[1]), whole(s.border_width), 0, 0};
  e.cols = s.num_rows * e.nx + 2 * e.border + 1;
  e.rows = s.num_cols * e.ny + 2 * e.border + 1;
  return e;
}

/// The sub-terrain that has the share `at` of all columns, 0 to 1.
int kind_at(const TerrainSettings& s, double at) {
  double sum = 0, so_far = 0;
  for (const SubTerrain& sub : s.sub_terrains) sum += sub.proportion;
  int last = 0;
  for (std::size_t i = 0; i < s.sub_terrains.size(); ++i) {
    if (s.sub_terrains[i].proportion <= 0) continue;
    last = static_cast<int>(i);
    so_far += s.sub_terrains[i].proportion / sum;
    if (at < so_far) return last;
  }
  return last;
}

}  // namespace

double terrain_nodes(const TerrainSettings& s) {
  const double cols = (s.num_rows * s.size[0] + 2 * s.border_width) / s.horizontal_scale + 1;
  const double rows = (s.num_cols * s.size[1] + 2 * s.border_width) / s.horizontal_scale + 1;
  return std::round(cols) * std::round(rows);
}

const std::array<float, 3>& GeneratedTerrain::spawn(int level, int column) const {
  COHORT_CHECK(level >= 0 && level < num_levels && column >= 0 && column < num_columns, "patch ({}, {}) of {} x {}",
               level, column, num_levels, num_columns);
  return spawn_points[static_cast<std::size_t>(level) * static_cast<std::size_t>(num_columns) +
                      static_cast<std::size_t>(column)];
}

bool GeneratedTerrain::is_flat() const {
  return std::ranges::all_of(heights, [](float h) { return h == 0; });
}

sim::Terrain GeneratedTerrain::entity() const {
  const auto [least, most] = std::ranges::minmax(heights);
  sim::Terrain t{.rows = rows, .cols = cols, .heights = heights};
  t.size = {(cols - 1) * cell, (rows - 1) * cell};
  // A height field has an extent above its lowest point; where all is level, MuJoCo makes all of it 0.
  t.height = most > least ? static_cast<double>(most) - static_cast<double>(least) : 1e-3;
  t.base = kBase;
  t.pose.pos = {x + t.size[0] / 2, y + t.size[1] / 2, static_cast<double>(least)};
  return t;
}

sim::TerrainView GeneratedTerrain::view() const {
  const auto step = static_cast<float>(cell);
  return {.heights = heights.data(),
          .rows = rows,
          .cols = cols,
          .x = static_cast<float>(x),
          .y = static_cast<float>(y),
          .dx = step,
          .dy = step};
}

GeneratedTerrain generate_terrain(const TerrainSettings& s) {
  check_terrain(s);
  const Extent e = extent_of(s);
  GeneratedTerrain ground;
  ground.rows = e.rows, ground.cols = e.cols, ground.cell = s.horizontal_scale;
  ground.x = -(e.cols - 1) * s.horizontal_scale / 2, ground.y = -(e.rows - 1) * s.horizontal_scale / 2;
  ground.heights.assign(static_cast<std::size_t>(e.rows) * static_cast<std::size_t>(e.cols), 0.0f);
  ground.patch_size = s.size[0];
  ground.num_levels = s.num_rows, ground.num_columns = s.num_cols;
  std::vector<float> patch(static_cast<std::size_t>(e.nx) * static_cast<std::size_t>(e.ny));
  const int reach = static_cast<int>(std::floor(kSpawnReach / s.horizontal_scale + 1e-6));
  for (int level = 0; level < s.num_rows; ++level) {
    for (int column = 0; column < s.num_cols; ++column) {
      const int id = level * s.num_cols + column;
      const RandomStream draws = terrain_draws(s.seed, id, 1);
      const auto share = static_cast<double>(draws.uniform(0));
      const double place = s.curriculum ? (column + 0.5) / s.num_cols : static_cast<double>(draws.uniform(1));
      const int kind = kind_at(s, place);
      const double raised = s.curriculum ? (level + share) / s.num_rows : share;
      const double difficulty = s.difficulty_range[0] + (s.difficulty_range[1] - s.difficulty_range[0]) * raised;
      std::ranges::fill(patch, 0.0f);
      fill_patch(s.sub_terrains[static_cast<std::size_t>(kind)],
                 {.nx = e.nx,
                  .ny = e.ny,
                  .cell = s.horizontal_scale,
                  .vertical_scale = s.vertical_scale,
                  .difficulty = difficulty,
                  .seed = s.seed,
                  .id = id},
                 patch);
      const int first_col = e.border + level * e.nx, first_row = e.border + column * e.ny;
      for (int row = 0; row < e.ny; ++row)
        std::copy_n(&patch[static_cast<std::size_t>(row) * static_cast<std::size_t>(e.nx)], e.nx,
                    &ground.heights[static_cast<std::size_t>(first_row + row) * static_cast<std::size_t>(e.cols) +
                                    static_cast<std::size_t>(first_col)]);
      const int mid_col = e.nx / 2, mid_row = e.ny / 2;
      float top =
          patch[static_cast<std::size_t>(mid_row) * static_cast<std::size_t>(e.nx) + static_cast<std::size_t>(mid_col)];
      for (int row = std::max(0, mid_row - reach); row <= std::min(e.ny - 1, mid_row + reach); ++row)
        for (int col = std::max(0, mid_col - reach); col <= std::min(e.nx - 1, mid_col + reach); ++col)
          top = std::max(
              top,
              patch[static_cast<std::size_t>(row) * static_cast<std::size_t>(e.nx) + static_cast<std::size_t>(col)]);
      ground.spawn_points.push_back({static_cast<float>(ground.x + (first_col + e.nx / 2.0) * s.horizontal_scale),
                                     static_cast<float>(ground.y + (first_row + e.ny / 2.0) * s.horizontal_scale),
                                     top});
      ground.kinds.push_back(kind);
      ground.difficulty.push_back(difficulty);
    }
  }
  return ground;
}

}  // namespace cohort::tasks
