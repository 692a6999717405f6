#include "sim/host/scene.h"

#include <atomic>
#include <cmath>
#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/files.h"
#include "core/message_of.h"
#include "sim/host/compile.h"
#include "sim/host/model_file.h"
#include "sim/models.h"

namespace cohort::sim {
namespace {

SceneOptions mujoco(int threads = 1) {
  SceneOptions o;
  o.engine = EngineKind::kMujoco;
  o.threads = threads;
  o.seed = 7;
  return o;
}

void run(Scene& scene, int steps, std::int64_t first = 0) {
  for (int s = 0; s < steps; ++s) {
    scene.set_random_ctrl(first + s);
    scene.step();
  }
}

TEST(Scene, SeveralEntitiesKeepTheirNamesLinksAndDofs) {
  Scene scene(mujoco());
  scene.add_entity(Plane{}, "floor");
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"}, "arm");
  Entity copy = scene.add_entity(Mjcf{.file = kModels + "arm.xml", .pose = Pose{{0, 2, 0}}}, "copy");
  Entity robot = scene.add_entity(Urdf{.file = kModels + "two_link.urdf", .pose = {{0, -2, 1}}}, "robot");
  Entity fixed = scene.add_entity(Urdf{.file = kModels + "two_link.urdf", .pose = {{3, 0, 1}}, .fixed = true}, "fixed");
  Entity ball = scene.add_entity(Sphere{0.1, {.pose = {{1, 1, 3}}, .mass = 0.5}}, "ball");
  scene.add_entity(Box{{1, 1, 0.1}, {.pose = {{5, 5, 0}}, .fixed = true}}, "table");
  scene.add_entity(Capsule{0.1, 0.4, {.pose = {{2, 2, 1}}}}, "capsule");
  scene.add_entity(Cylinder{0.1, 0.4, {.pose = {{2, 3, 1}}}}, "cylinder");
  scene.add_entity(Ellipsoid{{0.1, 0.2, 0.3}, {.pose = {{2, 4, 1}}}}, "ellipsoid");
  std::vector<float> heights{0, 1, 0, 1, 2, 1, 0, 1, 0};
  scene.add_entity(Terrain{.rows = 3, .cols = 3, .heights = heights, .pose = {{20, 20, 0}}}, "hill");
  scene.add_camera({.name = "view"});
  scene.build(2);
  EXPECT_EQ(arm.dofs().size(), 2u);
  EXPECT_EQ(copy.dofs().size(), 2u);
  EXPECT_EQ(robot.dofs().size(), 7u);  // free base and one hinge
  EXPECT_EQ(fixed.dofs().size(), 1u);
  EXPECT_EQ(ball.dofs().size(), 6u);
  EXPECT_EQ(scene.info().links[static_cast<std::size_t>(ball.links()[0])].mass, 0.5);
  EXPECT_NO_THROW(scene.info().joint("copy/shoulder"));
  EXPECT_NO_THROW(scene.info().joint("shoulder"));
  EXPECT_EQ(scene.info().integrator, "Euler");
  const std::vector<float> pos = ball.get_links_pos({}, {1});
  EXPECT_FLOAT_EQ(pos[0], 1);
  EXPECT_FLOAT_EQ(pos[2], 3);
  for (int i = 0; i < 50; ++i) scene.step();
  EXPECT_LT(ball.get_links_pos({}, {1})[2], 2.96f);
}

TEST(Scene, TheSameBitsForAnyNumberOfThreadsAndAnySplitByGlobalIds) {
  const auto simulate = [](int threads, int n, std::int64_t first) {
    SceneOptions o = mujoco(threads);
    o.first_environment = first;
    Scene scene(o);
    Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
    scene.build(n);
    run(scene, 100);
    return arm.get_dofs_position();
  };
  const std::vector<float> whole = simulate(1, 12, 0);
  EXPECT_TRUE(same_bits(whole, simulate(3, 12, 0)));
  std::vector<float> halves = simulate(2, 5, 0);
  const std::vector<float> rest = simulate(1, 7, 5);
  halves.insert(halves.end(), rest.begin(), rest.end());
  EXPECT_TRUE(same_bits(whole, halves));
  EXPECT_NE(whole[0], whole[2]);  // environments do get different controls
}

TEST(Scene, ResetsOnlyTheEnvironmentsItIsTold) {
  Scene scene(mujoco());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(4);
  run(scene, 20);
  const std::vector<float> before = arm.get_dofs_position();
  scene.reset(Indices::from_mask(std::vector<std::uint8_t>{0, 1, 0, 0}));
  scene.reset_to_keyframe("bent", {3});
  const std::vector<float> after = arm.get_dofs_position();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_EQ(after[2], 0);
  EXPECT_EQ(after[4], before[4]);
  EXPECT_EQ(after[6], 0.5f);
  EXPECT_EQ(after[7], -0.7f);
  EXPECT_EQ(arm.get_dofs_velocity({}, {3})[1], 0.2f);
}

TEST(Scene, PositionTargetsUseTheModelsActuatorOrTheGivenGains) {
  Scene scene(mujoco());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  const std::vector<float> target{0.4f, -0.3f};
  EXPECT_NE(message_of([&] { arm.control_dofs_position(target); }).find("elbow"), std::string::npos);
  arm.set_dofs_kp(std::vector<float>{60.0f}, {1});
  arm.set_dofs_kv(std::vector<float>{3.0f}, {1});
  arm.control_dofs_position(target);
  for (int i = 0; i < 2000; ++i) scene.step();
  // At rest the servo holds against gravity: kp (target - q) = torque.
  const std::vector<float> q = arm.get_dofs_position({}, {0});
  const ArrayView force = scene.view(Field::kQfrcApplied);
  const double held = static_cast<double*>(force.data)[force.strides[1]];
  EXPECT_NEAR(held, 60.0 * (-0.3 - q[1]), 1e-3);
  EXPECT_LT(std::abs(arm.get_dofs_velocity({}, {0})[0]), 1e-3);
}

TEST(Scene, AWholeScenesStateContinuesWithTheSameBits) {
  const std::filesystem::path path = std::filesystem::temp_directory_path() / format("cohort_scene_{}.state", getpid());
  Scene scene(mujoco());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(3);
  arm.set_dofs_kp(std::vector<float>{20.0f}, {1});
  arm.control_dofs_position(std::vector<float>{0.2f}, {1});
  run(scene, 30);
  scene.save_state(path);
  run(scene, 30, 30);
  const std::vector<float> expected = arm.get_dofs_position();

  Scene other(mujoco());
  Entity same = other.add_entity(Mjcf{kModels + "arm.xml"});
  other.build(3);
  other.load_state(path);
  EXPECT_EQ(other.step_count(), 30);
  run(other, 30, 30);
  EXPECT_TRUE(same_bits(same.get_dofs_position(), expected));

  Scene larger(mujoco());
  larger.add_entity(Mjcf{kModels + "arm.xml"});
  larger.build(4);
  EXPECT_NE(message_of([&] { larger.load_state(path); }).find("another scene"), std::string::npos);
  std::string cut = read_file(path);
  cut.resize(cut.size() - 5);
  write_file_atomically(path, cut);
  EXPECT_NE(message_of([&] { other.load_state(path); }).find("cut off"), std::string::npos);
  std::filesystem::remove(path);
}

TEST(Scene, ANanStaysInItsEnvironment) {
  const auto simulate = [](bool poison) {
    Scene scene(mujoco());
    Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
    scene.build(3);
    run(scene, 10);
    if (poison) arm.set_dofs_velocity(std::vector<float>{NAN, 0}, {}, {1});
    run(scene, 5, 10);
    if (poison) {
      // Put right, it stands still until it is reset.
      arm.set_dofs_velocity(std::vector<float>{0, 0}, {}, {1});
      const std::vector<float> kept = arm.get_dofs_position({}, {1});
      run(scene, 2, 15);
      EXPECT_TRUE(same_bits(arm.get_dofs_position({}, {1}), kept));
      run(scene, 3, 17);
    } else {
      run(scene, 5, 15);
    }
    std::vector<float> q = arm.get_dofs_position({}, {0, 2});
    const auto status = scene.view(Field::kStatus).span<std::int32_t>();
    q.push_back(static_cast<float>(status[0] | status[2]));
    EXPECT_EQ(status[1], poison ? kStatusBadState : kStatusOk);
    return q;
  };
  EXPECT_TRUE(same_bits(simulate(true), simulate(false)));
}

TEST(Scene, ParametersDifferBetweenEnvironments) {
  Scene scene(mujoco());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  std::vector<float> mass = scene.get_parameter(Parameter::kLinkMass, {1});
  mass[2] *= 3;
  scene.set_parameter(Parameter::kLinkMass, mass, {1});
  for (int i = 0; i < 50; ++i) scene.step();
  const std::vector<float> q = scene.get_dofs_position();
  EXPECT_GT(std::abs(q[0] - q[2]), 1e-4);
}

TEST(Scene, AModelThatAsksForPgsGetsItsSolutionByNewtonsMethodWithALine) {
  // A box that slides, so that friction decides; MuJoCo's PGS goes on until it has converged.
  const Mjcf model{.file = "",
                   .xml =
                       "<mujoco><option solver='PGS' iterations='2000' tolerance='1e-12'/><worldbody>"
                       "<geom type='plane' size='2 2 1'/><body pos='0 0 0.1'><freejoint/><geom type='box' "
                       "size='0.1 0.1 0.1'/></body></worldbody></mujoco>"};
  Scene ours, theirs(mujoco());
  for (Scene* scene : {&ours, &theirs}) {
    scene->add_entity(model);
    scene->build(1);
    scene->set_dofs_velocity(std::vector<float>{0.5f, 0.2f, 0, 0, 0, 1});
    for (int i = 0; i < 50; ++i) scene->step();
  }
  const std::vector<float> a = ours.get_dofs_velocity(), b = theirs.get_dofs_velocity();
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 2e-3) << i;
  EXPECT_TRUE(theirs.warnings().empty());
  ASSERT_EQ(ours.warnings().size(), 1u);
  EXPECT_NE(ours.warnings()[0].find("the solver PGS"), std::string::npos) << ours.warnings()[0];
}

TEST(Scene, SensorsAreThoseOfThePresentState) {
  Scene scene(mujoco());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  scene.build(2);
  arm.set_dofs_position(std::vector<float>{0.5f}, {0});
  EXPECT_FLOAT_EQ(scene.get_sensor("shoulder_angle", {1})[0], 0.5f);
  EXPECT_NEAR(scene.get_sensor("tip_pos", {1})[2], 1 - 0.7 * std::sin(0.5), 1e-6);
}

TEST(Scene, FreeJointRotationsRoundTripAsRotationVectors) {
  Scene scene(mujoco());
  Entity ball = scene.add_entity(Sphere{0.1});
  scene.build(1);
  const std::vector<float> pose{1, 2, 3, 0.3f, -0.8f, 0.5f};
  ball.set_dofs_position(pose);
  const std::vector<float> back = ball.get_dofs_position();
  // One by one the components are set in turn, each keeping the others: the last state is the whole vector.
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(back[i], pose[i], 1e-6);
}

TEST(SceneFaults, MessagesNameFileCauseAndRemedy) {
  const auto build = [](const Morph& morph) {
    return message_of([&] {
      Scene scene(mujoco());
      scene.add_entity(morph, "thing");
      scene.build(1);
    });
  };
  EXPECT_NE(build(Mjcf{"/nowhere/robot.xml"}).find("/nowhere/robot.xml"), std::string::npos);
  EXPECT_NE(
      build(Mjcf{.file = "", .xml = "<mujoco><worldbody><body><joint/></body></worldbody></mujoco>"}).find("mass"),
      std::string::npos);
  EXPECT_NE(build(Mjcf{.file = "", .xml = "<mujoco><oops/></mujoco>"}).find("oops"), std::string::npos);
  EXPECT_NE(build(Urdf{.file = "", .xml = "<robot name='r'><link name='a'/><link name='b'/></robot>"}), "");
  EXPECT_NE(build(Mesh{.file = "/nowhere/part.stl"}).find("/nowhere/part.stl"), std::string::npos);
  EXPECT_NE(build(Sphere{-1}).find("thing"), std::string::npos);
  EXPECT_NE(build(Terrain{.rows = 2, .cols = 2, .heights = {1}}).find("heights"), std::string::npos);
}

TEST(SceneFaults, AFileOfAnotherFormatIsCalledByItsName) {
  const TemporaryFolder folder("cohort-other-formats");
  const auto says = [&](const char* name, const std::string& content, const std::string& words) {
    const std::string file = (folder.path() / name).string();
    write_file_atomically(file, content);
    const std::string message = message_of([&] {
      Scene scene(mujoco());
      scene.add_entity(file.ends_with(".urdf") ? Morph(Urdf{.file = file}) : Morph(Mjcf{file}));
      scene.build(1);
    });
    EXPECT_NE(message.find(words), std::string::npos) << message;
  };
  for (const char* name : {"robot.usd", "robot.xml", "robot.urdf"}) {
    says(name, "#usda 1.0\n(\n  defaultPrim = \"robot\"\n)\n", "is USD, which is not read");
    says(name, std::string("PXR-USDC\0\1", 10), "is USD, which is not read");
  }
  says("part.stl", "solid part\n", "is a mesh, of which a model is made");
  says("part.glb", std::string("glTF\2\0\0\0", 8), "is a mesh, of which a model is made");
  says("robot.urdf", "<sdf version='1.7'><model name='m'/></sdf>", "its root element is <sdf>");
  says("robot.urdf", "<mujoco/>", "this is MJCF, whose file ends in .xml");
  says("robot.xml", "<sdf version='1.7'><model name='m'/></sdf>", "other formats (SDF, say)");
  says("robot.xml", "<mujoco><worldbody>", "was cut short");
}

TEST(SceneFaults, AHangOrAFloodOfTheParserIsAnError) {
  // A billion boxes by nested replicates: the compiler runs out of memory or of time, this process does not.
  SceneOptions o = mujoco();
  o.compile_seconds = 1;
  o.compile_memory = 1.0 * (1 << 30);
  Scene scene(o);
  scene.add_entity(Mjcf{.file = "",
                        .xml = "<mujoco><worldbody><replicate count='1000' offset='1 0 0'><replicate count='1000' "
                               "offset='0 1 0'><replicate count='1000' offset='0 0 1'><geom size='1'/>"
                               "</replicate></replicate></replicate></worldbody></mujoco>"});
  EXPECT_NE(message_of([&] { scene.build(1); }), "");
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they reserve terabytes: no limit then
TEST(SceneFaults, WhatTheProcessHasMappedIsNoneOfTheCompilersMemory) {
  // As a CUDA context or LibTorch does.
  constexpr std::size_t kReserved = std::size_t{10} << 30;
  void* reserved = mmap(nullptr, kReserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(reserved, MAP_FAILED);
  Scene scene(mujoco());
  scene.add_entity(Mjcf{kModels + "arm.xml"});
  EXPECT_EQ(message_of([&] { scene.build(1); }), "");
  munmap(reserved, kReserved);
}
#endif

/// A folder of this process that goes with the test.
class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / format("cohort_scene_{}", getpid())) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path_ / name).parent_path());
    write_file_atomically(path_ / name, text);
    return (path_ / name).string();
  }
  std::string pipe(const std::string& name) const {
    EXPECT_EQ(mkfifo((path_ / name).c_str(), 0600), 0);
    return (path_ / name).string();
  }
  std::filesystem::path path_;
};

