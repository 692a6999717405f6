#include "rl/ppo_actor.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "rl/settings.h"
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

/// A run's folder for tables, "cartpole-balance/2026-11-26_10-00-00".
std::string short_name(const fs::path& path) {
  fs::path clean = path.lexically_normal();
  if (clean.filename().empty()) clean = clean.parent_path();
  const std::string last = clean.filename().string(), above = clean.parent_path().filename().string();
  return above.empty() || above == "." || above == ".." ? last : above + "/" + last;
}

config::Json configuration_of(const weights::CheckpointContent& content) {
  const config::Json json = config::Json::parse(content.state.configuration, nullptr, false);
  return json.is_object() ? json : config::Json::object();
}

/// "250", "true", "rough", "torque:2,floor:0": how a setting's value is compared, whether it was typed or is JSON.
std::string plain(const config::Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const config::Json& item : value) text += (text.empty() ? "" : ",") + plain(item);
  return text;
}
std::string plain_typed(const std::string& text) {
  if (text == "True" || text == "False") return text == "True" ? "true" : "false";
  const config::Json json = config::Json::parse(text, nullptr, false);
  if (!json.is_discarded()) return plain(json);
  std::string inside = text.starts_with('[') && text.ends_with(']') ? text.substr(1, text.size() - 2) : text;
  std::erase(inside, ' ');
  return inside;
}

/// What the training said about its task, beside what holds in this one.
std::vector<std::string> differences_of(const config::Json& configuration, const tasks::Task& task) {
  const std::string trained_on = configuration.value("task", "");
  if (trained_on != task.spec().name)
    return {format("it has learnt {} and acts in {}: as many observations and actions, which may mean something else",
                   trained_on, task.spec().name)};
  const config::Json here = config::Json::parse(task.description(), nullptr, false);
  if (!here.is_object()) return {};
  std::map<std::string, std::string> said;
  if (const std::string engine = configuration.value("engine", ""); !engine.empty()) said["engine"] = engine;
  const config::Json settings = configuration.value("task_settings", config::Json::array());
  for (const config::Json& setting : settings) {
    const std::string text = setting.is_string() ? setting.get<std::string>() : "";
    if (const std::size_t equals = text.find('='); equals != std::string::npos)
      said[text.substr(0, equals)] = plain_typed(text.substr(equals + 1));
  }
  const config::Json of_task = here.value("settings", config::Json::object());
  std::vector<std::string> lines;
  for (const auto& [key, value] : said) {
    const config::Json& holder = key == "engine" ? here : of_task;
    if (!holder.contains(key) || plain(holder.at(key)) == value) continue;
    const auto shown = [](const std::string& text) { return text.empty() ? "[]" : text; };
    lines.push_back(
        format("it has learnt with {}={}; here {}={}", key, shown(value), key, shown(plain(holder.at(key)))));
  }
  return lines;
}

bool is_ppo(const config::Json& configuration) {
  return configuration.value("job", "") == "ppo";
}

}  // namespace

bool is_ppo_run(const fs::path& path) {
  const fs::path state = checkpoint_of(path) / weights::kStateFile;
  if (!fs::exists(state)) return false;
  const config::Json json = config::Json::parse(read_file(state), nullptr, false);
  return json.is_object() && json.contains("configuration") && json["configuration"].is_object() &&
         is_ppo(json["configuration"]);
}

PpoTask task_of_ppo_run(const fs::path& path) {
  const fs::path state = checkpoint_of(path) / weights::kStateFile;
  COHORT_THROW_UNLESS(is_ppo_run(path), "{} is no run of `cohort train ppo`", path.string());
  const config::Json configuration = config::Json::parse(read_file(state)).at("configuration");
  PpoTask task{.name = configuration.value("task", ""), .engine = configuration.value("engine", ""), .settings = {}};
  const config::Json settings = configuration.value("task_settings", config::Json::array());
  for (const config::Json& setting : settings)
    if (setting.is_string()) task.settings.push_back(setting.get<std::string>());
  return task;
}

