/// What is trained, whatever it learns from: a model, the loss of a batch, and what to validate. The loop and a run's
/// output need no more: supervised jobs add data sets (jobs/job.h); reinforcement learning and others bring their
/// batches by a BatchSource of their own.
///
///   class Mine final : public train::Trainable { ... };
///   train::TrainJob job = train::train_job(mine, strategy, batches);       // loss, and what checkpoints hold of it
///   job.validator = train::validator_of(mine, validation_batches, precision, device);
///   train::TrainLoop(settings, std::move(job)).run();
#pragma once
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "parallel/batch.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/validation.h"

namespace torch::nn {
class Module;
}

namespace cohort::train {

class Trainable {
 public:
  virtual ~Trainable() = default;

  /// Its word on the command line, and one line for --help and the banner.
  virtual std::string name() const = 0;
  virtual std::string summary() const = 0;
  /// A line on what it learns from, for banner and report.
  virtual std::string data_summary() const = 0;
  /// Lines on the statistics that inputs and outputs are scaled by, for the banner: which were found, which computed.
  virtual std::vector<std::string> statistics_summary() const { return {}; }

  /// The model with initial weights from `seed`, equal on every rank, on the CPU.
  virtual std::shared_ptr<torch::nn::Module> make_model(std::uint64_t seed) const = 0;
  /// What training lowers: a scalar with a graph. Called from a thread per replica.
  virtual at::Tensor loss(torch::nn::Module& model, const parallel::Batch& batch) const = 0;
  /// What the loss is, for charts.
  virtual std::string loss_name() const = 0;
  /// What a checkpoint holds beside the weights, so that they can be used alone: how inputs and outputs are scaled,
  /// say. null: nothing.
  virtual config::Json statistics() const { return nullptr; }

  /// The names of what a validation measures beside the loss.
  virtual std::vector<std::string> validation_figure_names() const { return {}; }
  /// What a validation measures beside the loss: sums over the samples of a batch and how many values they are of.
  /// validation_figure_names() for every batch, in their order. The model is in evaluation mode; random numbers are
  /// keyed by sample.
  virtual std::vector<Metric> validation_figures(torch::nn::Module&, const parallel::Batch&) const { return {}; }
};

/// A training of it, without validation and without checkpoints as long as nobody adds them. All three outlive the
/// loop.
TrainJob train_job(const Trainable& trainable, parallel::Strategy& strategy, BatchSource& batches);

/// "validation/loss" first, weighted by samples, then the trainable's validation_figures(); every sample counts once,
/// whatever the number of ranks. Both the source and the trainable must outlive it. Every validation meets the same
/// random numbers, so that figures of different steps can be compared.
Validator validator_of(const Trainable& trainable, BatchSource& source, Precision precision, c10::Device device);

}  // namespace cohort::train
