/// Two bodies that many dofs move, and that may touch at many places: a hand's finger and what it holds. The Jacobians
/// of all their contacts are products of a contact's own rows, which see how the bodies move against each other, and
/// the stem, which is how each dof moves them: J = C S with C (dim, 6; stem_contact.h) and S (6, dofs). S is computed
/// once in a step; products with J cost a contact the few of C, and second derivatives are summed in 6 x 6 before they
/// go to the dofs. Stems of one body with the bodies of a branch share their dofs but for a few: products go from the
/// parent to its children, and sums from the children to the parent. Which contacts have a stem, and which is whose
/// parent, is the model's, so that sums do not depend on the other lanes.
#pragma once
#include "sim/kernels/near_pairs.h"

namespace cohort::sim {

/// Calls f(record, piece, layout) for stems, parents first.
template <class L, class F>
COHORT_LANE void from_parents(const ModelView& m, const Constraints<L>& c, unsigned long long which, F f) {
  for (unsigned long long left = which; left != 0; left &= left - 1) {
    const StemRecord& stem = m.stem[lowest_bit(left)];
    f(stem, c.stems + stem.at, stem_layout(stem.dof_count));
  }
}
/// The same, children first.
template <class L, class F>
COHORT_LANE void from_children(const ModelView& m, const Constraints<L>& c, unsigned long long which, F f) {
  for (unsigned long long left = which; left != 0;) {
    const int k = highest_bit(left);
    left &= ~(1ull << k);
    f(m.stem[k], c.stems + m.stem[k].at, stem_layout(m.stem[k].dof_count));
  }
}
/// Where values of the parent begin.
template <class L>
COHORT_LANE typename L::Ptr parent_of(const ModelView& m, const Constraints<L>& c, const StemRecord& stem, int value) {
  return c.stems + (m.stem[stem.parent].at + value);
}

/// S of a stem about its second body's position, its product with the velocities (layout.now), and S D^-1 S' with D
/// from M = L' D L (layout.square).
template <class L>
COHORT_KERNEL void make_stem(const ModelView& m, const Workspace<L>& w, Constraints<L>& c, int which) {
  using V = typename L::V;
  const StemRecord& stem = m.stem[which];
  const auto S = c.stems + stem.at;
  const int n = stem.dof_count;
  const StemLayout l = stem_layout(n);
  V at[2][3], shift[3];
  tree_shift<L>(w, stem.body1 < 0 ? -1 : m.body[stem.body1].root, m.body[stem.body2].root, shift);
  read<3>(at[1], w.pos + 3 * stem.body2);
  for (int i = 0; i < 3; ++i) at[0][i] = at[1][i] + shift[i];
  V square[kStemRows * (kStemRows + 1) / 2];
  for (V& x : square) x = V(0.0f);
  for (int k = 0; k < n; ++k) {
    const int d = m.row_dof[stem.first_dof + k];
    const bool second = m.row_sign[stem.first_dof + k] > 0;
    V motion[6];
    read<6>(motion, w.axis + 6 * d);
    add_cross(motion + 3, motion, at[second]);
    const V inverse = w.factor[triangle(d, d)];
    for (int i = 0; i < kStemRows; ++i) {
      motion[i] = second ? motion[i] : -motion[i];
      S[i * n + k] = motion[i];
      const V scaled = motion[i] * inverse;
      for (int j = 0; j <= i; ++j) square[triangle(i, j)] = fma(scaled, motion[j], square[triangle(i, j)]);
    }
  }
  write<kStemRows*(kStemRows + 1) / 2>(S + l.square, square);
  V moves[kStemRows];
  columns_times<L, kStemRows>(n, m.row_dof + stem.first_dof, S, w.v, moves);
  write<kStemRows>(S + l.now, moves);
}

/// Makes a stem and those above it, as far as they have not been made.
template <class L>
COHORT_LANE void open_stem(const ModelView& m, const Workspace<L>& w, Constraints<L>& c, int which) {
  for (int k = which; k >= 0 && (c.stems_open >> k & 1u) == 0; k = m.stem[k].parent) {
    c.stems_open |= 1ull << k;
    make_stem<L>(m, w, c, k);
  }
}

/// C of a contact with kDim rows in the contact frame to `to`, and the rows' velocities, to vel; returns how much the
/// first row yields to its force. pos, at1: the contact about the second and the first geom's reference point.
template <class L, int kDim>
COHORT_LANE typename L::V contact_on_stem(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                          const PairRecord& p, const typename L::V* frame, const typename L::V* pos,
                                          const typename L::V* at1, typename L::Ptr to, typename L::V* vel) {
  using V = typename L::V;
  const StemRecord& stem = m.stem[p.stem];
  const auto piece = c.stems + stem.at;
  const StemLayout l = stem_layout(stem.dof_count);
  // The pair may have the stem's bodies the other way round.
  const bool turned = m.geom[p.geom2].body != stem.body2;
  V arm[3], first[kStemRows], yields(0.0f);
  for (int i = 0; i < 3; ++i) arm[i] = (turned ? at1[i] : pos[i]) - w.pos[3 * stem.body2 + i];
  write<3>(to, arm);
  for (int i = 3; i < stem_contact_size(kDim); ++i) to[i] = turned ? -frame[i - 3] : frame[i - 3];
  StemContact<L, kDim>(to).rows(piece + l.now, vel);
  read<3>(first + 3, to + 3);
  cross(first, arm, first + 3);
  for (int i = 0; i < kStemRows; ++i) {
    V sum(0.0f);
    for (int j = 0; j < kStemRows; ++j) {
      sum = fma(V(piece[l.square + (i >= j ? triangle(i, j) : triangle(j, i))]), first[j], sum);
    }
    yields = fma(sum, first[i], yields);
  }
  return yields;
}

/// S x of the present stems to layout.now, or to layout.other.
template <class L>
COHORT_LANE void to_stems(const ModelView& m, const Constraints<L>& c, typename L::Ptr x, bool other = false) {
  from_parents<L>(m, c, c.stems_open, [&](const StemRecord& stem, typename L::Ptr S, const StemLayout& l) {
    using V = typename L::V;
    V moves[kStemRows];
    for (V& row : moves) row = V(0.0f);
    if (stem.parent >= 0) {
      const StemLayout of_parent = stem_layout(m.stem[stem.parent].dof_count);
      read<kStemRows>(moves, parent_of<L>(m, c, stem, other ? of_parent.other : of_parent.now));
    }
    const int* dofs = m.row_dof + stem.first_dof;
    for (int k = stem.first_own; k < stem.first_own + stem.own_count; ++k) {
      const V xk = x[dofs[k]];
      for (int i = 0; i < kStemRows; ++i) moves[i] = fma(S[i * stem.dof_count + k], xk, moves[i]);
    }
    write<kStemRows>(S + (other ? l.other : l.now), moves);
  });
}

/// What a group's Jacobian is multiplied with: x, or what the stem has for it.
template <class L>
COHORT_LANE typename L::Ptr on_stem(const ModelView& m, const Constraints<L>& c, const Group& g, typename L::Ptr x,
                                    bool other = false) {
  if (g.stem < 0) return x;
  const StemRecord& stem = m.stem[g.stem];
  const StemLayout l = stem_layout(stem.dof_count);
  return c.stems + (stem.at + (other ? l.other : l.now));
}

/// total += S' of what is at layout.now of the open stems, which is used up.
template <class L>
COHORT_LANE void from_stems(const ModelView& m, const Constraints<L>& c, typename L::Ptr total) {
  using V = typename L::V;
  from_children<L>(m, c, c.stems_open, [&](const StemRecord& stem, typename L::Ptr S, const StemLayout& l) {
    V force[kStemRows];
    read<kStemRows>(force, S + l.now);
    const int* dofs = m.row_dof + stem.first_dof;
    for (int k = stem.first_own; k < stem.first_own + stem.own_count; ++k) {
      V sum = total[dofs[k]];
      for (int i = 0; i < kStemRows; ++i) sum = fma(V(S[i * stem.dof_count + k]), force[i], sum);
      total[dofs[k]] = sum;
    }
    if (stem.parent < 0) return;
    const auto up = parent_of<L>(m, c, stem, stem_layout(m.stem[stem.parent].dof_count).now);
    for (int i = 0; i < kStemRows; ++i) up[i] = up[i] + force[i];
  });
}

}  // namespace cohort::sim
