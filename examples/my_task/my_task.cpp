// A task of one's own: a ball rolls on a tray that tilts, and is to come to rest in the tray's middle. One file, built
// outside of Cohort as a shared library; see CMakeLists.txt beside it, and docs/guide/tasks.md.
#include <algorithm>
#include <cmath>

#include "tasks/registry.h"
#include "tasks/scene_task.h"

namespace {

using namespace cohort;
using namespace cohort::tasks;

constexpr const char* kModel = R"(
<mujoco model="tray">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="0.005" integrator="implicitfast"/>
  <worldbody>
    <light pos="0 -1 2" dir="0 0.4 -1" directional="true"/>
    <camera name="front" pos="0 -0.9 0.7" xyaxes="1 0 0 0 0.6 0.8"/>
    <body name="tray" pos="0 0 0.2">
      <inertial pos="0 0 0" mass="1" diaginertia="0.02 0.02 0.04"/>
      <joint name="roll" axis="1 0 0" range="-0.3 0.3" damping="0.2"/>
      <joint name="pitch" axis="0 1 0" range="-0.3 0.3" damping="0.2"/>
      <geom type="box" size="0.25 0.25 0.01" rgba="0.8 0.7 0.5 1"/>
      <geom type="cylinder" pos="0 0 0.0105" size="0.03 0.0005" rgba="0.2 0.7 0.3 1" contype="0" conaffinity="0"/>
      <geom type="box" pos="0.26 0 0.02" size="0.01 0.27 0.03" rgba="0.5 0.4 0.3 1"/>
      <geom type="box" pos="-0.26 0 0.02" size="0.01 0.27 0.03" rgba="0.5 0.4 0.3 1"/>
      <geom type="box" pos="0 0.26 0.02" size="0.25 0.01 0.03" rgba="0.5 0.4 0.3 1"/>
      <geom type="box" pos="0 -0.26 0.02" size="0.25 0.01 0.03" rgba="0.5 0.4 0.3 1"/>
    </body>
    <body name="ball" pos="0 0 0.231">
      <freejoint name="ball"/>
      <geom type="sphere" size="0.02" mass="0.05" rgba="0.8 0.2 0.2 1" condim="3" friction="1 0.005 0.0001"/>
    </body>
  </worldbody>
  <actuator>
    <position name="roll" joint="roll" kp="20" kv="1" ctrlrange="-0.2 0.2"/>
    <position name="pitch" joint="pitch" kp="20" kv="1" ctrlrange="-0.2 0.2"/>
  </actuator>
</mujoco>)";

struct BallOnTraySettings : SceneTaskSettings {
  BallOnTraySettings() { horizon = 120; }
  double largest_tilt = 0.15;  // rad for an action of 1
};
void describe(config::Fields& fields, BallOnTraySettings& s) {
  describe(fields, static_cast<SceneTaskSettings&>(s));
  fields.add("largest_tilt", s.largest_tilt, "rad that the tray tilts for an action of 1");
}

SceneTaskSetup ball_on_tray_setup(const TaskSettings& settings, BallOnTraySettings& own) {
  SceneTaskSetup setup = read_settings(settings, own);  // key=value of the command line
  TaskSpec& spec = setup.spec;
  spec.name = "ball-on-tray";
  spec.summary = "roll a ball to the middle of a tray by tilting it";
  spec.instruction = "bring the ball to the green spot";
  spec.observations = {
      {"tray_tilt", {2}, "rad", "roll and pitch"},
      {"ball_pos", {2}, "m", "in the world, from the tray's middle"},
      {"ball_vel", {2}, "m/s", "likewise"},
  };
  spec.cameras = {"front"};
  spec.action = {.names = {"roll", "pitch"}, .low = {-1, -1}, .high = {1, 1}, .unit = "largest_tilt"};
  spec.control_period = 0.05;
  spec.reward_terms = {"distance"};
  spec.has_expert = true;
  spec.expert = "a spring and a damper between ball and middle";
  setup.mjcf = kModel;
  return setup;
}

class BallOnTray final : public SceneTask {
 public:
  explicit BallOnTray(const TaskSettings& settings, BallOnTraySettings own = {})
      : SceneTask(settings, ball_on_tray_setup(settings, own)), own_(own) {}

 private:
  // The model's joints in their order: roll, pitch, and the ball's seven coordinates and six velocities.
  static constexpr std::size_t kBall = 2;

  void start(int, const RandomStream& random, Start& start) override {
    start.qpos[kBall] = 0.3 * (static_cast<double>(random.uniform(0)) - 0.5);
    start.qpos[kBall + 1] = 0.3 * (static_cast<double>(random.uniform(1)) - 0.5);
  }
  void control(int, const EnvState&, std::span<const float> action, std::span<double> ctrl) override {
    for (std::size_t i = 0; i < 2; ++i) ctrl[i] = own_.largest_tilt * static_cast<double>(action[i]);
  }
  void observe(int, const EnvState& now, ObservationRows& out) override {
    out.put("tray_tilt", {now.qpos[0], now.qpos[1]});
    out.put("ball_pos", {now.qpos[kBall], now.qpos[kBall + 1]});
    out.put("ball_vel", {now.qvel[kBall], now.qvel[kBall + 1]});
  }
  Judgement judge(int, const EnvState& now, Terms& terms) override {
    const double distance = std::hypot(now.qpos[kBall], now.qpos[kBall + 1]);
    terms.put("distance", -distance);
    return {.success = distance < 0.02 && std::hypot(now.qvel[kBall], now.qvel[kBall + 1]) < 0.05};
  }
  // What a training that goes on gets back beside the simulation's state: this task remembers nothing. One that does, of
  // std::vector<double> goals_ with a number for each environment, adds it: state.add("goals", goals_).
  void visit_variables(StateVisitor&) override {}
  void expert(int, const EnvState& now, std::span<float> action) override {
    const auto tilt = [&](std::size_t axis) { return 0.5 * now.qpos[kBall + axis] + 0.35 * now.qvel[kBall + axis]; };
    // Rolling about x moves the ball towards -y for a positive angle; about y towards +x.
    action[0] = static_cast<float>(std::clamp(tilt(1) / own_.largest_tilt, -1.0, 1.0));
    action[1] = static_cast<float>(std::clamp(-tilt(0) / own_.largest_tilt, -1.0, 1.0));
  }

  BallOnTraySettings own_;
};

}  // namespace

extern "C" void cohort_register_tasks() {
  register_task({.name = "ball-on-tray",
                 .summary = "roll a ball to the middle of a tray by tilting it",
                 .make = [](const TaskSettings& settings) { return std::make_unique<BallOnTray>(settings); }});
}
