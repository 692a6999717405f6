// What a scene is made of, on both engines: files, shapes and terrain, where they are put, their names and parts.
#include <array>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/files.h"
#include "core/format.h"
#include "core/message_of.h"
#include "sim/models.h"
#include "sim/scene_api.h"

namespace cohort::sim {
namespace {

TEST_P(SceneApi, EntitiesAndTheirPartsAreFoundByName) {
  Scene scene(options());
  scene.add_entity(Mjcf{kModels + "arm.xml"}, "arm");
  scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 2, 0}}}, "copy");
  scene.add_entity(Plane{.pose = {{0, 0, -1}}}, "floor");
  EXPECT_EQ(scene.entity("copy").name(), "copy");
  scene.build(2, {1.5, 2});
  Entity copy = scene.entity("copy");
  EXPECT_EQ(
      scene.info().links[static_cast<std::size_t>(copy.links()[static_cast<std::size_t>(copy.link("lower"))])].name,
      "copy/lower");
  copy.set_dofs_position(std::vector<float>{0.7f}, copy.dofs_of_joint("elbow"), {1});
  EXPECT_FLOAT_EQ(scene.get_dofs_position({3}, {1})[0], 0.7f);
  EXPECT_EQ(scene.entity("floor").geoms().size(), 1u);
  EXPECT_EQ(scene.entity("arm").geoms().size(), 2u);
  EXPECT_NEAR(copy.mass(), scene.entity("arm").mass(), 1e-12);
  EXPECT_NE(message_of([&] { scene.entity("cpy"); }).find("`copy`"), std::string::npos);
  EXPECT_NE(message_of([&] { copy.link("lowr"); }).find("lower"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.entity("floor").get_pos(); }).find("part of the world"), std::string::npos);
  EXPECT_NE(message_of([&] { copy.set_pos(std::vector<float>{0, 0, 0}); }).find("stands still"), std::string::npos);
  // Where a picture puts the environments: about the origin.
  EXPECT_EQ(scene.environment_offset(0)[1], -1);
  EXPECT_EQ(scene.environment_offset(1)[1], 1);
}

TEST_P(SceneApi, BasesAndMocapBodiesArePut) {
  Scene scene(options());
  Entity ball = scene.add_entity(Sphere{0.1, {.pose = {{0, 0, 5}}, .mass = 2}}, "ball");
  scene.build(3);
  ball.set_pos(std::vector<float>{1, 2, 3}, {1});
  ball.set_quat(std::vector<float>{0, 1, 0, 0}, {1});
  EXPECT_EQ(ball.get_pos(), (std::vector<float>{0, 0, 5, 1, 2, 3, 0, 0, 5}));
  EXPECT_EQ(ball.get_quat({1}), (std::vector<float>{0, 1, 0, 0}));
  // A force of its weight keeps the ball where it is.
  scene.set_links_force(std::vector<float>{0, 0, 2 * 9.81f, 0, 0, 0}, {ball.links()[0]}, {0});
  for (int i = 0; i < 100; ++i) scene.step();
  EXPECT_NEAR(ball.get_pos({0})[2], 5, 1e-4);
  EXPECT_LT(ball.get_pos({2})[2], 4.9);
  EXPECT_NEAR(ball.get_vel({2})[2], -9.81 * 100 * scene.info().timestep, 1e-3);
  EXPECT_NE(message_of([&] {
              scene.set_mocap_pos(std::vector<float>{0, 0, 0}, {ball.links()[0]});
            }).find("no mocap"),
            std::string::npos);

  Scene lone(options());
  Entity hand = lone.add_entity(Mjcf{.file = "",
                                     .xml = "<mujoco><worldbody><body name='target' mocap='true' pos='0 0 1'><geom "
                                            "size='0.1'/></body></worldbody></mujoco>"},
                                "hand");
  lone.build(3);
  hand.set_pos(std::vector<float>{4, 5, 6}, {2});
  EXPECT_EQ(hand.get_pos(), (std::vector<float>{0, 0, 1, 0, 0, 1, 4, 5, 6}));
}

