#include "cli/tasks_new.h"

#include <CLI/CLI.hpp>
#include <cstdio>

#include "cli/parse_arguments.h"
#include "core/format.h"
#include "tasks/file/new_task.h"

namespace cohort::cli {

int run_tasks_new(const std::vector<std::string>& arguments) {
  std::string file, robot;
  tasks::NewTaskSettings settings;
  CLI::App app(
      "Writes the file of a task for a robot: its joints, gains, feet and where episodes begin are filled in, and "
      "it trains as it stands.",
      "cohort tasks new");
  app.add_option("FILE", file, "to be written, my_task.yaml; one that is there stays as it is")->required();
  app.add_option("--robot", robot, "the robot's MJCF or URDF file")->required();
  app.add_option("--like", settings.like,
                 "velocity (a robot on feet follows commanded velocities), reach, lift (an arm), or balance; else what "
                 "the robot looks made for");
  if (const auto code = parse_arguments(app, arguments)) return *code;
  settings.file = file, settings.robot = robot;
  const tasks::NewTask task = tasks::write_new_task(settings);
  std::string text = format("{}: {}\n", file, task.remarks.front());
  for (std::size_t i = 1; i < task.remarks.size(); ++i) text += format("  {}\n", task.remarks[i]);
  text += format("next\n  cohort tasks {0} --check\n  cohort train ppo task={0}", file);
  std::puts(text.c_str());
  return 0;
}

}  // namespace cohort::cli
