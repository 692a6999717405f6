/// A convex polygon in each lane, and what half planes leave of it (Sutherland and Hodgman 1974). Lanes have different
/// numbers of corners: a polygon is a ring of slots, as many as the fullest lane needs, of which some repeat a corner
/// beside them. A cut then moves every lane's slots alike, by at most one.
#pragma once
#include "sim/kernels/lane/lane.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::sim {

template <class L>
struct LanePolygon {
  using V = typename L::V;
  using M = typename L::M;
  static constexpr int kMostSlots = 2 * kMostLaneCorners;
  V at[3][kMostSlots];   ///< m; the third is carried along
  V corner[kMostSlots];  ///< 1: a corner, 0: repeats one
  V start = V(0.0f);     ///< slot of the corner that is named first
  int slots = 0;

  COHORT_LANE void add(V x, V y, V z, M is_corner) {
    at[0][slots] = x, at[1][slots] = y, at[2][slots] = z;
    corner[slots++] = select(is_corner, V(1.0f), V(0.0f));
  }

  /// Keeps, of `lanes`, what lies at a x + b y >= offset - slack. The corners are named from the one after the first
  /// on, as a loop over the sides that writes down what it finds names them.
  COHORT_LANE void clip(V a, V b, V offset, V slack, M lanes) {
    M in[kMostSlots];
    const int count = slots;
    const V shifted = halve(a, b, offset, slack, lanes, in);
    next_start(in, count, shifted, lanes);
  }
  /// The same where names do not matter.
  COHORT_LANE void clip_in_any_order(V a, V b, V offset, V slack, M lanes) {
    M in[kMostSlots];
    (void)halve(a, b, offset, slack, lanes, in);
  }

 private:
  /// Keeps one side; in: whether the slots before were on it. Returns 1 where the first corner's slot moved up.
  COHORT_KERNEL V halve(V a, V b, V offset, V slack, M lanes, M* in) {
    const V zero(0.0f), one(1.0f);
    V over[kMostSlots], leaves[3], enters[3];
    M out_somewhere = lanes & (zero > one);
    for (int i = 0; i < slots; ++i) {
      over[i] = fma(a, at[0][i], b * at[1][i]) - offset;
      in[i] = flip(lanes) | (over[i] >= -slack);
      out_somewhere = out_somewhere | flip(in[i]);
    }
    if (!any(out_somewhere)) return zero;
    for (int k = 0; k < 3; ++k) leaves[k] = enters[k] = zero;
    for (int i = 0; i < slots; ++i) {
      const int before = i == 0 ? slots - 1 : i - 1;
      const M leave = in[before] & flip(in[i]), enter = in[i] & flip(in[before]), crosses = leave | enter;
      if (!any(crosses)) continue;
      const V share = sim::clip(over[before] / select(crosses, over[before] - over[i], one), zero, one);
      for (int k = 0; k < 3; ++k) {
        const V x = fma(share, at[k][i] - at[k][before], at[k][before]);
        leaves[k] = select(leave, x, leaves[k]);
        enters[k] = select(enter, x, enters[k]);
      }
    }
    return cut(in, leaves, enters);
  }

  /// Puts where the border is left before the first slot outside, and where it is entered into all slots outside, of
  /// which the last one counts. Returns 1 where the first corner's slot moved up.
  COHORT_LANE V cut(M* in, const V* leaves, const V* enters) {
    const V zero(0.0f), one(1.0f);
    M passed = zero > one, in_before = in[slots - 1];
    V before[3] = {zero, zero, zero}, corner_before = zero, shifted = zero;
    for (int i = 0; i < slots; ++i) {
      const M inside = in[i], after = in[i + 1 == slots ? 0 : i + 1];
      const M leave = in_before & flip(inside);
      const V own_corner = select(inside, corner[i], select(after, one, zero));
      for (int k = 0; k < 3; ++k) {
        const V own = select(inside, at[k][i], enters[k]);
        at[k][i] = select(passed, before[k], select(leave, leaves[k], own));
        before[k] = own;
      }
      corner[i] = select(passed, corner_before, select(leave, one, own_corner));
      corner_before = own_corner;
      passed = passed | leave;
      const M moved = passed & (start == V(static_cast<float>(i)));
      shifted = select(moved, one, shifted);
      in_before = inside;
    }
    if (any(passed)) {
      for (int k = 0; k < 3; ++k) at[k][slots] = before[k];
      corner[slots] = select(passed, corner_before, zero);
      ++slots;
    }
    return shifted;
  }

  /// in: of the `count` slots before the cut.
  COHORT_LANE void next_start(const M* in, int count, V shifted, M lanes) {
    const V zero(0.0f), one(1.0f);
    V from = start + shifted;
    for (int i = 0; i < count; ++i) {
      const M here = in[i] & (start == V(static_cast<float>(i)));
      from = select(here, start + shifted + one, from);
    }
    V first = zero, behind = V(-1.0f);
    for (int i = slots - 1; i >= 0; --i) {
      const V here(static_cast<float>(i));
      const M is_corner = corner[i] > zero, next = is_corner & (here >= from);
      first = select(is_corner, here, first);
      behind = select(next, here, behind);
    }
    start = select(lanes, select(behind >= zero, behind, first), start);
  }
};

}  // namespace cohort::sim
