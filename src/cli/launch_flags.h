/// The command line of `cohort launch`: torchrun's flags, torch.distributed.launch's, and those of `accelerate launch`.
#pragma once
#include <string>
#include <vector>

#include "launch/settings.h"

namespace cohort::cli {

struct LaunchRequest {
  launch::LaunchSettings settings;   ///< ranks, command and command_line are filled in by launch.cpp
  std::string ranks = "1";           ///< N, auto, cpu or gpu
  std::vector<std::string> flags;    ///< as they were given
  std::vector<std::string> program;  ///< what stands behind the flags
  bool behind_dashes = false;        ///< after "--": a program, never a subcommand
  bool no_python = false;
  bool module = false;
  std::string pass_local_rank;     ///< "local-rank" or "local_rank": also passed to the program as --<name>=R
  std::vector<std::string> notes;  ///< flags that were understood and have no effect here
  bool help = false;
  std::string help_text;
};

/// Reads flags up to the first word that is none (or "--"); what follows belongs to the program. Every torchrun flag is
/// also read from PET_<FLAG>. Throws UsageError for an unknown flag (with the nearest one), a bad value, and for a flag
/// that asks for something this version does not do.
LaunchRequest parse_launch(const std::vector<std::string>& arguments);

}  // namespace cohort::cli
