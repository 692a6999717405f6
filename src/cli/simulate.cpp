// `cohort simulate`: many environments of one model, with progress, figures and a recording.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <map>

#include "cli/subcommand.h"
#include "core/log.h"
#include "core/progress.h"
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
  bool fixed_base = false;
};

/// Environments with trouble, in words: "3 environments: bad state (first: 17)".
void report_trouble(sim::Scene& scene) {
  const std::pair<int, const char*> kinds[] = {{sim::kStatusContactOverflow, "more contacts than fit"},
                                               {sim::kStatusConstraintOverflow, "more constraints than fit"},
                                               {sim::kStatusBadState, "a NaN or a value above 1e10"},
                                               {sim::kStatusEngineError, "an error in MuJoCo"}};
  const ArrayView status = scene.engine().view(sim::Field::kStatus);
  for (const auto& [bit, text] : kinds) {
    std::int64_t count = 0, first = -1;
    for (int e = 0; e < scene.n_envs(); ++e) {
      if (!(static_cast<const std::int32_t*>(status.data)[e * status.strides[0]] & bit)) continue;
      if (count++ == 0) first = scene.global_environment_id(e);
    }
    if (count > 0) log::warning("{} environments stopped: {} (first: environment {})", count, text, first);
  }
}

void hold_present_position(sim::Scene& scene) {
  const sim::ModelInfo& m = scene.info();
  const std::vector<float> q = scene.get_dofs_position({}, {0});
  for (const sim::ActuatorInfo& a : m.actuators) {
    if (a.kind == sim::ActuatorInfo::Kind::kPosition && a.gear == 1) {
      scene.control_dofs_position(std::vector<float>{q[static_cast<std::size_t>(a.dof)]}, {a.dof});
    }
  }
}

double mean(const ArrayView& view) {
  double sum = 0;
  for (std::int64_t e = 0; e < view.shape[0]; ++e)
    sum += static_cast<const std::int32_t*>(view.data)[e * view.strides[0]];
  return sum / static_cast<double>(view.shape[0]);
}

int simulate(const SimulateSettings& s) {
  if (s.backend != "cpu") {
    throw Error(format("--backend {}: this build computes physics on the CPU only; use --backend cpu", s.backend));
  }
  sim::SceneOptions options;
  options.engine = sim::parse_engine(s.engine);
  options.lanes = sim::parse_lane_width(s.lanes);
  options.threads = s.threads;
  options.seed = s.seed;
  options.first_environment = s.first_env;
  if (s.timestep > 0) options.timestep = s.timestep;
  const auto begin = std::chrono::steady_clock::now();
  const auto since = [](auto from) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - from).count();
  };
  sim::Scene scene(options);
  if (s.model.ends_with(".cohort")) {
    scene.build_from_file(s.model, s.n_envs);
  } else {
    if (s.model.ends_with(".urdf")) {
      scene.add_entity(sim::Urdf{.file = s.model, .fixed = s.fixed_base});
    } else {
      scene.add_entity(sim::Mjcf{s.model});
    }
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
    computing += since(from);
    contacts += mean(scene.engine().view(sim::Field::kContactCount));
    iterations += mean(scene.engine().view(sim::Field::kSolverIterations));
    if (recorder) recorder->add();
    progress.update(step + 1);
  }
  progress.finish();
  if (recorder) {
    recorder->save();
    log::info("recorded to {}", s.record);
  }
  const double steps = static_cast<double>(std::max<std::int64_t>(1, s.steps));
  log::info(
      "{:.0f} steps/s in physics ({} environments x {} steps in {:.3f} s), {:.2f} contacts and {:.2f} solver "
      "iterations per step",
      s.n_envs * steps / computing, s.n_envs, s.steps, computing, contacts / steps, iterations / steps);
  report_trouble(scene);
  return 0;
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
  app.add_option("--timestep", s.timestep, "s; the model's when not given")->check(CLI::PositiveNumber);
  app.add_flag("--fixed-base", s.fixed_base, "URDF: the base link is part of the world");
  try {
    std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
    app.parse(reversed);
  } catch (const CLI::CallForHelp&) {
    std::puts(app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& e) {
    throw UsageError(format("{}; see `cohort simulate --help`", e.what()));
  }
  return simulate(s);
}

const Register kSimulate({"simulate", "simulate many environments of a model", run_simulate, ""});

}  // namespace
}  // namespace cohort::cli
