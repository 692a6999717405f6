// Steps per second of the batched engine with many steps in a launch: what a device computes, without the wait for each
// step that `cohort simulate` has.
//
//   sim_launch_bench [--backend cpu|cuda] [--envs N] [--steps S] [--rounds R] [--row-space ROWS] [--keyframe K]
//                    [--noise X] MODEL...
//
// Every round starts all environments from the model's keyframe K (0; -1: the default state), holds the control of the
// keyframe plus X (0.01) times the control's range times a number of the environment and the control from -1 to 1
// (control_of), and takes S steps in one launch. The time is that from before the launch to the end of the wait for it; the
// best round counts and the first, which loads the kernels, does not. mujoco_warp_speed.py does the same with MuJoCo
// Warp, with the same controls: its last column has to be near this program's.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/format.h"
#include "sim/host/model_info.h"
#include "sim/host/scene.h"

using namespace cohort;
using namespace cohort::sim;

namespace {

struct Settings {
  std::string file;
  bool cuda = false;
  int envs = 4096, steps = 200, rounds = 4, row_space = -1, keyframe = 0;
  double noise = 0.01;
};

/// From -1 to 1; in integers, so that a program in any language has the same.
double control_of(std::int64_t env, std::int64_t control) {
  return static_cast<double>((7919 * env + 104729 * control) % 2001 - 1000) / 1000;
}

void measure(const Settings& s) {
  SceneOptions options;
  options.row_space = s.row_space;
  if (s.cuda) options.device = {DeviceKind::kCuda, 0};
  Scene scene(options);
  scene.add_entity(Mjcf{s.file});
  scene.build(s.envs);
  const ModelInfo& info = scene.info();
  const bool from_keyframe = s.keyframe >= 0 && static_cast<std::size_t>(s.keyframe) < info.keyframes.size();
  std::vector<float> ctrl(static_cast<std::size_t>(s.envs) * static_cast<std::size_t>(info.nu), 0.0f);
  for (const ActuatorInfo& a : info.actuators) {
    if (a.ctrl < 0) continue;
    const double base =
        from_keyframe ? info.keyframes[static_cast<std::size_t>(s.keyframe)].ctrl[static_cast<std::size_t>(a.ctrl)] : 0;
    const double range = a.limited ? a.range[1] - a.range[0] : 2;
    for (int e = 0; e < s.envs; ++e) {
      ctrl[static_cast<std::size_t>(e * info.nu + a.ctrl)] =
          static_cast<float>(base + s.noise * range * control_of(e, a.ctrl));
    }
  }
  double best = 0;
  for (int round = 0; round <= s.rounds; ++round) {
    scene.reset();
    if (from_keyframe) scene.reset_to_keyframe(s.keyframe);
    scene.set_ctrl(ctrl);
    Engine& engine = scene.engine();
    engine.step(1);  // sends what was set
    engine.wait();
    const auto begin = std::chrono::steady_clock::now();
    engine.step(s.steps);
    engine.wait();
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (round > 0) best = std::max(best, static_cast<double>(s.envs) * s.steps / seconds);
  }
  const auto mean = [&](Field field) {
    const ArrayView v = scene.host_view(field);
    double sum = 0;
    for (int e = 0; e < s.envs; ++e) sum += static_cast<const std::int32_t*>(v.data)[e * v.strides[0]];
    return sum / s.envs;
  };
  const ArrayView status = scene.host_view(Field::kStatus);
  int stopped = 0;
  for (int e = 0; e < s.envs; ++e) stopped += static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] != 0;
  // The square sum of the joint state says whether two engines simulate the same.
  const ArrayView q = scene.host_view(Field::kQpos);
  double norm = 0;
  for (int e = 0; e < s.envs; ++e) {
    for (std::int64_t i = 0; i < q.shape[1]; ++i) {
      const double x = static_cast<const float*>(q.data)[e * q.strides[0] + i * q.strides[1]];
      norm += x * x / s.envs;
    }
  }
  std::printf(
      "%-24s %6d environments, row space %2d: %12.0f steps/s (%d steps a launch), %.2f contacts, %.2f iterations, "
      "%d stopped, |qpos|^2 %.4f\n",
      s.file.substr(s.file.rfind('/') + 1).c_str(), s.envs, s.row_space, best, s.steps, mean(Field::kContactCount),
      mean(Field::kSolverIterations), stopped, norm);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    Settings settings;
    bool any = false;
    for (int i = 1; i < argc; ++i) {
      const std::string word = argv[i];
      if (!word.starts_with("--")) {
        settings.file = word;
        measure(settings);
        any = true;
        continue;
      }
      COHORT_THROW_UNLESS(i + 1 < argc, "{} needs a value behind it", word);
      const char* const value = argv[++i];
      if (word == "--backend")
        settings.cuda = std::string(value) == "cuda";
      else if (word == "--envs")
        settings.envs = std::max(1, std::atoi(value));
      else if (word == "--steps")
        settings.steps = std::max(1, std::atoi(value));
      else if (word == "--rounds")
        settings.rounds = std::max(1, std::atoi(value));
      else if (word == "--row-space")
        settings.row_space = std::atoi(value);
      else if (word == "--keyframe")
        settings.keyframe = std::atoi(value);
      else if (word == "--noise")
        settings.noise = std::atof(value);
      else
        throw Error("unknown option " + word +
                    ": --backend, --envs, --steps, --rounds, --row-space, --keyframe, --noise");
    }
    COHORT_THROW_UNLESS(any, "name model files: sim_launch_bench [--backend cuda] [--envs N] ... MODEL...");
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
