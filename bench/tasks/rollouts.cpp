// Rollouts of simulate, observe and act per core: our tasks beside gymnasium's vector environments over MuJoCo on the
// same model, and beside robosuite's Lift on its own model and with its controller, in turns in one run.
//
//   bench/tasks/robosuite_venv /tmp/robosuite      # once; without it Lift is left out
//   tasks_rollouts_bench --python .deps/python/bin/python --robosuite-python /tmp/robosuite/bin/python
//
// Actions are random on all sides. Figures are control steps of all environments per second of processor time, worker
// processes included: what a core does.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <numeric>
#include <sstream>

#include <unistd.h>

#include "comparison.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "lift_task.h"
#include "peer.h"
#include "program.h"
#include "tasks/actor.h"
#include "tasks/registry.h"

namespace cohort::bench {
namespace {

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// Environments of a task that go on from call to call.
class Rollouts {
 public:
  Rollouts(std::unique_ptr<tasks::Task> task, std::unique_ptr<tasks::Actor> actor)
      : task_(std::move(task)), actor_(std::move(actor)), n_(static_cast<std::size_t>(task_->n_envs())) {
    envs_.resize(n_), seeds_.resize(n_);
    std::iota(envs_.begin(), envs_.end(), 0);
    std::iota(seeds_.begin(), seeds_.end(), 0u);
    next_ = n_;
    actions_.resize(n_ * static_cast<std::size_t>(task_->spec().action.width()));
    task_->reset(envs_, seeds_);
    actor_->begin(envs_, seeds_, task_->spec().instruction);
  }

  /// Seconds of processor time for a control step of an environment.
  double run(double seconds) {
    const ArrayView view = make_view(actions_.data(), {task_->n_envs(), task_->spec().action.width()});
    const double begin = processor_seconds();
    std::int64_t steps = 0;
    double passed = 0;
    do {
      actor_->act(*task_, envs_, view);
      task_->step(view);
      over_.clear(), seeds_.clear();
      for (std::size_t e = 0; e < n_; ++e) {
        broken_ += task_->broken().span<std::uint8_t>()[e];
        if (!task_->terminated().span<std::uint8_t>()[e] && !task_->truncated().span<std::uint8_t>()[e]) continue;
        over_.push_back(static_cast<std::int32_t>(e));
        seeds_.push_back(next_++);
      }
      task_->reset(over_, seeds_);
      actor_->begin(over_, seeds_, task_->spec().instruction);
      steps += static_cast<std::int64_t>(n_);
      passed = processor_seconds() - begin;
    } while (passed < seconds);
    return passed / static_cast<double>(steps);
  }
  std::int64_t broken() const { return broken_; }

 private:
  std::unique_ptr<tasks::Task> task_;
  std::unique_ptr<tasks::Actor> actor_;
  std::size_t n_;
  std::vector<std::int32_t> envs_, over_;
  std::vector<std::uint64_t> seeds_;
  std::vector<float> actions_;
  std::uint64_t next_ = 0;
  std::int64_t broken_ = 0;
};

/// How far the hands of Lift are apart on our two engines, m, after that many control steps of the same episodes:
/// whether both simulate the same.
double hands_apart(const std::string& mjcf, int steps) {
  constexpr int kEpisodes = 4;
  std::vector<float> places[2];
  for (const int i : {0, 1}) {
    const auto task = make_lift_task({.n_envs = kEpisodes, .engine = i == 0 ? "batched" : "mujoco"}, mjcf);
    const auto actor = tasks::make_random_actor(0);
    std::vector<std::int32_t> envs(kEpisodes);
    std::iota(envs.begin(), envs.end(), 0);
    const std::vector<std::uint64_t> seeds{1, 2, 3, 4};
    task->reset(envs, seeds);
    actor->begin(envs, seeds, "");
    std::vector<float> actions(kEpisodes * 7);
    for (int k = 0; k < steps; ++k) {
      actor->act(*task, envs, make_view(actions.data(), {kEpisodes, 7}));
      task->step(make_view(actions.data(), {kEpisodes, 7}));
    }
    const auto seen = task->observation(task->observation_index("eef_pos")).span<float>();
    places[i].assign(seen.begin(), seen.end());
  }
  double most = 0;
  for (std::size_t i = 0; i < places[0].size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(places[0][i]) - static_cast<double>(places[1][i])));
  return most;
}

struct Arguments {
  std::string python = environment_or("COHORT_PYTHON", "python3"), robosuite_python;
  std::vector<std::string> gymnasium{"HalfCheetah-v5"};
  int n_envs = 256, rounds = 5;
  double seconds = 2;
};

Side peer_side(const std::string& name, Peer& peer, double seconds) {
  return {name, [&peer, seconds] {
            std::istringstream answer(peer.ask(format("{}", seconds)));
            double steps = 0, taken = 0;
            answer >> steps >> taken;
            COHORT_THROW_UNLESS(steps > 0 && taken > 0, "the Python peer did not answer with steps and seconds");
            return taken / steps;
          }};
}
std::string started(Peer& peer) {
  const std::string ready = peer.read_line();
  COHORT_THROW_UNLESS(ready.starts_with("ready "), "the Python peer did not start");
  return ready.substr(6);
}

void compare(const std::string& task, const std::vector<Side>& sides, std::size_t ours, const Arguments& a) {
  const auto times = take_turns(sides, a.rounds);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    std::printf("%s,%s,%.0f", task.c_str(), sides[i].name.c_str(), 1 / median(times[i]));
    for (std::size_t k = 0; k < ours; ++k) {
      std::vector<double> ratio;
      for (std::size_t r = 0; r < times[i].size(); ++r) ratio.push_back(times[i][r] / times[k][r]);
      std::printf(",%.1f", median(ratio));
    }
    std::puts("");
  }
  std::fflush(stdout);
}

