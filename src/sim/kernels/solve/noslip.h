/// The noslip solver: after the constraint solver, sweeps over the friction forces that take no account of the rows'
/// compliance, so that what is held by friction stops creeping (MuJoCo's documentation, "Computation: Noslip solver").
/// Normal forces stay. One visit of a friction loss minimizes 1/2 f' A f + f' b over its force, one of a pyramid's
/// opposing edges over what they share out, one of an elliptic cone over its tangential forces inside the cone, with
/// A = J M^-1 J' and b = J a0 - aref.
///
/// A is never made: with M = L' D L a row's s = D^-1/2 L'^-1 J' takes its chain of dofs only, products of two such are
/// entries of A, and y, the sum of them times their forces, makes the acceleration L^-1 D^-1/2 y.
#pragma once
#include "sim/kernels/solve/solver.h"

namespace cohort::sim {

/// Newton's steps for the multiplier of a cone's constraint; each comes from below, and most end after three.
inline constexpr int kConeSteps = 12;
/// A force this share outside of its cone is on it.
inline constexpr float kConeRounding = 1e-5f;
/// Tangential rows of a contact.
inline constexpr int kMostTangents = kMaxDim - 1;

/// What the sweeps are computed in: the solver's vectors, which nobody needs any more, and its lists.
template <class L>
struct SlipSpace {
  typename L::Ptr y;                   ///< (nv) D^-1/2 L'^-1 (smooth + J' f)
  typename L::Ptr row[kMostTangents];  ///< (nv) s of the rows at hand
  Items<L, int> chain;                 ///< dofs that they are not zero at, falling
  int length;
  Items<L, unsigned long long> bits;  ///< (words)

  COHORT_LANE explicit SlipSpace(SolverSpace<L>& s)
      : y(s.Ma), row{s.grad, s.search, s.Mv, s.grad_old, s.precond_old}, chain(s.cols), length(0), bits(s.bits) {}
};

/// The group's dofs and those that they hang on, to n.chain.
template <class L>
COHORT_LANE void find_chain(const ModelView& m, const Group& g, SlipSpace<L>& n) {
  using Word = unsigned long long;
  const int words = (m.nv + 63) / 64;
  for (int k = 0; k < words; ++k) n.bits[k] = 0;
  const int* dofs = m.row_dof + g.first_dof;
  for (int a = 0; a < g.dofs; ++a) n.bits[dofs[a] / 64] |= Word{1} << (dofs[a] % 64);
  n.length = 0;
  for (int k = words - 1; k >= 0; --k) {
    while (n.bits[k] != 0) {
      const int bit = highest_bit(n.bits[k]), i = 64 * k + bit;
      n.bits[k] &= ~(Word{1} << bit);
      n.chain[n.length++] = i;
      for (int e = m.pattern_start[i]; e < m.pattern_start[i + 1] - 1; ++e) {
        n.bits[m.pattern[e] / 64] |= Word{1} << (m.pattern[e] % 64);
      }
    }
  }
}

/// x := D^-1/2 L'^-1 x for the dofs of n.chain; kRows vectors at a time.
template <class L, int kRows>
COHORT_LANE void scale_chain(const ModelView& m, typename L::Ptr factor, const SlipSpace<L>& n,
                             const typename L::Ptr* x) {
  using V = typename L::V;
  for (int c = 0; c < n.length; ++c) {
    const int i = n.chain[c];
    const auto entries = factor + triangle(i, 0);
    V own[kRows];
    for (int s = 0; s < kRows; ++s) own[s] = x[s][i];
    for (int e = m.pattern_start[i]; e < m.pattern_start[i + 1] - 1; ++e) {
      const int j = m.pattern[e];
      const V l = -V(entries[j]);
      for (int s = 0; s < kRows; ++s) x[s][j] = fma(l, own[s], x[s][j]);
    }
    const V root = sqrt(V(entries[i]));
    for (int s = 0; s < kRows; ++s) x[s][i] = own[s] * root;
  }
}

/// kRows rows of the group's Jacobian from the first on, scaled, to n.row.
template <class L, int kRows>
COHORT_LANE void slip_rows(const ModelView& m, const Workspace<L>& w, const Group& g, typename L::Ptr piece, int first,
                           SlipSpace<L>& n) {
  using V = typename L::V;
  const int* dofs = m.row_dof + g.first_dof;
  for (int c = 0; c < n.length; ++c) {
    for (int s = 0; s < kRows; ++s) n.row[s][n.chain[c]] = V(0.0f);
  }
  for (int a = 0; a < g.dofs; ++a) {
    for (int s = 0; s < kRows; ++s) {
      const V sum = n.row[s][dofs[a]];
      n.row[s][dofs[a]] = sum + V(piece[(first + s) * g.dofs + a]);
    }
  }
  scale_chain<L, kRows>(m, w.factor, n, n.row);
}
template <class L>
COHORT_LANE typename L::V along_chain(const SlipSpace<L>& n, typename L::Ptr a, typename L::Ptr b) {
  typename L::V sum(0.0f);
  for (int c = 0; c < n.length; ++c) sum = fma(typename L::V(a[n.chain[c]]), b[n.chain[c]], sum);
  return sum;
}
/// n.y += a row times `force`.
template <class L>
COHORT_LANE void push_along(SlipSpace<L>& n, typename L::Ptr row, typename L::V force) {
  for (int c = 0; c < n.length; ++c) {
    const int i = n.chain[c];
    n.y[i] = fma(force, typename L::V(row[i]), n.y[i]);
  }
}

/// Rows whose forces are kept: piece[jar] stays what their forces follow from.
COHORT_LANE bool slips(const Group& g) {
  return g.kind == kGroupFriction || g.kind == kGroupPyramid || g.kind == kGroupElliptic;
}

/// piece[jar] of the groups that slip: from rows to forces. Returns 1/2 f' R f of all groups, which the first sweep
/// counts as gained.
/// Reads the groups; changes piece[jar].
template <class L>
COHORT_KERNEL typename L::V rows_to_forces(const Constraints<L>& c) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  V gained(0.0f);
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    const auto piece = c.pool + g.at;
    const auto jar = piece + g.layout.jar;
    const bool alike = weights_of(g.kind, g.dim) == 1;
    V force[kMaxEdges];
    if (g.kind == kGroupPyramid) {
      const V D = piece[g.layout.weight];
      for (int e = 0; e < g.edges; ++e) force[e] = select(jar[e] < zero, -(D * jar[e]), zero);
    } else {
      forces_of<L>(g, piece, force);
    }
    for (int e = 0; e < g.edges; ++e) {
      const V D = piece[g.layout.weight + (alike ? 0 : e)];
      const auto on = D > zero;
      gained = fma(half * force[e], force[e] / select(on, D, V(1.0f)), gained);
      if (slips(g)) jar[e] = select(on, force[e], zero);
    }
  }
  return gained;
}

