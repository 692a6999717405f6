#include "tasks/suite/arm_model.h"

#include <cmath>

#include "core/error.h"
#include "core/format.h"
#include "tasks/file/library_files.h"

namespace cohort::tasks {
namespace {

constexpr double kShoulder = 0.34;  // m above the table
constexpr double kUpperArm = 0.40, kForearm = 0.40;
constexpr double kWristToGrip = 0.24;

/// The text with `more` before the last place of `end`.
void put_before(std::string& text, const std::string& end, const std::string& more) {
  const std::size_t at = text.rfind(end);
  COHORT_CHECK(at != std::string::npos, "arm.xml has no {}", end);
  text.insert(at, more);
}

}  // namespace

std::string arm_mjcf(const ArmScene& scene) {
  std::string text(library_text(std::string(kLibrary) + "arm.xml"));
  put_before(text, "\n</mujoco>", scene.rest);
  put_before(text, "\n  </worldbody>", scene.bodies);
  put_before(text, "\n  </asset>", scene.assets);
  const std::string name = "model=\"arm\"";
  return text.replace(text.find(name), name.size(), format("model=\"{}\"", scene.name));
}

std::string cube_mjcf(const std::string& name, const std::string& material, double half_size) {
  return format(R"(
    <body name="{0}" pos="0.5 0 {2}">
      <freejoint name="{0}"/>
      <geom name="{0}" class="object" type="box" size="{2} {2} {2}" material="{1}"/>
    </body>)",
                name, material, half_size);
}

std::string marker_mjcf(const std::string& name, double radius) {
  return format(R"(
    <body name="{0}" pos="0.5 0 0.001" mocap="true">
      <geom name="{0}" class="seen" type="cylinder" size="{1} 0.001" material="goal"/>
    </body>)",
                name, radius);
}

std::array<double, 7> arm_posture(double x, double z) {
  // Shoulder, elbow and wrist in the plane y = 0, elbow up; the hand's pitch is half a turn.
  const double up = z + kWristToGrip - kShoulder;
  const double reach = std::hypot(x, up), direction = std::atan2(x, up);
  const double at_shoulder =
      std::acos((kUpperArm * kUpperArm + reach * reach - kForearm * kForearm) / (2 * kUpperArm * reach));
  const double bend =
      kArmDown - std::acos((kUpperArm * kUpperArm + kForearm * kForearm - reach * reach) / (2 * kUpperArm * kForearm));
  const double shoulder = direction - at_shoulder;
  return {0, shoulder, 0, bend, 0, kArmDown - shoulder - bend, 0};
}

}  // namespace cohort::tasks
