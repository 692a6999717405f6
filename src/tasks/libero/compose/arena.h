/// The rooms of LIBERO's tasks: floor, walls, table, cameras, and where the robot stands in them.
///
/// Sources: libero/libero/envs/problems (one class for each), envs/arenas, envs/robots.
#pragma once
#include <array>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "formats/xml_tree.h"
#include "tasks/libero/compose/bddl.h"

namespace cohort::tasks::libero::compose {

struct ArenaCamera {
  std::string_view name;
  std::array<double, 3> pos;   ///< m
  std::array<double, 4> quat;  ///< w, x, y, z
};

/// One of LIBERO's problem classes.
struct Arena {
  std::string_view problem;            ///< as problem files name it
  std::string_view kind;               ///< "kitchen"
  std::string_view workspace;          ///< its regions' names hold this: "kitchen_table"
  std::string_view category;           ///< of the fixture that the arena is itself
  std::string_view file, floor, wall;  ///< the model, and textures that its own are replaced by
  std::string_view body;               ///< holds the zones
  std::array<double, 3> offset;        ///< m: of the workspace in the world
  double fixture_z;                    ///< m: of fixtures above the offset, less their bottom
  bool mounted;                        ///< on a pedestal
  std::array<double, 3> robot;         ///< m: where the mount stands
  bool zones_in_workspace;             ///< zones' x and y count from the offset
  double zone_z;                       ///< m: of zones in `body`
  bool whole_objects_inside;           ///< objects are placed with their whole circle inside of a region
  double table_friction;               ///< sliding; 0: the table is part of the file
  std::vector<ArenaCamera> cameras;
};

/// Throws Error for one that is not composed, naming those that are.
const Arena& arena_of(const std::string& problem);

/// A region that is a place on the workspace, as a box of 7 mm half height in `body`.
struct Zone {
  std::string name;
  std::array<double, 3> half_size{};  ///< m
};
/// Those of the problem, in its order. Throws Error for one without a range.
std::vector<Zone> zones_of(const Arena& arena, const Problem& problem);

/// The arena's model with its zones. assets: LIBERO's folder. Throws Error naming a file that is missing or another.
XmlNode compose_arena(const Arena& arena, const Problem& problem, const std::filesystem::path& assets);

}  // namespace cohort::tasks::libero::compose
