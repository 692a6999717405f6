// Subcommands that are executables of their own: they link LibTorch, which takes a quarter of a second to load.
#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

const Register kTrain(
    {"train", "train a model on one device, on all of them, or as one rank of a job", {}, "cohort-train"});

}  // namespace
}  // namespace cohort::cli
