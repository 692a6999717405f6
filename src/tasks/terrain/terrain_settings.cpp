#include "tasks/terrain/terrain_settings.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "core/error.h"
#include "core/format.h"
#include "core/json_section.h"
#include "tasks/terrain/generated_terrain.h"

namespace cohort::tasks {

using config::Json;
using config::JsonSection;

namespace {

void take_range(JsonSection& s, const std::string& key, SubTerrain::Range& range) {
  std::vector<double> ends{range[0], range[1]};
  s.take(key, ends);
  if (ends.size() != 2)
    s.refuse(s.path() + "." + key, s.get(key), "needs two numbers: [least, greatest]");
  else
    range = {ends[0], ends[1]};
}

struct Type {
  const char* name;
  double border_width, platform_width;  ///< m, of mjlab 1.6's presets (terrains/config.py)
  void (*read)(JsonSection&, SubTerrain&);
};

void read_nothing(JsonSection&, SubTerrain&) {}
void read_stairs(JsonSection& s, SubTerrain& t) {
  take_range(s, "step_height_range", t.step_height_range);
  s.take("step_width", t.step_width), s.take("platform_width", t.platform_width);
}
void read_slope(JsonSection& s, SubTerrain& t) {
  take_range(s, "slope_range", t.slope_range);
  s.take("platform_width", t.platform_width);
}
void read_noise(JsonSection& s, SubTerrain& t) {
  take_range(s, "noise_range", t.noise_range);
  s.take("noise_step", t.noise_step), s.take("downsampled_scale", t.downsampled_scale);
  s.take("scale_with_difficulty", t.scale_with_difficulty);
  take_range(s, "rise_range", t.rise_range);
}
void read_waves(JsonSection& s, SubTerrain& t) {
  take_range(s, "amplitude_range", t.amplitude_range);
  s.take("num_waves", t.num_waves);
}
void read_grid(JsonSection& s, SubTerrain& t) {
  take_range(s, "grid_height_range", t.grid_height_range);
  s.take("grid_width", t.grid_width), s.take("platform_width", t.platform_width);
}
void read_obstacles(JsonSection& s, SubTerrain& t) {
  take_range(s, "obstacle_width_range", t.obstacle_width_range);
  take_range(s, "obstacle_height_range", t.obstacle_height_range);
  s.take("num_obstacles", t.num_obstacles), s.take("platform_width", t.platform_width);
  s.take_choice("obstacle_height_mode", t.obstacle_height_mode, {"choice", "fixed"});
}
void read_stones(JsonSection& s, SubTerrain& t) {
  take_range(s, "stone_size_range", t.stone_size_range);
  take_range(s, "stone_distance_range", t.stone_distance_range);
  s.take("stone_height", t.stone_height), s.take("stone_height_variation", t.stone_height_variation);
  s.take("stone_size_variation", t.stone_size_variation), s.take("displacement_range", t.displacement_range);
  s.take("floor_depth", t.floor_depth), s.take("platform_width", t.platform_width);
}

constexpr Type kTypes[] = {{"flat", 0, 1, read_nothing},
                           {"random_uniform", 0.25, 1, read_noise},
                           {"pyramid_stairs", 1, 3, read_stairs},
                           {"pyramid_stairs_inverted", 1, 3, read_stairs},
                           {"pyramid_slope", 0.25, 2, read_slope},
                           {"pyramid_slope_inverted", 0.25, 2, read_slope},
                           {"random_grid", 0, 1, read_grid},
                           {"discrete_obstacles", 0.25, 1, read_obstacles},
                           {"stepping_stones", 0.25, 1, read_stones},
                           {"waves", 0.25, 1, read_waves}};

const Type* find_type(const std::string& name) {
  for (const Type& type : kTypes)
    if (name == type.name) return &type;
  return nullptr;
}

std::string unknown_type(const std::string& name) {
  const std::string near = config::nearest(name, terrain_types());
  std::string all;
  for (const std::string& type : terrain_types()) all += (all.empty() ? "" : ", ") + type;
  return format("is no type of terrain{}; there are {}", near.empty() ? "" : " (is " + near + " meant?)", all);
}

SubTerrain defaults_of(const Type& type) {
  return {.type = type.name, .border_width = type.border_width, .platform_width = type.platform_width};
}

void read_sub_terrain(const Json& json, const std::string& path, SubTerrain& sub, std::vector<std::string>& refused) {
  JsonSection s(json, path, refused);
  if (!json.is_object()) return;
  std::string name = "flat";
  s.take("type", name);
  const Type* type = find_type(name);
  if (type == nullptr) {
    s.refuse(path + ".type", s.get("type"), unknown_type(name));
    for (const auto& item : json.items()) s.ignore(item.key());
    return;
  }
  sub = defaults_of(*type);
  s.take("proportion", sub.proportion);
  if (name != "flat" && name != "random_grid") s.take("border_width", sub.border_width);
  type->read(s, sub);
}

/// The smallest cell, m, of which patches are whole numbers and with which the grid is within the limit; 0: none.
double cell_that_fits(TerrainSettings t) {
  for (int n = static_cast<int>(t.size[0] / t.horizontal_scale); n >= 4; --n) {
    const double cell = t.size[0] / n, across = t.size[1] / cell;
    if (std::abs(across - std::round(across)) >= 1e-6 || across < 4 || cell > 10) continue;
    t.horizontal_scale = cell;
    if (terrain_nodes(t) <= kMostTerrainNodes) return cell;
  }
  return 0;
}

}  // namespace

const std::vector<std::string>& terrain_types() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Type& type : kTypes) all.emplace_back(type.name);
    return all;
  }();
  return names;
}

