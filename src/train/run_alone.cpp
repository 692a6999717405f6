#include "train/run_alone.h"

#include <ATen/Parallel.h>

#include "core/error.h"
#include "dist/usable_devices.h"
#include "rank/environment.h"
#include "tensors/processor.h"

namespace cohort::train {

parallel::Plan plan_alone(Job& job, const RunSettings& settings, const char* command) {
  const rank::Environment environment = rank::read_environment();
  COHORT_THROW_UNLESS(environment.world_size == 1,
                      "`{}` measures in one process and says what several would take; start it without a launcher",
                      command);
  settings.train.validate();
  job.load();
  COHORT_THROW_UNLESS(job.dataset(Part::kTrain), "the split leaves no training samples");
  const auto devices =
      dist::usable_devices({.backend = parse_backend(settings.backend), .names = settings.devices, .local_rank = 0});
  parallel::Plan plan = parallel::make_plan({.environment = environment, .devices = {devices.front()}},
                                            {.mode = "single",
                                             .batch_size = settings.train.batch_size,
                                             .global_batch_size = settings.train.global_batch_size,
                                             .accumulation = settings.train.gradient_accumulation_steps,
                                             .workers = settings.loader.workers});
  if (settings.threads > 0) at::set_num_threads(settings.threads);
  tensors::prepare_arithmetic();
  return plan;
}

}  // namespace cohort::train
