/// What `cohort simulate` shows: a video of the run, a picture of its end, a page that plays it.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/host/scene.h"

namespace cohort::cli {

struct PictureSettings {
  std::string video, picture;  ///< files; "": none
  std::string html;            ///< likewise
  std::string camera;          ///< "": one that sees the whole model
  std::string size;            ///< "640x480"; "": the camera's
  std::string renderer = "raycast";
  std::string device;  ///< where the ray caster draws: "cpu", "cuda", "cuda:1"; "": where the scene runs
  double fps = 30;
  std::optional<bool> shadows;
  bool own_light = false;   ///< the model says nothing of light (URDF): shadows unless it is said otherwise
  std::string geom_groups;  ///< "0,3"; "": MuJoCo's default, 0, 1 and 2
  /// m between environments along x and y, one or two numbers: they stand in one picture; empty: pictures side by side
  std::vector<double> env_spacing;
  std::array<double, 2> spacing() const {
    return env_spacing.empty() ? std::array{0.0, 0.0} : std::array{env_spacing.front(), env_spacing.back()};
  }
  bool drawn() const { return !video.empty() || !picture.empty(); }
  bool wanted() const { return drawn() || !html.empty(); }
};

/// Throws UsageError for settings that make no sense, before anything is simulated.
void check(const PictureSettings& settings);

/// Pictures of a scene while it runs. Environments stand side by side, the first sixteen of more, or with
/// PictureSettings::env_spacing in one picture, the first 256.
class SimulatePictures {
 public:
  /// Throws Error for a camera that is not there, a renderer that does not run here and a video that cannot be written.
  SimulatePictures(sim::Scene& scene, const PictureSettings& settings, int threads);
  ~SimulatePictures();
  /// After every step, and once before the first: adds the frames of the video that are due.
  void add();
  /// Puts video, picture and page in place, and says so.
  void save();

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cohort::cli
