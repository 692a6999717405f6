/// Two boxes over lanes: the axis of least overlap among the faces' normals and the edges' products (Gottschalk 1996),
/// then the contacts that MuJoCo makes of it: a clipped face, or the nearest points of two edges.
#pragma once
#include "sim/kernels/collide/polygon_clip.h"
#include "sim/kernels/collide/sat.h"

namespace cohort::sim {

/// Edges with a smaller squared sine between them have no common normal.
inline constexpr float kParallelEdges = 1e-10f;
/// Components of an axis below this do not say which corner supports it.
inline constexpr float kAmbiguous = 1e-6f;
/// An edge must beat a face by this share; a face nearly in its direction by the larger one.
inline constexpr float kEdgeBias = 1e-6f, kAlignedBias = 0.05f, kAligned = 0.99f;

template <class L>
struct TwoBoxes {
  using V = typename L::V;
  using M = typename L::M;
  const float *size1, *size2;  ///< m, half sizes
  const PairPose<V>& pose;
  const RelativePose<V>& relative;
  float reach, rounding;  ///< m

  M apart;      ///< by more than the reach
  V most;       ///< m, along the best axis; negative: overlap
  V axis;       ///< faces 0..2 of the first box, 3..5 of the second, 6 + 3 i + j of two edges
  V across[3];  ///< unit, of the best two edges, in the first box's frame

  COHORT_KERNEL void best_axis() {
    const V zero(0.0f), enough(reach + rounding);
    most = V(-1e9f), axis = zero;
    apart = zero > zero;
    for (int k = 0; k < 6; ++k) {
      const bool first = k < 3;
      const int i = first ? k : k - 3;
      const float* const other = first ? size2 : size1;
      V reaches((first ? size1 : size2)[i]);
      for (int r = 0; r < 3; ++r) {
        reaches = fma(abs(first ? relative.R[3 * i + r] : relative.R[3 * r + i]), V(other[r]), reaches);
      }
      const V at = abs(first ? relative.to[i] : relative.back[i]) - reaches;
      const M better = at > most;
      apart = apart | (at > enough);
      most = select(better, at, most);
      axis = select(better, V(static_cast<float>(k)), axis);
    }
    for (V& x : across) x = zero;
    best_edges(enough);
  }

