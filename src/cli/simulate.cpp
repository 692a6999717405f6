// `cohort simulate`: many environments of one model, with progress, figures and a recording.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

#include "cli/model_morph.h"
#include "cli/parse_arguments.h"
#include "cli/simulate_pictures.h"
#include "cli/subcommand.h"
#include "core/devices.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/progress.h"
#include "launch/agent.h"
#include "launch/rank_environment.h"
#include "launch/signals.h"
#include "sim/cuda/engine.h"
#include "sim/host_memory.h"
#include "sim/model_file.h"
#include "sim/record.h"
#include "sim/scene.h"

namespace cohort::cli {
namespace {

struct SimulateSettings {
  std::string model;
  int n_envs = 1;
  std::int64_t steps = 1000;
  std::string backend = "auto", engine = "batched", control = "random", lanes = "auto", record, keyframe;
  std::uint64_t seed = 0;
  int threads = 0;  ///< 0: see threads_for
  std::int64_t first_env = 0;
  double timestep = 0;
  int contact_capacity = 0;
  bool fixed_base = false;
  PictureSettings pictures;
  std::string devices;  ///< a process for each
  int local_rank = -1;  ///< of this process under a launcher, for the GPU that it takes
  std::string summary;  ///< of such a process: the file of its figures; of the command line: the folder of those files
};

/// What one process did; the figures of several add up, times and means aside.
struct Figures {
  std::int64_t done = 0;                                        ///< steps of each environment
  double steps = 0, seconds = 0, contacts = 0, iterations = 0;  ///< steps of environments; sums over them
  double stopped = 0;                                           ///< environments with trouble
  std::int64_t stop_step = -1, stop_env = 0, stop_status = 0;   ///< of the first of them: its step, counted from 1
};

/// More than a processor counts in thirty years.
constexpr std::int64_t kMostSteps = 1'000'000'000'000'000;

/// A check for a decimal number from low to high, which a conversion would clamp, wrap or read in another base.
template <class T>
auto whole_number(T low, T high) {
  return [=](const std::string& text) -> std::string {
    T value{};
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    const std::size_t first_digit = text.starts_with('-') ? 1 : 0;
    const bool octal = text.size() > first_digit + 1 && text[first_digit] == '0';
    const bool plain = problem == std::errc() && end == text.data() + text.size() && !octal;
    return plain && value >= low && value <= high ? ""
                                                  : format("`{}` is no whole number from {} to {}", text, low, high);
  };
}

/// "3, 9, 12", at most five of them: "3, 9, 12, 20, 21 and 4 more".
template <class T>
std::string some_of(const std::vector<T>& all) {
  constexpr std::size_t kMost = 5;
  std::string text;
  for (std::size_t i = 0; i < std::min(all.size(), kMost); ++i) text += format("{}{}", i == 0 ? "" : ", ", all[i]);
  return all.size() <= kMost ? text : text + format(" and {} more", all.size() - kMost);
}

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

constexpr std::pair<int, const char*> kTroubles[] = {{sim::kStatusContactOverflow, "more contacts than fit"},
                                                     {sim::kStatusConstraintOverflow, "more constraints than fit"},
                                                     {sim::kStatusBadState, "a NaN or a value above 1e10"},
                                                     {sim::kStatusEngineError, "an error in MuJoCo"}};

/// Throws Error where no environment is left: what follows is no simulation.
void need_one_left(const Figures& f, int n_envs, const std::string& control) {
  if (n_envs < 1 || f.stopped < n_envs) return;
  std::string reason;
  for (const auto& [bit, text] : kTroubles) {
    if (f.stop_status & bit) reason += (reason.empty() ? "" : ", ") + std::string(text);
  }
  throw Error(format("every environment stopped, the first, {}, in step {}: {}{}", f.stop_env, f.stop_step, reason,
                     control == "random"
                         ? "; --control zero shows whether random controls in the ranges that the model "
                           "gives are too much for it"
                         : ""));
}

/// Environments with trouble, in words: "3 environments stopped: a NaN or a value above 1e10 (environments 17, 20,
/// 21)".
int report_trouble(sim::Scene& scene) {
  const ArrayView status = scene.host_view(sim::Field::kStatus);
  int stopped = 0;
  for (int e = 0; e < scene.n_envs(); ++e) {
    stopped += static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] != 0;
  }
  for (const auto& [bit, text] : kTroubles) {
    std::vector<std::int64_t> ids;
    std::string reason;
    for (int e = 0; e < scene.n_envs(); ++e) {
      if (!(static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] & bit)) continue;
      if (ids.empty() && bit == sim::kStatusEngineError) reason = ": " + scene.engine().error_text(e);
      ids.push_back(scene.global_environment_id(e));
    }
    if (!ids.empty()) {
      log::warning("{} environments stopped: {} (environment{} {}){}", ids.size(), text, ids.size() == 1 ? "" : "s",
                   some_of(ids), reason);
    }
  }
  return stopped;
}

