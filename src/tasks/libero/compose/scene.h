/// A task's scene, put together from its problem file and the models of LIBERO and robosuite as their environment does
/// it, before anything is placed.
///
///   const ComposedScene scene = compose_scene({libero_assets, robosuite_assets}, problem);
///   write_file_atomically("scene.xml", to_xml(scene.model));   // MuJoCo reads it; files are absolute paths
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "tasks/libero/compose/arena.h"
#include "tasks/libero/compose/bddl.h"
#include "tasks/libero/compose/robot.h"
#include "tasks/libero/compose/thing.h"

namespace cohort::tasks::libero::compose {

/// A region with a site in the model.
struct ComposedSite {
  std::string name;
  std::string parent;               ///< the thing that it belongs to; empty: a zone of the arena
  std::vector<std::string> joints;  ///< direct children of the body that holds it
  std::vector<double> half_size;    ///< m
};

struct ComposedScene {
  Problem problem;
  const Arena* arena = nullptr;
  Robot robot;
  std::vector<ComposedThing> things;  ///< the objects, then the fixtures, each in the problem's order
  std::vector<ComposedSite> sites;    ///< in the problem's order of regions
  XmlNode model;

  const ComposedThing* thing(const std::string& name) const;  ///< null without one
  const ComposedSite* site(const std::string& name) const;    ///< null without one
};

struct AssetFolders {
  std::filesystem::path libero;     ///< libero/libero/assets
  std::filesystem::path robosuite;  ///< robosuite/models/assets
};

/// Throws Error naming the file or the name that is wrong.
ComposedScene compose_scene(const AssetFolders& assets, Problem problem);

}  // namespace cohort::tasks::libero::compose
