/// The constraint solver: minimizes over accelerations a
///   1/2 (a - a0)' M (a - a0) + sum over constraints of s(J a - aref)
/// by Newton's method or conjugate gradients, with MuJoCo's costs, termination and warm start (MuJoCo's documentation,
/// "Constraint solver"; Todorov 2014). Lanes run together; one that has converged keeps its numbers while the others go
/// on, and a group that weighs nothing in any lane that goes on is left out: it would add zeros.
///
/// Where single precision forces a difference: the line search ends when the slope has fallen to kSlopeTolerance of its
/// start, if MuJoCo's own tolerance lies below; costs enter as differences along the search only.
#pragma once
#include "sim/kernels/factor.h"
#include "sim/kernels/rows.h"

namespace cohort::sim {

/// The step length is then right to about this relative error, and the cost to its square.
inline constexpr float kSlopeTolerance = 1e-4f;

/// Workspace of the solver (nv each, hessian: triangle).
template <class L>
struct SolverSpace {
  typename L::Ptr Ma, grad, search, Mv, hessian, grad_old, precond, precond_old;
  int* cols;                 ///< nv (nv + 1) / 2
  int* start;                ///< nv + 1
  unsigned long long* bits;  ///< nv * words
};

/// What one group does at a point: forces of its rows and, for Newton, second derivatives, both in the Jacobian's rows.
template <class V>
struct GroupResponse {
  V force[kMaxDim];
  V weight[kMaxDim * kMaxDim];  ///< symmetric, lower triangle filled: [r * dim + c], c <= r
};

/// Forces and second derivatives at the group's present rows (piece[jar]).
template <class L>
COHORT_LANE void respond(const Group& g, typename L::Ptr piece, GroupResponse<typename L::V>& out) {
  using V = typename L::V;
  const V zero(0.0f);
  const GroupLayout l = layout_of(g);
  const auto jar = piece + l.jar;
  const int dim = g.dim;
  for (int i = 0; i < dim * dim; ++i) out.weight[i] = zero;
  const V D = piece[l.weight];
  if (g.kind == kGroupEquality) {
    for (int i = 0; i < dim; ++i) {
      const V Di = piece[l.weight + i];
      out.force[i] = -(Di * jar[i]);
      out.weight[i * dim + i] = Di;
    }
  } else if (g.kind == kGroupInequality) {
    const auto active = jar[0] < zero;
    out.force[0] = select(active, -(D * jar[0]), zero);
    out.weight[0] = select(active, D, zero);
  } else if (g.kind == kGroupFriction) {
    const V loss(g.loss), f = -(D * jar[0]);
    const auto high = f >= loss, low = f <= -loss;
    out.force[0] = select(high, loss, select(low, -loss, f));
    out.weight[0] = select(high | low, zero, D);
  } else if (g.kind == kGroupPyramid) {
    out.force[0] = zero;
    for (int k = 1; k < dim; ++k) {
      const V mu = friction_of<L>(g, piece, k - 1);
      const V w1 = select(jar[2 * k - 2] < zero, D, zero), w2 = select(jar[2 * k - 1] < zero, D, zero);
      const V f1 = -(w1 * jar[2 * k - 2]), f2 = -(w2 * jar[2 * k - 1]);
      out.force[0] = out.force[0] + (f1 + f2);
      out.force[k] = mu * (f1 - f2);
      out.weight[0] = out.weight[0] + (w1 + w2);
      out.weight[k * dim] = mu * (w1 - w2);
      out.weight[k * dim + k] = mu * mu * (w1 + w2);
    }
  } else {
    // Elliptic cone, in coordinates U = (mu jar_0, friction_k jar_k) where it is circular with slope mu.
    const V mu = mu_of<L>(g, piece), one(1.0f);
    V U[kMaxDim];
    V TT = zero;
    for (int k = 1; k < dim; ++k) {
      U[k] = jar[k] * friction_of<L>(g, piece, k - 1);
      TT = fma(U[k], U[k], TT);
    }
    const V N = mu * jar[0], T = sqrt(TT);
    const auto flat = T <= zero;
    const auto top = (N >= mu * T) | (flat & (N >= zero));
    const auto bottom = flip(top) & ((fma(mu, N, T) <= zero) | flat);
    const auto middle = flip(top) & flip(bottom) & (D > zero);
    // In the middle N / T lies between -1 / mu and mu, so that only directions have to be kept from dividing by
    // nothing.
    const V inverse = one / max(T, V(1e-12f));
    for (int k = 1; k < dim; ++k) U[k] = U[k] * inverse;
    const V Dm = D * cone_share<L>(g, piece);
    const V middle0 = -(Dm * fma(-mu, T, N) * mu);
    out.force[0] = select(middle, middle0, select(bottom, -(D * jar[0]), zero));
    out.weight[0] = select(middle, Dm * mu * mu, select(bottom, D, zero));
    const V a = mu * (N * inverse), b = fma(mu, mu, -a);
    for (int k = 1; k < dim; ++k) {
      const V fk = friction_of<L>(g, piece, k - 1), Dk = piece[l.weight + k];
      out.force[k] = select(middle, -(middle0 * U[k] * fk), select(bottom, -(Dk * jar[k]), zero));
      out.weight[k * dim] = select(middle, -(Dm * mu * mu * fk * U[k]), zero);
      for (int j = 1; j < k; ++j) {
        out.weight[k * dim + j] = select(middle, Dm * fk * friction_of<L>(g, piece, j - 1) * (a * U[j] * U[k]), zero);
      }
      out.weight[k * dim + k] = select(middle, Dm * fk * fk * fma(a * U[k], U[k], b), select(bottom, Dk, zero));
    }
  }
}

/// Cost of a group's rows at x = jar + alpha jv, minus the cost at jar where `shifted`; first and second derivative by
/// alpha.
template <class L>
COHORT_KERNEL void group_cost(const Group& g, typename L::Ptr piece, typename L::V alpha, bool shifted,
                              typename L::V& cost, typename L::V& d1, typename L::V& d2) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const GroupLayout l = layout_of(g);
  const auto jar = piece + l.jar, jv = piece + l.jv;
  if (g.kind == kGroupElliptic) {
    const V D = piece[l.weight];
    const V mu = mu_of<L>(g, piece), one(1.0f);
    const V Dm = D * cone_share<L>(g, piece);
    V UU = zero, UV = zero, VV = zero, quad1 = D * jar[0] * jv[0], quad2 = D * jv[0] * jv[0],
      quad0 = D * jar[0] * jar[0];
    for (int k = 1; k < g.dim; ++k) {
      const V f = friction_of<L>(g, piece, k - 1), Dk = piece[l.weight + k];
      const V u = jar[k] * f, v = jv[k] * f;
      UU = fma(u, u, UU), UV = fma(u, v, UV), VV = fma(v, v, VV);
      quad0 = fma(Dk * jar[k], jar[k], quad0), quad1 = fma(Dk * jar[k], jv[k], quad1),
      quad2 = fma(Dk * jv[k], jv[k], quad2);
    }
    const V U0 = mu * jar[0], V0 = mu * jv[0];
    const V delta = alpha * fma(alpha, VV, V(2.0f) * UV);
    const V TT = max(UU + delta, zero);
    const V T = sqrt(TT), T0 = sqrt(UU), N = fma(alpha, V0, U0);
    const auto zone = [&](V n, V t, auto& top, auto& bottom) {
      const auto flat = t <= zero;
      top = (n >= mu * t) | (flat & (n >= zero));
      bottom = flip(top) & ((fma(mu, n, t) <= zero) | flat);
    };
    typename L::M top, bottom, top0, bottom0;
    zone(N, T, top, bottom);
    zone(U0, T0, top0, bottom0);
    const auto weighs = D > zero;
    const auto middle = flip(top) & flip(bottom) & weighs, middle0 = flip(top0) & flip(bottom0) & weighs;
    const V r = fma(-mu, T, N), r0 = fma(-mu, T0, U0);
    const V line = alpha * fma(alpha * half, quad2, quad1);
    const V here = select(middle, half * Dm * r * r, select(bottom, fma(half, quad0, line), zero));
    const V start = select(middle0, half * Dm * r0 * r0, select(bottom0, half * quad0, zero));
    if (shifted) {
      const V dr = fma(alpha, V0, -(mu * (delta / select(T + T0 > zero, T + T0, one))));
      V dif = here - start;
      dif = select(middle & middle0, half * Dm * dr * fma(V(2.0f), r0, dr), dif);
      dif = select(bottom & bottom0, line, dif);
      cost += dif;
    } else {
      cost += here;
    }
    const V safe = max(T, V(1e-12f));
    const V T1 = fma(alpha, VV, UV) / safe;
    const V T2 = VV / safe - T1 * T1 / safe;
    const V slope = fma(-mu, T1, V0);
    d1 += select(middle, Dm * r * slope, select(bottom, fma(alpha, quad2, quad1), zero));
    d2 += select(middle, Dm * fma(slope, slope, -(r * mu * T2)), select(bottom, quad2, zero));
    return;
  }
  for (int e = 0; e < g.edges; ++e) {
    const V start = jar[e], v = jv[e], x = fma(alpha, v, start);
    const V D = piece[l.weight + (g.kind == kGroupEquality ? e : 0)];
    if (g.kind == kGroupFriction) {
      const V loss(g.loss);
      const V bound = loss / select(D > zero, D, V(1.0f));
      const auto inside = abs(x) < bound, inside0 = abs(start) < bound;
      const V here = select(inside, half * D * x * x, loss * (abs(x) - half * bound));
      const V before = select(inside0, half * D * start * start, loss * (abs(start) - half * bound));
      const auto up = x > zero, up0 = start > zero;
      const auto same_side = flip(inside) & flip(inside0) & ((up & up0) | (flip(up) & flip(up0)));
      if (shifted) {
        V dif = select(inside & inside0, half * D * (x - start) * (x + start), here - before);
        dif = select(same_side, loss * select(x > zero, x - start, start - x), dif);
        cost += dif;
      } else {
        cost += here;
      }
      d1 += v * select(inside, D * x, select(x > zero, loss, -loss));
      d2 += select(inside, D * v * v, zero);
      continue;
    }
    const bool equality = g.kind == kGroupEquality;
    const auto active = x < zero;
    const V w = equality ? D : select(active, D, zero);
    const V w0 = equality ? D : select(start < zero, D, zero);
    const V wx = w * x;
    if (shifted) {
      const auto both = (w > zero) & (w0 > zero);
      cost += select(both, half * D * (alpha * v) * (x + start), half * (wx * x - w0 * start * start));
    } else {
      cost += half * wx * x;
    }
    d1 = fma(wx, v, d1);
    d2 = fma(w * v, v, d2);
  }
}

