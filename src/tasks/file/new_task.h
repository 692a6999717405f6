/// The first file of a task for a robot that nobody has written one for: `cohort tasks new`.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

namespace cohort::tasks {

struct NewTaskSettings {
  std::filesystem::path file;   ///< to be written
  std::filesystem::path robot;  ///< MJCF or URDF
  std::string like;             ///< velocity, reach, lift, balance; "": what the robot looks made for
};

struct NewTask {
  std::string text;                  ///< of the file, YAML
  std::string like;                  ///< which it became
  std::vector<std::string> remarks;  ///< what was found and guessed, a line each
};

/// What the file says; writes nothing. Throws Error for a robot that cannot be read or that the task does not go with.
NewTask new_task(const NewTaskSettings& settings);

/// Writes it, and reads it once to see that it holds. Throws Error where a file stands there already, and then changes
/// nothing.
NewTask write_new_task(const NewTaskSettings& settings);

}  // namespace cohort::tasks
