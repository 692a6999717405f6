#include "parallel/strategy.h"

#include "parallel/vector_math.h"

namespace cohort::parallel {

Strategy::Strategy() {
  resolve_vector_math();
}

}  // namespace cohort::parallel
