#include "tasks/push_t/push_t.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include <chipmunk/chipmunk.h>

#include "core/error.h"

namespace cohort::tasks {
namespace {

constexpr double kTwoPi = 6.28318530717958647692;

void require_finite(const char* what, std::initializer_list<double> values) {
  for (const double value : values)
    COHORT_THROW_UNLESS(std::isfinite(value), "Push-T: the {} holds {}, which is no finite number", what, value);
}

Point2 to_point(cpVect v) {
  return {v.x, v.y};
}

}  // namespace

const std::array<std::array<Point2, 4>, 2>& push_t_boxes() {
  using Box = std::array<Point2, 4>;
  static const std::array<Box, 2> boxes = {Box{{{-60, 30}, {60, 30}, {60, 0}, {-60, 0}}},
                                           Box{{{-15, 30}, {-15, 120}, {15, 120}, {15, 30}}}};
  return boxes;
}

const std::array<Point2, 8>& push_t_outline() {
  static const std::array<Point2, 8> outline = {
      {{-60, 0}, {60, 0}, {60, 30}, {15, 30}, {15, 120}, {-15, 120}, {-15, 30}, {-60, 30}}};
  return outline;
}

Point2 to_world(const PushTPose& pose, Point2 local) {
  const double c = std::cos(pose.angle), s = std::sin(pose.angle);
  return {pose.origin.x + c * local.x - s * local.y, pose.origin.y + s * local.x + c * local.y};
}

double push_t_coverage(const PushTPose& pose) {
  // Boxes of one T share an edge only: the area common to two Ts is the sum over pairs of boxes.
  double shared = 0, goal_area = 0;
  for (const auto& goal_box : push_t_boxes()) {
    std::array<Point2, 4> goal;
    for (std::size_t i = 0; i < 4; ++i) goal[i] = to_world(kPushTGoal, goal_box[i]);
    goal_area += std::abs(signed_area(goal));
    for (const auto& block_box : push_t_boxes()) {
      std::array<Point2, 4> block;
      for (std::size_t i = 0; i < 4; ++i) block[i] = to_world(pose, block_box[i]);
      shared += convex_intersection_area(goal, block);
    }
  }
  return shared / goal_area;
}

/// A Chipmunk space. Bodies and shapes are made and added in gym-pusht's order: the solver's result depends on it.
struct PushT::Impl {
  cpSpace* space = nullptr;
  cpBody* agent = nullptr;
  cpBody* block = nullptr;
  std::array<cpShape*, 7> shapes{};  // four walls, the agent, the block's two boxes

  Impl() {
    space = cpSpaceNew();
    cpSpaceSetGravity(space, cpvzero);
    cpSpaceSetDamping(space, 0);
    cpBody* ground = cpSpaceGetStaticBody(space);
    constexpr double kWalls[4][4] = {{5, 506, 5, 5}, {5, 5, 506, 5}, {506, 5, 506, 506}, {5, 506, 506, 506}};
    constexpr double kWallRadius = 2;
    for (std::size_t i = 0; i < 4; ++i)
      shapes[i] = cpSpaceAddShape(space, cpSegmentShapeNew(ground, cpv(kWalls[i][0], kWalls[i][1]),
                                                           cpv(kWalls[i][2], kWalls[i][3]), kWallRadius));
    agent = cpBodyNewKinematic();
    cpBodySetPosition(agent, cpv(256, 400));
    cpSpaceAddBody(space, agent);
    shapes[4] = cpSpaceAddShape(space, cpCircleShapeNew(agent, kPushTAgentRadius, cpvzero));
    add_block();
  }

