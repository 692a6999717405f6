/// How one training step is spread over devices: the common face of a single device, DataParallel and
/// DistributedDataParallel. The training loop knows only this.
#pragma once
#include <cstdint>
#include <functional>

#include <ATen/core/Tensor.h>

#include "parallel/batch.h"

namespace torch::nn {
class Module;
}

namespace cohort::parallel {

class ParameterShards;

/// The forward pass of one replica: returns the mean loss over the samples of `batch` (a scalar with a graph). Called
/// in the replica's own thread, with the replica's share of the batch on the replica's device.
using LossFunction = std::function<at::Tensor(torch::nn::Module& model, const Batch& batch)>;

struct BackwardOptions {
  /// false: gradients stay local and add up (accumulation); true: they are averaged over all processes after this
  /// backward.
  bool synchronise = true;
  /// Multiplies the loss before backward; 1 / (number of accumulated micro-batches).
  double weight = 1.0;
  /// Scalar float32 factor of a GradScaler, or undefined.
  at::Tensor loss_scale;
};

class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Forward and backward of one micro-batch of this process; adds to the gradients of module().parameters(). Returns
  /// the mean loss over the batch (scalar, detached, unscaled, on the first device). The batch may lie on the CPU.
  virtual at::Tensor forward_backward(const Batch& batch, const LossFunction& loss, const BackwardOptions& options) = 0;

  /// The model whose parameters the optimizer steps and whose state is saved: the first replica.
  virtual torch::nn::Module& module() = 0;

  /// Drops all gradients, in the way that this strategy allows (optimizers' zero_grad throws under
  /// gradient_as_bucket_view).
  virtual void zero_grad() = 0;

  /// To be called after the optimizer has changed module()'s parameters or a checkpoint has been loaded into it:
  /// DataParallel copies them to its other replicas.
  virtual void parameters_changed() = 0;

  /// Which process updates and keeps the state of which parameter; only its own then have gradients that count, and
  /// parameters_changed() sends every process's own to all. null: every process updates all of them.
  virtual const ParameterShards* shards() const { return nullptr; }

  virtual int rank() const = 0;        ///< of this process
  virtual int world_size() const = 0;  ///< processes
  virtual int replicas() const = 0;    ///< devices of this process

  /// Means over all processes, element by element; `values` is a float64 CPU tensor. One process: unchanged.
  virtual void mean_over_ranks(at::Tensor& values) = 0;
  /// Maxima over all processes.
  virtual void max_over_ranks(at::Tensor& values) = 0;
  /// Seconds so far that this process has exchanged gradients, buffers and updated parameters with others, and waited for
  /// them therein, as far as its own work did not go on meanwhile: sums that run beside the backward pass cost nothing
  /// until that ends. On a GPU the seconds that its stream stood still, told once they are over. 0 for one process.
  virtual double exchange_seconds() const { return 0.0; }
  /// Waits for all processes.
  virtual void barrier() = 0;

  /// After another process has died: drops all gradients and everything that holds on to the group of processes, so
  /// that it can be made anew (dist/recovery.h). The model keeps its weights.
  virtual void leave_group() {}
  /// Once the group stands again. Collective; sends no weights.
  virtual void join_group() {}

 protected:
  Strategy();  // calls tensors::prepare_arithmetic() (processor.h): a strategy's threads come later
};

}  // namespace cohort::parallel
