// open-drawer: a small cabinet stands anywhere in front of the arm, turned anyhow; its drawer is pulled open by the
// handle.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "tasks/built_in_tasks.h"
#include "tasks/registry.h"
#include "tasks/suite/arm_task.h"

namespace cohort::tasks {
namespace {

constexpr double kOpened = 0.12;        // m that the drawer is out
constexpr double kHandleAhead = 0.156;  // m from the cabinet's middle to the bar of the closed drawer
constexpr double kHandleHeight = 0.11;  // m over the table
constexpr double kHalfWay = 0.06;       // m that the bar is from there in the middle of its way
constexpr double kBehindBar = 0.024;    // m from the bar to the middle of the gap behind it
constexpr HandActions kDrawerActions{.yaw = true, .grip = false, .opening = 0};

// The cabinet is put where an episode wants it by joints whose damping holds it there: 20 N move it 0.2 mm a second.
constexpr const char* kCabinet = R"(
    <body name="cabinet" pos="0 0 0">
      <inertial pos="0 0 0.08" mass="8" diaginertia="0.1 0.1 0.1"/>
      <joint name="cabinet_x" type="slide" axis="1 0 0" damping="100000"/>
      <joint name="cabinet_y" type="slide" axis="0 1 0" damping="100000"/>
      <joint name="cabinet_yaw" type="hinge" axis="0 0 1" damping="10000"/>
      <geom class="seen" type="box" pos="0.01 0 0.155" size="0.10 0.11 0.005" material="wood"/>
      <geom class="seen" type="box" pos="0.01 0.105 0.078" size="0.10 0.005 0.072" material="wood"/>
      <geom class="seen" type="box" pos="0.01 -0.105 0.078" size="0.10 0.005 0.072" material="wood"/>
      <geom class="seen" type="box" pos="0.105 0 0.078" size="0.005 0.10 0.072" material="wood"/>
      <geom class="seen" type="box" pos="0.01 0 0.035" size="0.095 0.10 0.030" material="wood"/>
      <body name="drawer" pos="0 0 0">
        <inertial pos="0 0 0.1" mass="0.4" diaginertia="0.002 0.002 0.002"/>
        <joint name="drawer" type="slide" axis="-1 0 0" range="0 0.17" damping="6" armature="0.1" frictionloss="1"/>
        <geom name="front" type="box" pos="-0.098 0 0.11" size="0.008 0.098 0.038" material="blue" mass="0"/>
        <geom class="seen" type="box" pos="0.0 0 0.077" size="0.09 0.09 0.004" material="dark"/>
        <geom class="seen" type="box" pos="0.0 0.09 0.1" size="0.09 0.004 0.025" material="dark"/>
        <geom class="seen" type="box" pos="0.0 -0.09 0.1" size="0.09 0.004 0.025" material="dark"/>
        <geom name="bar" type="capsule" fromto="-0.156 -0.05 0.11 -0.156 0.05 0.11" size="0.006" material="steel" mass="0" friction="1 0.01 0.0001"/>
        <geom class="seen" type="capsule" fromto="-0.156 -0.05 0.11 -0.106 -0.05 0.11" size="0.005" material="steel"/>
        <geom class="seen" type="capsule" fromto="-0.156 0.05 0.11 -0.106 0.05 0.11" size="0.005" material="steel"/>
      </body>
    </body>)";

constexpr const char* kOpenDrawerSummary =
    "pull open the drawer of a cabinet that stands anywhere in front of the arm, turned anyhow";

struct OpenDrawerSettings : SceneTaskSettings {
  OpenDrawerSettings() { horizon = 100; }
};

SceneTaskSetup open_drawer_setup(const TaskSettings& settings) {
  OpenDrawerSettings own;
  SceneTaskSetup setup = read_settings(settings, static_cast<SceneTaskSettings&>(own));
  TaskSpec& spec = setup.spec;
  spec.name = "open-drawer";
  spec.summary = kOpenDrawerSummary;
  spec.instruction = "open the drawer";
  spec.observations = {
      {"eef_pos", {3}, "m", "between the fingertips, in the world"},
      {"eef_yaw", {2}, "1", "sine and cosine of the hand's yaw"},
      {"handle_pos", {3}, "m", "middle of the handle's bar", true},
      {"handle_to_eef", {3}, "m", "handle_pos less eef_pos", true},
      {"cabinet_yaw", {2}, "1", "sine and cosine of the cabinet's yaw less the hand's", true},
      {"drawer_opening", {1}, "m", "how far the drawer is out", true},
  };
  spec.cameras = {"side", "wrist", "front"};
  spec.action = hand_actions(kDrawerActions);
  spec.control_period = kControlPeriod;
  spec.reward_terms = {"reach", "open"};
  spec.has_expert = true;
  spec.expert = "lowers the closed fingers into the gap behind the handle and pulls";
  setup.mjcf = arm_mjcf({.name = "open_drawer", .bodies = kCabinet});
  return setup;
}

class OpenDrawer final : public ArmTask {
 public:
  explicit OpenDrawer(const TaskSettings& settings)
      : ArmTask(settings, open_drawer_setup(settings), kDrawerActions),
        x_(qpos_of("cabinet_x")),
        y_(qpos_of("cabinet_y")),
        yaw_(qpos_of("cabinet_yaw")),
        drawer_(qpos_of("drawer")) {}

