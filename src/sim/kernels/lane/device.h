/// What the kernels are marked with, so that one source compiles for a CPU and, by nvcc, for a GPU. A file that both
/// see takes its marks from here and from nowhere else.
#pragma once

#if defined(__CUDACC__)
/// A GPU's thread computes the narrow phases of kernels/collide/convex/ in its own workspace.
#define COHORT_SEARCHES_IN_PLACE
/// A function that both may call.
#define COHORT_DEVICE __host__ __device__
#define COHORT_LANE __host__ __device__ __forceinline__
#define COHORT_BODY
#define COHORT_KERNEL __host__ __device__ __noinline__
/// A part of a search over shapes, worth a call of its own: few threads of a warp come there at a time.
#define COHORT_SEARCH __host__ __device__ __noinline__
#else
#define COHORT_DEVICE
#define COHORT_SEARCH
/// A few operations that are part of their caller.
#define COHORT_LANE inline __attribute__((always_inline))
/// Behind a lambda's parameters: what a team's each(), one() and sums are given is a loop's body, and GCC leaves one of some
/// size a function that reads its variables from memory (a Hessian took 1.4 times its time).
#define COHORT_BODY __attribute__((always_inline))
/// A stage: worth a call of its own, so that it is compiled once per lane type.
#define COHORT_KERNEL __attribute__((noinline))
#endif