/// J x, in the constraint's rows: less the reference acceleration to piece[jar] of every group, or to piece[jv] of
/// those that weigh in a lane of `live`.
template <class L>
COHORT_KERNEL void multiply_rows(const ModelView& m, Constraints<L>& c, typename L::Ptr x, bool subtract_reference,
                                 unsigned live = 0) {
  using V = typename L::V;
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (!subtract_reference && (g.lanes & live) == 0) continue;
    const auto piece = c.pool + g.at;
    const GroupLayout l = layout_of(g);
    V edges[kMaxEdges];
    edges_of<L>(m, g, piece, x, edges);
    for (int e = 0; e < g.edges; ++e) {
      if (subtract_reference) {
        piece[l.jar + e] = edges[e] - piece[l.aref + e];
      } else {
        piece[l.jv + e] = edges[e];
      }
    }
  }
}

/// Sum of the groups' costs at piece[jar].
template <class L>
COHORT_KERNEL typename L::V constraint_cost(Constraints<L>& c) {
  using V = typename L::V;
  V cost(0.0f), d1(0.0f), d2(0.0f);
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.lanes == 0) continue;
    const auto piece = c.pool + g.at;
    for (int e = 0; e < g.edges; ++e) piece[layout_of(g).jv + e] = V(0.0f);
    group_cost<L>(g, piece, V(0.0f), false, cost, d1, d2);
  }
  return cost;
}