/// Controls with which the servos' forces are zero where the environments start, which is qpos0. Names those whose are
/// not.
void hold_start(sim::Scene& scene) {
  const sim::ModelInfo& m = scene.info();
  std::vector<float> ctrl(static_cast<std::size_t>(m.nu), 0.0f);
  std::vector<std::string> lost;
  bool any = false;
  for (std::size_t i = 0; i < m.actuators.size(); ++i) {
    const sim::ActuatorInfo& a = m.actuators[i];
    if (!a.servo) continue;
    any = true;
    const std::string name = a.name.empty() ? format("actuator {}", i) : format("`{}`", a.name);
    constexpr double kRounding = 1e-6;
    double control = a.hold;
    if (a.limited) control = std::clamp(control, a.range[0], a.range[1]);
    if (!a.holds_at_once) {
      lost.push_back(name + " (its activation begins at zero)");
    } else if (std::abs(control - a.hold) > kRounding) {
      lost.push_back(format("{} (the start asks for {:.4g}, its controls end at {:.4g} and {:.4g})", name, a.hold,
                            a.range[0], a.range[1]));
    }
    ctrl[static_cast<std::size_t>(a.ctrl)] = static_cast<float>(control);
  }
  if (m.nu > 0) scene.set_ctrl(ctrl);
  if (!lost.empty()) log::warning("--control hold: what does not hold the start: {}", some_of(lost));
  if (!any) log::warning("--control hold: the model has no position servo, so nothing holds it");
}

std::int32_t value_of(const ArrayView& view, std::int64_t env) {
  return static_cast<const std::int32_t*>(view.data)[env * view.strides[0]];
}

/// Adds a step of the environments that were live before it. live: one each; those that stopped in it leave.
void count_step(sim::Scene& scene, std::vector<bool>& live, Figures& figures) {
  const ArrayView contacts = scene.host_view(sim::Field::kContactCount);
  const ArrayView iterations = scene.host_view(sim::Field::kSolverIterations);
  const ArrayView status = scene.host_view(sim::Field::kStatus);
  for (std::size_t e = 0; e < live.size(); ++e) {
    if (!live[e]) continue;
    const auto env = static_cast<std::int64_t>(e);
    figures.steps += 1;
    figures.contacts += value_of(contacts, env);
    figures.iterations += value_of(iterations, env);
    live[e] = value_of(status, env) == sim::kStatusOk;
    if (live[e] || figures.stop_step >= 0) continue;
    figures.stop_step = figures.done + 1;
    figures.stop_env = scene.global_environment_id(static_cast<int>(env));
    figures.stop_status = value_of(status, env);
  }
}

/// All cores of a process, as far as each gets enough environments: threads that meet after every short step cost more
/// than they bring (64 ants: 540,000 steps/s on one thread, 430,000 on two; 2,048: 590,000 and 1,100,000).
int threads_for(int n_envs, int processes) {
  constexpr int kEnvironmentsOfThread = 256;
  return std::clamp(available_cores() / processes, 1, std::max(1, n_envs / kEnvironmentsOfThread));
}