TEST_P(SceneApi, MocapBodiesOfSeveralFilesStandWhereTheirFilesArePut) {
  // Half a turn about z. The file's floor and the frame around the box are put with it.
  const Pose pose{{1, 6, 0}, {0, 0, 0, 1}};
  const std::string xml =
      "<mujoco><worldbody><geom type='plane' size='1 1 0.1' pos='0 0 -1'/>"
      "<body name='target' mocap='true' pos='0.5 0 1'><geom size='0.1' contype='0' conaffinity='0'/></body>"
      "<frame pos='0 1 0'><body name='box' pos='0.5 0 1'><freejoint/><geom size='0.1'/></body></frame>"
      "</worldbody><equality><weld body1='target' body2='box'/></equality></mujoco>";
  SceneOptions without_gravity = options();
  without_gravity.gravity = {0, 0, 0};
  Scene scene(without_gravity);
  Entity here = scene.add_entity(Mjcf{.file = "", .xml = xml}, "here");
  Entity there = scene.add_entity(Mjcf{.file = "", .xml = xml, .pose = pose}, "there");
  scene.build(2);
  ASSERT_EQ(here.links().size(), 2u);
  ASSERT_EQ(there.links().size(), 2u);
  const auto expect_at = [&](Entity& entity, std::vector<float> target, std::vector<float> box, int env) {
    const std::vector<float> pos = entity.get_links_pos({}, {env});
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(pos[i], target[i], 2e-3) << i;
      EXPECT_NEAR(pos[3 + i], box[i], 2e-3) << i;
    }
  };
  expect_at(here, {0.5f, 0, 1}, {0.5f, 1, 1}, 0);
  expect_at(there, {0.5f, 6, 1}, {0.5f, 5, 1}, 0);
  // The weld takes the box along, in the environment whose target moves.
  scene.set_mocap_pos(std::vector<float>{0.5f, 6, 1.2f}, {there.links()[0]}, {1});
  for (int i = 0; i < 500; ++i) scene.step();
  expect_at(there, {0.5f, 6, 1.2f}, {0.5f, 5, 1.2f}, 1);
  expect_at(there, {0.5f, 6, 1}, {0.5f, 5, 1}, 0);
}

/// A robot that moves, with everything that refers to its parts.
const char* const kRover = R"(<mujoco>
  <option timestep="0.004" integrator="implicitfast"/>
  <default><geom density="500"/><default class="light"><geom density="100"/></default></default>
  <worldbody>
    <geom name="ground" type="plane" size="5 5 0.1"/><geom type="box" size="0.1 0.1 0.1" pos="0 3 0.1"/>
    <site name="mark" pos="0 0 2"/>
    <body name="cart" pos="1 0 0.5"><freejoint name="root"/><geom name="hull" size="0.2"/><site name="deck"/>
      <body name="arm" pos="0.3 0 0"><joint name="swing" axis="0 1 0"/><geom name="bar" class="light" size="0.1"/></body>
    </body>
    <body name="crate" pos="1 1 0.5"><freejoint/><geom name="lid" size="0.1"/></body>
  </worldbody>
  <contact><exclude body1="cart" body2="crate"/><exclude body1="world" body2="crate"/></contact>
  <tendon><fixed name="cable"><joint joint="swing" coef="2"/></fixed>
    <spatial name="rope"><site site="mark"/><site site="deck"/></spatial></tendon>
  <equality><connect name="hinge" body1="crate" body2="cart" anchor="0 0 0"/>
    <weld name="nail" body1="crate" body2="world" active="false"/></equality>
  <actuator><position name="servo" joint="swing" kp="5"/><motor name="winch" tendon="cable"/></actuator>
  <sensor><framepos name="where" objtype="body" objname="cart"/><jointpos name="angle" joint="swing"/>
    <tendonpos name="length" tendon="rope"/>
    <framepos name="from" objtype="body" objname="crate" reftype="body" refname="world"/></sensor>
  <keyframe><key name="away" time="3" qpos="2 0 0.5 1 0 0 0 0.4 2 1 0.5 1 0 0 0" qvel="1 0 0 0 0 0 0 0 1 0 0 0 0"
    ctrl="0.4 0"/><key name="aim" ctrl="0.1 0"/></keyframe></mujoco>)";

