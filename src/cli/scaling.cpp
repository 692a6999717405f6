// `cohort scaling`: the same training on 1, 2, ... devices for a few steps each; what more of them bring, and where the
// rest of the time goes.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <sstream>

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/child_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/devices.h"
#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "launch/agent.h"
#include "launch/signals.h"
#include "launch/spawn.h"

namespace cohort::cli {
namespace {

namespace fs = std::filesystem;

struct ScalingSettings {
  std::string counts;  ///< "1,2,4"; empty: 1, 2, 4, ... up to the devices
  int steps = 30;
  std::string json;
  std::vector<std::string> command;
};

/// Medians over the second half of a run: the first steps allocate and choose kernels.
struct Speed {
  int processes = 1;
  double samples_per_s = 0, step_s = 0, data_s = 0;
};

/// A folder that goes when the program does.
class ScratchFolder {
 public:
  ScratchFolder() {
    std::string pattern = (fs::temp_directory_path() / "cohort-scaling-XXXXXX").string();
    COHORT_THROW_UNLESS(::mkdtemp(pattern.data()), "cannot make a folder in {}: {}", fs::temp_directory_path().string(),
                        std::strerror(errno));
    path_ = pattern;
  }
  ~ScratchFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  ScratchFolder(const ScratchFolder&) = delete;
  ScratchFolder& operator=(const ScratchFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.at(values.size() / 2);
}

/// The metrics that a run of that name has left.
Speed read_speed(const fs::path& metrics, int processes) {
  std::vector<double> samples, steps, data;
  std::istringstream lines(read_file(metrics));
  for (std::string line; std::getline(lines, line);) {
    const nlohmann::json json = try_json<nlohmann::json>(line);
    if (!json.is_object() || !json.contains("speed/samples_per_s")) continue;
    samples.push_back(json.at("speed/samples_per_s").get<double>());
    steps.push_back(1 / json.at("speed/steps_per_s").get<double>());
    data.push_back(json.at("speed/data_s").get<double>());
  }
  COHORT_THROW_UNLESS(samples.size() >= 2, "{} holds {} reports of speed; two are needed: raise --steps",
                      metrics.string(), samples.size());
  const auto later = [](const std::vector<double>& values) {
    return median({values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end()});
  };
  return {processes, later(samples), later(steps), later(data)};
}

/// Ctrl-C and kin, as long as this lives: they end the training under way, and the program after it.
class Interruption {
 public:
  /// The first signal that asked to stop; 0: none has.
  int signal() {
    take();
    return signal_;
  }
  /// Waits for the end of a child and returns its status. A signal that asks to stop is passed on as SIGTERM, on which
  /// ranks and their launcher end in order; a second one, or the end of kPatience, kills the child, and what it has
  /// started goes with it.
  int wait_for(pid_t child) {
    constexpr std::chrono::seconds kPatience{20};
    std::optional<SteadyClock::time_point> end;
    bool killed = false;
    for (int status = 0;;) {
      if (::waitpid(child, &status, WNOHANG) == child) return status;
      const int before = asked_;
      take();
      if (asked_ > 0 && !end) {
        ::kill(child, SIGTERM);
        end = SteadyClock::now() + kPatience;
      } else if (end && !killed && (asked_ > before || SteadyClock::now() >= *end)) {
        ::kill(child, SIGKILL);
        killed = true;
      }
      pollfd waited{pipe_.fd(), POLLIN, 0};
      constexpr int kLook = 200;  // ms: a signal wakes at once, the end of the patience does not
      ::poll(&waited, 1, kLook);
    }
  }

 private:
  using SteadyClock = std::chrono::steady_clock;
  void take() {
    for (const int arrived : pipe_.take()) {
      if (!launch::asks_to_stop(arrived)) continue;
      if (asked_++ > 0) continue;
      signal_ = arrived;
      write_stop_answer("stops this training and says what was measured; Ctrl-C again: at once");
    }
  }

