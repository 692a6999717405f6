#include "models/cpu/lanes.h"

namespace cohort::models::cpu {

extern const Kernels kernels_avx2;
const Kernels kernels_avx2{"avx2", &dropout, &sparsity};

}  // namespace cohort::models::cpu
