// What a URDF file says and a simulation would otherwise pass over: names, <mimic>, limits, where meshes lie.
#include "sim/urdf.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/model_file.h"
#include "sim/scene.h"
#include "sim/xml_elements.h"

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
  const std::string dae = error_of_mesh("package://arm_description/meshes/plate.dae");
  says(dae, "plate.dae");
  says(dae, "STL, OBJ and MSH");
  says(dae, "assimp export");
}

TEST_F(UrdfMeshes, AMissingFileOfAnMjcfModelIsToldLikewise) {
  write(
      "m.xml",
      "<mujoco><asset><mesh name='x' file='a b/rokc.obj'/></asset><worldbody><body><geom type='mesh' mesh='x'/></body>"
      "</worldbody></mujoco>");
  const EntityDeclaration e{"m", Mjcf{folder_.path() / "m.xml"}};
  says(message_of([&] { compile_scene(std::span(&e, 1), {}, {}); }), "is `rock.obj` meant?");
}

}  // namespace
}  // namespace cohort::sim
