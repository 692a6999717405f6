/// Poses of bodies and axes of joints from coordinates.
#pragma once
#include "sim/kernels/lane/spatial.h"
#include "sim/kernels/lane/workspace.h"

namespace cohort::sim {

/// R := R turned by `angle` about coordinate axis k of its own frame: mixes two columns.
template <class V>
COHORT_LANE void turn_about_coordinate(V* R, int k, V angle) {
  V s, c;
  sincos(angle, s, c);
  const int i = k == 2 ? 0 : k + 1, j = k == 0 ? 2 : k - 1;
  for (int r = 0; r < 3; ++r) {
    const V a = R[3 * r + i], b = R[3 * r + j];
    R[3 * r + i] = fma(c, a, s * b);
    R[3 * r + j] = fma(c, b, -(s * a));
  }
}

/// R := R turned by `angle` about the unit axis u of its own frame (Rodrigues).
template <class V>
COHORT_LANE void turn_about_axis(V* R, const float* u, V angle) {
  V s, c;
  sincos(angle, s, c);
  const V one_c = V(1.0f) - c;
  V T[9];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) T[3 * i + j] = V(u[i] * u[j]) * one_c;
    T[4 * i] += c;
  }
  T[1] -= s * V(u[2]), T[2] += s * V(u[1]), T[3] += s * V(u[2]);
  T[5] -= s * V(u[0]), T[6] -= s * V(u[1]), T[7] += s * V(u[0]);
  multiply3(R, R, T);
}

/// Reads w.q, w.mocap_*; writes w.rot, w.pos, w.origin, w.axis.
template <class L>
COHORT_KERNEL void kinematics(const ModelView& m, Workspace<L>& w) {
  using V = typename L::V;
  const V zero(0.0f);
  for (int b = 0; b < m.nbody; ++b) {
    const BodyRecord& body = m.body[b];
    const bool root = body.parent < 0;
    V R[9], x[3];
    if (body.kind == kBodyFree || body.kind == kBodyMocap) {
      V q[4];
      const bool mocap = body.kind == kBodyMocap;
      read<3>(x, mocap ? w.mocap_pos + 3 * body.mocap : w.q + body.qpos);
      read<4>(q, mocap ? w.mocap_quat + 4 * body.mocap : w.q + (body.qpos + 3));
      normalize_quat(q);
      quat_to_matrix(R, q);
    } else {
      if (root) {
        for (int i = 0; i < 3; ++i) x[i] = V(body.pos[i]);
        for (int i = 0; i < 9; ++i) R[i] = V(body.rot[i]);
      } else {
        V Rp[9], xp[3];
        read<9>(Rp, w.rot + 9 * body.parent);
        read<3>(xp, w.pos + 3 * body.parent);
        rotate(x, Rp, body.pos);
        for (int i = 0; i < 3; ++i) x[i] += xp[i];
        if (body.turned) {
          multiply3(R, Rp, body.rot);
        } else {
          for (int i = 0; i < 9; ++i) R[i] = Rp[i];
        }
      }
      if (body.kind == kBodyBall) {
        V q[4], Q[9], anchor[3];
        read<4>(q, w.q + body.qpos);
        normalize_quat(q);
        quat_to_matrix(Q, q);
        rotate(anchor, R, body.anchor);
        for (int i = 0; i < 3; ++i) anchor[i] += x[i];
        multiply3(R, R, Q);
        V arm[3];
        rotate(arm, R, body.anchor);
        for (int i = 0; i < 3; ++i) x[i] = anchor[i] - arm[i];
        for (int k = 0; k < 3; ++k) {
          const auto S = w.axis + 6 * (body.first_dof + k);
          for (int i = 0; i < 3; ++i) S[i] = R[3 * i + k], S[3 + i] = anchor[i];
        }
      }
      for (int j = body.first_joint; j < body.first_joint + body.joint_count; ++j) {
        const JointRecord& joint = m.joint[j];
        const auto S = w.axis + 6 * joint.dof;
        V u[3];
        if (joint.axis_kind == kAxisAny) {
          rotate(u, R, joint.axis);
        } else {
          for (int i = 0; i < 3; ++i) u[i] = R[3 * i + joint.axis_kind] * V(joint.sign);
        }
        const V value = w.q[joint.qpos] - V(joint.qpos0);
        if (joint.hinge) {
          V anchor[3];
          for (int i = 0; i < 3; ++i) anchor[i] = x[i];
          if (joint.has_pos) {
            rotate(anchor, R, joint.pos);
            for (int i = 0; i < 3; ++i) anchor[i] += x[i];
          }
          if (joint.axis_kind == kAxisAny) {
            turn_about_axis(R, joint.axis, value);
          } else {
            turn_about_coordinate(R, joint.axis_kind, value * V(joint.sign));
          }
          if (joint.has_pos) {
            V arm[3];
            rotate(arm, R, joint.pos);
            for (int i = 0; i < 3; ++i) x[i] = anchor[i] - arm[i];
          }
          // The anchor waits in the linear part until the body's position, hence a root's reference point, is known.
          for (int i = 0; i < 3; ++i) S[i] = u[i], S[3 + i] = anchor[i];
        } else {
          for (int i = 0; i < 3; ++i) {
            x[i] = fma(u[i], value, x[i]);
            S[i] = zero, S[3 + i] = u[i];
          }
        }
      }
    }
    // Axes about the reference point: a hinge at anchor a with axis u moves the point at the reference with a x u.
    const auto finish = [&](int dof) {
      const auto S = w.axis + 6 * dof;
      V u[3], a[3], l[3];
      read<3>(u, S);
      read<3>(a, S + 3);
      if (root) {
        for (int i = 0; i < 3; ++i) a[i] -= x[i];
      }
      cross(l, a, u);
      write<3>(S + 3, l);
    };
    if (body.kind == kBodyBall) {
      for (int k = 0; k < 3; ++k) finish(body.first_dof + k);
    }
    for (int j = body.first_joint; j < body.first_joint + body.joint_count; ++j) {
      if (m.joint[j].hinge) finish(m.joint[j].dof);
    }
    if (body.kind == kBodyFree) {
      for (int k = 0; k < 3; ++k) {
        const auto T = w.axis + 6 * (body.first_dof + k), S = w.axis + 6 * (body.first_dof + 3 + k);
        for (int i = 0; i < 6; ++i) T[i] = V(i == 3 + k ? 1.0f : 0.0f);
        for (int i = 0; i < 3; ++i) S[i] = R[3 * i + k], S[3 + i] = zero;
      }
    }
    if (root) {
      write<3>(w.origin + 3 * b, x);
      for (int i = 0; i < 3; ++i) x[i] = zero;
    }
    write<9>(w.rot + 9 * b, R);
    write<3>(w.pos + 3 * b, x);
  }
}

}  // namespace cohort::sim
