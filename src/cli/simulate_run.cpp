#include "cli/simulate_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/model_morph.h"
#include "cli/simulate_figures.h"
#include "core/devices.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/progress.h"
#include "launch/settings.h"
#include "launch/signals.h"
#include "sim/backends/cuda/engine.h"
#include "sim/host/model_file.h"
#include "sim/host/record.h"
#include "sim/host/scene.h"

namespace cohort::cli {
namespace {

/// Ctrl-C and kin end the loop while this lives, so that what was computed is kept; a second one ends the program.
class Interrupt {
 public:
  Interrupt() { pipe_.emplace(std::vector<int>{SIGINT, SIGTERM, SIGHUP}); }
  /// Whether one arrived.
  bool asked() {
    if (!pipe_) return true;
    const std::vector<int> arrived = pipe_->take();
    if (arrived.empty()) return false;
    signal_ = arrived.front();
    pipe_.reset();
    return true;
  }
  int signal() const { return signal_; }

 private:
  std::optional<launch::SignalPipe> pipe_;
  int signal_ = 0;  ///< 0: none
};

/// Controls with which the servos' forces are zero where the environments start. Names those whose are not.
void hold_start(sim::Scene& scene) {
  const std::vector<std::string> lost = scene.hold();
  if (!lost.empty()) log::warning("--control hold: what does not hold the start: {}", some_of(lost));
  const std::vector<sim::ActuatorInfo>& all = scene.info().actuators;
  if (std::none_of(all.begin(), all.end(), [](const sim::ActuatorInfo& a) { return a.servo; })) {
    log::warning("--control hold: the model has no position servo, so nothing holds it");
  }
}

/// Where the physics runs. `gpu` takes the CPU where there is no CUDA device or no kernel for it, and says so; `auto`
/// takes the best there is.
DeviceId device_of(const SimulateSettings& s) {
  if (s.backend == "cpu") return {};
  if (s.backend == "auto" && (s.engine == "mujoco" || !gpu_usable())) return {};
  if (s.engine == "mujoco") {
    if (s.backend != "gpu") {
      throw Error(format("--backend {}: the engine mujoco computes on the CPU only; use --backend cpu", s.backend));
    }
    log::warning("--backend gpu: the engine mujoco computes on the CPU only, so the CPU it is");
    return {};
  }
  try {
    const std::string backend = s.backend == "auto" ? "gpu" : s.backend;
    return initialise(
               {.backend = parse_backend(backend), .local_rank = s.local_rank, .cuda_unusable = sim::cuda_unusable()})
        .device;
  } catch (const Error& e) {
    throw Error(format("--backend {}: {}. With --backend cpu the CPU computes the physics", s.backend, e.what()));
  }
}

/// "cuda:1", or "the CPU".
std::string device_text(DeviceId device) {
  return device.kind == DeviceKind::kCuda ? format("cuda:{}", device.index) : "the CPU";
}

}  // namespace

int threads_for(int n_envs, int processes) {
  constexpr int kEnvironmentsOfThread = 256;
  return std::clamp(available_cores() / processes, 1, std::max(1, n_envs / kEnvironmentsOfThread));
}

bool gpu_usable() {
  return sim::cuda_unusable().empty() && !list_devices({.egl = false}).visible.empty();
}

namespace {

sim::SceneOptions scene_options(const SimulateSettings& s) {
  sim::SceneOptions options;
  options.device = device_of(s);
  options.engine = sim::parse_engine(s.engine);
  options.lanes = sim::parse_lane_width(s.lanes);
  options.threads = s.threads;
  options.seed = s.seed;
  options.first_environment = s.first_env;
  if (s.timestep > 0) options.timestep = s.timestep;
  options.contact_capacity = s.contact_capacity;
  options.row_space = s.row_space;
  options.report_stops = false;  // count_step() and report_trouble() do
  options.exclude = exclusions(s.file_options.exclude);
  return options;
}

/// The state that the run begins with, before its first frame is recorded; what is amiss with it is said.
void begin_at(sim::Scene& scene, const SimulateSettings& s) {
  const int keyframe = s.keyframe.empty() ? -1 : scene.info().keyframe(s.keyframe);
  if (keyframe >= 0) scene.reset_to_keyframe(keyframe);
  for (const std::string& warning : scene.warnings()) log::warning("{}", warning);
  const std::string outside = scene.info().starts_outside_limits(keyframe);
  if (!outside.empty()) log::warning("{}", outside);
  const std::string overlap = scene.overlaps();
  if (!overlap.empty()) log::warning("{}", overlap);
  // A keyframe has controls of its own.
  if (s.control == "zero" && scene.info().nu > 0) {
    scene.set_ctrl(std::vector<float>(static_cast<std::size_t>(scene.info().nu), 0.0f));
  }
  if (s.control == "hold") hold_start(scene);
}

void say_speed(const SimulateFigures& figures, int n_envs) {
  if (figures.done == 0) return;
  log::info(
      "{:.0f} steps/s in physics ({} environments x {} steps in {:.3f} s), {:.2f} contacts and {:.2f} solver "
      "iterations per step, {} environments stopped{}",
      figures.steps / figures.seconds, n_envs, figures.done, figures.seconds, figures.contacts / figures.steps,
      figures.iterations / figures.steps, figures.stopped,
      figures.stopped > 0 ? format("; the {:.0f} steps before that are counted", figures.steps) : "");
}

}  // namespace

int simulate(const SimulateSettings& s) {
  const sim::SceneOptions options = scene_options(s);
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  sim::Scene scene(options);
  if (s.model.ends_with(".cohort")) {
    scene.build_from_file(s.model, s.n_envs, s.pictures.spacing());
  } else {
    scene.add_entity(morph_of(s.model, s.file_options));
    scene.build(s.n_envs, s.pictures.spacing());
  }
  begin_at(scene, s);
  Interrupt interrupt;
  std::unique_ptr<sim::StateRecorder> recorder;
  if (!s.record.empty()) recorder = std::make_unique<sim::StateRecorder>(scene, s.record, s.steps + 1);
  if (recorder) recorder->add();
  std::unique_ptr<SimulatePictures> pictures;
  if (s.pictures.wanted()) {
    PictureSettings wanted = s.pictures;
    wanted.own_light = !s.model.ends_with(".cohort") && sim::is_urdf(s.model);
    pictures = std::make_unique<SimulatePictures>(scene, wanted, s.threads);
  }
  if (pictures) pictures->add();
  if (s.control == "random" && scene.info().nu == 0)
    log::info("the model has no actuators: nothing is controlled, what moves is moved by gravity and contacts");
  const sim::MemoryPlan memory = scene.engine().memory();
  log::info("{}: {} environments, engine {} on {}, {} thread{}, {} per environment, {}, ready after {:.2f} s", s.model,
            s.n_envs, s.engine, device_text(options.device), s.threads, s.threads == 1 ? "" : "s",
            format_bytes(memory.bytes_per_environment()),
            memory.thread_bytes > 0 ? format("{} per thread", format_bytes(memory.thread_bytes))
                                    : format("{} besides", format_bytes(memory.fixed_bytes)),
            since(begin));
  SimulateFigures figures;
  figures.controls = scene.info().nu;
  std::vector<bool> live(static_cast<std::size_t>(s.n_envs), true);  // environments that stand still take no steps
  std::exception_ptr not_recorded;
  {
    Progress progress(s.steps,
                      {.label = "simulate", .unit = "step", .samples_per_unit = static_cast<double>(s.n_envs)});
    while (figures.done < s.steps && !not_recorded && !interrupt.asked()) {
      if (s.control == "random") scene.set_random_ctrl(figures.done);
      const auto from = std::chrono::steady_clock::now();
      scene.step();
      scene.engine().wait();
      figures.seconds += since(from);
      count_step(scene, live, figures);
      ++figures.done;
      try {
        if (recorder) recorder->add();
        if (pictures) pictures->add();
      } catch (const Error&) {
        not_recorded = std::current_exception();  // the figures first
      }
      progress.update(figures.done);
    }
    if (figures.done == s.steps) progress.finish();
  }
  if (interrupt.signal() != 0) {
    log::warning("stopped after {} of {} steps by {}", figures.done, s.steps, launch::signal_name(interrupt.signal()));
  }
  const int stopped = report_trouble(scene);
  report_lost_positions(scene, figures.done);
  figures.stopped = stopped;
  say_speed(figures, s.n_envs);
  if (!s.summary.empty()) {
    write_file_atomically(s.summary, to_text(figures));
  }
  if (not_recorded) std::rethrow_exception(not_recorded);
  if (recorder) {
    recorder->save();
    log::info("recorded {} frames to {}", recorder->frames(), s.record);
  }
  if (pictures) pictures->save();
  interrupt.asked();  // while the recording was saved
  // Of a share of the environments the whole knows.
  if (interrupt.signal() == 0 && s.summary.empty()) need_one_left(figures, s.n_envs, s.control);
  return interrupt.signal() != 0 ? 128 + interrupt.signal() : 0;
}

}  // namespace cohort::cli