SubTerrain terrain_type(const std::string& name) {
  const Type* type = find_type(name);
  if (type == nullptr) throw Error(format("`{}` {}", name, unknown_type(name)));
  return defaults_of(*type);
}

TerrainSettings read_terrain(const Json& json, const std::string& path, std::vector<std::string>& refused) {
  TerrainSettings t;
  JsonSection s(json, path, refused);
  take_range(s, "size", t.size);
  s.take("num_rows", t.num_rows), s.take("num_cols", t.num_cols);
  s.take("border_width", t.border_width), s.take("horizontal_scale", t.horizontal_scale);
  s.take("vertical_scale", t.vertical_scale), s.take("curriculum", t.curriculum);
  take_range(s, "difficulty_range", t.difficulty_range);
  std::int64_t seed = 0;
  s.take("seed", seed);
  if (seed < 0) s.refuse(path + ".seed", s.get("seed"), "is below 0");
  t.seed = static_cast<std::uint64_t>(seed);
  if (!s.has("sub_terrains")) {
    refused.push_back(path + ".sub_terrains is missing: a list of {type, proportion, its parameters}");
    return t;
  }
  const Json& all = s.get("sub_terrains");
  if (!all.is_array() || all.empty()) {
    s.refuse(path + ".sub_terrains", all, "is no list of {type, proportion, its parameters} with an entry");
    return t;
  }
  t.sub_terrains.assign(all.size(), {});
  for (std::size_t i = 0; i < all.size(); ++i)
    read_sub_terrain(all[i], format("{}.sub_terrains[{}]", path, i), t.sub_terrains[i], refused);
  return t;
}