TEST_P(SceneApi, AMovingRobotIsAddedTwiceAndStandsWhereItIsPut) {
  Scene scene(options());
  Entity here = scene.add_entity(Mjcf{.file = "", .xml = kRover}, "here");
  // A quarter of a turn about z.
  Entity there = scene.add_entity(Mjcf{.file = "", .xml = kRover, .pose = Pose{{10, 0, 0}, {0.5, 0, 0, 0.5}}}, "there");
  scene.build(2);
  const ModelInfo& m = scene.info();
  ASSERT_EQ(there.links().size(), 3u);
  EXPECT_EQ(m.links[static_cast<std::size_t>(there.links()[0])].name, "there/cart");  // the base
  EXPECT_EQ(there.links().size(), here.links().size());
  EXPECT_EQ(there.dofs().size(), here.dofs().size());
  EXPECT_EQ(there.geoms().size(), 5u);  // those of its world too, also without a name
  EXPECT_EQ(here.geoms().size(), 5u);
  EXPECT_DOUBLE_EQ(there.mass(), here.mass());  // its default classes
  const auto expect_near = [](const std::vector<float>& is, const std::vector<float>& wanted) {
    ASSERT_EQ(is.size(), wanted.size());
    for (std::size_t i = 0; i < is.size(); ++i) EXPECT_NEAR(is[i], wanted[i], 1e-5) << i;
  };
  expect_near(there.get_pos({1}), {10, 1, 0.5f});
  expect_near(scene.get_sensor("there/where", {1}), {10, 1, 0.5f});
  expect_near(scene.get_sensor("there/from", {1}), {9, 1, 0.5f});
  expect_near(scene.get_sensor("there/length"), scene.get_sensor("length"));
  for (const char* name : {"servo", "winch"}) {
    EXPECT_EQ(m.actuators[static_cast<std::size_t>(m.actuator(format("there/{}", name)))].moves,
              (std::vector<int>{there.dofs()[6]}));
  }
  // The same motion, apart from the turn: of one connected to the other, without a contact of the excluded.
  scene.reset_to_keyframe("away", {0});
  expect_near(here.get_pos({0}), {2, 0, 0.5f});
  scene.reset_to_keyframe("there/away", {1});
  expect_near(there.get_pos({1}), {10, 2, 0.5f});
  expect_near(there.get_vel({1}), {0, 1, 0});
  expect_near(there.get_dofs_position(there.dofs_of_joint("swing"), {1}), {0.4f});
  expect_near(there.get_quat({1}), {std::sqrt(0.5f), 0, 0, std::sqrt(0.5f)});
  for (int i = 0; i < 100; ++i) scene.step();
  const std::vector<float> a = here.get_pos({0}), b = there.get_pos({1});
  EXPECT_GT(a[0], 2.05f);
  expect_near({b[1], 10 - b[0], b[2]}, a);
  EXPECT_EQ(here.get_contacts(0).size(), there.get_contacts(1).size());
  // A keyframe that says no more than controls leaves the file's place.
  scene.reset_to_keyframe("there/aim", {1});
  expect_near(there.get_pos({1}), {10, 1, 0.5f});
  there.set_pos(std::vector<float>{4, 5, 6}, {1});
  expect_near(there.get_pos({1}), {4, 5, 6});
}

TEST_P(SceneApi, AMappedFileKeepsItsMocapKeyframesAndTheOnlyFileItsOptions) {
  const std::string xml =
      "<mujoco><option timestep='0.005' integrator='RK4'/><worldbody><body name='hand' mocap='true'/>"
      "<body name='ball' pos='0 0 1'><freejoint/><geom size='0.1'/></body></worldbody>"
      "<keyframe><key name='up' mpos='1 0 2' mquat='1 0 0 0'/></keyframe></mujoco>";
  Scene scene(options());
  Entity file = scene.add_entity(Mjcf{.file = "", .xml = xml, .pose = Pose{{5, 0, 0}, {0, 0, 0, 1}}}, "file");
  scene.build(1);
  EXPECT_EQ(scene.info().timestep, 0.005);
  EXPECT_EQ(scene.info().integrator, "RK4");
  scene.reset_to_keyframe("file/up");
  EXPECT_EQ(file.get_pos(), (std::vector<float>{4, 0, 2}));
  EXPECT_EQ(file.get_quat(), (std::vector<float>{0, 0, 0, 1}));
}