/// Of a word that is not zero.
COHORT_LANE int highest_bit(unsigned long long word) {
#if defined(__CUDA_ARCH__)
  return 63 - __clzll(static_cast<long long>(word));
#else
  return 63 - __builtin_clzll(word);
#endif
}
COHORT_LANE int lowest_bit(unsigned long long word) {
#if defined(__CUDA_ARCH__)
  return __ffsll(static_cast<long long>(word)) - 1;
#else
  return __builtin_ctzll(word);
#endif
}

/// Groups across branches that weigh in a lane of `live`: what the Hessian's pattern is made from.
template <class L>
COHORT_LANE int groups_across(Constraints<L>& c, unsigned live) {
  int count = 0;
  for (int k = 0; k < c.count; ++k) count += !c.group[k].fits && (c.group[k].lanes & live) != 0;
  return count;
}

/// Columns of the Hessian's rows for the live lanes: the inertia matrix's, those that groups across branches need, and
/// the factor's fill-in.
template <class L>
COHORT_KERNEL Pattern hessian_pattern(const ModelView& m, Constraints<L>& c, SolverSpace<L>& s, unsigned live) {
  if (groups_across<L>(c, live) == 0) return {m.pattern, m.pattern_start};
  using Word = unsigned long long;
  const int words = (m.nv + 63) / 64;
  for (int i = 0; i < m.nv * words; ++i) s.bits[i] = 0;
  for (int i = 0; i < m.nv; ++i) {
    for (int k = m.pattern_start[i]; k < m.pattern_start[i + 1]; ++k) {
      s.bits[i * words + m.pattern[k] / 64] |= Word{1} << (m.pattern[k] % 64);
    }
  }
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.fits || (g.lanes & live) == 0) continue;
    for (int a = 0; a < g.dofs; ++a) {
      for (int b = 0; b < g.dofs; ++b) {
        const int i = m.row_dof[g.first_dof + a], j = m.row_dof[g.first_dof + b];
        if (j <= i) s.bits[i * words + j / 64] |= Word{1} << (j % 64);
      }
    }
  }
  // Eliminating row i couples all of its columns. It is enough to hand them to the last of these rows: which hands them
  // on (the elimination tree; Davis 2006, section 4.1).
  for (int i = m.nv - 1; i > 0; --i) {
    s.bits[i * words + i / 64] &= ~(Word{1} << (i % 64));
    int last = words - 1;
    while (last >= 0 && s.bits[i * words + last] == 0) --last;
    if (last < 0) continue;
    const int j = 64 * last + highest_bit(s.bits[i * words + last]);
    for (int k = 0; k <= last; ++k) s.bits[j * words + k] |= s.bits[i * words + k];
  }
  int used = 0;
  for (int i = 0; i < m.nv; ++i) {
    s.start[i] = used;
    for (int k = 0; k < words; ++k) {
      for (Word left = s.bits[i * words + k]; left != 0; left &= left - 1) s.cols[used++] = 64 * k + lowest_bit(left);
    }
    if (i > 0) s.cols[used++] = i;
  }
  s.start[m.nv] = used;
  return {s.cols, s.start};
}

