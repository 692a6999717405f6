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

/// Two limbs, a free body and a mocap body with sites and geoms that tendons wrap around: names are w, w2, w3 (world),
/// a and b (upper and lower limb), c (free body), d (mocap); round and rod are geoms, side and within are sites outside
/// and inside of them.
inline constexpr const char* kLimbs = R"(
  <site name="w" pos="-0.1 0.05 0.75"/><site name="w2" pos="0.3 -0.2 0.9"/><site name="w3" pos="0.1 1.1 0.7"/>
  <body pos="0 0 0.5" euler="0 10 20"><joint name="shoulder" axis="0 1 0" armature="0.05"/><joint name="twist" axis="1 0.2 0" armature="0.05"/>
    <geom size="0.03 0.15" type="capsule" pos="0.2 0 0" euler="0 90 0"/>
    <geom name="round" size="0.07" pos="0.36 0.01 0" euler="10 0 40"/>
    <geom name="rod" type="cylinder" size="0.06 0.1" pos="0.36 0 0.01" euler="80 10 0"/>
    <site name="a" pos="0.15 0 0.06"/><site name="a2" pos="0.25 0.02 0.08"/>
    <site name="side" pos="0.38 0.02 0.12"/><site name="under" pos="0.36 0 -0.2"/>
    <site name="within" pos="0.36 0.005 0.01"/>
    <body pos="0.4 0 0"><joint name="elbow" axis="0 1 0" damping="0.1" armature="0.05"/><joint name="reach" type="slide" axis="1 0 0"/>
      <geom size="0.025 0.12" type="capsule" pos="0.15 0 0" euler="0 90 0"/><geom name="wrist" size="0.05" pos="0.2 0 0"/>
      <site name="b" pos="0.12 0 0.03"/><site name="b2" pos="0.25 0.02 0.02"/><site name="near" pos="-0.05 0.02 0.02"/>
    </body>
  </body>
  <body pos="0.2 0.5 0.6"><joint type="free" armature="0.02"/><geom name="ball" size="0.1" mass="0.8"/>
    <geom name="boulder" size="0.35" mass="0.01"/><site name="c" pos="0.05 0.1 0"/>
    <site name="c2" pos="-0.1 -0.05 0.12"/></body>
  <body mocap="true" pos="0.4 -0.4 0.8"><geom size="0.03" mass="1"/><site name="d" pos="0 0.05 0"/></body>)";

