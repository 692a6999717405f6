// peg-in-hole: the hand holds a square peg of 20 mm and puts it into a square hole of 24 mm in a block that stands
// anywhere, turned anyhow.
#include <algorithm>
#include <cmath>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr double kHalfPeg = 0.01, kHalfLength = 0.05;  // m
constexpr double kGripToTip = 0.07;                    // m from the hand's grip down to the peg's end
constexpr double kBlockTop = 0.05;                     // m
constexpr double kInserted = 0.015;                    // m that the peg's end may be over the table
constexpr HandActions kPegActions{.yaw = true, .grip = false, .opening = 0};

// Put where an episode wants it by joints whose damping holds it there.
constexpr const char* kBlock = R"(
    <body name="block" pos="0 0 0">
      <inertial pos="0 0 0.025" mass="5" diaginertia="0.05 0.05 0.05"/>
      <joint name="block_x" type="slide" axis="1 0 0" damping="100000"/>
      <joint name="block_y" type="slide" axis="0 1 0" damping="100000"/>
      <joint name="block_yaw" type="hinge" axis="0 0 1" damping="10000"/>
      <geom name="block1" type="box" pos="0.027 0 0.025" size="0.015 0.042 0.025" material="green" mass="0" friction="0.4 0.01 0.0001"/>
      <geom name="block2" type="box" pos="-0.027 0 0.025" size="0.015 0.042 0.025" material="green" mass="0" friction="0.4 0.01 0.0001"/>
      <geom name="block3" type="box" pos="0 0.027 0.025" size="0.012 0.015 0.025" material="green" mass="0" friction="0.4 0.01 0.0001"/>
      <geom name="block4" type="box" pos="0 -0.027 0.025" size="0.012 0.015 0.025" material="green" mass="0" friction="0.4 0.01 0.0001"/>
      <geom class="seen" type="box" pos="0 0 0.001" size="0.012 0.012 0.001" material="dark"/>
    </body>
    <body name="peg" pos="0.5 0 0.2">
      <freejoint name="peg"/>
      <geom name="peg" type="box" size="0.01 0.01 0.05" material="red" density="1000" friction="0.4 0.01 0.0001"/>
    </body>)";

constexpr const char* kPegInHoleSummary = "put the peg in the hand into the hole of a block that stands anywhere";

struct PegSettings : SceneTaskSettings {
  PegSettings() { horizon = 100; }
};

SceneTaskSetup peg_setup(const TaskSettings& settings) {
  PegSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  TaskSpec& spec = setup.spec;
  spec.name = "peg-in-hole";
  spec.summary = kPegInHoleSummary;
  spec.instruction = "put the red peg into the hole";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"eef_yaw", {2}, "1", "sine and cosine of the hand's yaw"},
      {"tip_pos", {3}, "m", "middle of the peg's lower end"},
      {"hole_to_tip", {3}, "m", "the hole's bottom less tip_pos", true},
      {"hole_yaw",
       {2},
       "1",
       "sine and cosine of four times the hole's yaw from the peg's: a quarter turn is none",
       true},
  };
  spec.cameras = {"front", "wrist", "side"};
  spec.action = hand_actions(kPegActions);
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"across", "in"};
  spec.has_expert = true;
  spec.expert = "goes over the hole, turns the peg to it and lowers it where it fits";
  setup.mjcf = arm_mjcf({.name = "peg_in_hole", .bodies = kBlock});
  return setup;
}

