// What a URDF file says and a simulation would otherwise pass over: names, <mimic>, limits, where meshes lie.
#include "sim/host/urdf.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "formats/xml_elements.h"
#include "sim/host/model_file.h"
#include "sim/host/scene.h"
#include "sim/host/visual_model.h"

namespace cohort::sim {
namespace {

const std::string kUrdfInertial =
    "<inertial><mass value='1'/><inertia ixx='.01' iyy='.01' izz='.01' ixy='0' ixz='0' iyz='0'/></inertial>";
const std::string kUrdfLimit = "<limit lower='-1' upper='1' effort='9' velocity='2'/>";

std::string urdf_joint(const std::string& name, const std::string& type, const std::string& child,
                       const std::string& inside) {
  return "<joint name='" + name + "' type='" + type + "'><parent link='palm'/><child link='" + child +
         "'/><origin xyz='0 0 .2'/><axis xyz='0 1 0'/>" + inside + "</joint>";
}
/// A palm with two fingers.
std::string urdf_hand(const std::string& joints) {
  return "<robot name='hand'><link name='palm'/><link name='left'>" + kUrdfInertial + "</link><link name='right'>" +
         kUrdfInertial + "</link>" + joints + "</robot>";
}

struct UrdfBuilt {
  std::string error;
  std::vector<std::string> warnings;
  std::string outside;

  bool warns(const std::string& words) const {
    for (const std::string& w : warnings) {
      if (w.find(words) != std::string::npos) return true;
    }
    return false;
  }
};
UrdfBuilt build_urdf(const Urdf& urdf) {
  UrdfBuilt built;
  built.error = message_of([&] {
    Scene scene;
    scene.add_entity(urdf, "robot");
    scene.build(1);
    built.warnings.assign(scene.warnings().begin(), scene.warnings().end());
    built.outside = scene.info().starts_outside_limits();
  });
  return built;
}
UrdfBuilt build_hand(const std::string& joints) {
  return build_urdf(Urdf{.file = "", .xml = urdf_hand(joints), .fixed = true});
}

TEST(UrdfNames, AnElementsDepthAttributesAndEntitiesAreReadWithoutCommentsAndCharacterData) {
  const std::vector<XmlElement> all = xml_elements(
      "\xEF\xBB\xBF<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x '<b/>'>]>\n<a k = \"1 > 0\" l='&lt;&amp;&quot;'><!-- "
      "<b/> -->"
      "<c/><![CDATA[<d/>]]><e\nm='2'>text</e></a>");
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].name, "a");
  EXPECT_EQ(all[0].attribute("k"), "1 > 0");
  EXPECT_EQ(all[0].attribute("l"), "<&\"");
  EXPECT_EQ(all[1].name, "c");
  EXPECT_EQ(all[1].depth, 1);
  EXPECT_EQ(all[2].name, "e");
  EXPECT_EQ(all[2].depth, 1);
  EXPECT_EQ(all[2].attribute("m"), "2");
  EXPECT_TRUE(xml_elements("<a b='").size() <= 1);
  EXPECT_TRUE(xml_elements("<").size() <= 1);
  EXPECT_EQ(xml_elements("<a><b").size(), 2u);
}

TEST(UrdfNames, AMimicOfAJointThatCannotLeadIsAnErrorWithTheNearestName) {
  const std::string lead = urdf_joint("lead", "revolute", "left", kUrdfLimit);
  const auto follow = [](const std::string& mimic, const std::string& type = "revolute") {
    return urdf_joint("follow", type, "right", kUrdfLimit + mimic);
  };
  const auto error = [](const std::string& joints) { return build_hand(joints).error; };
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nwanted: " << words;
  };
  EXPECT_EQ(error(lead + follow("<mimic joint='lead'/>")), "");
  EXPECT_EQ(error(follow("<mimic joint='lead'/>") + lead), "");  // in any order
  says(error(lead + follow("<mimic joint='leed'/>")),
       "`follow` mimics `leed`, and no joint has that name; is `lead` meant?");
  says(error(urdf_joint("lead", "fixed", "left", "") + follow("<mimic joint='lead'/>")), "`lead`, which is fixed");
  says(error(urdf_joint("lead", "planar", "left", "") + follow("<mimic joint='lead'/>")), "`lead` is planar");
  says(error(lead + follow("<mimic joint='lead'/>", "planar")), "`follow` is planar");
  says(error(lead + follow("<mimic joint='follow'/>")), "`follow` mimics itself");
  says(error(urdf_joint("lead", "revolute", "left", kUrdfLimit + "<mimic joint='follow'/>") +
             follow("<mimic joint='lead'/>")),
       "mimics it in turn");
  const UrdfBuilt fixed = build_hand(lead + urdf_joint("follow", "fixed", "right", "<mimic joint='lead'/>"));
  EXPECT_EQ(fixed.error, "");
  EXPECT_TRUE(fixed.warns("`follow` is fixed: its <mimic> has no effect"));
  // A <transmission> names joints too.
  EXPECT_EQ(error(lead + urdf_joint("follow", "revolute", "right", kUrdfLimit) +
                  "<transmission name='t'><joint name='lead'/><actuator name='a'/></transmission>"),
            "");
}

