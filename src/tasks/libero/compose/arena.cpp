#include "tasks/libero/compose/arena.h"

#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/compose/mjcf.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

using Quaternion = std::array<double, 4>;
constexpr Quaternion kFromAbove{0.6380177736282349, 0.3048497438430786, 0.30484986305236816, 0.6380177736282349};
constexpr Quaternion kFlatter{0.6182166934013367, 0.3432307541370392, 0.3432314395904541, 0.6182177066802979};
constexpr Quaternion kFront{0.56, 0.43, 0.43, 0.56}, kPaper{0.513, 0.353, 0.443, 0.645};
constexpr ArenaCamera kGallery{"galleryview",
                               {2.844547668904445, 2.1279684793440667, 3.128616846013882},
                               {0.42261379957199097, 0.23374411463737488, 0.41646939516067505, 0.7702690958976746}};
constexpr ArenaCamera kHighFront{"frontview", {1.0, 0.0, 1.48}, kFront};
constexpr ArenaCamera kTableView{"agentview", {0.6586131746834771, 0.0, 1.6103500240372423}, kFromAbove};
constexpr ArenaCamera kPaperView{"paperview", {2.1, 0.535, 2.075}, kPaper};

/// Of the tables that LIBERO builds itself, m.
constexpr std::array<double, 3> kTableHalf{0.5, 0.6, 0.025};
constexpr double kZoneHeight = 0.007;

const std::vector<Arena>& arenas() {
  static const std::vector<Arena> all{
      {.problem = "libero_kitchen_tabletop_manipulation",
       .kind = "kitchen",
       .workspace = "kitchen_table",
       .category = "kitchen_table",
       .file = "libero_kitchen_tabletop_base_style.xml",
       .floor = "gray_ceramic_tile.png",
       .wall = "yellow_linen_wall_texture.png",
       .body = "table",
       .offset = {0, 0, 0.90},
       .fixture_z = 0.01 - 0.05,
       .mounted = true,
       .robot = {-0.16 - 1.0 / 2, 0, 0},
       .zones_in_workspace = true,
       .zone_z = 0,
       .whole_objects_inside = false,
       .table_friction = 1,
       .cameras = {kTableView, kHighFront, kGallery, kPaperView}},
      {.problem = "libero_living_room_tabletop_manipulation",
       .kind = "living_room",
       .workspace = "living_room_table",
       .category = "living_room_table",
       .file = "libero_living_room_tabletop_base_style.xml",
       .floor = "seamless_wood_planks_floor.png",
       .wall = "light-gray-plaster.png",
       .body = "living_room_table",
       .offset = {0, 0, 0.41},
       .fixture_z = 0.01 - 0.024,
       .mounted = false,
       .robot = {-0.16 - 0.70 / 2, 0, 0.42},
       .zones_in_workspace = true,
       .zone_z = 0.41,
       .whole_objects_inside = false,
       .table_friction = 0,
       .cameras = {{"agentview", {0.6065773716836134, 0.0, 0.96}, kFlatter},
                   {"frontview", {1.5, 0.0, 0.9}, kFront},
                   kGallery,
                   {"paperview", {2.1, 0.735, 1.875}, kPaper}}},
      {.problem = "libero_study_tabletop_manipulation",
       .kind = "study",
       .workspace = "study_table",
       .category = "study_table",
       .file = "libero_study_base_style.xml",
       .floor = "light-gray-floor-tile.png",
       .wall = "light-gray-plaster.png",
       .body = "study_table",
       .offset = {-0.2, 0, 0.867},
       .fixture_z = 0.01 - 0.05,
       .mounted = true,
       .robot = {-0.25 - 1.0 / 2, 0, 0},
       .zones_in_workspace = true,
       .zone_z = 0.867,
       .whole_objects_inside = false,
       .table_friction = 0,
       .cameras = {{"agentview", {0.4586131746834771, 0.0, 1.6103500240372423}, kFromAbove},
                   kHighFront,
                   kGallery,
                   kPaperView}},
      {.problem = "libero_tabletop_manipulation",
       .kind = "table",
       .workspace = "main_table",
       .category = "table",
       .file = "libero_tabletop_base_style.xml",
       .floor = "light-gray-floor-tile.png",
       .wall = "light-gray-plaster.png",
       .body = "table",
       .offset = {0, 0, 0.90},
       .fixture_z = 0.01 - 0.05,
       .mounted = true,
       .robot = {-0.16 - 1.0 / 2, 0, 0},
       .zones_in_workspace = false,
       .zone_z = 0.02,
       .whole_objects_inside = true,
       .table_friction = 0.6,
       .cameras = {kTableView, kHighFront, kGallery}},
      {.problem = "libero_floor_manipulation",
       .kind = "floor",
       .workspace = "floor",
       .category = "floor",
       .file = "libero_floor_base_style.xml",
       .floor = "light-gray-floor-tile.png",
       .wall = "light-gray-plaster.png",
       .body = "floor",
       .offset = {0, 0, -0.035},
       .fixture_z = -0.025,
       .mounted = false,
       .robot = {-0.6, 0, 0},
       .zones_in_workspace = false,
       .zone_z = 0.02,
       .whole_objects_inside = true,
       .table_friction = 0,
       .cameras = {{"agentview", {0.8965773716836134, 5.216182733499864e-07, 0.65}, kFlatter},
                   {"frontview", {1.0, 0.0, 0.65}, kFront},
                   kGallery}},
  };
  return all;
}

