/// What a training would take before it is started: memory by part, the largest batch that fits, hours on 1, 2, 4 and 8
/// devices. Shapes give weights; a few real steps give the rest.
///
///   const train::Estimate e = train::estimate(*job, settings, {.memory = 24e9});
///   std::fputs(train::to_text(e).c_str(), stdout);
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "train/run.h"

namespace cohort::train {

struct EstimateSettings {
  std::optional<double> memory;     ///< bytes that a device (or the CPU's process) may take; unset: what there is
  std::optional<double> bandwidth;  ///< bytes/s between devices; unset: 5e9 for ranks on CPUs, 20e9 for GPUs
};

/// Bytes on the device that trains, at Estimate::batch_size.
struct MemoryParts {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;
  double ema = 0;
  double activations = 0;  ///< the highest of what lives within a step
  double checkpoint = 0;   ///< host copies while one is written; on the CPU
  double loader = 0;       ///< on the CPU
  double program = 0;      ///< its libraries and the data; on a GPU the context and what the allocator keeps
  double total() const { return weights + gradients + optimizer + ema + activations + checkpoint + loader + program; }
};

/// With the same batch per device.
struct OnDevices {
  int devices = 1;
  std::int64_t effective_batch = 0;  ///< samples per optimizer step
  std::int64_t steps_per_epoch = 0;
  double step_s = 0;
  double communication = 0;  ///< its assumed share of a step, 0 to 1
  double hours_per_epoch = 0;
  double hours = 0;         ///< of the whole training
  double bucket_bytes = 0;  ///< a second copy of the gradients on every device
  double memory = 0;        ///< bytes on each device; parallel.zero divides optimizer, average and gradients
};

/// Hours for numbers of steps that people train for.
inline constexpr std::int64_t kUsualSteps[] = {5000, 10000, 20000};

struct Estimate {
  std::string job, device, precision, optimizer;
  std::int64_t batch_size = 0;  ///< of the settings, per device
  std::int64_t samples = 0;     ///< of an epoch
  MemoryParts memory;
  double activations_fixed = 0;       ///< bytes, whatever the batch
  double activations_per_sample = 0;  ///< bytes
  double loader_per_sample = 0;       ///< bytes, while the loader's budget allows
  double limit = 0;                   ///< bytes for which largest_batch is
  std::int64_t largest_batch = 0;     ///< 0: not even one sample fits
  double bandwidth = 0;               ///< bytes/s that were assumed
  double measured_step_s = 0;         ///< median on one device
  std::int64_t measured_steps = 0;    ///< that it is the median of: the first, which allocates, is none of them
  double fastest_step_s = 0, slowest_step_s = 0;
  double busy_elsewhere = 0;  ///< cores that other programs took meanwhile
  std::vector<OnDevices> on;
};

/// Loads the job's data, makes its model and trains it a few steps, in memory: nothing is written. Throws Error as
/// run() does, and for several ranks.
Estimate estimate(Job& job, const RunSettings& settings, const EstimateSettings& wanted);

std::string to_text(const Estimate& e);
std::string to_json(const Estimate& e);

/// "24G", "800M", "1.5GiB", "24000000000": bytes, K, M, G and T in powers of 1024. Throws Error.
double parse_bytes(const std::string& text);

}  // namespace cohort::train