TEST(UrdfNames, RepeatedAndUnknownNamesAreErrorsThatSayWhich) {
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nwanted: " << words;
  };
  const std::string left = urdf_joint("lead", "revolute", "left", kUrdfLimit);
  says(build_hand(left + urdf_joint("lead", "revolute", "right", kUrdfLimit)).error, "two joints are named `lead`");
  says(build_hand(left + "<link name='right'>" + kUrdfInertial + "</link>").error, "two links are named `right`");
  says(build_hand(left + urdf_joint("other", "revolute", "rihgt", kUrdfLimit)).error,
       "the child link `rihgt`, and no link has that name; is `right` meant?");
  says(build_hand(left + urdf_joint("other", "revolute", "left", kUrdfLimit)).error,
       "link `left` is the child of two joints");
  EXPECT_TRUE(build_hand(left).warns("links `palm` and `right` are the child of no joint"));
  // A text that is no XML is MuJoCo's to refuse.
  says(build_urdf(Urdf{.file = "", .xml = "<robot name='r'><link name='a'/><link name='a'>"}).error, "XML parse error");
}

TEST(UrdfLimits, LimitsThatDoNotHoldAreWarnedOfByTheirJoint) {
  const auto built = [](const std::string& limit, const std::string& type = "revolute") {
    const UrdfBuilt b = build_hand(urdf_joint("lead", type, "left", limit) + urdf_joint("other", "fixed", "right", ""));
    EXPECT_EQ(b.error, "") << limit;
    return b;
  };
  EXPECT_TRUE(built(kUrdfLimit).warnings.empty());
  EXPECT_TRUE(built("<limit effort='9' velocity='2'/>", "continuous").warnings.empty());
  EXPECT_TRUE(built("<limit lower='-1' effort='9' velocity='2'/>").warnings.empty());  // to zero
  EXPECT_TRUE(built("").warns("`lead` is revolute and has no <limit>"));
  EXPECT_TRUE(built("", "prismatic").warns("`lead` is prismatic and has no <limit>"));
  const UrdfBuilt zero = built("<limit lower='0' upper='0' effort='0' velocity='0'/>");
  EXPECT_TRUE(zero.warns("limits from 0 to 0: it moves without limits"));
  EXPECT_TRUE(zero.warns("an effort limit of 0: its force is not limited"));
  EXPECT_EQ(zero.warnings.size(), 2u);
  EXPECT_TRUE(built("<limit lower='1' upper='1' effort='9' velocity='2'/>").warns("limits from 1 to 1"));
  EXPECT_TRUE(built("<limit lower='1' upper='-1' effort='9' velocity='2'/>").warns("turned round, 1 to -1"));
  EXPECT_TRUE(built("<limit lower='-1' upper='1' effort='-9' velocity='2'/>").warns("an effort limit of -9"));
  EXPECT_NE(build_hand(urdf_joint("lead", "revolute", "left", "<limit lower='nan' upper='1'/>") +
                       urdf_joint("other", "fixed", "right", ""))
                .error.find("its range is nan"),
            std::string::npos);
}

TEST(UrdfLimits, AStartOutsideTheLimitsIsNamed) {
  const auto start = [](const std::string& limit) {
    return build_hand(urdf_joint("lead", "revolute", "left", limit) + urdf_joint("other", "fixed", "right", ""))
        .outside;
  };
  EXPECT_EQ(start(kUrdfLimit), "");
  EXPECT_EQ(start("<limit lower='0' upper='1' effort='9' velocity='2'/>"), "");
  const std::string outside = start("<limit lower='0.9' upper='5.4' effort='9' velocity='2'/>");
  EXPECT_NE(outside.find("`robot/lead` at 0 of [0.9, 5.4]"), std::string::npos) << outside;
  EXPECT_NE(outside.find("Scene::set_qpos"), std::string::npos) << outside;
  // So it is of MJCF, whose keyframe is the way out.
  Scene scene;
  scene.add_entity(Mjcf{.file = "",
                        .xml = "<mujoco><worldbody><body><joint name='elbow' range='-170 -5'/><geom size='.1'/></body>"
                               "</worldbody><keyframe><key name='home' qpos='-1'/></keyframe></mujoco>"});
  scene.build(1);
  const std::string elbow = scene.info().starts_outside_limits();
  EXPECT_NE(elbow.find("`elbow` at 0 of [-2.967, -0.08727]"), std::string::npos) << elbow;
  EXPECT_NE(elbow.find("keyframe `home`"), std::string::npos) << elbow;
}

