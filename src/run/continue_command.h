/// The command that goes on with a run, for a user to paste.
#pragma once
#include <filesystem>
#include <string>

#include "rank/environment.h"

namespace cohort::run {

/// `program`: how the user calls cohort. Under `cohort launch` the command holds its flags (COHORT_LAUNCH_COMMAND), so
/// that as many ranks go on; under another launcher it is what each of its processes runs, which `remark` says.
struct ContinueCommand {
  std::string text;
  std::string remark;  ///< "" where the text alone does it
};
ContinueCommand continue_command(const std::string& program, const std::filesystem::path& run,
                                 const rank::Environment& environment,
                                 const rank::VariableLookup& lookup = rank::process_variable);

}  // namespace cohort::run
