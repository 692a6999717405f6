/// `cohort simulate` within one process.
#pragma once
#include <cstdint>
#include <string>

#include "cli/model_morph.h"
#include "cli/simulate_pictures.h"

namespace cohort::cli {

struct SimulateSettings {
  std::string model;
  int n_envs = 1;
  std::int64_t steps = 1000;
  std::string backend = "auto", engine = "batched", control = "random", lanes = "auto", record, keyframe;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: see threads_for
  std::int64_t first_env = 0;
  double timestep = 0;
  int contact_capacity = 0;
  int row_space = -1;  ///< of SceneOptions
  FileOptions file_options;
  PictureSettings pictures;
  std::string devices;  ///< a process for each
  int local_rank = -1;  ///< of this process under a launcher, for the GPU that it takes
  std::string summary;  ///< of such a process: the file of its figures; of the command line: the folder of those files
};

/// Builds the scene, steps it, and says and saves what was asked for. The exit code: 0, or 128 and the signal that ended
/// it. s.threads is set. Throws Error for what the engine refuses, and where no environment is left.
int simulate(const SimulateSettings& s);

/// All cores of a process, as far as each gets enough environments: threads that meet after every short step cost more
/// than they bring (64 ants: 540,000 steps/s on one thread, 430,000 on two; 2,048: 590,000 and 1,100,000).
int threads_for(int n_envs, int processes);

/// A GPU is there, and kernels for it.
bool gpu_usable();

}  // namespace cohort::cli
