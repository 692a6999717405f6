#include "data/transforms/rotation.h"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/error.h"
#include "core/vec3.h"

namespace cohort::data {
namespace {

using Quaternion = std::array<double, 4>;  // x y z w

Vec3 normalized(const Vec3& v, const char* what) {
  const double length = std::sqrt(dot(v, v));
  COHORT_THROW_UNLESS(length > 1e-12 && std::isfinite(length), "{} ({}, {}, {}) gives no rotation", what, v[0], v[1],
                      v[2]);
  return {v[0] / length, v[1] / length, v[2] / length};
}

Matrix3 multiply(const Matrix3& a, const Matrix3& b) {
  Matrix3 c{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j)
      for (std::size_t k = 0; k < 3; ++k) c[3 * i + j] += a[3 * i + k] * b[3 * k + j];
  return c;
}

Matrix3 about_axis(int axis, double angle) {
  const auto i = static_cast<std::size_t>((axis + 1) % 3), j = static_cast<std::size_t>((axis + 2) % 3);
  Matrix3 m{1, 0, 0, 0, 1, 0, 0, 0, 1};
  m[3 * i + i] = m[3 * j + j] = std::cos(angle);
  m[3 * j + i] = std::sin(angle);
  m[3 * i + j] = -std::sin(angle);
  return m;
}

Matrix3 from_quaternion(const Quaternion& q) {
  const auto [x, y, z, w] = q;
  return {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
          2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
          2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
}

/// By the largest of the four components (Markley 2008), with w >= 0.
Quaternion to_quaternion(const Matrix3& m) {
  const std::array<double, 4> decision{m[0], m[4], m[8], m[0] + m[4] + m[8]};
  const auto largest = static_cast<std::size_t>(std::max_element(decision.begin(), decision.end()) - decision.begin());
  Quaternion q;
  if (largest == 3) {
    q = {m[7] - m[5], m[2] - m[6], m[3] - m[1], 1 + decision[3]};
  } else {
    const std::size_t i = largest, j = (i + 1) % 3, k = (j + 1) % 3;
    q[i] = 1 - decision[3] + 2 * m[4 * i];
    q[j] = m[3 * j + i] + m[3 * i + j];
    q[k] = m[3 * k + i] + m[3 * i + k];
    q[3] = m[3 * k + j] - m[3 * j + k];
  }
  const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
  // Of the two quaternions of one rotation: w > 0, or the first component that is not zero.
  const double first = q[3] != 0 ? q[3] : q[0] != 0 ? q[0] : q[1] != 0 ? q[1] : q[2];
  for (double& v : q) v /= first < 0 ? -length : length;
  return q;
}

std::string known_forms() {
  return "euler_xyz (any order; capitals for moving axes), quaternion_xyzw, quaternion_wxyz, axis_angle, rotation_6d, "
         "rotation_6d_columns, matrix";
}

}  // namespace

RotationForm::RotationForm(const std::string& name) {
  if (name.starts_with("euler_") && name.size() == 9) {
    kind_ = Kind::kEuler;
    bool good = true;
    std::array<bool, 3> seen{};
    moving_axes_ = std::isupper(static_cast<unsigned char>(name[6])) != 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const char c = name[6 + i];
      good = good && (std::isupper(static_cast<unsigned char>(c)) != 0) == moving_axes_;
      const int axis = std::tolower(static_cast<unsigned char>(c)) - 'x';
      good = good && axis >= 0 && axis < 3 && !seen[static_cast<std::size_t>(axis)];
      if (!good) break;
      seen[static_cast<std::size_t>(axis)] = true;
      axes_[i] = axis;
    }
    if (good) return;
  }
  if (name == "quaternion_xyzw") {
    kind_ = Kind::kQuaternion;
  } else if (name == "quaternion_wxyz") {
    kind_ = Kind::kQuaternion;
    scalar_first_ = true;
  } else if (name == "axis_angle") {
    kind_ = Kind::kAxisAngle;
  } else if (name == "rotation_6d") {
    kind_ = Kind::kSixRows;
  } else if (name == "rotation_6d_columns") {
    kind_ = Kind::kSixColumns;
  } else if (name == "matrix") {
    kind_ = Kind::kMatrix;
  } else {
    throw Error(format("unknown rotation form '{}'; known are {}", name, known_forms()));
  }
}

std::size_t RotationForm::width() const {
  switch (kind_) {
    case Kind::kEuler:
    case Kind::kAxisAngle:
      return 3;
    case Kind::kQuaternion:
      return 4;
    case Kind::kSixRows:
    case Kind::kSixColumns:
      return 6;
    case Kind::kMatrix:
      break;
  }
  return 9;
}

Matrix3 RotationForm::to_matrix(std::span<const double> v) const {
  COHORT_CHECK(v.size() == width(), "{} numbers for a rotation of {}", v.size(), width());
  switch (kind_) {
    case Kind::kEuler: {
      const Matrix3 a = about_axis(axes_[0], v[0]), b = about_axis(axes_[1], v[1]), c = about_axis(axes_[2], v[2]);
      return moving_axes_ ? multiply(multiply(a, b), c) : multiply(multiply(c, b), a);
    }
    case Kind::kQuaternion: {
      Quaternion q = scalar_first_ ? Quaternion{v[1], v[2], v[3], v[0]} : Quaternion{v[0], v[1], v[2], v[3]};
      const double length = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      COHORT_THROW_UNLESS(length > 1e-12 && std::isfinite(length), "the quaternion ({}, {}, {}, {}) is no rotation",
                          v[0], v[1], v[2], v[3]);
      for (double& x : q) x /= length;
      return from_quaternion(q);
    }
    case Kind::kAxisAngle: {
      const double angle = std::sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
      // sin(angle / 2) / angle, by its series where the quotient loses digits.
      const double scale =
          angle < 1e-3 ? 0.5 - angle * angle / 48 + angle * angle * angle * angle / 3840 : std::sin(angle / 2) / angle;
      return from_quaternion({v[0] * scale, v[1] * scale, v[2] * scale, std::cos(angle / 2)});
    }
    case Kind::kSixRows:
    case Kind::kSixColumns: {
      const Vec3 first = normalized({v[0], v[1], v[2]}, "the first vector");
      const Vec3 given{v[3], v[4], v[5]};
      const double along = dot(first, given);
      const Vec3 second = normalized(
          {given[0] - along * first[0], given[1] - along * first[1], given[2] - along * first[2]}, "the second vector");
      const Vec3 third = cross(first, second);
      if (kind_ == Kind::kSixRows)
        return {first[0], first[1], first[2], second[0], second[1], second[2], third[0], third[1], third[2]};
      return {first[0], second[0], third[0], first[1], second[1], third[1], first[2], second[2], third[2]};
    }
    case Kind::kMatrix:
      break;
  }
  Matrix3 m;
  std::copy(v.begin(), v.end(), m.begin());
  return m;
}

void RotationForm::from_matrix(const Matrix3& m, std::span<double> out) const {
  COHORT_CHECK(out.size() == width(), "room for {} numbers of a rotation of {}", out.size(), width());
  switch (kind_) {
    case Kind::kEuler: {
      // As a product about moving axes i, j, k; about fixed axes it is the reversed product.
      const auto i = static_cast<std::size_t>(axes_[moving_axes_ ? 0 : 2]), j = static_cast<std::size_t>(axes_[1]),
                 k = static_cast<std::size_t>(axes_[moving_axes_ ? 2 : 0]);
      const double sign = (i + 1) % 3 == j ? 1 : -1;
      const auto at = [&](std::size_t row, std::size_t column) { return m[3 * row + column]; };
      const double cosine = std::hypot(at(i, i), at(i, j));
      double first = 0, third = 0;
      const double second = std::atan2(sign * at(i, k), cosine);
      if (cosine > 1e-7) {
        first = std::atan2(-sign * at(j, k), at(k, k));
        third = std::atan2(-sign * at(i, j), at(i, i));
      } else if (moving_axes_) {
        first = std::atan2(sign * at(k, j), at(j, j));
      } else {
        third = std::atan2(sign * at(j, i), at(j, j));
      }
      out[0] = moving_axes_ ? first : third;
      out[1] = second;
      out[2] = moving_axes_ ? third : first;
      return;
    }
    case Kind::kQuaternion: {
      const Quaternion q = to_quaternion(m);
      if (scalar_first_)
        std::copy_n(std::array{q[3], q[0], q[1], q[2]}.begin(), 4, out.begin());
      else
        std::copy_n(q.begin(), 4, out.begin());
      return;
    }
    case Kind::kAxisAngle: {
      const Quaternion q = to_quaternion(m);
      const double sine = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2]);
      const double angle = 2 * std::atan2(sine, q[3]);
      const double scale = angle < 1e-3 ? 2 + angle * angle / 12 + 7 * angle * angle * angle * angle / 2880
                                        : angle / std::sin(angle / 2);
      for (std::size_t d = 0; d < 3; ++d) out[d] = q[d] * scale;
      return;
    }
    case Kind::kSixRows:
      std::copy_n(m.begin(), 6, out.begin());
      return;
    case Kind::kSixColumns:
      for (std::size_t d = 0; d < 3; ++d) {
        out[d] = m[3 * d];
        out[3 + d] = m[3 * d + 1];
      }
      return;
    case Kind::kMatrix:
      std::copy(m.begin(), m.end(), out.begin());
  }
}

}  // namespace cohort::data
