// stack: the red cube is put onto the green one; both lie anywhere, turned anyhow.
#include <cmath>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr double kHalfEdge = 0.02;  // m, of both cubes

constexpr const char* kStackSummary = "put the red cube onto the green one; both lie anywhere";

struct StackSettings : SceneTaskSettings {
  StackSettings() { horizon = 120; }
};

SceneTaskSetup stack_setup(const TaskSettings& settings) {
  StackSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  TaskSpec& spec = setup.spec;
  spec.name = "stack";
  spec.summary = kStackSummary;
  spec.instruction = "stack the red cube on the green cube";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"eef_yaw", {2}, "1", "sine and cosine of the hand's yaw"},
      {"gripper_opening", {1}, "m", "between the fingers"},
      {"red_pos", {3}, "m", "the red cube's middle", true},
      {"red_to_eef", {3}, "m", "red_pos less eef_pos", true},
      {"red_yaw", {2}, "1", "sine and cosine of four times the red cube's yaw from the hand's", true},
      {"green_to_red", {3}, "m", "the green cube's middle less red_pos", true},
  };
  spec.cameras = {"front", "wrist", "side"};
  spec.action = hand_actions({});
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"reach", "grasp", "place"};
  spec.has_expert = true;
  spec.expert = "takes the red cube, carries it over the green one, sets it down and leaves";
  setup.mjcf = arm_mjcf(
      {.name = "stack", .bodies = cube_mjcf("red", "red", kHalfEdge) + cube_mjcf("green", "green", kHalfEdge)});
  return setup;
}

class Stack final : public ArmTask {
 public:
  explicit Stack(const TaskSettings& settings)
      : ArmTask(settings, stack_setup(settings), {}),
        red_qpos_(qpos_of("red")),
        red_qvel_(qvel_of("red")),
        green_qpos_(qpos_of("green")),
        green_qvel_(qvel_of("green")) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    const Vec3 red{between(random, 0, 0.39, 0.61), between(random, 1, -0.12, 0.12), kHalfEdge};
    Vec3 green;
    std::uint64_t i = 16;
    do {
      green = {between(random, i, 0.39, 0.61), between(random, i + 1, -0.12, 0.12), kHalfEdge};
      i += 2;
    } while (norm(green - red) < 0.10);
    place_body(start.qpos, red_qpos_, red, between(random, 2, 0, 4 * kQuarterTurn));
    place_body(start.qpos, green_qpos_, green, between(random, 7, 0, 4 * kQuarterTurn));
    const Vec3 hand{between(random, 3, 0.44, 0.56), between(random, 4, -0.08, 0.08), between(random, 5, 0.18, 0.25)};
    place_hand(env, hand, between(random, 6, -0.3, 0.3), kLargestOpening, start);
  }

  CubeState red(const EnvState& now) const { return cube_state(now, red_qpos_, red_qvel_); }
  /// Where the red cube's middle is to be.
  Vec3 goal(const EnvState& now) const {
    return cube_state(now, green_qpos_, green_qvel_).pos + Vec3{0, 0, 2 * kHalfEdge};
  }

  void visit_variables(StateVisitor&) override {}

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Hand& h = hand(env);
    const CubeState cube = red(now);
    const Vec3 to_eef = cube.pos - h.pos, green = cube_state(now, green_qpos_, green_qvel_).pos - cube.pos;
    const double turn = 4 * (cube.yaw - h.yaw);
    out.put("eef_pos", {h.pos[0], h.pos[1], h.pos[2]});
    out.put("eef_yaw", {std::sin(h.yaw), std::cos(h.yaw)});
    out.put("gripper_opening", {h.opening});
    out.put("red_pos", {cube.pos[0], cube.pos[1], cube.pos[2]});
    out.put("red_to_eef", {to_eef[0], to_eef[1], to_eef[2]});
    out.put("red_yaw", {std::sin(turn), std::cos(turn)});
    out.put("green_to_red", {green[0], green[1], green[2]});
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const Hand& h = hand(env);
    const CubeState cube = red(now);
    const Vec3 missing = goal(now) - cube.pos;
    const double to_hand = norm(cube.pos - h.pos);
    const bool placed = std::hypot(missing[0], missing[1]) < 0.02 && std::abs(missing[2]) < 0.006;
    if (!terms.empty()) {
      terms.put("reach", placed ? 0.0 : -0.25 * std::tanh(5 * to_hand));
      terms.put("grasp", placed || holds(h, cube, kHalfEdge) ? 0.0 : -0.25);
      terms.put("place", -0.5 * std::tanh(5 * norm(missing)));
    }
    return {.success = placed && norm(cube.velocity) < 0.05 && to_hand > 0.05};
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    act(hand(env), pick_and_put(hand(env), red(now), goal(now), kHalfEdge, 0.008), action);
  }

  std::size_t red_qpos_, red_qvel_, green_qpos_, green_qvel_;
};

}  // namespace

void register_stack() {
  register_task({.name = "stack",
                 .summary = kStackSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<Stack>(s); },
                 .settings = [] { return fields_of(StackSettings()); }});
}

}  // namespace cohort::tasks
