/// What is seen of environments and differs between them: geoms and their colours, cameras and lights. A renderer draws each
/// environment with its own; physics knows nothing of it. In host memory, whichever engine and device the scene has.
///
///   ArrayView rgba = scene.looks().values(sim::Look::kGeomRgba);   // (n_envs, geoms * 4), the model's where nobody wrote
///   set_real_at(rgba, env, 4 * geom, 1.0);                         // redder, in the next picture of this environment
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "core/array_view.h"

namespace cohort::sim {

struct VisualModel;

/// Geoms, cameras and lights are those of the model's file in its order.
enum class Look : int {
  kGeomRgba,    ///< (geoms * 4) 0 to 1: instead of the geom's colour, or its material's; textures stay
  kCameraPos,   ///< (cameras * 3) m, in the link's frame; of a camera that follows its link the place beside it
  kCameraTurn,  ///< (cameras * 3) rad: roll about x, then pitch about y, then yaw about z of the link's frame, on top of
                ///< the camera's orientation; 0 as a model has it
  kCameraFovy,  ///< (cameras) degrees, vertical; of an orthographic one m. Of one with a sensor size: the model's counts
  kLightPos,    ///< (lights * 3) m, as kCameraPos
  kLightDir,    ///< (lights * 3) of any length above 0, in the link's frame
  kLightAmbient,   ///< (lights * 3) red, green, blue
  kLightDiffuse,   ///< (lights * 3)
  kLightSpecular,  ///< (lights * 3)
  /// What Parameter::kGeomPos, kGeomQuat and kGeomSize are for the engine, for who draws: who writes there writes here.
  kGeomPos,   ///< (geoms * 3) m, in the link's frame
  kGeomQuat,  ///< (geoms * 4) unit w x y z, likewise
  kGeomSize,  ///< (geoms * 3) m, MuJoCo's geom_size
};
inline constexpr int kLookCount = 12;
/// "geom_rgba"
const char* look_name(Look look);

class Looks {
 public:
  Looks(std::shared_ptr<const VisualModel> model, int n_envs);

  /// Values of an environment.
  int size(Look look) const;
  /// The model's own.
  std::vector<float> model_values(Look look) const;
  /// (n_envs, size), float32: takes memory, with the model's values, when it is asked for the first time.
  ArrayView values(Look look);
  /// Whether environments have values of their own.
  bool has(Look look) const { return !values_[static_cast<std::size_t>(look)].empty(); }
  bool any() const;
  /// An environment's values; only of a look that environments have.
  const float* of(Look look, int env) const;

 private:
  std::shared_ptr<const VisualModel> model_;
  int n_ = 0;
  std::array<std::vector<float>, kLookCount> values_;  ///< (n_envs, size)
};

}  // namespace cohort::sim
