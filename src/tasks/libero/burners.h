/// Pictures of scenes whose stove is on: LIBERO then shows a site, the glowing burner, that is hidden otherwise
/// (libero/libero/envs/objects/articulated_objects.py, FlatStove).
///
///   Burners burners(simulation);
///   if (burners.lit(qpos)) burners.draw(...);      // else the simulation's own renderer
#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "render/renderer.h"
#include "sim/host/scene.h"
#include "tasks/libero/simulation.h"

namespace cohort::tasks::libero {

class Burners {
 public:
  /// The simulation must outlive this.
  explicit Burners(const Simulation& simulation);

  bool any() const { return !knobs_.empty(); }
  /// Whether a stove is on.
  bool lit(std::span<const double> qpos) const;

  /// Draws these environments as cameras saw them, with burners shown. rgb: (environments, H, W, 3).
  void draw(const std::string& camera, std::span<const std::int32_t> envs, const render::RendererSettings& settings,
            ArrayView rgb);

 private:
  void build(const render::RendererSettings& settings);

  const Simulation& simulation_;
  std::vector<std::size_t> knobs_;  ///< qpos addresses of the stoves' joints
  std::vector<std::string> sites_;
  // Made when first needed: the same scene with the sites shown.
  std::unique_ptr<sim::Scene> scene_;
  std::unique_ptr<render::Renderer> renderer_;
};

/// The text of the scene in `folder` with these sites opaque. Throws Error for a site that it does not have.
std::string with_sites_shown(std::string xml, const std::vector<std::string>& sites,
                             const std::filesystem::path& folder);

}  // namespace cohort::tasks::libero
