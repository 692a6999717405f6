/// One process per device; gradients are averaged over all processes while the backward pass still runs. PyTorch's
/// DistributedDataParallel on LibTorch's own Reducer.
///
///   auto group = dist::Group::create(rank::read_environment());
///   parallel::DistributedDataParallel ddp(model, group);
///   for (...) {
///     ddp.zero_grad();
///     at::Tensor loss = torch::mse_loss(ddp.forward<Net>(x), y);
///     ddp.backward(loss);            // or loss.backward()
///     optimizer.step();
///   }
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "dist/group.h"
#include "parallel/strategy.h"

namespace cohort::parallel {

struct DdpSettings {
  double bucket_cap_mb = 25;       ///< MiB of gradients that are summed in one go; larger: fewer messages, less overlap
  double first_bucket_cap_mb = 1;  ///< MiB of the bucket whose gradients come first, so that communication starts early
  bool find_unused_parameters =
      false;  ///< look for parameters that the loss does not depend on; costs a pass over the graph
  /// .grad are views into the buckets: saves a copy and the memory of one set of gradients. Then use zero_grad() of
  /// this class: the optimizers' own throws ("Can't detach views in-place").
  bool gradient_as_bucket_view = false;
  bool static_graph = false;      ///< the graph is the same in every iteration: unused parameters are found once
  bool broadcast_buffers = true;  ///< every forward pass starts with rank 0's buffers (running statistics of BatchNorm)
  /// Buffers whose names end so never change (tables of positions, say): sent once at the start, not before every
  /// forward pass.
  std::vector<std::string> constant_buffers;
  /// Order of the parameters in the buckets. definition: the reverse of their definition, always; a resumed run then
  /// adds up in the same order as an undisturbed one, so that its bits are the same whatever the number of ranks.
  /// arrival: as their gradients arrived in the first step after the start, as PyTorch does; more overlap for a model
  /// that uses its parameters in quite another order than it defines them, but with three ranks or more a restart
  /// changes last bits.
  std::string bucket_order = "definition";
  /// How gradients on the CPU are added up. shared_memory: through memory that the ranks share, where they all run on
  /// one machine; gloo: through sockets; auto: the first where it can be (float32, dense, no compression).
  std::string cpu_reduction = "auto";
  std::string compression = "none";  ///< none, fp16 or bf16: element type in which gradients travel
};

void describe(config::Fields& fields, DdpSettings& settings);

struct JoinSettings {
  /// true: gradients are divided by the number of ranks that began, so that every sample weighs the same; false: by the
  /// number that still has data.
  bool divide_by_initial_world_size = true;
  /// true: as soon as one rank has no more data, all throw Error.
  bool throw_on_early_termination = false;
};

class DistributedDataParallel : public Strategy {
 public:
  /// Takes over a model whose parameters all lie on the group's device. Checks that all ranks have the same layout,
  /// gives all of them rank 0's parameters and buffers, and hooks the gradients. In a group that was made anew after a
  /// rank had died (rank::Environment::generation above 0), the parameters stay as they are: whoever has the state of the
  /// training gives it to those that lack it. Collective. Throws Error.
  DistributedDataParallel(std::shared_ptr<torch::nn::Module> model, std::shared_ptr<dist::Group> group,
                          DdpSettings settings = {});
  ~DistributedDataParallel() override;

  at::Tensor forward_backward(const Batch& batch, const LossFunction& loss, const BackwardOptions& options) override;
  torch::nn::Module& module() override;
  void zero_grad() override;
  void parameters_changed() override {}  // every rank's optimizer makes the same step
  int rank() const override;
  int world_size() const override;
  int replicas() const override { return 1; }
  void mean_over_ranks(at::Tensor& values) override;
  void max_over_ranks(at::Tensor& values) override;
  double exchange_seconds() const override;
  void barrier() override;
  void leave_group() override;
  void join_group() override;

  /// The wrapped model's forward, as PyTorch's ddp(inputs...). Model is the wrapped model's type; its output is a
  /// tensor, a tuple, pair or vector of tensors.
  template <class Model, class... Args>
  auto forward(Args&&... args) {
    prepare_for_forward();
    return prepare_for_backward(typed_module<Model>().forward(std::forward<Args>(args)...));
  }

  /// loss.backward(), with errors of communication explained.
  void backward(const at::Tensor& loss);

  /// Runs `body` without synchronisation: gradients add up locally and are averaged in the first backward after it. The
  /// forward passes belong inside.
  void no_sync(const std::function<void()>& body);

  /// Runs `body`, a training loop whose number of steps differs between ranks; a rank that has finished keeps taking
  /// part in the others' collectives with zero gradients, and in the end all get the model of a rank that finished
  /// last. Collective.
  void join(const std::function<void()>& body, JoinSettings settings = {});

  /// The two halves of forward(), for models with outputs of other types: call before the model, and with all output
  /// tensors that the loss may use; go on with the returned ones.
  void prepare_for_forward();
  std::vector<at::Tensor> prepare_for_backward(std::vector<at::Tensor> outputs);
  at::Tensor prepare_for_backward(at::Tensor output);
  template <class... Tensors>
  std::tuple<Tensors...> prepare_for_backward(std::tuple<Tensors...> outputs) {
    std::vector<at::Tensor> list = std::apply([](auto&... t) { return std::vector<at::Tensor>{t...}; }, outputs);
    list = prepare_for_backward(std::move(list));
    return [&]<std::size_t... i>(std::index_sequence<i...>) {
      return std::tuple<Tensors...>{list[i]...};
    }
    (std::index_sequence_for<Tensors...>{});
  }
  std::pair<at::Tensor, at::Tensor> prepare_for_backward(std::pair<at::Tensor, at::Tensor> outputs) {
    auto list = prepare_for_backward(std::vector<at::Tensor>{std::move(outputs.first), std::move(outputs.second)});
    return {list[0], list[1]};
  }

  /// Bytes of each bucket, in the order in which they are reduced.
  std::vector<std::int64_t> bucket_sizes() const;
  /// True once the buckets follow the order in which gradients really arrive (after the first iteration).
  bool buckets_were_rebuilt() const;
  /// True when gradients are added up in memory that the ranks share (DdpSettings::cpu_reduction).
  bool sums_in_shared_memory() const;
  dist::Group& group();

 private:
  template <class Model>
  Model& typed_module() {
    auto* typed = dynamic_cast<Model*>(&module());
    COHORT_CHECK(typed != nullptr, "the wrapped model is of another type than forward was called for");
    return *typed;
  }
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace cohort::parallel
