/// `cohort tasks new FILE --robot ROBOT`: the first file of a task for a robot.
#pragma once
#include <string>
#include <vector>

namespace cohort::cli {

/// arguments: those behind `new`. Returns the exit code.
int run_tasks_new(const std::vector<std::string>& arguments);

}  // namespace cohort::cli
