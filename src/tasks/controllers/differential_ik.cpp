#include "tasks/controllers/differential_ik.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"

namespace cohort::tasks {

bool solve_positive(std::span<double> a, int n_in, std::span<double> b, int m_in) {
  const auto n = static_cast<std::size_t>(n_in), m = static_cast<std::size_t>(m_in);
  for (std::size_t j = 0; j < n; ++j) {
    double d = a[j * n + j];
    for (std::size_t k = 0; k < j; ++k) d -= a[j * n + k] * a[j * n + k];
    if (!(d > 0)) return false;
    a[j * n + j] = std::sqrt(d);
    for (std::size_t i = j + 1; i < n; ++i) {
      double s = a[i * n + j];
      for (std::size_t k = 0; k < j; ++k) s -= a[i * n + k] * a[j * n + k];
      a[i * n + j] = s / a[j * n + j];
    }
  }
  for (std::size_t c = 0; c < m; ++c) {
    for (std::size_t i = 0; i < n; ++i) {
      double s = b[i * m + c];
      for (std::size_t k = 0; k < i; ++k) s -= a[i * n + k] * b[k * m + c];
      b[i * m + c] = s / a[i * n + i];
    }
    for (std::size_t i = n; i-- > 0;) {
      double s = b[i * m + c];
      for (std::size_t k = i + 1; k < n; ++k) s -= a[k * n + i] * b[k * m + c];
      b[i * m + c] = s / a[i * n + i];
    }
  }
  return true;
}

void differential_ik(const DifferentialIkSettings& settings, std::span<const double> jacobian, int stride, int joints,
                     std::span<const double, 6> error, std::span<const double> posture_error,
                     std::span<double> change) {
  COHORT_ASSERT(joints <= kMostArmDofs, "{} joints: at most {}", joints, kMostArmDofs);
  const auto n = static_cast<std::size_t>(joints), row = static_cast<std::size_t>(stride);
  // The rest's motion is part of the same solve: J dq = e with dq = p + J+ (e - J p).
  std::array<double, 36> gram;
  std::array<double, 6> wanted;
  for (std::size_t i = 0; i < 6; ++i) {
    wanted[i] = error[i];
    for (std::size_t k = 0; k < n; ++k) wanted[i] -= jacobian[i * row + k] * settings.posture * posture_error[k];
    for (std::size_t j = 0; j < 6; ++j) {
      double sum = i == j ? settings.damping * settings.damping : 0.0;
      for (std::size_t k = 0; k < n; ++k) sum += jacobian[i * row + k] * jacobian[j * row + k];
      gram[6 * i + j] = sum;
    }
  }
  const bool solved = solve_positive(gram, 6, wanted, 1);
  double largest = 0;
  for (std::size_t k = 0; k < n; ++k) {
    double sum = settings.posture * posture_error[k];
    if (solved)
      for (std::size_t i = 0; i < 6; ++i) sum += jacobian[i * row + k] * wanted[i];
    change[k] = sum;
    largest = std::max(largest, std::abs(sum));
  }
  if (largest > settings.most_turn)
    for (std::size_t k = 0; k < n; ++k) change[k] *= settings.most_turn / largest;
}

}  // namespace cohort::tasks
