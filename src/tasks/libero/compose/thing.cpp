#include "tasks/libero/compose/thing.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/compose/mjcf.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

// articulated_objects.py: default ranges, and what is_open, is_close, turn_on and turn_off compare with.
constexpr JointRule kDrawerRules[] = {{"open", "<", -0.14}, {"close", ">", 0.0}};
constexpr JointRange kDrawerRanges[] = {{"default_open_ranges", -0.16, -0.14}, {"default_close_ranges", 0.0, 0.005}};
constexpr JointRule kMicrowaveRules[] = {{"open", "<", -1.3}, {"close", ">", -0.005}};
constexpr JointRange kMicrowaveRanges[] = {{"default_open_ranges", -2.094, -1.3},
                                           {"default_close_ranges", -0.005, 0.0}};
constexpr JointRule kCabinetRules[] = {{"open", ">", 0.1}, {"close", "<", 0.0}};
constexpr JointRange kCabinetRanges[] = {{"default_open_ranges", 0.10, 0.16}, {"default_close_ranges", -0.005, 0.0}};
constexpr JointRule kFridgeRules[] = {{"open", ">", 2.0}, {"close", "<", 0.0}};
constexpr JointRange kFridgeRanges[] = {{"default_open_ranges", 2.0, 2.7}, {"default_close_ranges", -0.005, 0.0}};
constexpr JointRule kStoveRules[] = {{"turnon", ">=", 0.5}, {"turnoff", "<", 0.0}};
constexpr JointRange kStoveRanges[] = {{"default_turnon_ranges", 0.5, 2.1}, {"default_turnoff_ranges", -0.005, 0.0}};

struct Articulated {
  std::string_view category;
  std::span<const JointRule> rules;
  std::span<const JointRange> ranges;
};
constexpr Articulated kArticulated[] = {
    {"wooden_cabinet", kDrawerRules, kDrawerRanges},  {"white_cabinet", kDrawerRules, kDrawerRanges},
    {"microwave", kMicrowaveRules, kMicrowaveRanges}, {"short_cabinet", kCabinetRules, kCabinetRanges},
    {"short_fridge", kFridgeRules, kFridgeRanges},    {"flat_stove", kStoveRules, kStoveRanges}};

/// Those whose class in hope_objects.py has a dictionary of two rotations.
constexpr std::array<std::string_view, 7> kTwoRotations{
    "ketchup", "macaroni_and_cheese", "mayo", "milk", "orange_juice", "salad_dressing", "new_salad_dressing"};

/// A category's file is called as it is, but for this one.
std::string file_name(const std::string& category) {
  return category == "rack" ? "simple_rack" : category;
}
/// And so is its class, in which a digit begins no word.
std::string class_name(const std::string& category) {
  return category == "chefmate_8_frypan" ? "chefmate8_frypan" : category;
}

fs::path model_file(const fs::path& assets, const std::string& category) {
  const std::string name = file_name(category), file = name + ".xml";
  const fs::path articulated = assets / "articulated_objects" / file;
  if (fs::exists(articulated)) return articulated;
  std::vector<std::string> known;
  for (const char* family : {"stable_hope_objects", "stable_scanned_objects", "turbosquid_objects"}) {
    if (const fs::path place = assets / family / name / file; fs::exists(place)) return place;
    if (!fs::is_directory(assets / family)) continue;
    std::error_code nowhere;  // of a link
    for (const auto& entry : fs::directory_iterator(assets / family))
      if (entry.is_directory(nowhere)) known.push_back(entry.path().filename().string());
  }
  const std::string near = config::nearest(name, known);
  throw Error(
      format("there is no model {} in {} (articulated_objects, stable_hope_objects, stable_scanned_objects, "
             "turbosquid_objects){}; is the checkout of LIBERO whole?",
             file, assets.string(), near.empty() ? "" : format(", is `{}` meant?", near)));
}

/// A mark beside the object itself: "bottom_site" and its like.
double mark(XmlNode& outer, const std::string& name, std::size_t component, const fs::path& file) {
  const XmlNode* site = outer.child("site", name);
  COHORT_THROW_UNLESS(site != nullptr, "{}: its model has no site `{}`", file.string(), name);
  const std::vector<double> pos = numbers_of(site->get("pos"), file.string());
  COHORT_THROW_UNLESS(pos.size() == 3, "{}: the position of `{}` has {} numbers", file.string(), name, pos.size());
  return pos[component];
}

/// The body "object" as it goes into a scene: MujocoXMLObject of robosuite.
XmlNode body_of(const XmlNode& object, bool fixture, const fs::path& file) {
  XmlNode body = object;
  body.set("name", "main");
  int count = 0;
  for_each_node(body, [&](XmlNode& node) {
    if (node.name != "geom") return;
    const std::string group = node.get("group");
    COHORT_THROW_UNLESS(group == "0" || group == "1", "{}: a geom is of group `{}`; LIBERO's are of 0 and 1",
                        file.string(), group);
    node.attributes.emplace("name", format("g{}", count));
    ++count;
  });
  if (!fixture) body.children.push_back({"joint", {{"name", "joint0"}, {"type", "free"}, {"damping", "0.0005"}}, {}});
  body.children.push_back({"site",
                           {{"pos", "0 0 0"},
                            {"size", "0.002 0.002 0.002"},
                            {"rgba", "1 0 0 0"},
                            {"type", "sphere"},
                            {"group", "0"},
                            {"name", "default_site"}},
                           {}});
  return body;
}

}  // namespace

ComposedThing compose_thing(const fs::path& assets, const std::string& category, const std::string& name,
                            bool fixture) {
  const fs::path file = model_file(assets, category);
  ComposedThing thing{.name = name,
                      .category = class_name(category),
                      .fixture = fixture,
                      .model = read_mjcf(file),
                      .body = {},
                      .root = name + "_main",
                      .joints = {},
                      .contact_geoms = {},
                      .sites = {},
                      .rules = {},
                      .ranges = {},
                      .burner = {}};
  XmlNode* outer = nullptr;
  for (XmlNode& child : thing.model.section("worldbody").children)
    if (child.name == "body" && outer == nullptr) outer = &child;
  const XmlNode* object = outer == nullptr ? nullptr : outer->child("body", "object");
  COHORT_THROW_UNLESS(object != nullptr, "{}: its world holds no body with a body `object` in it", file.string());
  thing.radius = mark(*outer, "horizontal_radius_site", 0, file);
  thing.bottom = mark(*outer, "bottom_site", 2, file);
  thing.top = mark(*outer, "top_site", 2, file);
  thing.body = body_of(*object, fixture, file);
  const std::string prefix = name + "_";
  PartNames names = part_names(thing.body, prefix);
  thing.joints = std::move(names.joints);
  thing.contact_geoms = std::move(names.colliding_geoms);
  thing.sites = std::move(names.sites);
  add_prefix(thing.body, prefix);
  add_prefix(thing.model, prefix);
  for (const Articulated& articulated : kArticulated) {
    if (articulated.category != category) continue;
    thing.rules.assign(articulated.rules.begin(), articulated.rules.end());
    thing.ranges.assign(articulated.ranges.begin(), articulated.ranges.end());
  }
  if (category == "flat_stove") thing.burner = prefix + "burner";
  if (std::find(kTwoRotations.begin(), kTwoRotations.end(), category) != kTwoRotations.end()) thing.rotations = 2;
  return thing;
}

}  // namespace cohort::tasks::libero::compose
