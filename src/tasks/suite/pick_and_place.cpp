// pick-and-place: a cube of 4 cm that lies anywhere, turned anyhow, is taken to a green disc and left there.
#include <algorithm>
#include <cmath>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr double kHalfCube = 0.02;  // m
constexpr double kDisc = 0.04;      // m
constexpr double kNear = 0.03;      // m from the disc's middle: placed
constexpr Vec3 kFixedGoal{0.5, -0.24, 0};

constexpr const char* kPickAndPlaceSummary = "take a cube that lies anywhere to the green disc and leave it there";

struct PickAndPlaceSettings : SceneTaskSettings {
  PickAndPlaceSettings() { horizon = 120; }
  std::string goal = "fixed";
};
void describe(config::Fields& fields, PickAndPlaceSettings& s) {
  describe(fields, static_cast<SceneTaskSettings&>(s));
  fields.add_choice("goal", s.goal, {"fixed", "random"},
                    "fixed: the disc is always at (0.5, -0.24) m; random: anywhere 12 cm or more from the cube");
}

SceneTaskSetup pick_and_place_setup(const TaskSettings& settings, PickAndPlaceSettings& own) {
  SceneTaskSetup setup = read_settings(settings, own);
  TaskSpec& spec = setup.spec;
  spec.name = "pick-and-place";
  spec.summary = kPickAndPlaceSummary;
  spec.instruction = "put the red cube on the green disc";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"eef_yaw", {2}, "1", "sine and cosine of the hand's yaw"},
      {"gripper_opening", {1}, "m", "between the fingers"},
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
  spec.action = hand_actions({});
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"reach", "grasp", "place"};
  spec.has_expert = true;
  spec.expert = "goes over the cube, turns to it, takes it, carries it over the disc, sets it down and leaves";
  setup.mjcf =
      arm_mjcf({.name = "pick_and_place", .bodies = cube_mjcf("cube", "red", kHalfCube) + marker_mjcf("goal", kDisc)});
  return setup;
}

class PickAndPlace final : public ArmTask {
 public:
  explicit PickAndPlace(const TaskSettings& settings, PickAndPlaceSettings own = {})
      : ArmTask(settings, pick_and_place_setup(settings, own), {}),
        own_(own),
        cube_qpos_(qpos_of("cube")),
        cube_qvel_(qvel_of("cube")),
        goals_(static_cast<std::size_t>(n_envs())) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    const Vec3 cube{between(random, 0, 0.39, 0.61), between(random, 1, -0.08, 0.16), kHalfCube};
    place_body(start.qpos, cube_qpos_, cube, between(random, 2, 0, 4 * kQuarterTurn));
    Vec3 goal = kFixedGoal;
    if (own_.goal == "random") {
      std::uint64_t i = 16;
      do {
        goal = {between(random, i, 0.38, 0.62), between(random, i + 1, -0.26, 0.26), 0};
        i += 2;
      } while (norm(goal - Vec3{cube[0], cube[1], 0}) < 0.12);
    }
    goals_[static_cast<std::size_t>(env)] = goal + Vec3{0, 0, kHalfCube};
    start.mocap_pos[0] = goal[0], start.mocap_pos[1] = goal[1], start.mocap_pos[2] = 0.001;
    const Vec3 hand{between(random, 3, 0.44, 0.56), between(random, 4, -0.08, 0.08), between(random, 5, 0.16, 0.24)};
    place_hand(env, hand, between(random, 6, -0.3, 0.3), kLargestOpening, start);
  }

  void visit_variables(StateVisitor& state) override { state.add("goal", goals_); }

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Hand& h = hand(env);
    const CubeState cube = cube_state(now, cube_qpos_, cube_qvel_);
    const Vec3 to_eef = cube.pos - h.pos, to_cube = goals_[static_cast<std::size_t>(env)] - cube.pos;
    const double turn = 4 * (cube.yaw - h.yaw);
    out.put("eef_pos", {h.pos[0], h.pos[1], h.pos[2]});
    out.put("eef_yaw", {std::sin(h.yaw), std::cos(h.yaw)});
    out.put("gripper_opening", {h.opening});
    out.put("cube_pos", {cube.pos[0], cube.pos[1], cube.pos[2]});
    out.put("cube_to_eef", {to_eef[0], to_eef[1], to_eef[2]});
    out.put("cube_yaw", {std::sin(turn), std::cos(turn)});
    out.put("goal_to_cube", {to_cube[0], to_cube[1], to_cube[2]});
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const Hand& h = hand(env);
    const CubeState cube = cube_state(now, cube_qpos_, cube_qvel_);
    const double to_hand = norm(cube.pos - h.pos), missing = norm(goals_[static_cast<std::size_t>(env)] - cube.pos);
    const bool placed = missing < kNear && cube.pos[2] < kHalfCube + 0.005;
    if (!terms.empty()) {
      terms.put("reach", placed ? 0.0 : -0.25 * std::tanh(5 * to_hand));
      terms.put("grasp", placed || holds(h, cube, kHalfCube) ? 0.0 : -0.25);
      terms.put("place", -0.5 * std::tanh(5 * missing));
    }
    return {.success = placed && norm(cube.velocity) < 0.05 && to_hand > 0.05};
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const CubeState cube = cube_state(now, cube_qpos_, cube_qvel_);
    act(hand(env), pick_and_put(hand(env), cube, goals_[static_cast<std::size_t>(env)], kHalfCube, 0.012), action);
  }

  PickAndPlaceSettings own_;
  std::size_t cube_qpos_, cube_qvel_;
  std::vector<Vec3> goals_;
};

}  // namespace

void register_pick_and_place() {
  register_task({.name = "pick-and-place",
                 .summary = kPickAndPlaceSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<PickAndPlace>(s); },
                 .settings = [] { return fields_of(PickAndPlaceSettings()); }});
}

}  // namespace cohort::tasks
