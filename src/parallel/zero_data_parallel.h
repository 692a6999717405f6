/// DistributedDataParallel whose processes divide the optimizer's state (ZeRO 1) and the gradients, too (ZeRO 2), among
/// them. A process updates the parameters that shards() gives it; parameters_changed() then sends them to all. The
/// numbers are those of DistributedDataParallel: each parameter's gradient, update and state is computed as there.
///
///   ZeroDataParallel zero(model, group, /*stage=*/2, ddp_settings);
///   zero.forward_backward(batch, loss, {});
///   optimizer_of_own_parameters.step(lr);        // those that zero.shards()->owns()
///   zero.parameters_changed();
#pragma once
#include <memory>
#include <optional>

#include "parallel/distributed_data_parallel.h"
#include "parallel/exchange_timer.h"
#include "parallel/gradient_shards.h"
#include "parallel/parameter_shards.h"

namespace cohort::parallel {

class ZeroDataParallel final : public Strategy {
 public:
  /// As DistributedDataParallel's constructor; stage 1 or 2. Collective. Throws Error for settings that stage 2 has no
  /// use for: find_unused_parameters, static_graph, compression.
  ZeroDataParallel(std::shared_ptr<torch::nn::Module> model, std::shared_ptr<dist::Group> group, int stage,
                   DdpSettings settings = {});
  ~ZeroDataParallel() override;

  at::Tensor forward_backward(const Batch& batch, const LossFunction& loss, const BackwardOptions& options) override;
  torch::nn::Module& module() override { return *model_; }
  void zero_grad() override;
  /// Everybody gets the owners' parameters. Collective.
  void parameters_changed() override;
  const ParameterShards* shards() const override { return shards_.get(); }
  int rank() const override { return group_->rank(); }
  int world_size() const override { return group_->world_size(); }
  int replicas() const override { return 1; }
  void mean_over_ranks(at::Tensor& values) override;
  void max_over_ranks(at::Tensor& values) override;
  double exchange_seconds() const override;
  void barrier() override { group_->barrier(); }

  int stage() const { return stage_; }

 private:
  std::shared_ptr<torch::nn::Module> model_;
  std::shared_ptr<dist::Group> group_;
  int stage_;
  DdpSettings settings_;
  std::unique_ptr<DistributedDataParallel> whole_;  // stage 1: sums gradients as without
  std::unique_ptr<ParameterShards> shards_;
  std::unique_ptr<GradientShards> gradients_;  // stage 2
  std::optional<ExchangeTimer> waits_;         // for parameters, and stage 2 for buffers
};

}  // namespace cohort::parallel