  launch::SignalPipe pipe_{{SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}};
  int signal_ = 0;
  int asked_ = 0;  ///< signals that asked to stop
};

/// Runs the training; what it prints goes to a file, whose end is shown when it fails. Nothing where a signal ended it.
std::optional<Speed> measure(const ScalingSettings& settings, int processes, int threads, const fs::path& scratch,
                             Interruption& interruption) {
  const std::string name = format("on_{}", processes);
  std::vector<std::string> arguments{own_path()};
  if (processes > 1)
    for (const std::string& word : {std::string("launch"), format("--nproc_per_node={}", processes)})
      arguments.push_back(word);
  arguments.insert(arguments.end(), settings.command.begin(), settings.command.end());
  for (const std::string& word :
       {format("train.steps={}", settings.steps), std::string("train.log_every=2"), format("name={}", name),
        format("output_dir={}", scratch.string()), std::string("charts=false"), std::string("tensorboard=false"),
        std::string("train.checkpoint.save_best=false"), std::string("train.validate_every=1000000000")})
    arguments.push_back(word);
  if (processes == 1) arguments.push_back("parallel.mode=single");
  if (threads > 0) arguments.push_back(format("threads={}", threads));

  launch::SpawnRequest request{.program = own_path(), .arguments = arguments};
  for (char** variable = environ; *variable; ++variable) request.environment.emplace_back(*variable);
  const fs::path output = scratch / (name + ".log");
  const int descriptor = ::open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  COHORT_THROW_UNLESS(descriptor >= 0, "cannot write {}: {}", output.string(), std::strerror(errno));
  request.standard_output = request.standard_error = descriptor;
  const pid_t child = launch::spawn(request);
  ::close(descriptor);
  const int status = interruption.wait_for(child);
  if (interruption.signal() != 0) return std::nullopt;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    const std::string text = read_file(output);
    throw Error(format("the training on {} device(s) failed; the end of what it said:\n{}", processes,
                       text.substr(text.size() > 1500 ? text.size() - 1500 : 0)));
  }
  return read_speed(scratch / name / "latest" / "metrics.jsonl", processes);
}

std::vector<int> doubling_up_to(int most) {
  std::vector<int> counts;
  for (int n = 1; n < most; n *= 2) counts.push_back(n);
  counts.push_back(most);
  return counts;
}

/// "4,2" as 1, 2, 4: everything is compared with one device.
std::vector<int> read_counts(const std::string& text) {
  std::set<int> counts{1};
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');) {
    int count = 0;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (problem != std::errc() || end != word.data() + word.size() || count < 1)
      throw UsageError(
          format("scaling: --nproc={}: '{}' is no number of devices; write e.g. --nproc=1,2,4", text, word));
    counts.insert(count);
  }
  return {counts.begin(), counts.end()};
}

int run_scaling(const std::vector<std::string>& words) {
  CLI::App app("Trains on 1, 2, ... devices for a few steps each and says what more of them bring.", "cohort scaling");
  app.footer(
      "Everything from `train` on is the training's own command. The batch is per process, so that the work grows "
      "with\n"
      "the devices; a speed-up of 2 on two devices is perfect. Without a GPU a device is its share of the cores.\n\n"
      "  cohort scaling train informer data.path=ETTh1.csv");
  ScalingSettings settings;
  app.add_option("--nproc,--nproc-per-node", settings.counts,
                 "numbers of devices, e.g. 1,2,4; else 1, 2, 4, ... up to all");
  app.add_option("--steps", settings.steps, "of each training")->check(CLI::Range(8, 1000000))->capture_default_str();
  app.add_option("--json", settings.json, "file for the figures");
  app.prefix_command();
  // Options come before the word `train`.
  if (const auto code = parse_arguments(app, words)) return *code;
  settings.command = app.remaining();
  if (settings.command.empty() || settings.command.front() != "train")
    throw UsageError("scaling: which training? e.g. `cohort scaling train informer data.path=file.csv`");

  for (const std::string& word : settings.command)
    if (word == "--help" || word == "-h") return run_cohort(settings.command);  // of the training

  const DeviceListing listing = list_devices({.initialise_cuda = false, .egl = false});
  const int gpus = static_cast<int>(listing.visible.size());
  const int devices = gpus > 0 ? gpus : available_cores();
  const std::vector<int> counts = settings.counts.empty() ? doubling_up_to(devices) : read_counts(settings.counts);
  const int most = counts.back();
  COHORT_THROW_UNLESS(most <= devices, "--nproc={}: there are {} {}", most, devices,
                      gpus > 0 ? "GPUs" : "cores, and no GPU");
  const int threads = gpus > 0 ? 0 : std::max(1, available_cores() / most);
  std::printf("%s; %d steps each\n%9s %12s %9s %11s %10s %7s %15s\n",
              gpus > 0 ? format("{} GPU(s)", gpus).c_str()
                       : format("no GPU: each device is {} of {} core(s)", threads, available_cores()).c_str(),
              settings.steps, "devices", "samples/s", "speed-up", "efficiency", "ms a step", "data", "communication");
  std::fflush(stdout);
  Interruption interruption;
  const ScratchFolder scratch;
  nlohmann::json figures = nlohmann::json::array();
  Speed one;
  for (const int processes : counts) {
    const std::optional<Speed> measured = measure(settings, processes, threads, scratch.path(), interruption);
    if (!measured) {
      std::string so_far;
      for (const auto& row : figures)
        so_far += format("{}{:.1f} samples/s on {}", so_far.empty() ? "" : ", ", row.at("samples_per_s").get<double>(),
                         row.at("devices").get<int>());
      log::warning("stopped by {} in the training on {} device(s); measured so far: {}",
                   launch::signal_name(interruption.signal()), processes, so_far.empty() ? "nothing" : so_far);
      return 128 + interruption.signal();
    }
    const Speed& speed = *measured;
    if (processes == 1) one = speed;
    const double gain = speed.samples_per_s / one.samples_per_s;
    // What a step takes beyond that of one device and its own wait for data: reductions, and waiting for other ranks.
    const double others = std::max(0.0, (speed.step_s - speed.data_s) - (one.step_s - one.data_s));
    std::printf("%9d %12.1f %8.2fx %10.0f%% %10.1f %6.0f%% %14.0f%%\n", processes, speed.samples_per_s, gain,
                100 * gain / processes, speed.step_s * 1e3, 100 * speed.data_s / speed.step_s,
                100 * others / speed.step_s);
    std::fflush(stdout);
    figures.push_back({{"devices", processes},
                       {"samples_per_s", speed.samples_per_s},
                       {"speed_up", gain},
                       {"step_s", speed.step_s},
                       {"data_s", speed.data_s},
                       {"communication_s", others}});
  }
  if (!settings.json.empty()) write_file_atomically(settings.json, json_text(figures, 2) + "\n");
  return 0;
}

const Register kScaling({"scaling",
                         "the same training on 1, 2, ... devices: speed-up, share of data and of communication",
                         run_scaling, ""});

}  // namespace
}  // namespace cohort::cli
