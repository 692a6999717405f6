/// Newton's second derivatives: the inertia matrix and what every group of constraint rows adds, with the pattern of
/// columns that the factor needs.
#pragma once
#include "sim/kernels/constraint/response.h"
#include "sim/kernels/smooth/factor.h"

namespace cohort::sim {

/// Which rows a group's weights couple.
enum class Coupling {
  kNone,    ///< no two: equalities
  kNormal,  ///< the normal with each tangent: pyramids
  kAll,     ///< elliptic cones
};
COHORT_LANE constexpr bool couples(Coupling coupling, int i, int j) {
  return i == j || coupling == Coupling::kAll || (coupling == Coupling::kNormal && (i == 0 || j == 0));
}

/// Workspace of the solver (nv each; hessian, sum: triangle).
template <class L>
struct SolverSpace {
  typename L::Ptr Ma, grad, search, Mv, hessian, grad_old, precond, precond_old;
  typename L::Ptr sum;                ///< of constant_part
  typename L::Ptr scale;              ///< (1) solver_scale; of a team only
  Items<L, int> cols;                 ///< nv (nv + 1) / 2
  Items<L, int> start;                ///< nv + 1
  Items<L, unsigned long long> bits;  ///< nv * words; of a team 2 nv
};

/// The inertia matrix's pattern.
template <class L>
COHORT_LANE Pattern<L> mass_pattern(const ModelView& m, const SolverSpace<L>& s) {
  if constexpr (kIsTeam<L>) {
    return {m.pattern, m.pattern_start, s.bits + m.nv};
  } else {
    return {m.pattern, m.pattern_start};
  }
}

/// For a team: mass_pattern's bits, of no more than 64 dofs. Writes s.bits from nv on.
template <class L>
COHORT_LANE void write_mass_bits(const ModelView& m, SolverSpace<L>& s) {
  each<L>(m.nv, [&](int i) COHORT_BODY {
    unsigned long long bits = 0;
    for (int k = m.pattern_start[i]; k < m.pattern_start[i + 1]; ++k) bits |= 1ull << m.pattern[k];
    s.bits[m.nv + i] = bits;
  });
}

/// Groups across branches that weigh in a lane of `live`: what the Hessian's pattern is made from.
template <class L>
COHORT_LANE int groups_across(Constraints<L>& c, unsigned live) {
  int count = 0;
  for (int k = 0; k < c.count; ++k) count += !c.group[k].fits && (c.group[k].lanes & live) != 0;
  return count;
}

/// hessian_pattern's, where groups go across branches.
/// Reads the groups; writes s.bits, s.cols, s.start.
template <class L>
COHORT_LANE void write_pattern(const ModelView& m, Constraints<L>& c, SolverSpace<L>& s, unsigned live) {
  using Word = unsigned long long;
  const int words = (m.nv + 63) / 64;
  // A row of the inertia matrix has the columns of the parent's row, which is the last one before its own.
  for (int i = 0; i < m.nv; ++i) {
    const int end = m.pattern_start[i + 1];
    const int parent = end - m.pattern_start[i] > 1 ? m.pattern[end - 2] : -1;
    for (int k = 0; k < words; ++k) s.bits[i * words + k] = parent >= 0 ? s.bits[parent * words + k] : 0;
    s.bits[i * words + i / 64] |= Word{1} << (i % 64);
  }
  int before = -1;  // dofs of the last group: contacts of a pair have the same
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if (g.fits || g.dofs == 0 || (g.lanes & live) == 0 || g.first_dof == before) continue;
    before = g.first_dof;
    // All of its columns in its last row: eliminating that couples them.
    const int* dofs = m.row_dof + g.first_dof;
    int last = dofs[0];
    for (int a = 1; a < g.dofs; ++a) last = dofs[a] > last ? dofs[a] : last;
    for (int a = 0; a < g.dofs; ++a) s.bits[last * words + dofs[a] / 64] |= Word{1} << (dofs[a] % 64);
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
}

/// Columns of the Hessian's rows for the live lanes: the inertia matrix's, those that groups across branches need, and
/// the factor's fill-in.
/// Reads the groups; writes s.bits, s.cols, s.start.
template <class L>
COHORT_KERNEL Pattern<L> hessian_pattern(const ModelView& m, Constraints<L>& c, SolverSpace<L>& s, unsigned live) {
  if (groups_across<L>(c, live) == 0) return mass_pattern<L>(m, s);
  one<L>([&] { write_pattern<L>(m, c, s, live); });
  if constexpr (kIsTeam<L>) {
    return {s.cols, s.start, s.bits};
  } else {
    return {s.cols, s.start};
  }
}

/// hessian += J' weight J of a Jacobian with kDim rows and n columns. Two rows of the Hessian at a time share what they
/// read. kRising: the dofs rise.
template <class L, int kDim, bool kRising, Coupling kCoupling>
COHORT_LANE void add_curvature(int n, const int* dofs, typename L::Ptr jacobian, const typename L::V* weight,
                               typename L::Ptr hessian) {
  using V = typename L::V;
  V W[kDim * kDim];
  for (int i = 0; i < kDim; ++i) {
    for (int j = 0; j <= i; ++j) W[j * kDim + i] = W[i * kDim + j] = weight[i * kDim + j];
  }
  const auto weigh = [&](int a, V* t) {
    V J[kDim];
    for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + a];
    for (int i = 0; i < kDim; ++i) {
      if (kCoupling == Coupling::kNone) {
        t[i] = W[i * kDim + i] * J[i];
        continue;
      }
      t[i] = W[i * kDim] * J[0];
      for (int j = 1; j < kDim; ++j) {
        if (couples(kCoupling, i, j)) t[i] = fma(W[i * kDim + j], J[j], t[i]);
      }
    }
  };
  const auto times = [&](const V* J, const V* t) {
    V sum = J[0] * t[0];
    for (int i = 1; i < kDim; ++i) sum = fma(J[i], t[i], sum);
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
  if constexpr (kIsTeam<L> && kRising) {
    // No two pairs of dofs have one entry.
    each<L>(n * (n + 1) / 2, [&](int k) {
      const TrianglePlace at(k);
      V t[kDim], J[kDim];
      weigh(at.row, t);
      for (int i = 0; i < kDim; ++i) J[i] = jacobian[i * n + at.column];
      add(hessian + triangle(dofs[at.row], 0), at.row, at.column, times(J, t));
    });
  } else {
    one<L>([&]() COHORT_BODY {
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
    });
  }
}

/// to += J' weight J.
template <class L, int kDim>
COHORT_LANE void add_weighed(const ModelView& m, const Group& g, typename L::Ptr piece, const typename L::V* weight,
                             typename L::Ptr to) {
  const int* dofs = m.row_dof + g.first_dof;
  if (g.kind == kGroupElliptic) {
    add_curvature<L, kDim, true, Coupling::kAll>(g.dofs, dofs, piece, weight, to);
  } else if (g.kind == kGroupPyramid) {
    add_curvature<L, kDim, true, Coupling::kNormal>(g.dofs, dofs, piece, weight, to);
  } else {
    // Only single rows may name dofs in any order, or one of them twice.
    add_curvature<L, kDim, (kDim > 1), Coupling::kNone>(g.dofs, dofs, piece, weight, to);
  }
}

/// Adds a group's second derivatives where there are any in a lane of `live`.
template <class L>
COHORT_LANE void add_group(const ModelView& m, const Group& g, typename L::Ptr piece, typename L::M live,
                           typename L::Ptr to) {
  using V = typename L::V;
  with_dim(g.dim, [&](auto dim) {
    constexpr int kDim = decltype(dim)::kDim;
    V weight[kDim * kDim];
    curvature_at<L, kDim>(g, piece, piece + g.layout.jar, weight);
    V heaviest = weight[0];
    for (int i = 1; i < kDim; ++i) heaviest = max(heaviest, weight[i * kDim + i]);
    if (any(live & (heaviest > V(0.0f)))) add_weighed<L, kDim>(m, g, piece, weight, to);
  });
}

/// Where the second derivatives stand that do not change within a step. Without equalities they are w.mass, whose
/// entries outside its own pattern nobody else looks at.
template <class L>
COHORT_LANE typename L::Ptr constant_part(const ModelView& m, const Workspace<L>& w, const SolverSpace<L>& s) {
  return m.neq == 0 ? w.mass : s.sum;
}

/// to := the second derivatives that do not change within a step, with the pattern's entries: the inertia matrix and
/// the equalities, which come first among the groups.
/// Reads w.mass, the groups; writes `to`.
template <class L>
COHORT_KERNEL void constant_hessian(const ModelView& m, Workspace<L>& w, Constraints<L>& c, Pattern<L> p,
                                    typename L::M live, typename L::Ptr to) {
  using V = typename L::V;
  each<L>(m.nv, [&](int i) COHORT_BODY {
    const auto row = to + triangle(i, 0), mass = w.mass + triangle(i, 0);
    int k = p.start[i];
    for (int own = m.pattern_start[i]; own < m.pattern_start[i + 1]; ++own, ++k) {
      const int j = m.pattern[own];
      for (; p.cols[k] < j; ++k) row[p.cols[k]] = V(0.0f);
      row[j] = mass[j];
    }
  });
  for (int k = 0; k < c.count && c.group[k].kind == kGroupEquality; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & lane_bits(live)) != 0) add_group<L>(m, g, c.pool + g.at, live, to);
  }
}

