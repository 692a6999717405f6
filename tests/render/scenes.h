/// Scenes that the tests draw.
#pragma once
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>

#include "render/renderer.h"
#include "sim/host/scene.h"

namespace cohort::render::test {

inline std::string model_file(const std::string& name) {
  return std::string(COHORT_SOURCE_DIR) + "/tests/render/models/" + name;
}

inline std::unique_ptr<sim::Scene> built_scene(const std::string& file, int n_envs = 1,
                                               sim::EngineKind engine = sim::EngineKind::kBatched) {
  sim::SceneOptions options;
  options.engine = engine;
  auto scene = std::make_unique<sim::Scene>(options);
  scene->add_entity(sim::Mjcf{file});
  scene->build(n_envs);
  return scene;
}

/// The folder into which the wheels are unpacked.
inline std::filesystem::path wheels() {
  const char* interpreter = std::getenv("COHORT_PYTHON");
  if (interpreter == nullptr) return {};
  std::error_code none;
  const std::filesystem::path lib = std::filesystem::path(interpreter).parent_path().parent_path() / "lib";
  for (const auto& entry : std::filesystem::directory_iterator(lib, none)) {
    if (entry.path().filename().string().rfind("python3", 0) == 0) return entry.path() / "site-packages";
  }
  return {};
}

inline std::filesystem::path shared_data() {
  const char* folder = std::getenv("COHORT_SHARED");
  return std::filesystem::path(folder ? folder : COHORT_SOURCE_DIR "/../shared") / "data";
}

}  // namespace cohort::render::test
