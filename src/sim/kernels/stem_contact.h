/// The Jacobian C of a contact on a stem (stems.h) as it lies in a group's piece: where the contact is, and its frame.
/// Row r is (arm x axis_r, axis_r) for the forces, r < 3, and (axis_{r - 3}, 0) for the torques, so that products with
/// C are few products with the frame and one with the arm.
#pragma once
#include "sim/kernels/spatial.h"
#include "sim/kernels/workspace.h"

namespace cohort::sim {

/// Values of a contact with `dim` rows: (3) arm, from the stem's point to the contact; its axes by rows, of which a
/// contact without friction has the first.
COHORT_LANE int stem_contact_size(int dim) {
  return dim == 1 ? 6 : 12;
}

/// Which rows a group's weights couple.
enum class Coupling {
  kNone,    ///< no two: equalities
  kNormal,  ///< the normal with each tangent: pyramids
  kAll,     ///< elliptic cones
};
COHORT_LANE constexpr bool couples(Coupling coupling, int i, int j) {
  return i == j || coupling == Coupling::kAll || (coupling == Coupling::kNormal && (i == 0 || j == 0));
}

template <class L, int kDim>
class StemContact {
  using V = typename L::V;
  static constexpr int kForces = kDim < 3 ? kDim : 3;

 public:
  COHORT_LANE explicit StemContact(typename L::Ptr piece) {
    read<3>(arm_, piece);
    for (int r = 0; r < kForces; ++r) read<3>(axis_[r], piece + 3 * (1 + r));
  }

  /// rows := C twist; twist: (6) how the stem's bodies move against each other.
  COHORT_LANE void rows(typename L::Ptr twist, V* rows) const {
    V angular[3], point[3];
    read<3>(angular, twist);
    read<3>(point, twist + 3);
    add_cross(point, angular, arm_);
    for (int r = 0; r < kDim; ++r) rows[r] = r < 3 ? dot3(axis_[r], point) : dot3(axis_[r - 3], angular);
  }

  /// wrench += C' force; wrench: (6).
  COHORT_LANE void add_forces(const V* force, typename L::Ptr wrench) const {
    V push[3], total[6];
    read<6>(total, wrench);
    for (int i = 0; i < 3; ++i) {
      push[i] = force[0] * axis_[0][i];
      for (int r = 1; r < kForces; ++r) push[i] = fma(force[r], axis_[r][i], push[i]);
      for (int r = 3; r < kDim; ++r) total[i] = fma(force[r], axis_[r - 3][i], total[i]);
      total[3 + i] += push[i];
    }
    add_cross(total, arm_, push);
    write<6>(wrench, total);
  }

  /// square += C' weight C; weight: (kDim, kDim), square: (6, 6), their lower triangles.
  template <Coupling kCoupling>
  COHORT_LANE void add_curvature(const V* weight, typename L::Ptr square) const {
    const auto add = [&](int i, int j, V x) { square[triangle(i, j)] = square[triangle(i, j)] + x; };
    // F' W F of the forces with their axes F, by rows; its products with the arm from the left.
    V weighed[kForces][3], forces[3][3], turned[3][3];
    for (int r = 0; r < kForces; ++r) combine<kCoupling>(weight, r, 0, kForces, weighed[r]);
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j <= i; ++j) {
        V sum = axis_[0][i] * weighed[0][j];
        for (int r = 1; r < kForces; ++r) sum = fma(axis_[r][i], weighed[r][j], sum);
        forces[i][j] = forces[j][i] = sum;
      }
    }
    for (int i = 0; i < 3; ++i) cross(turned[i], arm_, forces[i]);
    V angular[3][3];
    for (int i = 0; i < 3; ++i) {
      const V column[3] = {turned[0][i], turned[1][i], turned[2][i]};
      cross(angular[i], arm_, column);
    }
    for (int r = 3; r < kDim; ++r) {
      V push[3], twist[3], half[3];
      combine<kCoupling>(weight, r, 0, kForces, push);
      cross(twist, arm_, push);
      combine<kCoupling>(weight, r, 3, kDim, half);
      const V* axis = axis_[r - 3];
      for (int i = 0; i < 3; ++i) twist[i] = fma(V(0.5f), half[i], twist[i]);
      for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) turned[i][j] = fma(push[i], axis[j], turned[i][j]);
        for (int j = 0; j <= i; ++j) angular[i][j] = fma(twist[i], axis[j], fma(axis[i], twist[j], angular[i][j]));
      }
    }
    for (int i = 0; i < 3; ++i) {
      for (int j = 0; j <= i; ++j) add(i, j, angular[i][j]), add(3 + i, 3 + j, forces[i][j]);
      for (int j = 0; j < 3; ++j) add(3 + i, j, turned[i][j]);
    }
  }

 private:
  /// The axes of rows [first, end), by what row r's weights are with them.
  template <Coupling kCoupling>
  COHORT_LANE void combine(const V* weight, int r, int first, int end, V* out) const {
    for (int i = 0; i < 3; ++i) out[i] = V(0.0f);
    for (int q = first; q < end; ++q) {
      if (!couples(kCoupling, r, q)) continue;
      const V W = weight[r > q ? r * kDim + q : q * kDim + r];
      for (int i = 0; i < 3; ++i) out[i] = fma(W, axis_[q % 3][i], out[i]);
    }
  }

  V arm_[3], axis_[kForces][3];
};

}  // namespace cohort::sim