int run(int argc, char** argv) {
  Arguments a;
  Options line("Rollouts per core: our tasks, gymnasium's vector environments and robosuite.");
  line.add("--python", a.python, "Python with gymnasium (or COHORT_PYTHON)");
  line.add("--robosuite-python", a.robosuite_python, "Python with robosuite (bench/tasks/robosuite_venv)");
  line.add("--gymnasium", a.gymnasium, "names of gymnasium's environments that we have too");
  line.add("--n-envs", a.n_envs, "environments on our side").at_least(1);
  line.add("--rounds", a.rounds).at_least(1);
  line.add("--seconds", a.seconds, "of each turn");
  if (!line.parse(argc, argv)) return line.exit_code();
  const std::string script = COHORT_SOURCE_DIR "/bench/tasks/rollouts.py";
  std::printf("# %s\n", machine_line(format("medians of {} turns of {} s, one thread", a.rounds, a.seconds)).c_str());
  std::puts("task,side,control_steps_per_core_second,ours_batched_is_times,ours_with_mujoco_is_times");
  const auto ours = [&](const char* engine, int n_envs) {
    return tasks::TaskSettings{.n_envs = n_envs, .threads = 1, .engine = engine};
  };
  const std::string many = format("ours (batched; {} environments)", a.n_envs);
  for (const std::string& name : a.gymnasium) {
    Rollouts batched(tasks::make_task(name, ours("batched", a.n_envs)), tasks::make_random_actor(0));
    Rollouts mujoco(tasks::make_task(name, ours("mujoco", 16)), tasks::make_random_actor(0));
    Peer one({a.python, script, "gymnasium", name, "sync", "1"});
    Peer sync({a.python, script, "gymnasium", name, "sync", "16"});
    Peer async({a.python, script, "gymnasium", name, "async", "16"});
    started(one), started(sync);
    std::printf("# %s\n", started(async).c_str());
    compare(name,
            {{many, [&] { return batched.run(a.seconds); }},
             {"ours (MuJoCo; 16 environments)", [&] { return mujoco.run(a.seconds); }},
             peer_side("SyncVectorEnv of 1", one, a.seconds),
             peer_side("SyncVectorEnv of 16", sync, a.seconds),
             peer_side("AsyncVectorEnv of 16", async, a.seconds)},
            2, a);
  }
  if (a.robosuite_python.empty()) return 0;
  const std::filesystem::path model =
      std::filesystem::temp_directory_path() / format("cohort_lift_{}.xml", static_cast<int>(getpid()));
  Peer robosuite({a.robosuite_python, script, "robosuite", model.string()});
  std::printf("# %s\n", started(robosuite).c_str());
  const std::string mjcf = read_file(model);
  std::filesystem::remove(model);
  std::printf("# Lift: after 40 control steps the hands are within %.1e m on our two engines\n", hands_apart(mjcf, 40));
  Rollouts batched(make_lift_task(ours("batched", a.n_envs), mjcf), tasks::make_random_actor(0));
  Rollouts mujoco(make_lift_task(ours("mujoco", 4), mjcf), tasks::make_random_actor(0));
  compare("Lift",
          {{many, [&] { return batched.run(a.seconds); }},
           {"ours (MuJoCo; 4 environments)", [&] { return mujoco.run(a.seconds); }},
           peer_side("robosuite (1 environment)", robosuite, a.seconds)},
          2, a);
  COHORT_THROW_UNLESS(batched.broken() + mujoco.broken() == 0, "{} steps broke a simulation of Lift",
                      batched.broken() + mujoco.broken());
  return 0;
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  return cohort::bench::run_program("tasks_rollouts_bench", [&] { return cohort::bench::run(argc, argv); });
}
