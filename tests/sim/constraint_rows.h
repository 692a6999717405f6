/// Constraint rows of our block in MuJoCo's terms, and MuJoCo's cost of any acceleration.
#pragma once
#include <vector>

#include "block.h"

namespace cohort::sim::test {

struct Row {
  std::vector<double> jacobian;  ///< (nv)
  double aref, weight;
};

/// One per edge of a pyramid, dense Jacobians; without rows of no weight, which are not MuJoCo's.
std::vector<Row> our_rows(const ModelView& m, Constraints<ScalarLane>& c);

/// Row i of MuJoCo's, whose Jacobian is dense.
Row mujoco_row(const mjModel* m, const mjData* d, int i);

/// Largest difference of the Jacobians' elements, relative to 1 and to the largest of `theirs`, and of the reference
/// accelerations, relative to 100 and to theirs: these carry stiffness (thousands, 1/s^2) times positions.
double row_difference(const Row& ours, const Row& theirs);

/// MuJoCo's cost of an acceleration (nv) for the constraints in d, which mj_forward has filled.
double cost_of(const mjModel* m, mjData* d, const std::vector<double>& qacc);

}  // namespace cohort::sim::test
