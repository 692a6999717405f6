#include "cli/next_command.h"

#include <cstdio>
#include <cstdlib>

#include "cli/subcommand.h"
#include "core/command_line.h"

namespace cohort::cli {
namespace {

constexpr const char* kStage = "COHORT_STAGE_OF";

}  // namespace

void say_next(const std::string& what, const std::vector<std::string>& words) {
  if (std::getenv(kStage) != nullptr) return;
  std::string command = typed_name(sibling("cohort"));
  for (const std::string& word : words) command += " " + shell_quoted(word);
  std::printf("next, %s:\n  %s\n", what.c_str(), command.c_str());
}

void begin_stages() {
  ::setenv(kStage, "demo", 1);
}

}  // namespace cohort::cli
