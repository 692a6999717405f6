// Stands in for data_push_t.cpp where Chipmunk2D is missing.
#include <CLI/CLI.hpp>

#include "cli/data_push_t.h"
#include "core/error.h"

namespace cohort::cli {

std::function<bool()> add_push_t(CLI::App& app) {
  CLI::App* record = app.add_subcommand("push-t", "left out of this build: Chipmunk2D was missing");
  CLI::App* baselines = app.add_subcommand("push-t-baselines", "left out of this build: Chipmunk2D was missing");
  for (CLI::App* command : {record, baselines}) command->allow_extras();
  return [record, baselines] {
    COHORT_THROW_UNLESS(!record->parsed() && !baselines->parsed(),
                        "this build has no Push-T: install libchipmunk-dev, configure and build again");
    return false;
  };
}

}  // namespace cohort::cli
