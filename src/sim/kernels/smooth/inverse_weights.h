/// Inverse weights at the default coordinates (MuJoCo's documentation, "invweight0"): how much a unit force accelerates
/// a dof, a tendon, or a link at its centre of mass, and the mean of the inertia matrix's diagonal.
#pragma once
#include "sim/kernels/smooth/smooth.h"

namespace cohort::sim {

/// Sizes of what inverse_weights writes, in this order: per dof; per tendon; per link translation and rotation; the
/// mean.
COHORT_LANE int inverse_weight_count(const ModelView& m) {
  return m.nv + m.ntendon + 2 * m.nlink + 1;
}

/// Reads w's parameters; overwrites its state. `column`: nv values of scratch; `inverse`: nv * nv.
/// Writes out.
template <class L>
COHORT_KERNEL void inverse_weights(const ModelView& m, Workspace<L>& w, typename L::Ptr inverse, typename L::V* out) {
  using V = typename L::V;
  const int nv = m.nv;
  const V zero(0.0f);
  for (int i = 0; i < m.nq; ++i) w.q[i] = V(m.qpos0[i]);
  for (int i = 0; i < nv; ++i) w.v[i] = zero;
  kinematics<L>(m, w);
  velocities<L>(m, w);
  composite_inertia<L>(m, w);
  tendons<L>(m, w);
  if (m.tendon_inertia) tendon_inertia<L>(m, w, false);
  const Pattern<L> p{m.pattern, m.pattern_start};
  copy_matrix<L>(nv, p, w.mass, w.factor);
  V mean = zero;
  for (int d = 0; d < nv; ++d) mean += w.mass[triangle(d, d)];
  factor_in_place<L>(nv, p, w.factor);
  for (int d = 0; d < nv; ++d) {
    const auto column = inverse + d * nv;
    for (int e = 0; e < nv; ++e) column[e] = V(d == e ? 1.0f : 0.0f);
    solve_in_place<L>(nv, p, w.factor, column);
    out[d] = column[d];
  }
  // The three axes of a free or ball joint's rotation, and of a free joint's translation, share their mean.
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    if (body.kind != kBodyFree && body.kind != kBodyBall) continue;
    for (int d = body.first_dof; d < body.first_dof + body.dof_count; d += 3) {
      const V average = (out[d] + out[d + 1] + out[d + 2]) * V(1.0f / 3.0f);
      out[d] = out[d + 1] = out[d + 2] = average;
    }
  }
  for (int t = 0; t < m.ntendon; ++t) {
    const TendonRecord& tendon = m.tendon[t];
    V sum = zero;
    for (int a = tendon.first_wrap; a < tendon.first_wrap + tendon.wrap_count; ++a) {
      for (int b = tendon.first_wrap; b < tendon.first_wrap + tendon.wrap_count; ++b) {
        sum = fma(wrap_arm<L>(m, w, a) * wrap_arm<L>(m, w, b), inverse[m.wrap[a].dof * nv + m.wrap[b].dof], sum);
      }
    }
    out[nv + t] = sum;
  }
  for (int k = 0; k < m.nlink; ++k) {
    V sums[2] = {zero, zero};
    int b = m.link[k].body;
    V at[3] = {zero, zero, zero};
    if (b >= 0) {
      V R[9], x[3];
      read<9>(R, w.rot + 9 * b);
      read<3>(x, w.pos + 3 * b);
      centre_of<L>(m, w, k, at);
      rotate(at, R, at);
      for (int i = 0; i < 3; ++i) at[i] += x[i];
    }
    while (b >= 0 && m.body[b].dof_count == 0) b = m.body[b].parent;
    if (b >= 0) {
      const int last = m.body[b].first_dof + m.body[b].dof_count - 1;
      for (int i = m.pattern_start[last]; i < m.pattern_start[last + 1]; ++i) {
        V a1[3], l1[3];
        axis_at<L>(w, m.pattern[i], at, a1, l1);
        for (int j = m.pattern_start[last]; j < m.pattern_start[last + 1]; ++j) {
          V a2[3], l2[3];
          axis_at<L>(w, m.pattern[j], at, a2, l2);
          const V entry = inverse[m.pattern[i] * nv + m.pattern[j]];
          sums[0] = fma(entry, dot3(l1, l2), sums[0]);
          sums[1] = fma(entry, dot3(a1, a2), sums[1]);
        }
      }
    }
    for (int r = 0; r < 2; ++r) out[nv + m.ntendon + 2 * k + r] = sums[r] * V(1.0f / 3.0f);
  }
  out[nv + m.ntendon + 2 * m.nlink] = mean * V(1.0f / static_cast<float>(nv > 0 ? nv : 1));
}

}  // namespace cohort::sim
