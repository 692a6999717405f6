/// Models of one feature each, without constraints.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace cohort::sim::test {

inline constexpr const char* kTree = R"(
  <body pos="0.1 0.2 0.3" euler="10 20 30"><joint type="hinge" axis="0 0 1"/><geom size="0.1 0.2 0.3" type="box" mass="1"/>
    <body pos="0.3 0 0.1"><joint type="hinge" axis="1 2 3" pos="0.02 0.03 -0.01"/><geom size="0.05 0.2" type="capsule"/>
      <body pos="0 0.1 0.2" euler="-30 5 60"><geom size="0.06"/>
        <body pos="0.1 0.1 0"><joint type="slide" axis="0 1 0"/><joint type="hinge" axis="1 0 0" pos="0 0.05 0"/>
          <joint type="hinge" axis="0 0.6 0.8"/><geom size="0.05 0.1 0.02" type="box" pos="0.1 0 0.02" euler="0 30 0"/></body>
      </body>
    </body>
  </body>)";

inline std::string model(const std::string& body, const std::string& rest = "", const std::string& option = "") {
  return "<mujoco><option " + option + "><flag contact='disable' constraint='disable'/></option><worldbody>" + body +
         "</worldbody>" + rest + "</mujoco>";
}

inline std::vector<std::pair<std::string, std::string>> smooth_features() {
  const std::string hinge =
      "<body><joint name='j' axis='0 1 0' damping='0.3' stiffness='2' springref='20' armature='0.02'/>"
      "<geom size='0.05 0.2' type='capsule' pos='0.2 0 0'/>"
      "<body pos='0.4 0 0'><joint name='k' axis='0 1 0'/><geom size='0.05 0.1' type='capsule'/></body></body>";
  return {
      {"tree of hinges and slides with anchors and welded bodies", model(kTree)},
      {"free body with children", model("<body><freejoint/><geom size='0.1 0.2 0.3' type='box' pos='0.05 0 0'/>" +
                                        std::string(kTree) + "</body>")},
      {"ball joints",
       model("<body pos='1 0 1'><joint type='ball' pos='0 0 0.2'/><geom size='0.1 0.2' type='capsule'/>"
             "<body pos='0 0 -0.4'><joint type='ball' damping='0.1'/><geom size='0.1 0.1 0.2' type='box'/></body>"
             "</body>")},
      {"slide at the root far away",
       model("<body pos='100 50 2'><joint type='slide' axis='1 0 0'/><joint type='slide' axis='0 0 1'/>"
             "<joint type='hinge' axis='0 1 0' pos='0 0 0.1'/><geom size='0.1 0.2' type='capsule'/>" +
             std::string(kTree) + "</body>")},
      {"several trees and a mocap body", model("<body mocap='true' pos='0 1 0'><geom size='0.1'/></body><body pos='0 0 "
                                               "2'><freejoint/><geom size='0.1'/></body>" +
                                               std::string(kTree))},
      {"gravity compensation",
       model("<body gravcomp='0.7'><joint axis='0 1 0'/><geom size='0.1' pos='0.2 0.1 0'/>"
             "<body gravcomp='1.5' pos='0.2 0 0'><geom size='0.05' pos='0 0 0.1'/></body></body>")},
      {"joint springs, dampers, armature", model(hinge)},
      {"motors, position and velocity servos",
       model(hinge,
             "<actuator><motor joint='j' gear='3' ctrlrange='-0.5 0.5'/><position joint='k' kp='20' kv='2'/>"
             "<velocity joint='j' kv='3' forcerange='-1 1'/><damper joint='k' kv='2' ctrlrange='0 1'/></actuator>")},
      {"general actuators with activation",
       model(
           hinge,
           "<actuator><general joint='j' dyntype='filter' dynprm='0.1' gainprm='3' biastype='affine' biasprm='0.1 -2 "
           "-0.3'/>"
           "<general joint='k' dyntype='filterexact' dynprm='0.02' gaintype='affine' gainprm='1 0.5 0.2'/>"
           "<intvelocity joint='j' kp='10' actrange='-1 1'/>"
           "<general joint='k' dyntype='integrator' actearly='true' actlimited='true' actrange='-0.2 0.2' gainprm='2'/>"
           "</actuator>")},
      {"joint force limits",
       model("<body><joint name='j' axis='0 1 0' actuatorfrcrange='-0.4 0.6'/><geom size='0.1' pos='0.2 0 0'/>"
             "</body>",
             "<actuator><motor joint='j'/><motor joint='j' gear='2'/></actuator>")},
      {"fixed tendons",
       model(hinge,
             "<tendon><fixed name='t' stiffness='3' damping='0.4' springlength='0.1 0.2'><joint joint='j' "
             "coef='0.5'/><joint joint='k' coef='-1.2'/></fixed></tendon><actuator><motor tendon='t' gear='2'/>"
             "</actuator>")},
      {"reference angles",
       model("<body euler='0 0 40'><joint axis='0 0 1' ref='30'/><geom size='0.1' pos='0.2 0 0'/></body>")},
      {"springs of ball and free joints",
       model("<body><joint type='free' stiffness='3' damping='0.2'/><geom type='box' size='0.1 0.2 0.3' pos='0.1 0 0'/>"
             "<body pos='0.3 0 0'><joint type='ball' stiffness='5' springdamper='0 0' damping='0.1' pos='0 0.1 0'/>"
             "<geom size='0.1 0.2' type='capsule'/></body></body>")},
      {"actuators on ball and free joints",
       model(
           "<body><freejoint name='f'/><geom type='box' size='0.1 0.2 0.3' pos='0.1 0 0'/>"
           "<body pos='0.3 0 0'><joint name='b' type='ball' pos='0 0.1 0'/><geom size='0.1 0.2' type='capsule'/></body>"
           "</body>",
           "<actuator><motor joint='f' gear='1 2 3 0.4 -0.5 0.6'/><general jointinparent='f' gear='0 0 1 0.2 0.3 0.1' "
           "gainprm='2' biastype='affine' biasprm='0.1 -1 -0.5'/>"
           "<position joint='b' gear='0.5 1 -0.3' kp='4' kv='0.6'/>"
           "<velocity jointinparent='b' gear='0.2 -1 0.7' kv='2'/></actuator>")},
      {"actuators on sites",
       model("<site name='w' pos='0.1 0 0' euler='0 30 0'/><body name='r'><joint axis='0 1 0'/><geom size='0.05 0.2' "
             "type='capsule' "
             "pos='0.2 0 0'/><site name='s' pos='0.1 0.02 0.03' euler='10 20 30'/>"
             "<body pos='0.4 0 0'><joint axis='1 0 1'/><geom size='0.05 0.1' type='capsule'/>"
             "<site name='t' pos='0.05 0 0.1' euler='40 0 20'/></body>"
             "<body pos='0.2 0.2 0'><joint type='ball'/><geom size='0.05 0.1' type='capsule'/>"
             "<site name='u' pos='0.05 0 0.1' euler='40 0 20'/></body></body>",
             "<actuator><motor site='t' gear='1 2 3 0.4 -0.5 0.6'/>"
             "<position site='t' refsite='s' gear='1 0.5 0 0 0 0' kp='5' kv='0.5'/>"
             "<position site='u' refsite='t' gear='0.3 1 -0.2 0 0 0' kp='3' kv='0.4'/>"
             "<position site='u' refsite='w' gear='0.2 0 1 0 0 0' kp='3'/></actuator>")},
      {"fluid drag by inertia box",
       model("<body><freejoint/><geom size='0.1 0.2 0.3' type='box' pos='0.05 0 0'/>" + std::string(kTree) + "</body>",
             "", "density='120' viscosity='0.7' wind='1 -2 0.5'")},
      {"free bodies alone",
       model("<body><freejoint/><geom type='box' size='0.1 0.2 0.3' pos='0.1 0.05 -0.1'/></body><body pos='1 0 "
             "0'><joint name='f' type='free' damping='0.3'/><geom type='ellipsoid' size='0.1 0.2 0.05'/>"
             "<site name='s' pos='0.1 0 0'/></body>",
             "<actuator><damper joint='f' gear='0 0 1 1 0 0' kv='0.5' ctrlrange='0 1'/>"
             "<general site='s' gear='0 1 0 0 0 0.3' biastype='affine' biasprm='0 0 -0.7'/></actuator>",
             "density='30' viscosity='0.2'")},
  };
}

}  // namespace cohort::sim::test
