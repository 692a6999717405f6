/// Which strategy a process trains with, decided from its environment and its devices, and said aloud.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "core/config.h"
#include "parallel/data_parallel.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/strategy.h"
#include "rank/environment.h"

namespace cohort::dist {
class Group;
}

namespace cohort::parallel {

enum class Mode { kSingleDevice, kDataParallel, kDistributedDataParallel };

/// "single device", "DataParallel", "DistributedDataParallel".
const char* to_string(Mode mode);

/// What the plan depends on among the settings of a training job.
struct PlanSettings {
  std::string mode = "auto";     ///< auto, single, dp or ddp
  std::int64_t batch_size = 32;  ///< samples per process and step (train.batch_size)
  std::optional<std::int64_t>
      global_batch_size;          ///< samples of all processes per optimizer step, instead (train.global_batch_size)
  std::int64_t accumulation = 1;  ///< backward passes per optimizer step
  int workers = 0;                ///< loader threads per process
  int zero = 0;                   ///< StrategySettings::zero
};

struct PlanInputs {
  rank::Environment environment;
  /// Devices that this process may use: the visible accelerators of the wanted backend, or one or more times the CPU.
  std::vector<DeviceId> devices;
  int cores = 0;  ///< of this node that the job may use; 0: ask the system
};

struct Plan {
  Mode mode = Mode::kSingleDevice;
  rank::Environment environment;
  std::vector<DeviceId> devices;  ///< of this process: one, or all of a DataParallel
  std::int64_t batch_size = 0;    ///< samples per process and backward pass
  std::int64_t accumulation = 1;
  std::int64_t effective_batch = 0;   ///< batch_size × processes × accumulation
  std::vector<std::string> lines;     ///< for the banner: what was chosen and why
  std::vector<std::string> warnings;  ///< for the log, with the remedy
};

/// The device of a process that is one of several on its node: the one of its local rank, or the only one it sees. Throws
/// Error where the node shows fewer devices than it has processes.
DeviceId device_of_rank(const PlanInputs& inputs);

/// Decides. Several processes: DistributedDataParallel, one device each. One process: DataParallel over its devices
/// when there are several, else a single device. Throws Error naming the setting when mode and environment contradict
/// each other, when there are fewer devices than processes on this node, or when global_batch_size does not divide
/// evenly (with the nearest values that do).
Plan make_plan(const PlanInputs& inputs, const PlanSettings& settings);

/// One line per process: "rank 1 on host b (pid 71): cuda:1, world_size=2". Collective; complete on every rank.
std::vector<std::string> world_lines(const Plan& plan, dist::Group& group);

struct StrategySettings {
  DdpSettings ddp{.gradient_as_bucket_view = true};
  DataParallelSettings dp;
  /// What the processes of DistributedDataParallel divide among them: 0 nothing, 1 the optimizer's state (ZeRO 1), 2 the
  /// gradients, too (ZeRO 2). A single process has nobody to divide with.
  int zero = 0;
};

/// Moves the model to the plan's first device and wraps it. `group` is needed for DistributedDataParallel only.
/// `factory` lets DataParallel copy models that cannot clone themselves.
std::unique_ptr<Strategy> make_strategy(const Plan& plan, std::shared_ptr<torch::nn::Module> model,
                                        std::shared_ptr<dist::Group> group, const StrategySettings& settings = {},
                                        const ModuleFactory& factory = {});

}  // namespace cohort::parallel
