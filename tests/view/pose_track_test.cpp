// Poses in small numbers stay where they were.
#include "view/pose_track.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <random>

#include <gtest/gtest.h>

#include "view/document.h"
#include "view/page.h"
#include "view/scene_document.h"

namespace cohort::view {
namespace {

TEST(PackedPoses, ARotationIsKeptToATenThousandth) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  for (int i = 0; i < 2000; ++i) {
    std::array<double, 4> q;
    double square = 0;
    for (double& x : q) x = normal(random), square += x * x;
    for (double& x : q) x /= std::sqrt(square);
    if (i < 4) q = {0, 0, 0, 0}, q[static_cast<std::size_t>(i)] = i % 2 == 0 ? 1 : -1;
    const std::array<double, 4> back = unpack_quaternion(pack_quaternion(q));
    double along = 0;
    for (std::size_t k = 0; k < 4; ++k) along += q[k] * back[k];
    EXPECT_LT(2 * std::acos(std::min(1.0, std::abs(along))), 1.5e-4);  // rad
  }
}

TEST(PackedPoses, PositionsThatAreNoNumbersDoNotSpoilTheOthers) {
  const std::vector<float> pos{0, 0, 0, NAN, INFINITY, 1, 2, 4, 8}, quat{1, 0, 0, 0, NAN, 0, 0, 0, 0, 0, 0, 1};
  const PackedPoses packed = pack_poses(pos, quat);
  EXPECT_EQ(packed.high, (std::array<double, 3>{2, 4, 8}));
  ASSERT_EQ(packed.values.size(), 18u);
  for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(packed.values[12 + k], 65535);
}

class Track : public testing::Test {
 protected:
  Track() {
    scene_.add_entity(sim::Mjcf{COHORT_SOURCE_DIR "/tests/sim/models/walker.xml"});
    scene_.build(2);
  }
  sim::Scene scene_;
};

TEST_F(Track, FramesAreAsManyAsTheTimeHasOfThem) {
  PoseTrack track(scene_, {0, 1}, 30);
  const double dt = scene_.info().timestep;
  const int steps = static_cast<int>(std::lround(2 / dt));
  track.add(0);
  for (int i = 1; i <= steps; ++i) scene_.step(), track.add(i * dt, {{"height", {1.0f * static_cast<float>(i), 2}}});
  EXPECT_NEAR(static_cast<double>(track.frames()), 61, 1);
  const test::ReadDocument doc(track.bytes());
  const auto frames = doc.text.at("frames").get<std::size_t>(), links = doc.text.at("links").size();
  EXPECT_EQ(doc.array<std::uint16_t>(doc.text.at("values")).size(), 6 * frames * links * 2);
  EXPECT_EQ(doc.array<float>(doc.text.at("curves")[0].at("values")).size(), 2 * frames);
}

TEST_F(Track, ALongRunKeepsItsWholeLengthWithFewerFrames) {
  PoseTrack track(scene_, {0}, 30, 50);
  for (int i = 0; i <= 3000; ++i) track.add(i / 30.0);
  EXPECT_LE(track.frames(), 50u);
  const test::ReadDocument doc(track.bytes());
  const auto time = doc.array<float>(doc.text.at("time"));
  EXPECT_EQ(time.front(), 0.0f);
  EXPECT_GT(time.back(), 94.0f);
}

TEST(PoseTrack, TenSecondsOfAHumanoidFitIntoFiveMegabytes) {
  std::vector<std::string> models{COHORT_SOURCE_DIR "/tests/sim/models/biped.xml"};
  if (const char* g1 = std::getenv("COHORT_G1")) models.emplace_back(g1);  // MJCF of Unitree's G1, with meshes of 19 MB
  for (const std::string& model : models) {
    sim::Scene scene;
    scene.add_entity(sim::Mjcf{model});
    scene.build(1);
    const double timestep = scene.info().timestep;
    PoseTrack track(scene, {0}, 30);
    const std::vector<std::int32_t> envs{0};
    const std::string document = scene_document(scene, envs);
    const auto steps = static_cast<int>(10 / timestep);
    for (int i = 0; i <= steps; ++i) {
      track.add(timestep * i);
      scene.set_random_ctrl(i / 50);  // so that limbs move all the time
      scene.step();
    }
    const std::string page = offline_page({.title = model, .scene = document, .episodes = {{"", track.bytes()}}});
    std::printf("%s: %zu frames, %.2f MB\n", model.c_str(), track.frames(), static_cast<double>(page.size()) / 1e6);
    EXPECT_GE(track.frames(), 299u);
    EXPECT_LE(page.size(), 5'000'000u) << model;
  }
}

}  // namespace
}  // namespace cohort::view
