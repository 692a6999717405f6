/// What environments have of their own to be seen (sim/host/looks.h): geoms, lights and cameras, as a page takes them.
///
///   ShownLooks looks(scene, envs);
///   std::vector<OwnLook> now = looks.changed();   // those that look otherwise than at the last call
///   doc.text["looks"] = looks_json(now, doc);
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "sim/host/scene.h"

namespace cohort::view {

class BinaryDocument;

struct OwnLook {
  static constexpr std::size_t kGeomFloats = 14;
  std::size_t env = 0;          ///< place among the environments that are shown
  std::vector<float> geoms;     ///< (geoms of the scene's document, 14): pos, quat w x y z, size, rgba
  std::string lights, cameras;  ///< JSON, as the scene's document has them
};

class ShownLooks {
 public:
  ShownLooks(sim::Scene& scene, std::vector<std::int32_t> envs);
  ~ShownLooks();
  /// Of the environments whose looks have changed since the last call; at the first one all that have their own.
  std::vector<OwnLook> changed();
  /// Of all that have their own, as they look now.
  std::vector<OwnLook> all();

 private:
  struct Drawn;
  OwnLook look_of(std::size_t place);

  sim::Scene& scene_;
  std::vector<std::int32_t> envs_;
  std::vector<std::vector<float>> last_;  ///< of each environment, all values that it has
  std::unique_ptr<Drawn> drawn_;          ///< made when an environment has looks of its own
};

/// [{"env": 3, "geoms": array, "lights": [...], "cameras": [...]}, ...]
nlohmann::json looks_json(const std::vector<OwnLook>& looks, BinaryDocument& doc);

}  // namespace cohort::view
