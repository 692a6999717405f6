#include "models/cpu/lanes.h"

namespace cohort::models::cpu {

extern const Kernels kernels_avx512;
const Kernels kernels_avx512{"avx512", &dropout, &sparsity};

}  // namespace cohort::models::cpu
