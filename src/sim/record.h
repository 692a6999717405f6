/// Trajectories of a scene in a file: NumPy's .npz, or .csv.
#pragma once
#include <cstdint>
#include <filesystem>
#include <vector>

#include "sim/scene.h"

namespace cohort::sim {

/// Collects time, qpos, qvel, ctrl and status of every environment; keeps them in memory until save().
class StateRecorder {
 public:
  /// path ends in .npz (arrays time (T, n), qpos (T, n, nq), qvel, ctrl float32, status int32, env global ids) or .csv
  /// (a row per frame and environment). Throws Error for another ending, or when `frames` frames would not fit into
  /// half of the memory.
  StateRecorder(Scene& scene, std::filesystem::path path, std::int64_t frames);

  /// Adds the present state.
  void add();

  /// Writes the file, whole or not at all.
  void save() const;

 private:
  std::string npz() const;
  std::string csv() const;

  Scene& scene_;
  std::filesystem::path path_;
  std::vector<float> time_, qpos_, qvel_, ctrl_;
  std::vector<std::int32_t> status_;
  std::int64_t frames_ = 0;
};

}  // namespace cohort::sim
