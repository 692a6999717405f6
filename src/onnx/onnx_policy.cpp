#include "onnx/onnx_policy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "core/error.h"
#include "onnx/evaluator.h"

namespace cohort::onnx {
namespace {

/// What of the model's inputs and outputs is what.
struct Roles {
  std::size_t seen = 0, action = 0;  ///< of the inputs, of the outputs
  std::int64_t width = 0;            ///< numbers that are seen
  bool one_row = false;              ///< the model takes a row at a time
  struct Memory {
    std::size_t in = 0, out = 0;  ///< of the inputs, of the outputs
    std::int64_t layers = 0, width = 0;
  };
  std::vector<Memory> memories;
};

std::string port_names(const std::vector<Port>& ports) {
  std::vector<std::string> names;
  for (const Port& port : ports) names.push_back(port.name);
  return join(names, ", ");
}

/// The output that belongs to an input NAME_in.
std::optional<std::size_t> partner_of(const Port& input, const std::vector<Port>& outputs) {
  const std::string& name = input.name;
  const std::string stem = name.substr(0, name.rfind("_in") == std::string::npos ? 0 : name.rfind("_in"));
  if (stem.empty() || !name.ends_with("_in")) return std::nullopt;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (outputs[i].name == stem + "_out") return i;
  return std::nullopt;
}

/// The only one of `candidates`, or the one of such a name.
std::size_t chosen(const std::vector<std::size_t>& candidates, const std::vector<Port>& ports,
                   const std::vector<std::string>& names, const std::string& title, const char* what) {
  if (candidates.size() == 1) return candidates.front();
  for (const std::string& name : names)
    for (const std::size_t i : candidates)
      if (ports[i].name == name) return i;
  throw Error(
      format("{}: which of {} is the {}? It has to be the only one, or to be called {}; beside it there may "
             "be inputs NAME_in with outputs NAME_out, which the policy remembers",
             title, port_names(ports), what, names.front()));
}

Roles roles_of(const Model& model, const std::string& title) {
  Roles roles;
  std::vector<std::size_t> seen, given;
  std::vector<bool> remembers(model.outputs.size());
  for (std::size_t i = 0; i < model.inputs.size(); ++i) {
    const Port& port = model.inputs[i];
    const std::optional<std::size_t> out = partner_of(port, model.outputs);
    if (!out) {
      seen.push_back(i);
      continue;
    }
    COHORT_THROW_UNLESS(port.shape.size() == 3 && port.shape[0].size > 0 && port.shape[2].size > 0 && !port.integral,
                        "{}: what it remembers, its input '{}', has to have the shape (layers, n, width) with layers "
                        "and width known",
                        title, port.name);
    roles.memories.push_back({i, *out, port.shape[0].size, port.shape[2].size});
    roles.one_row = roles.one_row || port.shape[1].size == 1;
    remembers[*out] = true;
  }
  for (std::size_t i = 0; i < model.outputs.size(); ++i)
    if (!remembers[i]) given.push_back(i);
  roles.seen = chosen(seen, model.inputs, {"obs", "observations", "observation", "policy"}, title, "observation");
  roles.action = chosen(given, model.outputs, {"actions", "action"}, title, "action");
  for (const std::size_t i : seen)
    COHORT_THROW_UNLESS(i == roles.seen, "{}: its input '{}' is neither what it sees ('{}') nor what it remembers",
                        title, model.inputs[i].name, model.inputs[roles.seen].name);
  const Port& port = model.inputs[roles.seen];
  COHORT_THROW_UNLESS(port.shape.size() == 2 && port.shape[1].size > 0 && !port.integral &&
                          (port.shape[0].size == -1 || port.shape[0].size == 1),
                      "{}: its input '{}' has to be (n, width) of float with the width known, n any number or 1", title,
                      port.name);
  roles.width = port.shape[1].size;
  roles.one_row = roles.one_row || port.shape[0].size == 1;
  return roles;
}

class OnnxSession final : public policy::Session {
 public:
  OnnxSession(std::shared_ptr<const Evaluator> evaluator, const Roles& roles)
      : evaluator_(std::move(evaluator)), roles_(roles) {}

