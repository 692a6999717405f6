/// Inertia matrix (composite rigid bodies) and bias forces (recursive Newton-Euler), Featherstone 2008, chapters 5 and
/// 6, in world axes about one reference point per tree.
#pragma once
#include "sim/kernels/lane/parameters.h"
#include "sim/kernels/lane/spatial.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// Spatial inertia of a body about its tree's reference point.
template <class V>
COHORT_LANE void body_inertia(V* I, const BodyMass<V>& body, const V* R, const V* x) {
  V c[3], T[9];
  rotate(c, R, body.com);
  for (int i = 0; i < 3; ++i) c[i] += x[i];
  const V J[9] = {body.inertia[0], body.inertia[3], body.inertia[4], body.inertia[3], body.inertia[1],
                  body.inertia[5], body.inertia[4], body.inertia[5], body.inertia[2]};
  multiply3(T, R, J);
  const int row[6] = {0, 1, 2, 0, 0, 1}, col[6] = {0, 1, 2, 1, 2, 2};
  const V mass = body.mass;
  const V squared = dot3(c, c);
  for (int k = 0; k < 6; ++k) {
    const int i = row[k], j = col[k];
    V s = dot3(T + 3 * i, R + 3 * j);
    s = fma(-(mass * c[i]), c[j], s);
    I[k] = k < 3 ? fma(mass, squared, s) : s;
  }
  for (int i = 0; i < 3; ++i) I[6 + i] = mass * c[i];
  I[9] = mass;
}

/// Reads kinematics, w.v; writes w.vel and, with zero accelerations of the joints, w.acc, w.force; w.inertia of single
/// bodies.
template <class L>
COHORT_KERNEL void velocities(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    V v[6], a[6];
    if (body.parent >= 0) {
      read<6>(v, w.vel + 6 * body.parent);
      read<6>(a, w.acc + 6 * body.parent);
    } else {
      // Gravity as an acceleration of the world upwards.
      for (int i = 0; i < 3; ++i) v[i] = v[3 + i] = a[i] = zero, a[3 + i] = -gravity_of<L>(m, w, i);
    }
    V R[9], x[3], I[10], momentum[6], f[6];
    read<9>(R, w.rot + 9 * b);
    const bool together = body.kind == kBodyBall;  // three axes that turn with the body
    V before[6] = {v[0], v[1], v[2], v[3], v[4], v[5]};
    for (int d = body.first_dof; body.kind != kBodyFree && d < body.first_dof + body.dof_count; ++d) {
      V S[6];
      read<6>(S, w.axis + 6 * d);
      const V rate = w.v[d];
      if (!together || d == body.first_dof) {
        for (int i = 0; i < 6; ++i) before[i] = v[i];
      }
      V turn[6] = {zero, zero, zero, zero, zero, zero};
      add_cross_motion(turn, before, S);
      for (int i = 0; i < 6; ++i) a[i] = fma(turn[i], rate, a[i]);
      for (int i = 0; i < 6; ++i) v[i] = fma(S[i], rate, v[i]);
    }
    if (body.kind == kBodyFree) {
      // Its axes are the world's and then its own, through the reference point.
      read<3>(v + 3, w.v + body.first_dof);
      for (int k = 0; k < 3; ++k) {
        const V axis[3] = {R[k], R[3 + k], R[6 + k]}, rate = w.v[body.first_dof + 3 + k];
        V turn[3];
        cross(turn, v + 3, axis);
        for (int i = 0; i < 3; ++i) a[3 + i] = fma(turn[i], rate, a[3 + i]), v[i] = fma(axis[i], rate, v[i]);
      }
    }
    write<6>(w.vel + 6 * b, v);
    write<6>(w.acc + 6 * b, a);
    read<3>(x, w.pos + 3 * b);
    const BodyMass<V> own = mass_of<L>(m, w, b);
    body_inertia(I, own, R, x);
    multiply_inertia(f, I, a);
    multiply_inertia(momentum, I, v);
    add_cross_force(f, v, momentum);
    if (body.gravcomp_mass != 0) {
      V c[3], lift[3];
      rotate(c, R, own.lifted_com);
      for (int i = 0; i < 3; ++i) c[i] += x[i], lift[i] = own.lifted * gravity_of<L>(m, w, i);
      add_cross(f, c, lift);
      for (int i = 0; i < 3; ++i) f[3 + i] += lift[i];
    }
    write<6>(w.force + 6 * b, f);
    write<10>(w.inertia + 10 * b, I);
  }
}