  /// Contacts of `near` where the best axis is two edges.
  COHORT_KERNEL void edge_contact(ContactPoint<V>& out, M near) {
    const V zero(0.0f);
    // Which edges, as ones and zeros.
    M is1[3], is2[3];
    V n[3], half1 = zero, half2 = zero, along2[3] = {zero, zero, zero}, along = zero;
    const V code = axis - V(6.0f);
    for (int i = 0; i < 3; ++i) {
      is1[i] = (code >= V(3.0f * i)) & (code < V(3.0f * i + 3));
      is2[i] = (code == V(static_cast<float>(i))) | (code == V(3.0f + i)) | (code == V(6.0f + i));
      half1 = select(is1[i], V(size1[i]), half1), half2 = select(is2[i], V(size2[i]), half2);
      for (int r = 0; r < 3; ++r) along2[r] = select(is2[i], relative.R[3 * r + i], along2[r]);
    }
    const M back = dot3(across, relative.to) < zero;
    for (int i = 0; i < 3; ++i) n[i] = select(back, -across[i], across[i]);
    V seen[3], corner1[3], corner2[3];
    rotate_back(seen, relative.R, n);
    M doubt1[3], doubt2[3];
    for (int i = 0; i < 3; ++i) {
      along = select(is1[i], along2[i], along);
      corner1[i] = select(is1[i], zero, select(n[i] >= zero, V(size1[i]), V(-size1[i])));
      corner2[i] = select(is2[i], zero, select(seen[i] >= zero, V(-size2[i]), V(size2[i])));
      doubt1[i] = flip(is1[i]) & (abs(n[i]) < V(kAmbiguous));
      doubt2[i] = flip(is2[i]) & (abs(seen[i]) < V(kAmbiguous));
    }
    V nearest(1e9f), near1[3] = {zero, zero, zero}, near2[3] = {zero, zero, zero};
    const M in_doubt1 = near & (doubt1[0] | doubt1[1] | doubt1[2]),
            in_doubt2 = near & (doubt2[0] | doubt2[1] | doubt2[2]);
    for (int turn = 0; turn < 4; ++turn) {
      const bool turn1 = (turn & 1) != 0, turn2 = (turn & 2) != 0;
      M lanes = near;
      if (turn1) lanes = lanes & in_doubt1;
      if (turn2) lanes = lanes & in_doubt2;
      if (!any(lanes)) continue;
      V p1[3], local[3], p2[3], between[3];
      for (int i = 0; i < 3; ++i) {
        p1[i] = turn1 ? select(doubt1[i], -corner1[i], corner1[i]) : corner1[i];
        local[i] = turn2 ? select(doubt2[i], -corner2[i], corner2[i]) : corner2[i];
      }
      rotate(p2, relative.R, local);
      for (int i = 0; i < 3; ++i) p2[i] += relative.to[i], between[i] = p2[i] - p1[i];
      // Nearest points of both edges, each clamped to its own.
      V d1 = zero;
      for (int i = 0; i < 3; ++i) d1 = select(is1[i], between[i], d1);
      const V d2 = dot3(along2, between), denominator = fma(-along, along, V(1.0f));
      const M skew = denominator > V(1e-12f);
      V s = select(skew, fma(-along, d2, d1) / select(skew, denominator, V(1.0f)), zero);
      s = clip(s, -half1, half1);
      const V t = clip(fma(along, s, -d2), -half2, half2);
      s = clip(fma(along, t, d1), -half1, half1);
      V gap[3];
      for (int i = 0; i < 3; ++i) {
        p1[i] = select(is1[i], p1[i] + s, p1[i]);
        p2[i] = fma(t, along2[i], p2[i]);
        gap[i] = p2[i] - p1[i];
      }
      const V squared = dot3(gap, gap);
      const M nearer = lanes & (squared < nearest);
      nearest = select(nearer, squared, nearest);
      for (int i = 0; i < 3; ++i)
        near1[i] = select(nearer, p1[i], near1[i]), near2[i] = select(nearer, p2[i], near2[i]);
    }
    V middle[3], gap[3], normal[3];
    for (int i = 0; i < 3; ++i) middle[i] = V(0.5f) * (near1[i] + near2[i]), gap[i] = near2[i] - near1[i];
    out.dist = select(near, dot3(gap, n), out.dist);
    rotate(middle, relative.rot1, middle), rotate(normal, relative.rot1, n);
    for (int i = 0; i < 3; ++i) {
      out.pos[i] = select(near, middle[i] + pose.pos1[i], out.pos[i]);
      out.normal[i] = select(near, normal[i], out.normal[i]);
    }
  }

  /// Contacts of `near` where the best axis is a face's normal: the other box's face that looks at it, clipped. Returns
  /// how many the fullest lane has, at most eight.
  COHORT_KERNEL int face_contacts(ContactPoint<V>* out, M near) {
    const V zero(0.0f);
    Reference r;
    refer(r);
    LanePolygon<L> polygon;
    const M yes = zero == zero;
    for (int k = 0; k < 4; ++k) {
      V at[3];
      for (int i = 0; i < 3; ++i) {
        const V u = k == 1 || k == 2 ? -r.du[i] : r.du[i];
        at[i] = k < 2 ? r.middle[i] + u + r.dv[i] : r.middle[i] + u - r.dv[i];
      }
      polygon.add(at[0], at[1], at[2], yes);
    }
    const V one(1.0f), slack(rounding);
    polygon.clip(-one, zero, -r.x, slack, near), polygon.clip(one, zero, -r.x, slack, near);
    polygon.clip(zero, -one, -r.y, slack, near), polygon.clip(zero, one, -r.y, slack, near);
    alignas(64) float place[kMostFound][3][L::kWidth];
    const int most_found = distinct_corners(place, polygon, near);
    V* const type = nullptr;
    for (int k = 0; k < most_found; ++k) {
      V at[3];
      for (int i = 0; i < 3; ++i) at[i] = load(place[k][i], type);
      out[k].dist = select(near, at[2], out[k].dist);
      const V height = fma(V(0.5f), at[2], r.z);
      for (int i = 0; i < 3; ++i) {
        const V x = fma(r.axes[0][i], at[0], fma(r.axes[1][i], at[1], fma(r.axes[2][i], height, r.pos[i])));
        out[k].pos[i] = select(near, x, out[k].pos[i]);
        out[k].normal[i] = select(near, r.normal[i], out[k].normal[i]);
      }
    }
    return most_found;
  }

  static constexpr int kMostFound = 8;

