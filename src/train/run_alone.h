/// What measures a training without running one (`cohort estimate`, `cohort doctor --measure`) begins so: the data
/// loaded, one device, one process.
#pragma once
#include "parallel/plan.h"
#include "train/jobs/job.h"
#include "train/run.h"

namespace cohort::train {

/// Loads the job's data, and plans it for the first of its devices. Sets the CPU threads. `command`: for the message,
/// where several ranks were started. Throws Error for bad settings and data.
parallel::Plan plan_alone(Job& job, const RunSettings& settings, const char* command);

}  // namespace cohort::train
