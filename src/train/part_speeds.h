/// How fast the parts of a training are, each alone: the loader without a step, the step without a loader. Whichever
/// takes longer for a batch is what holds the other up.
///
///   const train::PartSpeeds s = train::measure_parts(*job, settings);
///   s.loader_s > s.step_s        // steps wait for data
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "train/jobs/job.h"
#include "train/run.h"

namespace cohort::train {

struct PartSpeedSettings {
  std::optional<std::int64_t> batch_size;  ///< of this process; unset: as the settings say
  double seconds = 3;                      ///< for each part, about; at least three batches
};

struct PartSpeeds {
  std::string job, device;
  std::int64_t batch_size = 0;
  int workers = 0;                  ///< of the loader
  std::int64_t loader_batches = 0;  ///< that were timed
  double loader_s = 0;              ///< for a batch, mean
  std::int64_t steps = 0;           ///< that were timed
  double step_s = 0;                ///< for a batch, mean: a step over the batches that it accumulates
};

/// In one process on one device; nothing is written. Batches go round the whole training set as in a training; what the
/// system has of its files in memory stays there. The step trains the same batch again and again. Throws Error as
/// run() does, and for several ranks.
PartSpeeds measure_parts(Job& job, const RunSettings& settings, const PartSpeedSettings& wanted = {});

std::string to_json(const PartSpeeds& speeds);

}  // namespace cohort::train