/// total += J' force of a group with kDim rows.
template <class L, int kDim>
COHORT_LANE void add_forces(const Group& g, const int* dofs, typename L::Ptr jacobian, const typename L::V* force,
                            typename L::Ptr total) {
  using V = typename L::V;
  const int n = g.dofs;
  for (int a = 0; a < n; ++a) {
    V sum = total[dofs[a]];
    for (int i = 0; i < kDim; ++i) sum = fma(V(jacobian[i * n + a]), force[i], sum);
    total[dofs[a]] = sum;
  }
}

/// hessian += J' weight J of a group with kDim rows: one, or a pyramid's, which couple the normal with each tangent
/// only. Two rows of the Hessian at a time share what they read. Sums in add_any_curvature's order. kRising: the dofs
/// rise, as contacts' do.
template <class L, int kDim, bool kRising>
COHORT_LANE void add_curvature(const Group& g, const int* dofs, typename L::Ptr jacobian, const typename L::V* weight,
                               typename L::Ptr hessian) {
  using V = typename L::V;
  const V zero(0.0f);
  const int n = g.dofs;
  V W[kDim], diagonal[kDim];
  for (int i = 0; i < kDim; ++i) W[i] = weight[i * kDim], diagonal[i] = weight[i * kDim + i];
  const auto weigh = [&](int a, V* t) {
    V J[kDim];
    for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + a];
    t[0] = W[0] * J[0];
    for (int i = 1; i < kDim; ++i) t[0] = fma(W[i], J[i], t[0]);
    for (int i = 1; i < kDim; ++i) t[i] = fma(diagonal[i], J[i], W[i] * J[0]);
  };
  const auto times = [&](const V* J, const V* t) {
    V sum = zero;
    for (int i = 0; i < kDim; ++i) sum = fma(J[i], t[i], sum);
    return sum;
  };
  const auto add = [&](typename L::Ptr row, int a, int b, V sum) {
    const int y = dofs[b];
    if (kRising) {
      row[y] = row[y] + sum;
      return;
    }
    const int x = dofs[a];
    const auto entry = x >= y ? row + y : hessian + triangle(y, x);
    // A row that names one dof twice adds both products.
    entry[0] = entry[0] + (x == y && a != b ? sum + sum : sum);
  };
  int a = 0;
  for (; a + 1 < n; a += 2) {
    V t1[kDim], t2[kDim], J[kDim];
    weigh(a, t1);
    weigh(a + 1, t2);
    const auto row1 = hessian + triangle(dofs[a], 0), row2 = hessian + triangle(dofs[a + 1], 0);
    for (int b = 0; b <= a; ++b) {
      for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + b];
      add(row1, a, b, times(J, t1));
      add(row2, a + 1, b, times(J, t2));
    }
    for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + a + 1];
    add(row2, a + 1, a + 1, times(J, t2));
  }
  if (a == n) return;
  V t[kDim];
  weigh(a, t);
  const auto row = hessian + triangle(dofs[a], 0);
  for (int b = 0; b <= a; ++b) {
    V J[kDim];
    for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + b];
    add(row, a, b, times(J, t));
  }
}

