#include "tasks/quadruped/quadruped_model.h"

#include <algorithm>
#include <cmath>

#include "core/format.h"
#include "core/philox.h"

namespace cohort::tasks {
namespace {

constexpr double kHipX = 0.18, kHipY = 0.05, kThighY = 0.08;  // m: from the trunk's middle; from hip to thigh
constexpr double kBone = 0.2;                                 // m: thigh and shin
constexpr int kCorners = 241;                                 // of the height field, on each side
constexpr double kFieldCell = 0.25, kRoughness = 0.06;        // m
constexpr double kFlatRadius = 2, kRisingWay = 6;             // m
constexpr double kHalfField = 0.5 * kFieldCell * (kCorners - 1);

double front(std::size_t leg) {
  return leg < 2 ? 1 : -1;
}
double left(std::size_t leg) {
  return leg % 2 == 0 ? 1 : -1;
}

std::string leg_mjcf(std::size_t leg) {
  const std::string name = kQuadrupedLegNames[leg];
  return format(
      R"(
      <body name="{0}_hip" pos="{1} {2} 0">
        <joint name="{0}_abduction" axis="1 0 0" range="-0.8 0.8"/>
        <geom type="sphere" size="0.045" mass="0.6" class="seen" rgba="0.20 0.22 0.26 1"/>
        <body name="{0}_thigh" pos="0 {3} 0">
          <joint name="{0}_hip" axis="0 1 0" range="-0.9 2.6"/>
          <geom type="capsule" fromto="0 0 0 0 0 -{4}" size="0.022" mass="0.7" class="seen" rgba="0.84 0.55 0.18 1"/>
          <body name="{0}_shin" pos="0 0 -{4}">
            <joint name="{0}_knee" axis="0 1 0" range="-2.7 -0.5"/>
            <geom type="capsule" fromto="0 0 0 0 0 -{4}" size="0.014" mass="0.1" class="seen" rgba="0.20 0.22 0.26 1"/>
            <geom name="{0}_knee" type="sphere" size="{6}" mass="0.05" class="touches" rgba="0.20 0.22 0.26 1"/>
            <geom name="{0}_foot" type="sphere" size="{5}" pos="0 0 -{4}" mass="0.05" class="touches" rgba="0.15 0.15 0.15 1"/>
          </body>
        </body>
      </body>)",
      name, front(leg) * kHipX, left(leg) * kHipY, left(leg) * kThighY, kBone, kQuadrupedFoot, kQuadrupedKnee);
}

}  // namespace

QuadrupedGround::QuadrupedGround(bool rough, bool rising) {
  if (!rough) return;
  const RandomStream random(0x90d09, RandomPurpose::kEnvironment, 0, 0);
  corners_.resize(std::size_t{kCorners} * kCorners);
  // MuJoCo stretches what it reads to [0, 1], so both ends are there.
  for (std::size_t i = 0; i < corners_.size(); ++i) {
    const double x = kFieldCell * static_cast<double>(i % kCorners) - kHalfField,
                 y = kFieldCell * static_cast<double>(i / kCorners) - kHalfField;
    const double share = rising ? std::clamp((std::hypot(x, y) - kFlatRadius) / kRisingWay, 0.0, 1.0) : 1.0;
    corners_[i] = std::round(random.uniform(i) * static_cast<float>(share) * 1000) / 1000;
  }
  corners_.front() = 0, corners_.back() = 1;
}

double QuadrupedGround::height(double x, double y) const {
  if (corners_.empty()) return 0;
  const double column = (x + kHalfField) / kFieldCell, row = (y + kHalfField) / kFieldCell;
  if (column < 0 || row < 0 || column >= kCorners - 1 || row >= kCorners - 1) return 0;
  const auto c = static_cast<std::size_t>(column), r = static_cast<std::size_t>(row);
  const double fx = column - static_cast<double>(c), fy = row - static_cast<double>(r);
  const auto corner = [&](std::size_t up, std::size_t right) {
    return static_cast<double>(corners_[(r + up) * kCorners + c + right]);
  };
  // Two triangles, divided from corner (0, 0) to corner (1, 1): as MuJoCo's prisms.
  const double share = fx >= fy
                           ? corner(0, 0) + fx * (corner(0, 1) - corner(0, 0)) + fy * (corner(1, 1) - corner(0, 1))
                           : corner(0, 0) + fy * (corner(1, 0) - corner(0, 0)) + fx * (corner(1, 1) - corner(1, 0));
  return kRoughness * share;
}

