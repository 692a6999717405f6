#include "train/gradient_checkpoint.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include <ATen/autocast_mode.h>
#include <torch/autograd.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>
#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "models/random_context.h"
#include "train/precision.h"
#include "train/random_state.h"

namespace cohort::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// LibTorch's generators in a former state, for a scope. An empty state leaves them alone.
class RandomStateGuard {
 public:
  RandomStateGuard(const weights::NamedTensors& state, c10::Device device) : device_(device) {
    if (state.empty()) return;
    former_ = random_state(device);
    restore_random_state(state, device);
  }
  ~RandomStateGuard() { restore_random_state(former_, device_); }
  RandomStateGuard(const RandomStateGuard&) = delete;
  RandomStateGuard& operator=(const RandomStateGuard&) = delete;

 private:
  c10::Device device_;
  weights::NamedTensors former_;
};

/// What the two computations share; it lives in the graph's node.
struct Segment : torch::CustomClassHolder {
  Segment(SegmentFunction function, variable_list buffers_of_module, c10::Device its_device)
      : forward(std::move(function)),
        buffers(std::move(buffers_of_module)),
        device(its_device),
        autocast(its_device.type()) {
    if (models::has_random_context()) context = models::random_context();
  }
  SegmentFunction forward;
  variable_list buffers;
  std::vector<bool> defined;  // which of the inputs are
  c10::Device device;
  // The surroundings of the first computation, entered again for the second.
  AutocastState autocast;
  std::optional<models::RandomContext> context;
  weights::NamedTensors random;  // LibTorch's generators before it; empty when it drew nothing from them
};

/// The function's arguments: the defined inputs come first in `tensors`.
variable_list arguments(const Segment& segment, const variable_list& tensors) {
  variable_list inputs;
  inputs.reserve(segment.defined.size());
  std::size_t next = 0;
  for (const bool is_defined : segment.defined) inputs.push_back(is_defined ? tensors[next++] : at::Tensor());
  return inputs;
}

/// Throws when the graph under `outputs` reaches a leaf that is none of `known`.
void check_leaves(const variable_list& outputs, const variable_list& known) {
  std::unordered_set<const c10::TensorImpl*> listed;
  for (const auto& tensor : known) listed.insert(tensor.unsafeGetTensorImpl());
  std::unordered_set<torch::autograd::Node*> seen;
  std::vector<torch::autograd::Node*> to_visit;
  for (const auto& output : outputs) {
    if (output.grad_fn()) to_visit.push_back(output.grad_fn().get());
  }
  while (!to_visit.empty()) {
    auto* node = to_visit.back();
    to_visit.pop_back();
    if (!seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<const torch::autograd::AccumulateGrad*>(node)) {
      COHORT_THROW_UNLESS(
          listed.count(leaf->variable.unsafeGetTensorImpl()),
          "gradient checkpointing: the function uses a trainable tensor of shape {} that is neither among its "
          "inputs nor among its parameters; its gradient would be lost",
          c10::str(leaf->variable.sizes()));
    }
    for (const auto& edge : node->next_edges()) {
      if (edge.function) to_visit.push_back(edge.function.get());
    }
  }
}

/// Casts of weights that are made without a graph must not be kept: a layer outside would find them and lose its
/// gradient.
class NoCastCacheGuard {
 public:
  NoCastCacheGuard() : former_(at::autocast::is_autocast_cache_enabled()) {
    at::autocast::set_autocast_cache_enabled(false);
  }
  ~NoCastCacheGuard() { at::autocast::set_autocast_cache_enabled(former_); }
  NoCastCacheGuard(const NoCastCacheGuard&) = delete;
  NoCastCacheGuard& operator=(const NoCastCacheGuard&) = delete;

 private:
  bool former_;
};

