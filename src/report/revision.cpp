// Apart from the rest, so that a new commit recompiles this file only.
#include "cohort_revision.h"
#include "report/machine.h"

namespace cohort::report {

std::string build_revision() {
  return COHORT_REVISION;
}

}  // namespace cohort::report
