/// Two bodies that many dofs move, and that may touch at many places: a hand's finger and what it holds. The Jacobians
/// of all their contacts are products of a contact's own rows, which see how the bodies move against each other, and
/// the stem, which is how each dof moves them: J = C S with C (dim, 6) and S (6, dofs). S is computed once in a step;
/// products with J cost six columns a contact instead of one per dof, and second derivatives are summed in 6 x 6 before
/// they go to the dofs. Which contacts have one is the model's, so that sums do not depend on the other lanes.
#pragma once
#include "sim/kernels/near_pairs.h"

namespace cohort::sim {

/// Calls f(record, piece, layout) for the stems of the present contacts.
template <class L, class F>
COHORT_LANE void for_stems(const ModelView& m, const Constraints<L>& c, unsigned long long which, F f) {
  for (unsigned long long left = which; left != 0; left &= left - 1) {
    const StemRecord& stem = m.stem[lowest_bit(left)];
    f(stem, c.stems + stem.at, stem_layout(stem.dof_count));
  }
}

/// S of a stem about its second body's position, its product with the velocities (layout.now), and S D^-1 S' with D
/// from M = L' D L (layout.square). Does nothing where it has been done.
template <class L>
COHORT_KERNEL void open_stem(const ModelView& m, const Workspace<L>& w, Constraints<L>& c, int which) {
  using V = typename L::V;
  if ((c.stems_open >> which & 1u) != 0) return;
  c.stems_open |= 1ull << which;
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

/// C of a contact with kDim rows in the contact frame to `rows` (kDim, 6), and the rows' velocities, to vel; returns
/// how much the first row yields to its force. pos, at1: the contact about the second and the first geom's reference
/// point.
template <class L, int kDim>
COHORT_LANE typename L::V contact_on_stem(const ModelView& m, const Workspace<L>& w, const Constraints<L>& c,
                                          const PairRecord& p, const typename L::V* frame, const typename L::V* pos,
                                          const typename L::V* at1, typename L::Ptr rows, typename L::V* vel) {
  using V = typename L::V;
  const StemRecord& stem = m.stem[p.stem];
  const auto piece = c.stems + stem.at;
  const StemLayout l = stem_layout(stem.dof_count);
  // The pair may have the stem's bodies the other way round.
  const bool turned = m.geom[p.geom2].body != stem.body2;
  V arm[3], C[kStemRows], yields(0.0f);
  for (int i = 0; i < 3; ++i) arm[i] = (turned ? at1[i] : pos[i]) - w.pos[3 * stem.body2 + i];
  for (int r = 0; r < kDim; ++r) {
    V axis[3];
    for (int i = 0; i < 3; ++i) axis[i] = turned ? -frame[3 * (r % 3) + i] : frame[3 * (r % 3) + i];
    if (r < 3) {
      cross(C, arm, axis);
      for (int i = 0; i < 3; ++i) C[3 + i] = axis[i];
    } else {
      for (int i = 0; i < 3; ++i) C[i] = axis[i], C[3 + i] = V(0.0f);
    }
    write<kStemRows>(rows + kStemRows * r, C);
    vel[r] = V(0.0f);
    for (int i = 0; i < kStemRows; ++i) vel[r] = fma(C[i], V(piece[l.now + i]), vel[r]);
    for (int i = 0; r == 0 && i < kStemRows; ++i) {
      V sum(0.0f);
      for (int j = 0; j < kStemRows; ++j) {
        sum = fma(V(piece[l.square + (i >= j ? triangle(i, j) : triangle(j, i))]), C[j], sum);
      }
      yields = fma(sum, C[i], yields);
    }
  }
  return yields;
}

/// S x of the present stems to layout.now, or to layout.other.
template <class L>
COHORT_LANE void to_stems(const ModelView& m, const Constraints<L>& c, typename L::Ptr x, bool other = false) {
  for_stems<L>(m, c, c.stems_open, [&](const StemRecord& stem, typename L::Ptr piece, const StemLayout& l) {
    typename L::V moves[kStemRows];
    columns_times<L, kStemRows>(stem.dof_count, m.row_dof + stem.first_dof, piece, x, moves);
    write<kStemRows>(piece + (other ? l.other : l.now), moves);
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

}  // namespace cohort::sim
