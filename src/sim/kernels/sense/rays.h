/// Rays against shapes: the first hit along p + t d, t >= 0, in the shape's frame (d of unit length there too), or -1.
#pragma once
#include "sim/kernels/lane/model_view.h"
#include "sim/kernels/lane/spatial.h"

namespace cohort::sim {

inline constexpr float kNoHit = -1.0f;

/// Keeps the nearer of two hits.
template <class V, class M>
COHORT_LANE void nearer_hit(V& best, V t, M valid) {
  best = select(valid & (t >= V(0.0f)) & ((best < V(0.0f)) | (t < best)), t, best);
}

/// Roots of a t^2 + 2 b t + c; both -1 where there are none.
template <class V>
COHORT_LANE void quadratic_roots(V a, V b, V c, V& first, V& second) {
  const V none(kNoHit), det = fma(b, b, -(a * c));
  const auto good = (det >= V(0.0f)) & (a > V(1e-15f));
  const V root = sqrt(select(good, det, V(0.0f))), inverse = V(1.0f) / select(good, a, V(1.0f));
  first = select(good, (-b - root) * inverse, none);
  second = select(good, (root - b) * inverse, none);
}
/// The smaller root that is not negative.
template <class V>
COHORT_LANE V first_root(V a, V b, V c) {
  V x1, x2;
  quadratic_roots(a, b, c, x1, x2);
  return select(x1 >= V(0.0f), x1, select(x2 >= V(0.0f), x2, V(kNoHit)));
}

/// The first hit of a ray with a shape of a size as MuJoCo's geom_size. A plane is hit from above, within its rendered
/// size; a capsule's and a cylinder's axis is z.
template <class V>
COHORT_KERNEL V ray_shape(int shape, const float* size, const V* p, const V* d) {
  const V zero(0.0f), none(kNoHit);
  V best = none;
  if (shape == kPlane) {
    const auto down = d[2] < V(-1e-15f);
    const V t = -p[2] / select(down, d[2], V(-1.0f));
    auto inside = down & (t >= zero);
    for (int i = 0; i < 2; ++i) {
      if (size[i] > 0) inside = inside & (abs(fma(t, d[i], p[i])) <= V(size[i]));
    }
    return select(inside, t, none);
  }
  if (shape == kSphere) return first_root(dot3(d, d), dot3(d, p), dot3(p, p) - V(size[0] * size[0]));
  if (shape == kEllipsoid) {
    V a = zero, b = zero, c(-1.0f);
    for (int i = 0; i < 3; ++i) {
      const V s(1.0f / (size[i] * size[i]));
      a = fma(s * d[i], d[i], a), b = fma(s * d[i], p[i], b), c = fma(s * p[i], p[i], c);
    }
    return first_root(a, b, c);
  }
  if (shape == kBox) {
    for (int i = 0; i < 3; ++i) {
      const auto moves = abs(d[i]) > V(1e-15f);
      const V inverse = V(1.0f) / select(moves, d[i], V(1.0f));
      const int j = i == 2 ? 0 : i + 1, k = i == 0 ? 2 : i - 1;
      for (int side = -1; side <= 1; side += 2) {
        const V t = (V(static_cast<float>(side) * size[i]) - p[i]) * inverse;
        nearer_hit(best, t, moves & (abs(fma(t, d[j], p[j])) <= V(size[j])) & (abs(fma(t, d[k], p[k])) <= V(size[k])));
      }
    }
    return best;
  }
  // Capsule and cylinder: the round side, then the ends.
  const V radius2(size[0] * size[0]), height(size[1]);
  const V a = fma(d[0], d[0], d[1] * d[1]), b = fma(d[0], p[0], d[1] * p[1]);
  const V c = fma(p[0], p[0], p[1] * p[1]) - radius2;
  const V round = first_root(a, b, c);
  nearer_hit(best, round, abs(fma(round, d[2], p[2])) <= height);
  for (int side = -1; side <= 1; side += 2) {
    const V sign(static_cast<float>(side));
    if (shape == kCapsule) {
      const V q[3] = {p[0], p[1], p[2] - sign * height};
      V x1, x2;
      quadratic_roots(dot3(d, d), dot3(d, q), dot3(q, q) - radius2, x1, x2);
      nearer_hit(best, x1, sign * fma(x1, d[2], p[2]) >= height);
      nearer_hit(best, x2, sign * fma(x2, d[2], p[2]) >= height);
    } else {
      const auto moves = abs(d[2]) > V(1e-15f);
      const V t = (sign * height - p[2]) / select(moves, d[2], V(1.0f));
      const V x = fma(t, d[0], p[0]), y = fma(t, d[1], p[1]);
      nearer_hit(best, t, moves & (fma(x, x, y * y) <= radius2));
    }
  }
  return best;
}

/// The first hit of a ray with the triangles of a mesh or height field, from either side (Moeller and Trumbore 1997).
template <class V>
COHORT_KERNEL V ray_triangles(const ModelView& m, const RayMeshRecord& mesh, const V* p, const V* d) {
  // Single precision leaves gaps of this relative width between neighbours.
  const V one(1.0f), gap(1e-6f);
  V best(kNoHit);
  for (int c = mesh.first; c < mesh.first + mesh.count; ++c) {
    const RayChunkRecord& chunk = m.ray_chunk[c];
    V to[3], off[3];
    for (int i = 0; i < 3; ++i) to[i] = V(chunk.centre[i]) - p[i];
    cross(off, to, d);
    if (!any(dot3(off, off) <= V(chunk.radius * chunk.radius))) continue;
    for (int k = chunk.first; k < chunk.first + chunk.count; ++k) {
      const float* triangle = m.ray_triangle + 9 * k;
      V e1[3], e2[3], from[3], h[3], q[3];
      for (int i = 0; i < 3; ++i) {
        from[i] = p[i] - V(triangle[i]);
        e1[i] = V(triangle[3 + i]);
        e2[i] = V(triangle[6 + i]);
      }
      cross(h, d, e2);
      const V det = dot3(e1, h);
      const auto meets = abs(det) > V(1e-15f);
      const V inverse = one / select(meets, det, one);
      const V s = dot3(from, h) * inverse;
      cross(q, from, e1);
      const V t = dot3(d, q) * inverse;
      nearer_hit(best, dot3(e2, q) * inverse, meets & (s >= -gap) & (t >= -gap) & (s + t <= one + gap));
    }
  }
  return best;
}

/// Where a point, in the shape's frame, lies inside.
template <class M, class V>
COHORT_LANE M inside_shape(int shape, const float* size, const V* p) {
  const V radius2(size[0] * size[0]), across = fma(p[0], p[0], p[1] * p[1]);
  if (shape == kCapsule) {
    const V z = p[2] - clip(p[2], V(-size[1]), V(size[1]));
    return fma(z, z, across) < radius2;
  }
  if (shape == kEllipsoid) {
    V sum(0.0f);
    for (int i = 0; i < 3; ++i) sum = fma(p[i] * V(1.0f / (size[i] * size[i])), p[i], sum);
    return sum < V(1.0f);
  }
  if (shape == kCylinder) return (abs(p[2]) < V(size[1])) & (across < radius2);
  if (shape == kBox) return (abs(p[0]) < V(size[0])) & (abs(p[1]) < V(size[1])) & (abs(p[2]) < V(size[2]));
  return dot3(p, p) < radius2;
}

}  // namespace cohort::sim