  ~Impl() {
    for (cpShape* shape : shapes) {
      cpSpaceRemoveShape(space, shape);
      cpShapeFree(shape);
    }
    for (cpBody* body : {agent, block}) {
      cpSpaceRemoveBody(space, body);
      cpBodyFree(body);
    }
    cpSpaceFree(space);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void add_block() {
    constexpr double kMass = 1;
    std::array<std::array<cpVect, 4>, 2> corners;
    for (std::size_t b = 0; b < 2; ++b)
      for (std::size_t i = 0; i < 4; ++i) corners[b][i] = cpv(push_t_boxes()[b][i].x, push_t_boxes()[b][i].y);
    // gym-pusht counts the bar's moment of inertia twice, and the stem's not at all.
    const double bar = cpMomentForPoly(kMass, 4, corners[0].data(), cpvzero, 0);
    block = cpBodyNew(kMass, bar + bar);
    for (std::size_t b = 0; b < 2; ++b)
      shapes[5 + b] = cpPolyShapeNew(block, 4, corners[b].data(), cpTransformIdentity, 0);
    // The mean of the boxes' centres, though their areas differ.
    const cpVect c0 = cpShapeGetCenterOfGravity(shapes[5]), c1 = cpShapeGetCenterOfGravity(shapes[6]);
    cpBodySetCenterOfGravity(block, cpv((c0.x + c1.x) / 2, (c0.y + c1.y) / 2));
    cpBodySetPosition(block, cpv(256, 300));
    cpBodySetAngle(block, 0);
    cpSpaceAddBody(space, block);
    cpSpaceAddShape(space, shapes[5]);
    cpSpaceAddShape(space, shapes[6]);
  }
};

PushT::PushT() {
  reset(0);
}
PushT::~PushT() = default;
PushT::PushT(PushT&&) noexcept = default;
PushT& PushT::operator=(PushT&&) noexcept = default;

PushTState PushT::reset(std::uint32_t seed) {
  return reset_to(push_t_reset_state(seed));
}

PushTState PushT::reset_to(const PushTState& state) {
  require_finite("state", {state[0], state[1], state[2], state[3], state[4]});
  impl_ = std::make_unique<Impl>();
  cpBodySetPosition(impl_->agent, cpv(state[0], state[1]));
  cpBodySetPosition(impl_->block, cpv(state[2], state[3]));
  cpBodySetAngle(impl_->block, state[4]);
  cpSpaceStep(impl_->space, kPushTTimestep);
  return observation();
}

void PushT::place(const PushTSituation& s) {
  require_finite("situation", {s.agent.x, s.agent.y, s.agent_velocity.x, s.agent_velocity.y, s.block.origin.x,
                               s.block.origin.y, s.block.angle});
  impl_ = std::make_unique<Impl>();
  cpBodySetPosition(impl_->agent, cpv(s.agent.x, s.agent.y));
  cpBodySetVelocity(impl_->agent, cpv(s.agent_velocity.x, s.agent_velocity.y));
  cpBodySetAngle(impl_->block, s.block.angle);  // first: the position is that of the origin under this angle
  cpBodySetPosition(impl_->block, cpv(s.block.origin.x, s.block.origin.y));
}

void PushT::substep(const PushTAction& action) {
  const cpVect p = cpBodyGetPosition(impl_->agent), v = cpBodyGetVelocity(impl_->agent);
  const double ax = kPushTStiffness * (action[0] - p.x) + kPushTDamping * (0 - v.x);
  const double ay = kPushTStiffness * (action[1] - p.y) + kPushTDamping * (0 - v.y);
  cpBodySetVelocity(impl_->agent, cpv(v.x + ax * kPushTTimestep, v.y + ay * kPushTTimestep));
  cpSpaceStep(impl_->space, kPushTTimestep);
}

PushTStep PushT::step(const PushTAction& action) {
  require_finite("action", {action[0], action[1]});
  for (int i = 0; i < kPushTSubsteps; ++i) substep(action);
  PushTStep result;
  result.observation = observation();
  result.coverage = coverage();
  result.reward = std::clamp(result.coverage / kPushTSuccessCoverage, 0.0, 1.0);
  result.success = result.coverage > kPushTSuccessCoverage;
  return result;
}

PushTState PushT::observation() const {
  const PushTSituation now = situation();
  double angle = std::fmod(now.block.angle, kTwoPi);  // in [0, 2 pi), as Python's %
  if (angle < 0) angle += kTwoPi;
  return {now.agent.x, now.agent.y, now.block.origin.x, now.block.origin.y, angle};
}

PushTSituation PushT::situation() const {
  return {to_point(cpBodyGetPosition(impl_->agent)),
          to_point(cpBodyGetVelocity(impl_->agent)),
          {to_point(cpBodyGetPosition(impl_->block)), cpBodyGetAngle(impl_->block)}};
}

std::array<double, 16> PushT::keypoints() const {
  const PushTPose pose = situation().block;
  std::array<double, 16> out{};
  for (std::size_t b = 0; b < 2; ++b)
    for (std::size_t i = 0; i < 4; ++i) {
      // The corners as Chipmunk keeps them: its convex hull starts at another one than the boxes do.
      const Point2 p = to_world(pose, to_point(cpPolyShapeGetVert(impl_->shapes[5 + b], static_cast<int>(i))));
      out[8 * b + 2 * i] = p.x;
      out[8 * b + 2 * i + 1] = p.y;
    }
  return out;
}

double PushT::coverage() const {
  return push_t_coverage(situation().block);
}

}  // namespace cohort::tasks
