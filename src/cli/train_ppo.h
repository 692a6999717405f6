/// `cohort train ppo`: reinforcement learning in the simulation loop.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

struct PpoArguments {
  std::vector<std::string> files;      ///< of settings, in their order
  std::vector<std::string> overrides;  ///< key=value, on top of them
  std::string resumed;                 ///< config.json of the run that is continued; empty: none is
  bool help = false;
};

/// Throws Error where this build has no tasks.
int run_ppo(const PpoArguments& arguments);

}  // namespace cohort::cli
