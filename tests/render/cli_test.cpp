// `cohort simulate --video` and `--picture` as programs.
#include <cstdlib>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "core/files.h"
#include "support/command.h"

namespace cohort {
namespace {

using test::run_command;

const std::string kShapes = COHORT_SOURCE_DIR "/tests/render/models/shapes.xml";

std::string simulate() {
  return std::string(std::getenv("COHORT_BIN")) + "/cohort simulate ";
}

TEST(SimulatePictures, AVideoOfAnyModelNeedsNoCamera) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string video = (folder.path() / "run.mp4").string(), picture = (folder.path() / "end.png").string();
  const auto r = run_command(simulate() +
                             COHORT_SOURCE_DIR
                             "/tests/sim/models/walker.xml --steps 100 --n-envs 3 --size "
                             "96x64 --video " +
                             video + " --picture " + picture);
  if (r.output.find("this build has no FFmpeg") != std::string::npos) GTEST_SKIP() << r.output;
  ASSERT_EQ(r.code, 0) << r.output;
  EXPECT_NE(r.output.find("192 x 128 in "), std::string::npos) << r.output;
  EXPECT_EQ(read_file(video).substr(4, 4), "ftyp");
  EXPECT_EQ(read_file(picture).substr(1, 3), "PNG");
}

TEST(SimulatePictures, EnvironmentsWithASpacingShareOnePicture) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string picture = (folder.path() / "end.png").string();
  const std::string command = simulate() + COHORT_SOURCE_DIR "/tests/sim/models/walker.xml --steps 1 --n-envs 3 ";
  const auto r = run_command(command + "--size 96x64 --env-spacing 2 1.5 --picture " + picture);
  ASSERT_EQ(r.code, 0) << r.output;
  const std::string png = read_file(picture);
  EXPECT_EQ(png.substr(16, 8), std::string("\0\0\0\x60\0\0\0\x40", 8)) << "one picture of 96 x 64";
  const auto mujoco = run_command(command + "--env-spacing 2 --renderer mujoco --picture " + picture);
  EXPECT_EQ(mujoco.code, 2);
  EXPECT_NE(mujoco.output.find("leave --renderer out"), std::string::npos) << mujoco.output;
  const auto alone = run_command(command + "--env-spacing 2");
  EXPECT_EQ(alone.code, 2);
  EXPECT_NE(alone.output.find("are for --video and --picture"), std::string::npos) << alone.output;
}

TEST(SimulatePictures, GroupsOfGeomsAreChosen) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string model = (folder.path() / "groups.xml").string();
  write_file_atomically(model, R"(<mujoco><worldbody><camera name="front" pos="0 -3 0" xyaxes="1 0 0 0 0 1"/>
      <geom type="sphere" size=".4" pos="-1 0 0" group="1"/><geom type="sphere" size=".4" pos="1 0 0" group="3"/>
      <body><joint/><geom type="sphere" size=".1" group="5"/></body></worldbody></mujoco>)");
  const auto picture = [&](const std::string& flags) {
    const std::string png = (folder.path() / "end.png").string();
    const auto r = run_command(simulate() + model + " --steps 1 --camera front --size 96x64 --picture " + png + flags);
    EXPECT_EQ(r.code, 0) << r.output;
    return read_file(png);
  };
  const std::string usual = picture("");
  EXPECT_EQ(picture(" --geom-groups 0,1,2"), usual) << "MuJoCo's own choice";
  EXPECT_EQ(picture(" --geom-groups 1"), usual);
  EXPECT_NE(picture(" --geom-groups 3"), usual);
  EXPECT_NE(picture(" --geom-groups 3"), picture(" --geom-groups 3,5"));
  const auto said = run_command(std::string(std::getenv("COHORT_BIN")) + "/cohort model " + model);
  EXPECT_NE(
      said.output.find("groups of geoms: 1 in 1, 1 in 3, 1 in 5; pictures show 0, 1 and 2, with --geom-groups 1,3,5"),
      std::string::npos)
      << said.output;
  for (const char* wrong : {"7", "-1", "0,", "0:3", "all", "03"}) {
    const auto r = run_command(simulate() + model + " --steps 1 --picture x.png --geom-groups=" + wrong);
    EXPECT_EQ(r.code, 2) << wrong;
    EXPECT_NE(r.output.find("0 to 5"), std::string::npos) << r.output;
  }
}

