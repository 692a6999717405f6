#include "onnx/evaluator.h"

#include <algorithm>
#include <map>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "onnx/operators.h"

namespace cohort::onnx {

Evaluator::Evaluator(Model model) : model_(std::move(model)) {
  std::map<std::string, std::ptrdiff_t> slot_of;
  const auto new_slot = [&](const std::string& name) { return slot_of[name] = static_cast<std::ptrdiff_t>(slots_++); };
  const auto keep = [&](std::ptrdiff_t slot, Tensor tensor) {
    constant_slots_.push_back(slot);
    constants_.push_back(std::move(tensor));
  };
  const auto constant_at = [&](std::ptrdiff_t slot) -> const Tensor* {
    const auto at = std::find(constant_slots_.begin(), constant_slots_.end(), slot);
    return at == constant_slots_.end() ? nullptr : &constants_[static_cast<std::size_t>(at - constant_slots_.begin())];
  };
  for (Tensor& tensor : model_.initializers) {
    const std::ptrdiff_t slot = new_slot(tensor.name);
    keep(slot, std::move(tensor));
  }
  model_.initializers.clear();
  for (const Port& port : model_.inputs) input_slots_.push_back(new_slot(port.name));
  for (std::size_t n = 0; n < model_.nodes.size(); ++n) {
    const Node& node = model_.nodes[n];
    Step step{.node = n, .op = find_operator(node.op), .inputs = {}, .outputs = {}, .transposed = {}};
    const bool own = node.domain.empty() || node.domain == "ai.onnx";
    if (step.op == nullptr || !own) {
      const std::string near = own ? config::nearest(node.op, operator_names()) : "";
      throw Error(format("node {}: the operator {}{} is not computed here{}; these are: {}", node.title(),
                         own ? "" : node.domain + ".", node.op, near.empty() ? "" : format(" ({} is)", near),
                         join(operator_names(), ", ")));
    }
    bool constant = true;
    for (const std::string& input : node.inputs) {
      if (input.empty()) {
        step.inputs.push_back(-1);
        continue;
      }
      const auto at = slot_of.find(input);
      COHORT_THROW_UNLESS(at != slot_of.end(), "node {} takes '{}', which no node before it gives", node.title(),
                          input);
      step.inputs.push_back(at->second);
      constant = constant && constant_at(at->second) != nullptr;
    }
    for (const std::string& output : node.outputs) step.outputs.push_back(output.empty() ? -1 : new_slot(output));
    step.transposed.resize(step.inputs.size());
    const bool turns = node.op != "Gemm" || node.integer("transB", 0) != 0;
    for (std::size_t i = 0; turns && i < step.inputs.size(); ++i)
      if ((step.op->transposes >> i & 1u) != 0 && step.inputs[i] >= 0)
        if (const Tensor* const matrix = constant_at(step.inputs[i])) step.transposed[i] = transposed(*matrix);
    if (!constant) {
      steps_.push_back(std::move(step));
      continue;
    }
    std::vector<const Tensor*> values(slots_, nullptr);
    for (const std::ptrdiff_t slot : step.inputs)
      if (slot >= 0) values[static_cast<std::size_t>(slot)] = constant_at(slot);
    std::vector<Tensor> results;
    compute(step, values, results);
    for (std::size_t i = 0; i < step.outputs.size(); ++i)
      if (step.outputs[i] >= 0) keep(step.outputs[i], std::move(results[i]));
  }
  for (const Port& port : model_.outputs) {
    const auto at = slot_of.find(port.name);
    COHORT_THROW_UNLESS(at != slot_of.end(), "the output '{}' is given by no node", port.name);
    output_slots_.push_back(at->second);
  }
}

void Evaluator::compute(const Step& step, const std::vector<const Tensor*>& slots, std::vector<Tensor>& results) const {
  const Node& node = model_.nodes[step.node];
  Call call{.node = node, .opset = model_.opset, .inputs = {}, .transposed = {}};
  for (std::size_t i = 0; i < step.inputs.size(); ++i) {
    call.inputs.push_back(step.inputs[i] < 0 ? nullptr : slots[static_cast<std::size_t>(step.inputs[i])]);
    call.transposed.push_back(step.transposed[i] ? &*step.transposed[i] : nullptr);
  }
  try {
    results = step.op->apply(call);
    COHORT_THROW_UNLESS(results.size() >= step.outputs.size(), "it has {} outputs, of which {} are computed here",
                        step.outputs.size(), results.size());
  } catch (const Error& e) {
    throw Error(format("node {}: {}", node.title(), e.what()));
  }
}

std::vector<Tensor> Evaluator::run(const std::vector<Tensor>& inputs) const {
  std::vector<const Tensor*> values(slots_, nullptr);
  for (std::size_t i = 0; i < constants_.size(); ++i)
    values[static_cast<std::size_t>(constant_slots_[i])] = &constants_[i];
  for (std::size_t i = 0; i < model_.inputs.size(); ++i) {
    const Port& port = model_.inputs[i];
    const auto given =
        std::find_if(inputs.begin(), inputs.end(), [&](const Tensor& tensor) { return tensor.name == port.name; });
    COHORT_THROW_UNLESS(given != inputs.end(), "the input '{}' is not given", port.name);
    bool fits = (port.shape.empty() || given->shape.size() == port.shape.size()) && given->integral == port.integral;
    for (std::size_t d = 0; fits && d < port.shape.size(); ++d)
      fits = port.shape[d].size < 0 || port.shape[d].size == given->shape[d];
    if (!fits) {
      std::string wanted;
      for (const Dim& dim : port.shape)
        wanted += (wanted.empty() ? "" : ", ") + (dim.size < 0 ? dim.name : format("{}", dim.size));
      throw Error(format("the input '{}' of {} is given {} of {}", port.name,
                         format("{} ({})", port.integral ? "int64" : "float", wanted),
                         given->integral ? "int64" : "float", shape_text(given->shape)));
    }
    values[static_cast<std::size_t>(input_slots_[i])] = &*given;
  }
  std::vector<std::vector<Tensor>> kept(steps_.size());
  for (std::size_t s = 0; s < steps_.size(); ++s) {
    compute(steps_[s], values, kept[s]);
    for (std::size_t i = 0; i < steps_[s].outputs.size(); ++i)
      if (steps_[s].outputs[i] >= 0) values[static_cast<std::size_t>(steps_[s].outputs[i])] = &kept[s][i];
  }
  std::vector<Tensor> outputs;
  for (std::size_t i = 0; i < output_slots_.size(); ++i) {
    outputs.push_back(*values[static_cast<std::size_t>(output_slots_[i])]);
    outputs.back().name = model_.outputs[i].name;
  }
  return outputs;
}

}  // namespace cohort::onnx
