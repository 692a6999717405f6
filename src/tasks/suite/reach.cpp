// reach: the hand goes to a green ball that hangs anywhere over the table.
#include <cmath>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr HandActions kReachActions{.yaw = false, .grip = false};
constexpr double kReached = 0.02;  // m

constexpr const char* kReachSummary = "bring the hand to a ball that hangs anywhere over the table";

struct ReachSettings : SceneTaskSettings {
  ReachSettings() { horizon = 50; }
};

SceneTaskSetup reach_setup(const TaskSettings& settings) {
  ReachSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  TaskSpec& spec = setup.spec;
  spec.name = "reach";
  spec.summary = kReachSummary;
  spec.instruction = "reach the green ball";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"goal_pos", {3}, "m", "the ball's middle", true},
      {"goal_to_eef", {3}, "m", "goal_pos less eef_pos", true},
  };
  spec.cameras = {"front", "wrist", "side"};
  spec.action = hand_actions(kReachActions);
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"reach"};
  spec.has_expert = true;
  spec.expert = "goes straight there";
  setup.mjcf = arm_mjcf({.name = "reach", .bodies = R"(
    <body name="goal" pos="0.5 0 0.2" mocap="true">
      <geom name="goal" class="seen" type="sphere" size="0.02" material="goal"/>
    </body>)"});
  return setup;
}

class Reach final : public ArmTask {
 public:
  explicit Reach(const TaskSettings& settings)
      : ArmTask(settings, reach_setup(settings), kReachActions), goals_(static_cast<std::size_t>(n_envs())) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    const Vec3 hand{between(random, 3, 0.40, 0.60), between(random, 4, -0.15, 0.15), between(random, 5, 0.12, 0.28)};
    Vec3 goal;
    std::uint64_t i = 16;
    do {
      goal = {between(random, i, 0.36, 0.64), between(random, i + 1, -0.22, 0.22), between(random, i + 2, 0.05, 0.35)};
      i += 3;
    } while (norm(goal - hand) < 0.08);
    goals_[static_cast<std::size_t>(env)] = goal;
    for (std::size_t k = 0; k < 3; ++k) start.mocap_pos[k] = goal[k];
    place_hand(env, hand, 0, kReachActions.opening, start);
  }

  void visit_variables(StateVisitor& state) override { state.add("goal", goals_); }

  void observe(int env, const EnvState&, ObservationRows& out) override {
    const Vec3 &at = hand(env).pos, &goal = goals_[static_cast<std::size_t>(env)];
    out.put("eef_pos", {at[0], at[1], at[2]});
    out.put("goal_pos", {goal[0], goal[1], goal[2]});
    out.put("goal_to_eef", {goal[0] - at[0], goal[1] - at[1], goal[2] - at[2]});
  }

  Judgement judge(int env, const EnvState&, Terms& terms) override {
    const double missing = norm(goals_[static_cast<std::size_t>(env)] - hand(env).pos);
    if (!terms.empty()) terms.put("reach", -std::tanh(5 * missing));
    return {.success = missing < kReached};
  }

  void expert(int env, const EnvState&, std::span<float> action) override {
    act(hand(env), {.target = goals_[static_cast<std::size_t>(env)]}, action);
  }

  std::vector<Vec3> goals_;
};

}  // namespace

void register_reach() {
  register_task({.name = "reach",
                 .summary = kReachSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<Reach>(s); },
                 .settings = [] { return fields_of(ReachSettings()); }});
}

}  // namespace cohort::tasks
