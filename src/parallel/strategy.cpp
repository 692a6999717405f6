#include "parallel/strategy.h"

#include "tensors/processor.h"

namespace cohort::parallel {

Strategy::Strategy() {
  tensors::settle_processor();
}

}  // namespace cohort::parallel