  void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t>, const std::string&) override {
    for (const std::int32_t env : environments) {
      const auto at = static_cast<std::size_t>(env);
      if (at >= memories_.size()) memories_.resize(at + 1);
      memories_[at].clear();
      for (const Roles::Memory& memory : roles_.memories)
        memories_[at].emplace_back(static_cast<std::size_t>(memory.layers * memory.width), 0.0f);
    }
  }

  void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    if (!roles_.memories.empty()) (void)act(environments, frame);
  }

  std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    COHORT_THROW_UNLESS(std::ssize(frame.low_dim) == std::ssize(environments) * roles_.width,
                        "{} numbers are seen in {} environments, but the policy sees {} in each", frame.low_dim.size(),
                        environments.size(), roles_.width);
    std::vector<std::vector<float>> actions;
    const std::size_t each = roles_.one_row ? 1 : environments.size(), width = static_cast<std::size_t>(roles_.width);
    for (std::size_t first = 0; first < environments.size(); first += each)
      decide(environments.subspan(first, each), frame.low_dim.subspan(first * width, each * width), actions);
    return actions;
  }

 private:
  void decide(std::span<const std::int32_t> environments, std::span<const float> seen,
              std::vector<std::vector<float>>& actions) {
    const std::int64_t n = std::ssize(environments);
    std::vector<Tensor> inputs;
    inputs.push_back(Tensor::of(evaluator_->model().inputs[roles_.seen].name, {n, roles_.width},
                                std::vector<float>(seen.begin(), seen.end())));
    for (std::size_t m = 0; m < roles_.memories.size(); ++m) {
      const Roles::Memory& memory = roles_.memories[m];
      std::vector<float> rows(static_cast<std::size_t>(memory.layers * n * memory.width));
      copy_memory(m, environments, rows, [](float& there, float& here) { there = here; });
      inputs.push_back(
          Tensor::of(evaluator_->model().inputs[memory.in].name, {memory.layers, n, memory.width}, std::move(rows)));
    }
    std::vector<Tensor> outputs = evaluator_->run(inputs);
    for (std::size_t m = 0; m < roles_.memories.size(); ++m) {
      const Roles::Memory& memory = roles_.memories[m];
      Tensor& after = outputs[memory.out];
      COHORT_THROW_UNLESS((after.shape == std::vector<std::int64_t>{memory.layers, n, memory.width}),
                          "the output '{}' has the shape {}, and its input ({}, {}, {})", after.name,
                          shape_text(after.shape), memory.layers, n, memory.width);
      copy_memory(m, environments, after.floats, [](float& there, float& here) { here = there; });
    }
    const Tensor& chosen_actions = outputs[roles_.action];
    COHORT_THROW_UNLESS(chosen_actions.shape.size() == 2 && chosen_actions.shape[0] == n && !chosen_actions.integral,
                        "the output '{}' has the shape {} for {} rows", chosen_actions.name,
                        shape_text(chosen_actions.shape), n);
    const std::int64_t width = chosen_actions.shape[1];
    for (std::int64_t row = 0; row < n; ++row)
      actions.emplace_back(chosen_actions.floats.begin() + row * width,
                           chosen_actions.floats.begin() + (row + 1) * width);
  }

  /// take(number of `rows` (layers, n, width), the environment's own) for each number of memory m.
  template <class Take>
  void copy_memory(std::size_t m, std::span<const std::int32_t> environments, std::vector<float>& rows,
                   const Take& take) {
    const Roles::Memory& memory = roles_.memories[m];
    const auto n = environments.size(), width = static_cast<std::size_t>(memory.width);
    for (std::size_t i = 0; i < n; ++i) {
      const auto env = static_cast<std::size_t>(environments[i]);
      COHORT_CHECK(env < memories_.size() && !memories_[env].empty(),
                   "an episode begins with begin(): the policy remembers");
      std::vector<float>& own = memories_[env][m];
      for (std::size_t layer = 0; layer < static_cast<std::size_t>(memory.layers); ++layer)
        for (std::size_t k = 0; k < width; ++k) take(rows[(layer * n + i) * width + k], own[layer * width + k]);
    }
  }

  std::shared_ptr<const Evaluator> evaluator_;
  const Roles roles_;
  std::vector<std::vector<std::vector<float>>> memories_;  // of each environment, for each of Roles::memories
};

