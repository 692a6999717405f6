// Subcommands that are executables of their own: they link LibTorch, which takes a quarter of a second to load.
#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

const Register kTrain(
    {"train", "train a model on one device, on all of them, or as one rank of a job", {}, "cohort-train"});
const Register kEval({"eval", "evaluate a policy: success rates and videos", {}, "cohort-eval"});
const Register kCollect({"collect", "record rollouts into a data set", {}, "cohort-collect"});

}  // namespace
}  // namespace cohort::cli
