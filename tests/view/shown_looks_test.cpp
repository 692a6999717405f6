// What environments have of their own to be seen, as pages get it.
#include "view/shown_looks.h"

#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "core/real_at.h"
#include "sim/host/looks.h"
#include "view/document.h"
#include "view/pose_track.h"
#include "view/scene_document.h"

namespace cohort::view {
namespace {

class ShownLooksTest : public testing::Test {
 protected:
  ShownLooksTest() {
    scene_.add_entity(sim::Mjcf{.file = "", .xml = R"(<mujoco><worldbody>
      <camera name="front" pos="0 -2 1" euler="80 0 0"/><light pos="0 0 3"/>
      <body pos="0 0 1" euler="10 20 30"><freejoint/>
        <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0" euler="0 40 0" rgba="0.5 0.25 1 1" mass="1"/></body>
      </worldbody></mujoco>)"});
    scene_.build(3);
  }
  void paint(std::int64_t env, double red) { set_real_at(scene_.looks().values(sim::Look::kGeomRgba), env, 0, red); }
  sim::Scene scene_;
};

TEST_F(ShownLooksTest, OnlyEnvironmentsThatLookOtherwiseAreTold) {
  ShownLooks looks(scene_, {0, 2});
  EXPECT_TRUE(looks.changed().empty()) << "all look as the model does";
  paint(2, 0.75);
  const std::vector<OwnLook> first = looks.changed();
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(first[1].env, 1u) << "the place among those that are shown";
  EXPECT_EQ(first[1].geoms[10], 0.75f);
  EXPECT_EQ(first[0].geoms[10], 0.5f);
  EXPECT_TRUE(looks.changed().empty());
  paint(1, 0.125);
  EXPECT_TRUE(looks.changed().empty()) << "environment 1 is not shown";
  set_real_at(scene_.looks().values(sim::Look::kCameraFovy), 0, 0, 77);
  const std::vector<OwnLook> then = looks.changed();
  ASSERT_FALSE(then.empty());
  EXPECT_EQ(parse_json<nlohmann::json>(then[0].cameras)[0].at("fovy"), 77);
  EXPECT_EQ(looks.all().size(), 2u);
}

TEST_F(ShownLooksTest, WhatIsNotChangedIsAsTheScenesDocumentHasIt) {
  ShownLooks looks(scene_, {0});
  paint(0, 0.5);  // the model's
  const std::vector<OwnLook> own = looks.all();
  ASSERT_EQ(own.size(), 1u);
  const std::vector<std::int32_t> envs{0};
  const test::ReadDocument doc(scene_document(scene_, envs));
  const nlohmann::json& geoms = doc.text.at("geoms");
  ASSERT_EQ(own[0].geoms.size(), OwnLook::kGeomFloats * geoms.size());
  for (std::size_t i = 0; i < geoms.size(); ++i) {
    std::size_t at = OwnLook::kGeomFloats * i;
    for (const char* part : {"pos", "quat", "size", "rgba"}) {
      double sign = 1;
      if (part == std::string("quat") && geoms[i].at(part)[0].get<double>() < 0) sign = -1;
      for (const nlohmann::json& x : geoms[i].at(part))
        EXPECT_NEAR(sign * x.get<double>(), static_cast<double>(own[0].geoms[at++]), 1e-6) << part;
    }
  }
  EXPECT_EQ(parse_json<nlohmann::json>(own[0].lights), doc.text.at("lights"));
  EXPECT_EQ(parse_json<nlohmann::json>(own[0].cameras), doc.text.at("cameras"));
}

TEST_F(ShownLooksTest, ATrackSaysFromWhenOnAnEnvironmentLooksHow) {
  PoseTrack track(scene_, {0, 1}, 30);
  track.add(0);
  paint(1, 0.25);
  track.add(1);
  paint(1, 0.75);
  track.add(2);
  const test::ReadDocument doc(track.bytes());
  std::vector<std::pair<double, float>> reds;
  for (const nlohmann::json& look : doc.text.at("looks"))
    if (look.at("env") == 1) reds.emplace_back(look.at("time"), doc.array<float>(look.at("geoms"))[10]);
  EXPECT_EQ(reds, (std::vector<std::pair<double, float>>{{1, 0.25f}, {2, 0.75f}}));
}

}  // namespace
}  // namespace cohort::view
