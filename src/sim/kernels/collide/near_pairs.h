/// Which pairs of geoms may touch in some environment of a block: most pairs end here. What is found here changes no
/// result, only who is looked at.
#pragma once
#include "sim/kernels/collide/collide.h"
#include "sim/kernels/collide/own_geoms.h"
#include "sim/kernels/lane/constraints.h"

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

/// d: between two places of two trees, each from the first to the second; shift: of their trees. Written out: compilers
/// make four addresses of a loop.
template <class L>
COHORT_LANE void between(typename L::Ptr from, typename L::Ptr to, const typename L::V* shift, typename L::V* d) {
  d[0] = to[0] - (from[0] - shift[0]);
  d[1] = to[1] - (from[1] - shift[1]);
  d[2] = to[2] - (from[2] - shift[2]);
}
/// The same in one tree.
template <class L>
COHORT_LANE void between(typename L::Ptr from, typename L::Ptr to, typename L::V* d) {
  d[0] = to[0] - from[0];
  d[1] = to[1] - from[1];
  d[2] = to[2] - from[2];
}
/// Whether the bounding spheres of a pair are near; square: of their bound.
template <class L>
COHORT_LANE typename L::M spheres_near(float square, const typename L::V* d) {
  return dot3(d, d) < typename L::V(square);
}

/// Whether a geom is near a plane whose orientation is `rot`; d: from the plane to the geom.
template <class L>
COHORT_LANE typename L::M plane_near(float bound, typename L::Ptr rot, const typename L::V* d, typename L::V& height) {
  height = fma(typename L::V(rot[8]), d[2], fma(typename L::V(rot[5]), d[1], rot[2] * d[0]));
  return height < typename L::V(bound);
}

/// What round_near takes for the distance where two spheres or capsules touch. Rounding is a tenth of what is added.
COHORT_LANE float round_touch(const GeomRecord& g1, const GeomRecord& g2, float reach) {
  return g1.size[0] + g2.size[0] + reach + 1e-5f * (g1.radius + g2.radius);
}

/// Whether two spheres or capsules of half lengths h1 and h2 are near; square: of round_touch. n between the nearest
/// points of their segments is an axis that separates the segments by their extent along it. Where the points are not
/// quite the nearest ones, for want of precision, the extent is less, never more.
template <class L>
COHORT_LANE typename L::M round_near(float half1, float half2, float square, typename L::Ptr rot1, typename L::Ptr rot2,
                                     const typename L::V* d) {
  using V = typename L::V;
  const V h1(half1), h2(half2);
  const V a1[3] = {rot1[2], rot1[5], rot1[8]}, a2[3] = {rot2[2], rot2[5], rot2[8]};
  const V u = dot3(a1, d), v = dot3(a2, d), e = dot3(a1, a2);
  V s1 = clip(fma(-e, v, u) / max(fma(-e, e, V(1.0f)), V(1e-6f)), -h1, h1);
  const V s2 = clip(fma(s1, e, -v), -h2, h2);
  s1 = clip(fma(s2, e, u), -h1, h1);
  V n[3];
  for (int i = 0; i < 3; ++i) n[i] = fma(-s1, a1[i], fma(s2, a2[i], d[i]));
  const V apart = dot3(n, d) - h1 * abs(dot3(n, a1)) - h2 * abs(dot3(n, a2));
  return flip((apart > V(0.0f)) & (apart * apart > V(square) * dot3(n, n)));
}

/// Lanes where the body of a run may be near some geom of the run's second tree. shift: of the trees.
template <class L>
COHORT_LANE typename L::M run_near(const Constraints<L>& c, const PairRunRecord& run, const typename L::V* shift) {
  using V = typename L::V;
  const auto pos = c.geom_pos + 3 * run.geom, box = c.tree_box + 6 * run.high;
  V out[3];
  for (int i = 0; i < 3; ++i) {
    const V x = pos[i] - shift[i];
    out[i] = x - clip(x, V(box[i]), V(box[3 + i]));
  }
  return dot3(out, out) < V(run.bound * run.bound);
}