struct Checkpoint : torch::autograd::Function<Checkpoint> {
  /// `tensors`: the defined inputs, then the parameters.
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<Segment>& segment,
                               at::TensorList tensors) {
    context->set_materialize_grads(false);
    context->saved_data["segment"] = c10::IValue::make_capsule(segment);
    const variable_list all = tensors.vec();
    context->save_for_backward(all);
    variable_list outputs;
    {
      const NoCastCacheGuard no_cast_cache;
      const weights::NamedTensors before = random_state(segment->device);
      outputs = segment->forward(arguments(*segment, all));
      const weights::NamedTensors after = random_state(segment->device);
      for (std::size_t i = 0; i < before.size(); ++i) {
        if (!at::equal(before[i].second, after[i].second)) segment->random = before;
      }
    }
    for (auto& output : outputs) {
      // A function that hands on one of its inputs: the graph needs a tensor of its own.
      for (const auto& tensor : all) {
        if (output.defined() && output.is_same(tensor)) output = output.view_as(output);
      }
    }
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& grad_outputs) {
    const auto segment = c10::static_intrusive_pointer_cast<Segment>(context->saved_data["segment"].toCapsule());
    // Inputs become leaves of a graph of their own; parameters stay the leaves that they are, for the function uses
    // them without being handed them.
    variable_list leaves = context->get_saved_variables();
    const std::size_t n_inputs =
        static_cast<std::size_t>(std::count(segment->defined.begin(), segment->defined.end(), true));
    for (std::size_t i = 0; i < n_inputs; ++i) {
      const bool wanted = leaves[i].requires_grad();
      leaves[i] = leaves[i].detach();
      leaves[i].set_requires_grad(wanted);
    }
    variable_list buffers_before;
    for (const auto& buffer : segment->buffers) buffers_before.push_back(buffer.clone());
    variable_list outputs;
    {
      const at::AutoGradMode with_graph(true);
      const RandomStateGuard generators(segment->random, segment->device);
      std::optional<models::RandomContextGuard> numbers;
      if (segment->context) {
        models::RandomContext again = *segment->context;
        again.recomputing = true;
        numbers.emplace(std::move(again));
      }
      const AutocastState::Guard autocast(segment->autocast);
      const models::SegmentRunnerGuard plain{models::SegmentRunner()};
      outputs = segment->forward(arguments(*segment, leaves));
    }
    variable_list roots, root_gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      if (!outputs[i].defined() || !outputs[i].requires_grad() || !grad_outputs[i].defined()) continue;
      roots.push_back(outputs[i]);
      root_gradients.push_back(grad_outputs[i]);
    }
    check_leaves(roots, leaves);
    variable_list wanted;
    std::vector<std::size_t> positions;
    for (std::size_t i = 0; i < leaves.size(); ++i) {
      if (!leaves[i].requires_grad() || !context->needs_input_grad(i)) continue;
      wanted.push_back(leaves[i]);
      positions.push_back(i);
    }
    variable_list result(1 + leaves.size());  // the segment itself has no gradient
    if (!roots.empty() && !wanted.empty()) {
      // Only what is asked for is computed, and no hook of a parameter runs here: it runs where the result arrives.
      auto gradients = torch::autograd::grad(roots, wanted, root_gradients, /*retain_graph=*/std::nullopt,
                                             /*create_graph=*/false, /*allow_unused=*/true);
      for (std::size_t i = 0; i < positions.size(); ++i) result[1 + positions[i]] = std::move(gradients[i]);
    }
    const at::NoGradGuard no_grad;
    for (std::size_t i = 0; i < buffers_before.size(); ++i) segment->buffers[i].copy_(buffers_before[i]);
    return result;
  }
};

variable_list run_checkpointed(const SegmentFunction& forward, const variable_list& inputs,
                               const variable_list& parameters, variable_list buffers) {
  variable_list tensors;
  std::vector<bool> defined;
  bool any_gradient = false;
  for (const auto& input : inputs) {
    defined.push_back(input.defined());
    if (input.defined()) tensors.push_back(input);
  }
  for (const auto& parameter : parameters) {
    if (parameter.requires_grad()) tensors.push_back(parameter);
  }
  for (const auto& tensor : tensors) any_gradient |= tensor.requires_grad();
  if (!at::GradMode::is_enabled() || !any_gradient) return forward(inputs);
  auto segment = c10::make_intrusive<Segment>(forward, std::move(buffers), tensors.front().device());
  segment->defined = std::move(defined);
  return Checkpoint::apply(segment, at::TensorList(tensors));
}

}  // namespace

std::vector<at::Tensor> gradient_checkpoint(const SegmentFunction& forward, const std::vector<at::Tensor>& inputs,
                                            const std::vector<at::Tensor>& parameters) {
  return run_checkpointed(forward, inputs, parameters, {});
}

std::vector<at::Tensor> gradient_checkpoint(torch::nn::Module& layer, const SegmentFunction& forward,
                                            const std::vector<at::Tensor>& inputs) {
  // In evaluation mode a layer leaves its buffers alone.
  return run_checkpointed(forward, inputs, layer.parameters(), layer.is_training() ? layer.buffers() : variable_list());
}

models::SegmentRunner checkpointing_runner() {
  return [](const torch::nn::Module& part, const models::Segment& segment, const std::vector<at::Tensor>& inputs) {
    const SegmentFunction run = [segment](const variable_list& in) { return variable_list{segment(in)}; };
    return run_checkpointed(run, inputs, part.parameters(), part.is_training() ? part.buffers() : variable_list())[0];
  };
}

}  // namespace cohort::train
