/// Vectors, rotations and spatial (6D) vectors over lanes. Rotations are row-major 3x3 matrices R_WB: columns are B's
/// axes in W. Spatial vectors hold the angular part in [0..2] and the linear part in [3..5] (Featherstone 2008, chapter
/// 2).
#pragma once
#include "sim/kernels/lane/lane.h"

namespace cohort::sim {

template <class V>
COHORT_LANE V dot3(const V* a, const V* b) {
  return fma(a[2], b[2], fma(a[1], b[1], a[0] * b[0]));
}
template <class V>
COHORT_LANE void cross(V* out, const V* a, const V* b) {
  const V x = fma(a[1], b[2], -(a[2] * b[1])), y = fma(a[2], b[0], -(a[0] * b[2])), z = fma(a[0], b[1], -(a[1] * b[0]));
  out[0] = x, out[1] = y, out[2] = z;
}
/// out += a x b
template <class V>
COHORT_LANE void add_cross(V* out, const V* a, const V* b) {
  out[0] = fma(a[1], b[2], fma(-a[2], b[1], out[0]));
  out[1] = fma(a[2], b[0], fma(-a[0], b[2], out[1]));
  out[2] = fma(a[0], b[1], fma(-a[1], b[0], out[2]));
}
/// out = R p
template <class V, class P>
COHORT_LANE void rotate(V* out, const V* R, const P* p) {
  V r[3];
  for (int i = 0; i < 3; ++i) r[i] = fma(R[3 * i + 2], V(p[2]), fma(R[3 * i + 1], V(p[1]), R[3 * i] * V(p[0])));
  for (int i = 0; i < 3; ++i) out[i] = r[i];
}
/// out = R' p
template <class V, class P>
COHORT_LANE void rotate_back(V* out, const V* R, const P* p) {
  V r[3];
  for (int i = 0; i < 3; ++i) r[i] = fma(R[6 + i], V(p[2]), fma(R[3 + i], V(p[1]), R[i] * V(p[0])));
  for (int i = 0; i < 3; ++i) out[i] = r[i];
}
/// out = A B
template <class V, class P>
COHORT_LANE void multiply3(V* out, const V* A, const P* B) {
  V r[9];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      r[3 * i + j] = fma(A[3 * i + 2], V(B[6 + j]), fma(A[3 * i + 1], V(B[3 + j]), A[3 * i] * V(B[j])));
    }
  }
  for (int i = 0; i < 9; ++i) out[i] = r[i];
}
/// Rotation matrix of a unit quaternion (w, x, y, z).
template <class V>
COHORT_LANE void quat_to_matrix(V* R, const V* q) {
  const V two(2.0f), one(1.0f);
  const V xx = q[1] * q[1], yy = q[2] * q[2], zz = q[3] * q[3];
  const V xy = q[1] * q[2], xz = q[1] * q[3], yz = q[2] * q[3];
  const V wx = q[0] * q[1], wy = q[0] * q[2], wz = q[0] * q[3];
  R[0] = one - two * (yy + zz), R[1] = two * (xy - wz), R[2] = two * (xz + wy);
  R[3] = two * (xy + wz), R[4] = one - two * (xx + zz), R[5] = two * (yz - wx);
  R[6] = two * (xz - wy), R[7] = two * (yz + wx), R[8] = one - two * (xx + yy);
}
/// Unit quaternion of a rotation matrix: the largest of the four components is found first (Shepperd 1978).
template <class V>
COHORT_LANE void matrix_to_quat(V* q, const V* R) {
  const V one(1.0f), half(0.5f);
  const V trace[4] = {R[0] + R[4] + R[8], R[0] - R[4] - R[8], R[4] - R[0] - R[8], R[8] - R[0] - R[4]};
  V best = trace[0];
  for (int i = 1; i < 4; ++i) best = max(best, trace[i]);
  const V s = sqrt(max(best + one, V(1e-12f)));
  const V r = half / s, h = half * s;
  const V xw = (R[7] - R[5]) * r, yw = (R[2] - R[6]) * r, zw = (R[3] - R[1]) * r;
  const V xy = (R[1] + R[3]) * r, xz = (R[2] + R[6]) * r, yz = (R[5] + R[7]) * r;
  const V rows[4][4] = {{h, xw, yw, zw}, {xw, h, xy, xz}, {yw, xy, h, yz}, {zw, xz, yz, h}};
  for (int c = 0; c < 4; ++c) q[c] = rows[3][c];
  for (int k = 2; k >= 0; --k) {
    const auto largest = trace[k] == best;
    for (int c = 0; c < 4; ++c) q[c] = select(largest, rows[k][c], q[c]);
  }
}
/// out = a b
template <class V, class P>
COHORT_LANE void multiply_quat(V* out, const V* a, const P* b) {
  const V w(b[0]), x(b[1]), y(b[2]), z(b[3]);
  const V r0 = fma(a[0], w, -fma(a[1], x, fma(a[2], y, a[3] * z)));
  const V r1 = fma(a[0], x, fma(a[1], w, fma(a[2], z, -(a[3] * y))));
  const V r2 = fma(a[0], y, fma(-a[1], z, fma(a[2], w, a[3] * x)));
  const V r3 = fma(a[0], z, fma(a[1], y, fma(-a[2], x, a[3] * w)));
  out[0] = r0, out[1] = r1, out[2] = r2, out[3] = r3;
}
/// Scales to length 1; (1, 0, 0, 0) for a quaternion without length.
template <class V>
COHORT_LANE void normalize_quat(V* q) {
  const V n2 = fma(q[3], q[3], fma(q[2], q[2], fma(q[1], q[1], q[0] * q[0])));
  const auto good = n2 > V(1e-30f);
  const V inverse = V(1.0f) / sqrt(select(good, n2, V(1.0f)));
  q[0] = select(good, q[0] * inverse, V(1.0f));
  for (int i = 1; i < 4; ++i) q[i] = select(good, q[i] * inverse, V(0.0f));
}
/// Rotation vector of a unit quaternion, in (-pi, pi].
template <class V>
COHORT_LANE void quat_to_rotation(V* out, const V* q) {
  const V sine = sqrt(dot3(q + 1, q + 1));
  V angle = V(2.0f) * atan2(sine, q[0]);
  angle = select(angle > V(3.1415926536f), angle - V(6.2831853072f), angle);
  const V scale = select(sine > V(1e-12f), angle / max(sine, V(1e-12f)), V(2.0f));
  for (int i = 0; i < 3; ++i) out[i] = q[1 + i] * scale;
}

