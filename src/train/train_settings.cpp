#include "train/train_settings.h"

#include "core/error.h"
#include "train/precision.h"

namespace cohort::train {

void TrainSettings::validate() const {
  COHORT_THROW_UNLESS(batch_size >= 1, "train.batch_size = {} must be at least 1", batch_size);
  COHORT_THROW_UNLESS(!global_batch_size || *global_batch_size >= 1, "train.global_batch_size = {} must be at least 1",
                      global_batch_size.value_or(0));
  COHORT_THROW_UNLESS(steps >= 0 && epochs >= 0, "train.steps = {} and train.epochs = {} must not be negative", steps,
                      epochs);
  COHORT_THROW_UNLESS(steps > 0 || epochs > 0, "nothing to do: set train.epochs or train.steps above 0");
  COHORT_THROW_UNLESS(gradient_accumulation_steps >= 1, "train.gradient_accumulation_steps = {} must be at least 1",
                      gradient_accumulation_steps);
  COHORT_THROW_UNLESS(lr >= 0.0, "train.lr = {} must not be negative", lr);
  (void)scaled_learning_rate(lr, learning_rate_rule, 1, lr_base_batch);
  (void)parse_precision(precision);
  COHORT_THROW_UNLESS(weights == "fp32" || weights == "bf16", "train.weights = '{}' is neither fp32 nor bf16", weights);
  COHORT_THROW_UNLESS(weights == "fp32" || precision == "bf16", "train.weights=bf16 needs train.precision=bf16, not {}",
                      precision);
  COHORT_THROW_UNLESS(clip_norm >= 0.0, "train.clip_norm = {} must not be negative; 0 switches clipping off",
                      clip_norm);
  COHORT_THROW_UNLESS(validate_every >= 0 && hash_every >= 0 && checkpoint.every >= 0 && checkpoint.every_epochs >= 0 &&
                          checkpoint.keep >= 0 && early_stopping.patience >= 0,
                      "train.validate_every, train.hash_every, train.checkpoint.* and train.early_stopping.patience "
                      "must not be negative");
  COHORT_THROW_UNLESS(log_every >= 1, "train.log_every = {} must be at least 1", log_every);
  COHORT_THROW_UNLESS(early_stopping.min_delta >= 0.0, "train.early_stopping.min_delta = {} must not be negative",
                      early_stopping.min_delta);
  COHORT_THROW_UNLESS(non_finite == "error" || non_finite == "skip", "'{}' is no policy; choose error or skip",
                      non_finite);
  optimizer.validate();
  schedule.validate();
  scaler.validate();
  ema.validate();
}

void describe(config::Fields& fields, TrainSettings& s) {
  fields.add("batch_size", s.batch_size,
             "samples per process and forward pass; DataParallel splits it over its devices");
  fields.add("global_batch_size", s.global_batch_size,
             "samples per optimizer step over all processes and accumulation; divided, instead of batch_size");
  fields.add("epochs", s.epochs, "passes over the training data");
  fields.add("steps", s.steps, "above 0: optimizer steps to make, whatever epochs says");
  fields.add("gradient_accumulation_steps", s.gradient_accumulation_steps, "forward passes per optimizer step");
  fields.add("lr", s.lr, "learning rate; never scaled unless learning_rate_rule asks for it");
  fields.add_choice("learning_rate_rule", s.learning_rate_rule, {"none", "linear", "sqrt"},
                    "lr x effective batch / lr_base_batch, or its square root");
  fields.add("lr_base_batch", s.lr_base_batch, "effective batch for which lr was chosen; needed by learning_rate_rule");
  describe(fields, s.optimizer);
  describe(fields, s.schedule);
  fields.add_choice("precision", s.precision, {"fp32", "bf16", "fp16"}, "autocast; fp16 also scales the loss");
  fields.add_choice(
      "weights", s.weights, {"fp32", "bf16"},
      "type of weights and gradients; bf16 (with train.precision=bf16): the optimizer keeps float32 masters");
  fields.section("scaler", [&] { describe(fields, s.scaler); });
  fields.add("clip_norm", s.clip_norm, "gradients are scaled down to this 2-norm; 0: never");
  fields.add("gradient_checkpointing", s.gradient_checkpointing,
             "compute layers again in backward instead of keeping what they computed: less memory, more time");
  fields.add("cuda_graph", s.cuda_graph,
             "launch whole steps as CUDA graphs where shapes and layers allow: one GPU, no accumulation, no fp16");
  fields.section("ema", [&] { describe(fields, s.ema); });
  fields.add("validate_every", s.validate_every, "optimizer steps between validations; 0: at the end of every epoch");
  fields.section("early_stopping", [&] {
    fields.add("patience", s.early_stopping.patience, "validations without improvement before training ends; 0: never");
    fields.add("min_delta", s.early_stopping.min_delta, "an improvement lowers the metric by at least this much");
    fields.add("metric", s.early_stopping.metric, "watched metric, the smaller the better; empty: the first one");
    fields.add("restore_best", s.early_stopping.restore_best, "end with the weights of the best validation");
  });
  fields.section("checkpoint", [&] {
    fields.add("every", s.checkpoint.every, "optimizer steps between checkpoints; 0: none in between");
    fields.add("every_epochs", s.checkpoint.every_epochs, "epochs between checkpoints; 0: none in between");
    fields.add("keep", s.checkpoint.keep, "newest checkpoints that are kept, besides the best; 0: all");
    fields.add("save_best", s.checkpoint.save_best,
               "a checkpoint whenever the watched metric is the best so far; always with restore_best and a patience");
    fields.add("resume", s.checkpoint.resume, "none, auto (the run's last whole checkpoint), or the path of one");
  });
  fields.add("log_every", s.log_every, "optimizer steps between reports");
  fields.add(
      "hash_every", s.hash_every,
      "optimizer steps between comparisons of all ranks' parameters, beside the first and the last step; 0: never");
  fields.add_choice("non_finite", s.non_finite, {"error", "skip"},
                    "what a NaN or inf in loss or gradients does: end the training, or skip the update");
  fields.add("seed", s.seed, "of initial weights, data order and dropout");
  fields.add("deterministic", s.deterministic, "only deterministic kernels and no TF32; slower on a GPU");
}

std::int64_t batch_per_process(const TrainSettings& s, int world_size) {
  if (!s.global_batch_size) return s.batch_size;
  const std::int64_t parts = world_size * s.gradient_accumulation_steps;
  const std::int64_t total = *s.global_batch_size;
  COHORT_THROW_UNLESS(
      total % parts == 0,
      "train.global_batch_size = {} cannot be divided by {} processes x {} accumulation steps; the nearest totals "
      "that can are {} and {}",
      total, world_size, s.gradient_accumulation_steps, std::max<std::int64_t>(parts, total / parts * parts),
      (total / parts + 1) * parts);
  return total / parts;
}

std::int64_t effective_batch(const TrainSettings& s, int world_size) {
  return batch_per_process(s, world_size) * world_size * s.gradient_accumulation_steps;
}

}  // namespace cohort::train
