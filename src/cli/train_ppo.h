/// `cohort train ppo`: reinforcement learning in the simulation loop.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

struct PpoArguments {
  std::vector<std::string> files;      ///< of settings, in their order
  std::vector<std::string> overrides;  ///< key=value, on top of them
  std::string resumed;                 ///< config.json of the run that is continued; empty: none is
  std::string checkpoint;              ///< the one of that run that was named; empty: its newest
  bool help = false;
  std::vector<std::string> keys;  ///< what --help is to explain: settings, or a task whose defaults are shown
};

/// Throws Error where this build has no tasks.
int run_ppo(const PpoArguments& arguments);

}  // namespace cohort::cli
