/// One rank of a small RDT's training for zero_test: zero_worker FOLDER KEY=VALUE ... . Writes FOLDER/RANK.losses (rank
/// 0: a line per step, hexadecimal), FOLDER/RANK.bytes (weights, gradients, optimizer, average) and FOLDER/RANK.hash.
/// die=STEP: rank 1 kills itself after this step. Prints "error: ..." and returns 1 on an exception.
#include <csignal>
#include <cstdio>
#include <fstream>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>

#include "dist/group.h"
#include "parallel/parameter_hash.h"
#include "parallel/plan.h"
#include "tensors/processor.h"
#include "train/loop.h"
#include "train/precision.h"
#include "train/ready_policy.h"
#include "train/small_rdt.h"

namespace {
using namespace cohort;
using namespace cohort::train;

int work(const std::string& folder, std::vector<std::string> words) {
  std::int64_t die = 0;
  std::erase_if(words, [&](const std::string& word) {
    if (!word.starts_with("die=")) return false;
    die = std::stoll(word.substr(4));
    return true;
  });
  at::set_num_threads(1);
  tensors::prepare_arithmetic();
  ReadyPolicy ready(small_rdt(words));
  RunSettings& settings = ready.settings;
  settings.train.validate();
  ready.job->load();
  const rank::Environment environment = rank::read_environment();
  const parallel::Plan plan = parallel::make_plan(
      {.environment = environment, .devices = {DeviceId{}}},
      {.batch_size = settings.train.batch_size, .accumulation = settings.train.gradient_accumulation_steps});
  std::shared_ptr<dist::Group> group;
  if (environment.world_size > 1) group = dist::Group::create(environment);
  const auto model = ready.job->make_model(settings.train.seed);
  if (settings.train.weights == "bf16") convert_parameters(*model, at::kBFloat16);
  const auto strategy = parallel::make_strategy(plan, model, group, settings.parallel);
  LoaderSource source(
      ready.job->dataset(Part::kTrain),
      {.world_size = environment.world_size, .rank = environment.rank, .drop_last = true, .seed = settings.train.seed},
      {.batch_size = settings.train.batch_size, .workers = 0, .drop_last = true}, host_allocator());
  TrainJob job = train_job(*ready.job, *strategy, source);
  job.checkpoints = folder + "/checkpoints";
  const std::string own = format("{}/{}", folder, environment.rank);
  std::ofstream losses(own + ".losses", std::ios::app);
  job.step_observers.push_back([&](const StepStats& s) {
    losses << format("{} {:a} {:a}\n", s.step, s.loss, s.grad_norm) << std::flush;
    if (s.step == die && environment.rank == environment.world_size - 1) ::raise(SIGKILL);
  });
  TrainLoop loop(settings.train, std::move(job));
  loop.run();
  const KeptBytes kept = loop.kept_bytes();
  std::ofstream(own + ".bytes") << format("{} {} {} {}\n", kept.weights, kept.gradients, kept.optimizer, kept.ema);
  {
    const EmaWeightsGuard averages(loop.ema());
    std::ofstream(own + ".hash") << parallel::parameter_hash(strategy->module()) << "\n";
  }
  if (group) group->close();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return work(argv[1], {argv + 2, argv + argc});
  } catch (const std::exception& e) {
    std::printf("error: %s\n", e.what());
    return 1;
  }
}