TEST(UrdfLimits, AMimicWithAnOffsetStartsApartAndEndsTogether) {
  const std::string hand =
      urdf_joint("lead", "revolute", "left", kUrdfLimit) +
      urdf_joint("follow", "revolute", "right", kUrdfLimit + "<mimic joint='lead' multiplier='-1' offset='0.2'/>");
  EXPECT_TRUE(build_hand(hand).warns("`follow` mimics `lead` with an offset of 0.2"));
  Scene scene;
  const Entity robot = scene.add_entity(Urdf{.file = "", .xml = urdf_hand(hand), .fixed = true}, "robot");
  scene.build(1);
  for (int i = 0; i < 1000; ++i) scene.step();
  const std::vector<float> q = robot.get_dofs_position();
  EXPECT_NEAR(q[1], -q[0] + 0.2f, 1e-3);
}

TEST(UrdfLimits, AMovingLinkWithoutInertiaIsNamedWithARemedy) {
  const std::string text =
      build_hand(
          urdf_joint("lead", "revolute", "left", kUrdfLimit) + urdf_joint("hold", "fixed", "right", "") +
          "<link name='tip'/><joint name='twist' type='continuous'><parent link='left'/><child link='tip'/></joint>")
          .error;
  EXPECT_NE(text.find("robot/tip"), std::string::npos) << text;
  EXPECT_NE(text.find("<inertial>"), std::string::npos) << text;
}

TEST(UrdfLimits, WhatIsTrueOfSeveralJointsIsSaidOnce) {
  std::string text = "<robot name='r'><link name='base'/>";
  for (const char* name : {"left", "right"}) {
    text += format(
        "<link name='{0}'/><joint name='{0}_joint' type='revolute'><parent link='base'/><child link='{0}'/>"
        "<limit lower='0' upper='0' effort='1' velocity='1'/></joint>",
        name);
  }
  const UrdfRemarks remarks = check_urdf(text + "</robot>");
  ASSERT_EQ(remarks.warnings.size(), 1u);
  EXPECT_EQ(remarks.warnings[0].find("joints `left_joint`, `right_joint`: each has limits from 0 to 0"), 0u)
      << remarks.warnings[0];
}

/// Follows the remedies that messages give, which have to work as they stand there.
TEST(UrdfLimits, LinksWithoutInertiaLoadWithTheLineThatTheirMessageNames) {
  const std::string planar =
      "<link name='floor'/><link name='x'/><link name='cart'>" + kUrdfInertial +
      "</link><joint name='a' type='prismatic'><parent link='floor'/><child link='x'/><axis xyz='1 0 0'/>" +
      kUrdfLimit +
      "</joint><joint name='b' type='prismatic'><parent link='x'/><child link='cart'/><axis xyz='0 1 0'/>" +
      kUrdfLimit + "</joint></robot>";
  const std::string skew =
      "<link name='base'/><link name='tip'><inertial><mass value='1'/><inertia ixx='.01' iyy='.01' izz='.05' ixy='0' "
      "ixz='0' iyz='0'/></inertial></link><joint name='a' type='continuous'><parent link='base'/><child link='tip'/>"
      "</joint></robot>";
  for (const auto& [body, setting] : {std::pair{planar, "boundmass"}, std::pair{skew, "balanceinertia"}}) {
    const std::string text = build_urdf(Urdf{.file = "", .xml = "<robot name='r'>" + body, .fixed = true}).error;
    const std::size_t begin = text.find("<mujoco><compiler " + std::string(setting)), end = text.find("</mujoco>");
    ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << text;
    const std::string line = text.substr(begin, end + std::string("</mujoco>").size() - begin);
    EXPECT_EQ(build_urdf(Urdf{.file = "", .xml = "<robot name='r'>" + line + body, .fixed = true}).error, "") << line;
  }
  // The other remedy: the same model, and a warning that names the links.
  for (const auto& [body, link] : {std::pair{planar, "x"}, std::pair{skew, "tip"}}) {
    ModelEdits edits;
    edits.repair_inertia = true;
    Scene repaired({.engine = EngineKind::kMujoco}), as_written({.engine = EngineKind::kMujoco});
    repaired.add_entity(Urdf{.file = "", .xml = "<robot name='r'>" + body, .fixed = true, .edits = edits}, "robot");
    as_written.add_entity(
        Urdf{.file = "",
             .xml = "<robot name='r'><mujoco><compiler boundmass='0.001' boundinertia='1e-06' balanceinertia='true'/>"
                    "</mujoco>" +
                    body,
             .fixed = true},
        "robot");
    repaired.build(1), as_written.build(1);
    for (std::size_t l = 0; l < repaired.info().links.size(); ++l)
      EXPECT_EQ(repaired.info().links[l].mass, as_written.info().links[l].mass);
    EXPECT_EQ(repaired.get_parameter(Parameter::kLinkInertia), as_written.get_parameter(Parameter::kLinkInertia));
    const auto says = [&](const std::string& warning) {
      return warning.find("repair_inertia") != std::string::npos && warning.ends_with(format(": {}", link));
    };
    EXPECT_EQ(std::ranges::count_if(repaired.warnings(), says), 1);
  }
}

