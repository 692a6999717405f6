#include "tasks/libero/compose/placement.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/error.h"
#include "core/format.h"
#include "tasks/libero/compose/numpy_random.h"

namespace cohort::tasks::libero::compose {
namespace {

/// A thing that gets a place on the workspace.
struct Placing {
  const ComposedThing* thing;
  const Region* region;
};

const ComposedThing& thing_of(const ComposedScene& scene, const std::vector<std::string>& predicate) {
  const ComposedThing* thing = scene.thing(predicate[1]);
  COHORT_THROW_UNLESS(thing != nullptr, "the initial predicate ({}) is about {}, which is neither object nor fixture",
                      join(predicate, " "), predicate[1]);
  return *thing;
}

/// What is placed on the workspace, in the order of the draws; what stands on things or in them is not among it.
std::vector<Placing> placings(const ComposedScene& scene) {
  std::vector<Placing> all;
  for (const std::vector<std::string>& predicate : scene.problem.initial) {
    if (predicate[0] != "on" || predicate.size() != 3) continue;
    const Region* region = scene.problem.region(predicate[2]);
    if (region == nullptr || scene.thing(region->target) != nullptr) continue;
    COHORT_THROW_UNLESS(!region->ranges.empty(), "the region {} has no range, and {} shall stand in it", predicate[2],
                        predicate[1]);
    all.push_back({&thing_of(scene, predicate), region});
  }
  return all;
}

/// Joints that are drawn in each reset, once for each time that the environment has been composed.
int drawn_joints(const ComposedScene& scene) {
  int count = 0;
  for (const std::vector<std::string>& predicate : scene.problem.initial)
    for (const char* state : {"open", "close", "turnon", "turnoff"})
      count += predicate[0] == state && (scene.thing(predicate[1]) != nullptr || scene.site(predicate[1]) != nullptr);
  return count;
}

struct Placed {
  double x, y, z;
  const ComposedThing* thing;
};

bool overlaps(const Placed& a, const Placed& other) {
  return std::hypot(a.x - other.x, a.y - other.y) <= other.thing->radius + a.thing->radius &&
         a.z - other.z <= other.thing->top - a.thing->bottom;
}

/// One reset's places; nothing where there is no room for one.
std::optional<std::map<std::string, FixturePose>> draw_places(const ComposedScene& scene, NumpyRandom& random) {
  constexpr int kTries = 5000;
  constexpr double kAbove = 0.01;  // m: objects above the workspace
  const Arena& arena = *scene.arena;
  std::map<std::string, FixturePose> poses;
  std::vector<Placed> placed;
  for (const Placing& placing : placings(scene)) {
    const ComposedThing& thing = *placing.thing;
    const double inside = !thing.fixture && arena.whole_objects_inside ? thing.radius : 0;
    bool free = false;
    for (int attempt = 0; attempt < kTries && !free; ++attempt) {
      const auto& [x0, y0, x1, y1] =
          placing.region->ranges[random.below(static_cast<std::uint32_t>(placing.region->ranges.size()))];
      const double x = random.uniform(x0 + inside, x1 - inside) + arena.offset[0];
      const double y = random.uniform(y0 + inside, y1 - inside) + arena.offset[1];
      const double z = (thing.fixture ? arena.fixture_z : kAbove) + arena.offset[2] - thing.bottom;
      const Placed here{x, y, z, &thing};
      free = true;
      if (!thing.fixture)
        for (const Placed& other : placed) free = free && !overlaps(here, other);
      if (free) placed.push_back(here);
    }
    if (!free) return std::nullopt;
    if (!thing.fixture) {
      for (int i = 0; i < thing.rotations; ++i) random.uniform();
      continue;
    }
    const auto& [a, b] = placing.region->yaw;
    const double yaw = random.uniform(std::min(a, b), std::max(a, b));
    poses[thing.name] = {{placed.back().x, placed.back().y, placed.back().z},
                         {std::cos(yaw / 2), 0, 0, std::sin(yaw / 2)}};
  }
  return poses;
}

}  // namespace

std::map<std::string, FixturePose> place_fixtures(const ComposedScene& scene) {
  constexpr int kResets = 100, kArmJoints = 7;
  NumpyRandom random(0);
  const int joints = drawn_joints(scene);
  for (int reset = 1; reset <= kResets; ++reset) {
    for (int i = 0; i < kArmJoints; ++i) random.normal();
    for (int i = 0; i < joints * (reset + 1); ++i) random.uniform();
    if (const auto poses = draw_places(scene, random)) return *poses;
  }
  throw Error(format("no free places for the problem's things in {} resets", kResets));
}

}  // namespace cohort::tasks::libero::compose