/// The same for any group; fills in the upper triangle of `weight`.
template <class L>
COHORT_LANE void add_any_curvature(const Group& g, const int* dofs, typename L::Ptr piece, typename L::V* weight,
                                   typename L::Ptr hessian) {
  using V = typename L::V;
  for (int i = 0; i < g.dim; ++i) {
    for (int j = 0; j < i; ++j) weight[j * g.dim + i] = weight[i * g.dim + j];
  }
  for (int a = 0; a < g.dofs; ++a) {
    V t[kMaxDim];
    for (int i = 0; i < g.dim; ++i) {
      // A pyramid couples the normal with each tangent only, an equality no two rows.
      V sum = weight[i * g.dim] * piece[a];
      if (g.kind == kGroupEquality) {
        if (i > 0) sum = weight[i * g.dim + i] * piece[i * g.dofs + a];
      } else if (g.kind == kGroupPyramid) {
        if (i > 0) {
          sum = fma(weight[i * g.dim + i], piece[i * g.dofs + a], sum);
        } else {
          for (int j = 1; j < g.dim; ++j) sum = fma(weight[j], piece[j * g.dofs + a], sum);
        }
      } else {
        for (int j = 1; j < g.dim; ++j) sum = fma(weight[i * g.dim + j], piece[j * g.dofs + a], sum);
      }
      t[i] = sum;
    }
    for (int b = 0; b <= a; ++b) {
      V sum(0.0f);
      for (int i = 0; i < g.dim; ++i) sum = fma(piece[i * g.dofs + b], t[i], sum);
      const int x = dofs[a], y = dofs[b];
      const auto entry = hessian + (x >= y ? triangle(x, y) : triangle(y, x));
      // A row that names one dof twice adds both products.
      entry[0] = entry[0] + (x == y && a != b ? sum + sum : sum);
    }
  }
}

