#include "tasks/push_t/push_t_expert.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "core/error.h"
#include "tasks/push_t/push_t_path.h"

namespace cohort::tasks {
namespace {

constexpr double kErrorFloor = 3;         // px: below, the coverage is as good as done
constexpr double kLeastGain = 0.98;       // a plan must leave less than this share of the error
constexpr double kTravelPerStep = 15;     // px that the agent moves in a control step on its way to a push, about
constexpr double kDetour = 100;           // px, the way around the block, about
constexpr int kSettleSteps = 5;           // after a push's last target: the agent, 0.2 s behind, comes to rest there
constexpr double kSettled = 0.4;          // px from the last target that end a push sooner
constexpr double kArrivedDistance = 2.5;  // px
constexpr double kArrivedSpeed = 15;      // px/s
constexpr int kLongestApproach = 80;      // control steps before another plan is made
constexpr double kBlockMoved = 2;         // px that make a plan obsolete
constexpr double kGlideMargin = 1;        // px between rim and block while gliding
constexpr double kReach = 60;             // px, the farthest target on the way

Point2 plus(Point2 a, Point2 b, double factor = 1) {
  return {a.x + factor * b.x, a.y + factor * b.y};
}

double dot(Point2 a, Point2 b) {
  return a.x * b.x + a.y * b.y;
}

Point2 rotated(Point2 p, double angle) {
  const double c = std::cos(angle), s = std::sin(angle);
  return {c * p.x - s * p.y, s * p.x + c * p.y};
}

/// A place to push, in the T's frame.
struct EdgePoint {
  Point2 point, outward;
};

/// Edge points that the agent can touch: not those in the corners between bar and stem, where it meets another edge
/// first. `phase` in (0, 1) moves them along their edges.
std::vector<EdgePoint> edge_points(double spacing, double clearance, double phase) {
  std::vector<EdgePoint> points;
  const auto& outline = push_t_outline();
  for (std::size_t i = 0; i < outline.size(); ++i) {
    const Point2 from = outline[i], to = outline[(i + 1) % outline.size()];
    const double length = distance(from, to);
    const Point2 along = {(to.x - from.x) / length, (to.y - from.y) / length};
    const Point2 outward = {along.y, -along.x};  // the outline runs counter-clockwise
    // An odd number: at half phase one lies in the middle, where a push through the centre of gravity is.
    const int count = static_cast<int>(length / spacing) | 1;
    for (int k = 0; k < count; ++k) {
      const Point2 point = plus(from, along, length * (k + phase) / count);
      bool reachable = true;
      for (const double gap : {0.0, clearance / 2, clearance}) {
        const Point2 agent = plus(point, outward, kPushTAgentRadius + gap);
        reachable = reachable && distance_to_t(PushTPose{}, agent) >= kPushTAgentRadius + gap - 1e-6;
      }
      if (reachable) points.push_back({point, outward});
    }
  }
  return points;
}

/// A push in the world.
struct Push {
  Point2 start;       ///< of the agent
  Point2 direction;   ///< unit
  double travel = 0;  ///< px of the agent
};

Point2 push_target(const Push& push, double speed, int step) {
  return plus(push.start, push.direction, std::min(speed * (step + 1), push.travel));
}

/// How far one can go from a point inside the world before leaving it.
double way_to_border(Point2 from, Point2 direction) {
  double way = std::numeric_limits<double>::infinity();
  for (const auto& [position, slope] : {std::pair(from.x, direction.x), std::pair(from.y, direction.y)}) {
    if (slope > 1e-9) way = std::min(way, (kPushTWorld - position) / slope);
    if (slope < -1e-9) way = std::min(way, -position / slope);
  }
  return way;
}

/// What a push leads to.
struct Outcome {
  Push first;  ///< push of the sequence that leads here
  PushTPose block;
  Point2 agent;
  double error = 0;  ///< px
  double steps = 0;  ///< control steps since the plan's beginning, about
  double value = 0;  ///< to be small
};

/// Whether the agent, at a place and speed, can be drawn to `target` without its rim coming nearer to the block than
/// the margin, or than it is now.
bool glides_clear(const PushTSituation& now, Point2 target) {
  constexpr int kHorizon = 60;  // physics steps: six time constants
  const double allowed = std::min(kPushTAgentRadius + kGlideMargin, distance_to_t(now.block, now.agent) - 0.02);
  Point2 p = now.agent, v = now.agent_velocity;
  for (int i = 0; i < kHorizon; ++i) {
    v.x += (kPushTStiffness * (target.x - p.x) - kPushTDamping * v.x) * kPushTTimestep;
    v.y += (kPushTStiffness * (target.y - p.y) - kPushTDamping * v.y) * kPushTTimestep;
    p = plus(p, v, kPushTTimestep);
    if (distance_to_t(now.block, p) < allowed) return false;
  }
  return true;
}

double clamp_to_world(double x) {
  return std::clamp(x, 0.0, kPushTWorld);
}

}  // namespace

double push_t_error(const PushTPose& pose) {
  double sum = 0;
  for (const Point2 corner : push_t_outline()) {
    const double d = distance(to_world(pose, corner), to_world(kPushTGoal, corner));
    sum += d * d;
  }
  return std::sqrt(sum / static_cast<double>(push_t_outline().size()));
}

struct PushTExpert::Impl {
  explicit Impl(const PushTExpertSettings& wanted) : settings(wanted) {}

