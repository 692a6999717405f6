/// What recordings call a task's observations and cameras: "observation/eef_pos" in RLDS, "obs/eef_pos" in HDF5,
/// "observation/front_image" for the camera "front".
#pragma once
#include <string>

namespace cohort::tasks {

struct TaskSpec;

/// The name below observation/ or obs/.
std::string bare_name(const std::string& field);
/// A camera's name without "_image" at its end.
std::string without_image(std::string name);

/// The task's camera whose pictures a recording has under that field; empty where the task has none.
std::string camera_of_field(const TaskSpec& spec, const std::string& field);

}  // namespace cohort::tasks
