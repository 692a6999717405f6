// Control steps of a LIBERO task per core: ours beside LIBERO's own Python environment, with and without pictures of its
// two cameras, in turns in one run.
//
//   python scripts/export_libero.py --out scenes --tasks KITCHEN_SCENE10_close_the_top      # with LIBERO's Python
//   export COHORT_LIBERO_PYTHON=LIBERO_VENV/bin/python
//   libero_steps --scene scenes/libero_90__KITCHEN_SCENE10_close_the_top_drawer_of_the_cabinet
//
// Both sides take the same random actions from the same initial states in the same scene with the same meshes; said is
// how far the hands are apart after some steps. Episodes are begun outside the time. Figures are control steps of all
// environments per second of processor time: what a core does. MuJoCo draws on OpenGL, without a GPU on llvmpipe with
// one thread on both sides.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "comparison.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/philox.h"
#include "peer.h"
#include "program.h"
#include "tasks/libero/libero_task.h"
#include "tasks/libero/scene_folder.h"

namespace cohort::bench {
namespace {

constexpr int kWidth = 7;       // numbers of an action
constexpr int kHandSteps = 20;  // after which the hands are compared
constexpr const char* kCameras[] = {"agentview_rgb", "eye_in_hand_rgb"};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// (steps, 7), uniform in [-1, 1]: of every episode.
std::vector<float> random_actions(int steps) {
  std::vector<float> actions(static_cast<std::size_t>(steps * kWidth));
  for (std::size_t i = 0; i < actions.size(); ++i)
    actions[i] = 2 * RandomStream(0, RandomPurpose::kAction, i / kWidth, 0).uniform(i % kWidth) - 1;
  return actions;
}

struct Way {
  std::string engine, renderer;  ///< no renderer: no pictures
  int n_envs = 1;
  std::string name() const {
    return format("ours ({}{}; {} environments)", engine, renderer.empty() ? "" : ", pictures by " + renderer, n_envs);
  }
};

/// Environments that go on from turn to turn.
class Ours {
 public:
  Ours(const std::filesystem::path& scene, const Way& way, const std::vector<float>& actions, int size)
      : actions_(actions), n_(static_cast<std::size_t>(way.n_envs)), pictures_(!way.renderer.empty()) {
    const auto steps = static_cast<std::int64_t>(actions.size()) / kWidth;
    task_ = tasks::libero::make_libero_task(
        scene, {.n_envs = way.n_envs,
                .threads = 1,
                .engine = way.engine,
                .pictures = {.height = size, .width = size, .renderer = way.renderer},
                .overrides = {"warmup_steps=0", format("horizon={}", steps), "end_on_success=false"}});
    envs_.resize(n_), seeds_.resize(n_), sent_.resize(n_ * kWidth);
    std::iota(envs_.begin(), envs_.end(), 0);
    std::iota(seeds_.begin(), seeds_.end(), 0u);
    begin();
  }

  /// Seconds of processor time for a control step of an environment.
  double run(double seconds) {
    double taken = 0;
    std::int64_t steps = 0;
    while (taken < seconds) {
      if (at_ * kWidth == actions_.size()) begin();
      const double before = processor_seconds();
      step();
      taken += processor_seconds() - before;
      steps += static_cast<std::int64_t>(n_);
    }
    return taken / static_cast<double>(steps);
  }

  /// The hand's place in the first environment, whose episode begins in the first initial state.
  std::vector<float> hand(int steps) {
    std::iota(seeds_.begin(), seeds_.end(), 0u);
    begin();
    for (int k = 0; k < steps; ++k) step();
    const auto seen = task_->observation(task_->observation_index("robot0_eef_pos")).span<float>();
    return {seen.begin(), seen.begin() + 3};
  }
  std::int64_t broken() const { return broken_; }

 private:
  void begin() {
    task_->reset(envs_, seeds_);
    for (std::uint64_t& seed : seeds_) seed += n_;
    at_ = 0;
  }
  void step() {
    for (std::size_t i = 0; i < sent_.size(); ++i) sent_[i] = actions_[at_ * kWidth + i % kWidth];
    ++at_;
    task_->step(make_view(sent_.data(), {task_->n_envs(), kWidth}));
    if (pictures_)
      for (const char* camera : kCameras) task_->picture(camera, envs_);
    for (const std::uint8_t one : task_->broken().span<std::uint8_t>()) broken_ += one;
  }

