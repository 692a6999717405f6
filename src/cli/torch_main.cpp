// cohort-torch: acts as the program whose file it is called by.
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/prctl.h>
#endif

#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/error.h"

namespace cohort::cli {
namespace {

struct Program {
  std::string title;
  int (*body)(const std::vector<std::string>& words);
};
std::map<std::string, Program>& programs() {
  static std::map<std::string, Program> all;
  return all;
}

int run(const std::string& file, const std::vector<std::string>& words) {
  const auto found = programs().find(file);
  if (found == programs().end()) {
    std::string names;
    for (const auto& [name, program] : programs()) names += "\n  " + name;
    std::fprintf(stderr, "%s holds these programs, and is called by their names:%s\n", file.c_str(), names.c_str());
    return 2;
  }
#if defined(__linux__)
  ::prctl(PR_SET_NAME, file.c_str());  // what `top` and `ps -e` show
#endif
  const Program& program = found->second;
  return run_program(program.title, [&] { return program.body(words); });
}

}  // namespace

TorchProgram::TorchProgram(std::string file, std::string title, int (*body)(const std::vector<std::string>& words)) {
  COHORT_CHECK(programs().emplace(file, Program{std::move(title), body}).second, "the program {} is registered twice",
               file);
}

}  // namespace cohort::cli

int main(int argc, char** argv) {
  const std::string file = argc > 0 ? std::filesystem::path(argv[0]).filename().string() : "cohort-torch";
  return cohort::cli::run(file, std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc));
}
