#include "rl/export_onnx.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "cohort_version.h"
#include "core/error.h"
#include "rl/ppo_policy.h"
#include "tasks/run_library.h"

namespace cohort::rl {
namespace {

onnx::Tensor onnx_tensor(const std::string& name, const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().to(at::kCPU, at::kFloat).contiguous();
  const float* const numbers = flat.const_data_ptr<float>();
  return onnx::Tensor::of(name, flat.sizes().vec(), std::vector<float>(numbers, numbers + flat.numel()));
}

/// Puts one node behind the other.
class GraphWriter {
 public:
  explicit GraphWriter(onnx::Model& model) : model_(model) {}

  std::string constant(const std::string& name, const at::Tensor& tensor) {
    model_.initializers.push_back(onnx_tensor(name, tensor));
    return name;
  }
  std::string constant(onnx::Tensor tensor) {
    model_.initializers.push_back(std::move(tensor));
    return model_.initializers.back().name;
  }
  /// The output's name, which the node bears too.
  std::string node(const std::string& op, std::vector<std::string> inputs, const std::string& output,
                   std::vector<onnx::Attribute> attributes = {}) {
    model_.nodes.push_back({.name = output,
                            .op = op,
                            .domain = "",
                            .inputs = std::move(inputs),
                            .outputs = {output},
                            .attributes = std::move(attributes)});
    return output;
  }

  onnx::Model& model() { return model_; }

 private:
  onnx::Model& model_;
};

/// ONNX's operator of PolicySettings::activation.
std::string activated(GraphWriter& graph, const std::string& activation, const std::string& x,
                      const std::string& output) {
  if (activation == "elu") return graph.node("Elu", {x}, output, {onnx::Attribute::of("alpha", 1.0f)});
  if (activation == "relu") return graph.node("Relu", {x}, output);
  if (activation == "selu") return graph.node("Selu", {x}, output);
  if (activation == "lrelu") return graph.node("LeakyRelu", {x}, output, {onnx::Attribute::of("alpha", 0.01f)});
  if (activation == "tanh") return graph.node("Tanh", {x}, output);
  throw Error(format("policy.activation = '{}' has no operator of ONNX here", activation));
}

/// torch's order of gates, reset, update, new, in ONNX's: update, reset, new.
at::Tensor onnx_gates(const at::Tensor& of_gates) {
  const std::vector<at::Tensor> gates = of_gates.detach().chunk(3, 0);
  return at::cat({gates[1], gates[0], gates[2]}, 0);
}

/// A control step of the memory: (n, in) -> (n, H), from h_in to h_out.
std::string remembered(GraphWriter& graph, const Gru& gru, const std::string& x) {
  const std::int64_t layers = std::ssize(gru.layers()), hidden = gru.hidden_width();
  const std::vector<onnx::Dim> shape{{layers, ""}, {-1, "batch"}, {hidden, ""}};
  graph.model().inputs.push_back({.name = "h_in", .shape = shape});
  graph.model().outputs.push_back({.name = "h_out", .shape = shape});
  const std::string first = graph.constant(onnx::Tensor::of_ints("first_axis", {1}, {0}));
  std::vector<std::string> before{"h_in"}, after;
  if (layers > 1) {
    // Split's sizes are given: equal parts are the default of every opset.
    const std::string ones = graph.constant(
        onnx::Tensor::of_ints("layer_sizes", {layers}, std::vector<std::int64_t>(static_cast<std::size_t>(layers), 1)));
    before.clear();
    for (std::int64_t i = 0; i < layers; ++i) before.push_back(format("h_in_l{}", i));
    graph.model().nodes.push_back({.name = "split_h_in",
                                   .op = "Split",
                                   .domain = "",
                                   .inputs = {"h_in", ones},
                                   .outputs = before,
                                   .attributes = {onnx::Attribute::of("axis", std::int64_t{0})}});
  }
  std::string sequence = graph.node("Unsqueeze", {x, first}, "sequence");  // (1, n, in)
  for (std::size_t i = 0; i < gru.layers().size(); ++i) {
    const Gru::Layer& layer = gru.layers()[i];
    const std::string l = format("actor_memory.l{}", i);
    const std::string w = graph.constant(l + ".W", onnx_gates(layer.weight_ih).unsqueeze(0)),
                      r = graph.constant(l + ".R", onnx_gates(layer.weight_hh).unsqueeze(0)),
                      b = graph.constant(
                          l + ".B", at::cat({onnx_gates(layer.bias_ih), onnx_gates(layer.bias_hh)}, 0).unsqueeze(0));
    const std::string y = l + ".Y";
    after.push_back(layers == 1 ? "h_out" : format("h_out_l{}", i));
    graph.model().nodes.push_back({.name = l,
                                   .op = "GRU",
                                   .domain = "",
                                   .inputs = {sequence, w, r, b, "", before[i]},
                                   .outputs = {y, after.back()},
                                   .attributes = {onnx::Attribute::of("hidden_size", hidden),
                                                  onnx::Attribute::of("linear_before_reset", std::int64_t{1})}});
    sequence = graph.node("Squeeze", {y, graph.constant(onnx::Tensor::of_ints(l + ".axis", {1}, {1}))}, l + ".out");
  }
  if (layers > 1) graph.node("Concat", after, "h_out", {onnx::Attribute::of("axis", std::int64_t{0})});
  return graph.node("Squeeze", {sequence, first}, "memory");
}

/// Clip where all have the same bounds, else the greater and the smaller of two vectors; nothing where none has any.
std::string clipped(GraphWriter& graph, const std::vector<double>& low, const std::vector<double>& high,
                    const std::string& x) {
  const auto bounded = [](double bound) { return std::isfinite(bound); };
  if (std::none_of(low.begin(), low.end(), bounded) && std::none_of(high.begin(), high.end(), bounded))
    return graph.node("Identity", {x}, "actions");
  const std::vector<float> lowest(low.begin(), low.end()), highest(high.begin(), high.end());
  const auto same = [](const std::vector<float>& all) {
    return std::all_of(all.begin(), all.end(), [&](float one) { return one == all.front(); });
  };
  if (same(lowest) && same(highest))
    return graph.node("Clip",
                      {x, graph.constant(onnx::Tensor::of("action_low", {}, {lowest.front()})),
                       graph.constant(onnx::Tensor::of("action_high", {}, {highest.front()}))},
                      "actions");
  const std::int64_t width = std::ssize(lowest);
  const std::string above =
      graph.node("Max", {x, graph.constant(onnx::Tensor::of("action_low", {width}, lowest))}, "actions_above_low");
  return graph.node("Min", {above, graph.constant(onnx::Tensor::of("action_high", {width}, highest))}, "actions");
}

}  // namespace

onnx::Model actor_graph(const ActorCritic& networks, const std::vector<double>& low, const std::vector<double>& high) {
  const at::NoGradGuard no_grad;
  COHORT_CHECK(std::ssize(low) == networks.action_width() && low.size() == high.size(),
               "{} and {} bounds of {} actions", low.size(), high.size(), networks.action_width());
  onnx::Model model;
  model.producer = "cohort";
  model.producer_version = COHORT_VERSION;
  model.name = "actor";
  model.inputs.push_back({.name = "obs", .shape = {{-1, "batch"}, {networks.actor_width(), ""}}});
  model.outputs.push_back({.name = "actions", .shape = {{-1, "batch"}, {networks.action_width(), ""}}});
  GraphWriter graph(model);
  std::string x = "obs";
  if (networks.settings().empirical_normalization) {
    const auto [shift, divisor] = networks.actors_normalisation();
    x = graph.node("Sub", {x, graph.constant("observations.mean", shift)}, "centred");
    x = graph.node("Div", {x, graph.constant("observations.deviation", divisor)}, "normalised");
  }
  if (networks.recurrent()) x = remembered(graph, *networks.actor_memory(), x);
  const auto layers = networks.actor().parameters_of_layers();
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string name = format("actor.{}", 2 * i);
    if (i > 0) x = activated(graph, networks.settings().activation, x, format("actor.{}", 2 * i - 1));
    x = graph.node(
        "Gemm",
        {x, graph.constant(name + ".weight", layers[i].first), graph.constant(name + ".bias", layers[i].second)}, name,
        {onnx::Attribute::of("transB", std::int64_t{1})});
  }
  if (networks.squashed()) x = graph.node("Tanh", {x}, "squashed");
  x = graph.node("Mul", {x, graph.constant("action_scale", networks.action_scale())}, "scaled");
  x = graph.node("Add", {x, graph.constant("action_offset", networks.action_offset())}, "in_the_tasks_unit");
  clipped(graph, low, high, x);
  return model;
}

