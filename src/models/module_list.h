/// Modules that are called 0, 1, 2, ... in weight files, as torch.nn.ModuleList's are.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include <torch/nn/module.h>

namespace cohort::models {

class ModuleList : public torch::nn::Module {
 public:
  template <class M>
  std::shared_ptr<M> append(std::shared_ptr<M> module) {
    return register_module(std::to_string(children().size()), std::move(module));
  }
};

}  // namespace cohort::models