  PushTExpertSettings settings;
  PushT simulator;
  std::optional<Push> push;  ///< under way
  PushTPose planned_for;     ///< the block when it was planned
  bool pushing = false;      ///< else on the way to its start
  int step = 0;              ///< of the present phase

  double value(double error, double steps) const {
    return std::log(error + kErrorFloor) + settings.step_weight * steps;
  }

  /// Simulates a push against an edge point and appends what it leads to when it is stopped at its best place, and
  /// after a few lengths.
  void simulate(const Outcome& from, const EdgePoint& edge, bool first, std::vector<Outcome>& outcomes) {
    const Point2 outward = rotated(edge.outward, from.block.angle);
    Push trial;
    trial.start = plus(to_world(from.block, edge.point), outward, kPushTAgentRadius + settings.clearance);
    trial.direction = {-outward.x, -outward.y};
    if (trial.start.x < 0 || trial.start.y < 0 || trial.start.x > kPushTWorld || trial.start.y > kPushTWorld) return;
    trial.travel = std::min(settings.longest_push, way_to_border(trial.start, trial.direction));
    if (trial.travel <= settings.clearance) return;

    const double way = approach_length(from, trial.start);
    Outcome best, now;
    best.error = std::numeric_limits<double>::infinity();
    double next_length = settings.clearance + 25;
    simulator.place({trial.start, {}, from.block});
    const int steps = static_cast<int>(std::ceil(trial.travel / settings.push_speed)) + kSettleSteps;
    for (int i = 0; i < steps * kPushTSubsteps; ++i) {
      const Point2 target = push_target(trial, settings.push_speed, i / kPushTSubsteps);
      simulator.substep({target.x, target.y});
      const PushTSituation reached = simulator.situation();
      const double travel = dot(plus(reached.agent, trial.start, -1), trial.direction);
      if (travel <= settings.clearance) continue;
      now.first = from.first;
      if (first) {
        now.first = trial;
        now.first.travel = travel;
      }
      now.block = reached.block;
      now.agent = reached.agent;
      now.error = push_t_error(now.block);
      now.steps = from.steps + way / kTravelPerStep + travel / settings.push_speed + kSettleSteps;
      now.value = value(now.error, now.steps);
      if (now.error < best.error) best = now;
      if (travel >= next_length) {
        outcomes.push_back(now);
        next_length += 40;
      }
      if (now.error > 1.5 * std::max(best.error, from.error) + 60) break;
    }
    // One that never gained is no result: it ended where it began, or later.
    if (best.error < from.error) outcomes.push_back(best);
  }

  /// Estimate of the agent's way to a push: straight, or a detour where the block lies between.
  static double approach_length(const Outcome& from, Point2 start) {
    const double straight = distance(from.agent, start);
    constexpr int kSamples = 12;
    for (int i = 1; i < kSamples; ++i) {
      const Point2 p = plus(from.agent, plus(start, from.agent, -1), static_cast<double>(i) / kSamples);
      if (distance_to_t(from.block, p) < kPushTAgentRadius - 1) return straight + kDetour;
    }
    return straight;
  }

  /// What sequences of pushes against these edge points lead to.
  std::vector<Outcome> outcomes(const Outcome& root, const std::vector<EdgePoint>& edges) {
    std::vector<Outcome> all, level = {root};
    for (int depth = 0; depth < settings.depth; ++depth) {
      std::vector<Outcome> reached;
      for (const Outcome& from : level)
        for (const EdgePoint& edge : edges) simulate(from, edge, depth == 0, reached);
      std::stable_sort(reached.begin(), reached.end(),
                       [](const Outcome& a, const Outcome& b) { return a.value < b.value; });
      all.insert(all.end(), reached.begin(), reached.end());
      if (reached.size() > static_cast<std::size_t>(settings.beam))
        reached.resize(static_cast<std::size_t>(settings.beam));
      level.swap(reached);
    }
    return all;
  }

  /// The first push of the best sequence that brings the block nearer and whose start can be reached: by value. Edge
  /// points between the usual ones are tried where these have none, so that the same situation gets the same push. Else
  /// the first push of the sequence that leaves the least error. Nothing where no start can be reached.
  std::optional<Push> plan(const PushTSituation& now) {
    Outcome root;
    root.block = now.block;
    root.agent = now.agent;
    root.error = push_t_error(now.block);
    std::vector<Outcome> vain;
    for (const double phase : {0.5, 0.25, 0.75}) {
      std::vector<Outcome> gaining;
      for (const Outcome& o : outcomes(root, edge_points(settings.spacing, settings.clearance, phase)))
        (o.error < kLeastGain * root.error ? gaining : vain).push_back(o);
      std::stable_sort(gaining.begin(), gaining.end(),
                       [](const Outcome& a, const Outcome& b) { return a.value < b.value; });
      if (const auto found = first_reachable(now, gaining)) return found;
    }
    std::stable_sort(vain.begin(), vain.end(), [](const Outcome& a, const Outcome& b) { return a.error < b.error; });
    return first_reachable(now, vain);
  }

