#include "sim/host/inverse_kinematics.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "sim/host/kinematics.h"
#include "sim/host/scene.h"

namespace cohort::sim {
namespace {

/// Seven hinges as those of common arms have them, on a free base that stays where it is, and a second chain.
constexpr const char* kArm = R"(
<mujoco>
  <compiler angle="radian"/>
  <default><geom type="capsule" size="0.04" fromto="0 0 0 0 0 0.2"/><joint range="-2.6 2.6" limited="true"/></default>
  <worldbody>
    <body name="base" pos="0.1 0.2 0.3"><freejoint/><geom/>
      <body name="l1" pos="0 0 0.2"><joint name="j1" axis="0 0 1"/><geom/>
        <body name="l2" pos="0 0 0.2"><joint name="j2" axis="0 1 0"/><geom/>
          <body name="l3" pos="0 0 0.2"><joint name="j3" axis="0 0 1"/><geom/>
            <body name="l4" pos="0 0 0.2"><joint name="j4" axis="0 1 0"/><geom/>
              <body name="l5" pos="0 0 0.2"><joint name="j5" axis="0 0 1"/><geom/>
                <body name="l6" pos="0 0 0.2"><joint name="j6" axis="0 1 0"/><geom/>
                  <body name="hand" pos="0 0 0.1"><joint name="j7" axis="0 0 1"/><geom/></body>
                </body></body></body></body></body></body></body>
  </worldbody>
</mujoco>)";

class InverseKinematics : public ::testing::Test {
 protected:
  InverseKinematics() {
    scene_.add_entity(Mjcf{.file = "", .xml = kArm}, "arm");
    scene_.build(1);
    for (int d = 6; d < 13; ++d) dofs_.push_back(d);
    for (const double q : scene_.info().qpos0) start_.push_back(q);
    hand_ = scene_.info().link("hand");
  }
  /// A posture in the middle 80 % of the joints' ranges.
  std::vector<double> posture(std::uint64_t id) const {
    const RandomStream random(7, RandomPurpose::kTest, id, 0);
    std::vector<double> q = start_;
    for (std::size_t j = 7; j < q.size(); ++j) q[j] = 2.08 * (2.0 * static_cast<double>(random.uniform(j)) - 1.0);
    return q;
  }
  IkTarget reached_by(const std::vector<double>& q, const std::array<double, 3>& point = {}) const {
    const Kinematics::Pose pose = scene_.kinematics().at(q).link_pose(hand_);
    IkTarget target{.link = hand_, .point = point, .pos = pose.pos, .quat = pose.quat};
    for (std::size_t i = 0; i < 3; ++i)
      for (std::size_t k = 0; k < 3; ++k) (*target.pos)[i] += pose.rot[3 * i + k] * point[k];
    return target;
  }

  Scene scene_{{.engine = EngineKind::kMujoco}};
  std::vector<int> dofs_;
  std::vector<double> start_;
  int hand_ = 0;
};

TEST_F(InverseKinematics, FindsPosturesThatBringTheHandToReachablePoses) {
  const std::array<double, 3> tip{0.02, -0.03, 0.15};
  for (std::uint64_t id = 0; id < 20; ++id) {
    SCOPED_TRACE(id);
    const IkTarget wanted = reached_by(posture(id), tip);
    const IkResult found = inverse_kinematics(scene_.kinematics(), scene_.info(), start_, dofs_, {&wanted, 1}, {});
    ASSERT_TRUE(found.reached);
    const IkTarget at = reached_by(found.qpos, tip);
    double cosine = 0;
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR((*at.pos)[i], (*wanted.pos)[i], 5e-4);
    for (std::size_t i = 0; i < 4; ++i) cosine += (*at.quat)[i] * (*wanted.quat)[i];
    EXPECT_LT(2 * std::acos(std::min(1.0, std::abs(cosine))), 6e-3);
    for (std::size_t j = 0; j < found.qpos.size(); ++j) {
      if (j < 7) EXPECT_EQ(found.qpos[j], start_[j]) << "the base does not move";
      if (j >= 7) EXPECT_LE(std::abs(found.qpos[j]), 2.6) << "within its limits";
    }
    EXPECT_EQ(inverse_kinematics(scene_.kinematics(), scene_.info(), start_, dofs_, {&wanted, 1}, {}).qpos, found.qpos);
  }
}

TEST_F(InverseKinematics, OneAxisAlignedLeavesTheTurnAboutIt) {
  IkTarget wanted = reached_by(posture(3));
  wanted.rot_mask = {false, false, true};
  const IkResult found = inverse_kinematics(scene_.kinematics(), scene_.info(), start_, dofs_, {&wanted, 1}, {});
  ASSERT_TRUE(found.reached);
  const Kinematics::Pose is = scene_.kinematics().at(found.qpos).link_pose(hand_),
                         was = scene_.kinematics().at(posture(3)).link_pose(hand_);
  double along = 0, across = 0;
  for (std::size_t i = 0; i < 3; ++i)
    along += is.rot[3 * i + 2] * was.rot[3 * i + 2], across += is.rot[3 * i] * was.rot[3 * i];
  EXPECT_GT(along, std::cos(6e-3));
  EXPECT_LT(across, 0.999) << "the last joint has no reason to turn as the posture had it";
}

TEST_F(InverseKinematics, SaysWhatIsLeftOfAPoseOutOfReach) {
  const IkTarget far{.link = hand_, .pos = {{5, 0, 0}}};
  const IkResult found =
      inverse_kinematics(scene_.kinematics(), scene_.info(), start_, dofs_, {&far, 1}, {.max_samples = 3});
  EXPECT_FALSE(found.reached);
  EXPECT_GT(std::abs(found.error[0]), 3.0);
  EXPECT_EQ(found.error[3], 0.0);
}

TEST_F(InverseKinematics, RefusesWhatItCannotMove) {
  const IkTarget wanted{.link = hand_, .pos = {{0, 0, 1}}};
  const std::vector<int> base{0};
  EXPECT_NE(message_of([&] {
              inverse_kinematics(scene_.kinematics(), scene_.info(), start_, base, {&wanted, 1}, {});
            }).find("moves hinges and slides"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::sim
