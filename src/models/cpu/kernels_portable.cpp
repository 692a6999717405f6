#include "models/cpu/lanes.h"

namespace cohort::models::cpu {

extern const Kernels kernels_portable;
const Kernels kernels_portable{"portable", &dropout, &sparsity};

}  // namespace cohort::models::cpu
