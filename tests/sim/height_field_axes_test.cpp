// The axes along which a shape and a prism of a height field are tried: none that is better is left out unseen.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "block.h"
#include "sim/kernels/collide/height_field_touch.h"

namespace cohort::sim {
namespace {

using Lane = ScalarLane;

/// Depths in single precision, of shapes and prisms of some 0.3 m.
constexpr float kAxesTolerance = 3e-6f;
/// Where an arc has two places in one of its quarters, it may be the other one, or a normal, that is found, m.
constexpr float kMissed = 2e-4f;

/// A shape on a field, which only makes that the model has its record.
std::string model_of(const char* shape) {
  return std::string(
             "<mujoco><asset><mesh name='rock' vertex='0.2 0.01 0 -0.18 0.02 0.03 0.02 0.15 0.01 0.01 -0.17 -0.02 0.03 "
             "0.01 0.12 -0.02 0.02 -0.14'/><hfield name='h' nrow='2' ncol='2' size='1 1 1 1' elevation='0 0 0 1'/>"
             "</asset><worldbody><geom type='hfield' hfield='h'/><body><freejoint/><geom ") +
         shape + "/></body></worldbody></mujoco>";
}
constexpr const char* kBoxGeom = "type='box' size='0.1 0.2 0.15'";
constexpr const char* kMeshGeom = "type='mesh' mesh='rock'";
constexpr const char* kCylinderGeom = "type='cylinder' size='0.12 0.15'";
constexpr const char* kEllipsoidGeom = "type='ellipsoid' size='0.1 0.2 0.15'";

/// A random pose of a shape about a prism under one of a cell's two triangles.
struct Sample {
  float R[9];
  Prism<Lane> prism;

