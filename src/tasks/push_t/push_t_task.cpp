#include "tasks/push_t/push_t_task.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/json_text.h"
#include "core/threads.h"
#include "tasks/actor.h"
#include "tasks/push_t/push_t.h"
#include "tasks/push_t/push_t_expert.h"
#include "tasks/registry.h"
#include "tasks/task_fields.h"

namespace cohort::tasks {
namespace {

struct PushTSettings {
  std::string action = "target";
  PushTExpertSettings expert;
};

void describe(config::Fields& fields, PushTSettings& s) {
  fields.add_choice("action", s.action, {"target", "offset"},
                    "what an action is: the agent's target in px, or the target from where the agent is");
  fields.add("beam", s.expert.beam, "results that the planner pursues");
  fields.add("depth", s.expert.depth, "pushes that the planner plans ahead");
  fields.add("spacing", s.expert.spacing, "px between the planner's edge points");
  fields.add("push_speed", s.expert.push_speed, "px per control step of the planner");
}

TaskSpec spec_of(const PushTSettings& settings) {
  TaskSpec spec;
  spec.name = "push-t";
  spec.summary = "a round agent pushes a T-shaped block onto a goal pose (gym-pusht's state version)";
  spec.instruction = "push the T-shaped block onto the T-shaped goal";
  spec.observations = {
      {"state", {5}, "px", "agent x, y, block x, y; the block's angle in rad, in [0, 2 pi)", true},
      {"agent_pos", {2}, "px", "agent x, y"},
      {"environment_state", {16}, "px", "corners x, y of the block's two boxes", true},
  };
  const auto world = static_cast<float>(kPushTWorld);
  const bool offset = settings.action == "offset";
  spec.action = {.names = {"x", "y"},
                 .low = {offset ? -world : 0, offset ? -world : 0},
                 .high = {world, world},
                 .unit = "px",
                 .field = offset ? "action_offset" : "action"};
  spec.control_period = kPushTTimestep * kPushTSubsteps;
  spec.horizon = kPushTMaxSteps;
  spec.has_expert = true;
  spec.expert = "plans two pushes ahead by simulating one against every point of the block's edges";
  return spec;
}

class PushTTask final : public Task {
 public:
  PushTTask(const TaskSettings& settings, const PushTSettings& own, TaskFields fields)
      : own_(own),
        fields_(std::move(fields)),
        spec_(spec_of(own)),
        threads_(settings.threads),
        worlds_(static_cast<std::size_t>(settings.n_envs)) {
    const std::size_t n = worlds_.size();
    state_.resize(5 * n);
    agent_.resize(2 * n);
    corners_.resize(16 * n);
    reward_.resize(n);
    steps_.resize(n);
    seeds_.resize(n), targets_.resize(n * kActions);
    for (auto* flags : {&success_, &terminated_, &truncated_, &broken_}) flags->resize(n);
    for (std::size_t env = 0; env < n; ++env) observe(env);
  }

  const TaskSpec& spec() const override { return spec_; }
  int n_envs() const override { return static_cast<int>(worlds_.size()); }

  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) override {
    for (std::size_t i = 0; i < envs.size(); ++i) {
      const auto env = static_cast<std::size_t>(envs[i]);
      COHORT_THROW_UNLESS(seeds[i] <= 0xFFFFFFFF, "Push-T: seeds end at 4294967295, and one is {}", seeds[i]);
      worlds_.at(env).reset(static_cast<std::uint32_t>(seeds[i]));
      seeds_[env] = seeds[i];
      reward_[env] = 0;
      steps_[env] = 0;
      for (auto* flags : {&success_, &terminated_, &truncated_, &broken_}) (*flags)[env] = 0;
      observe(env);
    }
  }

  void step(ArrayView actions) override {
    const auto rows = actions.span<float>();
    parallel_for(n_envs(), threads_, [&](std::int64_t i) {
      const auto env = static_cast<std::size_t>(i);
      step_one(env, rows[2 * env], rows[2 * env + 1]);
    });
  }

  ArrayView observation(std::size_t field) override {
    std::vector<float>& rows = field == 0 ? state_ : field == 1 ? agent_ : corners_;
    return make_view(rows.data(), {n_envs(), spec_.observations.at(field).elements()});
  }
  ArrayView reward() override { return make_view(reward_.data(), {n_envs()}); }
  ArrayView success() override { return make_view(success_.data(), {n_envs()}); }
  ArrayView terminated() override { return make_view(terminated_.data(), {n_envs()}); }
  ArrayView truncated() override { return make_view(truncated_.data(), {n_envs()}); }
  ArrayView broken() override { return make_view(broken_.data(), {n_envs()}); }

  std::unique_ptr<Actor> make_expert(std::uint64_t seed) override;
  std::string description() const override {
    config::Json json = fields_->to_json();
    json["engine"] = "chipmunk";
    return json_text(json);
  }

  TaskFields settings() const override { return fields_; }

  const PushT& world(std::size_t env) const { return worlds_.at(env); }
  const PushTSettings& own() const { return own_; }
  int threads() const { return threads_; }

