#include "rl/ppo_policy.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "rl/settings.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"
#include "tasks/run_library.h"
#include "weights/checkpoint.h"
#include "weights/checkpoint_folder.h"
#include "weights/weights.h"

namespace cohort::rl {
namespace fs = std::filesystem;
namespace {

/// The checkpoint that a path means.
fs::path checkpoint_of(const fs::path& path) {
  if (fs::exists(path / weights::kStateFile)) return path;
  for (const char* inside : {"last", "checkpoints/last"})
    if (fs::exists(path / inside)) return fs::canonical(path / inside);
  // Copies without links have no `last`.
  for (const fs::path& folder : {path, path / "checkpoints"}) {
    const weights::CheckpointFolder checkpoints(folder);
    if (const auto steps = checkpoints.steps(); !steps.empty()) return checkpoints.checkpoint(steps.back());
  }
  return path;
}

config::Json configuration_of(const weights::CheckpointContent& content) {
  const config::Json json = try_json<config::Json>(content.state.configuration);
  return json.is_object() ? json : config::Json::object();
}

bool is_ppo(const config::Json& configuration) {
  return configuration.value("job", "") == "ppo";
}

policy::LearntTask learnt_task(const config::Json& configuration) {
  policy::LearntTask learnt{.name = tasks::task_title(configuration.value("task", "")), .settings = {}};
  if (const std::string engine = configuration.value("engine", ""); !engine.empty()) learnt.settings["engine"] = engine;
  const config::Json settings = configuration.value("task_settings", config::Json::array());
  for (const config::Json& setting : settings) {
    const std::string text = setting.is_string() ? setting.get<std::string>() : "";
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      learnt.settings[text.substr(0, equals)] = text.substr(equals + 1);
  }
  return learnt;
}

class PpoSession final : public policy::Session {
 public:
  explicit PpoSession(std::shared_ptr<const ActorCritic> networks) : networks_(std::move(networks)) {}

  void begin(std::span<const std::int32_t> environments, std::span<const std::uint64_t>, const std::string&) override {
    if (!networks_->recurrent() || environments.empty()) return;
    const std::int64_t n = *std::max_element(environments.begin(), environments.end()) + 1,
                       so_far = memory_.defined() ? memory_.size(1) : 0;
    if (so_far == 0)
      memory_ = networks_->begin(n).actor;
    else if (n > so_far)
      memory_ = at::constant_pad_nd(memory_, {0, 0, 0, n - so_far});
    memory_.index_fill_(1, rows_of(environments), 0);
  }

  void see(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    if (networks_->recurrent()) decide(environments, frame);
  }

  std::vector<std::vector<float>> act(std::span<const std::int32_t> environments, const policy::Frame& frame) override {
    const at::Tensor chosen = decide(environments, frame);
    const float* row = chosen.const_data_ptr<float>();
    std::vector<std::vector<float>> actions;
    for (std::size_t i = 0; i < environments.size(); ++i, row += chosen.size(1))
      actions.emplace_back(row, row + chosen.size(1));
    return actions;
  }

 private:
  static at::Tensor rows_of(std::span<const std::int32_t> environments) {
    return torch::tensor(std::vector<std::int64_t>(environments.begin(), environments.end()), at::kLong);
  }

  /// (rows, action width), the first rows of which are the environments' actions.
  at::Tensor decide(std::span<const std::int32_t> environments, const policy::Frame& frame) {
    const at::NoGradGuard no_grad;
    const std::int64_t n = std::ssize(environments), width = networks_->actor_width();
    COHORT_THROW_UNLESS(std::ssize(frame.low_dim) == n * width,
                        "{} numbers are seen in {} environments, but the policy sees {} in each", frame.low_dim.size(),
                        n, width);
    const at::Tensor seen = whole_rows(
        torch::tensor(at::ArrayRef<float>(frame.low_dim.data(), frame.low_dim.size()), at::kFloat).reshape({n, width}));
    at::Tensor memory;
    const at::Tensor rows = rows_of(environments);
    if (networks_->recurrent()) {
      COHORT_CHECK(memory_.defined() && rows.max().item<std::int64_t>() < memory_.size(1),
                   "an episode begins with begin(): the policy remembers");
      memory = at::constant_pad_nd(memory_.index_select(1, rows), {0, 0, 0, seen.size(0) - n});
    }
    const at::Tensor chosen = networks_->to_task(networks_->mean_of_actors_observations(seen, memory));
    if (memory.defined()) memory_.index_copy_(1, rows, memory.narrow(1, 0, n));
    return chosen.contiguous();
  }

  std::shared_ptr<const ActorCritic> networks_;
  at::Tensor memory_;  // (layers, environments so far, H); undefined without memory
};

class PpoPolicy final : public policy::Policy {
 public:
  PpoPolicy(std::shared_ptr<const ActorCritic> networks, policy::Spec spec)
      : networks_(std::move(networks)), spec_(std::move(spec)) {
    spec_.identity = spec_.summary;
    spec_.all_numbers = spec_.observations.empty();
    spec_.unseen = networks_->settings().critic_only;
    spec_.action_width = networks_->action_width();
    spec_.remembers = networks_->recurrent();
  }

  const policy::Spec& spec() const override { return spec_; }
  std::unique_ptr<policy::Session> session(const policy::SessionSettings& settings) override {
    std::int64_t width = 0;
    for (const policy::Observation& o : spec_.all_numbers ? settings.observations : spec_.observations)
      width += o.shape.at(0);
    COHORT_THROW_UNLESS(width == networks_->actor_width(), "{} has learnt {} from {} observations; {} has {}",
                        spec_.summary, spec_.learnt.name, networks_->actor_width(), settings.task, width);
    return std::make_unique<PpoSession>(networks_);
  }

