#include "tasks/libero/compose/scene.h"

#include <algorithm>

#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/compose/mjcf.h"

namespace cohort::tasks::libero::compose {
namespace {

/// Calls act(body) for the bodies inside of `node`, in the order of the text, until it returns false.
template <class Act>
bool each_inner_body(const XmlNode& node, const Act& act) {
  for (const XmlNode& child : node.children) {
    if (child.name == "body" && !act(child)) return false;
    if (!each_inner_body(child, act)) return false;
  }
  return true;
}

/// The thing's site of this name, as _load_sites_in_arena of LIBERO's problems finds it: with the joints of the
/// innermost body that holds it. Bodies behind the first that holds no site at all are not looked at.
void find_site(const ComposedThing& thing, const std::string& name, std::vector<ComposedSite>& found) {
  const XmlNode* outer = thing.model.child("worldbody")->child("body");
  each_inner_body(*outer, [&](const XmlNode& body) {
    bool any = false;
    for_each_node(body, [&](const XmlNode& node) {
      if (node.name != "site") return;
      any = true;
      if (node.get("name") != name) return;
      ComposedSite site{
          .name = name, .parent = thing.name, .joints = {}, .half_size = numbers_of(node.get("size"), name)};
      for (const XmlNode& child : body.children)
        if (child.name == "joint") site.joints.push_back(child.get("name"));
      found.assign(1, std::move(site));
    });
    return any;
  });
}

std::vector<ComposedSite> sites_of(const ComposedScene& scene) {
  std::vector<ComposedSite> sites;
  const std::vector<Zone> zones = zones_of(*scene.arena, scene.problem);
  for (const auto& [name, region] : scene.problem.regions) {
    const auto zone = std::find_if(zones.begin(), zones.end(), [&](const Zone& z) { return z.name == name; });
    if (zone != zones.end()) {
      sites.push_back({name, "", {}, {zone->half_size.begin(), zone->half_size.end()}});
      continue;
    }
    std::vector<ComposedSite> found;
    for (const ComposedThing& thing : scene.things) find_site(thing, name, found);
    sites.insert(sites.end(), found.begin(), found.end());
  }
  return sites;
}

}  // namespace

const ComposedThing* ComposedScene::thing(const std::string& name) const {
  const auto found = std::find_if(things.begin(), things.end(), [&](const ComposedThing& t) { return t.name == name; });
  return found == things.end() ? nullptr : &*found;
}

const ComposedSite* ComposedScene::site(const std::string& name) const {
  const auto found = std::find_if(sites.begin(), sites.end(), [&](const ComposedSite& s) { return s.name == name; });
  return found == sites.end() ? nullptr : &*found;
}

ComposedScene compose_scene(const AssetFolders& assets, Problem problem) {
  ComposedScene scene;
  scene.problem = std::move(problem);
  scene.arena = &arena_of(scene.problem.name);
  scene.robot = assemble_robot(assets.robosuite, scene.arena->mounted, scene.arena->robot);
  for (const auto& [category, names] : scene.problem.objects)
    for (const std::string& name : names) scene.things.push_back(compose_thing(assets.libero, category, name, false));
  for (const auto& [category, names] : scene.problem.fixtures)
    if (category != scene.arena->category)
      for (const std::string& name : names) scene.things.push_back(compose_thing(assets.libero, category, name, true));
  scene.sites = sites_of(scene);

  scene.model = read_mjcf(assets.robosuite / "base.xml");
  scene.model.section("option").set("timestep", "0.002");
  merge_into_world(scene.model, compose_arena(*scene.arena, scene.problem, assets.libero));
  merge_into_world(scene.model, scene.robot.model);
  for (const ComposedThing& thing : scene.things) {
    merge_assets(scene.model, thing.model);
    scene.model.section("worldbody").children.push_back(thing.body);
  }
  return scene;
}

}  // namespace cohort::tasks::libero::compose
