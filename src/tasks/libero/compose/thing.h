/// An object or fixture of LIBERO: its model's file with the names that the scene gives it, and what is known of its
/// category (libero/libero/envs/objects).
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "formats/xml_tree.h"

namespace cohort::tasks::libero::compose {

/// From which joint positions on a category counts as open, closed, on or off: {"open", "<", -0.14}.
struct JointRule {
  const char* state;
  const char* compare;
  double value;
};
/// Where a joint stands at first when the problem says so: {"default_open_ranges", -0.16, -0.14}.
struct JointRange {
  const char* name;
  double low, high;
};

struct ComposedThing {
  std::string name;      ///< "wooden_cabinet_1"
  std::string category;  ///< of LIBERO's class: "wooden_cabinet"
  bool fixture = false;
  XmlNode model;     ///< the file, with the thing's names
  XmlNode body;      ///< what goes into the scene's world
  std::string root;  ///< its name: "wooden_cabinet_1_main"
  std::vector<std::string> joints, contact_geoms, sites;
  std::vector<JointRule> rules;
  std::vector<JointRange> ranges;
  std::string burner;                      ///< a site that shows a state; empty: none
  double radius = 0, bottom = 0, top = 0;  ///< m: of a circle around it; below and above its origin
  int rotations = 1;                       ///< angles that LIBERO draws when it places one
};

/// `category`: as problems write it. assets: LIBERO's folder assets. Throws Error: no such category (with the nearest
/// that has files), a damaged file.
ComposedThing compose_thing(const std::filesystem::path& assets, const std::string& category, const std::string& name,
                            bool fixture);

}  // namespace cohort::tasks::libero::compose