/// Paths of spatial tendons over kLimbs.
inline std::vector<std::pair<std::string, std::string>> tendon_paths() {
  const auto site = [](const char* name) { return std::string("<site site='") + name + "'/>"; };
  const auto geom = [](const char* name, const char* side = nullptr) {
    return std::string("<geom geom='") + name + "'" + (side ? std::string(" sidesite='") + side + "'" : "") + "/>";
  };
  const auto pulley = [](const char* divisor) { return std::string("<pulley divisor='") + divisor + "'/>"; };
  return {
      {"sites", site("w") + site("a") + site("b") + site("c")},
      {"sites within one body and of the world", site("w2") + site("w") + site("a") + site("a2") + site("d")},
      {"between two trees and back", site("a") + site("c") + site("b2") + site("c2")},
      {"sphere", site("a") + geom("round") + site("b")},
      {"sphere with a side site", site("a2") + geom("round", "side") + site("b")},
      {"sphere with a side site beyond", site("a2") + geom("round", "under") + site("b2")},
      {"inside a sphere", site("a") + geom("round", "within") + site("b")},
      {"cylinder", site("a") + geom("rod") + site("b2")},
      {"cylinder with a side site", site("a2") + geom("rod", "side") + site("b")},
      {"cylinder with a side site beyond", site("a") + geom("rod", "under") + site("b")},
      {"inside a cylinder", site("a2") + geom("rod", "within") + site("b")},
      {"a side site on another body", site("a") + geom("round", "near") + site("b")},
      {"a free sphere between two points of the world", site("w3") + geom("boulder") + site("w2")},
      {"a free sphere that its own site is tied to", site("c") + geom("ball") + site("b2")},
      {"two geoms one after the other", site("a") + geom("rod", "side") + site("b") + geom("wrist") + site("c")},
      {"pulleys",
       site("w") + site("a") + pulley("2") + site("a") + site("c") + pulley("2") + site("a") + geom("rod") + site("b")},
      {"a pulley of a quarter and sites alone between pulleys",
       pulley("4") + site("w") + site("c2") + pulley("0.5") + site("b") + site("d")},
  };
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
      {"ball joints among other joints of one body",
       model("<body pos='1 0 1' euler='10 0 20'><joint axis='1 2 3' damping='0.1' armature='3'/><joint type='slide' "
             "axis='0 1 1' "
             "armature='10'/><joint type='ball' pos='0 0.1 0.2' stiffness='2' armature='3'/><joint type='slide' "
             "axis='0 0.6 0.8' "
             "armature='10'/><geom size='0.1 0.2' type='capsule' pos='0.1 0 0'/>"
             "<body pos='0 0.1 -0.4'><joint type='ball' armature='1'/><joint type='slide' axis='1 0 0' stiffness='10' "
             "armature='5'/>"
             "<joint type='slide' axis='0 1 0' armature='5'/><geom size='0.1 0.1 0.2' type='box'/></body>"
             "<body pos='0 0.3 -0.2'><joint type='slide' axis='1 0 0' armature='5'/><joint type='ball' pos='0 0 0.1' "
             "armature='1'/>"
             "<geom size='0.1 0.2 0.1' type='box' pos='0.1 0 0'/></body></body>")},
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
      {"gravity compensation by actuators",
       model("<body gravcomp='0.7'><joint name='j' axis='0 1 0' armature='0.1' actuatorgravcomp='true' "
             "actuatorfrcrange='-0.5 0.5'/>"
             "<geom size='0.1' pos='0.2 0.1 0'/>"
             "<body gravcomp='1.5' pos='0.2 0 0'><joint axis='1 1 0' armature='0.1'/><geom size='0.05' pos='0 0 0.1'/>"
             "<body gravcomp='1' pos='0 0 0.2'><joint type='ball' actuatorgravcomp='true' armature='0.05'/><geom "
             "size='0.05' pos='0.1 "
             "0 0'/>"
             "</body></body></body>",
             "<actuator><motor joint='j'/></actuator>")},
      {"gravity compensation by actuators that are not there",
       model("<body gravcomp='0.7'><joint axis='0 1 0' actuatorgravcomp='true'/><geom size='0.1' pos='0.2 0.1 0'/>"
             "</body>")},
      {"joint springs, dampers, armature", model(hinge)},
      {"a servo on a ball joint of equal inertias",
       model("<body pos='0 0 1'><joint name='b' type='ball'/><geom size='0.07'/></body>",
             "<actuator><position joint='b' gear='0.9 0.8 0.8' kp='20' kv='0.02'/></actuator>")},
      {"damped tendons and servos on a point that three slides carry",
       model("<site name='a' pos='1 1 1'/><site name='b' pos='-1 0.5 1'/><body pos='0 0 0.5'><joint type='slide' "
             "axis='1 0 "
             "0'/><joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/><geom type='box' size='0.05 0.05 "
             "0.05'/><site name='h'/></body>",
             "<tendon><spatial name='t' damping='20' stiffness='200' springlength='1.2'><site site='a'/><site "
             "site='h'/></spatial><spatial name='u'><site site='b'/><site site='h'/></spatial></tendon><actuator>"
             "<position tendon='u' kp='300' kv='30'/></actuator>")},
      {"drag on bodies whose dofs MuJoCo takes one by one",
       model("<body pos='0 0 1'><joint type='ball'/><geom size='0.07'/></body><body pos='1 0 0.5'><joint type='slide' "
             "axis='1 0 0'/><joint type='slide' axis='0 1 0'/><joint type='slide' axis='0 0 1'/><geom type='box' "
             "size='0.05 0.1 0.2' euler='20 30 40'/></body><body pos='2 0 0'><freejoint/><geom type='box' size='0.1 "
             "0.2 0.3'/></body>",
             "", "density='50' viscosity='2' wind='0.5 -0.3 0.2'")},
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
             "<actuator><motor joint='j'/><motor joint='j' gear='2'/><position joint='j' kp='0.5' "
             "kv='0.3'/></actuator>")},
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
           "<position joint='b' gear='0.5 1 -0.3' kp='4' kv='0.6'/><position joint='b' gear='0.1 0 0.2' kp='4' "
           "timeconst='0.1'/><intvelocity joint='b' gear='0 0.15 0.2' kp='3' actrange='-9 9'/><position "
           "jointinparent='b' "
           "gear='0.1 0.05 0' kp='4'/>"
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
      {"rotation of a site against a reference site",
       model("<site name='w' pos='0.1 0 0' euler='0 30 0'/><body><joint axis='0 1 0' armature='0.1'/><geom size='0.05 "
             "0.2' "
             "type='capsule' pos='0.2 0 0'/><site name='s' pos='0.1 0.02 0.03' euler='10 20 30'/>"
             "<body pos='0.4 0 0'><joint type='ball' armature='0.1'/><geom size='0.05 0.1' type='capsule'/>"
             "<site name='t' pos='0.05 0 0.1' euler='40 0 20'/></body></body><body pos='1 0 0'><joint type='free' "
             "armature='0.1'/>"
             "<geom size='0.1 0.2 0.1' type='box'/><site name='u' pos='0.1 0 0.1' euler='5 6 7'/></body>",
             "<actuator><position site='t' refsite='s' gear='0 0 0 1 0.5 -0.3' kp='2' kv='0.3'/>"
             "<position site='t' refsite='w' gear='0.4 1 0 0.2 -1 0.3' kp='3' kv='0.4'/>"
             "<position site='u' refsite='t' gear='0 0 0 0 0.7 1' kp='1' kv='0.2'/><position site='u' refsite='s' "
             "gear='0 0 0 0 "
             "0.1 0.1' kp='2'/>"
             "<motor site='s' refsite='w' gear='0 0 0 1 1 1'/></actuator>")},
      {"spatial tendons with springs, dampers and actuators",
       model(kLimbs,
             "<tendon><spatial name='s' stiffness='30' damping='0.5'><site site='w'/><site site='a'/>"
             "<geom geom='rod' sidesite='side'/><site site='b'/></spatial>"
             "<spatial name='t' stiffness='20' springlength='0.1 0.4' damping='1'><site site='a'/><geom geom='round'/>"
             "<site site='b'/><pulley divisor='2'/><site site='b'/><site site='c'/></spatial>"
             "<fixed name='u'><joint joint='shoulder' coef='0.3'/><joint joint='elbow' coef='-0.5'/></fixed></tendon>"
             "<actuator><motor tendon='s' gear='-2'/><position tendon='t' kp='10' kv='2' gear='1.5'/>"
             "<general tendon='t' dyntype='filter' dynprm='0.1' gainprm='3' biastype='affine' biasprm='0.1 -2 -0.3' "
             "forcerange='-1 1'/><velocity tendon='u' kv='2'/></actuator>")},
      {"tendons with inertia",
       model(kLimbs,
             "<tendon><spatial name='s' armature='0.7' damping='0.2'><site site='w'/><site site='a'/><site site='b'/>"
             "</spatial><spatial armature='0.3'><site site='b2'/><site site='b'/><pulley divisor='2'/><site "
             "site='b'/><site site='c'/>"
             "<site site='d'/></spatial>"
             "<fixed armature='0.2'><joint joint='shoulder' coef='0.3'/><joint joint='elbow' coef='-0.5'/></fixed>"
             "</tendon><actuator><motor tendon='s' gear='2'/></actuator>")},
      {"force limits of tendons",
       model(kLimbs,
             "<tendon><spatial name='s' actuatorfrcrange='-0.6 0.4'><site site='w'/><site site='b'/></spatial>"
             "<fixed name='u' actuatorfrcrange='-0.3 0.5'><joint joint='shoulder' coef='1'/><joint joint='elbow' "
             "coef='-0.5'/>"
             "</fixed></tendon><actuator><motor tendon='s'/><motor tendon='s' gear='2'/><motor tendon='u'/>"
             "<position tendon='u' kp='3' kv='0.5' forcerange='-0.4 0.4'/><motor joint='reach'/></actuator>")},
      {"muscles",
       model(kLimbs,
             "<tendon><spatial name='s'><site site='w'/><geom geom='rod' sidesite='side'/><site site='b'/></spatial>"
             "</tendon><actuator><muscle tendon='s' lengthrange='0.2 0.6' force='30'/>"
             "<muscle joint='elbow' lengthrange='-1 1' force='20' tausmooth='0.4' timeconst='0.02 0.05'/>"
             "<muscle joint='reach' lengthrange='-0.3 0.1' range='0.6 1.2' scale='50' lmin='0.4' lmax='1.7' vmax='0.6' "
             "fpmax='2.1' fvmax='1.4' ctrlrange='0.1 0.9'/>"
             "<muscle joint='shoulder' lengthrange='-0.6 -0.2' force='5' fvmax='1'/>"
             "<general joint='twist' dyntype='muscle' dynprm='0.05 0.1 0' gainprm='2' actearly='true'/>"
             "<general joint='twist' gaintype='muscle' gainprm='0.75 1.05 9 200 0.5 1.6 1.5 1.3 1.2' biastype='affine' "
             "biasprm='0.1 -1 -0.2' lengthrange='-1 1'/></actuator>")},
      {"slider-cranks",
       model("<body name='wheel' pos='0 0 0.5'><joint name='turn' axis='0 1 0' armature='0.02'/><geom type='cylinder' "
             "size='0.2 0.02' euler='90 0 0'/><site name='pin' pos='0.15 0 0.02'/></body>"
             "<body pos='0.6 0 0.5' euler='0 5 10'><joint name='tilt' axis='0 1 0.3' armature='0.02'/><geom size='0.05 "
             "0.1' type='capsule'/><site name='slide' pos='-0.05 0.01 0' euler='0 80 5'/>"
             "<body pos='0 0 0.2'><joint axis='1 0 0' armature='0.02'/><geom size='0.05' pos='0 0.1 0'/>"
             "<site name='knob' pos='0.02 0.2 0.03'/></body></body>"
             "<site name='rail' pos='0.3 0 0.5' euler='0 90 0'/>",
             "<actuator><motor cranksite='pin' slidersite='rail' cranklength='0.4' gear='3'/>"
             "<position cranksite='pin' slidersite='slide' cranklength='0.75' kp='20' kv='2'/>"
             "<position cranksite='knob' slidersite='slide' cranklength='0.35' kp='4' kv='0.7' gear='-2'/>"
             "<motor cranksite='pin' slidersite='rail' cranklength='0.05'/></actuator>")},
      {"fluid drag by inertia box",
       model("<body><freejoint/><geom size='0.1 0.2 0.3' type='box' pos='0.05 0 0'/>" + std::string(kTree) + "</body>",
             "", "density='120' viscosity='0.7' wind='1 -2 0.5'")},
      {"a free body with welded children",
       model(
           "<body><freejoint/><geom type='box' size='0.1 0.2 0.3' pos='0.1 0.05 -0.1'/><body pos='0.2 0.3 0' euler='10 "
           "20 30'><geom size='0.1'/><body pos='0 0.2 0.1'><geom type='box' size='0.1 0.05 "
           "0.02'/></body></body></body>")},
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
