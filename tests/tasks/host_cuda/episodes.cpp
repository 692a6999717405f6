// The file that nvcc compiles for GPUs, for the host, over the devices of tests/sim/host_cuda.
#include "tasks/cuda/episodes.cu"
