/// Vectors of three doubles for the queued narrow phases.
#pragma once
#include <cmath>

#include "sim/kernels/lane/device.h"

namespace cohort::sim::collide {

/// Square root, rounded as IEEE 754 says, and absolute value: names of their own, because a device has no std:: and the
/// lanes' functions are of floats.
COHORT_DEVICE inline double root(double v) {
#if defined(__CUDA_ARCH__)
  return __dsqrt_rn(v);
#else
  return std::sqrt(v);
#endif
}
COHORT_DEVICE inline double magnitude(double v) {
#if defined(__CUDA_ARCH__)
  return ::fabs(v);
#else
  return std::abs(v);
#endif
}

struct Vec {
  double x = 0, y = 0, z = 0;
  COHORT_DEVICE double& operator[](int i) { return i == 0 ? x : i == 1 ? y : z; }
  COHORT_DEVICE double operator[](int i) const { return i == 0 ? x : i == 1 ? y : z; }
};

COHORT_DEVICE inline Vec operator+(Vec a, Vec b) {
  return {a.x + b.x, a.y + b.y, a.z + b.z};
}
COHORT_DEVICE inline Vec operator-(Vec a, Vec b) {
  return {a.x - b.x, a.y - b.y, a.z - b.z};
}
COHORT_DEVICE inline Vec operator-(Vec a) {
  return {-a.x, -a.y, -a.z};
}
COHORT_DEVICE inline Vec operator*(double s, Vec a) {
  return {s * a.x, s * a.y, s * a.z};
}
COHORT_DEVICE inline double dot(Vec a, Vec b) {
  return a.x * b.x + a.y * b.y + a.z * b.z;
}
COHORT_DEVICE inline Vec cross(Vec a, Vec b) {
  return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}
COHORT_DEVICE inline double norm(Vec a) {
  return root(dot(a, a));
}
COHORT_DEVICE inline double clamp(double v, double lower, double upper) {
  return v < lower ? lower : v > upper ? upper : v;
}
COHORT_DEVICE inline double greater(double a, double b) {
  return a > b ? a : b;
}
COHORT_DEVICE inline Vec vec(const double* p) {
  return {p[0], p[1], p[2]};
}
COHORT_DEVICE inline void put(double* to, Vec v) {
  to[0] = v.x, to[1] = v.y, to[2] = v.z;
}
/// R v and R' v of a row-major matrix.
COHORT_DEVICE inline Vec turn(const double* R, Vec v) {
  return {R[0] * v.x + R[1] * v.y + R[2] * v.z, R[3] * v.x + R[4] * v.y + R[5] * v.z,
          R[6] * v.x + R[7] * v.y + R[8] * v.z};
}
COHORT_DEVICE inline Vec turn_back(const double* R, Vec v) {
  return {R[0] * v.x + R[3] * v.y + R[6] * v.z, R[1] * v.x + R[4] * v.y + R[7] * v.z,
          R[2] * v.x + R[5] * v.y + R[8] * v.z};
}
COHORT_DEVICE inline Vec column(const double* R, int k) {
  return {R[k], R[3 + k], R[6 + k]};
}

}  // namespace cohort::sim::collide