class PegInHole final : public ArmTask {
 public:
  explicit PegInHole(const TaskSettings& settings)
      : ArmTask(settings, peg_setup(settings), kPegActions),
        x_(qpos_of("block_x")),
        y_(qpos_of("block_y")),
        yaw_(qpos_of("block_yaw")),
        peg_(qpos_of("peg")) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    start.qpos[x_] = between(random, 0, 0.40, 0.60);
    start.qpos[y_] = between(random, 1, -0.10, 0.10);
    start.qpos[yaw_] = between(random, 2, 0, 4 * kQuarterTurn);
    const Vec3 hand{between(random, 3, 0.44, 0.56), between(random, 4, -0.08, 0.08), between(random, 5, 0.18, 0.24)};
    const double yaw = between(random, 6, -0.3, 0.3);
    place_hand(env, hand, yaw, 2 * kHalfPeg, start);
    place_body(start.qpos, peg_, {hand[0], hand[1], hand[2] - kGripToTip + kHalfLength}, yaw);
  }

  struct Peg {
    Vec3 tip{};
    double yaw = 0;
  };
  Peg peg(const EnvState& now) const {
    const double* q = now.qpos.data() + peg_;
    const Quat quat{q[3], q[4], q[5], q[6]};
    return {Vec3{q[0], q[1], q[2]} - kHalfLength * column(rotation(quat), 2), yaw_of(quat)};
  }
  Vec3 to_hole(const EnvState& now, const Vec3& tip) const { return Vec3{now.qpos[x_], now.qpos[y_], 0} - tip; }

  void visit_variables(StateVisitor&) override {}

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Hand& h = hand(env);
    const Peg p = peg(now);
    const Vec3 hole = to_hole(now, p.tip);
    const double turn = 4 * (now.qpos[yaw_] - p.yaw);
    out.put("eef_pos", {h.pos[0], h.pos[1], h.pos[2]});
    out.put("eef_yaw", {std::sin(h.yaw), std::cos(h.yaw)});
    out.put("tip_pos", {p.tip[0], p.tip[1], p.tip[2]});
    out.put("hole_to_tip", {hole[0], hole[1], hole[2]});
    out.put("hole_yaw", {std::sin(turn), std::cos(turn)});
  }

  Judgement judge(int, const EnvState& now, Terms& terms) override {
    const Peg p = peg(now);
    const Vec3 hole = to_hole(now, p.tip);
    const double beside = std::hypot(hole[0], hole[1]);
    if (!terms.empty()) {
      terms.put("across", -0.5 * std::tanh(5 * beside));
      terms.put("in", beside < 0.006 ? -0.5 * std::tanh(10 * std::max(0.0, p.tip[2])) : -0.5);
    }
    return {.success = beside < 0.006 && p.tip[2] < kInserted};
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const Hand& h = hand(env);
    const Peg p = peg(now);
    const Vec3 hole = to_hole(now, p.tip);
    const double beside = std::hypot(hole[0], hole[1]);
    Intent intent;
    intent.turn = wrapped(now.qpos[yaw_] - p.yaw, kQuarterTurn);
    const bool in_it = p.tip[2] < kBlockTop - 0.003 && beside < 0.006;
    // Above the block until it fits: 2 mm are free on each side.
    const double unfit = std::max(ramp(beside, 0.0012, 0.002), ramp(std::abs(intent.turn), 0.04, 0.07));
    const double height = in_it ? 0.004 : 0.004 + 0.058 * unfit + 0.012 * ramp(beside, 0.002, 0.01);
    intent.target = h.pos + Vec3{hole[0], hole[1], height - p.tip[2]};
    // Not into the block from the side.
    if (!in_it && beside > 0.006 && p.tip[2] < kBlockTop + 0.008)
      intent.target[0] = h.pos[0], intent.target[1] = h.pos[1];
    // Slowly where it may touch.
    const double descent = p.tip[2] < kBlockTop + 0.03 ? 0.4 : 1.0;
    intent.target[2] = std::max(intent.target[2], h.pos[2] - descent * kHandStep);
    act(h, intent, action);
  }

  std::size_t x_, y_, yaw_, peg_;
};

}  // namespace

void register_peg_in_hole() {
  register_task({.name = "peg-in-hole",
                 .summary = kPegInHoleSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<PegInHole>(s); },
                 .settings = [] { return fields_of(PegSettings()); }});
}

}  // namespace cohort::tasks