 private:
  void start(int env, const RandomStream& random, Start& start) override {
    // The middle of the handle's way is where the arm reaches it whatever the cabinet's yaw.
    const double yaw = between(random, 2, -std::numbers::pi, std::numbers::pi);
    const Vec3 behind = -(kHandleAhead + kHalfWay) * outward_at(yaw);
    start.qpos[x_] = between(random, 0, 0.45, 0.65) + behind[0];
    start.qpos[y_] = between(random, 1, -0.10, 0.10) + behind[1];
    start.qpos[yaw_] = yaw;
    const Vec3 hand{between(random, 3, 0.36, 0.46), between(random, 4, -0.08, 0.08), between(random, 5, 0.22, 0.28)};
    place_hand(env, hand, between(random, 6, -0.3, 0.3), kDrawerActions.opening, start);
  }

  static Vec3 outward_at(double yaw) { return {-std::cos(yaw), -std::sin(yaw), 0}; }
  struct Handle {
    Vec3 pos{}, outward{};
  };
  Handle handle(const EnvState& now) const {
    const Vec3 outward = outward_at(now.qpos[yaw_]);
    return {Vec3{now.qpos[x_], now.qpos[y_], kHandleHeight} + (kHandleAhead + now.qpos[drawer_]) * outward, outward};
  }

  void visit_variables(StateVisitor&) override {}

  void observe(int env, const EnvState& now, ObservationRows& out) override {
    const Hand& h = hand(env);
    const Vec3 bar = handle(now).pos, to_eef = bar - h.pos;
    const double turn = now.qpos[yaw_] - h.yaw;
    out.put("eef_pos", {h.pos[0], h.pos[1], h.pos[2]});
    out.put("eef_yaw", {std::sin(h.yaw), std::cos(h.yaw)});
    out.put("handle_pos", {bar[0], bar[1], bar[2]});
    out.put("handle_to_eef", {to_eef[0], to_eef[1], to_eef[2]});
    out.put("cabinet_yaw", {std::sin(turn), std::cos(turn)});
    out.put("drawer_opening", {now.qpos[drawer_]});
  }

  Judgement judge(int env, const EnvState& now, Terms& terms) override {
    const double opened = now.qpos[drawer_];
    if (!terms.empty()) {
      terms.put("reach", -0.3 * std::tanh(5 * norm(handle(now).pos - hand(env).pos)));
      terms.put("open", -0.7 * std::clamp(1 - opened / kOpened, 0.0, 1.0));
    }
    return {.success = opened > kOpened};
  }

  void expert(int env, const EnvState& now, std::span<float> action) override {
    const Hand& h = hand(env);
    const Handle bar = handle(now);
    const Vec3 gap = bar.pos - kBehindBar * bar.outward, aside{-bar.outward[1], bar.outward[0], 0};
    const Vec3 from_gap = h.pos - gap;
    const double out = dot(from_gap, bar.outward), beside = dot(from_gap, aside);
    Intent intent;
    intent.turn = wrapped(now.qpos[yaw_], std::numbers::pi) - h.yaw;  // the hand is the same after half a turn
    if (h.pos[2] < kHandleHeight + 0.012 && std::abs(out) < 0.02 && std::abs(beside) < 0.04) {
      // In the gap: pull.
      const double left = kOpened + 0.02 - now.qpos[drawer_];
      intent.target = h.pos + std::clamp(left, 0.1 * kHandStep, 0.7 * kHandStep) * bar.outward - (0.5 * beside) * aside;
      intent.target[2] = kHandleHeight - 0.005;
    } else if (h.pos[2] < kHandleHeight + 0.035 && std::hypot(out, beside) > 0.02) {
      intent.target = h.pos;  // low, and not where it should be: up first
      intent.target[2] = kHandleHeight + 0.08;
    } else {
      intent.target = gap;
      intent.target[2] =
          kHandleHeight - 0.005 +
          0.10 * std::max(ramp(std::hypot(out, beside), 0.006, 0.02), ramp(std::abs(intent.turn), 0.08, 0.25));
    }
    act(h, intent, action);
  }

  std::size_t x_, y_, yaw_, drawer_;
};

}  // namespace

void register_open_drawer() {
  register_task({.name = "open-drawer",
                 .summary = kOpenDrawerSummary,
                 .make = [](const TaskSettings& s) { return std::make_unique<OpenDrawer>(s); },
                 .settings = [] { return fields_of(OpenDrawerSettings()); }});
}

}  // namespace cohort::tasks