template <class V>
COHORT_LANE V dot6(const V* a, const V* b) {
  V s = a[0] * b[0];
  for (int i = 1; i < 6; ++i) s = fma(a[i], b[i], s);
  return s;
}
/// out += s x m, the rate of a motion vector m fixed in a frame that moves with s.
template <class V>
COHORT_LANE void add_cross_motion(V* out, const V* s, const V* m) {
  add_cross(out, s, m);
  add_cross(out + 3, s, m + 3);
  add_cross(out + 3, s + 3, m);
}
/// out += s x* f, the rate of a force vector.
template <class V>
COHORT_LANE void add_cross_force(V* out, const V* s, const V* f) {
  add_cross(out, s, f);
  add_cross(out, s + 3, f + 3);
  add_cross(out + 3, s, f + 3);
}

/// Spatial inertia: [0..5] rotational inertia about the reference point (xx yy zz xy xz yz), [6..8] mass times position
/// of the centre of mass, [9] mass.
inline constexpr int kInertia = 10;
/// out = I m
template <class V>
COHORT_LANE void multiply_inertia(V* out, const V* I, const V* m) {
  out[0] = fma(I[4], m[2], fma(I[3], m[1], I[0] * m[0]));
  out[1] = fma(I[5], m[2], fma(I[1], m[1], I[3] * m[0]));
  out[2] = fma(I[2], m[2], fma(I[5], m[1], I[4] * m[0]));
  add_cross(out, I + 6, m + 3);
  for (int i = 0; i < 3; ++i) out[3 + i] = I[9] * m[3 + i];
  add_cross(out + 3, m, I + 6);
}

}  // namespace cohort::sim