TEST(UrdfConventions, ALinkNamedWorldIsTheWorldAndAFixedBaseDoesNotCollideWithWhatItBears) {
  const std::string shape = "<collision><geometry><sphere radius='.1'/></geometry></collision>";
  const auto robot = [&](const std::string& root, const std::string& type) {
    return "<robot name='r'><link name='" + root + "'/><link name='foot'>" + kUrdfInertial + shape +
           "</link><link name='arm'>" + kUrdfInertial + shape + "</link><joint name='mount' type='" + type +
           "'><parent link='" + root +
           "'/><child link='foot'/></joint><joint name='turn' type='continuous'>"
           "<parent link='foot'/><child link='arm'/><origin xyz='0 0 .1'/><axis xyz='0 1 0'/></joint></robot>";
  };
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    SceneOptions o;
    o.engine = engine;
    Scene scene(o);
    scene.add_entity(Urdf{.file = "", .xml = robot("world", "fixed")}, "robot");
    scene.build(1);
    EXPECT_EQ(scene.info().nv, 1);
    ASSERT_EQ(scene.warnings().size(), 1u);
    EXPECT_NE(scene.warnings()[0].find("link `world` is the world"), std::string::npos);
    EXPECT_EQ(scene.overlaps(), "");  // foot and arm are neighbours, on the world as in the air
  }
  const auto dofs = [](const std::string& xml) {
    Scene scene;
    scene.add_entity(Urdf{.file = "", .xml = xml});
    scene.build(1);
    return scene.info().nv;
  };
  EXPECT_EQ(dofs(robot("base", "fixed")), 7);
  EXPECT_EQ(dofs(robot("world", "floating")), 7);
  EXPECT_EQ(dofs(robot("world", "prismatic")), 2);
}

/// The arm and the gains of Genesis' first example, whose fingers weigh 0.1 kg.
TEST(UrdfServos, GainsOfGenesisHoldItsPandaArm) {
  const char* python = std::getenv("COHORT_PYTHON");
  if (python == nullptr) GTEST_SKIP() << "COHORT_PYTHON is not set";
  std::filesystem::path urdf;
  std::error_code none;
  const std::filesystem::path lib = std::filesystem::path(python).parent_path().parent_path() / "lib";
  for (const auto& entry : std::filesystem::directory_iterator(lib, none)) {
    if (!entry.path().filename().string().starts_with("python3")) continue;
    urdf = entry.path() / "site-packages/genesis/assets/urdf/panda_bullet/panda.urdf";
  }
  if (!std::filesystem::exists(urdf, none)) GTEST_SKIP() << "there is no " << urdf;
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    SceneOptions o;
    o.engine = engine;
    o.timestep = 0.005;
    Scene scene(o);
    Entity arm = scene.add_entity(Urdf{.file = urdf.string(), .fixed = true}, "panda");
    scene.build(2);
    arm.set_dofs_kp(std::vector<float>{4500, 4500, 3500, 3500, 2000, 2000, 2000, 100, 100});
    arm.set_dofs_kv(std::vector<float>{450, 450, 350, 350, 200, 200, 200, 10, 10});
    const std::vector<float> target{0.3f, -0.3f, 0.2f, -2.2f, 0.1f, 2.0f, 0.8f, 0.04f, 0.04f};
    arm.control_dofs_position(target);
    for (int i = 0; i < 400; ++i) scene.step();
    const std::vector<float> q = arm.get_dofs_position({}, {1}), v = arm.get_dofs_velocity({}, {1});
    for (std::size_t i = 0; i < q.size(); ++i) {
      EXPECT_NEAR(q[i], target[i], i < 7 ? 0.02 : 0.005) << "dof " << i;
      EXPECT_NEAR(v[i], 0, 0.05) << "dof " << i;
    }
  }
}

TEST(UrdfConventions, WhatXacroHasNotWrittenOutIsNamedWithItsLineAndCommentsAreNot) {
  const std::string link = "<link name='a'>" + kUrdfInertial + "</link>\n";
  const auto error = [](const std::string& xml) { return build_urdf(Urdf{.file = "", .xml = xml}).error; };
  EXPECT_EQ(error("<robot name='r'><!-- <xacro:arm/> ${x} -->" + link + "</robot>"), "");
  EXPECT_EQ(error("<robot name='r'>" + link + "<gazebo reference='a'><plugin file='$(find x)'/></gazebo></robot>"), "");
  EXPECT_NE(error("<robot name='r'>\n" + link + "<xacro:arm/></robot>").find("line 3: the xacro macro <xacro:arm>"),
            std::string::npos);
  const std::string half =
      error("<robot name='r'>\n<!-- two\nlines -->\n<link name='${side}_a'>" + kUrdfInertial + "</link></robot>");
  EXPECT_NE(half.find("line 4: `${side}` of <link name=...>"), std::string::npos) << half;
  EXPECT_NE(half.find("xacro FILE > robot.urdf"), std::string::npos) << half;
}