/// For the live lanes: w.constraint := J' force, and with `newton` hessian := M + J' W J. Uses s.precond.
template <class L>
COHORT_KERNEL void forces_and_hessian(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                      Pattern p, bool newton, typename L::M live) {
  using V = typename L::V;
  const unsigned live_bits = lane_bits(live);
  const auto total = s.precond;
  for (int d = 0; d < m.nv; ++d) total[d] = V(0.0f);
  if (newton) {
    // Entries that the inertia matrix lacks begin with zero.
    for (int i = 0; i < m.nv; ++i) {
      const auto row = s.hessian + triangle(i, 0), mass = w.mass + triangle(i, 0);
      int own = m.pattern_start[i];
      for (int k = p.start[i]; k < p.start[i + 1]; ++k) {
        const int j = p.cols[k];
        const bool has = m.pattern[own] == j;
        row[j] = has ? V(mass[j]) : V(0.0f);
        own += has ? 1 : 0;
      }
    }
  }
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & live_bits) == 0) continue;
    const auto piece = c.pool + g.at;
    GroupResponse<V> r;
    respond<L>(g, piece, r);
    const int* dofs = m.row_dof + g.first_dof;
    if (g.dim == 3) {
      add_forces<L, 3>(g, dofs, piece, r.force, total);
    } else {
      for (int a = 0; a < g.dofs; ++a) {
        V sum = total[dofs[a]];
        for (int i = 0; i < g.dim; ++i) sum = fma(piece[i * g.dofs + a], r.force[i], sum);
        total[dofs[a]] = sum;
      }
    }
    if (!newton) continue;
    V heaviest = r.weight[0];
    for (int i = 1; i < g.dim; ++i) heaviest = max(heaviest, r.weight[i * g.dim + i]);
    if (!any(live & (heaviest > V(0.0f)))) continue;
    if (g.dim == 1) {
      add_curvature<L, 1, false>(g, dofs, piece, r.weight, s.hessian);
    } else if (g.dim == 3 && g.kind == kGroupPyramid) {
      add_curvature<L, 3, true>(g, dofs, piece, r.weight, s.hessian);
    } else {
      add_any_curvature<L>(g, dofs, piece, r.weight, s.hessian);
    }
  }
  for (int d = 0; d < m.nv; ++d) w.constraint[d] = select(live, total[d], w.constraint[d]);
}

template <class L>
COHORT_LANE typename L::V dot_n(int n, typename L::Ptr a, typename L::Ptr b) {
  using V = typename L::V;
  V s(0.0f);
  for (int i = 0; i < n; ++i) s = fma(a[i], b[i], s);
  return s;
}

template <class L>
COHORT_LANE typename L::V solver_scale(const ModelView& m, const Workspace<L>& w) {
  return weight_of<L>(m, w, m.option.scale, ratio_layout(m).scale);
}

