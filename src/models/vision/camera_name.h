/// Names of cameras among modules.
#pragma once
#include <algorithm>
#include <string>

namespace cohort::models {

/// What a camera's encoder is called among the modules, whose names hold no dots: observation/images/front of LeRobot's
/// observation.images.front.
inline std::string camera_module_name(std::string camera) {
  std::replace(camera.begin(), camera.end(), '.', '/');
  return camera;
}

}  // namespace cohort::models
