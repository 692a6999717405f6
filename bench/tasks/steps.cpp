// Control steps per second of a task: the expert acts (or random actions are taken, drawn before), the task simulates,
// observes and rewards; environments whose episode ends are reset.
//
//   task_steps --task pick-and-place --n-envs 256 --threads 1 --seconds 5
//   task_steps --task HalfCheetah-v5 --actor random --n-envs 64 256 --threads 1 2 --rounds 5
//
// Numbers of threads take turns, round by round, so that what else the machine does falls on all of them; said is the
// best round of each.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <memory>
#include <numeric>

#include "core/format.h"
#include "program.h"
#include "tasks/actor.h"
#include "tasks/registry.h"

namespace cohort {
namespace {

struct Options {
  std::vector<std::string> task{"pick-and-place"};
  std::string engine = "batched", actor = "expert";
  std::vector<int> n_envs{256}, threads{1};
  int rounds = 1;
  double seconds = 5;
};

constexpr std::size_t kPrepared = 16;  // sets of random actions

/// A task with so many environments and threads, that goes on from round to round.
class Stepping {
 public:
  Stepping(const std::string& name, const Options& options, int n_envs, int threads)
      : task_(tasks::make_task(name, {.n_envs = n_envs, .threads = threads, .engine = options.engine})),
        n_(static_cast<std::size_t>(n_envs)),
        next_(n_) {
    if (options.actor == "expert") {
      actor_ = task_->make_expert(0);
      COHORT_THROW_UNLESS(actor_, "{} has no expert: --actor random", name);
    }
    envs_.resize(n_), seeds_.resize(n_);
    std::iota(envs_.begin(), envs_.end(), 0);
    std::iota(seeds_.begin(), seeds_.end(), 0u);
    task_->reset(envs_, seeds_);
    if (actor_) actor_->begin(envs_, seeds_, task_->spec().instruction);
    const auto width = static_cast<std::size_t>(task_->spec().action.width());
    const auto random = tasks::make_random_actor(0);
    random->begin(envs_, seeds_, "");
    actions_.resize(kPrepared, std::vector<float>(n_ * width));
    if (!actor_)
      for (auto& set : actions_) random->act(*task_, envs_, view(set));
  }

  /// Steps for about that time.
  void run(double seconds) {
    const auto begin = std::chrono::steady_clock::now();
    const std::clock_t processor = std::clock();
    double passed = 0;
    std::int64_t steps = 0;
    while (passed < seconds) {
      for (int k = 0; k < 10; ++k) step();
      steps += 10 * static_cast<std::int64_t>(n_);
      passed = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    }
    const double worked = static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC;
    rate = std::max(rate, static_cast<double>(steps) / passed);
    const double each = 1e6 * worked / static_cast<double>(steps);
    processor_us = processor_us == 0 ? each : std::min(processor_us, each);
  }

  double rate = 0;          ///< control steps per second
  double processor_us = 0;  ///< of the processors' time for a control step
  std::int64_t episodes = 0, successes = 0;

 private:
  ArrayView view(std::vector<float>& actions) const {
    return make_view(actions.data(), {static_cast<std::int64_t>(n_), task_->spec().action.width()});
  }
  void step() {
    std::vector<float>& actions = actions_[at_++ % kPrepared];
    if (actor_) actor_->act(*task_, envs_, view(actions));
    task_->step(view(actions));
    over_.clear(), seeds_.clear();
    for (std::size_t e = 0; e < n_; ++e) {
      if (!task_->terminated().span<std::uint8_t>()[e] && !task_->truncated().span<std::uint8_t>()[e]) continue;
      over_.push_back(static_cast<std::int32_t>(e));
      seeds_.push_back(next_++);
      ++episodes;
      successes += task_->success().span<std::uint8_t>()[e];
    }
    task_->reset(over_, seeds_);
    if (actor_) actor_->begin(over_, seeds_, task_->spec().instruction);
  }

  std::unique_ptr<tasks::Task> task_;
  std::unique_ptr<tasks::Actor> actor_;  // null: prepared actions
  std::size_t n_, at_ = 0;
  std::uint64_t next_;
  std::vector<std::int32_t> envs_, over_;
  std::vector<std::uint64_t> seeds_;
  std::vector<std::vector<float>> actions_;
};

void measure(const std::string& name, const Options& options, int n_envs) {
  std::vector<std::unique_ptr<Stepping>> sides;
  for (const int threads : options.threads) sides.push_back(std::make_unique<Stepping>(name, options, n_envs, threads));
  for (int round = 0; round < options.rounds; ++round)
    for (const auto& side : sides) side->run(options.seconds);
  for (std::size_t i = 0; i < sides.size(); ++i)
    std::puts(
        format("{:<17} {:<8} {:>5} environments, {} threads, {}: {:>9.0f} control steps/s ({:.2f} times), {:.2f} us "
               "of the processors each, {} of {} episodes solved",
               name, options.engine, n_envs, options.threads[i], options.actor, sides[i]->rate,
               sides[i]->rate / sides[0]->rate, sides[i]->processor_us, sides[i]->successes, sides[i]->episodes)
            .c_str());
}

int run(int argc, char** argv) {
  Options options;
  bench::Options line("Control steps per second of tasks.");
  line.add("--task", options.task, "names; one is measured after the other");
  line.add("--engine", options.engine).one_of({"batched", "mujoco"});
  line.add("--actor", options.actor).one_of({"expert", "random"});
  line.add("--n-envs", options.n_envs, "numbers of environments");
  line.add("--threads", options.threads, "numbers of threads, which take turns");
  line.add("--rounds", options.rounds).at_least(1);
  line.add("--seconds", options.seconds, "of a round");
  if (!line.parse(argc, argv)) return line.exit_code();
  for (const int n : options.n_envs) COHORT_THROW_UNLESS(n >= 1, "--n-envs {}: at least 1", n);
  for (const int n : options.threads) COHORT_THROW_UNLESS(n >= 1, "--threads {}: at least 1", n);
  for (const std::string& name : options.task)
    for (const int n_envs : options.n_envs) measure(name, options, n_envs);
  return 0;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::bench::run_program("task_steps", [&] { return cohort::run(argc, argv); });
}