TEST(UrdfConventions, WhatIsLeftOutOfTheModelIsCountedALineForEachKind) {
  const UrdfBuilt built =
      build_hand(urdf_joint("lead", "revolute", "left",
                            kUrdfLimit + "<safety_controller k_velocity='1'/><calibration rising='0'/>") +
                 urdf_joint("other", "fixed", "right", "") +
                 "<transmission name='t'><joint name='lead'/></transmission><transmission name='u'/>"
                 "<gazebo reference='left'><sensor name='s'/></gazebo><ros2_control name='c'/>");
  EXPECT_EQ(built.error, "");
  for (const char* words : {"2 <transmission> left out", "1 <gazebo> left out", "1 <ros2_control> left out",
                            "1 <safety_controller> left out", "1 <calibration> left out"}) {
    EXPECT_TRUE(built.warns(words)) << words;
  }
  EXPECT_EQ(built.warnings.size(), 5u);
}

TEST(UrdfConventions, VisualsAreKeptForPicturesAndWeighNothing) {
  const auto robot = [](const std::string& shapes, const std::string& before = "") {
    return "<robot name='r'>" + before + "<link name='a'>" + kUrdfInertial + shapes + "</link></robot>";
  };
  const std::string seen = "<visual><geometry><sphere radius='.1'/></geometry></visual>",
                    touched = "<collision><geometry><box size='.1 .1 .1'/></geometry></collision>";
  const auto build = [](const std::string& xml, std::size_t geoms, std::size_t warnings) {
    Scene scene;
    scene.add_entity(Urdf{.file = "", .xml = xml}, "robot");
    scene.build(1);
    EXPECT_EQ(scene.info().geoms.size(), geoms) << xml;
    EXPECT_EQ(scene.warnings().size(), warnings) << xml;
    EXPECT_NEAR(scene.entity("robot").mass(), 1, 1e-9) << xml;  // of its <inertial> alone
  };
  build(robot(seen + touched), 2, 0);
  build(robot(seen), 1, 1);
  build(robot(seen, "<mujoco><option timestep='0.004'/></mujoco>"), 1, 1);
  build(robot(seen, "<mujoco><compiler angle='radian'/></mujoco>"), 1, 1);
  build(robot(seen, "<mujoco><compiler discardvisual='true'/></mujoco>"), 0, 1);
  const std::string collada = "<visual><geometry><mesh filename='package://a/b.dae'/></geometry></visual>";
  build(robot(collada), 0, 1);
  build(robot(collada + touched), 1, 1);
  // A mesh that is only looked at and cannot be read is no reason to refuse the robot.
  const std::string missing = "<visual><geometry><mesh filename='nowhere.stl'/></geometry></visual>";
  build(robot(missing + touched), 1, 1);
}

TEST(UrdfConventions, PicturesShowVisualsAndOfAFileWithoutThemItsCollisionShapes) {
  const auto link = [](const char* name, const std::string& shapes) {
    return format("<link name='{}'>{}{}</link>", name, kUrdfInertial, shapes);
  };
  const std::string seen = "<visual><geometry><sphere radius='.1'/></geometry></visual>",
                    touched = "<collision><geometry><box size='.1 .1 .1'/></geometry></collision>";
  const auto groups = [&](const std::string& of_a) {
    Scene scene;
    scene.add_entity(
        Urdf{.file = "",
             .xml = "<robot name='r'>" + link("a", of_a) + link("b", touched) +
                    "<joint name='j' type='revolute'><parent link='a'/><child link='b'/><axis xyz='0 0 1'/>"
                    "<limit lower='-1' upper='1' effort='1' velocity='1'/></joint></robot>"},
        "robot");
    scene.build(1);
    std::vector<std::pair<VisualShape, int>> shapes;
    for (const VisualGeom& g : scene.visual_model()->geoms) shapes.emplace_back(g.shape, g.group);
    return shapes;
  };
  using Shapes = std::vector<std::pair<VisualShape, int>>;
  EXPECT_EQ(groups(seen + touched),
            (Shapes{{VisualShape::kSphere, 1}, {VisualShape::kBox, 3}, {VisualShape::kBox, 3}}));
  EXPECT_EQ(groups(touched), (Shapes{{VisualShape::kBox, 0}, {VisualShape::kBox, 0}}));
}

