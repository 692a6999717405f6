// What a rank's signs of life cost a training step: the beats in the page that `cohort launch` watches
// (rank/page.h) and the status file that `cohort top` reads (run/rank_beats.h).
//
//   bench_heartbeat_cost --steps 3000 --rounds 5
//
// Each is timed alone, in a loop. A small training is then run with both and with neither, in turns: it says how often
// a step beats, and how long a step is. The share is the cost alone, times how often, over the step's time; what is
// left between the two trainings is noise of the machine, which is printed beside it.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <unistd.h>

#include <ATen/Parallel.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "comparison.h"
#include "core/files.h"
#include "dist/recovery.h"
#include "parallel/single_device.h"
#include "program.h"
#include "rank/page.h"
#include "run/rank_beats.h"
#include "train/loop.h"
#include "train/rank_memory.h"

namespace {
using namespace cohort;
using bench::median;
using Clock = std::chrono::steady_clock;

constexpr int kPartsOfAStep = 6;  // calls of set_part in a step that exchanges gradients (train/loop.cpp)

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Seconds of one call, of many.
double cost_of(const std::function<void()>& call, int times) {
  for (int i = 0; i < times / 10 + 1; ++i) call();
  const auto begin = Clock::now();
  for (int i = 0; i < times; ++i) call();
  return seconds_since(begin) / times;
}

struct Net : torch::nn::Module {
  explicit Net(std::int64_t width) {
    one = register_module("one", torch::nn::Linear(16, width));
    two = register_module("two", torch::nn::Linear(width, width));
    three = register_module("three", torch::nn::Linear(width, 2));
  }
  torch::nn::Linear one{nullptr}, two{nullptr}, three{nullptr};
};

class OneBatch final : public train::BatchSource {
 public:
  explicit OneBatch(std::int64_t samples) {
    batch_.add("x", torch::randn({samples, 16}));
    batch_.add("y", torch::randn({samples, 2}));
    batch_.sample_ids = torch::arange(samples);
  }
  std::int64_t samples_per_epoch() const override { return batch_.size() * kBatches; }
  std::int64_t batches_per_epoch() const override { return kBatches; }
  std::int64_t start_epoch(std::int64_t, std::int64_t first) override { return kBatches - first / batch_.size(); }
  std::optional<parallel::Batch> next() override { return batch_; }
  double wait_seconds() const override { return 0; }