/// Bit k: the pair `first` + k of a run of `count` may touch in some lane: its bounding spheres are near, and what its
/// PairLook says finds no gap. lanes: where, of each of these; a single lane needs none. between_geoms(pair, d): from
/// the pair's first geom to its second.
template <class L, class Between>
COHORT_LANE unsigned long long near_in_run(const ModelView& m, const Constraints<L>& c, int first, int count,
                                           typename L::M* lanes, Between between_geoms) {
  using V = typename L::V;
  const PairSpheresRecord* const pair = m.pair_spheres + first;
  const auto live = c.live;
  const unsigned live_bits = lane_bits(live);
  const auto geom_rot = c.geom_rot;
  V d[3];
  // From the last to the first, without a branch on what is found, which would be predicted badly.
  unsigned long long found = 0, still = 0;
  for (int k = count; k-- > 0;) {
    between_geoms(pair[k], d);
    found = 2 * found + ((lane_bits(spheres_near<L>(pair[k].square, d)) & live_bits) != 0 ? 1 : 0);
  }
  for (unsigned long long left = found; left != 0; left &= left - 1) {
    const int k = lowest_bit(left);
    const PairBoundRecord& b = m.pair_bound[first + k];
    between_geoms(pair[k], d);
    auto near = live & spheres_near<L>(pair[k].square, d);
    if (b.look == kLookAtRound) {
      near = near & round_near<L>(b.half_low, b.half_high, b.touch_square, geom_rot + 3 * pair[k].low,
                                  geom_rot + 3 * pair[k].high, d);
    }
    if constexpr (L::kWidth > 1) lanes[k] = near;
    still |= static_cast<unsigned long long>(any(near)) << k;
  }
  return still;
}

/// near_pairs() where environments have geoms of their own: bounds of runs and of round shapes are the model's, and count
/// for nothing.
template <class L>
COHORT_KERNEL unsigned long long own_near_pairs(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                                int window, typename L::M* lanes) {
  using V = typename L::V;
  unsigned long long near = 0;
  for (int r = m.pair_window[window]; r < m.pair_window[window + 1]; ++r) {
    const PairRunRecord& run = m.pair_run[r];
    const int at = run.first % kPairsAtOnce;
    typename L::M* const own = L::kWidth > 1 ? lanes + at : lanes;
    V shift[3];
    tree_shift<L>(w, run.low, run.high, shift);
    for (int k = 0; k < run.count; ++k) {
      const PairSpheresRecord& pair = m.pair_spheres[run.first + k];
      const PairBoundRecord& b = m.pair_bound[run.first + k];
      const V bound = V(b.reach) + own_radius<L>(w, b.geom1) + own_radius<L>(w, b.geom2);
      V d[3], height;
      between<L>(c.geom_pos + pair.low, c.geom_pos + pair.high, shift, d);
      auto some = c.live;
      if (run.look == kLookAtPlane) {
        for (int i = 0; i < 3 && b.root1 > b.root2; ++i) d[i] = -d[i];
        (void)plane_near<L>(0.0f, c.geom_rot + 9 * b.geom1, d, height);
        some = some & (height < bound);
      } else {
        some = some & (dot3(d, d) < bound * bound);
      }
      if constexpr (L::kWidth > 1) own[k] = some;
      near |= static_cast<unsigned long long>(any(some)) << (at + k);
    }
  }
  return near;
}

/// Bit k: the window's pair k may touch in some lane. lanes: where, of each of these; a single lane needs none.
/// Reads w.origin, c.geom_pos, c.geom_rot, c.tree_box, c.live; writes `lanes`.
template <class L>
COHORT_KERNEL unsigned long long near_pairs(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                            int window, typename L::M* lanes) {
  using V = typename L::V;
  if (m.varies & kVariesGeoms) return own_near_pairs<L>(m, w, c, window, lanes);
  const auto geom_pos = c.geom_pos;
  unsigned long long near = 0;
  for (int r = m.pair_window[window]; r < m.pair_window[window + 1]; ++r) {
    const PairRunRecord& run = m.pair_run[r];
    const int at = run.first % kPairsAtOnce;
    typename L::M* const own = L::kWidth > 1 ? lanes + at : lanes;
    V shift[3];
    tree_shift<L>(w, run.low, run.high, shift);
    if (run.look == kLookAtPlane) {
      for (int k = 0; k < run.count; ++k) {
        const PairSpheresRecord& pair = m.pair_spheres[run.first + k];
        const PairBoundRecord& b = m.pair_bound[run.first + k];
        V d[3], height;
        between<L>(geom_pos + pair.low, geom_pos + pair.high, shift, d);
        for (int i = 0; i < 3 && b.root1 > b.root2; ++i) d[i] = -d[i];
        const auto some = c.live & plane_near<L>(b.bound, c.geom_rot + 9 * b.geom1, d, height);
        if constexpr (L::kWidth > 1) own[k] = some;
        near |= static_cast<unsigned long long>(any(some)) << (at + k);
      }
      continue;
    }
    if (run.low == run.high) {
      near |= near_in_run<L>(m, c, run.first, run.count, own,
                             [&](const PairSpheresRecord& pair, V* d) {
                               between<L>(geom_pos + pair.low, geom_pos + pair.high, d);
                             })
              << at;
      continue;
    }
    if (run.bound > 0 && !any(c.live & run_near<L>(c, run, shift))) continue;
    near |= near_in_run<L>(m, c, run.first, run.count, own,
                           [&](const PairSpheresRecord& pair, V* d) {
                             between<L>(geom_pos + pair.low, geom_pos + pair.high, shift, d);
                           })
            << at;
  }
  return near;
}

}  // namespace cohort::sim
