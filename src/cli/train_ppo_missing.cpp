#include "cli/train_ppo.h"
#include "core/error.h"

namespace cohort::cli {

int run_ppo(const PpoArguments&) {
  throw Error("this build has no tasks to learn: MuJoCo was missing when it was configured; scripts/setup installs it");
}

}  // namespace cohort::cli
