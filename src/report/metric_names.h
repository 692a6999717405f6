/// Names of the metrics that the standard charts and the report know. Others may be written freely; "<group>/<name>"
/// becomes a group in TensorBoard.
#pragma once

namespace cohort::report::metric {

inline constexpr const char* kTrainLoss = "train/loss";
inline constexpr const char* kValidationLoss = "validation/loss";
inline constexpr const char* kRolloutSuccess = "rollout/success";  ///< share of the episodes, where rollouts validate
inline constexpr const char* kRolloutFailure = "rollout/failure";  ///< the rest
inline constexpr const char* kRolloutReturn = "rollout/return";    ///< mean
inline constexpr const char* kRolloutSteps = "rollout/steps";      ///< mean
inline constexpr const char* kLearningRate = "train/lr";
inline constexpr const char* kGradientNorm = "train/gradient_norm";  ///< before clipping
inline constexpr const char* kSkippedSteps = "train/skipped_steps";  ///< since the start; where steps can be skipped
inline constexpr const char* kLossScale = "train/loss_scale";        ///< fp16
inline constexpr const char* kSamplesPerSecond = "speed/samples_per_s";  ///< of the whole job
inline constexpr const char* kStepsPerSecond = "speed/steps_per_s";
inline constexpr const char* kDataTime = "speed/data_s";          ///< s a step waited for data, the slowest rank
inline constexpr const char* kExchangeTime = "speed/exchange_s";  ///< s a step exchanged gradients, mean; several ranks
inline constexpr const char* kCheckpointTime = "speed/checkpoint_s";  ///< s a step waited for checkpoints
inline constexpr const char* kComputeTime = "speed/compute_s";        ///< s of the rest of a step, the slowest rank
inline constexpr const char* kLeastComputeTime = "speed/least_compute_s";  ///< and the fastest; several ranks
inline constexpr const char* kMemory = "memory/bytes";                     ///< the rank that uses most
// Reinforcement learning; of the last hundred episodes that ended:
inline constexpr const char* kMeanReturn = "rl/mean_return";
inline constexpr const char* kEpisodeLength = "rl/mean_episode_length";  ///< mean, control steps
inline constexpr const char* kSuccess = "rl/success";                    ///< share of them that reached their goal
inline constexpr const char* kRewardTerms = "rl/reward/";  ///< and a term's name: its mean over the iteration's steps
inline constexpr const char* kTaskMetrics = "rl/metric/";  ///< and a name of the task's own metrics: its mean
inline constexpr const char* kSurrogateLoss = "rl/surrogate_loss";
inline constexpr const char* kValueLoss = "rl/value_loss";
inline constexpr const char* kEntropy = "rl/entropy";
inline constexpr const char* kKl = "rl/kl";               ///< of the last minibatch of an update
inline constexpr const char* kNoiseStd = "rl/noise_std";  ///< of the actions, mean

inline constexpr const char* kGpuUtilization = "gpu/utilization";             ///< %, mean of the job's GPUs here
inline constexpr const char* kLeastGpuUtilization = "gpu/least_utilization";  ///< %, of the idlest of them
inline constexpr const char* kGpuMemory = "gpu/memory_bytes";                 ///< of the fullest, all processes
inline constexpr const char* kGpuPower = "gpu/power_w";                       ///< W, of all of them

inline constexpr const char* kHostBusyCores = "host/busy_cores";  ///< of rank 0's machine, all processes
inline constexpr const char* kHostLoad = "host/load";             ///< mean over a minute
inline constexpr const char* kHostMemory = "host/memory_bytes";   ///< in use, all processes

}  // namespace cohort::report::metric
