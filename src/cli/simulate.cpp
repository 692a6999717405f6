// `cohort simulate`: many environments of one model, with progress, figures and a recording.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <sstream>

#include <unistd.h>

#include "cli/model_morph.h"
#include "cli/subcommand.h"
#include "cli/unknown_arguments.h"
#include "core/devices.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "core/progress.h"
#include "launch/agent.h"
#include "sim/cuda/engine.h"
#include "sim/model_file.h"
#include "sim/record.h"
#include "sim/scene.h"

namespace cohort::cli {
namespace {

struct SimulateSettings {
  std::string model;
  int n_envs = 1;
  std::int64_t steps = 1000;
  std::string backend = "cpu", engine = "batched", control = "random", lanes = "auto", record;
  std::uint64_t seed = 0;
  int threads = 1;
  std::int64_t first_env = 0;
  double timestep = 0;
  int row_space = -1;
  bool fixed_base = false;
  std::string devices;  ///< a process for each
  std::string summary;  ///< of such a process: where it leaves its figures
};

/// What one process did; the figures of several add up, times and means aside.
struct Figures {
  double steps = 0, seconds = 0, contacts = 0, iterations = 0;  ///< steps of environments; sums over them
  double stopped = 0;                                           ///< environments with trouble
};

/// Environments with trouble, in words: "3 environments: bad state (first: 17)".
int report_trouble(sim::Scene& scene) {
  const std::pair<int, const char*> kinds[] = {{sim::kStatusContactOverflow, "more contacts than fit"},
                                               {sim::kStatusConstraintOverflow, "more constraints than fit"},
                                               {sim::kStatusBadState, "a NaN or a value above 1e10"},
                                               {sim::kStatusEngineError, "an error in MuJoCo"}};
  const ArrayView status = scene.host_view(sim::Field::kStatus);
  int stopped = 0;
  for (int e = 0; e < scene.n_envs(); ++e) {
    stopped += static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] != 0;
  }
  for (const auto& [bit, text] : kinds) {
    std::int64_t count = 0, first = -1;
    for (int e = 0; e < scene.n_envs(); ++e) {
      if (!(static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] & bit)) continue;
      if (count++ == 0) first = scene.global_environment_id(e);
    }
    if (count > 0) log::warning("{} environments stopped: {} (first: environment {})", count, text, first);
  }
  return stopped;
}

void hold_present_position(sim::Scene& scene) {
  const sim::ModelInfo& m = scene.info();
  bool any = false;
  const std::vector<float> q = scene.get_dofs_position({}, {0});
  for (const sim::ActuatorInfo& a : m.actuators) {
    if (a.kind == sim::ActuatorInfo::Kind::kPosition && a.gear == 1) {
      scene.control_dofs_position(std::vector<float>{q[static_cast<std::size_t>(a.dof)]}, {a.dof});
      any = true;
    }
  }
  if (!any) log::warning("--control hold: the model has no position actuator, so nothing holds it");
}

double mean(const ArrayView& view) {
  double sum = 0;
  for (std::int64_t e = 0; e < view.shape[0]; ++e)
    sum += static_cast<const std::int32_t*>(view.data)[e * view.strides[0]];
  return sum / static_cast<double>(view.shape[0]);
}