  /// level: the shape stands upright on a level triangle.
  Sample(std::uint64_t number, bool level) {
    const RandomStream random(8, RandomPurpose::kTest, number, 3);
    const auto uniform = [&](std::uint64_t k) { return random.uniform(k) - 0.5f; };
    float quat[4] = {level ? 1.0f : uniform(0), level ? 0.0f : uniform(1), level ? 0.0f : uniform(2), uniform(3)};
    if (number % 5 == 0) quat[3] = 0;
    normalize_quat(quat);
    quat_to_matrix(R, quat);
    const float width = 0.25f, depth = 0.3f, x = 0.5f * uniform(4) - 0.5f * width, y = 0.5f * uniform(5) - 0.5f * depth;
    const float z = 0.3f * (uniform(6) - 0.3f);
    float corner[4][3];
    for (int k = 0; k < 4; ++k) {
      corner[k][0] = x + (k % 2 ? width : 0), corner[k][1] = y + (k / 2 ? depth : 0);
      corner[k][2] = z + (level ? 0 : 0.15f * uniform(7 + static_cast<std::uint64_t>(k)));
    }
    const float length = std::sqrt(width * width + depth * depth), ax = depth / length, ay = -width / length;
    const float wall[2][3][2] = {{{-1, 0}, {-ax, -ay}, {0, 1}}, {{ax, ay}, {1, 0}, {0, -1}}};
    const int triangle[2][3] = {{2, 0, 3}, {0, 3, 1}};
    prism.half = static_cast<int>(number % 2);
    prism.floor = z - 0.4f;
    float from_first[2][3];
    for (int k = 0; k < 3; ++k) {
      const float* c = corner[triangle[prism.half][k]];
      std::copy(c, c + 3, prism.corner[k]);
      for (int i = 0; i < 3 && k > 0; ++i) from_first[k - 1][i] = c[i] - prism.corner[0][i];
    }
    cross(prism.up, from_first[0], from_first[1]);
    const float scale = std::sqrt(dot3(prism.up, prism.up)) * (prism.up[2] < 0 ? -1.0f : 1.0f);
    for (float& u : prism.up) u /= scale;
    prism.top_at = dot3(prism.up, prism.corner[0]);
    // The wall under the diagonal of the first triangle looks to the second one.
    for (int k = 0; k < 3; ++k) {
      const bool diagonal = k == (prism.half == 0 ? 1 : 0);
      for (int i = 0; i < 2; ++i) prism.wall[k][i] = diagonal ? -wall[prism.half][k][i] : wall[prism.half][k][i];
      prism.wall_at[k] = prism.wall[k][0] * prism.corner[k][0] + prism.wall[k][1] * prism.corner[k][1];
    }
  }
  const float* beside(int k, float* n) const {
    n[0] = prism.wall[k][0], n[1] = prism.wall[k][1], n[2] = 0;
    return n;
  }
};

/// What the normals of both give.
template <class Core>
BestAxis<Lane> best_normal(const Sample& s, const Core& core) {
  BestAxis<Lane> best;
  const auto look = [&](const float* d) { best.look(core.lowest(d) - s.prism.highest(d), d, 0, 0.0f, true); };
  look(s.prism.up);
  float n[3];
  for (int k = 0; k < 3; ++k) look(s.beside(k, n));
  core.faces([&](const float* face, float) {
    const float d[3] = {-face[0], -face[1], -face[2]};
    look(d);
  });
  return best;
}

/// The best of all axes across two edges.
template <class Core>
float best_across_edges(const Sample& s, const Core& core, float best) {
  const auto look = [&](const float* edge, const float* e) {
    float d[3];
    cross(d, edge, e);
    const float length = std::sqrt(dot3(d, d));
    if (length < 2e-3f * std::sqrt(dot3(edge, edge) * dot3(e, e))) return;
    // An edge of the top has no axes that look down; an upright one looks both ways.
    for (const float side : {1 / length, -1 / length}) {
      if (edge[2] != 1 && (d[2] < 0) != (side < 0)) continue;
      const float along[3] = {d[0] * side, d[1] * side, d[2] * side};
      best = std::max(best, core.lowest(along) - s.prism.highest(along));
    }
  };
  core.edges([&](const float* e) {
    const float upright[3] = {0, 0, 1};
    look(upright, e);
    for (int k = 0; k < 3; ++k) {
      float edge[3];
      for (int i = 0; i < 3; ++i) edge[i] = s.prism.corner[(k + 1) % 3][i] - s.prism.corner[k][i];
      look(edge, e);
    }
  });
  return best;
}

template <class Core>
void compare_edges(const char* shape) {
  const test::Pair p(test::compile_xml(model_of(shape)));
  const GeomRecord& geom = p.view.geom[p.view.pair[0].geom2];
  int edges = 0;
  for (std::uint64_t number = 0; number < 4000; ++number) {
    const Sample s(number, number % 7 == 0);
    const Core core(p.view, geom, s.R);
    BestAxis<Lane> best = best_normal(s, core);
    const float before = best.apart, all = best_across_edges(s, core, before);
    edge_axes<Lane>(best, s.prism, core, 0.0f, true);
    EXPECT_NEAR(best.apart, all, kAxesTolerance) << "sample " << number;
    edges += best.apart > before + kAxesTolerance;
  }
  EXPECT_GE(edges, 200);
}

TEST(HeightField, NoBetterAxisAcrossTwoEdgesIsLeftOutOfABox) {
  compare_edges<BoxCore<Lane>>(kBoxGeom);
}
TEST(HeightField, NoBetterAxisAcrossTwoEdgesIsLeftOutOfAMesh) {
  compare_edges<MeshCore<Lane>>(kMeshGeom);
}
TEST(HeightField, NoBetterAxisAcrossTwoEdgesIsLeftOutOfACylinder) {
  compare_edges<CylinderCore<Lane>>(kCylinderGeom);
}

/// An axis between two normals, the arc's, and the overlap along it.
template <class Core>
float overlap_between(const Core& core, const float* a, const float* b, const float* from, float share, float* d) {
  for (int i = 0; i < 3; ++i) d[i] = a[i] + share * (b[i] - a[i]);
  const float length = std::sqrt(dot3(d, d));
  for (int i = 0; i < 3; ++i) d[i] /= length;
  return dot3(from, d) - core.lowest(d);
}

template <class Core>
void compare_arcs(const char* shape, bool smooth) {
  const test::Pair p(test::compile_xml(model_of(shape)));
  const GeomRecord& geom = p.view.geom[p.view.pair[0].geom2];
  int found = 0, skipped = 0;
  for (std::uint64_t number = 0; number < 3000; ++number) {
    const Sample s(number, number % 7 == 0);
    const Core core(p.view, geom, s.R);
    const float size = geom.radius;
    for (int k = 0; k < 3; ++k) {
      float wall[3], last[3], low_a[3], low_b[3], d[3];
      s.beside(k, wall);
      const bool upright = number % 3 == 0;
      const float* a = upright ? s.beside((k + 2) % 3, last) : s.prism.up;
      const float from[3] = {s.prism.corner[k][0], s.prism.corner[k][1], upright ? 0 : s.prism.corner[k][2]};
      core.lowest_point(low_a, a);
      core.lowest_point(low_b, wall);
      // Dense samples: the least overlap, where it is less on both sides is no place of its own.
      constexpr int kSamples = 400;
      std::array<float, kSamples + 1> overlap;
      for (int i = 0; i <= kSamples; ++i) {
        overlap[static_cast<std::size_t>(i)] =
            overlap_between(core, a, wall, from, static_cast<float>(i) / kSamples, d);
      }
      const auto least = std::min_element(overlap.begin(), overlap.end());
      const float cosine = dot3(a, wall), normals = std::max(-overlap.front(), -overlap.back());
      // The normals have been looked at when an arc is.
      if (!arc_may_beat<Lane>(a, wall, cosine, from, low_a, low_b, normals)) {
        EXPECT_GE(*least, -normals - kAxesTolerance) << "sample " << number << " edge " << k;
        ++skipped;
        continue;
      }
      if (!best_between<Lane>(core, a, wall, cosine, from, size, true, d)) {
        // Only an edge of the core's own, or a normal, may be better.
        if (smooth) EXPECT_GE(*least, -normals - kMissed) << "sample " << number;
        continue;
      }
      ++found;
      const float at = dot3(from, d) - core.lowest(d);
      if (least > overlap.begin() + 2 && least < overlap.end() - 3 && smooth) {
        EXPECT_LE(at, *least + kMissed) << "sample " << number << " edge " << k;
      }
      // Along its side a cylinder is lowest along a line, which the edges' axes tell of, along its axis on a cap, which
      // the normals tell of.
      if (!smooth && (std::abs(core.tilt(d)) < 1e-4f || at >= -normals - kAxesTolerance)) continue;
      // No turn to either side is better: the core's lowest point lies over the edge.
      float p_low[3], along[3], beside = 0;
      core.lowest_point(p_low, d);
      cross(along, a, wall);
      const float length = std::sqrt(dot3(along, along));
      float across[3];
      cross(across, d, along);
      for (int i = 0; i < 3; ++i) beside += (from[i] - p_low[i]) * across[i] / length;
      EXPECT_NEAR(beside, 0, 2 * kPointRounding * size) << "sample " << number << " edge " << k << " share";
    }
  }
  EXPECT_GE(found, 300);
  EXPECT_GE(skipped, 300);
}

TEST(HeightField, AnArcsBestAxisIsFoundOfACylinder) {
  compare_arcs<CylinderCore<Lane>>(kCylinderGeom, false);
}
TEST(HeightField, AnArcsBestAxisIsFoundOfAnEllipsoid) {
  compare_arcs<EllipsoidCore<Lane>>(kEllipsoidGeom, true);
}

}  // namespace
}  // namespace cohort::sim
