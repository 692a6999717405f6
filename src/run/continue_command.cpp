#include "run/continue_command.h"

#include "core/command_line.h"
#include "core/format.h"

namespace cohort::run {

ContinueCommand continue_command(const std::string& program, const std::filesystem::path& run,
                                 const rank::Environment& environment, const rank::VariableLookup& lookup) {
  const std::string resume = format("train resume={}", shell_quoted(run.string()));
  const std::string launcher = lookup("COHORT_LAUNCH_COMMAND").value_or("");
  if (!launcher.empty())
    return {format("{} {}", launcher, resume),
            lookup("GROUP_WORLD_SIZE").value_or("1") == "1" ? "" : "on every node, with its own --node-rank"};
  return {format("{} {}", program, resume),
          environment.launched() ? format("under the same launcher ({})", to_string(environment.source)) : ""};
}

}  // namespace cohort::run