 private:
  static constexpr std::int64_t kBatches = 1 << 30;
  parallel::Batch batch_;
};

struct Trained {
  double step_s = 0;
  double beats = 0;  ///< in the page, per step
};

/// `beats`: null for a training that nobody watches.
Trained train_once(std::int64_t width, std::int64_t batch, std::int64_t steps, dist::Recovery* recovery,
                   run::RankBeats* beats) {
  torch::manual_seed(1);
  const auto model = std::make_shared<Net>(width);
  parallel::SingleDevice strategy(model, DeviceId{});
  OneBatch source(batch);
  train::TrainSettings settings;
  settings.steps = steps;
  settings.batch_size = batch;
  train::TrainJob job;
  job.strategy = &strategy;
  job.batches = &source;
  job.loss = [](torch::nn::Module& module, const parallel::Batch& b) {
    auto& net = dynamic_cast<Net&>(module);
    const at::Tensor h = torch::relu(net.two(torch::relu(net.one(b.at("x")))));
    return torch::mse_loss(net.three(h), b.at("y"));
  };
  job.recovery = recovery;
  job.beat = [recovery, file = beats ? beats->observer() : rank::BeatObserver()](
                 const rank::Beat& beat, const std::function<rank::Totals()>& totals) {
    if (recovery) recovery->say(beat.phase, beat.step);
    if (file) file(beat, totals);
  };
  const std::uint64_t before = recovery ? rank::own_page()->beats() : 0;
  const auto begin = Clock::now();
  train::TrainLoop(settings, std::move(job)).run();
  Trained result{.step_s = seconds_since(begin) / static_cast<double>(steps)};
  if (recovery) result.beats = static_cast<double>(rank::own_page()->beats() - before) / static_cast<double>(steps);
  return result;
}

int measure(int argc, char** argv) {
  int rounds = 5;
  std::int64_t steps = 3000, width = 64, batch = 32;
  bench::Options options("The cost of a rank's beats and status file per training step");
  options.add("--steps", steps, "of a training").at_least(100);
  options.add("--rounds", rounds, "trainings with and without, in turns").at_least(1);
  options.add("--width", width, "of the network's hidden layers").at_least(1);
  options.add("--batch", batch, "samples").at_least(1);
  if (!options.parse(argc, argv)) return options.exit_code();
  at::set_num_threads(1);
  // As a rank of `cohort launch` has it.
  const auto of_agent = rank::Page::make(false);
  ::setenv("COHORT_RANK_PAGE", std::to_string(::dup(of_agent->descriptor())).c_str(), 1);
  const auto recovery = dist::Recovery::of_this_process();
  const TemporaryFolder run_folder("cohort-heartbeat-");
  const rank::Status who{.rank = 0, .world_size = 1, .job = "bench", .device = "cpu"};

  const double beat = cost_of([&] { recovery->say(rank::Phase::kTraining, 1); }, 2000000);
  const double part = cost_of([&] { recovery->set_part(rank::StepPart::kBackward); }, 2000000);
  double observe = 0, write = 0;
  {
    run::RankBeats beats(run_folder.path(), who);
    const rank::BeatObserver observer = beats.observer();
    const std::function<rank::Totals()> totals = [] { return rank::Totals{.host_bytes = train::resident_bytes()}; };
    observer({.phase = rank::Phase::kTraining, .step = 1}, totals);
    // Some of the calls write, once a second, as in a training; the shortest of ten stretches has none.
    observe = cost_of([&] { observer({.phase = rank::Phase::kTraining, .step = 1}, totals); }, 100000);
    for (int i = 0; i < 10; ++i)
      observe =
          std::min(observe, cost_of([&] { observer({.phase = rank::Phase::kTraining, .step = 1}, totals); }, 100000));
    bool odd = false;  // each change of state is written
    write = cost_of(
        [&] {
          observer({.phase = (odd = !odd) ? rank::Phase::kCheckpoint : rank::Phase::kTraining, .step = 1}, totals);
        },
        2000);
    beats.end(rank::Phase::kFinished);
  }

  std::vector<double> with, without;
  double beats_per_step = 0;
  for (int i = -1; i < rounds; ++i) {
    run::RankBeats beats(run_folder.path(), who);
    const Trained watched = train_once(width, batch, steps, recovery.get(), &beats);
    beats.end(rank::Phase::kFinished);
    const Trained alone = train_once(width, batch, steps, nullptr, nullptr);
    if (i < 0) continue;  // the first warms up
    with.push_back(watched.step_s);
    without.push_back(alone.step_s);
    beats_per_step = watched.beats;
  }
  const double step = median(without);
  const double cost = beats_per_step * beat + kPartsOfAStep * part + observe + write * step;  // a write a second
  std::printf("%s\n", bench::machine_line("one thread").c_str());
  std::printf(
      "alone: a beat %.0f ns, a part of a step %.1f ns, a look at the clock for the status file %.0f ns, "
      "writing it %.0f us\n",
      beat * 1e9, part * 1e9, observe * 1e9, write * 1e6);
  std::printf(
      "a step of %.0f us (network 16-%d-%d-2, batch %d) has %.1f beats, and a second one file: %.0f ns a step, "
      "%.4f %% of it\n",
      step * 1e6, static_cast<int>(width), static_cast<int>(width), static_cast<int>(batch), beats_per_step, cost * 1e9,
      100 * cost / step);
  std::printf("the same training watched takes %.2f %% longer (median of %d pairs; the machine's noise is in it)\n",
              100 * (median(with) / step - 1), rounds);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return bench::run_program("bench_heartbeat_cost", [&] { return measure(argc, argv); });
}