void check_terrain(const TerrainSettings& t) {
  const double cell = t.horizontal_scale;
  COHORT_THROW_UNLESS(cell >= 0.005 && cell <= 10, "horizontal_scale = {} m: a cell's side is from 0.005 to 10 m",
                      cell);
  COHORT_THROW_UNLESS(t.vertical_scale > 0 && t.vertical_scale <= 1,
                      "vertical_scale = {} m: the steps of height are above 0 and at most 1 m", t.vertical_scale);
  COHORT_THROW_UNLESS(t.num_rows >= 1 && t.num_cols >= 1 && t.num_rows <= 1000 && t.num_cols <= 1000,
                      "num_rows = {} and num_cols = {}: each is from 1 to 1000", t.num_rows, t.num_cols);
  COHORT_THROW_UNLESS(t.border_width >= 0 && t.border_width <= 1000, "border_width = {} m: it is from 0 to 1000 m",
                      t.border_width);
  for (const double side : t.size) {
    COHORT_THROW_UNLESS(side >= 4 * cell && side <= 1000,
                        "size = {} m: a patch's side is from four cells ({} m) to 1000 m", side, 4 * cell);
    COHORT_THROW_UNLESS(std::abs(side / cell - std::round(side / cell)) < 1e-6,
                        "size = {} m is no whole number of cells of {} m (horizontal_scale): {} m is", side, cell,
                        std::round(side / cell) * cell);
  }
  const auto [lower, upper] = t.difficulty_range;
  COHORT_THROW_UNLESS(lower >= 0 && lower <= upper && upper <= 1,
                      "difficulty_range = [{}, {}]: from 0 to 1, the lesser first", lower, upper);
  const double nodes = terrain_nodes(t);
  if (nodes > kMostTerrainNodes) {
    const double coarser = cell_that_fits(t);
    throw Error(
        format("the ground has {} heights ({} MB), and at most {} are made: take {}fewer patches or a narrower border",
               static_cast<std::int64_t>(nodes), static_cast<std::int64_t>(nodes * 4e-6), kMostTerrainNodes,
               coarser > 0 ? format("horizontal_scale = {:.9g}, ", coarser) : ""));
  }
  double sum = 0;
  COHORT_THROW_UNLESS(!t.sub_terrains.empty(), "sub_terrains is empty: give one, {{type: flat}} for level ground");
  for (std::size_t i = 0; i < t.sub_terrains.size(); ++i) {
    const SubTerrain& s = t.sub_terrains[i];
    const std::string at = format("sub_terrains[{}] ({})", i, s.type);
    COHORT_THROW_UNLESS(find_type(s.type) != nullptr, "sub_terrains[{}].type = {} {}", i, s.type, unknown_type(s.type));
    COHORT_THROW_UNLESS(s.proportion >= 0 && std::isfinite(s.proportion), "{}: proportion = {} is below 0", at,
                        s.proportion);
    sum += s.proportion;
    const double narrow = std::min(t.size[0], t.size[1]);
    // Flat ground has no platform, and a file cannot say how wide it is.
    const double platform = s.type == "flat" ? 0 : s.platform_width;
    COHORT_THROW_UNLESS(s.border_width >= 0 && 2 * s.border_width + platform <= narrow && platform >= 0,
                        "{}: two borders of {} m and a platform of {} m do not fit a patch of {} m", at, s.border_width,
                        platform, narrow);
    COHORT_THROW_UNLESS(narrow - 2 * s.border_width >= 4 * cell,
                        "{}: four cells of {} m do not fit between two borders of {} m", at, cell, s.border_width);
    const auto ordered = [&](const char* name, const SubTerrain::Range& range, double least) {
      COHORT_THROW_UNLESS(range[0] >= least && range[0] <= range[1] && range[1] <= 1000,
                          "{}: {} = [{}, {}]: the lesser comes first, from {} on", at, name, range[0], range[1], least);
    };
    ordered("step_height_range", s.step_height_range, 0);
    ordered("slope_range", s.slope_range, 0);
    ordered("noise_range", s.noise_range, -1000);
    ordered("amplitude_range", s.amplitude_range, 0);
    ordered("grid_height_range", s.grid_height_range, 0);
    ordered("obstacle_width_range", s.obstacle_width_range, 0);
    ordered("obstacle_height_range", s.obstacle_height_range, 0);
    ordered("stone_size_range", s.stone_size_range, 0.01);
    ordered("stone_distance_range", s.stone_distance_range, 0);
    // Of what the type takes.
    const auto wide = [&](const char* type, const char* name, double width) {
      if (!s.type.starts_with(type)) return;
      COHORT_THROW_UNLESS(width >= cell && width <= narrow,
                          "{}: {} = {} m: it is from one cell ({} m, horizontal_scale) to the patch ({} m)", at, name,
                          width, cell, narrow);
    };
    wide("pyramid_stairs", "step_width", s.step_width);
    wide("random_grid", "grid_width", s.grid_width);
    if (s.downsampled_scale != 0) wide("random_uniform", "downsampled_scale", s.downsampled_scale);
    COHORT_THROW_UNLESS(s.noise_step > 0 && s.num_waves > 0 && s.num_obstacles >= 0 && s.num_obstacles <= 10000,
                        "{}: noise_step = {} m and num_waves = {} are above 0, num_obstacles = {} from 0 to 10000", at,
                        s.noise_step, s.num_waves, s.num_obstacles);
    COHORT_THROW_UNLESS((s.noise_range[1] - s.noise_range[0]) / s.noise_step <= 1e6,
                        "{}: noise_step = {} m divides noise_range into more than a million heights", at, s.noise_step);
    wide("discrete_obstacles", "obstacle_width_range", s.obstacle_width_range[1]);
    wide("stepping_stones", "stone_size_range", s.stone_size_range[1]);
    COHORT_THROW_UNLESS(s.floor_depth >= 0 && s.floor_depth <= 100 && s.stone_height_variation >= 0 &&
                            s.stone_size_variation >= 0 && s.displacement_range >= 0 && std::abs(s.stone_height) <= 100,
                        "{}: floor_depth is from 0 to 100 m, and the variations of stones are from 0 m on", at);
  }
  COHORT_THROW_UNLESS(sum > 0, "sub_terrains: the proportions add up to 0: give one of them a share");
}

}  // namespace cohort::tasks
