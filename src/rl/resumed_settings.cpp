#include "rl/resumed_settings.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/command_line.h"
#include "core/error.h"
#include "core/json_text.h"

namespace cohort::rl {
namespace {

// What is learnt does not depend on them.
constexpr std::array<std::string_view, 21> kFree{"job",
                                                 "dist",
                                                 "name",
                                                 "output_dir",
                                                 "init_from",
                                                 "task_library",
                                                 "resume",
                                                 "backend",
                                                 "devices",
                                                 "threads",
                                                 "learner_threads",
                                                 "charts",
                                                 "rank_status",
                                                 "save_interval",
                                                 "log_interval",
                                                 "stop_at_return",
                                                 "keep_checkpoints",
                                                 "tensorboard",
                                                 "tensorboard_charts",
                                                 "max_iterations",
                                                 "policy.init_noise_std"};

bool has_to_stay(const std::string& path) {
  return path == "task" || path == "seed" || path == "n_envs" || path == "num_steps_per_env" ||
         path.starts_with("policy.");
}

/// As it is typed behind "path=".
std::string typed_text(const config::Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return json_text(value);
  std::vector<std::string> items;
  for (const config::Json& item : value) items.push_back(typed_text(item));
  return "[" + join(items, ",") + "]";
}

void compare(const config::Json& before, const config::Json& now, const std::string& section,
             std::vector<ChangedSetting>& changed) {
  for (const auto& [key, value] : now.items()) {
    const std::string path = section + key;
    if (!before.contains(key) || std::find(kFree.begin(), kFree.end(), path) != kFree.end()) continue;
    const config::Json& old = before.at(key);
    if (value.is_object() && old.is_object())
      compare(old, value, path + ".", changed);
    else if (value != old)
      changed.push_back({path, typed_text(old), typed_text(value)});
  }
}

}  // namespace

std::vector<ChangedSetting> settings_changed_since(const config::Json& checkpoint, const config::Json& now,
                                                   const std::string& source, const std::string& run) {
  std::vector<ChangedSetting> changed;
  if (checkpoint.is_object()) compare(checkpoint, now, "", changed);
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