class OnnxPolicy final : public policy::Policy {
 public:
  OnnxPolicy(std::shared_ptr<const Evaluator> evaluator, Roles roles, policy::Spec spec)
      : evaluator_(std::move(evaluator)), roles_(std::move(roles)), spec_(std::move(spec)) {}

  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings& settings) override {
    std::int64_t width = 0;
    for (const policy::Observation& o : spec_.all_numbers ? settings.observations : spec_.observations)
      width += o.shape.at(0);
    COHORT_THROW_UNLESS(width == roles_.width, "{} sees {} numbers; {} has {}", spec_.summary, roles_.width,
                        settings.task, width);
    return std::make_unique<OnnxSession>(evaluator_, roles_);
  }

 private:
  std::shared_ptr<const Evaluator> evaluator_;
  const Roles roles_;
  policy::Spec spec_;
};

}  // namespace

std::unique_ptr<policy::Policy> onnx_policy(Model model, const Contract& contract, const std::string& title) {
  Roles roles = roles_of(model, title);
  policy::Spec spec;
  spec.summary =
      format("{}{}{}", title, contract.task.empty() ? "" : ", which has learnt " + contract.task,
             model.producer.empty() ? "" : format(", written by {} {}", model.producer, model.producer_version));
  spec.identity = spec.summary;
  spec.remembers = !roles.memories.empty();
  spec.action_names = contract.action_names;
  spec.control_frequency = contract.control_period > 0 ? 1 / contract.control_period : 0;
  spec.learnt = {.name = contract.task, .settings = contract.task_settings, .remedy = ""};
  std::int64_t width = 0;
  bool known = !contract.observations.empty();
  for (const Contract::Observation& seen : contract.observations) {
    known = known && !seen.shape.empty();
    width += seen.width();
    spec.observations.push_back({.name = seen.name, .shape = {seen.width()}, .picture = false});
  }
  if (!known) {
    spec.observations.clear();
    spec.all_numbers = true;
  }
  COHORT_THROW_UNLESS(!known || width == roles.width,
                      "{}: its metadata name observations of {} numbers (observation_names, observation_shapes), and "
                      "its input '{}' takes {}",
                      title, width, model.inputs[roles.seen].name, roles.width);
  std::shared_ptr<const Evaluator> evaluator;
  try {
    evaluator = std::make_shared<const Evaluator>(std::move(model));
    // That it can be computed is seen now, and how many actions there are.
    OnnxSession trial(evaluator, roles);
    const std::int32_t environments[] = {0};
    const std::uint64_t seeds[] = {0};
    const std::vector<float> zeros(static_cast<std::size_t>(roles.width), 0.0f);
    trial.begin(environments, seeds, "");
    spec.action_width = std::ssize(trial.act(environments, {.low_dim = zeros, .images = {}}).front());
  } catch (const Error& e) {
    throw Error(format("{}: {}", title, e.what()));
  }
  COHORT_THROW_UNLESS(contract.action_names.empty() || std::ssize(contract.action_names) == spec.action_width,
                      "{}: its metadata name {} actions (action_names), and it gives {}", title,
                      contract.action_names.size(), spec.action_width);
  return std::make_unique<OnnxPolicy>(std::move(evaluator), std::move(roles), std::move(spec));
}

std::unique_ptr<policy::Policy> load_onnx_policy(const std::filesystem::path& path,
                                                 const policy::LoadSettings& settings) {
  COHORT_THROW_UNLESS(settings.device == "cpu",
                      "--device {}: {} is an ONNX file, which is computed on the CPU: leave --device out",
                      settings.device, path.string());
  COHORT_THROW_UNLESS(!settings.alone || (settings.overrides.empty() && settings.exec_horizon == 0),
                      "{} is an ONNX file, which gives an action at a time and has no settings to act by: leave "
                      "--exec-horizon and model.* out",
                      path.string());
  Model model = read_model(path);
  const Contract contract = read_contract(model.metadata, path.string());
  return onnx_policy(std::move(model), contract, path.string());
}

void register_onnx_policies() {
  policy::register_kind(
      {.name = "an ONNX file",
       .claims = [](const std::string& where) { return where.ends_with(".onnx"); },
       .load = [](const std::string& where,
                  const policy::LoadSettings& settings) { return load_onnx_policy(where, settings); }});
}

}  // namespace cohort::onnx