TEST(Units, LinksInMillimetresOrInchesOrGramsAreNamedWithTheRemedy) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / format("cohort_units_{}", getpid());
  std::filesystem::create_directories(folder);
  // A box of 120 x 80 x 60 mm.
  std::string cube = "# in millimetres\n";
  for (const char* corner : {"0 0 0", "120 0 0", "120 80 0", "0 80 0", "0 0 60", "120 0 60", "120 80 60", "0 80 60"})
    cube += format("v {}\n", corner);
  for (const char* face :
       {"1 3 2", "1 4 3", "5 6 7", "5 7 8", "1 2 6", "1 6 5", "2 3 7", "2 7 6", "3 4 8", "3 8 7", "4 1 5", "4 5 8"})
    cube += format("f {}\n", face);
  write_file_atomically((folder / "arm.obj").string(), cube);
  const auto urdf = [&](const std::string& scale, double mass) {
    const std::string shape = format("<collision><geometry><mesh filename='{}'{}/></geometry></collision>",
                                     (folder / "arm.obj").string(), scale);
    const std::string inertial = format(
        "<inertial><mass value='{}'/><inertia ixx='9' iyy='9' izz='9' ixy='0' ixz='0' iyz='0'/></inertial>", mass);
    return Urdf{.xml = "<robot name='r'><link name='base'>" + inertial + shape + "</link></robot>"};
  };
  const UrdfBuilt millimetres = build_urdf(urdf("", 2));
  EXPECT_EQ(millimetres.error, "");
  EXPECT_TRUE(
      millimetres.warns("120 m long: in millimetres that would be 0.12 m, in inches 3.05 m; a scale of 0.001 "
                        "for each mesh (<mesh scale=\"0.001 0.001 0.001\">) takes millimetres"));
  EXPECT_TRUE(build_urdf(urdf(" scale='0.001 0.001 0.001'", 2)).warnings.empty()) << "the remedy";
  const UrdfBuilt grams = build_urdf(urdf(" scale='0.001 0.001 0.001'", 2000));
  EXPECT_TRUE(
      grams.warns("weigh 2000 kg in a box of 0.000576 m^3, denser than any metal: in grams that would be 2 kg"));
  const auto warnings = [](const Morph& morph) {
    Scene scene;
    scene.add_entity(morph, "thing");
    scene.build(1);
    std::string all;
    for (const std::string& warning : scene.warnings()) all += warning + "\n";
    return all;
  };
  const std::string mesh = (folder / "arm.obj").string();
  EXPECT_NE(warnings(Mesh{.file = mesh}).find("arm.obj: the mesh"), std::string::npos) << warnings(Mesh{.file = mesh});
  EXPECT_EQ(warnings(Mesh{.file = mesh, .scale = {0.001, 0.001, 0.001}}), "");
  const auto mjcf = [&](const std::string& body) {
    return warnings(Mjcf{.file = "",
                         .xml = "<mujoco><asset><mesh name='m' file='" + mesh + "'/></asset><worldbody>" + body +
                                "</worldbody></mujoco>"});
  };
  EXPECT_EQ(mjcf("<geom type='mesh' mesh='m'/>"), "") << "a building that nothing moves";
  EXPECT_NE(mjcf("<body><freejoint/><geom type='mesh' mesh='m'/></body>").find("entity `thing`: the mesh `m` is 120 m"),
            std::string::npos);
  EXPECT_NE(
      mjcf("<body name='b'><freejoint/><geom type='box' size='40 30 20'/></body>").find("`b` has a shape 80 m long"),
      std::string::npos);
  EXPECT_EQ(mjcf("<body><freejoint/><geom type='box' size='0.4 0.3 0.2' density='8000'/></body>"), "") << "steel";
  std::filesystem::remove_all(folder);
}

TEST(UrdfConventions, AnSrdfFileSaysWhichLinksDoNotCollide) {
  const std::filesystem::path folder = std::filesystem::temp_directory_path() / format("cohort_srdf_{}", getpid());
  std::filesystem::create_directories(folder);
  const auto link = [](const char* name) {
    return format("<link name='{}'>{}<collision><geometry><sphere radius='.1'/></geometry></collision></link>", name,
                  kUrdfInertial);
  };
  const auto joint = [](const char* parent, const char* child) {
    return format(
        "<joint name='{1}_joint' type='continuous'><parent link='{0}'/><child link='{1}'/>"
        "<origin xyz='0 0 .06'/><axis xyz='0 1 0'/></joint>",
        parent, child);
  };
  const std::string urdf = (folder / "arm.urdf").string();
  write_file_atomically(urdf, "<robot name='r'>" + link("a") + link("b") + link("c") + link("d") + joint("a", "b") +
                                  joint("b", "c") + joint("c", "d") + "</robot>");
  const auto overlaps = [&](const std::string& srdf, bool fixed = false) {
    Scene scene;
    Urdf robot{.file = urdf, .fixed = fixed};
    robot.srdf = srdf;
    scene.add_entity(robot, "r");
    scene.build(1);
    return scene.overlaps();
  };
  const auto says = [](const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nwanted: " << words;
  };
  // a and c, b and d; a and d are 0.18 m apart.
  says(overlaps(""), "3 pairs of links overlap: ");
  says(overlaps("", true), "3 pairs of links overlap: ");
  const std::string other = (folder / "other.srdf").string();
  write_file_atomically(other,
                        "<robot name='r'><disable_default_collisions link='a'/><enable_collisions link1='d' "
                        "link2='a'/><disable_collisions link1='x' link2='a' reason='Never'/></robot>");
  says(overlaps(other), "2 pairs of links overlap: `r/b` and `r/d` by 0.08 m, `r/a` and `r/d` by 0.02 m");
  Urdf with_unknown{.file = urdf};
  with_unknown.srdf = other;
  EXPECT_TRUE(build_urdf(with_unknown).warns("it names a link that the URDF file does not have: `x`"));
  write_file_atomically((folder / "arm.srdf").string(),
                        "<robot name='r'><disable_collisions link1='c' link2='a'/><disable_collisions link1='b' "
                        "link2='d'/><disable_collisions link1='a' link2='d'/></robot>");
  EXPECT_EQ(overlaps(""), "");
  EXPECT_EQ(overlaps("", true), "");
  write_file_atomically(other, "<sdf/>");
  says(message_of([&] { overlaps(other); }), "this is no SRDF: its root element is <sdf>");
  says(message_of([&] { overlaps((folder / "none.srdf").string()); }), "there is no file");
  std::filesystem::remove_all(folder);
}