/// to += J' W J of the groups but the equalities, for the live lanes.
/// Reads the groups; changes `to`.
template <class L>
COHORT_KERNEL void add_groups(const ModelView& m, Constraints<L>& c, typename L::M live, typename L::Ptr to) {
  const unsigned live_bits = lane_bits(live);
  for (int k = 0; k < c.count; ++k) {
    const Group& g = c.group[k];
    if ((g.lanes & live_bits) == 0 || g.kind == kGroupEquality) continue;
    add_group<L>(m, g, c.pool + g.at, live, to);
  }
}

/// For the live lanes: s.hessian := M + J' W J, with the pattern's entries. What the other lanes hold there means
/// nothing. first: in a step.
/// Reads w.mass, the groups; writes s.hessian and, where first, constant_part.
template <class L>
COHORT_KERNEL void assemble_hessian(const ModelView& m, Workspace<L>& w, Constraints<L>& c, SolverSpace<L>& s,
                                    Pattern<L> p, typename L::M live, bool first) {
  const auto constant = constant_part<L>(m, w, s);
  if (first) constant_hessian<L>(m, w, c, p, live, constant);
  copy_matrix<L>(m.nv, p, constant, s.hessian);
  add_groups<L>(m, c, live, s.hessian);
}

}  // namespace cohort::sim
