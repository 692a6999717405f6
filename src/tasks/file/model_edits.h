/// Edits of a robot's model in a task's file (sim/host/model_edits.h).
#pragma once
#include "core/json_section.h"
#include "sim/host/model_edits.h"

namespace cohort::tasks {

/// Reads `actuators`, `joints`, `geoms`, `disable_collisions`, `sensors`, `imu` of an entity. Throws Error for a value that
/// does not fit.
sim::ModelEdits read_model_edits(config::JsonSection& section);

}  // namespace cohort::tasks