 private:
  std::shared_ptr<const ActorCritic> networks_;
  policy::Spec spec_;
};

/// The networks of a checkpoint, with or without their moving average.
std::shared_ptr<const ActorCritic> read_networks(const fs::path& checkpoint, const weights::CheckpointContent& content,
                                                 bool takes_average) {
  PolicySettings settings;
  config::Fields fields;
  describe(fields, settings);
  fields.apply_json(configuration_of(content).at("policy"), checkpoint.string());
  ObservationLayout layout;
  tasks::ActionSpec action;
  for (const auto& [name, tensor] : content.model) {
    if (name == "observations.mean") layout.width = tensor.numel();
    if (name == "actor_columns")
      layout.actor_columns.assign(tensor.const_data_ptr<std::int64_t>(),
                                  tensor.const_data_ptr<std::int64_t>() + tensor.numel());
    if (name == "log_std") action.names.resize(static_cast<std::size_t>(tensor.numel()));
  }
  if (layout.actor_columns.empty())
    for (std::int64_t i = 0; i < layout.width; ++i) layout.actor_columns.push_back(i);
  // The task's bounds are among the weights: action_offset and action_scale.
  action.low.assign(action.names.size(), -1);
  action.high.assign(action.names.size(), 1);
  auto networks = std::make_shared<ActorCritic>(settings, layout, action, 0);
  weights::load_weights(*networks, takes_average ? content.ema : content.model, content.model_aliases,
                        (checkpoint / (takes_average ? weights::kEmaFile : weights::kModelFile)).string());
  networks->moments().refresh();
  return networks;
}

/// What the task that a policy has learnt calls its observations and actions.
void name_fields(policy::Spec& spec, const std::string& name, const std::vector<std::string>& unseen) {
  const auto task = make_learnt_task(name, spec.learnt);
  for (const tasks::FieldSpec& field : task->spec().observations)
    if (std::find(unseen.begin(), unseen.end(), field.name) == unseen.end())
      spec.observations.push_back({.name = field.name, .shape = {field.elements()}, .picture = false});
  spec.action_names = task->spec().action.names;
  spec.control_frequency = task->spec().control_period > 0 ? 1 / task->spec().control_period : 0;
}

}  // namespace

bool is_ppo_run(const fs::path& path) {
  const fs::path state = checkpoint_of(path) / weights::kStateFile;
  if (!fs::exists(state)) return false;
  const config::Json json = try_json<config::Json>(read_file(state));
  return json.is_object() && json.contains("configuration") && json["configuration"].is_object() &&
         is_ppo(json["configuration"]);
}

PpoCheckpoint read_ppo_checkpoint(const fs::path& path, bool takes_average) {
  PpoCheckpoint checkpoint;
  checkpoint.path = checkpoint_of(path);
  const weights::CheckpointContent content = weights::read_checkpoint(checkpoint.path);
  const config::Json configuration = configuration_of(content);
  COHORT_THROW_UNLESS(is_ppo(configuration), "{} was not written by `cohort train ppo`", checkpoint.path.string());
  checkpoint.averaged = takes_average && !content.ema.empty();
  checkpoint.task = configuration.value("task", "");
  checkpoint.learnt = learnt_task(configuration);
  checkpoint.iteration = content.state.step;
  checkpoint.control_steps = content.state.samples;
  checkpoint.networks = read_networks(checkpoint.path, content, checkpoint.averaged);
  return checkpoint;
}

std::unique_ptr<tasks::Task> make_learnt_task(const std::string& name, const policy::LearntTask& learnt) {
  tasks::TaskSettings settings;
  for (const auto& [key, value] : learnt.settings)
    if (key == "engine")
      settings.engine = value;
    else
      settings.overrides.push_back(format("{}={}", key, value));
  return tasks::make_task(name, settings);
}

std::unique_ptr<policy::Policy> load_ppo_policy(const fs::path& path, const policy::LoadSettings& settings) {
  const PpoCheckpoint checkpoint = read_ppo_checkpoint(path, settings.averaged);
  COHORT_THROW_UNLESS(settings.device == "cpu",
                      "--device {}: {} is of `cohort train ppo`, whose policies act on the CPU: leave --device out",
                      settings.device, path.string());
  COHORT_THROW_UNLESS(
      !settings.alone || (settings.overrides.empty() && settings.exec_horizon == 0),
      "{} is of `cohort train ppo`, which gives an action at a time and has no settings to act by: leave "
      "--exec-horizon and model.* out",
      path.string());
  policy::Spec spec;
  spec.learnt = checkpoint.learnt;
  spec.summary = format("PPO on {}, iteration {}, {} control steps{}: {}", spec.learnt.name, checkpoint.iteration,
                        checkpoint.control_steps, checkpoint.averaged ? ", moving average of the weights" : "",
                        checkpoint.path.string());
  if (settings.alone) {
    tasks::use_library_of_run(path.string(), true);
    name_fields(spec, checkpoint.task, checkpoint.networks->settings().critic_only);
  }
  return std::make_unique<PpoPolicy>(checkpoint.networks, std::move(spec));
}

std::unique_ptr<policy::Policy> ppo_policy(std::shared_ptr<const ActorCritic> networks) {
  policy::Spec spec;
  spec.summary = "PPO, in memory";
  return std::make_unique<PpoPolicy>(std::move(networks), std::move(spec));
}

void register_ppo_policies() {
  policy::register_kind(
      {.name = "a run or checkpoint of PPO",
       .claims = [](const std::string& where) { return is_ppo_run(where); },
       .load = [](const std::string& where,
                  const policy::LoadSettings& settings) { return load_ppo_policy(where, settings); }});
}

}  // namespace cohort::rl
