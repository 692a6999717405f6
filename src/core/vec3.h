/// Vectors, matrices and rotations in double, on the host. Kernels have their own, which a device computes, too
/// (sim/kernels/collide/convex/vectors.h, render/kernels/vector.h).
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace cohort {

using Vec3 = std::array<double, 3>;
using Mat3 = std::array<double, 9>;  ///< row-major
using Quat = std::array<double, 4>;  ///< w x y z

inline Vec3 operator+(const Vec3& a, const Vec3& b) {
  return {a[0] + b[0], a[1] + b[1], a[2] + b[2]};
}
inline Vec3 operator-(const Vec3& a, const Vec3& b) {
  return {a[0] - b[0], a[1] - b[1], a[2] - b[2]};
}
inline Vec3 operator*(double s, const Vec3& a) {
  return {s * a[0], s * a[1], s * a[2]};
}
inline double dot(const Vec3& a, const Vec3& b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
inline Vec3 cross(const Vec3& a, const Vec3& b) {
  return {a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]};
}
inline double norm(const Vec3& a) {
  return std::sqrt(dot(a, a));
}

inline Vec3 operator*(const Mat3& m, const Vec3& v) {
  return {m[0] * v[0] + m[1] * v[1] + m[2] * v[2], m[3] * v[0] + m[4] * v[1] + m[5] * v[2],
          m[6] * v[0] + m[7] * v[1] + m[8] * v[2]};
}
inline Mat3 operator*(const Mat3& a, const Mat3& b) {
  Mat3 c{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      c[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
  return c;
}
inline Mat3 transpose(const Mat3& m) {
  return {m[0], m[3], m[6], m[1], m[4], m[7], m[2], m[5], m[8]};
}
inline Vec3 column(const Mat3& m, std::size_t j) {
  return {m[j], m[3 + j], m[6 + j]};
}

inline Quat operator*(const Quat& a, const Quat& b) {
  return {a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3], a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
          a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1], a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0]};
}
inline Quat normalized(const Quat& q) {
  const double n = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  return {q[0] / n, q[1] / n, q[2] / n, q[3] / n};
}
/// Of a unit quaternion.
inline Mat3 rotation(const Quat& q) {
  const double w = q[0], x = q[1], y = q[2], z = q[3];
  return {w * w + x * x - y * y - z * z, 2 * (x * y - w * z),           2 * (x * z + w * y),
          2 * (x * y + w * z),           w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
          2 * (x * z - w * y),           2 * (y * z + w * x),           w * w - x * x - y * y + z * z};
}
/// About a unit axis.
inline Quat quaternion(const Vec3& axis, double angle) {
  const double s = std::sin(0.5 * angle);
  return {std::cos(0.5 * angle), s * axis[0], s * axis[1], s * axis[2]};
}
/// Axis times angle, in [0, pi], of a rotation.
inline Vec3 rotation_vector(const Mat3& r) {
  const Vec3 axis{r[7] - r[5], r[2] - r[6], r[3] - r[1]};  // 2 sin(angle) axis
  const double sine = 0.5 * norm(axis), cosine = 0.5 * (r[0] + r[4] + r[8] - 1);
  const double angle = std::atan2(sine, cosine);
  if (sine > 1e-9) return (0.5 * angle / sine) * axis;
  if (cosine > 0) return 0.5 * axis;
  // Half a turn: the axis is in the diagonal.
  const std::size_t k = r[0] > r[4] ? (r[0] > r[8] ? 0 : 2) : (r[4] > r[8] ? 1 : 2);
  Vec3 half{};
  const double largest = std::sqrt(std::max(0.0, 0.5 * (r[4 * k] + 1)));
  for (std::size_t j = 0; j < 3; ++j)
    half[j] = j == k ? largest : 0.25 * (r[3 * k + j] + r[3 * j + k]) / std::max(1e-12, largest);
  return angle * half;
}

/// The yaw of an upright thing from its quaternion (w x y z).
inline double yaw_of(const Quat& q) {
  return std::atan2(2 * (q[0] * q[3] + q[1] * q[2]), 1 - 2 * (q[2] * q[2] + q[3] * q[3]));
}
/// Into [-period / 2, period / 2].
inline double wrapped(double angle, double period) {
  return std::remainder(angle, period);
}

}  // namespace cohort