/// A package `arm_description` with a mesh, and a robot in its folder `urdf`.
class UrdfMeshes : public ::testing::Test {
 protected:
  UrdfMeshes() {
    write("ws/arm_description/meshes/rock.obj", kRock);
    write("ws/arm_description/urdf/near.obj", kRock);
    write("far/share/tool_description/tool.obj", kRock);
    write("a b/rock.obj", kRock);
    write("ws/arm_description/meshes/plate.dae", "<COLLADA/>");
  }
  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_.path() / name).parent_path());
    write_file_atomically(folder_.path() / name, text);
  }
  std::string error_of_mesh(const std::string& mesh) const {
    write("ws/arm_description/urdf/arm.urdf", "<robot name='r'><link name='base'>" + kUrdfInertial +
                                                  "<collision><geometry><mesh filename='" + mesh +
                                                  "'/></geometry></collision></link></robot>");
    return build_urdf(Urdf{folder_.path() / "ws/arm_description/urdf/arm.urdf"}).error;
  }
  static void says(const std::string& text, const std::string& words) {
    EXPECT_NE(text.find(words), std::string::npos) << text << "\nwanted: " << words;
  }

  const std::string kRock = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  TemporaryFolder folder_{"cohort-urdf"};
};

TEST_F(UrdfMeshes, EveryWayToNameAMeshThatIsThereFindsIt) {
  for (const char* mesh : {"package://arm_description/meshes/rock.obj", "model://arm_description/meshes/rock.obj",
                           "package://near.obj", "near.obj", "../meshes/rock.obj"}) {
    EXPECT_EQ(error_of_mesh(mesh), "") << mesh;
  }
  const std::string here = folder_.path();
  EXPECT_EQ(error_of_mesh("file://" + here + "/ws/arm_description/meshes/rock.obj"), "");
  EXPECT_EQ(error_of_mesh("file://localhost" + here + "/a%20b/rock.obj"), "");
  EXPECT_EQ(error_of_mesh("file:" + here + "/a b/rock.obj"), "");
}

TEST_F(UrdfMeshes, APackageElsewhereIsFoundByRossAndGazebosVariables) {
  const std::string here = folder_.path();
  const char* mesh = "package://tool_description/tool.obj";
  says(error_of_mesh(mesh), "ROS_PACKAGE_PATH");
  for (const auto& [variable, value] :
       {std::pair<const char*, std::string>{"ROS_PACKAGE_PATH", "/nowhere:" + here + "/far/share"},
        {"ROS_PACKAGE_PATH", here + "/far/share/tool_description"},
        {"AMENT_PREFIX_PATH", here + "/far"},
        {"GZ_SIM_RESOURCE_PATH", here + "/far/share"},
        {"GAZEBO_MODEL_PATH", here + "/far/share"}}) {
    setenv(variable, value.c_str(), 1);
    EXPECT_EQ(error_of_mesh(mesh), "") << variable << "=" << value;
    unsetenv(variable);
  }
}

TEST_F(UrdfMeshes, AMissingMeshIsToldByThePartOfItsPathThatIsNotThere) {
  const std::string package = (folder_.path() / "ws/arm_description").string();
  const std::string typo = error_of_mesh("package://arm_description/meshes/rokc.obj");
  says(typo, "the package is " + package);
  says(typo, package + "/meshes holds no `rokc.obj`; is `rock.obj` meant?");
  says(error_of_mesh("package://arm_description/mesh/rock.obj"), package + " holds no `mesh`; is `meshes` meant?");
  says(error_of_mesh("model://arm_description/meshes/Rock.obj"), "is `rock.obj` meant?");
  says(error_of_mesh("package://other_description/meshes/rock.obj"), "relative to the URDF file");
  says(error_of_mesh("file://" + package + "/meshes/rokc.obj"), "is `rock.obj` meant?");
  says(error_of_mesh("../meshes/rokc.obj"), package + "/meshes holds no `rokc.obj`; is `rock.obj` meant?");
  says(error_of_mesh("file://meshes/rock.obj"), "whole path");
  says(error_of_mesh("https://example.org/rock.obj"), "`https:` is not known here");
  says(error_of_mesh("package://arm_description/meshes"), "is a folder");
}