std::string QuadrupedGround::asset() const {
  if (corners_.empty()) return "";
  std::string text = format(R"(<hfield name="ground" nrow="{0}" ncol="{0}" size="{1} {1} {2} 0.5" elevation=")",
                            kCorners, kHalfField, kRoughness);
  // The attribute's first row is the farthest.
  for (int r = kCorners - 1; r >= 0; --r)
    for (int c = 0; c < kCorners; ++c) text += format("{:g} ", corners_[static_cast<std::size_t>(r * kCorners + c)]);
  return text + "\"/>";
}

std::string QuadrupedGround::geom() const {
  const char* shape = corners_.empty() ? R"(type="plane" size="60 60 0.1")" : R"(type="hfield" hfield="ground")";
  // The feet's friction is the greater one, so that it is what an environment draws.
  return format(R"(<geom name="floor" {} material="floor" contype="1" conaffinity="1" friction="0.1 0.005 0.0001"/>)",
                shape);
}

std::string quadruped_mjcf(const QuadrupedGround& ground) {
  std::string legs, motors;
  for (std::size_t leg = 0; leg < kQuadrupedLegs; ++leg) {
    legs += leg_mjcf(leg);
    for (const char* joint : {"abduction", "hip", "knee"})
      motors += format("<position name=\"{0}_{1}\" joint=\"{0}_{1}\"/>", kQuadrupedLegNames[leg], joint);
  }
  return format(R"(
<mujoco model="quadruped">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{0}" integrator="implicitfast" iterations="8" ls_iterations="8"/>
  <visual><headlight ambient="0.4 0.4 0.4" diffuse="0.4 0.4 0.4"/><global offwidth="1280" offheight="960"/></visual>
  <default>
    <joint armature="0.01" damping="0.1"/>
    <default class="seen"><geom contype="0" conaffinity="0"/></default>
    <default class="touches"><geom contype="0" conaffinity="1" friction="0.8 0.005 0.0001"/></default>
    <position kp="{1}" kv="{2}" forcerange="-{3} {3}"/>
  </default>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.75 0.82 0.90" rgb2="0.35 0.40 0.48" width="256" height="256"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="0.52 0.53 0.55" rgb2="0.46 0.47 0.49" width="256" height="256"/>
    <material name="floor" texture="tiles" texrepeat="60 60"/>
    {4}
  </asset>
  <worldbody>
    <light pos="0 -2 6" dir="0 0.3 -1" directional="true" diffuse="0.5 0.5 0.5"/>
    {5}
    <body name="trunk" pos="0 0 {6}">
      <freejoint name="root"/>
      <camera name="track" mode="trackcom" pos="0 -1.5 0.7" xyaxes="1 0 0 0 0.42 1" fovy="45"/>
      <geom name="trunk" type="box" size="0.17 0.07 0.05" mass="5.6" class="seen" rgba="0.24 0.40 0.60 1"/>
      <geom name="head" type="box" size="0.04 0.05 0.035" pos="0.21 0 0.02" mass="0.2" class="seen" rgba="0.84 0.55 0.18 1"/>
      <geom name="trunk_fl" type="sphere" size="0.05" pos="0.16 0.06 -0.01" mass="0.05" class="touches" rgba="0 0 0 0"/>
      <geom name="trunk_fr" type="sphere" size="0.05" pos="0.16 -0.06 -0.01" mass="0.05" class="touches" rgba="0 0 0 0"/>
      <geom name="trunk_rl" type="sphere" size="0.05" pos="-0.16 0.06 -0.01" mass="0.05" class="touches" rgba="0 0 0 0"/>
      <geom name="trunk_rr" type="sphere" size="0.05" pos="-0.16 -0.06 -0.01" mass="0.05" class="touches" rgba="0 0 0 0"/>{7}
    </body>
  </worldbody>
  <actuator>{8}</actuator>
</mujoco>)",
                kQuadrupedTimestep, kQuadrupedStiffness, kQuadrupedDamping, kQuadrupedTorque, ground.asset(),
                ground.geom(), kQuadrupedHeight, legs, motors);
}

LegPoints leg_points(std::size_t leg, const std::array<double, 3>& joints) {
  const double c = std::cos(joints[0]), s = std::sin(joints[0]);
  const double hip = joints[1], knee = joints[1] + joints[2];
  // In the frame that turns with the abduction; the thigh's axis is its y.
  const Vec3 bend{-kBone * std::sin(hip), left(leg) * kThighY, -kBone * std::cos(hip)};
  const Vec3 foot{bend[0] - kBone * std::sin(knee), bend[1], bend[2] - kBone * std::cos(knee)};
  const auto in_trunk = [&](const Vec3& v) {
    return Vec3{front(leg) * kHipX + v[0], left(leg) * kHipY + c * v[1] - s * v[2], s * v[1] + c * v[2]};
  };
  return {in_trunk(foot), in_trunk(bend)};
}

}  // namespace cohort::tasks
