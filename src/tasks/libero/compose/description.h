/// task.json: what Cohort's LIBERO task has to know beside the scene (scene_folder.h reads it). The same fields with the
/// same values as scripts/export_libero.py writes.
#pragma once
#include <map>
#include <string>

#include "core/config.h"
#include "tasks/libero/compose/measured_model.h"
#include "tasks/libero/compose/placement.h"
#include "tasks/libero/compose/scene.h"

namespace cohort::tasks::libero::compose {

/// The instruction as LIBERO takes it from a task's name: "close the top drawer of the cabinet".
std::string language_of(const std::string& task);

/// Throws Error for a goal about something that the scene lacks, or a predicate that is not known.
config::Json describe_task(const std::string& suite, const std::string& task, const ComposedScene& scene,
                           const MeasuredModel& model, const std::map<std::string, FixturePose>& fixtures);

}  // namespace cohort::tasks::libero::compose
