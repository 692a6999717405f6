#include "tasks/libero/compose/mjcf.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "core/error.h"
#include "core/format.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

/// Attributes that hold names (MUJOCO_NAMED_ATTRIBUTES).
constexpr std::array<std::string_view, 28> kNaming{
    "class",  "childclass", "name",          "objname", "material", "texture",   "joint",
    "joint1", "joint2",     "jointinparent", "geom",    "geom1",    "geom2",     "mesh",
    "fixed",  "actuator",   "tendon",        "tendon1", "tendon2",  "slidesite", "cranksite",
    "body",   "body1",      "body2",         "hfield",  "target",   "prefix",    "site"};

using Classes = std::map<std::string, std::map<std::string, XmlNode>>;

void write_out_classes(XmlNode& node, const Classes& classes, const std::string& file) {
  if (const auto named = node.attributes.find("class"); named != node.attributes.end()) {
    const auto found = classes.find(named->second);
    COHORT_THROW_UNLESS(found != classes.end(), "{}: there is no default class `{}`", file, named->second);
    node.attributes.erase("class");
    if (const auto defaults = found->second.find(node.name); defaults != found->second.end())
      for (const auto& [key, value] : defaults->second.attributes) node.attributes.emplace(key, value);
  }
  for (XmlNode& child : node.children) write_out_classes(child, classes, file);
}

void merge_sections(XmlNode& to, const XmlNode& from) {
  merge_assets(to, from);
  for (const char* section : {"actuator", "sensor", "tendon", "equality", "contact"})
    if (const XmlNode* more = from.child(section))
      for (const XmlNode& child : more->children) to.section(section).children.push_back(child);
}

}  // namespace

XmlNode read_mjcf(const fs::path& file) {
  XmlNode root = read_xml(file);
  Classes classes;
  if (const XmlNode* defaults = root.child("default"))
    for (const XmlNode& cls : defaults->children)
      for (const XmlNode& of : cls.children) classes[cls.get("class")][of.name] = of;
  std::erase_if(root.children, [](const XmlNode& child) { return child.name == "default"; });
  write_out_classes(root, classes, file.string());
  for (XmlNode& asset : root.section("asset").children)
    if (asset.has("file")) asset.set("file", (fs::absolute(file).parent_path() / asset.get("file")).string());
  root.section("worldbody");
  return root;
}

void add_prefix(XmlNode& root, const std::string& prefix) {
  for_each_node(root, [&](XmlNode& node) {
    for (auto& [key, value] : node.attributes)
      if (std::find(kNaming.begin(), kNaming.end(), key) != kNaming.end() && !value.starts_with(prefix))
        value.insert(0, prefix);
  });
}

bool is_colliding_group(const XmlNode& geom) {
  return geom.get("group", "0") == "0";
}

void recolour_colliding(XmlNode& root, const std::string& rgba, const std::string& keep) {
  for_each_node(root, [&](XmlNode& node) {
    if (node.name != "geom" || !is_colliding_group(node) || (!keep.empty() && node.get("name") == keep)) return;
    node.set("rgba", rgba);
    node.attributes.erase("material");
  });
}

void merge_assets(XmlNode& to, const XmlNode& from) {
  const XmlNode* assets = from.child("asset");
  if (assets == nullptr) return;
  XmlNode& ours = to.section("asset");
  for (const XmlNode& asset : assets->children) {
    const bool known = std::any_of(ours.children.begin(), ours.children.end(), [&](const XmlNode& other) {
      return other.name == asset.name && other.has("name") == asset.has("name") &&
             other.get("name") == asset.get("name");
    });
    if (!known) ours.children.push_back(asset);
  }
}

void merge_model(XmlNode& to, const XmlNode& from, const std::string& body) {
  XmlNode* into = find_node(to, "body", body);
  COHORT_THROW_UNLESS(into != nullptr,
                      "there is no body `{}` that a part could be mounted on: are these the files of "
                      "robosuite 1.4.0?",
                      body);
  if (const XmlNode* world = from.child("worldbody"))
    into->children.insert(into->children.end(), world->children.begin(), world->children.end());
  merge_sections(to, from);
}

void merge_into_world(XmlNode& to, const XmlNode& from) {
  XmlNode& world = to.section("worldbody");
  if (const XmlNode* more = from.child("worldbody"))
    world.children.insert(world.children.end(), more->children.begin(), more->children.end());
  merge_sections(to, from);
}

PartNames part_names(const XmlNode& root, const std::string& prefix) {
  PartNames names;
  for_each_node(root, [&](const XmlNode& node) {
    const std::string name = prefix + node.get("name");
    if (node.name == "actuator") {
      for (const XmlNode& actuator : node.children) names.actuators.push_back(prefix + actuator.get("name"));
    } else if (node.name == "joint" && !node.has("joint") && !node.has("joint1")) {
      names.joints.push_back(name);
    } else if (node.name == "site") {
      names.sites.push_back(name);
    } else if (node.name == "geom" && is_colliding_group(node)) {
      names.colliding_geoms.push_back(name);
    }
  });
  return names;
}

}  // namespace cohort::tasks::libero::compose
