#include "cli/take_task.h"

#include <algorithm>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/config.h"
#include "core/format.h"
#include "tasks/file/task_content.h"

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

}  // namespace cohort::cli
