#include "cli/take_task.h"

#include <algorithm>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/config.h"
#include "core/format.h"
#include "core/log.h"
#include "tasks/file/task_content.h"
#include "tasks/run_library.h"

namespace cohort::cli {

std::string take_task(std::vector<std::string>& words, const std::string& option) {
  std::string name = option;
  const auto names = [](const std::string& word) {
    return word.starts_with("task=") || !config::is_override(word) || word.find('/') < word.find('=');  // a path
  };
  if (const auto word = std::find_if(words.begin(), words.end(), names); word != words.end()) {
    const std::string named = word->starts_with("task=") ? word->substr(5) : *word;
    check_path(tasks::present_file(named));  // the copy of a run stands for a file that is gone
    if (!name.empty() && name != named) throw UsageError(format("two tasks are named: {} and {}", name, named));
    name = named;
    words.erase(word);
  }
  return name;
}

std::string take_task_of_run(const std::string& run, tasks::TaskSettings& settings) {
  const tasks::TaskOfRun task = tasks::task_of_run(run);
  if (task.name.empty()) return "";
  tasks::use_library_of_run(run);
  if (settings.engine.empty()) settings.engine = task.engine;
  settings.overrides.insert(settings.overrides.begin(), task.settings.begin(), task.settings.end());
  log::info("task {}{}, in which {} has learnt", task.name, task.settings.empty() ? "" : " " + join(task.settings, " "),
            run);
  return task.name;
}

}  // namespace cohort::cli
