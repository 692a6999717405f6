#include "tasks/suite/arm_model.h"

#include <cmath>

#include "core/format.h"

namespace cohort::tasks {
namespace {

constexpr double kShoulder = 0.34;  // m above the table
constexpr double kUpperArm = 0.40, kForearm = 0.40;
constexpr double kWristToGrip = 0.24;

// {0} name, {1} timestep, {2} assets, {3} bodies, {4} the rest.
constexpr const char* kArm = R"(
<mujoco model="{0}">
  <compiler angle="radian" autolimits="true"/>
  <option timestep="{1}" integrator="implicitfast" cone="elliptic" impratio="5"/>
  <statistic center="0.4 0 0.2" extent="1.2"/>
  <visual>
    <headlight ambient="0.35 0.35 0.35" diffuse="0.35 0.35 0.35" specular="0.1 0.1 0.1"/>
    <map znear="0.01"/>
    <global offwidth="1280" offheight="960"/>
  </visual>
  <asset>
    <texture name="sky" type="skybox" builtin="gradient" rgb1="0.75 0.82 0.90" rgb2="0.35 0.40 0.48" width="256" height="256"/>
    <texture name="tiles" type="2d" builtin="checker" rgb1="0.52 0.53 0.55" rgb2="0.46 0.47 0.49" width="256" height="256"/>
    <texture name="planks" type="2d" builtin="gradient" rgb1="0.80 0.68 0.52" rgb2="0.72 0.58 0.42" width="256" height="256"/>
    <material name="floor" texture="tiles" texrepeat="8 8"/>
    <material name="wood" texture="planks" specular="0.1"/>
    <material name="shell" rgba="0.92 0.93 0.94 1" specular="0.5" shininess="0.6"/>
    <material name="joint" rgba="0.20 0.36 0.55 1" specular="0.4"/>
    <material name="dark" rgba="0.16 0.17 0.19 1" specular="0.3"/>
    <material name="steel" rgba="0.62 0.64 0.67 1" specular="0.6" shininess="0.7"/>
    <material name="red" rgba="0.84 0.20 0.18 1" specular="0.2"/>
    <material name="green" rgba="0.25 0.65 0.32 1" specular="0.2"/>
    <material name="blue" rgba="0.18 0.38 0.78 1" specular="0.2"/>
    <material name="goal" rgba="0.20 0.70 0.35 0.75" specular="0"/>{2}
  </asset>
  <default>
    <default class="arm">
      <joint type="hinge" damping="1"/>
      <geom contype="0" conaffinity="0" material="shell" group="1" mass="0"/>
    </default>
    <default class="finger">
      <joint type="slide" range="0 0.04" damping="2" armature="0.05"/>
      <geom type="box" size="0.011 0.007 0.035" material="dark" contype="2" conaffinity="1" condim="4"
            friction="1.5 0.05 0.001" solref="0.01 1" solimp="0.95 0.99 0.001" mass="0.02"/>
    </default>
    <default class="object">
      <geom condim="4" friction="1 0.01 0.0001" density="800"/>
    </default>
    <default class="seen">
      <geom contype="0" conaffinity="0" mass="0" group="1"/>
    </default>
  </default>
  <worldbody>
    <light name="lamp" pos="0.6 -0.8 2.2" dir="-0.1 0.4 -1" directional="true" diffuse="0.55 0.55 0.52" specular="0.2 0.2 0.2"/>
    <camera name="front" pos="1.22 0 0.66" xyaxes="0 1 0 -0.61 0 0.80" fovy="45"/>
    <camera name="side" pos="0.55 -1.1 0.6" xyaxes="1 0 0 0 0.5 1" fovy="45"/>
    <geom name="floor" type="plane" pos="0 0 -0.75" size="3 3 0.1" material="floor" contype="0" conaffinity="0"/>
    <geom name="table" type="plane" pos="0.4 0 0" size="0.55 0.6 0.1" material="wood" condim="4" friction="1 0.01 0.0001"/>
    <geom name="board" class="seen" type="box" pos="0.4 0 -0.021" size="0.55 0.6 0.02" material="wood"/>
    <geom name="stand" class="seen" type="box" pos="0.4 0 -0.4" size="0.2 0.3 0.36" material="dark"/>
    <body name="base">
      <geom class="arm" type="cylinder" fromto="0 0 0 0 0 0.06" size="0.09" material="dark"/>
      <geom class="arm" type="capsule" fromto="0 0 0.06 0 0 0.14" size="0.06"/>
      <body name="link1" pos="0 0 0.16" gravcomp="1">
        <inertial pos="0 0 0.12" mass="2" diaginertia="0.01 0.01 0.006"/>
        <joint name="j1" class="arm" axis="0 0 1" range="-2.9 2.9" armature="0.3"/>
        <geom class="arm" type="capsule" fromto="0 0 0 0 0 0.12" size="0.055"/>
        <geom class="arm" type="capsule" fromto="0 -0.05 0.18 0 0.05 0.18" size="0.058" material="joint"/>
        <body name="link2" pos="0 0 0.18" gravcomp="1">
          <inertial pos="0 0 0.08" mass="1.6" diaginertia="0.01 0.01 0.004"/>
          <joint name="j2" class="arm" axis="0 1 0" range="-2.1 2.1" armature="0.3"/>
          <geom class="arm" type="capsule" fromto="0 0 0.05 0 0 0.18" size="0.05"/>
          <body name="link3" pos="0 0 0.2" gravcomp="1">
            <inertial pos="0 0 0.1" mass="1.2" diaginertia="0.006 0.006 0.003"/>
            <joint name="j3" class="arm" axis="0 0 1" range="-2.9 2.9" armature="0.2"/>
            <geom class="arm" type="capsule" fromto="0 0 0 0 0 0.15" size="0.048"/>
            <geom class="arm" type="capsule" fromto="0 -0.045 0.2 0 0.045 0.2" size="0.05" material="joint"/>
            <body name="link4" pos="0 0 0.2" gravcomp="1">
              <inertial pos="0 0 0.08" mass="1" diaginertia="0.005 0.005 0.002"/>
              <joint name="j4" class="arm" axis="0 1 0" range="-0.2 2.6" armature="0.2"/>
              <geom class="arm" type="capsule" fromto="0 0 0.05 0 0 0.18" size="0.043"/>
              <body name="link5" pos="0 0 0.2" gravcomp="1">
                <inertial pos="0 0 0.1" mass="0.7" diaginertia="0.003 0.003 0.001"/>
                <joint name="j5" class="arm" axis="0 0 1" range="-2.9 2.9" armature="0.08"/>
                <geom class="arm" type="capsule" fromto="0 0 0 0 0 0.15" size="0.04"/>
                <geom class="arm" type="capsule" fromto="0 -0.04 0.2 0 0.04 0.2" size="0.042" material="joint"/>
                <body name="link6" pos="0 0 0.2" gravcomp="1">
                  <inertial pos="0 0 0.04" mass="0.4" diaginertia="0.001 0.001 0.001"/>
                  <joint name="j6" class="arm" axis="0 1 0" range="-2.3 2.3" armature="0.08"/>
                  <geom class="arm" type="capsule" fromto="0 0 0.03 0 0 0.06" size="0.036"/>
                  <body name="link7" pos="0 0 0.09" gravcomp="1">
                    <inertial pos="0 0 0.02" mass="0.2" diaginertia="0.0003 0.0003 0.0003"/>
                    <joint name="j7" class="arm" axis="0 0 1" range="-3 3" armature="0.05"/>
                    <geom class="arm" type="cylinder" fromto="0 0 0 0 0 0.035" size="0.036" material="steel"/>
                    <body name="hand" pos="0 0 0.05" quat="0 0 0 1" gravcomp="1">
                      <inertial pos="0 0 0.02" mass="0.3" diaginertia="0.001 0.0004 0.001"/>
                      <geom name="palm" type="box" pos="0 0 0.01" size="0.026 0.075 0.024" material="shell" contype="2" conaffinity="1" group="1" mass="0"/>
                      <geom class="arm" type="box" pos="0 0 0.036" size="0.014 0.07 0.004" material="dark"/>
                      <site name="grip" pos="0 0 0.1" size="0.005" rgba="0 0 0 0"/>
                      <camera name="wrist" pos="0.06 0 0.0" xyaxes="0 1 0 0.95 0 0.3" fovy="70"/>
                      <body name="left_finger" pos="0 0 0.045" gravcomp="1">
                        <joint name="left" class="finger" axis="0 1 0"/>
                        <geom name="left_pad" class="finger" pos="0 0.007 0.035"/>
                      </body>
                      <body name="right_finger" pos="0 0 0.045" gravcomp="1">
                        <joint name="right" class="finger" axis="0 -1 0"/>
                        <geom name="right_pad" class="finger" pos="0 -0.007 0.035"/>
                      </body>
                    </body>
                  </body>
                </body>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>{3}
  </worldbody>
  <actuator>
    <position name="j1" joint="j1" kp="4000" kv="180" ctrlrange="-2.9 2.9" forcerange="-300 300"/>
    <position name="j2" joint="j2" kp="4000" kv="180" ctrlrange="-2.1 2.1" forcerange="-300 300"/>
    <position name="j3" joint="j3" kp="2500" kv="90" ctrlrange="-2.9 2.9" forcerange="-200 200"/>
    <position name="j4" joint="j4" kp="2500" kv="90" ctrlrange="-0.2 2.6" forcerange="-200 200"/>
    <position name="j5" joint="j5" kp="600" kv="16" ctrlrange="-2.9 2.9" forcerange="-80 80"/>
    <position name="j6" joint="j6" kp="600" kv="16" ctrlrange="-2.3 2.3" forcerange="-80 80"/>
    <position name="j7" joint="j7" kp="250" kv="8" ctrlrange="-3 3" forcerange="-40 40"/>
    <position name="left" joint="left" kp="400" kv="8" ctrlrange="0 0.04" forcerange="-20 20"/>
    <position name="right" joint="right" kp="400" kv="8" ctrlrange="0 0.04" forcerange="-20 20"/>
  </actuator>{4}
</mujoco>)";

}  // namespace

std::string arm_mjcf(const ArmScene& scene) {
  return format(kArm, scene.name, kArmTimestep, scene.assets, scene.bodies, scene.rest);
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
