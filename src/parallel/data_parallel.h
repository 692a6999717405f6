/// One process, several devices: every device has a replica of the model and a thread of its own, which runs forward
/// and backward on its share of the batch; the gradients meet in the wrapped model.
///
///   parallel::DataParallel dp(model, {{DeviceKind::kCuda, 0}, {DeviceKind::kCuda, 1}});
///   for (...) {
///     dp.zero_grad();
///     dp.forward_backward(batch, loss_function, {});
///     optimizer.step();
///     dp.parameters_changed();
///   }
///
/// There is no interpreter lock, so that the threads run side by side like the processes of DistributedDataParallel.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "parallel/replicas.h"
#include "parallel/strategy.h"

namespace cohort::parallel {

struct DataParallelSettings {
  /// How gradients are added up: "shared" (CPU: every thread adds a share once all are there), "buckets" (as they come,
  /// overlapping with the backward pass), "auto" (shared on the CPU, buckets on GPUs).
  std::string reduction = "auto";
  double bucket_cap_mb = 25;       ///< MiB of gradients summed in one go, with "buckets"
  double first_bucket_cap_mb = 1;  ///< MiB of the bucket whose gradients come first
  int threads_per_replica =
      0;  ///< threads inside an operation on the CPU; 0: the caller's number divided by the replicas
  /// Buffers whose names end so never change (tables of positions, say) and are not copied before every forward pass.
  std::vector<std::string> constant_buffers;
};

void describe(config::Fields& fields, DataParallelSettings& settings);

class DataParallel : public Strategy {
 public:
  /// Wraps a model that lies on devices[0]. The devices are all CUDA devices, each once, or the CPU any number of
  /// times. Throws Error for an empty or mixed list, a model on another device, and a model that cannot be copied (see
  /// Replicas).
  DataParallel(std::shared_ptr<torch::nn::Module> model, std::vector<DeviceId> devices,
               DataParallelSettings settings = {}, const ModuleFactory& factory = {});
  ~DataParallel() override;

  /// The batch is cut into contiguous parts that differ by at most one sample; gradients and loss are those of the mean
  /// over the whole batch. Throws Error when the batch has fewer samples than there are devices, except after a larger
  /// one: then it is taken for the end of an epoch and runs on fewer devices, which the log says once. What a replica
  /// throws is rethrown as Error naming replica and device; all gradients have been dropped then.
  at::Tensor forward_backward(const Batch& batch, const LossFunction& loss, const BackwardOptions& options) override;
  torch::nn::Module& module() override;
  void zero_grad() override;
  void parameters_changed() override;
  int rank() const override { return 0; }
  int world_size() const override { return 1; }
  int replicas() const override;
  void mean_over_ranks(at::Tensor&) override {}
  void max_over_ranks(at::Tensor&) override {}
  void barrier() override {}

  /// Inference: runs `function` on every replica's share and joins the results along the first dimension on the first
  /// device, as PyTorch's DataParallel does. Without gradients.
  using ForwardFunction = std::function<at::Tensor(torch::nn::Module& model, const Batch& batch)>;
  at::Tensor forward(const Batch& batch, const ForwardFunction& function);
  /// dp.forward<Net>(x): Net is the wrapped model's type, with at::Tensor forward(at::Tensor).
  template <class Model>
  at::Tensor forward(const at::Tensor& input) {
    Batch batch;
    batch.add("input", input);
    return forward(batch, [](torch::nn::Module& model, const Batch& part) {
      return dynamic_cast<Model&>(model).forward(part.at("input"));
    });
  }

  /// Replica 1, 2, ... for inspection; its gradients are gone after every synchronised backward pass.
  torch::nn::Module& replica(std::size_t index);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Samples of part `index` of `parts`, as [begin, begin + count): contiguous, sizes differ by at most one, larger ones
/// first.
std::pair<std::int64_t, std::int64_t> share_of(std::int64_t samples, std::size_t index, std::size_t parts);

}  // namespace cohort::parallel
