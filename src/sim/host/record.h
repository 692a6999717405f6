/// Trajectories of a scene in a file: NumPy's .npz, or .csv.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>

#include "sim/host/scene.h"

namespace cohort::sim {

/// Writes time, qpos, qvel, ctrl and status of every environment to a file while the scene runs, so that a recording
/// takes room on the disk and not in memory. The file appears under its name with save(), whole; without it, nothing
/// remains. An .npz takes its room at the beginning; a .csv that a disk which becomes full cuts off is put in place
/// with its whole frames, and the Error says how many.
class StateRecorder {
 public:
  /// path ends in .npz (arrays time (T, n), qpos (T, n, nq), qvel, ctrl float32, status int32, env global ids) or .csv
  /// (a row per frame and environment). float32 also for the engine that computes in double. frames: how many there
  /// will be at most. Throws Error for another ending, a file that cannot be written, or, with the numbers, when so
  /// many frames do not fit onto the disk.
  StateRecorder(Scene& scene, std::filesystem::path path, std::int64_t frames);
  ~StateRecorder();
  StateRecorder(const StateRecorder&) = delete;
  StateRecorder& operator=(const StateRecorder&) = delete;

  /// Adds the present state. Throws Error, which says what is kept, when it cannot be written (a full disk, say);
  /// nothing may be called after that.
  void add();

  /// Puts the file in place with the frames that were added, be they fewer than announced. Throws Error, which says
  /// what is kept. Nothing may be called after it.
  void save();

  std::int64_t frames() const { return frames_; }

  class Output;

 private:
  /// Adds to an Error of `write` what is kept of `frames`.
  template <class Write>
  void or_keep(std::int64_t frames, Write write);

  Scene& scene_;
  std::filesystem::path path_;
  std::unique_ptr<Output> output_;
  std::int64_t most_frames_, frames_ = 0;
};

}  // namespace cohort::sim
