#include "parallel/strategy.h"

#include "tensors/vector_math.h"

namespace cohort::parallel {

Strategy::Strategy() {
  tensors::resolve_vector_math();
}

}  // namespace cohort::parallel