/// Where the physics runs. `gpu` takes the CPU where there is no CUDA device or no kernel for it, and says so.
DeviceId device_of(const SimulateSettings& s) {
  if (s.backend == "cpu") return {};
  if (s.engine == "mujoco") {
    if (s.backend != "gpu") {
      throw Error(format("--backend {}: the engine mujoco computes on the CPU only; use --backend cpu", s.backend));
    }
    log::warning("--backend gpu: the engine mujoco computes on the CPU only, so the CPU it is");
    return {};
  }
  try {
    return initialise({.backend = parse_backend(s.backend), .cuda_unusable = sim::cuda_unusable()}).device;
  } catch (const Error& e) {
    throw Error(format("--backend {}: {}. With --backend cpu the CPU computes the physics", s.backend, e.what()));
  }
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
  options.row_space = s.row_space;
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  sim::Scene scene(options);
  if (s.model.ends_with(".cohort")) {
    scene.build_from_file(s.model, s.n_envs);
  } else {
    scene.add_entity(morph_of(s.model, s.fixed_base));
    scene.build(s.n_envs);
  }
  for (const std::string& warning : scene.warnings()) log::warning("{}", warning);
  std::unique_ptr<sim::StateRecorder> recorder;
  if (!s.record.empty()) recorder = std::make_unique<sim::StateRecorder>(scene, s.record, s.steps + 1);
  if (recorder) recorder->add();
  if (s.control == "hold") hold_present_position(scene);
  const sim::MemoryPlan memory = scene.engine().memory();
  log::info("{}: {} environments, engine {}, {} thread{}, {} per environment, ready after {:.2f} s", s.model, s.n_envs,
            s.engine, s.threads, s.threads == 1 ? "" : "s", format_bytes(memory.bytes_per_environment()), since(begin));
  Progress progress(s.steps, {.label = "simulate", .unit = "step", .samples_per_unit = static_cast<double>(s.n_envs)});
  double contacts = 0, iterations = 0, computing = 0;
  for (std::int64_t step = 0; step < s.steps; ++step) {
    if (s.control == "random") scene.set_random_ctrl(step);
    const auto from = std::chrono::steady_clock::now();
    scene.step();
    scene.engine().wait();
    computing += since(from);
    contacts += mean(scene.host_view(sim::Field::kContactCount));
    iterations += mean(scene.host_view(sim::Field::kSolverIterations));
    if (recorder) recorder->add();
    progress.update(step + 1);
  }
  progress.finish();
  if (recorder) {
    recorder->save();
    log::info("recorded to {}", s.record);
  }
  const int stopped = report_trouble(scene);
  const double steps = static_cast<double>(s.steps);
  if (s.steps > 0) {
    log::info(
        "{:.0f} steps/s in physics ({} environments x {} steps in {:.3f} s), {:.2f} contacts and {:.2f} solver "
        "iterations per step, {} environments stopped",
        s.n_envs * steps / computing, s.n_envs, s.steps, computing, contacts / steps, iterations / steps, stopped);
  }
  if (!s.summary.empty()) {
    write_file_atomically(s.summary, format("{} {} {} {} {}", s.n_envs * steps, computing, contacts * s.n_envs,
                                            iterations * s.n_envs, stopped));
  }
  return 0;
}

/// What the engine would not look at is an error, not ignored.
void check_together(const SimulateSettings& s) {
  if (s.engine == "mujoco" && s.lanes != "auto") {
    throw UsageError(format("--lanes {}: the engine mujoco has no lanes; take it away, or --engine batched", s.lanes));
  }
  if (s.engine == "mujoco" && s.row_space >= 0) {
    throw UsageError(format("--row-space {}: the engine mujoco has its own solvers; take it away, or --engine batched",
                            s.row_space));
  }
  if (s.fixed_base && (s.model.ends_with(".cohort") || !sim::is_urdf(s.model))) {
    throw UsageError(format("--fixed-base: {} is no URDF file; an MJCF file says itself what is fixed", s.model));
  }
  if (!s.record.empty() && !s.record.ends_with(".npz") && !s.record.ends_with(".csv")) {
    throw UsageError(format("--record {}: a recording ends in .npz or .csv", s.record));
  }
}

/// "0,1,3" into its items; throws UsageError for an empty or repeated one.
std::vector<std::string> split_devices(const std::string& text) {
  std::vector<std::string> items;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    const std::string item = text.substr(at, end - at);
    if (item.empty() || item.find_first_not_of("0123456789") != std::string::npos ||
        std::find(items.begin(), items.end(), item) != items.end()) {
      throw UsageError(format("--devices {}: numbers with commas between them, each once, e.g. 0,1", text));
    }
    items.push_back(item);
    at = end + 1;
  }
  return items;
}