  const std::vector<float>& actions_;
  std::size_t n_, at_ = 0;
  bool pictures_;
  std::unique_ptr<tasks::Task> task_;
  std::vector<std::int32_t> envs_;
  std::vector<std::uint64_t> seeds_;
  std::vector<float> sent_;
  std::int64_t broken_ = 0;
};

struct Arguments {
  std::string python = environment_or("COHORT_LIBERO_PYTHON", "python3"), scene;
  int n_envs = 64, few_envs = 4, rounds = 5, steps = 100, size = 128;
  double seconds = 3;
  bool alone = false;
};

void compare(const tasks::libero::SceneHead& head, bool pictures, const std::vector<Way>& ways,
             const std::vector<float>& actions, const std::string& actions_file, const Arguments& a) {
  std::optional<Peer> libero;
  std::string ready;
  if (!a.alone) {
    libero.emplace(std::vector<std::string>{a.python, COHORT_SOURCE_DIR "/bench/tasks/libero_steps.py", head.suite,
                                            head.task, (head.path / "init_states.npy").string(), actions_file,
                                            format("{}", a.steps), pictures ? format("{}", a.size) : "none"});
    ready = libero->read_line();
    COHORT_THROW_UNLESS(ready.starts_with("ready "),
                        "LIBERO's environment did not start (--python, LIBERO_CONFIG_PATH); --alone does without it");
  }
  std::vector<std::unique_ptr<Ours>> ours;
  std::vector<Side> sides;
  for (const Way& way : ways) {
    ours.push_back(std::make_unique<Ours>(head.path, way, actions, a.size));
    sides.push_back({way.name(), [one = ours.back().get(), &a] { return one->run(a.seconds); }});
  }
  if (libero) {
    std::vector<double> there(3);
    std::istringstream(libero->ask(format("hand {}", kHandSteps))) >> there[0] >> there[1] >> there[2];
    const std::vector<float> here = ours[0]->hand(kHandSteps);
    double apart = 0;
    for (std::size_t i = 0; i < 3; ++i) apart = std::max(apart, std::abs(there[i] - static_cast<double>(here[i])));
    std::printf("# %s; after %d control steps its hand and ours (%s) are within %.1e m\n", ready.substr(6).c_str(),
                kHandSteps, ways[0].engine.c_str(), apart);
    sides.push_back({"LIBERO (1 environment)", [&libero, &a] {
                       std::istringstream answer(libero->ask(format("run {}", a.seconds)));
                       double steps = 0, taken = 0;
                       answer >> steps >> taken;
                       COHORT_THROW_UNLESS(steps > 0 && taken > 0,
                                           "LIBERO's side did not answer with steps and seconds");
                       return taken / steps;
                     }});
  }
  const auto times = take_turns(sides, a.rounds);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    std::vector<double> ratio;
    for (std::size_t r = 0; r < times[i].size(); ++r) ratio.push_back(times.back()[r] / times[i][r]);
    std::printf("%s,%s,%.1f,%s\n", pictures ? format("2 of {0} x {0}", a.size).c_str() : "none", sides[i].name.c_str(),
                1 / median(times[i]), libero ? format("{:.1f}", median(ratio)).c_str() : "");
    std::fflush(stdout);
  }
  for (const auto& one : ours) COHORT_THROW_UNLESS(one->broken() == 0, "{} steps broke a simulation", one->broken());
}

int run(int argc, char** argv) {
  setenv("LP_NUM_THREADS", "1", 0);
  Arguments a;
  Options line("Control steps of a LIBERO task per core: ours and LIBERO's own environment.");
  line.add("--python", a.python, "Python with LIBERO (or COHORT_LIBERO_PYTHON); LIBERO must be on its path");
  line.add("--scene", a.scene, "folder of the task, as scripts/export_libero.py writes it").required();
  line.add("--n-envs", a.n_envs, "environments of ours on the batched engine").at_least(1);
  line.add("--few-envs", a.few_envs, "environments of ours on MuJoCo").at_least(1);
  line.add("--rounds", a.rounds).at_least(1);
  line.add("--steps", a.steps, "control steps of an episode").at_least(kHandSteps);
  line.add("--seconds", a.seconds, "of each turn");
  line.add("--size", a.size, "px of the square pictures").at_least(16);
  line.add_flag("--alone", a.alone, "without LIBERO's environment");
  if (!line.parse(argc, argv)) return line.exit_code();
  const tasks::libero::SceneHead head = tasks::libero::read_scene_head(a.scene);
  const std::vector<float> actions = random_actions(a.steps);
  const std::filesystem::path file =
      std::filesystem::temp_directory_path() / format("cohort_libero_{}.f32", static_cast<int>(getpid()));
  write_file_atomically(file, std::string(reinterpret_cast<const char*>(actions.data()), 4 * actions.size()));
  std::printf("# %s\n# %s\n",
              machine_line(format("medians of {} turns of {} s, one thread", a.rounds, a.seconds)).c_str(),
              head.task.c_str());
  std::puts("pictures,side,control_steps_per_core_second,times_libero");
  compare(head, false, {{"mujoco", "", a.few_envs}, {"batched", "", a.n_envs}}, actions, file.string(), a);
  compare(head, true,
          {{"mujoco", "mujoco", a.few_envs}, {"mujoco", "raycast", a.few_envs}, {"batched", "raycast", a.n_envs}},
          actions, file.string(), a);
  std::filesystem::remove(file);
  return 0;
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  return cohort::bench::run_program("libero_steps", [&] { return cohort::bench::run(argc, argv); });
}