/// The way back: rows that make these forces.
/// Reads the groups; changes piece[jar].
template <class L>
COHORT_KERNEL void forces_to_rows(const Constraints<L>& c) {
  using V = typename L::V;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (!slips(g)) continue;
    const auto piece = c.pool + g.at;
    const bool alike = weights_of(g.kind, g.dim) == 1;
    for (int e = 0; e < g.edges; ++e) {
      const V D = piece[g.layout.weight + (alike ? 0 : e)], f = piece[g.layout.jar + e];
      piece[g.layout.jar + e] = -(f / select(D > V(0.0f), D, V(1.0f)));
    }
  }
}

/// A friction loss.
/// Reads piece, w.factor; changes n, piece[jar]; returns the fall of the cost.
template <class L>
COHORT_LANE typename L::V visit_loss(const ModelView& m, const Workspace<L>& w, const Group& g, typename L::Ptr piece,
                                     SlipSpace<L>& n, typename L::M live) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  slip_rows<L, 1>(m, w, g, piece, 0, n);
  const V residual = along_chain<L>(n, n.row[0], n.y) - V(piece[g.layout.aref]);
  const V A = max(along_chain<L>(n, n.row[0], n.row[0]), V(1e-15f));
  const V force = piece[g.layout.jar], loss = loss_of<L>(g, piece);
  const auto on = live & (V(piece[g.layout.weight]) > zero);
  const V change = select(on, clip(force - residual / A, -loss, loss) - force, zero);
  piece[g.layout.jar] = force + change;
  push_along<L>(n, n.row[0], change);
  return -(change * fma(half * A, change, residual));
}