TEST(SimulatePictures, ACameraOfTheWorldIsMovedBackUntilItSeesAllEnvironments) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string picture = (folder.path() / "end.png").string();
  const std::string command = simulate() + kShapes + " --steps 1 --camera front --size 96x64 --picture " + picture +
                              " --env-spacing 4 --n-envs ";
  const auto many = run_command(command + "9");
  ASSERT_EQ(many.code, 0) << many.output;
  EXPECT_NE(many.output.find("camera front is moved back to see all 9 environments"), std::string::npos) << many.output;
}

TEST(SimulatePictures, WhatCannotBeDrawnIsRefusedAndNothingIsWritten) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string video = (folder.path() / "run.mp4").string();
  const auto camera = run_command(simulate() + kShapes + " --steps 1 --camera frunt --video " + video);
  EXPECT_EQ(camera.code, 1);
  EXPECT_NE(camera.output.find("is `front` meant?"), std::string::npos) << camera.output;
  const auto name = run_command(simulate() + kShapes + " --steps 1 --video " + folder.path().string() + "/run.gif");
  EXPECT_EQ(name.code, 2);
  EXPECT_NE(name.output.find("ends in .mp4"), std::string::npos) << name.output;
  const auto size = run_command(simulate() + kShapes + " --steps 1 --size 64 --video " + video);
  EXPECT_EQ(size.code, 2);
  EXPECT_NE(size.output.find("e.g. 640x480"), std::string::npos) << size.output;
  const auto alone = run_command(simulate() + kShapes + " --steps 1 --camera front");
  EXPECT_EQ(alone.code, 2);
  const auto place = run_command(simulate() + kShapes + " --steps 1 --video /proc/nowhere/run.mp4");
  EXPECT_NE(place.code, 0);
  EXPECT_NE(place.output.find("/proc/nowhere"), std::string::npos) << place.output;
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SimulatePictures, WithoutOpenGlTheMujocoRendererNamesPackagesAndVariables) {
  const TemporaryFolder folder("cohort-pictures");
  // A folder without drivers: EGL is there and has no device.
  const auto r = run_command("__EGL_VENDOR_LIBRARY_DIRS=" + folder.path().string() + " MUJOCO_GL=egl " + simulate() +
                             kShapes + " --steps 1 --renderer mujoco --picture " + folder.path().string() + "/a.png");
  EXPECT_EQ(r.code, 1) << r.output;
  for (const char* word : {"libegl1 and libgl1-mesa-dri, or libosmesa6", "MUJOCO_GL", "EGL_DEVICE_ID", "raycast"}) {
    EXPECT_NE(r.output.find(word), std::string::npos) << r.output;
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(SimulatePictures, ADeviceThatCannotDrawIsRefusedByName) {
  const TemporaryFolder folder("cohort-pictures");
  const std::string picture = (folder.path() / "end.png").string();
  const std::string command = simulate() + kShapes + " --steps 1 --size 32x32 --backend cpu ";
  const auto here = run_command(command + "--render-device cpu --picture " + picture);
  EXPECT_EQ(here.code, 0) << here.output;
  for (const auto& [options, why] :
       {std::pair{"--render-device cuda:99 --picture p.png", "the renderer raycast cannot draw on cuda:99: this "},
        std::pair{"--render-device tpu --picture p.png", "tpu"},
        std::pair{"--render-device cpu --renderer mujoco --picture p.png", "draws where OpenGL does"},
        std::pair{"--render-device cpu", "--render-device is for --video and --picture"}}) {
    const auto r = run_command(command + options);
    EXPECT_NE(r.code, 0) << options;
    EXPECT_NE(r.output.find(why), std::string::npos) << r.output;
  }
}

}  // namespace
}  // namespace cohort
