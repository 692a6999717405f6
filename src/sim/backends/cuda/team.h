/// A warp solves its environments in teams: each thread makes its own environment's rows, then the threads of a team
/// solve the warp's environments one after the other, in shared memory (kernels/lane/team.h,
/// kernels/solve/team_space.h). Off unless COHORT_GPU_TEAM, the threads of a team, is 8, 16 or 32: no GPU has run it
/// yet. The bits are the same.
///
/// For the host (sim_host_team_test) a warp is one thread, and its team computes in falling order.
#pragma once
#include "sim/backends/cuda/lane.h"
#include "sim/kernels/solve/team_space.h"

#if !defined(COHORT_GPU_TEAM)
#define COHORT_GPU_TEAM 0
#endif
#if COHORT_GPU_TEAM > 0
#include <cuda_runtime.h>
#endif

namespace cohort::sim::cuda {

/// Threads of a team; 0: a thread solves its environment by itself.
inline constexpr int kTeamThreads = COHORT_GPU_TEAM;
static_assert(kTeamThreads == 0 || kTeamThreads == 8 || kTeamThreads == 16 || kTeamThreads == 32);
/// Values of shared memory in which a team solves an environment; one that needs more is solved by its thread. 40 rows
/// and 30 dofs take about as much.
inline constexpr int kTeamValues = 3072;
/// A block's: of each team, and each environment's iterations.
inline constexpr int kTeamShare =
    kTeamThreads == 0 ? 0 : kLanes + kLanes / (kTeamThreads == 0 ? kLanes : kTeamThreads) * kTeamValues;

#if !defined(__CUDA_ARCH__)
/// Where the host has what is a block's shared memory; the kernel says.
inline float* host_shared_memory = nullptr;
/// Environments that teams have solved on the host.
inline long long host_solutions = 0;
#endif
COHORT_LANE float* shared_memory() {
#if defined(__CUDA_ARCH__)
  extern __shared__ float hot[];
  return hot;
#else
  return host_shared_memory;
#endif
}

/// Addresses a value of shared memory by its place, so that a compiler sees which memory it is.
struct SharedPointer {
  int at;
  COHORT_LANE float& operator[](int i) const { return shared_memory()[at + i]; }
};
COHORT_LANE SharedPointer operator+(SharedPointer p, int n) {
  return {p.at + n};
}

/// kThreads neighbouring threads of a warp.
template <int kTeam>
struct WarpTeam {
  static constexpr int kThreads = kTeam;