/// A pyramid, one pair of opposing edges after the other.
template <class L>
COHORT_LANE typename L::V visit_pyramid(const ModelView& m, const Workspace<L>& w, const Group& g,
                                        typename L::Ptr piece, SlipSpace<L>& n, typename L::M live) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const auto on = live & (V(piece[g.layout.weight]) > zero);
  V fall(0.0f);
  for (int k = 1; k < g.dim; ++k) {
    const auto force = piece + (g.layout.jar + 2 * k - 2), aref = piece + (g.layout.aref + 2 * k - 2);
    slip_rows<L, 1>(m, w, g, piece, k, n);
    // Forces of mid +- y: the edges' difference is twice the friction times the tangent.
    const V twice = V(2.0f) * friction_of<L>(g, piece, k - 1);
    const V residual = fma(twice, along_chain<L>(n, n.row[0], n.y), V(aref[1]) - V(aref[0]));
    const V A = twice * twice * along_chain<L>(n, n.row[0], n.row[0]);
    const V mid = half * (V(force[0]) + V(force[1])), y = half * (V(force[0]) - V(force[1]));
    const auto moves = A > V(1e-15f);
    const V next = select(moves, clip(y - residual / max(A, V(1e-15f)), -mid, mid), zero);
    const V change = select(on, next - y, zero);
    force[0] = select(on, mid + next, force[0]);
    force[1] = select(on, mid - next, force[1]);
    push_along<L>(n, n.row[0], twice * change);
    fall -= change * fma(half * A, change, residual);
  }
  return fall;
}

/// u := where 1/2 u' A u + b' u is least within |u| <= radius, for the lanes of `on`; A: lower triangle, positive
/// semidefinite. The multiplier of the constraint by Newton's method on 1 / radius - 1 / |u| (More and Sorensen 1983),
/// from 0 up.
template <class L, int kSize>
COHORT_LANE void least_in_ball(const typename L::V (&A)[kSize][kSize], const typename L::V* b, typename L::V radius,
                               typename L::M on, typename L::V* u) {
  using V = typename L::V;
  const V zero(0.0f), one(1.0f), tiny(1e-30f);
  V multiplier(0.0f);
  auto open = on;
  for (int step = 0;; ++step) {
    V G[kSize][kSize], inverse[kSize], x[kSize], bent[kSize];
    for (int i = 0; i < kSize; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = i == j ? A[i][i] + multiplier : A[i][j];
        for (int k = 0; k < j; ++k) sum = fma(-G[i][k], G[j][k], sum);
        if (i == j) {
          // So that a direction in which nothing moves divides by something.
          inverse[i] = one / sqrt(max(sum, fma(A[i][i], V(1e-7f), tiny)));
        } else {
          G[i][j] = sum * inverse[j];
        }
      }
    }
    for (int i = 0; i < kSize; ++i) {
      V sum = -b[i];
      for (int k = 0; k < i; ++k) sum = fma(-G[i][k], x[k], sum);
      x[i] = sum * inverse[i];
    }
    V squared(0.0f);
    for (int i = kSize - 1; i >= 0; --i) {
      V sum = x[i];
      for (int k = i + 1; k < kSize; ++k) sum = fma(-G[k][i], x[k], sum);
      x[i] = sum * inverse[i];
      squared = fma(x[i], x[i], squared);
    }
    for (int i = 0; i < kSize; ++i) u[i] = select(open, x[i], u[i]);
    const V length = sqrt(squared);
    open = open & (length > radius * V(1.0f + kConeRounding));
    if (step == kConeSteps || !any(open)) break;
    V bend(0.0f);
    for (int i = 0; i < kSize; ++i) {
      V sum = x[i];
      for (int k = 0; k < i; ++k) sum = fma(-G[i][k], bent[k], sum);
      bent[i] = sum * inverse[i];
      bend = fma(bent[i], bent[i], bend);
    }
    const V rise = squared / max(bend, tiny) * ((length - radius) / max(radius, tiny));
    multiplier = select(open, multiplier + rise, multiplier);
  }
  V squared(0.0f);
  for (int i = 0; i < kSize; ++i) squared = fma(u[i], u[i], squared);
  const V length = sqrt(squared);
  const V scale = select(length > radius, radius / max(length, tiny), one);
  for (int i = 0; i < kSize; ++i) u[i] = select(on, u[i] * scale, zero);
}

