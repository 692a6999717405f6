/// What robosuite 1.4 does to a model's file before it becomes part of a scene (robosuite/models/base.py and
/// robosuite/utils/mjcf_utils.py): default classes are written out, files get absolute paths, names get a prefix,
/// colliding geoms a colour.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "formats/xml_tree.h"

namespace cohort::tasks::libero::compose {

/// Reads a model with its default classes written out and the files of its assets as absolute paths. Throws Error.
XmlNode read_mjcf(const std::filesystem::path& file);

/// Puts the prefix before every name and every reference to one, unless it stands there.
void add_prefix(XmlNode& root, const std::string& prefix);

/// Gives geoms of group 0 this colour, and takes their material away. `keep`: the name of one that stays as it is.
void recolour_colliding(XmlNode& root, const std::string& rgba, const std::string& keep = "");

/// Adds the assets of `from` to those of `to`; of one kind and name the first stays. Two without a name are one.
void merge_assets(XmlNode& to, const XmlNode& from);

/// Adds the model `from` to `to`: what is in its world goes into `body`, which is an element of `to`; then assets,
/// actuators, sensors, tendons, equalities and contacts.
void merge_model(XmlNode& to, const XmlNode& from, const std::string& body);
/// Likewise into the world.
void merge_into_world(XmlNode& to, const XmlNode& from);

/// Names of the tree's elements by what they are, in the order of the text.
struct PartNames {
  std::vector<std::string> joints, actuators, sites, colliding_geoms;
};
/// With the prefix before them.
PartNames part_names(const XmlNode& root, const std::string& prefix);

/// Whether it is of the group of geoms that touch and are not seen.
bool is_colliding_group(const XmlNode& geom);

}  // namespace cohort::tasks::libero::compose