PpoActor::PpoActor(const fs::path& path, const tasks::Task& task, bool averaged) : name_(short_name(path)) {
  const fs::path checkpoint = checkpoint_of(path);
  const weights::CheckpointContent content = weights::read_checkpoint(checkpoint);
  const config::Json configuration = configuration_of(content);
  COHORT_THROW_UNLESS(is_ppo(configuration), "{} was not written by `cohort train ppo`", checkpoint.string());
  PolicySettings settings;
  config::Fields fields;
  describe(fields, settings);
  fields.apply_json(configuration.at("policy"), checkpoint.string());
  const std::string trained_on = configuration.value("task", "");
  // What only the critic sees need not be there.
  ObservationLayout layout;
  std::int64_t seen = 0;
  for (const tasks::FieldSpec& field : task.spec().observations)
    if (std::find(settings.critic_only.begin(), settings.critic_only.end(), field.name) == settings.critic_only.end())
      seen += field.elements();
  for (const auto& [name, tensor] : content.model) {
    if (name == "observations.mean") layout.width = tensor.numel();
    if (name == "actor_columns")
      layout.actor_columns.assign(tensor.const_data_ptr<std::int64_t>(),
                                  tensor.const_data_ptr<std::int64_t>() + tensor.numel());
  }
  if (layout.actor_columns.empty())
    for (std::int64_t i = 0; i < layout.width; ++i) layout.actor_columns.push_back(i);
  COHORT_THROW_UNLESS(std::ssize(layout.actor_columns) == seen, "{} has learnt {} from {} observations; {} has {}",
                      checkpoint.string(), trained_on, layout.actor_columns.size(), task.spec().name, seen);
  auto networks = std::make_shared<ActorCritic>(settings, layout, task.spec().action, 0);
  for (const auto& [name, tensor] : content.model)
    if (name == "log_std")
      COHORT_THROW_UNLESS(tensor.numel() == networks->action_width(),
                          "{} has learnt {} with actions of {} numbers; those of {} have {}", checkpoint.string(),
                          trained_on, tensor.numel(), task.spec().name, networks->action_width());
  const bool takes_average = averaged && !content.ema.empty();
  weights::load_weights(*networks, takes_average ? content.ema : content.model, content.model_aliases,
                        (checkpoint / (takes_average ? weights::kEmaFile : weights::kModelFile)).string());
  networks->moments().refresh();
  summary_ = format("PPO on {}, iteration {}, {} control steps{}: {}", trained_on, content.state.step,
                    content.state.samples, takes_average ? ", moving average of the weights" : "", checkpoint.string());
  networks_ = std::move(networks);
  differences_ = differences_of(configuration, task);
}

PpoActor::PpoActor(std::shared_ptr<const ActorCritic> networks, std::string name)
    : networks_(std::move(networks)), name_(std::move(name)), summary_("PPO, in memory") {}

bool PpoActor::remembers() const {
  return networks_->recurrent();
}

void PpoActor::begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t>, const std::string&) {
  if (!networks_->recurrent() || envs.empty()) return;
  const std::int64_t n = *std::max_element(envs.begin(), envs.end()) + 1,
                     known = memory_.defined() ? memory_.size(1) : 0;
  if (known == 0)
    memory_ = networks_->begin(n).actor;
  else if (n > known)
    memory_ = at::constant_pad_nd(memory_, {0, 0, 0, n - known});
  memory_.index_fill_(1, torch::tensor(std::vector<std::int64_t>(envs.begin(), envs.end()), at::kLong), 0);
}

void PpoActor::act(tasks::Task& task, std::span<const std::int32_t> envs, ArrayView actions) {
  if (envs.empty()) return;
  const at::NoGradGuard no_grad;
  const std::int64_t n = std::ssize(envs), width = networks_->action_width();
  const at::Tensor rows = torch::tensor(std::vector<std::int64_t>(envs.begin(), envs.end()), at::kLong);
  const at::Tensor seen = read_observations(task, networks_->settings().critic_only).index_select(0, rows);
  at::Tensor memory;
  if (networks_->recurrent()) {
    COHORT_CHECK(memory_.defined() && rows.max().item<std::int64_t>() < memory_.size(1),
                 "an episode begins with begin(): the policy remembers");
    memory = memory_.index_select(1, rows);
    memory = at::constant_pad_nd(memory, {0, 0, 0, whole_rows(seen).size(0) - n});
  }
  const at::Tensor chosen = networks_->to_task(networks_->mean_of_actors_observations(whole_rows(seen), memory));
  if (memory.defined()) memory_.index_copy_(1, rows, memory.narrow(1, 0, n));
  const auto* from = chosen.const_data_ptr<float>();
  const std::span<float> to = actions.span<float>();
  for (std::int64_t i = 0; i < n; ++i)
    std::copy_n(from + i * width, width, to.begin() + envs[static_cast<std::size_t>(i)] * width);
}

}  // namespace cohort::rl