/// An elliptic cone of 1 + kTangents rows.
template <class L, int kTangents>
COHORT_LANE typename L::V visit_cone(const ModelView& m, const Workspace<L>& w, const Group& g, typename L::Ptr piece,
                                     SlipSpace<L>& n, typename L::M live) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const auto force = piece + g.layout.jar;
  const V normal = force[0];
  const auto on = live & (V(piece[g.layout.weight]) > zero);
  const auto pressed = on & (normal > V(1e-15f));
  slip_rows<L, kTangents>(m, w, g, piece, 1, n);
  // In the coordinates in which the cone is a ball: forces by their friction.
  V A[kTangents][kTangents], b[kTangents], residual[kTangents], friction[kTangents], before[kTangents], u[kTangents];
  for (int i = 0; i < kTangents; ++i) {
    friction[i] = friction_of<L>(g, piece, i);
    residual[i] = friction[i] * (along_chain<L>(n, n.row[i], n.y) - V(piece[g.layout.aref + 1 + i]));
    before[i] = V(force[1 + i]) / friction[i];
    u[i] = zero;
    for (int j = 0; j <= i; ++j) A[i][j] = friction[i] * friction[j] * along_chain<L>(n, n.row[i], n.row[j]);
  }
  const auto times_A = [&](const V* x, int i) {
    V sum(0.0f);
    for (int j = 0; j < kTangents; ++j) sum = fma(j <= i ? A[i][j] : A[j][i], x[j], sum);
    return sum;
  };
  for (int i = 0; i < kTangents; ++i) b[i] = residual[i] - times_A(before, i);
  least_in_ball<L, kTangents>(A, b, normal, pressed, u);
  V step[kTangents], fall(0.0f);
  for (int i = 0; i < kTangents; ++i) step[i] = select(on, u[i] - before[i], zero);
  for (int i = 0; i < kTangents; ++i) {
    const V change = step[i] * friction[i];
    fall = fma(-step[i], fma(half, times_A(step, i), residual[i]), fall);
    force[1 + i] = force[1 + i] + change;
    push_along<L>(n, n.row[i], change);
  }
  return fall;
}

/// From the solver's w.qacc and rows to those that the friction forces without slip make, in the lanes that have rows.
/// solved: lanes whose constraints were solved to the tolerance; their forces are M qacc, since what their rows say of
/// them has lost digits.
/// Reads w.mass, w.smooth, w.factor, the groups; changes w.qacc, piece[jar]; writes w.constraint; uses s.
template <class L>
COHORT_KERNEL void remove_slip(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                               typename L::M solved) {
  using V = typename L::V;
  const V zero(0.0f), scale = solver_scale<L>(m, w), tolerance(m.option.noslip_tolerance);
  const Pattern<L> p{m.pattern, m.pattern_start};
  constraint_forces<L>(m, w, c, s, c.constrained);
  multiply_symmetric<L>(m.nv, p, w.mass, w.qacc, s.Mv);
  SlipSpace<L> n(s);
  n.length = m.nv;
  for (int d = 0; d < m.nv; ++d) {
    n.y[d] = select(solved, s.Mv[d], w.smooth[d] + w.constraint[d]);
    n.chain[d] = m.nv - 1 - d;
  }
  scale_chain<L, 1>(m, w.factor, n, &n.y);
  V improvement = rows_to_forces<L>(c);
  auto live = c.constrained;
  for (int i = 0; i < m.option.noslip_iterations && any(live); ++i) {
    const unsigned bits = lane_bits(live);
    for (int k = 0; k < c.count; ++k) {
      const Group& g = c.group[k];
      if (!slips(g) || (g.lanes & bits) == 0) continue;
      const auto piece = c.pool + g.at;
      find_chain<L>(m, g, n);
      if (g.kind == kGroupFriction) {
        improvement += visit_loss<L>(m, w, g, piece, n, live);
      } else if (g.kind == kGroupPyramid) {
        improvement += visit_pyramid<L>(m, w, g, piece, n, live);
      } else if (g.dim == 3) {
        improvement += visit_cone<L, 2>(m, w, g, piece, n, live);
      } else if (g.dim == 4) {
        improvement += visit_cone<L, 3>(m, w, g, piece, n, live);
      } else {
        improvement += visit_cone<L, 5>(m, w, g, piece, n, live);
      }
    }
    live = live & (improvement * scale >= tolerance);
    improvement = zero;
  }
  forces_to_rows<L>(c);
  // L^-1 D^-1/2 y.
  const auto acceleration = s.grad;
  for (int i = 0; i < m.nv; ++i) {
    const auto entries = w.factor + triangle(i, 0);
    V sum = n.y[i] * sqrt(V(entries[i]));
    for (int e = m.pattern_start[i]; e < m.pattern_start[i + 1] - 1; ++e) {
      sum = fma(-V(entries[m.pattern[e]]), V(acceleration[m.pattern[e]]), sum);
    }
    acceleration[i] = sum;
    w.qacc[i] = select(c.constrained, sum, w.qacc[i]);
  }
  multiply_symmetric<L>(m.nv, p, w.mass, acceleration, s.Mv);
  for (int d = 0; d < m.nv; ++d) w.constraint[d] = select(c.constrained, s.Mv[d] - w.smooth[d], w.constraint[d]);
}

}  // namespace cohort::sim
