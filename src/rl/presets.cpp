#include "rl/presets.h"

#include "core/config.h"
#include "tasks/registry.h"

namespace cohort::rl {

PpoRunSettings preset(const std::string& task) {
  PpoRunSettings s;
  s.task = task;
  const tasks::TaskEntry* entry = task.empty() ? nullptr : tasks::find_task(task);
  if (!entry) return s;
  config::Fields fields;
  describe(fields, s);
  for (const std::string& assignment : entry->ppo) fields.apply_override(assignment);
  return s;
}

}  // namespace cohort::rl