XmlNode& needed(XmlNode* node, const std::string& what, const fs::path& file) {
  COHORT_THROW_UNLESS(node != nullptr, "{}: there is no {}; is this a checkout of LIBERO?", file.string(), what);
  return *node;
}

/// Sizes and places of a table that LIBERO builds itself: TableArena and KitchenTableArena of envs/arenas.
void build_table(XmlNode& world, const Arena& arena, const fs::path& file) {
  needed(world.child("geom", "floor"), "floor", file).set("pos", "0 0 0");
  XmlNode& table = needed(world.child("body", "table"), "body `table`", file);
  std::array<double, 3> middle{};
  for (std::size_t i = 0; i < 3; ++i) middle[i] = (i == 2 ? -kTableHalf[i] : 0.0) + arena.offset[i];
  table.set("pos", text_of(middle));
  XmlNode& colliding = needed(table.child("geom", "table_collision"), "geom `table_collision`", file);
  colliding.set("size", text_of(kTableHalf));
  colliding.set("friction", text_of(std::array<double, 3>{arena.table_friction, 0.005, 0.0001}));
  needed(table.child("geom", "table_visual"), "geom `table_visual`", file).set("size", text_of(kTableHalf));
  needed(table.child("site", "table_top"), "site `table_top`", file)
      .set("pos", text_of(std::array<double, 3>{0, 0, kTableHalf[2]}));
  constexpr std::array<std::array<double, 2>, 4> kLegs{{{1, 1}, {-1, 1}, {-1, -1}, {1, -1}}};
  const double half = (arena.offset[2] - kTableHalf[2]) / 2;
  for (std::size_t i = 0; i < kLegs.size(); ++i) {
    const std::string name = format("table_leg{}_visual", i + 1);
    XmlNode& leg = needed(table.child("geom", name), "geom `" + name + "`", file);
    leg.set("pos", text_of(std::array<double, 3>{kLegs[i][0] * kTableHalf[0] - 0.1 * kLegs[i][0],
                                                 kLegs[i][1] * kTableHalf[1] - 0.1 * kLegs[i][1], -half}));
    leg.set("size", text_of(std::array<double, 2>{0.025, half}));
  }
}

void set_texture(XmlNode& model, const std::string& texture, std::string_view picture, const fs::path& file) {
  XmlNode& node = needed(model.section("asset").child("texture", texture), "texture `" + texture + "`", file);
  node.set("file", (fs::path(node.get("file")).parent_path() / picture).string());
}

void set_camera(XmlNode& world, const ArenaCamera& camera) {
  const std::string name(camera.name);
  XmlNode* known = find_node(world, "camera", name);
  if (known == nullptr) {
    world.children.push_back({"camera", {{"name", name}}, {}});
    known = &world.children.back();
  }
  known->set("pos", text_of(camera.pos));
  known->set("quat", text_of(camera.quat));
}

bool is_zone(const Arena& arena, const std::string& region) {
  return region.find(arena.workspace) != std::string::npos;
}

}  // namespace

const Arena& arena_of(const std::string& problem) {
  std::vector<std::string> known;
  for (const Arena& arena : arenas()) {
    if (arena.problem == problem) return arena;
    known.emplace_back(arena.problem);
  }
  throw Error(
      format("scenes of the problem class {} are not composed here; those of {} are, which all 130 tasks use. "
             "scripts/export_libero.py writes the others",
             problem, join(known, ", ")));
}

std::vector<Zone> zones_of(const Arena& arena, const Problem& problem) {
  std::vector<Zone> zones;
  for (const auto& [name, region] : problem.regions) {
    if (!is_zone(arena, name)) continue;
    COHORT_THROW_UNLESS(!region.ranges.empty(), "the region {} has no range", name);
    const auto& [x0, y0, x1, y1] = region.ranges.front();
    COHORT_THROW_UNLESS(x1 >= x0 && y1 >= y0, "the range of the region {} ends before it begins", name);
    zones.push_back({name, {(x1 - x0) / 2, (y1 - y0) / 2, kZoneHeight}});
  }
  return zones;
}

XmlNode compose_arena(const Arena& arena, const Problem& problem, const fs::path& assets) {
  const fs::path file = assets / "scenes" / arena.file;
  XmlNode model = read_mjcf(file);
  XmlNode& world = model.section("worldbody");
  recolour_colliding(world, "0.5 0.5 0 1", "floor");
  if (arena.table_friction > 0) build_table(world, arena, file);
  for (const ArenaCamera& camera : arena.cameras) set_camera(world, camera);
  XmlNode& body = needed(world.child("body", std::string(arena.body)), format("body `{}`", arena.body), file);
  for (const Zone& zone : zones_of(arena, problem)) {
    const Region& region = *problem.region(zone.name);
    const auto& [x0, y0, x1, y1] = region.ranges.front();
    const double shift_x = arena.zones_in_workspace ? arena.offset[0] : 0;
    const double shift_y = arena.zones_in_workspace ? arena.offset[1] : 0;
    body.children.push_back(
        {"site",
         {{"name", zone.name},
          {"pos", text_of(std::array<double, 3>{(x1 + x0) / 2 + shift_x, (y1 + y0) / 2 + shift_y, arena.zone_z})},
          {"quat", "1 0 0 0"},
          {"rgba", text_of(region.rgba)},
          {"size", text_of(zone.half_size)},
          {"type", "box"}},
         {}});
  }
  set_texture(model, "texplane", arena.floor, file);
  set_texture(model, "tex-wall", arena.wall, file);
  return model;
}

}  // namespace cohort::tasks::libero::compose
