/// Representations of rotations and conversions between them, in float64, with the conventions of
/// scipy.spatial.transform.Rotation.
#pragma once
#include <array>
#include <span>
#include <string>

namespace cohort::data {

/// Row-major.
using Matrix3 = std::array<double, 9>;

/// One way to write a rotation, chosen by name:
///   euler_xyz (3)            angles in rad about the axes in this order; small letters: fixed axes (R = Rz Ry Rx),
///                            capitals (euler_XYZ): axes that move along (R = Rx Ry Rz). Any order of the three axes.
///   quaternion_xyzw (4), quaternion_wxyz (4)   read normalised; written with w >= 0
///   axis_angle (3)           unit axis times angle in rad; written with an angle in [0, pi]
///   rotation_6d (6)          the matrix's first two rows, as PyTorch3D and DROID write it; read by Gram-Schmidt
///                            (Zhou et al. 2019, section B)
///   rotation_6d_columns (6)  its first two columns
///   matrix (9)               row-major; taken as it is
class RotationForm {
 public:
  /// Throws Error naming what is known.
  explicit RotationForm(const std::string& name);
  /// How many numbers it takes.
  std::size_t width() const;
  /// Throws Error where the numbers are no rotation (a zero quaternion, parallel vectors).
  Matrix3 to_matrix(std::span<const double> values) const;
  /// At a gimbal lock the third Euler angle is 0, as in scipy.
  void from_matrix(const Matrix3& matrix, std::span<double> out) const;

 private:
  enum class Kind { kEuler, kQuaternion, kAxisAngle, kSixRows, kSixColumns, kMatrix };
  Kind kind_ = Kind::kMatrix;
  std::array<int, 3> axes_{};  // Euler: 0 = x
  bool moving_axes_ = false;
  bool scalar_first_ = false;
};

}  // namespace cohort::data
