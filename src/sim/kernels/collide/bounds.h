/// Bounding boxes over lanes: which environments' shapes are surely apart, before a search. What is found here changes
/// no result, only who is searched: a box is apart by more than the reach with room for rounding.
#pragma once
#include "sim/kernels/collide/collide.h"

namespace cohort::sim {

/// Lanes where the box around a geom may be nearer to a plane than `reach`. height: of the geom's frame over the plane.
template <class L>
COHORT_LANE typename L::M box_near_plane(const GeomRecord& g, const PairPose<typename L::V>& pose, typename L::V height,
                                         float reach, typename L::M near) {
  using V = typename L::V;
  V normal[3], local[3];
  for (int i = 0; i < 3; ++i) normal[i] = pose.rot1[3 * i + 2];
  rotate_back(local, pose.rot2, normal);
  V lowest = height;
  for (int i = 0; i < 3; ++i) lowest = fma(local[i], V(g.box[i]), lowest) - abs(local[i]) * V(g.box[3 + i]);
  return near & (lowest <= V(reach + 1e-5f * g.radius));
}

/// Lanes where the box around a geom may be nearer to a sphere around another than `reach`. rot: of the box's geom,
/// which is neither a sphere nor a capsule; d: from it to the other, in any axes that both share.
template <class L>
COHORT_LANE typename L::M box_near_sphere(const GeomRecord& box, const typename L::V* rot, const typename L::V* d,
                                          const GeomRecord& other, float reach, typename L::M near) {
  using V = typename L::V;
  V local[3], out[3];
  rotate_back(local, rot, d);
  for (int i = 0; i < 3; ++i) {
    const V at = local[i] - V(box.box[i]), half(box.box[3 + i]);
    out[i] = at - clip(at, -half, half);
  }
  // Rounding is a hundredth of what is added.
  const float bound = other.radius + reach + 1e-5f * (box.radius + other.radius);
  return near & (dot3(out, out) <= V(bound * bound));
}

/// Lanes where the boxes around two geoms may be nearer than `reach`: the separating axes of two oriented boxes
/// (Gottschalk 1996). `near`: lanes that need an answer.
template <class L>
COHORT_KERNEL typename L::M boxes_near(const GeomRecord& g1, const GeomRecord& g2, const PairPose<typename L::V>& pose,
                                       float reach, typename L::M near) {
  using V = typename L::V;
  // Rounding is a hundredth of this.
  const V slack(reach + 1e-5f * (g1.radius + g2.radius));
  const auto read_axes = [](V* R, const GeomRecord& g, const V* rot) {
    if (g.shape == kSphere) {
      for (int i = 0; i < 9; ++i) R[i] = V(i % 4 == 0 ? 1.0f : 0.0f);
    } else if (g.shape == kCapsule) {
      // Of a capsule only the axis is known, and nothing depends on the others.
      const V z[3] = {rot[2], rot[5], rot[8]};
      const auto use_y = abs(z[1]) < V(0.5f);
      V x[3] = {V(0.0f), select(use_y, V(1.0f), V(0.0f)), select(use_y, V(0.0f), V(1.0f))}, y[3];
      const V along = dot3(x, z);
      for (int i = 0; i < 3; ++i) x[i] = fma(-along, z[i], x[i]);
      const V scale = V(1.0f) / sqrt(dot3(x, x));
      for (int i = 0; i < 3; ++i) x[i] *= scale;
      cross(y, z, x);
      for (int i = 0; i < 3; ++i) R[3 * i] = x[i], R[3 * i + 1] = y[i], R[3 * i + 2] = z[i];
    } else {
      for (int i = 0; i < 9; ++i) R[i] = rot[i];
    }
  };
  V R1[9], R2[9], c2[3], d[3], t[3];
  read_axes(R1, g1, pose.rot1);
  read_axes(R2, g2, pose.rot2);
  rotate(c2, R2, g2.box);
  for (int i = 0; i < 3; ++i) d[i] = (pose.pos2[i] + c2[i]) - pose.pos1[i];
  rotate_back(t, R1, d);
  for (int i = 0; i < 3; ++i) t[i] = t[i] - V(g1.box[i]);
  // The second box's axes in the first's frame, and their sizes. Most pairs end at the first's axes.
  V C[9], size[9];
  const float *h1 = g1.box + 3, *h2 = g2.box + 3;
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      C[3 * i + j] = fma(R1[i], R2[j], fma(R1[3 + i], R2[3 + j], R1[6 + i] * R2[6 + j]));
      size[3 * i + j] = abs(C[3 * i + j]);
    }
    const V other = fma(size[3 * i], V(h2[0]), fma(size[3 * i + 1], V(h2[1]), size[3 * i + 2] * V(h2[2])));
    near = near & (abs(t[i]) - other <= slack + V(h1[i]));
  }
  if (!any(near)) return near;
  for (int i = 0; i < 3; ++i) {
    const V s = fma(t[0], C[i], fma(t[1], C[3 + i], t[2] * C[6 + i]));
    const V mine = fma(size[i], V(h1[0]), fma(size[3 + i], V(h1[1]), size[6 + i] * V(h1[2])));
    near = near & (abs(s) - mine <= slack + V(h2[i]));
  }
  if (!any(near)) return near;
  // An axis across two edges is shorter than one: what it shows, a unit axis shows all the more.
  for (int i = 0; i < 3; ++i) {
    const int a = (i + 1) % 3, b = (i + 2) % 3;
    for (int j = 0; j < 3; ++j) {
      const int u = (j + 1) % 3, v = (j + 2) % 3;
      const V apart = abs(t[b] * C[3 * a + j] - t[a] * C[3 * b + j]);
      const V mine = fma(size[3 * b + j], V(h1[a]), size[3 * a + j] * V(h1[b]));
      const V other = fma(size[3 * i + v], V(h2[u]), size[3 * i + u] * V(h2[v]));
      near = near & (apart - mine - other <= slack);
    }
  }
  return near;
}

}  // namespace cohort::sim
