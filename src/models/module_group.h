/// Names that weight files put before those of several modules.
#pragma once
#include <memory>
#include <string>
#include <utility>

#include <torch/nn/module.h>

namespace cohort::models {

/// A module that only groups others under a name.
class ModuleGroup : public torch::nn::Module {
 public:
  template <class M>
  std::shared_ptr<M> hold(const std::string& name, std::shared_ptr<M> module) {
    return register_module(name, std::move(module));
  }
};

}  // namespace cohort::models
