#include "parallel/strategy.h"

#include "tensors/processor.h"

namespace cohort::parallel {

Strategy::Strategy() {
  tensors::prepare_arithmetic();
}

}  // namespace cohort::parallel
