/// Which pairs of geoms may touch in some environment of a block: most pairs end here. What is found here changes no
/// result, only who is looked at.
#pragma once
#include "sim/kernels/collide.h"
#include "sim/kernels/groups.h"

namespace cohort::sim {

/// From the second tree's reference point to the first's; roots are of PairBoundRecord.
template <class L>
COHORT_LANE void tree_shift(const Workspace<L>& w, int root1, int root2, typename L::V* shift) {
  using V = typename L::V;
  for (int i = 0; i < 3; ++i) shift[i] = V(0.0f);
  if (root1 == root2) return;
  for (int i = 0; i < 3; ++i) {
    if (root2 >= 0) shift[i] = w.origin[3 * root2 + i];
    if (root1 >= 0) shift[i] -= w.origin[3 * root1 + i];
  }
}

/// d: from the first geom of a pair to the second; shift: of their trees.
template <class L>
COHORT_LANE void between(const Constraints<L>& c, const PairBoundRecord& b, const typename L::V* shift,
                         typename L::V* d) {
  const auto pos1 = c.geom_pos + 3 * b.geom1, pos2 = c.geom_pos + 3 * b.geom2;
  // Written out: compilers make four addresses of a loop.
  d[0] = pos2[0] - (pos1[0] - shift[0]);
  d[1] = pos2[1] - (pos1[1] - shift[1]);
  d[2] = pos2[2] - (pos1[2] - shift[2]);
}
/// The same in one tree.
template <class L>
COHORT_LANE void between(const Constraints<L>& c, const PairBoundRecord& b, typename L::V* d) {
  const auto pos1 = c.geom_pos + 3 * b.geom1, pos2 = c.geom_pos + 3 * b.geom2;
  d[0] = pos2[0] - pos1[0];
  d[1] = pos2[1] - pos1[1];
  d[2] = pos2[2] - pos1[2];
}

/// Whether the bounding spheres of a pair are near.
template <class L>
COHORT_LANE typename L::M spheres_near(const PairBoundRecord& b, const typename L::V* d) {
  const typename L::V bound(b.bound);
  return dot3(d, d) < bound * bound;
}

/// Whether a geom is near a plane whose orientation is `rot`.
template <class L>
COHORT_LANE typename L::M plane_near(const PairBoundRecord& b, typename L::Ptr rot, const typename L::V* d,
                                     typename L::V& height) {
  height = fma(typename L::V(rot[8]), d[2], fma(typename L::V(rot[5]), d[1], rot[2] * d[0]));
  return height < typename L::V(b.bound);
}

/// Whether two spheres or capsules are near: n between the nearest points of their segments is an axis that separates
/// the segments by their extent along it. Where the points are not quite the nearest ones, for want of precision, the
/// extent is less, never more.
template <class L>
COHORT_LANE typename L::M round_near(const GeomRecord& g1, const GeomRecord& g2, typename L::Ptr rot1,
                                     typename L::Ptr rot2, float reach, const typename L::V* d) {
  using V = typename L::V;
  const V h1(g1.size[1]), h2(g2.size[1]);
  const V a1[3] = {rot1[2], rot1[5], rot1[8]}, a2[3] = {rot2[2], rot2[5], rot2[8]};
  const V u = dot3(a1, d), v = dot3(a2, d), e = dot3(a1, a2);
  V s1 = clip(fma(-e, v, u) / max(fma(-e, e, V(1.0f)), V(1e-6f)), -h1, h1);
  const V s2 = clip(fma(s1, e, -v), -h2, h2);
  s1 = clip(fma(s2, e, u), -h1, h1);
  V n[3];
  for (int i = 0; i < 3; ++i) n[i] = fma(-s1, a1[i], fma(s2, a2[i], d[i]));
  const V apart = dot3(n, d) - h1 * abs(dot3(n, a1)) - h2 * abs(dot3(n, a2));
  // Rounding is a tenth of what is added.
  const V touch(g1.size[0] + g2.size[0] + reach + 1e-5f * (g1.radius + g2.radius));
  return flip((apart > V(0.0f)) & (apart * apart > touch * touch * dot3(n, n)));
}

/// Boxes around the geoms of each tree, as their bounding spheres are.
template <class L>
COHORT_KERNEL void tree_boxes(const ModelView& m, Constraints<L>& c) {
  using V = typename L::V;
  for (int b = 0; b < m.nbody; ++b) {
    if (m.body[b].root != b) continue;
    const auto box = c.tree_box + 6 * b;
    for (int i = 0; i < 3; ++i) box[i] = V(kFarApart), box[3 + i] = V(-kFarApart);
  }
  for (int k = 0; k < m.ngeom; ++k) {
    const GeomRecord& g = m.geom[k];
    if (g.body < 0) continue;
    const auto box = c.tree_box + 6 * m.body[g.body].root, pos = c.geom_pos + 3 * k;
    for (int i = 0; i < 3; ++i) {
      box[i] = min(V(box[i]), pos[i] - V(g.radius));
      box[3 + i] = max(V(box[3 + i]), pos[i] + V(g.radius));
    }
  }
}

/// Lanes where the body of a run may be near some geom of its tree. b: the run's first pair; shift: from the tree's
/// reference point to that of the body's.
template <class L>
COHORT_LANE typename L::M run_near(const Constraints<L>& c, const PairBoundRecord& b, const typename L::V* shift) {
  using V = typename L::V;
  const bool swapped = b.root1 > b.root2;
  const auto pos = c.geom_pos + 3 * (swapped ? b.geom2 : b.geom1);
  const auto box = c.tree_box + 6 * (swapped ? b.root1 : b.root2);
  V out[3];
  for (int i = 0; i < 3; ++i) {
    const V x = pos[i] - shift[i];
    out[i] = x - clip(x, V(box[i]), V(box[3 + i]));
  }
  return dot3(out, out) < V(b.run_bound * b.run_bound);
}

/// Bit k: the bounding spheres of pair `first` + k are near in some lane, or it is a plane's.
template <class L>
COHORT_KERNEL unsigned long long near_spheres(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                              int first, int count) {
  using V = typename L::V;
  const unsigned live = lane_bits(c.live);
  const PairBoundRecord* const bound = m.pair_bound + first;
  unsigned long long found = 0;
  // Without a branch on what is found, which would be predicted badly.
  const auto look = [&](int k, const V* d) {
    found |= static_cast<unsigned long long>((lane_bits(spheres_near<L>(bound[k], d)) & live) != 0) << k;
  };
  for (int k = 0; k < count;) {
    const PairBoundRecord& b = bound[k];
    const int end = k + b.run < count ? k + b.run : count;
    V d[3];
    if (b.look == kLookAtPlane) {
      for (; k < end; ++k) found |= 1ull << k;
    } else if (b.root1 == b.root2) {
      for (; k < end; ++k) {
        between<L>(c, bound[k], d);
        look(k, d);
      }
    } else {
      const int low = b.root1 < b.root2 ? b.root1 : b.root2, high = b.root1 < b.root2 ? b.root2 : b.root1;
      V shift[2][3];  // of pairs whose first geom is of tree `low`, and of the others
      tree_shift<L>(w, low, high, shift[0]);
      for (int i = 0; i < 3; ++i) shift[1][i] = -shift[0][i];
      if (b.run_bound > 0 && (lane_bits(run_near<L>(c, b, shift[0])) & live) == 0) k = end;
      for (; k < end; ++k) {
        between<L>(c, bound[k], shift[bound[k].root1 == low ? 0 : 1], d);
        look(k, d);
      }
    }
  }
  return found;
}

/// Of the pairs `found` by near_spheres those that a second look leaves near.
template <class L>
COHORT_KERNEL unsigned long long near_shapes(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                             int first, unsigned long long found) {
  using V = typename L::V;
  const unsigned live = lane_bits(c.live);
  unsigned long long still = 0;
  for (unsigned long long left = found; left != 0; left &= left - 1) {
    const int k = lowest_bit(left);
    const PairBoundRecord& b = m.pair_bound[first + k];
    V d[3];
    if (b.root1 == b.root2) {
      between<L>(c, b, d);
    } else {
      V shift[3];
      tree_shift<L>(w, b.root1, b.root2, shift);
      between<L>(c, b, shift, d);
    }
    const auto rot1 = c.geom_rot + 9 * b.geom1, rot2 = c.geom_rot + 9 * b.geom2;
    unsigned near = live;
    if (b.look == kLookAtPlane) {
      V height;
      near &= lane_bits(plane_near<L>(b, rot1, d, height));
    } else if (b.look == kLookAtRound) {
      near &=
          lane_bits(spheres_near<L>(b, d) & round_near<L>(m.geom[b.geom1], m.geom[b.geom2], rot1, rot2, b.reach, d));
    }
    still |= static_cast<unsigned long long>(near != 0) << k;
  }
  return still;
}

}  // namespace cohort::sim
