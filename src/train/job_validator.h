/// The validator of a job: its loss, and whatever else it measures, over a source of batches.
#pragma once
#include "train/jobs/job.h"
#include "train/validation.h"

namespace cohort::train {

/// "validation/loss" first, weighted by samples, then the job's validation_figures(); every sample counts once,
/// whatever the number of ranks. Both the source and the job must outlive it. Every validation meets the same random
/// numbers, so that figures of different steps can be compared.
Validator job_validator(const Job& job, BatchSource& source, Precision precision, c10::Device device);

}  // namespace cohort::train