 private:
  COHORT_LANE void best_edges(V enough) {
    const V face = most, best_face = axis;
    for (int i = 0; i < 3; ++i) {
      const int k = i == 2 ? 0 : i + 1, l = i == 0 ? 2 : i - 1;
      for (int j = 0; j < 3; ++j) {
        V u[3], seen[3];
        u[i] = V(0.0f), u[k] = -relative.R[3 * l + j], u[l] = relative.R[3 * k + j];
        const V squared = fma(u[k], u[k], u[l] * u[l]);
        const M skew = squared > V(kParallelEdges);
        const V scale = V(1.0f) / sqrt(select(skew, squared, V(1.0f)));
        u[k] = u[k] * scale, u[l] = u[l] * scale;
        rotate_back(seen, relative.R, u);
        V at = abs(fma(u[k], relative.to[k], u[l] * relative.to[l]));
        at = at - fma(abs(u[k]), V(size1[k]), abs(u[l]) * V(size1[l]));
        for (int r = 0; r < 3; ++r) at = fma(-abs(seen[r]), V(size2[r]), at);
        apart = apart | (skew & (at > enough));
        const M better = skew & (fma(V(-kEdgeBias), abs(at), at) > most) & (at > face);
        most = select(better, at, most);
        axis = select(better, V(6.0f + 3 * i + j), axis);
        for (int r = 0; r < 3; ++r) across[r] = select(better, u[r], across[r]);
      }
    }
    // An axis nearly along the best face's normal must be better by more than rounding as well.
    V seen[3], along = V(0.0f);
    rotate_back(seen, relative.R, across);
    for (int k = 0; k < 6; ++k) {
      along = select(best_face == V(static_cast<float>(k)), k < 3 ? across[k] : seen[k - 3], along);
    }
    const M aligned = (abs(along) > V(kAligned)) & (most < fma(V(kAlignedBias), abs(face), face + V(rounding)));
    axis = select(aligned, best_face, axis);
    most = select(aligned, face, most);
  }

  /// The face that the contacts lie on, its normal along z, and the other box's face as a rectangle.
  struct Reference {
    V x, y, z;                        ///< m, half sizes
    V middle[3], du[3], dv[3];        ///< m, heights count from the face
    V axes[3][3], pos[3], normal[3];  ///< the frame, in the world's axes
  };

  /// rows[k] of three, turned so that row `first` is the last.
  COHORT_LANE static V cycled(M is0, M is1, V a, V b, V c) { return select(is0, a, select(is1, b, c)); }

  COHORT_KERNEL void refer(Reference& r) const {
    const V zero(0.0f), one(1.0f);
    const M second = axis >= V(3.0f);
    const V a = select(second, axis - V(3.0f), axis);
    const M a0 = a == zero, a1 = a == one;
    V R[9], to[3], size[3], other[3], world[9];
    for (int i = 0; i < 9; ++i) {
      R[i] = select(second, relative.turned[i], relative.R[i]);
      world[i] = select(second, pose.rot2[i], pose.rot1[i]);
    }
    for (int i = 0; i < 3; ++i) {
      to[i] = select(second, relative.back[i], relative.to[i]);
      size[i] = select(second, V(size2[i]), V(size1[i]));
      other[i] = select(second, V(size1[i]), V(size2[i]));
      r.pos[i] = select(second, pose.pos2[i], pose.pos1[i]);
    }
    // Axes x, y, z: the two after the normal's, then that one.
    const auto turn = [&](const V* v, int stride, V* x) {
      for (int k = 0; k < 3; ++k) {
        x[k] = cycled(a0, a1, v[stride * ((k + 1) % 3)], v[stride * ((k + 2) % 3)], v[stride * k]);
      }
    };
    V half[3], centre[3], columns[3][3];
    turn(size, 1, half), turn(to, 1, centre);
    r.x = half[0], r.y = half[1], r.z = half[2];
    const V side = select(centre[2] >= zero, one, -one);
    for (int k = 0; k < 3; ++k) {
      turn(R + k, 3, columns[k]);
      columns[k][2] = columns[k][2] * side;
    }
    centre[2] = centre[2] * side;
    for (int i = 0; i < 3; ++i) {
      V along[3];
      turn(world + 3 * i, 1, along);
      r.axes[0][i] = along[0], r.axes[1][i] = along[1], r.axes[2][i] = along[2] * side;
      r.normal[i] = select(second, -r.axes[2][i], r.axes[2][i]);
    }
    // The other box's face that looks at it.
    M f0 = zero == zero, f1 = zero > zero;
    V steepest = abs(columns[0][2]);
    for (int k = 1; k < 3; ++k) {
      const M steeper = abs(columns[k][2]) > steepest;
      steepest = select(steeper, abs(columns[k][2]), steepest);
      f0 = f0 & flip(steeper);
      f1 = k == 1 ? steeper : f1 & flip(steeper);
    }
    const V height = cycled(f0, f1, columns[0][2], columns[1][2], columns[2][2]);
    const V facing = select(height > zero, -one, one);
    const V out = facing * cycled(f0, f1, other[0], other[1], other[2]);
    const V wide = cycled(f0, f1, other[1], other[2], other[0]), deep = cycled(f0, f1, other[2], other[0], other[1]);
    for (int i = 0; i < 3; ++i) {
      const V n = cycled(f0, f1, columns[0][i], columns[1][i], columns[2][i]);
      r.middle[i] = fma(out, n, centre[i]);
      r.du[i] = wide * cycled(f0, f1, columns[1][i], columns[2][i], columns[0][i]);
      r.dv[i] = deep * cycled(f0, f1, columns[2][i], columns[0][i], columns[1][i]);
    }
    r.middle[2] = r.middle[2] - r.z;
  }

