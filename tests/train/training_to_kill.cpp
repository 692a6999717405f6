/// The training that loop_kill_test kills and resumes: one process, or one of several under DistributedDataParallel
/// when RANK and WORLD_SIZE say so. Rank 0 appends "<step> <loss> <gradient norm>" to <folder>/metrics after every
/// step, and waits for as many milliseconds as it is told.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "dist/group.h"
#include "parallel/distributed_data_parallel.h"
#include "parallel/single_device.h"
#include "train/loop.h"
#include "train/tiny_training.h"

namespace {
using namespace cohort;
using namespace cohort::train;

int train_on(const std::filesystem::path& folder, const std::string& cpu_reduction, std::chrono::milliseconds pause) {
  at::set_num_threads(1);
  const auto environment = rank::read_environment();
  // Dropout from LibTorch's own generator, whose state is another one on every rank.
  const auto model = tiny_model(7, /*generator_dropout=*/true);
  std::unique_ptr<parallel::Strategy> strategy;
  std::shared_ptr<dist::Group> group;
  if (environment.world_size > 1) {
    group = dist::Group::create(environment);
    strategy = std::make_unique<parallel::DistributedDataParallel>(
        model, group, parallel::DdpSettings{.cpu_reduction = cpu_reduction});
  } else {
    strategy = std::make_unique<parallel::SingleDevice>(model, DeviceId{});
  }
  TinySource source(160, 8, environment.rank, environment.world_size);
  TrainSettings settings{.batch_size = 8,
                         .steps = 90,
                         .gradient_accumulation_steps = 3,
                         .lr = 0.01,
                         .clip_norm = 1.0,
                         .checkpoint = {.every = 4, .keep = 2},
                         .log_every = 1,
                         .hash_every = 0};
  settings.ema.enabled = true;
  settings.schedule = {.kind = "cosine", .warmup_steps = 10};
  TrainJob job{.strategy = strategy.get(), .loss = tiny_loss, .batches = &source};
  job.checkpoints = folder / "checkpoints";
  std::ofstream metrics;
  if (environment.rank == 0) {
    metrics.open(folder / "metrics", std::ios::app);
    job.step_observers.push_back([&](const StepStats& stats) {
      metrics << format("{} {:a} {:a}\n", stats.step, stats.loss, stats.grad_norm) << std::flush;
      std::this_thread::sleep_for(pause);
    });
  }
  const auto result = TrainLoop(settings, job).run();
  if (group) group->close();
  return result.status == TrainStatus::kFinished ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "use: training_to_kill FOLDER [auto|shared_memory|gloo] [MILLISECONDS]\n");
    return 2;
  }
  try {
    return train_on(argv[1], argc > 2 ? argv[2] : "auto", std::chrono::milliseconds(argc > 3 ? std::atoi(argv[3]) : 0));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
