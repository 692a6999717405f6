/// From entities to a compiled model. The only door to MuJoCo's compiler.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "sim/host/entity.h"
#include "sim/options.h"

namespace cohort::sim {

struct EntityDeclaration {
  std::string name;
  Morph morph;
};

struct CompiledScene {
  std::vector<std::uint8_t> mjb;               ///< MuJoCo's binary model
  std::vector<std::vector<int>> entity_links;  ///< per entity: its links, rising
  std::vector<std::vector<int>> entity_geoms;  ///< per entity: its geoms, those in the world itself too
  std::vector<std::string> warnings;           ///< the compiler's
};

/// Composes the entities with mjSpec and compiles them, in a child process with the limits of `options`: a crash or a
/// hang of the parser, or a file that gives nothing for 20 s, is an Error that names the model. Throws Error with
/// MuJoCo's message for an invalid file or a missing mesh, and for a URDF file given as Mjcf.
CompiledScene compile_scene(std::span<const EntityDeclaration> entities, std::span<const CameraOptions> cameras,
                            const SceneOptions& options);

}  // namespace cohort::sim
