/// The solver by a team of threads beside the scalar lane's.
#pragma once
#include <string>

#include "sim/kernels/solve/block_space.h"

namespace cohort::sim::test {

/// Solves the constraints that make_rows left in `b` in accelerations, by ScalarLane and by teams of 8, 16 and 32
/// threads in shuffled order, each in memory that holds NaN before. `b` is left as it was. "" where accelerations,
/// forces, rows and iterations have the same bits, and where there is nothing for a team to solve: no row, more than 64
/// dofs; otherwise the first that differs. solved: counts those that were solved.
std::string team_difference(const ModelView& m, const BlockSpace<ScalarLane>& b, int& solved);

}  // namespace cohort::sim::test