/// Of a URDF's <mujoco> element; a model file's own go before them, wherever it stands.
TEST_P(SceneApi, AUrdfGivesTheOptionsWhereNoModelFileDoes) {
  const auto urdf = [](const char* timestep) {
    return Urdf{.file = "",
                .xml = format("<robot name='r'><mujoco><option timestep='{}' integrator='implicitfast'/></mujoco>"
                              "<link name='base'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
                              "ixz='0' iyz='0'/></inertial></link></robot>",
                              timestep)};
  };
  Scene lone(options());
  lone.add_entity(Plane{});
  lone.add_entity(urdf("0.01"), "first");
  lone.add_entity(urdf("0.02"), "second");
  lone.build(1);
  EXPECT_EQ(lone.info().timestep, 0.01);
  EXPECT_EQ(lone.info().integrator, "implicitfast");
  Scene both(options());
  both.add_entity(urdf("0.01"), "first");
  both.add_entity(Mjcf{.file = "", .xml = "<mujoco><option timestep='0.004'/></mujoco>", .pose = Pose{}}, "file");
  both.build(1);
  EXPECT_EQ(both.info().timestep, 0.004);
}

TEST_P(SceneApi, AUrdfMayMoveFreelyByItsOwnJoint) {
  const std::string xml =
      "<robot name='r'><link name='world'/><link name='base'><inertial><mass value='3'/><inertia ixx='.1' iyy='.1' "
      "izz='.1' ixy='0' ixz='0' iyz='0'/></inertial></link><joint name='j' type='floating'><parent link='world'/>"
      "<child link='base'/></joint></robot>";
  for (const bool fixed : {true, false}) {
    Scene scene(options());
    Entity robot = scene.add_entity(Urdf{.file = "", .xml = xml, .pose = {{0, 0, 2}}, .fixed = fixed}, "robot");
    scene.build(1);
    EXPECT_EQ(robot.dofs().size(), 6u);
    EXPECT_EQ(robot.mass(), 3);
    EXPECT_EQ(robot.get_pos(), (std::vector<float>{0, 0, 2}));
  }
}

