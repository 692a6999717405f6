/// Which contacts of a pair are kept where more are found than kept: the deepest one; in each of seven directions the
/// one whose force holds most against tipping over there, its depth times how far out it lies; and, where there is
/// place, those nearest to eight points further in. They enclose the largest part of the supporting area that so many
/// contacts can, a deep one counting for more than a shallow one. The choice does not depend on the order in which the
/// contacts were found.
#pragma once
#include "sim/kernels/lane/lane.h"
#include "sim/kernels/lane/pair_kernels.h"

namespace cohort::sim {

/// Of contacts that are as deep but for this share, the one that lies farthest out in the first direction counts as the
/// deepest: flat parts have many, and rounding alone would choose among them, another one in every step.
inline constexpr float kAlikeDeep = 1e-3f;
/// Above the square of the distance of any contact from a point further in, in terms of the bounding radius.
inline constexpr float kFarthestInside = 2.25f;

/// Direction k of 1 to 7 in the plane that contacts spread over: sevenths of a turn from 0.2 rad on, so that none lies
/// along what is built at right angles. Entry 0: the direction that decides among the deepest. Entries from 8 on: points
/// further in, the middle and half a step from the directions.
COHORT_LANE float spread_x(int k) {
  const float x[kSpreadInside] = {0.5403023f,  0.9800666f,  0.4557356f, -0.4117736f, -0.9692089f, -0.7968101f,
                                  -0.0243971f, 0.7663875f,  0.0f,       0.3556163f,  0.0108884f,  -0.3420387f,
                                  -0.4374037f, -0.2033948f, 0.1837746f, 0.4325579f};
  return x[k];
}
COHORT_LANE float spread_y(int k) {
  const float y[kSpreadInside] = {0.8414710f,  0.1986693f,  0.8901152f,  0.9112862f, 0.2462401f, -0.6042298f,
                                  -0.9997023f, -0.6423786f, 0.0f,        0.2696678f, 0.4461672f, 0.2866936f,
                                  -0.0886661f, -0.3972584f, -0.4067070f, -0.1098969f};
  return y[k];
}

/// What a contact counts in place `k` of the kept ones. depth: m, not negative; x, y: from the shape's centre, in terms
/// of its bounding radius, in the plane that contacts spread over.
template <class V>
COHORT_LANE V spread_score(int k, V depth, V x, V y) {
  if (k < kSpreadKept) {
    const V along = fma(V(spread_x(k)), x, V(spread_y(k)) * y);
    return k == 0 ? fma(depth * V(kAlikeDeep), along, depth) : fma(depth, along, depth);
  }
  const V dx = x - V(spread_x(k)), dy = y - V(spread_y(k));
  return depth * (V(kFarthestInside) - fma(dx, dx, dy * dy));
}

/// The choice among the contacts of one pair, which come one by one and wait in kSpreadInside + 1 places of the
/// caller's. All are kept while there are no more than kSpreadInside; then those that the choice is for.
struct SpreadChoice {
  static constexpr int kPlaces = kSpreadInside + 1;
  int count;                   ///< contacts in places; -1: the choice has begun
  float score[kSpreadInside];  ///< of the best contact for each of the kept
  int place[kSpreadInside];    ///< where it is

  COHORT_LANE void clear() { count = 0; }
  COHORT_LANE bool choosing() const { return count < 0; }

  /// Where a contact goes that came after the others, or -1: it is not kept. seen(place, depth, x, y): how deep the
  /// contact in a place is, and where it lies, as spread_score takes them.
  template <class Seen>
  COHORT_LANE int offer(float depth, float x, float y, Seen seen) {
    if (count >= 0 && count < kSpreadInside) return count++;
    if (count >= 0) begin(seen);
    unsigned best = 0;  // a bit for each of the kept that it displaces
    for (int k = 0; k < kSpreadInside; ++k) {
      const float s = spread_score(k, depth, x, y);
      if (s > score[k]) score[k] = s, best |= 1u << k;
    }
    if (best == 0) return -1;
    unsigned used = 0;
    for (int k = 0; k < kSpreadInside; ++k) {
      if ((best >> k & 1u) == 0) used |= 1u << place[k];
    }
    int free = 0;
    while ((used >> free & 1u) != 0) ++free;
    for (int k = 0; k < kSpreadInside; ++k) {
      if ((best >> k & 1u) != 0) place[k] = free;
    }
    return free;
  }
  /// The places of the kept contacts, each once, to `list`; returns how many.
  COHORT_LANE int kept(int* list) const {
    int n = 0;
    if (!choosing()) {
      for (; n < count; ++n) list[n] = n;
      return n;
    }
    unsigned used = 0;
    for (int k = 0; k < kSpreadInside; ++k) {
      if ((used >> place[k] & 1u) == 0) list[n++] = place[k];
      used |= 1u << place[k];
    }
    return n;
  }

 private:
  template <class Seen>
  COHORT_LANE void begin(Seen seen) {
    count = -1;
    for (int k = 0; k < kSpreadInside; ++k) score[k] = -1.0f, place[k] = 0;
    for (int at = 0; at < kSpreadInside; ++at) {
      float depth, x, y;
      seen(at, depth, x, y);
      for (int k = 0; k < kSpreadInside; ++k) {
        const float s = spread_score(k, depth, x, y);
        if (s > score[k]) score[k] = s, place[k] = at;
      }
    }
  }
};

}  // namespace cohort::sim