/// "run.npz" of process 2: "run.2.npz".
std::string file_of(const std::string& file, std::size_t process) {
  const std::filesystem::path path(file);
  return (path.parent_path() / format("{}.{}{}", path.stem().string(), process, path.extension().string())).string();
}

/// A process per device through the agent, each with a contiguous share of the environments by their global ids, so
/// that together they compute what one process computes.
int simulate_on(const std::vector<std::string>& devices, const SimulateSettings& s,
                std::vector<std::string> arguments) {
  const auto count = static_cast<int>(devices.size());
  if (s.n_envs < count) {
    throw UsageError(
        format("--devices {}: {} environments cannot be shared among {} processes", s.devices, s.n_envs, count));
  }
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / format("cohort_simulate_{}", static_cast<int>(::getpid()));
  std::filesystem::create_directories(folder);
  const auto clean = [](const std::filesystem::path* p) {
    std::error_code ignored;
    std::filesystem::remove_all(*p, ignored);
  };
  const std::unique_ptr<const std::filesystem::path, decltype(clean)> guard(&folder, clean);
  // Every process is told the same and finds its share by its rank.
  launch::LaunchSettings job;
  job.ranks = count;
  job.command = {std::filesystem::read_symlink("/proc/self/exe").string(), "simulate"};
  job.command.insert(job.command.end(), arguments.begin(), arguments.end());
  job.command.push_back("--summary=" + (folder / "${local_rank}").string());
  // On GPUs the ranks see the listed devices and take one each; otherwise only the number of devices counts.
  const bool on_gpus = s.backend != "cpu" && s.engine == "batched" && sim::cuda_unusable().empty() &&
                       !list_devices({.egl = false}).visible.empty();
  job.without_gpu = !on_gpus;
  if (on_gpus) job.gpu_ids = s.devices;
  job.threads_per_rank = s.threads;
  job.quiet = true;
  const auto begin = std::chrono::steady_clock::now();
  if (const int code = launch::run_job(job)) return code;
  const double wall = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  Figures total;
  for (int rank = 0; rank < count; ++rank) {
    std::istringstream text(read_file(folder / format("{}", rank)));
    Figures one;
    text >> one.steps >> one.seconds >> one.contacts >> one.iterations >> one.stopped;
    COHORT_THROW_UNLESS(!text.fail(), "process {} left no figures", rank);
    total.steps += one.steps, total.contacts += one.contacts, total.iterations += one.iterations;
    total.stopped += one.stopped;
    total.seconds = std::max(total.seconds, one.seconds);
  }
  log::info(
      "{} processes together: {:.0f} steps/s in physics ({} environments x {} steps, {:.3f} s in the slowest process, "
      "{:.2f} s from start to end), {:.2f} contacts and {:.2f} solver iterations per step, {:.0f} environments stopped",
      count, total.steps / std::max(1e-9, total.seconds), s.n_envs, s.steps, total.seconds, wall,
      total.contacts / std::max(1.0, total.steps), total.iterations / std::max(1.0, total.steps), total.stopped);
  return 0;
}

/// Takes a process' share: by RANK and WORLD_SIZE, which the agent sets.
void take_share(SimulateSettings& s) {
  const char *rank_text = std::getenv("RANK"), *size_text = std::getenv("WORLD_SIZE");
  COHORT_THROW_UNLESS(rank_text && size_text, "--summary belongs to the processes that --devices starts");
  const int rank = std::atoi(rank_text), size = std::atoi(size_text), whole = s.n_envs;
  COHORT_THROW_UNLESS(size >= 1 && rank >= 0 && rank < size && whole >= size, "rank {} of {} with {} environments",
                      rank, size, whole);
  const auto first_of = [&](int r) { return static_cast<std::int64_t>(whole) * r / size; };
  s.first_env += first_of(rank);
  s.n_envs = static_cast<int>(first_of(rank + 1) - first_of(rank));
  if (!s.record.empty()) s.record = file_of(s.record, static_cast<std::size_t>(rank));
}

