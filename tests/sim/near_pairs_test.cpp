// Which pairs may touch: no pair that touches is left out, and few others are looked at.
#include <algorithm>
#include <array>
#include <cmath>

#include <gtest/gtest.h>

#include "block.h"
#include "sim/kernels/collide/bounds.h"

namespace cohort::sim {
namespace {

using Point = std::array<double, 3>;

double dot(const Point& a, const Point& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
Point along(const Point& p, double s, const Point& a) {
  return {p[0] + s * a[0], p[1] + s * a[1], p[2] + s * a[2]};
}
double distance(const Point& a, const Point& b) {
  const Point d = along(a, -1, b);
  return std::sqrt(dot(d, d));
}
/// From p to the segment around c with the unit axis a and half length h.
double to_segment(const Point& p, const Point& c, const Point& a, double h) {
  return distance(p, along(c, std::clamp(dot(along(p, -1, c), a), -h, h), a));
}
/// Between two segments, the first around the origin: where both points are inside, or an end with the other segment.
double between_segments(const Point& a1, double h1, const Point& c2, const Point& a2, double h2) {
  const Point c1{};
  double least = 1e9;
  for (const double side : {-1.0, 1.0}) {
    least = std::min(least, to_segment(along(c1, side * h1, a1), c2, a2, h2));
    least = std::min(least, to_segment(along(c2, side * h2, a2), c1, a1, h1));
  }
  const double e = dot(a1, a2), u = dot(a1, c2), v = dot(a2, c2), det = 1 - e * e;
  if (det < 1e-9) return least;
  const double s1 = (u - e * v) / det, s2 = (e * u - v) / det;
  if (std::abs(s1) > h1 || std::abs(s2) > h2) return least;
  return std::min(least, distance(along(c1, s1, a1), along(c2, s2, a2)));
}

GeomRecord capsule(double radius, double half) {
  GeomRecord g{};
  g.shape = half > 0 ? kCapsule : kSphere;
  g.size[0] = static_cast<float>(radius), g.size[1] = static_cast<float>(half);
  g.radius = g.size[0] + g.size[1];
  return g;
}

TEST(NearPairs, RoundShapesAreFoundApartWhereTheyAreAndOnlyThere) {
  // Axes are units in single precision, and the sums have a few roundings of the sizes' order.
  constexpr double kRounding = 1e-6, kFound = 2e-5;  // of both bounding spheres' radii
  int touching = 0, apart = 0, found = 0;
  for (std::uint64_t sample = 0; sample < 60000; ++sample) {
    const RandomStream random(7, RandomPurpose::kTest, sample, 0);
    const auto uniform = [&](int k) { return static_cast<double>(random.uniform(static_cast<std::uint64_t>(k))); };
    const auto direction = [&](int k) {
      Point a;
      for (int i = 0; i < 3; ++i)
        a[static_cast<std::size_t>(i)] = static_cast<double>(random.normal(static_cast<std::uint64_t>(k + i)));
      const double length = std::sqrt(dot(a, a));
      for (double& x : a) x = static_cast<float>(x / length);
      return a;
    };
    // Of every length, down to spheres; parallel and nearly so, across, and one behind the other.
    const double scale = std::pow(10.0, 2 * uniform(20) - 1.5);
    const GeomRecord g1 = capsule(scale * (0.02 + uniform(21)), sample % 7 == 0 ? 0 : scale * 3 * uniform(22));
    const GeomRecord g2 = capsule(scale * (0.02 + uniform(23)), sample % 5 == 0 ? 0 : scale * 3 * uniform(24));
    const Point a1 = direction(30);
    Point a2 = direction(40), way = direction(50);
    if (sample % 4 == 0) a2 = a1;
    if (sample % 8 == 0) {
      for (std::size_t i = 0; i < 3; ++i)
        a2[i] = static_cast<float>(a2[i] + 1e-3 * (uniform(60 + static_cast<int>(i)) - 0.5));
    }
    if (sample % 9 == 0) way = a1;
    const float reach = static_cast<float>(sample % 3 == 0 ? 0.01 * scale : 0);
    const double far = uniform(70) * (g1.radius + g2.radius) * 1.1;
    float d[3], rot1[9] = {}, rot2[9] = {};
    Point c2;
    for (std::size_t i = 0; i < 3; ++i) {
      c2[i] = d[i] = static_cast<float>(far * way[i]);
      rot1[3 * i + 2] = g1.size[1] > 0 ? static_cast<float>(a1[i]) : 0.0f;
      rot2[3 * i + 2] = g2.size[1] > 0 ? static_cast<float>(a2[i]) : 0.0f;
    }
    const double gap = between_segments(a1, g1.size[1], c2, a2, g2.size[1]) - g1.size[0] - g2.size[0] - reach;
    const double size = static_cast<double>(g1.radius + g2.radius);
    const float touch = round_touch(g1, g2, reach);
    const bool near = round_near<ScalarLane>(g1.size[1], g2.size[1], touch * touch, rot1, rot2, d);
    if (gap < -kRounding * size) {
      ++touching;
      ASSERT_TRUE(near) << "sample " << sample << ", gap " << gap;
    } else if (gap > kFound * size) {
      ++apart;
      found += near ? 0 : 1;
    }
  }
  EXPECT_GT(touching, 10000);
  EXPECT_GT(apart, 10000);
  EXPECT_GT(found, 0.98 * apart);
}

TEST(NearPairs, BoxesAreFoundApartWhereTheyAreAndOnlyThere) {
  // MuJoCo's distance of two boxes is known to 1e-6; what is found apart has room for rounding, see boxes_near.
  constexpr double kKnown = 5e-6, kFound = 5e-5;  // of both bounding spheres' radii
  const mj::ModelPtr m =
      mj::load(test::compile_xml("<mujoco><worldbody><body><freejoint/><geom type='box' size='1 1 1'/></body>"
                                 "<body><freejoint/><geom type='box' size='1 1 1'/></body></worldbody></mujoco>"));
  const mj::DataPtr data(mj_makeData(m.get()));
  mj_forward(m.get(), data.get());
  int touching = 0, apart = 0, found = 0, out_of_sphere = 0;
  for (std::uint64_t sample = 0; sample < 20000; ++sample) {
    const RandomStream random(11, RandomPurpose::kTest, sample, 0);
    std::uint64_t drawn = 0;
    const auto uniform = [&] { return static_cast<double>(random.uniform(drawn++)); };
    const auto normal = [&] { return static_cast<double>(random.normal(drawn++)); };
    GeomRecord g[2] = {};
    PairPose<float> pose;
    float *const pos[2] = {pose.pos1, pose.pos2}, *const rot[2] = {pose.rot1, pose.rot2};
    double quat[4];
    for (int k = 0; k < 2; ++k) {
      // Of every shape, some flat; some parallel.
      double centre[3], radius = 0;
      for (int i = 0; i < 3; ++i) {
        const double half = sample % 11 == 0 && i == 2 ? 1e-4 : 0.02 + uniform();
        g[k].box[i] = static_cast<float>(sample % 2 == 0 ? 0 : half * (uniform() - 0.5));
        g[k].box[3 + i] = static_cast<float>(half);
        m->geom_size[3 * k + i] = g[k].box[3 + i];
        radius += std::pow(std::abs(g[k].box[i]) + g[k].box[3 + i], 2);
        pos[k][i] = static_cast<float>(k * 1.2 * normal());
      }
      g[k].shape = kMesh, g[k].radius = static_cast<float>(1.0001 * std::sqrt(radius));
      for (double& q : quat) q = k == 1 && sample % 5 == 0 ? q : normal();
      mju_normalize4(quat);
      mju_quat2Mat(data->geom_xmat + 9 * k, quat);
      for (int i = 0; i < 9; ++i)
        data->geom_xmat[9 * k + i] = rot[k][i] = static_cast<float>(data->geom_xmat[9 * k + i]);
      for (int i = 0; i < 3; ++i) centre[i] = g[k].box[i];
      mju_mulMatVec(data->geom_xpos + 3 * k, data->geom_xmat + 9 * k, centre, 3, 3);
      for (int i = 0; i < 3; ++i) data->geom_xpos[3 * k + i] += pos[k][i];
    }
    const float reach = sample % 3 == 0 ? 0.05f : 0.0f;
    const double size = static_cast<double>(g[0].radius + g[1].radius);
    const double gap = mj_geomDistance(m.get(), data.get(), 0, 1, 100, nullptr) - reach;
    const bool near = boxes_near<ScalarLane>(g[0], g[1], pose, reach, true);
    if (gap < -kKnown * size) {
      ++touching;
      ASSERT_TRUE(near) << "sample " << sample << ", gap " << gap;
    } else if (gap > kFound * size) {
      ++apart;
      found += near ? 0 : 1;
    }
    // A sphere around the second box.
    double local[3], outside = 0;
    float d[3];
    for (int i = 0; i < 3; ++i) d[i] = pose.pos2[i] - pose.pos1[i], local[i] = pose.pos2[i] - data->geom_xpos[i];
    mju_mulMatTVec(local, data->geom_xmat, std::array<double, 3>{local[0], local[1], local[2]}.data(), 3, 3);
    for (int i = 0; i < 3; ++i) outside += std::pow(std::max(std::abs(local[i]) - g[0].box[3 + i], 0.0), 2);
    const double beyond = std::sqrt(outside) - g[1].radius - reach;
    const bool near_sphere = box_near_sphere<ScalarLane>(g[0], pose.rot1, d, g[1], reach, true);
    if (beyond < -kKnown * size || near) {
      ASSERT_TRUE(near_sphere) << "sample " << sample << ", beyond " << beyond;
    } else if (beyond > kFound * size) {
      ASSERT_FALSE(near_sphere) << "sample " << sample << ", beyond " << beyond;
    }
    out_of_sphere += near_sphere ? 0 : 1;
  }
  EXPECT_GT(touching, 3000);
  EXPECT_GT(apart, 3000);
  EXPECT_GT(out_of_sphere, 2000);
  // With a reach an axis across edges may not show what a corner and a corner are apart.
  EXPECT_GT(found, 0.97 * apart);
}

constexpr const char* kTree =
    "<body pos='0 0 1'><freejoint/><geom type='capsule' size='0.07 0.1'/><geom size='0.09' pos='0 0 0.2'/>"
    "<body pos='0 0.1 0'><joint axis='1 0 0'/><geom type='capsule' size='0.04 0.15' pos='0 0.2 0'/>"
    "<body pos='0 0.4 0'><joint axis='0 0 1'/><geom size='0.05' pos='0 0.1 0'/></body></body>"
    "<body pos='0 -0.1 0'><joint axis='1 0 0'/><geom type='box' size='0.04 0.1 0.03' pos='0 -0.2 0'/></body></body>";

/// Whether a pair may touch, looked at by itself.
bool look_at(const ModelView& m, const Workspace<ScalarLane>& w, const Constraints<ScalarLane>& c,
             const PairBoundRecord& b) {
  const bool swapped = b.root1 > b.root2;
  const int low = swapped ? b.geom2 : b.geom1, high = swapped ? b.geom1 : b.geom2;
  float shift[3], d[3], height;
  tree_shift<ScalarLane>(w, swapped ? b.root2 : b.root1, swapped ? b.root1 : b.root2, shift);
  between<ScalarLane>(c.geom_pos + 3 * low, c.geom_pos + 3 * high, shift, d);
  if (b.look == kLookAtPlane) return plane_near<ScalarLane>(b.bound, c.geom_rot + 9 * b.geom1, d, height);
  if (!spheres_near<ScalarLane>(b.bound * b.bound, d)) return false;
  if (b.look != kLookAtRound) return true;
  const float touch = round_touch(m.geom[low], m.geom[high], b.reach);
  return round_near<ScalarLane>(m.geom[low].size[1], m.geom[high].size[1], touch * touch, c.geom_rot + 9 * low,
                                c.geom_rot + 9 * high, d);
}

TEST(NearPairs, OfAllPairsThoseAreFoundThatAreNearLookedAtByThemselves) {
  test::Pair p(test::compile_xml(std::string("<mujoco><worldbody><geom type='plane' size='5 5 1'/>") + kTree + kTree +
                                 kTree + "</worldbody></mujoco>"));
  ASSERT_NE(p.view.tree_boxes, 0);
  test::Block block(p.view);
  int near = 0, far = 0;
  for (std::uint64_t sample = 0; sample < 2000; ++sample) {
    p.randomize(sample, 0, 0.1);
    for (int tree = 0; tree < 3; ++tree) {
      for (int i = 0; i < 3; ++i) {
        const RandomStream random(9, RandomPurpose::kTest, sample, static_cast<std::uint64_t>(tree));
        p.data->qpos[10 * tree + i] = static_cast<float>(
            2.5 * (static_cast<double>(random.uniform(static_cast<std::uint64_t>(i))) - 0.5) + (tree == 2 ? 100 : 0));
      }
      if (tree == 2 && sample % 2 == 0) {
        for (int i = 0; i < 3; ++i) p.data->qpos[20 + i] = p.data->qpos[i] + (i == 0 ? 0.7 : 0);
      }
    }
    mj_forward(p.mj.get(), p.data.get());
    block.load(p.view, *p.data);
    test::smooth_dynamics(p.view, block.space.w);
    Workspace<ScalarLane>& w = block.space.w;
    Constraints<ScalarLane>& c = block.space.c;
    c.live = true;
    geom_poses<ScalarLane>(p.view, w, c);
    tree_boxes<ScalarLane>(p.view, c);
    ASSERT_LE(p.view.npair, 3 * kPairsAtOnce);
    for (int first = 0; first < p.view.npair; first += kPairsAtOnce) {
      bool lanes;
      const unsigned long long found = near_pairs<ScalarLane>(p.view, w, c, first / kPairsAtOnce, &lanes);
      for (int k = 0; k < std::min(kPairsAtOnce, p.view.npair - first); ++k) {
        const PairBoundRecord& b = p.view.pair_bound[first + k];
        ASSERT_EQ((found >> k & 1) != 0, look_at(p.view, w, c, b)) << "sample " << sample << ", pair " << first + k;
        (found >> k & 1 ? near : far) += b.root1 != b.root2 && b.root1 >= 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(near, 150);
  EXPECT_GT(far, 1000);
}

}  // namespace
}  // namespace cohort::sim
