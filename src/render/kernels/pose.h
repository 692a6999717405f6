/// Places and rotations in double, as cameras, lights and geoms are put into a picture: three numbers, and nine of a
/// matrix, row-major. Sums, products, quotients and roots only, each rounded in one way: a GPU places what a CPU does.
#pragma once
#include "sim/kernels/lane/device.h"

namespace cohort::render {

COHORT_LANE double root(double a) {
#if defined(__CUDA_ARCH__)
  return ::sqrt(a);
#else
  return __builtin_sqrt(a);
#endif
}
COHORT_LANE double floor_of(double a) {
#if defined(__CUDA_ARCH__)
  return ::floor(a);
#else
  return __builtin_floor(a);
#endif
}
/// The nearest whole number, halves to even.
COHORT_LANE double nearest_whole(double a) {
#if defined(__CUDA_ARCH__)
  return ::rint(a);
#else
  return __builtin_nearbyint(a);
#endif
}
COHORT_LANE double magnitude(double a) {
#if defined(__CUDA_ARCH__)
  return ::fabs(a);
#else
  return __builtin_fabs(a);
#endif
}
/// The first where the other is no number.
COHORT_LANE double lesser(double a, double b) {
  return b < a ? b : a;
}
COHORT_LANE double greater(double a, double b) {
  return a < b ? b : a;
}

COHORT_LANE double dot3(const double* a, const double* b) {
  return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}
COHORT_LANE void cross3(const double* a, const double* b, double* out) {
  out[0] = a[1] * b[2] - a[2] * b[1], out[1] = a[2] * b[0] - a[0] * b[2], out[2] = a[0] * b[1] - a[1] * b[0];
}
/// Of length 1; (0, 0, 1) for one without a length.
COHORT_LANE void unit3(const double* a, double* out) {
  const double n = root(dot3(a, a));
  const bool some = n > 1e-15;
  out[0] = some ? a[0] / n : 0, out[1] = some ? a[1] / n : 0, out[2] = some ? a[2] / n : 1;
}
/// out = r a
COHORT_LANE void turn3(const double* r, const double* a, double* out) {
  for (int i = 0; i < 3; ++i) out[i] = r[3 * i] * a[0] + r[3 * i + 1] * a[1] + r[3 * i + 2] * a[2];
}
/// out = a b
COHORT_LANE void product3(const double* a, const double* b, double* out) {
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) out[3 * i + j] = a[3 * i] * b[j] + a[3 * i + 1] * b[3 + j] + a[3 * i + 2] * b[6 + j];
  }
}
/// Of a quaternion w x y z of any length.
COHORT_LANE void rotation3(const double* quat, double* out) {
  double n = 0;
  for (int i = 0; i < 4; ++i) n += quat[i] * quat[i];
  const double s = n > 0 ? 2 / n : 0;
  const double w = quat[0], x = quat[1], y = quat[2], z = quat[3];
  out[0] = 1 - s * (y * y + z * z), out[1] = s * (x * y - w * z), out[2] = s * (x * z + w * y);
  out[3] = s * (x * y + w * z), out[4] = 1 - s * (x * x + z * z), out[5] = s * (y * z - w * x);
  out[6] = s * (x * z - w * y), out[7] = s * (y * z + w * x), out[8] = 1 - s * (x * x + y * y);
}
COHORT_LANE void column3(const double* m, int k, double* out) {
  out[0] = m[k], out[1] = m[3 + k], out[2] = m[6 + k];
}
COHORT_LANE void put3(const double* from, float* to) {
  for (int i = 0; i < 3; ++i) to[i] = static_cast<float>(from[i]);
}

}  // namespace cohort::render