int run_simulate(const std::vector<std::string>& arguments) {
  SimulateSettings s;
  CLI::App app("Simulates many environments of a model.", "cohort simulate");
  app.add_option("MODEL", s.model, "MJCF or URDF file, or a compiled .cohort model")->required();
  app.add_option("--n-envs", s.n_envs, "environments")->check(CLI::Range(1, 1 << 30))->capture_default_str();
  app.add_option("--steps", s.steps, "steps of every environment")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--backend", s.backend, "gpu, cuda, metal or cpu")
      ->check(CLI::IsMember({"gpu", "cuda", "metal", "cpu"}))
      ->capture_default_str();
  app.add_option("--engine", s.engine, "batched (float, SIMD lanes) or mujoco (double, every feature)")
      ->check(CLI::IsMember({"batched", "mujoco"}))
      ->capture_default_str();
  app.add_option("--control", s.control, "random: uniform in range; zero; hold: position servos hold the start")
      ->check(CLI::IsMember({"random", "zero", "hold"}))
      ->capture_default_str();
  app.add_option("--seed", s.seed, "with the environment's id the key of all randomness")->capture_default_str();
  app.add_option("--record", s.record, "file for time, qpos, qvel, ctrl of every step: .npz or .csv");
  app.add_option("--threads", s.threads, "cores to use")->check(CLI::Range(1, 4096))->capture_default_str();
  app.add_option("--lanes", s.lanes, "auto, scalar, avx2 or avx512: the results are the same bits")
      ->check(CLI::IsMember({"auto", "scalar", "avx2", "avx512"}))
      ->capture_default_str();
  app.add_option("--first-env", s.first_env, "global id of the first environment")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  app.add_option("--timestep", s.timestep, "s; the model's when not given")->check([](const std::string& text) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    return *end == 0 && value > 0 && value < 1e3 ? "" : format("{} is no timestep: seconds, above zero", text);
  });
  app.add_option(
         "--row-space", s.row_space,
         "environments with at most so many constraint rows are solved for the rows' forces: the same solution, "
         "other rounding and speed (Newton's solver, pyramidal cones); -1: chosen from the model")
      ->check(CLI::Range(-1, 64))
      ->capture_default_str();
  const CLI::Option* devices_option = app.add_option(
      "--devices", s.devices,
      "0,1,...: a process for each, with a share of the environments; with --backend cpu only their number "
      "counts; a recording gets the process' number before its suffix");
  app.add_option("--summary", s.summary, "")->group("");
  app.add_flag("--fixed-base", s.fixed_base, "URDF: the base link is part of the world");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::puts(app.help().c_str());
    return 0;
  } catch (const CLI::ExtrasError&) {
    throw UsageError(format("{}; see `cohort simulate --help`", unknown_arguments(app)));
  } catch (const CLI::ParseError& e) {
    throw UsageError(format("{}; see `cohort simulate --help`", e.what()));
  }
  check_together(s);
  if (!s.summary.empty()) {
    take_share(s);
    return simulate(s);
  }
  if (devices_option->count() == 0) return simulate(s);
  const std::vector<std::string> devices = split_devices(s.devices);
  // What the processes are told: everything but --devices.
  std::vector<std::string> rest;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (arguments[i] == "--devices") {
      ++i;
    } else if (!arguments[i].starts_with("--devices=")) {
      rest.push_back(arguments[i]);
    }
  }
  return simulate_on(devices, s, rest);
}

const Register kSimulate({"simulate", "simulate many environments of a model", run_simulate, ""});

}  // namespace
}  // namespace cohort::cli