  /// Many sequences share a first push: each start is tried once.
  static std::optional<Push> first_reachable(const PushTSituation& now, const std::vector<Outcome>& sorted) {
    std::vector<Point2> unreachable;
    for (const Outcome& outcome : sorted) {
      const Point2 start = outcome.first.start;
      const bool tried = std::any_of(unreachable.begin(), unreachable.end(),
                                     [&](Point2 p) { return p.x == start.x && p.y == start.y; });
      if (tried) continue;
      if (!path_around_t(now.block, now.agent, start).empty()) return outcome.first;
      unreachable.push_back(start);
    }
    return std::nullopt;
  }

  bool block_moved(const PushTPose& block) const {
    double moved = 0;
    for (const Point2 corner : push_t_outline())
      moved = std::max(moved, distance(to_world(block, corner), to_world(planned_for, corner)));
    return moved > kBlockMoved;
  }

  /// The farthest point of the way to the push's start to which the agent can be drawn safely.
  PushTAction approach(const PushTSituation& now) const {
    const std::vector<Point2> path = path_around_t(now.block, now.agent, push->start);
    std::vector<Point2> targets;  // every few px along the way
    double length = 0;
    Point2 last = now.agent;
    for (const Point2 point : path) {
      constexpr double kStride = 4;
      const double piece = distance(last, point);
      for (double done = kStride; done < piece; done += kStride)
        targets.push_back(plus(last, plus(point, last, -1), done / piece));
      targets.push_back(point);
      length += piece;
      last = point;
      if (length > kReach) break;
    }
    for (auto target = targets.rbegin(); target != targets.rend(); ++target)
      if (glides_clear(now, *target)) return {clamp_to_world(target->x), clamp_to_world(target->y)};
    // Nowhere is safe: straight away from the block, along the gradient of the distance.
    constexpr double kProbe = 0.5, kRetreat = 12;
    const auto slope = [&](Point2 d) {
      return distance_to_t(now.block, plus(now.agent, d, kProbe)) -
             distance_to_t(now.block, plus(now.agent, d, -kProbe));
    };
    const Point2 away = {slope({1, 0}), slope({0, 1})};
    const double size = std::max(std::hypot(away.x, away.y), 1e-9);
    return {clamp_to_world(now.agent.x + kRetreat * away.x / size),
            clamp_to_world(now.agent.y + kRetreat * away.y / size)};
  }
};

PushTExpert::PushTExpert(const PushTExpertSettings& settings) {
  COHORT_THROW_UNLESS(settings.clearance > 0 && settings.push_speed > 0 && settings.spacing > 0 &&
                          settings.longest_push > settings.clearance && settings.beam >= 1 && settings.depth >= 1,
                      "Push-T's planner needs clearance, push speed and spacing above 0, pushes longer than the "
                      "clearance, and beam and depth of at least 1; they are {}, {}, {}, {}, {} and {}",
                      settings.clearance, settings.push_speed, settings.spacing, settings.longest_push, settings.beam,
                      settings.depth);
  impl_ = std::make_unique<Impl>(settings);
}
PushTExpert::~PushTExpert() = default;
PushTExpert::PushTExpert(PushTExpert&&) noexcept = default;
PushTExpert& PushTExpert::operator=(PushTExpert&&) noexcept = default;

void PushTExpert::restart() {
  impl_->push.reset();
  impl_->pushing = false;
  impl_->step = 0;
}

PushTAction PushTExpert::act(const PushTSituation& now) {
  Impl& self = *impl_;
  if (self.push && self.pushing) {
    const int ramp = static_cast<int>(std::ceil(self.push->travel / self.settings.push_speed));
    const Point2 end = plus(self.push->start, self.push->direction, self.push->travel);
    const bool settled = self.step >= ramp && distance(now.agent, end) < kSettled;
    if (settled || self.step >= ramp + kSettleSteps) self.push.reset();
  } else if (self.push && (self.step >= kLongestApproach || self.block_moved(now.block))) {
    self.push.reset();
  }
  if (!self.push) {
    self.push = self.plan(now);
    self.planned_for = now.block;
    self.pushing = false;
    self.step = 0;
    // No start can be reached: the agent stays.
    if (!self.push) return {clamp_to_world(now.agent.x), clamp_to_world(now.agent.y)};
  }
  if (!self.pushing && distance(now.agent, self.push->start) < kArrivedDistance &&
      std::hypot(now.agent_velocity.x, now.agent_velocity.y) < kArrivedSpeed) {
    self.pushing = true;
    self.step = 0;
  }
  const int step = self.step++;
  if (!self.pushing) return self.approach(now);
  const Point2 target = push_target(*self.push, self.settings.push_speed, step);
  return {clamp_to_world(target.x), clamp_to_world(target.y)};
}

}  // namespace cohort::tasks