TEST_P(SceneApi, NamesThatAModelFileTookAreRefused) {
  const std::string xml =
      "<mujoco><asset><mesh name='part' vertex='0 0 0 .1 0 0 0 .1 0 0 0 .1'/><hfield name='hill' nrow='2' ncol='2' "
      "size='1 1 1 .1' elevation='0 0 0 0'/></asset><worldbody><geom name='floor' type='plane' size='1 1 1'/>"
      "<camera name='eye'/><body name='torso' pos='0 0 .5'><freejoint/><geom size='.1'/></body></worldbody>"
      "<sensor><subtreecom name='centre' body='world'/></sensor></mujoco>";
  const auto build = [&](const Morph& morph, const std::string& name, const std::string& camera) {
    return message_of([&] {
      Scene scene(options());
      scene.add_entity(Mjcf{.file = "", .xml = xml}, "robot");
      scene.add_entity(morph, name);
      scene.add_camera({.name = camera});
      scene.build(1);
    });
  };
  const auto path = file("clash.obj");
  write_file_atomically(path, "v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  EXPECT_NE(build(Plane{}, "floor", "").find("entity `floor`: the scene has a geom"), std::string::npos);
  EXPECT_NE(build(Sphere{}, "torso", "").find("entity `torso`: the scene has a body"), std::string::npos);
  EXPECT_NE(build(Mesh{.file = path.string()}, "part", "").find("entity `part`: the scene has a mesh"),
            std::string::npos);
  EXPECT_NE(build(Terrain{.rows = 2, .cols = 2, .heights = {0, 0, 0, 1}}, "hill", "").find("a height field"),
            std::string::npos);
  EXPECT_NE(build(Plane{}, "plane", "eye").find("camera `eye`"), std::string::npos);
  // One file's world is the whole scene's: MuJoCo would leave its sensors out without a word.
  EXPECT_NE(build(Mjcf{.file = "", .xml = xml, .pose = Pose{}}, "second", "").find("sensor `centre`"),
            std::string::npos);
  std::filesystem::remove(path);
  Scene scene(options());
  Entity outer = scene.add_entity(Plane{}, "a"), inner = scene.add_entity(Plane{.pose = {{0, 0, -1}}}, "a/b");
  scene.add_entity(Sphere{});
  scene.build(1);
  EXPECT_EQ(outer.geoms().size(), 1u);
  EXPECT_EQ(inner.geoms().size(), 1u);
}

TEST_P(SceneApi, ShapesAreWhatTheyAreGivenWhateverAFilesDefaultsSay) {
  Scene scene(options());
  Entity robot = scene.add_entity(
      Mjcf{.file = "",
           .xml =
               "<mujoco><default><geom conaffinity='0' contype='1' solref='0.5 1' margin='0.1'/><mesh scale='3 3 3'/>"
               "<joint armature='9'/></default><worldbody><body name='ball' pos='0 0 1'><freejoint/>"
               "<geom size='0.1'/></body></worldbody></mujoco>"},
      "robot");
  scene.add_entity(Plane{.pose = {{0, 0, 0.3}}}, "ground");
  Entity box = scene.add_entity(Box{{0.2, 0.2, 0.2}, {.pose = {{1, 0, 0.45}}}}, "box");
  scene.build(1);
  EXPECT_EQ(scene.get_parameter(Parameter::kDofArmature), std::vector<float>(12, 0.0f));
  for (int i = 0; i < 700; ++i) scene.step();
  EXPECT_NEAR(robot.get_pos()[2], 0.4, 0.15);  // soft by its own solref
  EXPECT_NEAR(box.get_pos()[2], 0.4, 0.001);
}

TEST_P(SceneApi, ShapesThatCannotBeAreRefused) {
  const auto build = [](const Morph& morph) {
    return message_of([&] {
      Scene scene(options());
      scene.add_entity(morph, "thing");
      scene.build(1);
    });
  };
  for (const double bad : {-1.0, std::nan("")}) {
    EXPECT_NE(build(Sphere{.shape = {.friction = {bad, 0, 0}}}).find("friction"), std::string::npos);
    EXPECT_NE(build(Plane{.friction = {1, bad, 0}}).find("friction"), std::string::npos);
  }
  for (const double bad : {1e11, std::nan("")}) {
    EXPECT_NE(build(Sphere{.shape = {.pose = {{bad, 0, 0}}}}).find("position"), std::string::npos);
  }
  for (const double bad : {-1.0, std::nan(""), static_cast<double>(INFINITY)}) {
    EXPECT_NE(build(Sphere{.shape = {.density = bad}}).find("density"), std::string::npos);
    EXPECT_NE(build(Box{.shape = {.mass = bad}}).find("mass"), std::string::npos);
  }
  EXPECT_NE(build(Terrain{.rows = 2, .cols = 2, .heights = {0, NAN, 0, 1}}).find("height"), std::string::npos);
}

TEST_P(SceneApi, EntitiesKnowTheirPartsAlsoWhenTheCompilerFusesBodies) {
  const std::string xml =
      "<mujoco><compiler fusestatic='true'/><worldbody><body name='table'><geom size='0.1'/><body name='wheel'>"
      "<joint/><geom size='0.1'/></body></body><body name='cart'><freejoint/><geom size='0.1'/><body name='box'>"
      "<geom size='0.1'/></body></body></worldbody></mujoco>";
  for (const bool posed : {false, true}) {
    Scene scene(options());
    Mjcf file{.file = "", .xml = xml};
    if (posed) file.pose = Pose{{0, 0, 3}};
    Entity robot = scene.add_entity(file, "robot");
    Entity ball = scene.add_entity(Sphere{}, "ball");
    scene.build(1);
    EXPECT_EQ(robot.geoms().size(), 4u);
    EXPECT_EQ(robot.dofs().size(), 7u);
    EXPECT_EQ(ball.geoms().size(), 1u);
    EXPECT_EQ(robot.links().size() + ball.links().size() + 1, scene.info().links.size());
    EXPECT_NO_THROW(robot.link("wheel"));
  }
}

/// Two files whose meshes have one name and lie beside each, one of them in an included file, and a URDF's mesh.
TEST_P(SceneApi, MeshesOfOneNameInSeveralFilesAreEachFilesOwn) {
  namespace fs = std::filesystem;
  const fs::path folder = file("meshes");
  const auto write = [&](const char* name, const std::string& text) {
    fs::create_directories((folder / name).parent_path());
    write_file_atomically(folder / name, text);
  };
  // A cube of edge 2 h, turned outwards.
  const auto cube = [](double h) {
    std::string text;
    for (const double x : {-h, h})
      for (const double y : {-h, h})
        for (const double z : {-h, h}) text += format("v {} {} {}\n", x, y, z);
    return text +
           "f 1 2 4\nf 1 4 3\nf 5 7 8\nf 5 8 6\nf 1 5 6\nf 1 6 2\nf 3 4 8\nf 3 8 7\nf 1 3 7\nf 1 7 5\nf 2 6 8\nf 2 8 "
           "4\n";
  };
  const std::string body =
      "<asset><mesh name='part' file='part.obj'/></asset><worldbody><body name='b'><freejoint/>"
      "<geom type='mesh' mesh='part' density='1000'/></body></worldbody>";
  write("a/meshes/part.obj", cube(0.1));
  write("a/scene.xml", "<mujoco><compiler meshdir='meshes'/><include file='parts/body.xml'/></mujoco>");
  write("a/parts/body.xml", "<mujoco><include file='parts/deep/body.xml'/></mujoco>");
  write("a/parts/deep/body.xml", "<mujoco>" + body + "</mujoco>");
  write("b/part.obj", cube(0.2));
  write("b/scene.xml", "<mujoco>" + body + "</mujoco>");
  write("u/meshes/part.obj", cube(0.3));
  write("u/robot.urdf",
        "<robot name='u'><link name='base'><inertial><mass value='5'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' "
        "iyz='0'/></inertial><collision><geometry><mesh filename='meshes/part.obj'/></geometry></collision></link>"
        "</robot>");
  Scene scene(options());
  const Entity a = scene.add_entity(Mjcf{(folder / "a/scene.xml").string()}, "a"),
               b = scene.add_entity(Mjcf{.file = (folder / "b/scene.xml").string(), .pose = Pose{{2, 0, 0}}}, "b"),
               u = scene.add_entity(Urdf{.file = (folder / "u/robot.urdf").string(), .pose = {{4, 0, 0}}}, "u");
  scene.build(1);
  EXPECT_NEAR(a.mass(), 8, 1e-4);  // vertices are floats
  EXPECT_NEAR(b.mass(), 64, 1e-4);
  EXPECT_EQ(scene.info().parts.meshes, 3);
  EXPECT_EQ(u.geoms().size(), 1u);
  fs::remove_all(folder);
}

TEST_P(SceneApi, AMeshAndATerrainAreEntities) {
  const auto path = file("obj");
  write_file_atomically(path, "v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  Scene scene(options());
  Entity hill = scene.add_entity(Terrain{.rows = 3,
                                         .cols = 3,
                                         .heights = std::vector<float>{0, 0, 0, 0, 1, 0, 0, 0, 0},
                                         .size = {4, 4},
                                         .height = 0.2},
                                 "hill");
  Entity part =
      scene.add_entity(Mesh{.file = path.string(), .scale = {2, 2, 2}, .shape = {.pose = {{0.5, 0.5, 0.6}}}}, "part");
  scene.build(2);
  EXPECT_NEAR(part.mass(), 1000 * 0.4 * 0.4 * 0.4 / 6, 0.05);
  for (int i = 0; i < 400; ++i) scene.step();
  EXPECT_GT(part.get_pos({1})[2], 0.0f);
  EXPECT_GE(hill.get_contacts(1).size(), 1u);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, EveryKindOfEntityMayBeAddedSeveralTimes) {
  const auto path = file("stl.obj");
  write_file_atomically(path, "v 0 0 0\nv 0.2 0 0\nv 0 0.2 0\nv 0 0 0.2\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
  const std::string hinge =
      "<mujoco><worldbody><body name='arm'><joint name='j'/><geom size='0.1' pos='0.2 0 0'/></body></worldbody>"
      "<actuator><motor name='m' joint='j'/></actuator><sensor><jointpos name='s' joint='j'/></sensor></mujoco>";
  const auto at = [](double x, double y) { return ShapeOptions{.pose = {{x, y, 3}}}; };
  Scene scene(options());
  std::vector<Entity> list;
  // Thrice each, in rows along x; the third of a kind is larger.
  for (int k = 0; k < 3; ++k) {
    const double x = 3 * k, size = k == 2 ? 0.2 : 0.1;
    const auto name = [&](const char* kind) { return format("{}{}", kind, k); };
    list.push_back(scene.add_entity(Mjcf{.file = "", .xml = hinge, .pose = Pose{{x, 0, 3}}}, name("mjcf")));
    list.push_back(scene.add_entity(Urdf{.file = kModels + "two_link.urdf", .pose = {{x, 3, 3}}}, name("urdf")));
    list.push_back(scene.add_entity(Plane{.pose = {{0, 0, -1.0 - k}}}, name("plane")));
    list.push_back(scene.add_entity(Box{{2 * size, 2 * size, 2 * size}, at(x, 6)}, name("box")));
    list.push_back(scene.add_entity(Sphere{size, at(x, 9)}, name("sphere")));
    list.push_back(scene.add_entity(Capsule{size, 0.3, at(x, 12)}, name("capsule")));
    list.push_back(scene.add_entity(Cylinder{size, 0.3, at(x, 15)}, name("cylinder")));
    list.push_back(scene.add_entity(Ellipsoid{{size, size, 2 * size}, at(x, 18)}, name("ellipsoid")));
    list.push_back(scene.add_entity(
        Mesh{.file = path.string(), .scale = {10 * size, 10 * size, 10 * size}, .shape = at(x, 21)}, name("mesh")));
    const float top = static_cast<float>(k + 1);
    list.push_back(scene.add_entity(
        Terrain{.rows = 2, .cols = 2, .heights = {0, 0, 0, top}, .size = {2, 2}, .height = size, .pose = {{x, 24, 0}}},
        name("terrain")));
  }
  scene.build(2);
  constexpr std::size_t kKinds = 10;
  for (std::size_t i = 0; i < list.size(); ++i) {
    Entity& e = list[i];
    SCOPED_TRACE(e.name());
    EXPECT_EQ(scene.entity(e.name()).geoms().size(), e.geoms().size());
    const std::size_t kind = i % kKinds;
    EXPECT_EQ(e.geoms().size(), 1u);
    EXPECT_EQ(e.dofs().size(), kind == 0 ? 1u : kind == 1 ? 7u : kind == 2 || kind == 9 ? 0u : 6u);
    // Nothing is shared: each has its own place, the third of a kind its own size.
    for (std::size_t other = 0; other < i; ++other) {
      for (std::int32_t g : list[other].geoms()) EXPECT_NE(g, e.geoms()[0]);
    }
    if (kind >= 3 && kind != 9) {
      EXPECT_FLOAT_EQ(e.get_pos({1})[0], 3 * static_cast<float>(i / kKinds));
      const double ratio = e.mass() / list[kind].mass();
      if (i / kKinds < 2) {
        EXPECT_NEAR(ratio, 1, 1e-9);
      } else {
        EXPECT_GT(ratio, 2);
      }
    }
  }
  // Dofs, controls and sensors of the copies are their own.
  list[kKinds].control_dofs_force(std::vector<float>{0.5f}, {}, {1});
  scene.step();
  EXPECT_NE(list[kKinds].get_dofs_velocity({}, {1}), list[kKinds].get_dofs_velocity({}, {0}));
  EXPECT_EQ(list[0].get_dofs_velocity({}, {1}), list[2 * kKinds].get_dofs_velocity({}, {1}));
  list[0].set_dofs_position(std::vector<float>{0.25f}, {}, {1});
  EXPECT_FLOAT_EQ(scene.get_sensor("mjcf0/s", {1})[0], 0.25f);
  EXPECT_LT(std::abs(scene.get_sensor("mjcf2/s", {1})[0]), 0.01f);
  std::filesystem::remove(path);
}

TEST_P(SceneApi, PartsOfLinksDofsAndEnvironmentsAreThoseOfTheWhole) {
  Scene scene(options());
  scene.add_entity(Mjcf{.file = "", .xml = kRover}, "rover");
  scene.build(3);
  std::vector<float> velocity;
  for (int i = 0; i < 3 * scene.info().nv; ++i) velocity.push_back(std::sin(1.3f * static_cast<float>(i)));
  scene.set_qvel(velocity);
  for (int i = 0; i < 20; ++i) scene.step();
  // Neither in order nor all of them, and one twice.
  const std::vector<std::int32_t> envs{2, 0, 2}, links{3, 1}, dofs{6, 2, 11};
  const auto expect_part = [&](const std::vector<float>& some, const std::vector<float>& whole,
                               const std::vector<std::int32_t>& items, std::size_t count, std::size_t components) {
    ASSERT_EQ(whole.size(), 3 * count * components);
    ASSERT_EQ(some.size(), envs.size() * items.size() * components);
    std::size_t k = 0;
    for (std::int32_t e : envs) {
      for (std::int32_t i : items) {
        for (std::size_t c = 0; c < components; ++c) {
          EXPECT_EQ(some[k++],
                    whole[(static_cast<std::size_t>(e) * count + static_cast<std::size_t>(i)) * components + c]);
        }
      }
    }
  };
  const std::size_t nlink = scene.info().links.size(), nv = static_cast<std::size_t>(scene.info().nv);
  expect_part(scene.get_links_pos(links, envs), scene.get_links_pos(), links, nlink, 3);
  expect_part(scene.get_links_quat(links, envs), scene.get_links_quat(), links, nlink, 4);
  expect_part(scene.get_links_vel(links, envs), scene.get_links_vel(), links, nlink, 3);
  expect_part(scene.get_links_ang(links, envs), scene.get_links_ang(), links, nlink, 3);
  expect_part(scene.get_dofs_position(dofs, envs), scene.get_dofs_position(), dofs, nv, 1);
  expect_part(scene.get_dofs_velocity(dofs, envs), scene.get_dofs_velocity(), dofs, nv, 1);
  expect_part(scene.get_sensor("where", envs), scene.get_sensor("where"), {0}, 1, 3);
  // And what is written to a part leaves the rest alone.
  std::vector<float> before = scene.get_dofs_velocity();
  scene.set_dofs_velocity(std::vector<float>{7, 8}, {11, 6}, {1});
  before[nv + 11] = 7, before[nv + 6] = 8;
  EXPECT_EQ(scene.get_dofs_velocity(), before);
}

TEST(SceneModelFile, KeepsTheEntitiesOfItsScene) {
  const auto path = std::filesystem::temp_directory_path() / format("cohort_api_{}.cohort", getpid());
  SceneOptions o;
  Scene scene(o);
  scene.add_entity(Plane{.pose = {{0, 0, -3}}}, "floor");
  scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 1, 0}}}, "arm");
  scene.add_camera({.name = "wall", .pos = {1, 2, 3}, .fov = 60});
  scene.build(2);
  scene.save_model(path);
  Scene loaded(o);
  loaded.add_camera({.name = "hand"});
  loaded.build_from_file(path, 2);
  ASSERT_EQ(loaded.cameras().size(), 2u);
  EXPECT_EQ(loaded.cameras()[0].name, "hand");
  EXPECT_EQ(loaded.cameras()[1].name, "wall");
  EXPECT_EQ(loaded.cameras()[1].pos, (std::array<double, 3>{1, 2, 3}));
  EXPECT_EQ(loaded.cameras()[1].fov, 60);
  Scene clash(o);
  clash.add_camera({.name = "wall"});
  EXPECT_NE(message_of([&] { clash.build_from_file(path, 2); }).find("`wall`"), std::string::npos);
  EXPECT_FALSE(clash.built());
  Entity arm = loaded.entity("arm");
  EXPECT_EQ(arm.dofs().size(), 2u);
  arm.set_dofs_position(std::vector<float>{0.4f}, arm.dofs_of_joint("elbow"));
  scene.entity("arm").set_dofs_position(std::vector<float>{0.4f}, {1});
  for (int i = 0; i < 20; ++i) scene.step(), loaded.step();
  EXPECT_EQ(scene.get_qpos(), loaded.get_qpos());
  EXPECT_EQ(arm.get_links_vel(), scene.entity("arm").get_links_vel());
  EXPECT_NE(message_of([&] { loaded.save_model(path); }).find("copy that file"), std::string::npos);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace cohort::sim