TEST(SceneFaults, AFileThatGivesNothingEndsTheCompiler) {
  const Folder folder;
  folder.pipe("pipe.xml");
  SceneOptions o = mujoco();
  o.compile_seconds = 0.3;
  Scene scene(o);
  scene.add_entity(Mjcf{folder.write("m.xml", "<mujoco><include file='pipe.xml'/></mujoco>")});
  const std::string text = message_of([&] { scene.build(1); });
  EXPECT_NE(text.find("m.xml"), std::string::npos) << text;
  EXPECT_NE(text.find("a pipe"), std::string::npos) << text;
}

TEST(SceneFaults, APointerInPlaceOfAnIncludedFileIsNamed) {
  const Folder folder;
  folder.write("parts/robot.xml", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  folder.write("arms.xml", "<mujocoinclude><include file='parts/robot.xml'/></mujocoinclude>");
  Scene scene(mujoco());
  scene.add_entity(Mjcf{folder.write("m.xml", "<mujoco><include file='arms.xml'/></mujoco>")});
  const std::string text = message_of([&] { scene.build(1); });
  EXPECT_NE(text.find("parts/robot.xml` is a Git LFS pointer"), std::string::npos) << text;
}

TEST(SceneFaults, TheCompilerEndsWithItsParent) {
  const Folder folder;
  folder.pipe("pipe.xml");
  const std::string model = folder.write("m.xml", "<mujoco><include file='pipe.xml'/></mujoco>");
  prctl(PR_SET_CHILD_SUBREAPER, 1);  // orphans become this process' children
  const pid_t parent = fork();
  ASSERT_GE(parent, 0);
  if (parent == 0) {
    const EntityDeclaration e{"m", Mjcf{model}};
    message_of([&] { compile_scene(std::span(&e, 1), {}, {}); });
    _exit(0);
  }
  const std::string children = format("/proc/{}/task/{}/children", parent, parent);
  while (read_file(children).empty()) {
  }
  kill(parent, SIGKILL);
  ASSERT_EQ(waitpid(parent, nullptr, 0), parent);
  int status = 0;
  EXPECT_GT(waitpid(-1, &status, 0), 0);  // of the compiler, which would wait for the pipe for ever
  // Killed with its parent, or before it asked for that: then it has seen that the parent is gone.
  EXPECT_TRUE((WIFEXITED(status) && WEXITSTATUS(status) == 3) || (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL));
  prctl(PR_SET_CHILD_SUBREAPER, 0);
}

TEST(SceneFaults, AKilledCompilerIsNotOutOfTime) {
  const Folder folder;
  folder.pipe("pipe.xml");
  const EntityDeclaration e{"m", Mjcf{folder.write("m.xml", "<mujoco><include file='pipe.xml'/></mujoco>")}};
  std::string text;
  std::atomic<pid_t> caller{0};
  std::thread compiling([&] {
    caller = gettid();
    text = message_of([&] { compile_scene(std::span(&e, 1), {}, {}); });
  });
  std::string child;
  while (child.empty()) {
    if (caller != 0) child = read_file(format("/proc/self/task/{}/children", caller.load()));
  }
  kill(static_cast<pid_t>(std::stol(child)), SIGKILL);
  compiling.join();
  EXPECT_NE(text.find("was killed"), std::string::npos) << text;
}

TEST(SceneFaults, AModelsKindIsToldByItsContent) {
  const Folder folder;
  const std::string robot = read_file(kModels + "two_link.urdf");
  EXPECT_TRUE(is_urdf(folder.write("ARM.URDF", robot)));
  EXPECT_TRUE(
      is_urdf(folder.write("arm.xml", "\xEF\xBB\xBF<?xml version='1.0'?><!-- <mujoco> --><!DOCTYPE robot>\n" + robot)));
  EXPECT_FALSE(is_urdf(folder.write("m.urdf", "<mujoco/>")));
  EXPECT_FALSE(is_urdf(folder.write("empty.xml", "")));
  EXPECT_TRUE(is_urdf("/nowhere/ARM.Urdf"));
  const auto build = [](const Morph& morph) {
    return message_of([&] {
      Scene scene(mujoco());
      scene.add_entity(morph, "thing");
      scene.build(1);
    });
  };
  EXPECT_NE(build(Mjcf{folder.write("arm.xml", robot)}).find("add it as a Urdf"), std::string::npos);
  EXPECT_NE(build(Mjcf{.file = "", .xml = robot}).find("add it as a Urdf"), std::string::npos);
  EXPECT_NE(build(Urdf{folder.write("arm.xacro", "<robot name='r'><xacro:arm/></robot>")}).find("xacro"),
            std::string::npos);
  EXPECT_NE(build(Mjcf{folder.path_.string()}).find("is a folder"), std::string::npos);
  EXPECT_NE(build(Urdf{folder.path_.string()}).find("is a folder"), std::string::npos);
  const std::string light =
      build(Urdf{.file = "",
                 .xml = "<robot name='r'><link name='base'/><link name='a'><inertial>"
                        "<mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' ixz='0' "
                        "iyz='0'/></inertial></link><joint name='j' "
                        "type='continuous'><parent link='base'/><child link='a'/></joint></robot>"});
  EXPECT_NE(light.find("--fixed-base"), std::string::npos) << light;
  // A link that moves without a mass is not helped by a base that stands.
  const std::string tool = build(
      Urdf{.file = "",
           .xml = "<robot name='r'><link name='base'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' "
                  "ixy='0' ixz='0' iyz='0'/></inertial></link><link name='tool'/><joint name='j' type='continuous'>"
                  "<parent link='base'/><child link='tool'/></joint></robot>"});
  EXPECT_EQ(tool.find("--fixed-base"), std::string::npos) << tool;
  EXPECT_NE(tool.find("make its joint fixed"), std::string::npos) << tool;
}

TEST(SceneFaults, MeshesOfARosPackageAreFoundAboveTheirUrdf) {
  const Folder folder;
  const auto robot = [](const char* mesh) {
    return format(
        "<robot name='r'><link name='base'><inertial><mass value='1'/><inertia ixx='1' iyy='1' izz='1' ixy='0' "
        "ixz='0' iyz='0'/></inertial><collision><geometry><mesh filename='{}'/></geometry></collision></link></robot>",
        mesh);
  };
  const std::string rock = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n";
  folder.write("arm_description/meshes/rock.obj", rock);
  folder.write("arm_description/urdf/near.obj", rock);
  const auto build = [&](const char* mesh) {
    return message_of([&] {
      Scene scene(mujoco());
      scene.add_entity(Urdf{folder.write("arm_description/urdf/arm.urdf", robot(mesh))});
      scene.build(1);
    });
  };
  EXPECT_EQ(build("package://arm_description/meshes/rock.obj"), "");
  EXPECT_EQ(build("package://near.obj"), "");
  const std::string missing = build("package://other/meshes/rock.obj");
  EXPECT_NE(missing.find("package://other/meshes/rock.obj"), std::string::npos) << missing;
  EXPECT_NE(missing.find("relative to the URDF file"), std::string::npos) << missing;
}

/// MuJoCo reads them as numbers.
TEST(SceneFaults, NumbersThatAreNoneAreNamedWithTheirElement) {
  const auto build = [](EngineKind engine, const std::string& options, const char* floor, const char* joint,
                        const char* ball) {
    SceneOptions o;
    o.engine = engine;
    return message_of([&] {
      Scene scene(o);
      scene.add_entity(
          Mjcf{.file = "",
               .xml = format("<mujoco><option {}/><worldbody><geom name='floor' type='plane' size='5 5 1' {}/><body "
                             "pos='0 0 1'><joint name='hinge' {}/><geom name='ball' size='0.1' {}/></body></worldbody>"
                             "</mujoco>",
                             options, floor, joint, ball)});
      scene.build(1);
    });
  };
  for (const EngineKind engine : {EngineKind::kBatched, EngineKind::kMujoco}) {
    const auto says = [&](const std::string& text, const std::string& words) {
      EXPECT_NE(text.find(words), std::string::npos) << text << "\nwanted: " << words;
    };
    for (const char* field : {"margin", "gap", "pos", "solimp", "friction"}) {
      const std::string attribute = format("{}='nan 0 0'", field);
      const bool one = std::string(field) == "margin" || std::string(field) == "gap";
      says(build(engine, "", one ? format("{}='nan'", field).c_str() : attribute.c_str(), "", ""),
           format("geom `floor`: its {} is nan", field));
    }
    says(build(engine, "impratio='nan'", "", "", ""), "option impratio is nan");
    says(build(engine, "wind='0 inf 0'", "", "", ""), "option wind is inf");
    says(build(engine, "", "", "frictionloss='nan'", ""), "joint `hinge`: its frictionloss is nan");
    says(build(engine, "", "", "solimplimit='nan 1 1' range='-1 1'", ""), "joint `hinge`: its solimp is nan");
    says(build(engine, "", "friction='inf 0 0'", "", ""), "geom `floor`: its friction is inf");
    EXPECT_EQ(build(engine, "", "", "range='-inf inf' limited='true'", ""), "");
  }
  const std::string heavy = build(EngineKind::kBatched, "", "", "", "mass='1e300'");
  EXPECT_NE(heavy.find("beyond single precision: body #1: its mass is 1e+300"), std::string::npos) << heavy;
  EXPECT_NE(heavy.find("--engine mujoco"), std::string::npos) << heavy;
  EXPECT_EQ(build(EngineKind::kMujoco, "", "", "", "mass='1e300'"), "");
}

TEST(SceneFaults, NumbersThatNoStepOrMemoryHoldsAreNamed) {
  const auto build = [](const std::string& inside) {
    return message_of([&] {
      Scene scene(mujoco());
      scene.add_entity(
          Mjcf{.file = "", .xml = "<mujoco>" + inside + "<worldbody><geom size='1'/></worldbody></mujoco>"});
      scene.build(1);
    });
  };
  EXPECT_NE(build("<option timestep='1e-50'/>").find("timestep"), std::string::npos);
  const std::string field = build("<asset><hfield name='dunes' nrow='65537' ncol='65537' size='1 1 1 1'/></asset>");
  EXPECT_NE(field.find("dunes"), std::string::npos) << field;
  // MuJoCo's parser crashes over these two; the second stands in a file of its own.
  const auto path = std::filesystem::temp_directory_path() / format("cohort_terrain_{}.xml", getpid());
  write_file_atomically(
      path, "<mujoco><asset><hfield size='1 1 1 1' ncol=\"30000\" name = 'sea' nrow='30000'/></asset></mujoco>");
  for (const std::string& inside :
       {std::string("<!-- <hfield> --><asset><hfield name='sea' nrow='100000' ncol='100000' size='1 1 1 1'/></asset>"),
        "<include file='" + path.string() + "'/>"}) {
    const std::string sea = build(inside);
    EXPECT_NE(sea.find("height field `sea` has "), std::string::npos) << sea;
    EXPECT_NE(sea.find("0000 x "), std::string::npos) << sea;
    EXPECT_EQ(sea.find("crashed"), std::string::npos) << sea;
  }
  std::filesystem::remove(path);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  const std::string arena = build("<size memory='15G'/>");
  EXPECT_NE(arena.find("8.0 GiB"), std::string::npos) << arena;
#endif
}

TEST(Scene, TheEngineMujocoRunsItsOwnPlugins) {
  Scene scene(mujoco());
  scene.add_entity(
      Mjcf{.file = "", .xml = R"(<mujoco><extension><plugin plugin="mujoco.sdf.torus"><instance name="ring">
    <config key="radius1" value="0.35"/><config key="radius2" value="0.15"/></instance></plugin></extension>
    <asset><mesh name="ring"><plugin instance="ring"/></mesh></asset>
    <worldbody><body><freejoint/><geom type="sdf" mesh="ring"><plugin instance="ring"/></geom></body></worldbody></mujoco>)"});
  ASSERT_EQ(message_of([&] { scene.build(1); }), "");
  scene.step();
}

TEST(SceneFaults, WrongIndicesAndShapesAreNamed) {
  Scene scene(mujoco());
  Entity arm = scene.add_entity(Mjcf{kModels + "arm.xml"});
  EXPECT_NE(message_of([&] { scene.step(); }).find("build()"), std::string::npos);
  scene.build(2);
  EXPECT_NE(message_of([&] { scene.reset({2}); }).find("environment 2"), std::string::npos);
  EXPECT_NE(message_of([&] { arm.set_dofs_velocity(std::vector<float>{1}, {5}); }).find("dof 5"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.set_qpos(std::vector<float>(3)); }).find("3 values"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.reset_to_keyframe("bend"); }).find("bent"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.get_sensor("tip_post"); }).find("tip_pos"), std::string::npos);
  EXPECT_NE(message_of([&] { scene.add_entity(Plane{}); }).find("before build()"), std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