/// Step length along s.search for the live lanes, 0 where nothing improves; `improvement` is the fall of the cost.
template <class L>
COHORT_KERNEL typename L::V line_search(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                        typename L::M live, typename L::V& improvement) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  multiply_symmetric<L>(m.nv, {m.pattern, m.pattern_start}, w.mass, s.search, s.Mv);
  multiply_rows<L>(m, c, s.search, false, lane_bits(live));
  V gauss1(0.0f);
  for (int d = 0; d < m.nv; ++d) gauss1 = fma(s.search[d], s.Ma[d] - w.smooth[d], gauss1);
  const V gauss2 = dot_n<L>(m.nv, s.search, s.Mv);
  const auto evaluate = [&](V alpha, unsigned lanes, V& cost, V& d1, V& d2) {
    d1 = fma(alpha, gauss2, gauss1);
    d2 = gauss2;
    cost = alpha * fma(half * alpha, gauss2, gauss1);
    for (int k = 0; k < c.count; ++k) {
      const Group& g = c.group[k];
      if ((g.lanes & lanes) != 0) group_cost<L>(g, c.pool + g.at, alpha, true, cost, d1, d2);
    }
  };
  V cost, d1, d2;
  evaluate(zero, lane_bits(live), cost, d1, d2);
  const V norm = sqrt(dot_n<L>(m.nv, s.search, s.search));
  const V gtol =
      max(norm * V(m.option.tolerance * m.option.ls_tolerance) / solver_scale<L>(m, w), abs(d1) * V(kSlopeTolerance));
  // Newton's method on the slope, kept between lo (slope negative) and hi (positive).
  V lo(0.0f), hi(3e38f);
  V alpha = select(live, -d1 / max(d2, V(1e-30f)), zero);
  V best(0.0f), best_cost(0.0f);
  auto open = live & (alpha > zero);
  for (int i = 1; i < m.option.ls_iterations && any(open); ++i) {
    evaluate(alpha, lane_bits(open), cost, d1, d2);
    const auto better = open & (cost < best_cost);
    best = select(better, alpha, best);
    best_cost = select(better, cost, best_cost);
    const auto rising = d1 > zero;
    hi = select(open & rising, alpha, hi);
    lo = select(open & flip(rising), alpha, lo);
    open = open & flip(abs(d1) < gtol);
    const V newton = alpha - d1 / max(d2, V(1e-30f));
    const auto bracketed = hi < V(1e38f);
    const V fallback = select(bracketed, half * (lo + hi), alpha + alpha);
    const V next = select((newton > lo) & (newton < hi), newton, fallback);
    // An interval that single precision cannot divide any more is an answer.
    open = open & (abs(next - alpha) > V(1e-6f) * abs(alpha));
    alpha = select(open, next, alpha);
  }
  improvement = -best_cost;
  return best;
}