TEST_F(UrdfMeshes, AFormatThatIsNotReadIsNamedWithHowToConvertIt) {
  write("ws/arm_description/meshes/plate.glb", "glTF");
  const std::string glb = error_of_mesh("package://arm_description/meshes/plate.glb");
  says(glb, "plate.glb");
  says(glb, "STL, OBJ and MSH");
  says(glb, "COLLADA");
  says(glb, "assimp export");
  const std::string empty = error_of_mesh("package://arm_description/meshes/plate.dae");
  says(empty, "plate.dae");
  says(empty, "holds no triangles");
}

TEST_F(UrdfMeshes, AMissingFileOfAnMjcfModelIsToldLikewise) {
  write(
      "m.xml",
      "<mujoco><asset><mesh name='x' file='a b/rokc.obj'/></asset><worldbody><body><geom type='mesh' mesh='x'/></body>"
      "</worldbody></mujoco>");
  const EntityDeclaration e{"m", Mjcf{folder_.path() / "m.xml"}};
  says(message_of([&] { compile_scene(std::span(&e, 1), {}, {}); }), "is `rock.obj` meant?");
}

TEST(UrdfConventions, WhatMujocoRefusesWithoutANameIsNamedWithARemedy) {
  const auto error = [](const std::string& body) {
    return build_urdf(Urdf{.file = "", .xml = "<robot name='r'>" + body + "</robot>"}).error;
  };
  const auto link = [](const std::string& name, const std::string& more = "") {
    return "<link name='" + name + "'>" + kUrdfInertial + more + "</link>";
  };
  const auto joint = [](const std::string& type, const std::string& more = "") {
    return "<joint name='j' type='" + type + "'><parent link='a'/><child link='b'/>" + more + "</joint>";
  };
  const struct {
    std::string said, wanted;
  } kCases[] = {
      {error(""), "no <link>"},
      {error(link("a") + link("b") + joint("continuous", "<axis xyz='0 0 0'/>")), "joint `j` has the axis 0 0 0"},
      {error(link("a") + link("b") + joint("floating")), "joint `j` is floating below `a`"},
      {error(link("a") + link("b") + joint("continuous") +
             "<joint name='k' type='fixed'><parent link='b'/><child link='a'/></joint>"),
       "none is the base"},
      {error(link("a", "<collision><geometry><cone radius='1' length='1'/></geometry></collision>")),
       "link `a` has the shape <cone> (line 1): box, sphere, cylinder, capsule and mesh"},
  };
  for (const auto& [said, wanted] : kCases) EXPECT_NE(said.find(wanted), std::string::npos) << said;
  // One that is spelt as MuJoCo needs it.
  EXPECT_EQ(error("<link name='world'/>" + link("b") +
                  "<joint name='j' type='floating'><parent link='world'/><child link='b'/></joint>"),
            "");
}

TEST(UrdfConventions, ShapesWithoutExtentAreLeftOutWithALine) {
  const UrdfBuilt built =
      build_urdf(Urdf{.file = "",
                      .xml = "<robot name='r'><link name='a'>" + kUrdfInertial +
                             "<collision><geometry><sphere radius='0.00'/></geometry></collision><collision><geometry>"
                             "<sphere radius='0.1'/></geometry></collision></link></robot>"});
  EXPECT_EQ(built.error, "");
  EXPECT_TRUE(built.warns("1 shape of size 0 left out"));
}

TEST(UrdfLimits, LimitsThatLookLikeDegreesAreAskedAfter) {
  const auto built = [](const std::string& limit) {
    return build_hand(urdf_joint("lead", "revolute", "left", limit) + urdf_joint("hold", "fixed", "right", ""));
  };
  EXPECT_TRUE(built("<limit lower='-90' upper='90' effort='1' velocity='1'/>").warns("are they degrees?"));
  EXPECT_FALSE(built("<limit lower='-6.28' upper='6.28' effort='1' velocity='1'/>").warns("are they degrees?"));
}

TEST(UrdfLimits, InertialsThatAreZeroOrLackAPartLoadWithTheFlagThatTheirMessageNames) {
  for (const char* inertial : {"<mass value='1'/><inertia ixx='1' iyy='1' izz='0' ixy='0' ixz='0' iyz='0'/>",
                               "<mass value='1'/>", "<inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' iyz='0'/>"}) {
    Urdf urdf{
        .file = "",
        .xml = "<robot name='r'><link name='a'><inertial>" + std::string(inertial) + "</inertial></link></robot>"};
    EXPECT_NE(build_urdf(urdf).error.find("--repair-inertia"), std::string::npos) << inertial;
    urdf.edits.repair_inertia = true;
    EXPECT_EQ(build_urdf(urdf).error, "") << inertial;
  }
}

}  // namespace
}  // namespace cohort::sim