  COHORT_LANE static int rank() {
#if defined(__CUDA_ARCH__)
    return static_cast<int>(threadIdx.x) % kTeam;
#else
    return 0;
#endif
  }
  /// All of them are here, and see what the others wrote.
  COHORT_LANE static void meet() {
#if defined(__CUDA_ARCH__)
    __syncwarp(mask());
#endif
  }
  template <class F>
  COHORT_LANE static void each(int n, const F& f) {
#if defined(__CUDA_ARCH__)
    for (int i = rank(); i < n; i += kTeam) f(i);
    meet();
#else
    for (int i = n - 1; i >= 0; --i) f(i);
#endif
  }
  template <int kTerms, class V, class Terms, class Add>
  COHORT_LANE static void in_order(int n, const Terms& terms, const Add& add) {
#if defined(__CUDA_ARCH__)
    for (int first = 0; first < n; first += kTeam) {
      V own[kTerms];
      for (int t = 0; t < kTerms; ++t) own[t] = V(0.0f);
      if (first + rank() < n) terms(first + rank(), own);
      const int count = n - first < kTeam ? n - first : kTeam;
      for (int r = 0; r < count; ++r) {
        V values[kTerms];
        for (int t = 0; t < kTerms; ++t) values[t] = __shfl_sync(mask(), own[t], r, kTeam);
        add(values);
      }
    }
    meet();
#else
    for (int i = 0; i < n; ++i) {
      V values[kTerms];
      terms(i, values);
      add(values);
    }
#endif
  }
  template <int kParts, class V, class Part>
  COHORT_LANE static void parts(V* sums, const Part& part) {
#if defined(__CUDA_ARCH__)
    static_assert(kParts <= kTeam);
    const V own = rank() < kParts ? part(rank()) : V(0.0f);
    for (int p = 0; p < kParts; ++p) sums[p] = __shfl_sync(mask(), own, p, kTeam);
    meet();
#else
    for (int p = kParts - 1; p >= 0; --p) sums[p] = part(p);
#endif
  }

#if defined(__CUDA_ARCH__)
 private:
  __device__ __forceinline__ static unsigned mask() {
    const unsigned team = threadIdx.x % kLanes / kTeam;
    return kTeam == 32 ? ~0u : ((1u << (kTeam % 32)) - 1) << (team * kTeam);
  }
#endif
};

/// One environment for a team; its groups stay where its thread has made them.
template <int kTeam>
struct TeamLane {
  using V = float;
  using M = bool;
  using Ptr = SharedPointer;
  static constexpr int kWidth = 1;
};

}  // namespace cohort::sim::cuda
namespace cohort::sim {

template <int kTeam>
struct TeamOf<cuda::TeamLane<kTeam>> {
  using Type = cuda::WarpTeam<kTeam>;
};

namespace cuda {
/// How a team addresses groups, and integers.
template <class T>
struct TeamItems {
  using Type = T*;
};
template <>
struct TeamItems<Group> {
  using Type = LaneItems<Group>;
};
}  // namespace cuda
template <int kTeam>
struct Addressing<cuda::TeamLane<kTeam>> {
  template <class T>
  using Own = typename cuda::TeamItems<T>::Type;
  using Read = const int*;
};

#if COHORT_GPU_TEAM > 0
namespace cuda {

/// The part of a neighbour's block that a team reads and writes.
struct Neighbour {
  Workspace<GpuLane> w;
  Constraints<GpuLane> c;
  SolverSpace<GpuLane> s;
  /// ahead: threads from this one to that one; count, pool: that one's.
  COHORT_DEVICE Neighbour(const BlockSpace<GpuLane>& own, int ahead, int count, int pool)
      : w(own.w), c(own.c), s(own.s) {
    LanePointer* const moved[] = {&w.mass, &w.factor,     &w.smooth,       &w.acc_smooth, &w.warm,
                                  &w.qacc, &w.constraint, &w.weight_ratio, &c.pool};
    for (LanePointer* const p : moved) p->at += ahead;
    c.group.at += ahead;
    c.count = count, c.pool_used = pool, c.constrained = true;
  }
};

/// Solves a neighbour's environment by the team that begins at `memory` in shared memory; false where it does not fit.
template <int kTeam>
COHORT_DEVICE bool solve_by_team(const ModelView& m, Neighbour& of, int memory, float& iterations) {
  using L = TeamLane<kTeam>;
  TeamSpace<L> space{};
  const int bits = 2 * 2 * m.nv, integers = triangle(m.nv, 0) + m.nv + 1;
  SharedPointer at{memory};
  space.s.bits = reinterpret_cast<unsigned long long*>(&at[0]);
  space.s.cols = reinterpret_cast<int*>(&at[bits]);
  space.s.start = space.s.cols + triangle(m.nv, 0);
  const int values = lay_out_team<L>(m, team_rows(of.c), at + (bits + integers), space);
  if (bits + integers + values > kTeamValues) return false;
  space.c.group = of.c.group;
  take_environment<L, GpuLane>(m, of.w, of.c, of.s, space);
  solve_in_accelerations<L>(m, space.w, space.c, space.s, true, iterations);
  give_environment<L, GpuLane>(m, space, of.w, of.c);
  return true;
}

}  // namespace cuda

template <>
struct BlockSolver<cuda::GpuLane> {
  static constexpr bool kIsOwn = true;

  /// `many`: this thread's environment is to be solved in accelerations. All threads of the warp come here together.
  COHORT_DEVICE static void solve(const ModelView& m, BlockSpace<cuda::GpuLane>& b, bool many, float& iterations) {
    using namespace cuda;
    constexpr int kTeams = kLanes / kTeamThreads;
    const int lane = static_cast<int>(threadIdx.x);
    float* const done = shared_memory();
    done[lane] = -1.0f;
    const auto solve_of = [&](int other, bool wanted, int count, int pool, int team) {
      if (!wanted || m.nv > kMostTeamDofs) return;
      Neighbour of(b, other - lane, count, pool);
      float used = 0.0f;
      if (!solve_by_team<kTeamThreads>(m, of, kLanes + team * kTeamValues, used)) return;
      if (WarpTeam<kTeamThreads>::rank() == 0) done[other] = used;
#if !defined(__CUDA_ARCH__)
      ++host_solutions;
#endif
    };
#if defined(__CUDA_ARCH__)
    __syncwarp();
    for (int turn = 0; turn < kTeamThreads; ++turn) {
      const int team = lane / kTeamThreads, other = turn * kTeams + team;
      const bool wanted = __shfl_sync(~0u, many ? 1 : 0, other) != 0;
      const int count = __shfl_sync(~0u, b.c.count, other), pool = __shfl_sync(~0u, b.c.pool_used, other);
      solve_of(other, wanted, count, pool, team);
      __syncwarp();
    }
#else
    solve_of(lane, many, b.c.count, b.c.pool_used, lane % kTeams);
#endif
    if (!many) return;
    if (done[lane] >= 0) {
      iterations = done[lane];
    } else {
      solve_in_accelerations<GpuLane>(m, b.w, b.c, b.s, true, iterations);
    }
  }

  /// Somebody of the block goes on.
  COHORT_LANE static bool any_of_block(bool live) {
#if defined(__CUDA_ARCH__)
    return __any_sync(~0u, live) != 0;
#else
    return live;
#endif
  }
};
#endif

}  // namespace cohort::sim
