/// Composes a scene with mjSpec and compiles it, in the present process: see compile.h for the way with limits.
#pragma once
#include <span>
#include <string>

#include "sim/host/compile.h"

namespace cohort::sim::mj {

/// What a failing step says; becomes the Error of the parent.
struct CompileFailure {
  std::string message;
};

/// Throws CompileFailure with MuJoCo's message or our own. A damaged file may crash MuJoCo's parser, and MuJoCo's own
/// errors go to mju_user_error.
CompiledScene compose_scene(std::span<const EntityDeclaration> entities, std::span<const CameraOptions> cameras,
                            const SceneOptions& options);

}  // namespace cohort::sim::mj
