// Subcommands that are executables of their own.
#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

#define PROGRAM(word, executable, started_as, summary) Register({word, summary, {}, executable, started_as}),
const Register kPrograms[] = {
#include "cli/programs.def"
};
#undef PROGRAM

}  // namespace
}  // namespace cohort::cli
