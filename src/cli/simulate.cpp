// `cohort simulate`: many environments of one model, with progress, figures and a recording. Here: its command line.
#include <CLI/CLI.hpp>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "cli/model_morph.h"
#include "cli/parse_arguments.h"
#include "cli/picture_arguments.h"
#include "cli/simulate_pictures.h"
#include "cli/simulate_processes.h"
#include "cli/simulate_run.h"
#include "cli/subcommand.h"
#include "core/error.h"
#include "core/log.h"
#include "rank/environment.h"
#include "sim/host/model_file.h"
#include "sim/host/scene.h"
#include "sim/kernels/lane/model_view.h"

namespace cohort::cli {
namespace {

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
  if (s.engine == "mujoco" && s.row_space >= 0) {
    throw UsageError(format("--row-space {}: the engine mujoco has its own solvers; take it away, or --engine batched",
                            s.row_space));
  }
  check_file_options(s.model, s.file_options);
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

/// Numbers as Python writes several, "(1.0, 1.0)", as words of their own.
std::vector<std::string> without_tuples(const std::vector<std::string>& words) {
  std::vector<std::string> out;
  for (const std::string& word : words) {
    const std::size_t value = word.starts_with("--") && word.find('=') != std::string::npos ? word.find('=') + 1 : 0;
    const std::string text = word.substr(value);
    const bool tuple =
        text.size() > 2 && ((text.front() == '(' && text.back() == ')') || (text.front() == '[' && text.back() == ']'));
    if (!tuple || text.find_first_not_of("0123456789.,+-eE x", 1) != text.size() - 1) {
      out.push_back(word);
      continue;
    }
    if (value > 0) out.push_back(word.substr(0, value - 1));
    std::istringstream numbers(text.substr(1, text.size() - 2));
    for (std::string number; std::getline(numbers, number, ',');) {
      number.erase(0, number.find_first_not_of(' '));
      number.erase(number.find_last_not_of(' ') + 1);
      if (!number.empty()) out.push_back(number);
    }
  }
  return out;
}

void add_picture_options(CLI::App& app, PictureSettings& p) {
  app.add_option("--video", p.video, "an .mp4 of the run, in its own time; environments side by side")
      ->check(not_empty);
  app.add_option("--picture", p.picture, "a .png of the last state")->check(not_empty);
  app.add_option("--html", p.html, "an .html page that plays the run in a browser, without a network: turn, zoom, pick")
      ->check(not_empty);
  app.add_option("--camera", p.camera, "a camera of the model; without it one that sees the whole model");
  app.add_option("--size", p.size, "pixels of an environment's picture, e.g. 640x480; the camera's without it");
  app.add_option("--renderer", p.renderer, "raycast, or mujoco: MuJoCo's own, which needs EGL or OSMesa")
      ->check(CLI::IsMember({"raycast", "mujoco"}))
      ->capture_default_str();
  app.add_option("--render-device", p.device,
                 "cpu, cuda or cuda:N: where raycast draws; where the physics runs without it");
  app.add_flag_function(
      "--shadows,!--no-shadows", [&p](std::int64_t count) { p.shadows = count > 0; },
      "pictures with shadows or without; else with them for a URDF file, whose light is ours");
  app.add_option("--geom-groups", p.geom_groups, kGeomGroupsHelp);
  app.add_option("--env-spacing", p.env_spacing,
                 "all environments in one picture, so many metres apart along x and y (one number for both)")
      ->expected(1, 2)
      ->delimiter(',');
}

void add_options(CLI::App& app, SimulateSettings& s) {
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
  app.add_option("--keyframe", s.keyframe,
                 "start from this keyframe of the model, by its name or index, instead of its default state");
  app.add_option("--seed", s.seed, "with the environment's id the key of all randomness")
      ->check(whole_number(std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max()))
      ->capture_default_str();
  app.add_option("--record", s.record,
                 "file for time, qpos, qvel, ctrl of every step, as float32 with both engines: .npz or .csv")
      ->check(not_empty);
  add_picture_options(app, s.pictures);
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
  app.add_option("--row-space", s.row_space,
                 "environments with at most so many constraint rows, 0 to 64, are solved for the rows' forces; without "
                 "it the model and the device decide. Equal numbers give equal bits on a CPU and on a CUDA device")
      ->check(whole_number(0, sim::kMostRowSpaceRows));
  app.add_option("--devices", s.devices,
                 "0,1,...: a process for each, with a share of the environments; with --backend cpu only their number "
                 "counts; a recording gets the process' number before its suffix");
  app.add_option("--summary", s.summary, "")->group("");
  add_file_options(app, s.file_options);
}

int run_simulate(const std::vector<std::string>& arguments) {
  SimulateSettings s;
  CLI::App app("Simulates many environments of a model.", "cohort simulate");
  add_options(app, s);
  if (const auto code = parse_arguments(app, without_tuples(arguments))) return *code;
  const bool has_devices = app.count("--devices") > 0;
  check_together(s);
  // --devices starts ranks, too.
  const rank::Environment place = rank::read_environment(rank::process_variable, rank::StoreUse::kNone);
  for (const std::string& note : place.notes) log::warning("{}", note);
  if (place.launched()) s.local_rank = place.local_rank;
  // Of --devices (which is among the arguments of its processes, too), or of a launcher.
  if (!s.summary.empty() || (place.world_size > 1 && !has_devices)) {
    take_share(s, place);
    if (s.summary.empty()) {
      log::info("rank {} of {} (from {}): environments {} to {}", place.rank, place.world_size,
                rank::to_string(place.source), s.first_env, s.first_env + s.n_envs - 1);
    }
    const int here = place.local_world_size > 0 ? place.local_world_size : place.world_size;
    if (s.threads == 0) s.threads = threads_for(s.n_envs, here);
    return simulate(s);
  }
  if (!has_devices) {
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
