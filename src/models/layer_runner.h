/// How a model runs one of its layers: directly, or in a way that the training loop chooses (gradient checkpointing
/// computes it again in backward instead of keeping what it computed). Models route their large repeated layers through
/// run_layer; without a LayerRunnerGuard that is a plain call.
///
///   x_BLD = run_layer(*layer, [&](const auto& in) { return std::vector{layer->forward(in[0])}; }, {x_BLD})[0];
#pragma once
#include <functional>
#include <vector>

#include <ATen/core/Tensor.h>

namespace torch::nn {
class Module;
}

namespace cohort::models {

/// The layer as a function of all tensors that depend on earlier layers. It may be called twice, the second time in
/// another thread and after the call of run_layer has returned: it captures by value, or what lives as long as the
/// model.
using LayerFunction = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

/// `layer` owns the parameters and buffers that the function uses.
using LayerRunner = std::function<std::vector<at::Tensor>(torch::nn::Module& layer, const LayerFunction& forward,
                                                          const std::vector<at::Tensor>& inputs)>;

namespace layer_runner_detail {
inline thread_local const LayerRunner* current = nullptr;
}

/// Sets how layers run in this thread for a scope. `runner` must outlive it; null: plainly.
class LayerRunnerGuard {
 public:
  explicit LayerRunnerGuard(const LayerRunner* runner) : former_(layer_runner_detail::current) {
    layer_runner_detail::current = runner;
  }
  ~LayerRunnerGuard() { layer_runner_detail::current = former_; }
  LayerRunnerGuard(const LayerRunnerGuard&) = delete;
  LayerRunnerGuard& operator=(const LayerRunnerGuard&) = delete;

 private:
  const LayerRunner* former_;
};

inline std::vector<at::Tensor> run_layer(torch::nn::Module& layer, const LayerFunction& forward,
                                         const std::vector<at::Tensor>& inputs) {
  const LayerRunner* runner = layer_runner_detail::current;
  return runner ? (*runner)(layer, forward, inputs) : forward(inputs);
}

}  // namespace cohort::models