 protected:
  /// Chipmunk shows a space's bodies, but neither the impulses that its solver starts from nor the order in which it takes
  /// contacts up: an episode is kept as its seed and the agent's targets since, and played again.
  void visit_state(StateVisitor& state) override {
    for (std::size_t env = 0; env < worlds_.size() && !state.loads(); ++env)
      COHORT_THROW_UNLESS(steps_[env] <= kPushTMaxSteps,
                          "push-t: environment {} is {} steps old, and states are kept of {}: reset it when truncated",
                          env, steps_[env], kPushTMaxSteps);
    state.add("task.seed", seeds_);
    state.add("task.step", steps_);
    state.add("task.target", targets_);
    state.add("task.reward", reward_);
    state.add("task.success", success_);
    state.add("task.terminated", terminated_);
    state.add("task.truncated", truncated_);
    state.add("task.broken", broken_);
    if (!state.loads()) return;
    for (const std::int64_t age : steps_)
      COHORT_THROW_UNLESS(age >= 0 && age <= kPushTMaxSteps, "push-t: a state is {} steps old, beyond {}", age,
                          kPushTMaxSteps);
    parallel_for(n_envs(), threads_, [&](std::int64_t i) {
      const auto env = static_cast<std::size_t>(i);
      worlds_[env].reset(static_cast<std::uint32_t>(seeds_[env]));
      for (std::int64_t k = 0; k < steps_[env]; ++k) worlds_[env].step(targets_[env * kActions + as_action(k)]);
      observe(env);
    });
  }

 private:
  static constexpr std::size_t kActions = kPushTMaxSteps;  // of an episode
  static std::size_t as_action(std::int64_t step) { return static_cast<std::size_t>(step); }

  void step_one(std::size_t env, float x, float y) {
    if (!std::isfinite(x) || !std::isfinite(y)) broken_[env] = 1;
    if (broken_[env]) {
      terminated_[env] = 1;
      reward_[env] = 0;
      success_[env] = 0;
      return;
    }
    PushTAction target = {x, y};
    if (own_.action == "offset") {
      const Point2 agent = worlds_[env].situation().agent;
      target = {agent.x + target[0], agent.y + target[1]};
    }
    for (double& value : target) value = std::clamp(value, 0.0, kPushTWorld);
    if (steps_[env] < kPushTMaxSteps) targets_[env * kActions + as_action(steps_[env])] = target;
    const PushTStep result = worlds_[env].step(target);
    reward_[env] = static_cast<float>(result.reward);
    success_[env] = result.success;
    terminated_[env] = result.success;
    truncated_[env] = ++steps_[env] >= spec_.horizon;
    observe(env);
  }

  void observe(std::size_t env) {
    const PushTState state = worlds_[env].observation();
    for (std::size_t i = 0; i < 5; ++i) state_[5 * env + i] = static_cast<float>(state[i]);
    for (std::size_t i = 0; i < 2; ++i) agent_[2 * env + i] = static_cast<float>(state[i]);
    const auto corners = worlds_[env].keypoints();
    for (std::size_t i = 0; i < 16; ++i) corners_[16 * env + i] = static_cast<float>(corners[i]);
  }

  PushTSettings own_;
  TaskFields fields_;
  TaskSpec spec_;
  int threads_;
  std::vector<PushT> worlds_;
  std::vector<float> state_, agent_, corners_, reward_;
  std::vector<std::int64_t> steps_;
  std::vector<std::uint64_t> seeds_;
  std::vector<PushTAction> targets_;  // (n, kActions): of the steps since the reset
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_;
};

class PushTExpertActor final : public Actor {
 public:
  explicit PushTExpertActor(const PushTTask& task) : task_(task), planners_(static_cast<std::size_t>(task.n_envs())) {}
  std::string name() const override { return "expert"; }

  void begin(std::span<const std::int32_t> envs, std::span<const std::uint64_t>, const std::string&) override {
    for (const std::int32_t env : envs) planners_.at(static_cast<std::size_t>(env)).emplace(task_.own().expert);
  }

  void act(Task&, std::span<const std::int32_t> envs, ArrayView actions) override {
    const auto rows = actions.span<float>();
    const bool offset = task_.own().action == "offset";
    parallel_for(static_cast<std::int64_t>(envs.size()), task_.threads(), [&](std::int64_t i) {
      const auto env = static_cast<std::size_t>(envs[static_cast<std::size_t>(i)]);
      const PushTSituation now = task_.world(env).situation();
      const PushTAction target = planners_.at(env).value().act(now);
      rows[2 * env] = static_cast<float>(offset ? target[0] - now.agent.x : target[0]);
      rows[2 * env + 1] = static_cast<float>(offset ? target[1] - now.agent.y : target[1]);
    });
  }

 private:
  const PushTTask& task_;
  std::vector<std::optional<PushTExpert>> planners_;
};

std::unique_ptr<Actor> PushTTask::make_expert(std::uint64_t) {
  return std::make_unique<PushTExpertActor>(*this);
}

}  // namespace

std::unique_ptr<Task> make_push_t_task(const TaskSettings& settings) {
  PushTSettings own;
  TaskFields fields = read_fields(settings, own);
  const PushTExpert checked(own.expert);
  COHORT_THROW_UNLESS(settings.engine.empty() || settings.engine == "batched",
                      "push-t runs on Chipmunk2D: it has no engine '{}'", settings.engine);
  COHORT_THROW_UNLESS(settings.device.kind == DeviceKind::kCpu, "push-t runs on the CPU, not on {}",
                      to_string(settings.device));
  return std::make_unique<PushTTask>(settings, own, std::move(fields));
}

void register_push_t() {
  register_task({.name = "push-t", .summary = spec_of({}).summary, .make = make_push_t_task, .settings = [] {
                   return fields_of(PushTSettings());
                 }});
}

}  // namespace cohort::tasks
