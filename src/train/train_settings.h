/// Everything that a user sets about a training.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/config.h"
#include "train/ema.h"
#include "train/grad_scaler.h"
#include "train/optimizer.h"
#include "train/schedule.h"

namespace cohort::train {

struct EarlyStoppingSettings {
  std::int64_t patience = 0;  ///< validations without improvement before training ends; 0: never
  double min_delta = 0.0;     ///< an improvement lowers the metric by at least this much
  std::string metric;         ///< name of the watched metric, the smaller the better; empty: the first one
  bool restore_best = true;   ///< with a patience: the model ends with the weights of the best validation

  /// The best validation's weights are wanted at the end: a checkpoint keeps them, whatever save_best says.
  bool restores() const { return patience > 0 && restore_best; }
};

struct CheckpointSettings {
  std::int64_t every = 0;         ///< optimizer steps between checkpoints; 0: none in between
  std::int64_t every_epochs = 0;  ///< epochs between checkpoints; 0: none in between
  std::int64_t keep = 3;          ///< newest checkpoints that are kept; 0: all. The best one is kept in addition.
  bool save_best = true;          ///< a checkpoint whenever the watched metric is the best so far
  std::string resume = "auto";    ///< none | auto | path of a checkpoint or of a folder of checkpoints
};

struct TrainSettings {
  std::int64_t batch_size = 32;  ///< samples per process and forward pass
  std::optional<std::int64_t>
      global_batch_size;  ///< samples per optimizer step, all processes together; sets batch_size
  std::int64_t epochs = 1;
  std::int64_t steps = 0;                        ///< above 0: optimizer steps to make, whatever `epochs` says
  std::int64_t gradient_accumulation_steps = 1;  ///< forward passes per optimizer step
  double lr = 1e-3;
  std::string learning_rate_rule = "none";  ///< none | linear | sqrt, see scaled_learning_rate
  std::int64_t lr_base_batch = 0;           ///< effective batch for which lr was chosen
  OptimizerSettings optimizer;
  ScheduleSettings schedule;
  std::string precision = "fp32";  ///< fp32 | bf16 | fp16
  /// fp32 | bf16: type of the model's weights and gradients. bf16 needs precision bf16; the optimizer then keeps float32
  /// masters, from which weights and moving average are made.
  std::string weights = "fp32";
  GradScalerSettings scaler;            ///< fp16
  double clip_norm = 0.0;               ///< gradients are scaled down to this 2-norm; 0: never
  bool gradient_checkpointing = false;  ///< recompute layers in backward: less memory, about a third more time
  /// Records whole steps as CUDA graphs where shapes and layers allow: one GPU in one process, no accumulation, no
  /// fp16.
  bool cuda_graph = false;
  EmaSettings ema;
  std::int64_t validate_every = 0;  ///< optimizer steps; 0: at the end of every epoch
  EarlyStoppingSettings early_stopping;
  CheckpointSettings checkpoint;
  std::int64_t log_every = 10;       ///< optimizer steps between reports
  std::int64_t hash_every = 500;     ///< optimizer steps between comparisons of all ranks' parameters; 0: never
  std::string non_finite = "error";  ///< error | skip: what a NaN or inf in loss or gradients leads to
  std::uint64_t seed = 1;
  bool deterministic = false;  ///< only deterministic kernels, no TF32; slower on a GPU

  /// Throws Error naming the field that is out of range.
  void validate() const;
};

/// Binds all of it in the current section (by convention "train").
void describe(config::Fields& fields, TrainSettings& settings);

/// Samples per process and forward pass: batch_size, or the share of global_batch_size. Throws Error when
/// global_batch_size does not divide, naming the nearest totals that do.
std::int64_t batch_per_process(const TrainSettings& settings, int world_size);

/// Samples per optimizer step: batch x processes x accumulation.
std::int64_t effective_batch(const TrainSettings& settings, int world_size);

}  // namespace cohort::train
