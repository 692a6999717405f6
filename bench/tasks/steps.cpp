// Control steps per second of a task: the expert (or random actions) acts, the task simulates, observes and rewards;
// environments whose episode ends are reset.
//
//   task_steps --task pick-and-place --n-envs 256 --threads 1 --seconds 5
#include <chrono>
#include <cstdio>
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
  int n_envs = 256, threads = 1;
  double seconds = 5;
};

void measure(const std::string& name, const Options& options) {
  const auto task =
      tasks::make_task(name, {.n_envs = options.n_envs, .threads = options.threads, .engine = options.engine});
  const auto actor = options.actor == "expert" ? task->make_expert(0) : tasks::make_random_actor(0);
  COHORT_THROW_UNLESS(actor, "{} has no expert", name);
  const auto n = static_cast<std::size_t>(options.n_envs);
  std::vector<std::int32_t> envs(n), over;
  std::iota(envs.begin(), envs.end(), 0);
  std::vector<std::uint64_t> seeds(n);
  std::iota(seeds.begin(), seeds.end(), 0u);
  std::uint64_t next = n;
  task->reset(envs, seeds);
  actor->begin(envs, seeds, task->spec().instruction);
  std::vector<float> actions(n * static_cast<std::size_t>(task->spec().action.width()));
  const ArrayView view = make_view(actions.data(), {options.n_envs, task->spec().action.width()});
  std::int64_t steps = 0, episodes = 0, successes = 0;
  const auto begin = std::chrono::steady_clock::now();
  double seconds = 0;
  while (seconds < options.seconds) {
    for (int k = 0; k < 10; ++k) {
      actor->act(*task, envs, view);
      task->step(view);
      over.clear(), seeds.clear();
      for (std::size_t e = 0; e < n; ++e) {
        if (!task->terminated().span<std::uint8_t>()[e] && !task->truncated().span<std::uint8_t>()[e]) continue;
        over.push_back(static_cast<std::int32_t>(e));
        seeds.push_back(next++);
        ++episodes;
        successes += task->success().span<std::uint8_t>()[e];
      }
      task->reset(over, seeds);
      actor->begin(over, seeds, task->spec().instruction);
    }
    steps += 10 * options.n_envs;
    seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::puts(
      format("{:<17} {:<8} {:>5} environments, {} threads, {}: {:>9.0f} control steps/s, {} of {} episodes solved",
             name, options.engine, options.n_envs, options.threads, options.actor, static_cast<double>(steps) / seconds,
             successes, episodes)
          .c_str());
}

int run(int argc, char** argv) {
  Options options;
  bench::Options line("Control steps per second of tasks.");
  line.add("--task", options.task, "names; one is measured after the other");
  line.add("--engine", options.engine).one_of({"batched", "mujoco"});
  line.add("--actor", options.actor).one_of({"expert", "random"});
  line.add("--n-envs", options.n_envs).at_least(1);
  line.add("--threads", options.threads).at_least(1);
  line.add("--seconds", options.seconds);
  if (!line.parse(argc, argv)) return line.exit_code();
  for (const std::string& name : options.task) measure(name, options);
  return 0;
}

}  // namespace
}  // namespace cohort

int main(int argc, char** argv) {
  return cohort::bench::run_program("task_steps", [&] { return cohort::run(argc, argv); });
}
