/// Inertia matrix (composite rigid bodies) and bias forces (recursive Newton-Euler), Featherstone 2008, chapters 5 and
/// 6, in world axes about one reference point per tree.
#pragma once
#include "sim/kernels/parameters.h"
#include "sim/kernels/spatial.h"
#include "sim/kernels/workspace.h"

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
      for (int i = 0; i < 3; ++i) v[i] = v[3 + i] = a[i] = zero, a[3 + i] = V(-m.option.gravity[i]);
    }
    const bool together = body.kind == kBodyFree || body.kind == kBodyBall;  // three axes that turn with the body
    const int first_turn = body.first_dof + (body.kind == kBodyFree ? 3 : 0);
    V before[6] = {v[0], v[1], v[2], v[3], v[4], v[5]};
    for (int d = body.first_dof; d < body.first_dof + body.dof_count; ++d) {
      V S[6];
      read<6>(S, w.axis + 6 * d);
      const V rate = w.v[d];
      if (d >= first_turn) {
        if (!together || d == first_turn) {
          for (int i = 0; i < 6; ++i) before[i] = v[i];
        }
        V turn[6] = {zero, zero, zero, zero, zero, zero};
        add_cross_motion(turn, before, S);
        for (int i = 0; i < 6; ++i) a[i] = fma(turn[i], rate, a[i]);
      }
      for (int i = 0; i < 6; ++i) v[i] = fma(S[i], rate, v[i]);
    }
    write<6>(w.vel + 6 * b, v);
    write<6>(w.acc + 6 * b, a);
    V R[9], x[3], I[10], momentum[6], f[6];
    read<9>(R, w.rot + 9 * b);
    read<3>(x, w.pos + 3 * b);
    const BodyMass<V> own = mass_of<L>(m, w, b);
    body_inertia(I, own, R, x);
    multiply_inertia(f, I, a);
    multiply_inertia(momentum, I, v);
    add_cross_force(f, v, momentum);
    if (body.gravcomp_mass != 0) {
      V c[3], lift[3];
      rotate(c, R, own.lifted_com);
      for (int i = 0; i < 3; ++i) c[i] += x[i], lift[i] = own.lifted * V(m.option.gravity[i]);
      add_cross(f, c, lift);
      for (int i = 0; i < 3; ++i) f[3 + i] += lift[i];
    }
    write<6>(w.force + 6 * b, f);
    write<10>(w.inertia + 10 * b, I);
  }
}

/// Subtracts the forces that the caller applies at links' centres of mass from w.force.
template <class L>
COHORT_KERNEL void applied_forces(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
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
    rotate(c, R, link.com);
    for (int i = 0; i < 3; ++i) c[i] += x[i];
    for (int i = 0; i < 3; ++i) f[i] = F[3 + i], f[3 + i] = F[i];
    add_cross(f, c, F);
    const auto to = w.force + 6 * link.body;
    for (int i = 0; i < 6; ++i) to[i] -= f[i];
  }
}

/// Up the tree: w.mass (inertia matrix with armature, pattern entries only), w.smooth = - bias forces.
template <class L>
COHORT_KERNEL void composite_inertia(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  for (int b = m.nbody - 1; b >= 0; --b) {
    const BodyRecord& body = m.body[b];
    V I[10], f[6];
    read<10>(I, w.inertia + 10 * b);
    read<6>(f, w.force + 6 * b);
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