ExportedPolicy export_onnx(const std::filesystem::path& path, const std::filesystem::path& out,
                           const policy::LoadSettings& settings) {
  const PpoCheckpoint checkpoint = read_ppo_checkpoint(path, settings.averaged);
  tasks::use_library_of_run(path.string(), true);
  const std::unique_ptr<tasks::Task> task = make_learnt_task(checkpoint.task, checkpoint.learnt);
  onnx::Contract contract = onnx::contract_of(*task, checkpoint.networks->settings().critic_only);
  std::int64_t width = 0;
  for (const onnx::Contract::Observation& seen : contract.observations) width += seen.width();
  COHORT_THROW_UNLESS(width == checkpoint.networks->actor_width() &&
                          std::ssize(contract.action_names) == checkpoint.networks->action_width(),
                      "{} has learnt from {} numbers and gives {} actions; {} now has {} and {}: its task has changed",
                      path.string(), checkpoint.networks->actor_width(), checkpoint.networks->action_width(),
                      checkpoint.learnt.name, width, contract.action_names.size());
  contract.task_settings = checkpoint.learnt.settings;
  contract.run_path = checkpoint.path.string();
  contract.cohort_version = COHORT_VERSION;
  onnx::Model model = actor_graph(*checkpoint.networks, contract.action_low, contract.action_high);
  model.metadata = onnx::to_metadata(contract);
  onnx::write_model(out, model);
  return {std::move(contract), checkpoint.task};
}

}  // namespace cohort::rl
