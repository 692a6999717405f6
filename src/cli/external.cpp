// Subcommands that are executables of their own.
#include "cli/subcommand.h"

namespace cohort::cli {
namespace {

#define PROGRAM(word, executable, summary) Register({word, summary, {}, executable}),
const Register kPrograms[] = {
#include "cli/programs.def"
};
#undef PROGRAM

}  // namespace
}  // namespace cohort::cli
