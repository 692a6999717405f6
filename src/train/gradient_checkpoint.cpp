#include "train/gradient_checkpoint.h"

#include <memory>
#include <mutex>
#include <optional>

#include <torch/torch.h>

#include "core/error.h"
#include "models/random_context.h"
#include "train/precision.h"

namespace cohort::train {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The default generators' states at the first call: of the CPU, and of the accelerator where the inputs lie on one.
class GeneratorStates {
 public:
  explicit GeneratorStates(const std::vector<at::Tensor>& inputs) {
    generators_.push_back(at::globalContext().defaultGenerator(at::kCPU));
    for (const at::Tensor& input : inputs)
      if (input.defined() && !input.device().is_cpu()) {
        generators_.push_back(at::globalContext().defaultGenerator(input.device()));
        break;
      }
    states_ = read();
  }

  /// Sets the remembered states for a scope.
  class Guard {
   public:
    explicit Guard(const GeneratorStates& states) : states_(states), former_(states.read()) {
      states_.write(states_.states_);
    }
    ~Guard() { states_.write(former_); }
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;

   private:
    const GeneratorStates& states_;
    std::vector<at::Tensor> former_;
  };

 private:
  std::vector<at::Tensor> read() const {
    std::vector<at::Tensor> states;
    for (at::Generator generator : generators_) {
      std::lock_guard lock(generator.mutex());
      states.push_back(generator.get_state());
    }
    return states;
  }
  void write(const std::vector<at::Tensor>& states) const {
    for (std::size_t i = 0; i < generators_.size(); ++i) {
      at::Generator generator = generators_[i];
      std::lock_guard lock(generator.mutex());
      generator.set_state(states[i]);
    }
  }

  std::vector<at::Generator> generators_;
  std::vector<at::Tensor> states_;
};

/// All that the recomputation needs beside the inputs.
struct Recipe : public torch::CustomClassHolder {
  Recipe(Segment s, const std::vector<at::Tensor>& inputs)
      : segment(std::move(s)), autocast(device_of(inputs)), generators(inputs) {
    if (models::has_random_context()) random = models::random_context();
  }

  static c10::DeviceType device_of(const std::vector<at::Tensor>& inputs) {
    for (const at::Tensor& input : inputs)
      if (input.defined()) return input.device().type();
    return c10::kCPU;
  }

  Segment segment;
  AutocastState autocast;
  GeneratorStates generators;
  std::optional<models::RandomContext> random;
  std::vector<std::vector<std::int64_t>> output_sizes;
};

class CheckpointFunction : public torch::autograd::Function<CheckpointFunction> {
 public:
  /// `anchor` is an empty tensor that requires a gradient, so that the outputs do too even when only the segment's
  /// parameters ask for one.
  static variable_list forward(AutogradContext* context, const c10::intrusive_ptr<Recipe>& recipe,
                               const at::Tensor& anchor, const variable_list& inputs) {
    (void)anchor;
    context->save_for_backward(inputs);
    context->saved_data["recipe"] = c10::IValue::make_capsule(recipe);
    variable_list outputs = recipe->segment(inputs);
    for (const at::Tensor& output : outputs) recipe->output_sizes.push_back(output.sizes().vec());
    return outputs;
  }

  static variable_list backward(AutogradContext* context, const variable_list& output_gradients) {
    const auto recipe = c10::static_intrusive_pointer_cast<Recipe>(context->saved_data["recipe"].toCapsule());
    variable_list inputs;
    for (const at::Tensor& saved : context->get_saved_variables()) {
      at::Tensor input = saved.defined() ? saved.detach() : saved;
      if (input.defined()) input.set_requires_grad(saved.requires_grad());
      inputs.push_back(input);
    }
    variable_list outputs;
    {
      at::AutoGradMode with_graph(true);
      const GeneratorStates::Guard generators(recipe->generators);
      const AutocastState::Guard autocast(recipe->autocast);
      std::optional<models::RandomContextGuard> random;
      if (recipe->random) {
        models::RandomContext again = *recipe->random;
        again.recomputing = true;
        random.emplace(std::move(again));
      }
      outputs = recipe->segment(inputs);
    }
    COHORT_THROW_UNLESS(outputs.size() == recipe->output_sizes.size(),
                        "gradient checkpointing: the recomputation returned {} tensors, the first time {}",
                        outputs.size(), recipe->output_sizes.size());
    variable_list roots, gradients;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      COHORT_THROW_UNLESS(
          outputs[i].sizes() == recipe->output_sizes[i],
          "gradient checkpointing: the recomputation of output {} has another shape than the first time: "
          "the segment must be the same function each time",
          i);
      if (outputs[i].requires_grad() && output_gradients[i].defined()) {
        roots.push_back(outputs[i]);
        gradients.push_back(output_gradients[i]);
      }
    }
    // Parameters accumulate their gradients here, through the hooks that DistributedDataParallel has put on them.
    if (!roots.empty()) torch::autograd::backward(roots, gradients);
    variable_list result(1);  // for the anchor; the recipe is no tensor and does not count
    for (const at::Tensor& input : inputs) result.push_back(input.defined() ? input.grad() : at::Tensor());
    return result;
  }
};

}  // namespace

std::vector<at::Tensor> checkpoint(const Segment& segment, const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled()) return segment(inputs);
  const at::Tensor anchor = at::empty({0}).set_requires_grad(true);
  return CheckpointFunction::apply(c10::make_intrusive<Recipe>(segment, inputs), anchor, inputs);
}

at::Tensor checkpoint(const std::function<at::Tensor(const at::Tensor&)>& segment, const at::Tensor& input) {
  return checkpoint(
      [segment](const std::vector<at::Tensor>& inputs) { return std::vector<at::Tensor>{segment(inputs[0])}; },
      std::vector<at::Tensor>{input})[0];
}

}  // namespace cohort::train
