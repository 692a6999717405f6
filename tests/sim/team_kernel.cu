// The factor, both halves of a solve and the product of a team (src/sim/backends/cuda/team.h) as kernels of their own, so that
// check_team_kernel.py can look at what nvcc makes of them. Never run.
#include "sim/backends/cuda/team.h"

namespace cohort::sim::cuda {

/// Matrices (n (n + 1) / 2) and vectors (n) of as many environments as there are teams, all in global memory.
template <int kTeam>
__global__ void __launch_bounds__(kLanes, 20)
    team_kernel(int n, const int* cols, const int* start, const unsigned long long* bits, float* matrices,
                float* vectors) {
  using L = TeamLane<kTeam>;
  const int team = static_cast<int>(threadIdx.x) / kTeam, size = triangle(n, 0);
  const long long env = static_cast<long long>(blockIdx.x) * (kLanes / kTeam) + team;
  const SharedPointer matrix{team * (size + 2 * n)}, x = matrix + size, y = x + n;
  const Pattern<L> pattern{cols, start, bits};
  each<L>(size, [&](int i) { matrix[i] = matrices[env * size + i]; });
  each<L>(n, [&](int i) { x[i] = vectors[env * n + i]; });
  multiply_by_team<L>(n, pattern, matrix, x, y);
  factor_by_team<L>(0, n, pattern, matrix, [](int, float pivot) { return 1.0f / pivot; });
  solve_by_team<L>(n, pattern, matrix, y, 0);
  each<L>(size, [&](int i) { matrices[env * size + i] = matrix[i]; });
  each<L>(n, [&](int i) { vectors[env * n + i] = y[i]; });
}

template __global__ void team_kernel<8>(int, const int*, const int*, const unsigned long long*, float*, float*);
template __global__ void team_kernel<16>(int, const int*, const int*, const unsigned long long*, float*, float*);
template __global__ void team_kernel<32>(int, const int*, const int*, const unsigned long long*, float*, float*);

}  // namespace cohort::sim::cuda
