// The file that nvcc compiles for GPUs, for the host: what a device's thread runs, launches, copies, graphs.
#define COHORT_SEARCHES_IN_PLACE
#include "sim/cuda/runner.cu"