/// Subtracts the forces that the caller applies at links' centres of mass from w.force.
/// Reads w.rot, w.pos, w.link_force; changes w.force.
template <class L>
COHORT_KERNEL void applied_forces(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  if (!w.links_pushed) return;
  for (int k = 0; k < m.nlink; ++k) {
    const LinkRecord& link = m.link[k];
    if (link.body < 0) continue;
    V F[6];
    read<6>(F, w.link_force + 6 * k);
    bool some = false;
    for (int i = 0; i < 6; ++i) some = some || any(F[i] != V(0.0f));
    if (!some) continue;
    V R[9], x[3], c[3], f[6];
    read<9>(R, w.rot + 9 * link.body);
    read<3>(x, w.pos + 3 * link.body);
    centre_of<L>(m, w, k, c);
    rotate(c, R, c);
    for (int i = 0; i < 3; ++i) c[i] += x[i];
    for (int i = 0; i < 3; ++i) f[i] = F[3 + i], f[3 + i] = F[i];
    add_cross(f, c, F);
    const auto to = w.force + 6 * link.body;
    for (int i = 0; i < 6; ++i) to[i] -= f[i];
  }
}

/// composite_inertia for a free body, whose axes are the world's and then its own, through the reference point.
template <class L>
COHORT_LANE void free_inertia(const ModelView& m, Workspace<L>& w, int b, const typename L::V* I,
                              const typename L::V* f) {
  using V = typename L::V;
  const V zero(0.0f);
  const int first = m.body[b].first_dof;
  V R[9];
  read<9>(R, w.rot + 9 * b);
  for (int k = 0; k < 3; ++k) {
    const auto row = w.mass + triangle(first + k, first), turn = w.mass + triangle(first + 3 + k, first);
    const V axis[3] = {R[k], R[3 + k], R[6 + k]};
    const V momentum[3] = {fma(I[4], axis[2], fma(I[3], axis[1], I[0] * axis[0])),
                           fma(I[5], axis[2], fma(I[1], axis[1], I[3] * axis[0])),
                           fma(I[2], axis[2], fma(I[5], axis[1], I[4] * axis[0]))};
    V push[3];
    cross(push, axis, I + 6);
    w.smooth[first + k] = -f[3 + k];
    w.smooth[first + 3 + k] = -dot3(axis, f);
    for (int j = 0; j < k; ++j) {
      const V other[3] = {R[j], R[3 + j], R[6 + j]};
      row[j] = zero;
      turn[3 + j] = dot3(other, momentum);
    }
    for (int j = 0; j < 3; ++j) turn[j] = push[j];
    row[k] = I[9] + armature_of<L>(m, w, first + k);
    turn[3 + k] = dot3(axis, momentum) + armature_of<L>(m, w, first + 3 + k);
  }
}

/// Up the tree: w.mass (inertia matrix with armature, pattern entries only), w.smooth = - bias forces.
/// Reads w.axis, w.inertia, w.force and sums the last two up the tree; writes w.mass, w.smooth.
template <class L>
COHORT_KERNEL void composite_inertia(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int b = m.nbody - 1; b >= 0; --b) {
    const BodyRecord& body = m.body[b];
    V I[10], f[6];
    read<10>(I, w.inertia + 10 * b);
    read<6>(f, w.force + 6 * b);
    if (body.kind == kBodyFree) {
      free_inertia<L>(m, w, b, I, f);
      continue;
    }
    for (int d = body.first_dof + body.dof_count - 1; d >= body.first_dof; --d) {
      V S[6], t[6];
      read<6>(S, w.axis + 6 * d);
      multiply_inertia(t, I, S);
      w.smooth[d] = -dot6(S, f);
      const auto row = w.mass + triangle(d, 0);
      for (int k = m.pattern_start[d]; k < m.pattern_start[d + 1]; ++k) {
        const int e = m.pattern[k];
        V other[6];
        read<6>(other, w.axis + 6 * e);
        row[e] = dot6(other, t);
      }
      row[d] += armature_of<L>(m, w, d);
    }
    if (body.parent >= 0) {
      const auto parent_inertia = w.inertia + 10 * body.parent, parent_force = w.force + 6 * body.parent;
      for (int i = 0; i < 10; ++i) parent_inertia[i] += I[i];
      for (int i = 0; i < 6; ++i) parent_force[i] += f[i];
    }
  }
}

}  // namespace cohort::sim
