#include "parallel/replicas.h"

#include <algorithm>
#include <mutex>

#include <torch/nn/cloneable.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "parallel/module_layout.h"
#include "tensors/convert.h"

namespace cohort::parallel {
namespace {

/// Building a module draws initial weights; nobody should see that replicas were built.
class KeepGenerator {
 public:
  KeepGenerator() : generator_(at::detail::getDefaultCPUGenerator()) {
    const std::lock_guard lock(generator_.mutex());
    state_ = generator_.get_state();
  }
  ~KeepGenerator() {
    const std::lock_guard lock(generator_.mutex());
    generator_.set_state(state_);
  }

 private:
  at::Generator generator_;
  at::Tensor state_;
};

std::shared_ptr<torch::nn::Module> make_replica(const torch::nn::Module& model, const ModuleFactory& factory) {
  if (factory) return factory();
  try {
    return model.clone();
  } catch (const c10::Error& problem) {
    throw Error(
        format("DataParallel cannot copy the model of type {} ({}); derive it from torch::nn::Cloneable, or give a "
               "factory that "
               "builds one like it",
               model.name(), problem.what_without_backtrace()));
  }
}

void check_like_first(const torch::nn::Module& replica, const torch::nn::Module& model) {
  const auto compare = [](const char* kind, const std::vector<NamedTensor>& theirs,
                          const std::vector<NamedTensor>& ours) {
    COHORT_THROW_UNLESS(theirs.size() == ours.size(), "the factory's model has {} {}s, the wrapped one {}",
                        theirs.size(), kind, ours.size());
    for (std::size_t i = 0; i < ours.size(); ++i)
      COHORT_THROW_UNLESS(
          theirs[i].name == ours[i].name && theirs[i].tensor.sizes() == ours[i].tensor.sizes() &&
              theirs[i].tensor.scalar_type() == ours[i].tensor.scalar_type(),
          "{} {} is '{}' in the factory's model and '{}' in the wrapped one, or their shapes or types differ", kind, i,
          theirs[i].name, ours[i].name);
  };
  compare("parameter", parameters_of(replica), parameters_of(model));
  compare("buffer", buffers_of(replica), buffers_of(model));
}

}  // namespace

Replicas::Replicas(std::shared_ptr<torch::nn::Module> model, std::vector<DeviceId> devices,
                   const ModuleFactory& factory, bool share_memory)
    : devices_(std::move(devices)), share_memory_(share_memory) {
  const at::NoGradGuard no_grad;
  const KeepGenerator keep;
  modules_.push_back(std::move(model));
  for (std::size_t r = 1; r < devices_.size(); ++r) {
    auto replica = make_replica(*modules_[0], factory);
    check_like_first(*replica, *modules_[0]);
    replica->to(tensors::to_torch_device(devices_[r]));
    const auto theirs = buffers_of(*replica);
    const auto ours = buffers_of(*modules_[0]);
    for (std::size_t i = 0; i < ours.size(); ++i) at::Tensor(theirs[i].tensor).copy_(ours[i].tensor);
    modules_.push_back(std::move(replica));
  }
  for (const auto& module : modules_) {
    std::vector<at::Tensor> list;
    for (const NamedTensor& p : parameters_of(*module)) list.push_back(p.tensor);
    parameters_.push_back(std::move(list));
  }
  for (const NamedTensor& p : parameters_of(*modules_[0])) sparse_.push_back(p.sparse_gradient);
  for (std::size_t r = 1; r < modules_.size(); ++r)
    for (std::size_t i = 0; i < parameters_[r].size(); ++i) {
      parameters_[r][i].set_requires_grad(parameters_[0][i].requires_grad());
      parameters_[r][i].mutable_grad().reset();
      parameters_[r][i].copy_(parameters_[0][i]);
    }
  if (share_memory_)
    share_parameters();
  else
    flatten_parameters();
  follow_mode();
}

ReplicaParameters Replicas::trainable() const {
  ReplicaParameters result(parameters_.size());
  for (std::size_t r = 0; r < parameters_.size(); ++r)
    for (const at::Tensor& p : parameters_[r])
      if (p.requires_grad()) result[r].push_back(p);
  return result;
}

std::vector<bool> Replicas::sparse() const {
  std::vector<bool> result;
  for (std::size_t i = 0; i < sparse_.size(); ++i)
    if (parameters_[0][i].requires_grad()) result.push_back(sparse_[i]);
  return result;
}

void Replicas::share_parameters() {
  for (std::size_t i = 0; i < parameters_[0].size(); ++i)
    for (std::size_t r = 1; r < parameters_.size(); ++r)
      if (!parameters_[r][i].is_alias_of(parameters_[0][i])) parameters_[r][i].set_data(parameters_[0][i].detach());
}

void Replicas::flatten_parameters() {
  // One buffer per element type, in order of first use.
  std::vector<at::ScalarType> types;
  for (const at::Tensor& p : parameters_[0])
    if (std::find(types.begin(), types.end(), p.scalar_type()) == types.end()) types.push_back(p.scalar_type());
  flat_.assign(types.size(), {});
  for (std::size_t r = 0; r < parameters_.size(); ++r)
    for (std::size_t t = 0; t < types.size(); ++t) {
      std::int64_t count = 0;
      for (const at::Tensor& p : parameters_[r])
        if (p.scalar_type() == types[t]) count += p.numel();
      const at::Tensor flat =
          at::empty({count}, at::TensorOptions().dtype(types[t]).device(tensors::to_torch_device(devices_[r])));
      std::int64_t offset = 0;
      for (at::Tensor& p : parameters_[r]) {
        if (p.scalar_type() != types[t]) continue;
        const at::Tensor part =
            at::empty({0}, flat.options())
                .set_(flat.storage(), offset, p.sizes(),
                      p.is_non_overlapping_and_dense() ? p.strides() : at::empty(p.sizes(), at::kMeta).strides());
        part.copy_(p.detach());
        p.set_data(part);
        offset += p.numel();
      }
      flat_[t].push_back(flat);
    }
  flat_positions_.clear();
  for (const at::Tensor& p : parameters_[0]) flat_positions_.push_back(p.const_data_ptr());
}

void Replicas::follow_parameters(dist::DeviceReducer* reducer) {
  const at::NoGradGuard no_grad;
  if (share_memory_) return share_parameters();
  // A checkpoint that was loaded by replacing tensors, say.
  for (std::size_t i = 0; i < parameters_[0].size(); ++i)
    if (parameters_[0][i].const_data_ptr() != flat_positions_[i]) {
      flatten_parameters();
      break;
    }
  for (const auto& buffers : flat_) reducer->broadcast(buffers);
}

bool Replicas::has_buffers_to_follow(const std::vector<std::string>& constant) const {
  return !changing_buffers_of(*modules_[0], constant).empty();
}

void Replicas::follow_buffers(std::size_t replica, const std::vector<std::string>& constant) {
  if (replica == 0) return;
  const at::NoGradGuard no_grad;
  const auto theirs = changing_buffers_of(*modules_[replica], constant);
  const auto ours = changing_buffers_of(*modules_[0], constant);
  COHORT_CHECK(theirs.size() == ours.size(), "replica {} has {} buffers, the first one {}", replica, theirs.size(),
               ours.size());
  for (std::size_t i = 0; i < ours.size(); ++i)
    at::Tensor(theirs[i].tensor).copy_(ours[i].tensor, /*non_blocking=*/true);
}

void Replicas::follow_mode() {
  const auto first = modules_[0]->modules();
  for (std::size_t r = 1; r < modules_.size(); ++r) {
    const auto layers = modules_[r]->modules();
    // Parents come before their children, and train() also sets the children: the last word is each layer's own.
    bool same = true;
    for (std::size_t i = 0; i < layers.size() && same; ++i) same = layers[i]->is_training() == first[i]->is_training();
    if (same) continue;
    for (std::size_t i = 0; i < layers.size(); ++i) layers[i]->train(first[i]->is_training());
  }
}

}  // namespace cohort::parallel