/// A GPU is there, and kernels for it.
bool gpu_usable() {
  return sim::cuda_unusable().empty() && !list_devices({.egl = false}).visible.empty();
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

int simulate(const SimulateSettings& s) {
  sim::SceneOptions options;
  options.device = device_of(s);
  options.engine = sim::parse_engine(s.engine);
  options.lanes = sim::parse_lane_width(s.lanes);
  options.threads = s.threads;
  options.seed = s.seed;
  options.first_environment = s.first_env;
  if (s.timestep > 0) options.timestep = s.timestep;
  options.contact_capacity = s.contact_capacity;
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  sim::Scene scene(options);
  if (s.model.ends_with(".cohort")) {
    scene.build_from_file(s.model, s.n_envs, s.pictures.spacing());
  } else {
    scene.add_entity(morph_of(s.model, s.fixed_base));
    scene.build(s.n_envs, s.pictures.spacing());
  }
  if (!s.keyframe.empty()) scene.reset_to_keyframe(s.keyframe);
  for (const std::string& warning : scene.warnings()) log::warning("{}", warning);
  const std::string outside = s.keyframe.empty() ? scene.info().starts_outside_limits() : "";
  if (!outside.empty()) log::warning("{}", outside);
  Interrupt interrupt;
  std::unique_ptr<sim::StateRecorder> recorder;
  if (!s.record.empty()) recorder = std::make_unique<sim::StateRecorder>(scene, s.record, s.steps + 1);
  if (recorder) recorder->add();
  std::unique_ptr<SimulatePictures> pictures;
  if (s.pictures.wanted()) pictures = std::make_unique<SimulatePictures>(scene, s.pictures, s.threads);
  if (pictures) pictures->add();
  if (s.control == "random" && scene.info().nu == 0)
    log::info("the model has no actuators: nothing is controlled, what moves is moved by gravity and contacts");
  if (s.control == "hold") hold_start(scene);
  const sim::MemoryPlan memory = scene.engine().memory();
  log::info("{}: {} environments, engine {} on {}, {} thread{}, {} per environment, {}, ready after {:.2f} s", s.model,
            s.n_envs, s.engine, device_text(options.device), s.threads, s.threads == 1 ? "" : "s",
            format_bytes(memory.bytes_per_environment()),
            memory.thread_bytes > 0 ? format("{} per thread", format_bytes(memory.thread_bytes))
                                    : format("{} besides", format_bytes(memory.fixed_bytes)),
            since(begin));
  Figures figures;
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
  figures.stopped = stopped;
  if (figures.done > 0) {
    log::info(
        "{:.0f} steps/s in physics ({} environments x {} steps in {:.3f} s), {:.2f} contacts and {:.2f} solver "
        "iterations per step, {} environments stopped{}",
        figures.steps / figures.seconds, s.n_envs, figures.done, figures.seconds, figures.contacts / figures.steps,
        figures.iterations / figures.steps, stopped,
        stopped > 0 ? format("; the {:.0f} steps before that are counted", figures.steps) : "");
  }
  if (!s.summary.empty()) {
    write_file_atomically(s.summary, format("{} {} {} {} {} {} {} {} {}", figures.done, figures.steps, figures.seconds,
                                            figures.contacts, figures.iterations, figures.stopped, figures.stop_step,
                                            figures.stop_env, figures.stop_status));
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

/// What the engine would not look at is an error, not ignored.
void check_together(const SimulateSettings& s) {
  if (s.engine == "mujoco" && s.lanes != "auto") {
    throw UsageError(format("--lanes {}: the engine mujoco has no lanes; take it away, or --engine batched", s.lanes));
  }
  if (s.engine == "mujoco" && s.contact_capacity > 0) {
    throw UsageError(
        format("--contact-capacity {}: the engine mujoco has its own memory for contacts; take it away, or --engine "
               "batched",
               s.contact_capacity));
  }
  if (s.fixed_base && (s.model.ends_with(".cohort") || !sim::is_urdf(s.model))) {
    throw UsageError(format("--fixed-base: {} is no URDF file; an MJCF file says itself what is fixed", s.model));
  }
  if (s.model.empty()) {
    throw UsageError("MODEL is empty: name an MJCF or URDF file, or a compiled .cohort model");
  }
  if (s.first_env > std::numeric_limits<std::int64_t>::max() - s.n_envs) {
    throw UsageError(
        format("--first-env {}: the ids of {} environments from there are no 64-bit numbers", s.first_env, s.n_envs));
  }
  check(s.pictures);
  if (!s.record.empty() && !s.record.ends_with(".npz") && !s.record.ends_with(".csv")) {
    throw UsageError(format("--record {}: a recording ends in .npz or .csv", s.record));
  }
}

/// "0,1,3" into its numbers; throws UsageError for what is none or repeated.
std::vector<int> split_devices(const std::string& text) {
  std::vector<int> devices;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    int device = -1;
    const auto [stop, problem] = std::from_chars(text.data() + at, text.data() + end, device);
    if (problem != std::errc() || stop != text.data() + end || device < 0 ||
        std::find(devices.begin(), devices.end(), device) != devices.end()) {
      throw UsageError(format("--devices {}: numbers with commas between them, each once, e.g. 0,1", text));
    }
    devices.push_back(device);
    at = end + 1;
  }
  return devices;
}

/// "run.npz" of process 2: "run.2.npz".
std::string file_of(const std::string& file, std::size_t process) {
  const std::filesystem::path path(file);
  return (path.parent_path() / format("{}.{}{}", path.stem().string(), process, path.extension().string())).string();
}

/// A process per device through the agent, each with a contiguous share of the environments by their global ids, so
/// that together they compute what one process computes.
int simulate_on(const std::vector<int>& devices, const SimulateSettings& s, const std::vector<std::string>& arguments) {
  const auto count = static_cast<int>(devices.size());
  if (s.n_envs < count) {
    throw UsageError(
        format("--devices {}: {} environments cannot be shared among {} processes", s.devices, s.n_envs, count));
  }
  const TemporaryFolder folder("cohort-simulate");
  // Every process is told the same and finds its share by its rank. --summary makes it such a process, whatever
  // --devices says; it stands first, because behind a `--` it would be a file's name.
  launch::LaunchSettings job;
  job.ranks = count;
  job.command = {own_path(), "simulate", "--summary=" + folder.path().string()};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  job.fill_local_rank = false;  // the arguments mean here what they mean to one process
  job.environment = {
      {sim::kHostMemoryVariable, format("{:.0f}", sim::available_host_memory() / static_cast<double>(count))}};
  // On GPUs the ranks see the listed devices and take one each; otherwise only the number of devices counts.
  const bool on_gpus = s.backend != "cpu" && s.engine == "batched" && gpu_usable();
  job.without_gpu = !on_gpus;
  if (on_gpus) {
    std::string ids;
    for (const int device : devices) ids += format("{}{}", ids.empty() ? "" : ",", device);
    job.gpu_ids = ids;
  }
  job.threads_per_rank = s.threads > 0 ? s.threads : threads_for(s.n_envs / count, count);
  job.quiet = true;
  const auto begin = std::chrono::steady_clock::now();
  const int code = launch::run_job(job);
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Figures total;
  std::int64_t least = s.steps;
  for (int rank = 0; rank < count; ++rank) {
    const std::filesystem::path file = folder.path() / format("{}", rank);
    std::error_code unknown;
    // A process that failed or was killed; the agent has said how.
    if (code != 0 && !std::filesystem::exists(file, unknown)) return code;
    std::istringstream text(read_file(file));
    Figures one;
    text >> one.done >> one.steps >> one.seconds >> one.contacts >> one.iterations >> one.stopped >> one.stop_step >>
        one.stop_env >> one.stop_status;
    COHORT_THROW_UNLESS(!text.fail(), "process {} left no figures", rank);
    total.steps += one.steps, total.contacts += one.contacts, total.iterations += one.iterations;
    total.stopped += one.stopped;
    if (one.stop_step >= 0 && (total.stop_step < 0 || one.stop_step < total.stop_step)) {
      total.stop_step = one.stop_step, total.stop_env = one.stop_env, total.stop_status = one.stop_status;
    }
    total.seconds = std::max(total.seconds, one.seconds);
    total.done = std::max(total.done, one.done);
    least = std::min(least, one.done);
  }
  log::info(
      "{} processes together: {:.0f} steps/s in physics ({} environments x {} steps, {:.3f} s in the slowest process, "
      "{:.2f} s from start to end), {:.2f} contacts and {:.2f} solver iterations per step, {:.0f} environments stopped",
      count, total.steps / std::max(1e-9, total.seconds), s.n_envs,
      least == total.done ? format("{}", least) : format("{} to {}", least, total.done), total.seconds, wall,
      total.contacts / std::max(1.0, total.steps), total.iterations / std::max(1.0, total.steps), total.stopped);
  if (code == 0) need_one_left(total, s.n_envs, s.control);
  return code;
}

/// Takes a process' share of the environments, contiguous by their global ids, and gives its files its number.
void take_share(SimulateSettings& s, const launch::RankEnvironment& place) {
  const int whole = s.n_envs, size = place.world_size;
  if (whole < size) {
    throw UsageError(format("--n-envs {}: so few environments cannot be shared among {} processes", whole, size));
  }
  const auto first_of = [&](int r) { return static_cast<std::int64_t>(whole) * r / size; };
  s.first_env += first_of(place.rank);
  s.n_envs = static_cast<int>(first_of(place.rank + 1) - first_of(place.rank));
  if (!s.summary.empty()) s.summary = (std::filesystem::path(s.summary) / format("{}", place.rank)).string();
  for (std::string* file : {&s.record, &s.pictures.video, &s.pictures.picture}) {
    if (!file->empty()) *file = file_of(*file, static_cast<std::size_t>(place.rank));
  }
}

int run_simulate(const std::vector<std::string>& arguments) {
  SimulateSettings s;
  CLI::App app("Simulates many environments of a model.", "cohort simulate");
  app.add_option("MODEL", s.model, "MJCF or URDF file, or a compiled .cohort model")->required();
  app.add_option("--n-envs", s.n_envs, "environments")->check(whole_number(1, 1 << 30))->capture_default_str();
  app.add_option("--steps", s.steps, "steps of every environment")
      ->check(whole_number(std::int64_t{0}, kMostSteps))
      ->capture_default_str();
  app.add_option("--backend", s.backend, "auto (a GPU where there is one), gpu, cuda, metal or cpu")
      ->check(CLI::IsMember({"auto", "gpu", "cuda", "metal", "cpu"}))
      ->capture_default_str();
  app.add_option("--engine", s.engine, "batched (float, SIMD lanes) or mujoco (double, every feature)")
      ->check(CLI::IsMember({"batched", "mujoco"}))
      ->capture_default_str();
  app.add_option("--control", s.control,
                 "random: uniform in each actuator's range of control, [-1, 1] where it has none; zero; hold: position "
                 "servos hold the start")
      ->check(CLI::IsMember({"random", "zero", "hold"}))
      ->capture_default_str();
  app.add_option("--keyframe", s.keyframe, "start from this keyframe of the model instead of its default state");
  app.add_option("--seed", s.seed, "with the environment's id the key of all randomness")
      ->check(whole_number(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--record", s.record,
                 "file for time, qpos, qvel, ctrl of every step, as float32 with both engines: .npz or .csv")
      ->check([](const std::string& text) { return text.empty() ? "the name of the file is empty" : ""; });
  app.add_option("--video", s.pictures.video, "an .mp4 of the run, in its own time; environments side by side")
      ->check([](const std::string& text) { return text.empty() ? "the name of the file is empty" : ""; });
  app.add_option("--picture", s.pictures.picture, "a .png of the last state")->check([](const std::string& text) {
    return text.empty() ? "the name of the file is empty" : "";
  });
  app.add_option("--camera", s.pictures.camera, "a camera of the model; without it one that sees the whole model");
  app.add_option("--size", s.pictures.size,
                 "pixels of an environment's picture, e.g. 640x480; the camera's without it");
  app.add_option("--renderer", s.pictures.renderer, "raycast, or mujoco: MuJoCo's own, which needs EGL or OSMesa")
      ->check(CLI::IsMember({"raycast", "mujoco"}))
      ->capture_default_str();
  app.add_option("--render-device", s.pictures.device,
                 "cpu, cuda or cuda:N: where raycast draws; where the physics runs without it");
  app.add_flag("--shadows", s.pictures.shadows, "pictures with shadows");
  app.add_option("--env-spacing", s.pictures.env_spacing,
                 "all environments in one picture, so many metres apart along x and y (one number for both)")
      ->expected(1, 2)
      ->delimiter(',');
  app.add_option("--threads", s.threads, "cores to use; 0: all, as far as each gets 256 environments")
      ->check(whole_number(0, 4096))
      ->capture_default_str();
  app.add_option("--lanes", s.lanes, "auto, scalar, avx2 or avx512: the results are the same bits")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx512"}))
      ->capture_default_str();
  app.add_option("--first-env", s.first_env, "global id of the first environment")
      ->check(whole_number(std::int64_t{0}, std::numeric_limits<std::int64_t>::max()))
      ->capture_default_str();
  app.add_option("--timestep", s.timestep, "s; the model's when not given")->check([](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return *end == 0 && value >= sim::kLeastTimestep && value < 1e3
               ? ""
               : format("{} is no timestep: seconds, from {} to 1000", text, sim::kLeastTimestep);
  });
  app.add_option(
         "--contact-capacity", s.contact_capacity,
         "contacts of an environment at most: one with more stops, and a thread's memory is for so many; 0: all "
         "that the model's pairs of geoms can make")
      ->check(whole_number(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  const CLI::Option* devices_option = app.add_option(
      "--devices", s.devices,
      "0,1,...: a process for each, with a share of the environments; with --backend cpu only their number "
      "counts; a recording gets the process' number before its suffix");
  app.add_option("--summary", s.summary, "")->group("");
  app.add_flag("--fixed-base", s.fixed_base, "URDF: the base link is part of the world");
  if (const auto code = parse_arguments(app, arguments)) return *code;
  check_together(s);
  // --devices starts ranks, too.
  const launch::RankEnvironment place =
      launch::read_rank_environment(launch::process_variable, launch::StoreUse::kNone);
  for (const std::string& note : place.notes) log::warning("{}", note);
  if (place.launched()) s.local_rank = place.local_rank;
  // Of --devices (which is among the arguments of its processes, too), or of a launcher.
  if (!s.summary.empty() || (place.world_size > 1 && devices_option->count() == 0)) {
    take_share(s, place);
    if (s.summary.empty()) {
      log::info("rank {} of {} (from {}): environments {} to {}", place.rank, place.world_size,
                launch::to_string(place.source), s.first_env, s.first_env + s.n_envs - 1);
    }
    const int here = place.local_world_size > 0 ? place.local_world_size : place.world_size;
    if (s.threads == 0) s.threads = threads_for(s.n_envs, here);
    return simulate(s);
  }
  if (devices_option->count() == 0) {
    if (s.threads == 0) s.threads = threads_for(s.n_envs, 1);
    return simulate(s);
  }
  if (place.world_size > 1) {
    throw UsageError("--devices starts processes of its own; under a launcher each rank takes a share: leave it out");
  }
  return simulate_on(split_devices(s.devices), s, arguments);
}

const Register kSimulate({"simulate", "simulate many environments of a model", run_simulate, ""});

}  // namespace
}  // namespace cohort::cli
