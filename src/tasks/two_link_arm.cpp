#include "tasks/two_link_arm.h"

#include <cmath>
#include <memory>

#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "sim/host/import/handle.h"

namespace cohort::tasks {
namespace {

constexpr int kColumns = 12;
constexpr double kTimestep = 0.002;  // s

// Two links of 0.5 m and 0.4 m that hang from the origin and swing in the x-z plane. Damping keeps the speed bounded.
constexpr const char* kModel = R"(
<mujoco model="two_link_arm">
  <option timestep="0.002" integrator="implicitfast"><flag contact="disable"/></option>
  <worldbody>
    <body name="upper">
      <joint name="shoulder" type="hinge" axis="0 1 0" damping="0.4"/>
      <geom type="capsule" fromto="0 0 0  0 0 -0.5" size="0.03" mass="1.0"/>
      <body name="lower" pos="0 0 -0.5">
        <joint name="elbow" type="hinge" axis="0 1 0" damping="0.15"/>
        <geom type="capsule" fromto="0 0 0  0 0 -0.4" size="0.025" mass="0.6"/>
        <site name="tip" pos="0 0 -0.4"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="shoulder"/>
    <motor joint="elbow"/>
  </actuator>
  <sensor>
    <framelinvel objtype="site" objname="tip"/>
  </sensor>
</mujoco>)";

sim::mj::ModelPtr compile_arm() {
  char message[1000] = "";
  const auto free_spec = [](mjSpec* spec) { sim::mj::mj_deleteSpec(spec); };
  const std::unique_ptr<mjSpec, decltype(free_spec)> spec(
      sim::mj::mj_parseXMLString(kModel, nullptr, message, sizeof message), free_spec);
  COHORT_CHECK(spec, "MuJoCo cannot read the two-link arm: {}", message);
  sim::mj::ModelPtr model(sim::mj::mj_compile(spec.get(), nullptr));
  COHORT_CHECK(model, "MuJoCo cannot compile the two-link arm: {}", sim::mj::mjs_getError(spec.get()));
  return model;
}

double wrap_angle(double angle) {
  return std::remainder(angle, 2.0 * 3.14159265358979323846);
}

}  // namespace

std::vector<std::string> two_link_arm_columns() {
  return {"shoulder_angle",
          "elbow_angle",
          "shoulder_velocity",
          "elbow_velocity",
          "shoulder_acceleration",
          "elbow_acceleration",
          "tip_x",
          "tip_z",
          "tip_velocity_x",
          "tip_velocity_z",
          "shoulder_torque",
          "elbow_torque"};
}

std::vector<double> simulate_two_link_arm(const TwoLinkArmSettings& settings) {
  COHORT_THROW_UNLESS(settings.rows >= 1, "the two-link arm needs at least 1 row, not {}", settings.rows);
  COHORT_THROW_UNLESS(settings.sample_period >= kTimestep, "the sample period {} s is below the timestep of {} s",
                      settings.sample_period, kTimestep);
  const auto model = compile_arm();
  const sim::mj::DataPtr data(sim::mj::mj_makeData(model.get()));
  const int steps_per_row = static_cast<int>(std::lround(settings.sample_period / kTimestep));
  // Typical sizes of the ten measured columns, for the noise: rad, rad/s, rad/s², m, m/s.
  constexpr double kScale[10] = {1, 1, 3, 3, 30, 60, 0.5, 0.5, 1, 1};

  std::vector<double> table(static_cast<std::size_t>(settings.rows) * kColumns);
  for (std::int64_t row = 0; row < settings.rows; ++row) {
    const RandomStream action(settings.seed, RandomPurpose::kAction, 0, static_cast<std::uint64_t>(row));
    const RandomStream noise(settings.seed, RandomPurpose::kEnvironment, 0, static_cast<std::uint64_t>(row));
    data->ctrl[0] = settings.torque_range * (2.0 * action.uniform(0) - 1.0);
    data->ctrl[1] = settings.torque_range / 3.0 * (2.0 * action.uniform(1) - 1.0);
    sim::mj::mj_forward(model.get(), data.get());
    const double measured[10] = {wrap_angle(data->qpos[0]),
                                 wrap_angle(data->qpos[1]),
                                 data->qvel[0],
                                 data->qvel[1],
                                 data->qacc[0],
                                 data->qacc[1],
                                 data->site_xpos[0],
                                 data->site_xpos[2],
                                 data->sensordata[0],
                                 data->sensordata[2]};
    double* out = table.data() + row * kColumns;
    for (int i = 0; i < 10; ++i)
      out[i] = measured[i] + settings.noise * kScale[i] * noise.normal(static_cast<std::uint64_t>(i));
    out[10] = data->ctrl[0];
    out[11] = data->ctrl[1];
    for (int i = 0; i < steps_per_row; ++i) sim::mj::mj_step(model.get(), data.get());
  }
  return table;
}

void write_two_link_arm_csv(const std::filesystem::path& path, const TwoLinkArmSettings& settings) {
  const std::vector<double> table = simulate_two_link_arm(settings);
  std::string text;
  text.reserve(table.size() * 14);
  for (const std::string& name : two_link_arm_columns()) text += (text.empty() ? "" : ",") + name;
  text += '\n';
  for (std::size_t i = 0; i < table.size(); ++i)
    text += format("{:.9g}{}", table[i], i % kColumns == kColumns - 1 ? '\n' : ',');
  write_file_atomically(path, text);
}

}  // namespace cohort::tasks
