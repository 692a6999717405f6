// push: a cube that lies anywhere, turned anyhow, is pushed onto a green disc ahead of it, by two fingers held apart.
#include <algorithm>
#include <cmath>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr double kHalfBlock = 0.025;  // m
constexpr double kPushHeight = 0.03;  // m of the hand over the table while it pushes
constexpr double kPushed = 0.025;     // m from the disc's middle
constexpr double kHalfTurn = 2 * kQuarterTurn;
// Fingers that are apart push a face without turning it.
constexpr HandActions kPushActions{.yaw = true, .grip = false, .opening = 0.035};

constexpr const char* kPushSummary = "push a cube that lies anywhere onto the green disc";

struct PushSettings : SceneTaskSettings {
  PushSettings() { horizon = 100; }
};

SceneTaskSetup push_setup(const TaskSettings& settings) {
  PushSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  TaskSpec& spec = setup.spec;
  spec.name = "push";
  spec.summary = kPushSummary;
  spec.instruction = "push the blue cube onto the green disc";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"eef_yaw", {2}, "1", "sine and cosine of the hand's yaw"},
      {"cube_pos", {3}, "m", "the cube's middle", true},
      {"cube_to_eef", {3}, "m", "cube_pos less eef_pos", true},
      {"cube_yaw",
       {2},
       "1",
       "sine and cosine of four times the cube's yaw from the hand's: a quarter turn is none",
       true},
      {"goal_to_cube", {3}, "m", "where the cube's middle is to be, less cube_pos", true},
  };
  spec.cameras = {"front", "wrist", "side"};
  spec.action = hand_actions(kPushActions);
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"reach", "push"};
  spec.has_expert = true;
  spec.expert = "goes behind the cube, seen from the disc, lowers the fingers and pushes";
  setup.mjcf = arm_mjcf({.name = "push", .bodies = cube_mjcf("cube", "blue", kHalfBlock) + marker_mjcf("goal", 0.045)});
  return setup;
}

class PushTask final : public ArmTask {
 public:
  explicit PushTask(const TaskSettings& settings)
      : ArmTask(settings, push_setup(settings), kPushActions),
        cube_qpos_(qpos_of("cube")),
        cube_qvel_(qvel_of("cube")),
        goals_(static_cast<std::size_t>(n_envs())) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    const Vec3 cube{between(random, 0, 0.37, 0.57), between(random, 1, -0.10, 0.10), kHalfBlock};
    place_body(start.qpos, cube_qpos_, cube, between(random, 2, 0, 4 * kQuarterTurn));
    const Vec3 goal{between(random, 7, 0.63, 0.67), between(random, 8, -0.12, 0.12), kHalfBlock};
    goals_[static_cast<std::size_t>(env)] = goal;
    start.mocap_pos[0] = goal[0], start.mocap_pos[1] = goal[1], start.mocap_pos[2] = 0.001;
    const Vec3 hand{between(random, 3, 0.36, 0.48), between(random, 4, -0.08, 0.08), between(random, 5, 0.14, 0.20)};
    place_hand(env, hand, between(random, 6, -0.3, 0.3), kPushActions.opening, start);
  }

  CubeState cube(const EnvState& now) const { return cube_state(now, cube_qpos_, cube_qvel_); }

  void visit_variables(StateVisitor& state) override { state.add("goal", goals_); }

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Hand& h = hand(env);
    const CubeState c = cube(now);
    const Vec3 to_eef = c.pos - h.pos, to_goal = goals_[static_cast<std::size_t>(env)] - c.pos;
    const double turn = 4 * (c.yaw - h.yaw);
    out.put("eef_pos", {h.pos[0], h.pos[1], h.pos[2]});
    out.put("eef_yaw", {std::sin(h.yaw), std::cos(h.yaw)});
    out.put("cube_pos", {c.pos[0], c.pos[1], c.pos[2]});
    out.put("cube_to_eef", {to_eef[0], to_eef[1], to_eef[2]});
    out.put("cube_yaw", {std::sin(turn), std::cos(turn)});
    out.put("goal_to_cube", {to_goal[0], to_goal[1], to_goal[2]});
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const CubeState c = cube(now);
    const Vec3 missing = goals_[static_cast<std::size_t>(env)] - c.pos;
    const bool there = norm(missing) < kPushed;
    if (!terms.empty()) {
      terms.put("reach", there ? 0.0 : -0.3 * std::tanh(5 * norm(c.pos - hand(env).pos)));
      terms.put("push", -0.7 * std::tanh(5 * norm(missing)));
    }
    return {.success = there && norm(c.velocity) < 0.1};
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const Hand& h = hand(env);
    const CubeState c = cube(now);
    Vec3 missing = goals_[static_cast<std::size_t>(env)] - c.pos;
    missing[2] = 0;
    const double far = norm(missing);
    // Ahead: towards the disc. How far the hand is ahead of the cube (below 0: behind) and beside the line.
    const Vec3 ahead = (1 / std::max(1e-6, far)) * missing, aside{-ahead[1], ahead[0], 0};
    const Vec3 from_cube = h.pos - c.pos;
    const double before = dot(from_cube, ahead), beside = dot(from_cube, aside);
    const double turn = wrapped(std::atan2(ahead[1], ahead[0]) - h.yaw, kHalfTurn);
    Intent intent;
    intent.turn = turn;
    if (far < 0.008) {
      intent.target = h.pos;  // there
    } else if (h.pos[2] < 0.055 && before < -0.025 && std::abs(beside) < 0.03) {
      // Behind it and low: push, and stay on the line.
      intent.target = h.pos + std::min(0.003 + 0.7 * far, 0.6 * kHandStep) * ahead - (0.7 * beside) * aside;
      intent.target[2] = kPushHeight;
      // From a distance quickly, but not against the cube.
      const double gap = -before - 0.05;
      if (gap > 0.01) intent.target = intent.target + std::min(gap, 0.4 * kHandStep) * ahead;
    } else {
      // To a place behind it: across in the air, down when there.
      const Vec3 behind = c.pos - 0.068 * ahead;
      const double off = std::hypot(h.pos[0] - behind[0], h.pos[1] - behind[1]);
      const bool blocked = before > -0.055;  // the way down would end on the cube
      intent.target = behind;
      intent.target[2] =
          kPushHeight + 0.08 * std::max({ramp(off, 0.01, 0.04), ramp(std::abs(turn), 0.1, 0.4), blocked ? 1.0 : 0.0});
      if (h.pos[2] < 0.075 && blocked) intent.target[0] = h.pos[0], intent.target[1] = h.pos[1];
    }
    act(h, intent, action);
  }

  std::size_t cube_qpos_, cube_qvel_;
  std::vector<Vec3> goals_;
};

}  // namespace

void register_push() {
  register_task({.name = "push",
                 .summary = kPushSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<PushTask>(s); },
                 .settings = [] { return fields_of(PushSettings()); }});
}

}  // namespace cohort::tasks
