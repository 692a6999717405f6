/// Where a task has what recordings and servers call by a name of theirs (core/observation_names.h).
///
///   camera_of_field(spec, "observation.images.front");                       // "front"
///   places_of_field(spec, "observation.state", {"eef_pos.0", ..., "gripper_opening"});
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace cohort::tasks {

struct TaskSpec;

/// The task's camera whose pictures a recording has under that field; empty where the task has none.
std::string camera_of_field(const TaskSpec& spec, const std::string& field);

/// A stretch of numbers of one of the task's observations.
struct FieldPlace {
  std::size_t field = 0;  ///< index into TaskSpec::observations
  std::int64_t begin = 0, count = 0;
};

/// What a recorded field consists of in the task: the numbers that its elements are called after, where the task has all
/// of them ("eef_pos.0", "gripper_opening", as `cohort collect` names those of LeRobot's observation.state), else the
/// observation of that name. Throws Error naming what the task lacks.
std::vector<FieldPlace> places_of_field(const TaskSpec& spec, const std::string& field,
                                        const std::vector<std::string>& elements = {});

}  // namespace cohort::tasks
