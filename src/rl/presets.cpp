#include "rl/presets.h"

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "tasks/registry.h"

namespace cohort::rl {

PpoRunSettings preset(const std::string& task) {
  PpoRunSettings s;
  s.task = task;
  const tasks::TaskEntry* entry = task.empty() ? nullptr : tasks::find_task(task);
  if (!entry) return s;
  config::Fields fields;
  describe(fields, s);
  for (const std::string& assignment : entry->ppo) {
    try {
      fields.apply_override(assignment);
    } catch (const Error& e) {
      throw Error(format("what {} says of ppo, {}: {}", task, assignment, e.what()));
    }
  }
  return s;
}

}  // namespace cohort::rl