  /// The corners no higher than the reach, each once. Returns how many the fullest lane has.
  COHORT_KERNEL int distinct_corners(float (*place)[3][L::kWidth], const LanePolygon<L>& polygon, M near) const {
    for (int k = 0; k < kMostFound; ++k) {
      store(place[k][0], V(0.0f)), store(place[k][1], V(0.0f)), store(place[k][2], V(kFarApart));
    }
    int most_found = 0;
    each_lane(near, [&](int lane) {
      int count = 0, slot = static_cast<int>(get_lane(polygon.start, lane));
      for (int k = 0; k < polygon.slots && count < kMostFound; ++k, slot = slot + 1 == polygon.slots ? 0 : slot + 1) {
        const float x = get_lane(polygon.at[0][slot], lane), y = get_lane(polygon.at[1][slot], lane);
        const float z = get_lane(polygon.at[2][slot], lane);
        if (get_lane(polygon.corner[slot], lane) == 0 || z > reach) continue;
        // Corners that are one lie beside each other.
        const auto same = [&](int other) {
          const float dx = place[other][0][lane] - x, dy = place[other][1][lane] - y;
          return dx * dx + dy * dy < rounding * rounding;
        };
        if (count > 0 && (same(0) || same(count - 1))) continue;
        place[count][0][lane] = x, place[count][1][lane] = y, place[count][2][lane] = z;
        ++count;
      }
      most_found = count > most_found ? count : most_found;
    });
    return most_found;
  }
};

/// Contacts of the boxes in `near`; the other lanes get none. Returns how many the fullest lane has.
template <class L>
COHORT_KERNEL int box_box(ContactPoint<typename L::V>* out, const ModelView& m, const PairRecord& p,
                          const PairPose<typename L::V>& pose, typename L::M near) {
  using V = typename L::V;
  using M = typename L::M;
  const GeomRecord &g1 = m.geom[p.geom1], &g2 = m.geom[p.geom2];
  const RelativePose<V> relative(pose, false);
  TwoBoxes<L> boxes{g1.size, g2.size, pose,    relative, p.margin + p.gap, kAxisRounding * (g1.radius + g2.radius),
                    M{},     V(0.0f), V(0.0f), {}};
  boxes.best_axis();
  near = near & flip(boxes.apart);
  if (!any(near)) return 0;
  const V zero(0.0f);
  for (int k = 0; k < TwoBoxes<L>::kMostFound; ++k) {
    out[k].dist = V(kFarApart);
    for (int i = 0; i < 3; ++i) out[k].pos[i] = out[k].hint[i] = zero, out[k].normal[i] = V(i == 0 ? 1.0f : 0.0f);
  }
  const M edges = near & (boxes.axis >= V(6.0f)), faces = near & (boxes.axis < V(6.0f));
  int most = 0;
  if (any(faces)) most = boxes.face_contacts(out, faces);
  if (any(edges)) {
    boxes.edge_contact(out[0], edges);
    if (most == 0) most = 1;
  }
  return most;
}

}  // namespace cohort::sim
