#include "rl/resumed_settings.h"

#include <array>
#include <string_view>

#include "core/command_line.h"
#include "core/error.h"
#include "core/json_text.h"

namespace cohort::rl {
namespace {

// What is learnt does not depend on them either.
constexpr std::array<std::string_view, 5> kFree{"save_interval", "log_interval", "stop_at_return", "keep_checkpoints",
                                                "max_iterations"};

bool has_to_stay(const std::string& path) {
  return path == "task" || path == "seed" || path == "n_envs" || path == "num_steps_per_env" ||
         path.starts_with("policy.");
}

}  // namespace

std::vector<ChangedSetting> settings_changed_since(const config::Json& checkpoint, const config::Json& now,
                                                   const std::string& source, const std::string& run) {
  std::vector<ChangedSetting> changed = run::changed_settings(checkpoint, now, kFree);
  std::vector<std::string> differences, remedies;
  for (const ChangedSetting& one : changed) {
    if (!has_to_stay(one.path)) continue;
    differences.push_back(format("{}={} and not {}", one.path, one.before, one.now));
    remedies.push_back(shell_quoted(one.path + "=" + one.before));
  }
  COHORT_THROW_UNLESS(differences.empty(),
                      "{} was learnt with {}, which a run that goes on keeps: go on with its own settings by `cohort "
                      "train resume={}`, or say {}; init_from={} in place of resume begins a new run with its weights",
                      source, join(differences, ", "), shell_quoted(run), join(remedies, " "), shell_quoted(run));
  return changed;
}

}  // namespace cohort::rl
