/// The training that loop_kill_test kills and resumes. Appends "<step> <loss> <gradient norm>" to <folder>/metrics
/// after every step.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include "train/loop.h"
#include "train/tiny_training.h"

int main(int argc, char** argv) {
  using namespace cohort::train;
  if (argc != 2) {
    std::fprintf(stderr, "use: training_to_kill FOLDER\n");
    return 2;
  }
  try {
    const std::filesystem::path folder = argv[1];
    const auto model = tiny_model(7, /*generator_dropout=*/true);
    PlainStrategy strategy(model);
    TinySource source(160, 8);
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
    TrainJob job{.strategy = &strategy, .loss = tiny_loss, .batches = &source};
    job.checkpoints = folder / "checkpoints";
    std::ofstream metrics(folder / "metrics", std::ios::app);
    job.step_observers.push_back([&](const StepStats& stats) {
      metrics << cohort::format("{} {:a} {:a}\n", stats.step, stats.loss, stats.grad_norm) << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
    });
    return TrainLoop(settings, job).run().status == TrainStatus::kFinished ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