/// From w.acc_smooth (and w.warm as warm start) to w.qacc and w.constraint. `iterations` per lane. w.factor holds M's
/// factor.
template <class L>
COHORT_KERNEL void solve_constraints(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                     typename L::V& iterations) {
  using V = typename L::V;
  const V zero(0.0f), half(0.5f);
  const int nv = m.nv;
  iterations = zero;
  if (c.count == 0) {
    for (int d = 0; d < nv; ++d) w.qacc[d] = w.acc_smooth[d], w.constraint[d] = zero;
    return;
  }
  const Pattern mass_pattern{m.pattern, m.pattern_start};
  const bool newton = m.option.newton != 0;
  const V scale = solver_scale<L>(m, w), tolerance(m.option.tolerance);
  // The better of the last acceleration and the unconstrained one.
  auto use_warm = c.constrained;
  if (m.option.warmstart) {
    multiply_rows<L>(m, c, w.acc_smooth, true);
    const V cold = constraint_cost<L>(c);
    multiply_rows<L>(m, c, w.warm, true);
    V warm = constraint_cost<L>(c);
    multiply_symmetric<L>(nv, mass_pattern, w.mass, w.warm, s.Ma);
    for (int d = 0; d < nv; ++d) warm = fma(half * (s.Ma[d] - w.smooth[d]), w.warm[d] - w.acc_smooth[d], warm);
    use_warm = use_warm & (warm <= cold);
    for (int d = 0; d < nv; ++d) w.qacc[d] = select(use_warm, w.warm[d], w.acc_smooth[d]);
  } else {
    for (int d = 0; d < nv; ++d) w.qacc[d] = w.acc_smooth[d];
  }
  multiply_symmetric<L>(nv, mass_pattern, w.mass, w.qacc, s.Ma);
  multiply_rows<L>(m, c, w.qacc, true);
  auto live = c.constrained;
  for (int d = 0; d < nv; ++d) w.constraint[d] = zero;
  Pattern pattern = mass_pattern;
  int across = 0;
  V improvement = zero;
  for (int iteration = 0;; ++iteration) {
    if (newton) {
      // Lanes that are done may take groups across branches with them.
      const int now = groups_across<L>(c, lane_bits(live));
      if (now != across) pattern = hessian_pattern<L>(m, c, s, lane_bits(live));
      across = now;
    }
    forces_and_hessian<L>(m, w, c, s, pattern, newton, live);
    for (int d = 0; d < nv; ++d) {
      s.grad[d] = s.Ma[d] - w.smooth[d] - w.constraint[d];
      s.precond[d] = s.grad[d];
    }
    if (iteration >= m.option.iterations) break;
    if (newton) {
      factor_in_place<L>(nv, pattern, s.hessian);
      solve_in_place<L>(nv, pattern, s.hessian, s.precond);
    } else {
      solve_in_place<L>(nv, mass_pattern, w.factor, s.precond);
    }
    const V gradient = scale * sqrt(dot_n<L>(nv, s.grad, s.grad));
    const V decrement = half * scale * dot_n<L>(nv, s.grad, s.precond);
    // Before the first search both must be small (CG: the duality gap alone); afterwards one is enough.
    auto done = decrement < tolerance;
    if (iteration == 0) {
      if (newton) done = done & (gradient < tolerance);
    } else {
      const auto small_gain = (improvement > zero) & (improvement * scale < tolerance);
      done = newton ? done | (gradient < tolerance) | small_gain : (gradient < tolerance) | small_gain;
    }
    live = live & flip(done);
    if (!any(live)) break;
    if (newton || iteration == 0) {
      for (int d = 0; d < nv; ++d) s.search[d] = select(live, -s.precond[d], zero);
    } else {
      // Hager and Zhang 2005, with MuJoCo's lower bound.
      V dy = zero, yMy = zero, yMg = zero, dg = zero, dd = zero, gg = zero;
      for (int d = 0; d < nv; ++d) {
        const V y = s.grad[d] - s.grad_old[d], My = s.precond[d] - s.precond_old[d];
        dy = fma(s.search[d], y, dy), yMy = fma(y, My, yMy), yMg = fma(y, s.precond[d], yMg);
        dg = fma(s.search[d], s.grad[d], dg), dd = fma(s.search[d], s.search[d], dd),
        gg = fma(s.grad[d], s.grad[d], gg);
      }
      const auto good = dy > V(1e-15f);
      const V safe = select(good, dy, V(1.0f));
      const V hz = (yMg - V(2.0f) * (yMy / safe) * dg) / safe;
      const V eta = V(-1.0f) / max(V(1e-15f), sqrt(dd) * min(V(0.01f), sqrt(gg)));
      const V beta = select(good, max(eta, hz), zero);
      for (int d = 0; d < nv; ++d) s.search[d] = select(live, fma(beta, s.search[d], -s.precond[d]), zero);
    }
    if (!newton) {
      for (int d = 0; d < nv; ++d) s.grad_old[d] = s.grad[d], s.precond_old[d] = s.precond[d];
    }
    const V alpha = line_search<L>(m, w, c, s, live, improvement);
    live = live & (alpha > zero);
    if (!any(live)) break;
    iterations = select(live, iterations + V(1.0f), iterations);
    const V step = select(live, alpha, zero);
    for (int d = 0; d < nv; ++d) {
      w.qacc[d] = select(live, fma(step, s.search[d], w.qacc[d]), w.qacc[d]);
      s.Ma[d] = select(live, fma(step, s.Mv[d], s.Ma[d]), s.Ma[d]);
    }
    const unsigned live_bits = lane_bits(live);
    for (int k = 0; k < c.count; ++k) {
      const Group& g = c.group[k];
      if ((g.lanes & live_bits) == 0) continue;
      const auto piece = c.pool + g.at;
      const GroupLayout l = layout_of(g);
      for (int e = 0; e < g.edges; ++e) {
        piece[l.jar + e] = select(live, fma(step, piece[l.jv + e], piece[l.jar + e]), piece[l.jar + e]);
      }
    }
  }
  // Lanes without any row: exactly the unconstrained motion, whatever their neighbours did.
  for (int d = 0; d < nv; ++d) {
    w.qacc[d] = select(c.constrained, w.qacc[d], w.acc_smooth[d]);
    w.constraint[d] = select(c.constrained, w.constraint[d], zero);
  }
}

}  // namespace cohort::sim
