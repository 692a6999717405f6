// `cohort launch`: N ranks of one job on this node.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "cli/child_command.h"
#include "cli/launch_flags.h"
#include "cli/subcommand.h"
#include "core/command_line.h"
#include "core/config.h"
#include "core/devices.h"
#include "core/devices_cpu.h"
#include "core/devices_probe.h"
#include "launch/agent.h"
#include "launch/spawn.h"

namespace cohort::cli {
namespace {

/// The number of ranks; what was chosen for a word is noted.
int count_ranks(LaunchRequest& request) {
  const std::string& text = request.ranks;
  const bool words = text == "auto" || text == "gpu" || text == "auto-multi-gpu";
  if (text == "cpu") {
    const int cores = available_cores();
    request.notes.push_back(format("--nproc_per_node=cpu: {} rank(s), one for each core this process may use", cores));
    return cores;
  }
  if (text == "auto" && request.settings.without_gpu) {
    const int cores = available_cores();
    request.notes.push_back(format("--cpu: {} rank(s), one for each core this process may use", cores));
    return cores;
  }
  if (text == "gpu" && request.settings.without_gpu)
    throw UsageError("launch: --nproc_per_node=gpu and --cpu contradict each other");
  if (words) {
    const DeviceListing listing = list_devices({.initialise_cuda = false, .egl = false});
    int count = static_cast<int>(listing.visible.size());
    if (request.settings.gpu_ids)
      if (const auto mask = narrow_mask(listing, *request.settings.gpu_ids))
        count = 1 + static_cast<int>(std::count(mask->begin(), mask->end(), ','));
    if (count > 0) {
      request.notes.push_back(format("{} rank(s), one for each visible GPU", count));
      return count;
    }
    COHORT_THROW_UNLESS(text != "gpu", "--nproc_per_node=gpu: there is no GPU: {}", listing.absence);
    COHORT_THROW_UNLESS(text == "auto",
                        "--multi_gpu: there is no GPU: {}. With --num_processes=N that many ranks run on the CPU",
                        listing.absence);
    const int cores = available_cores();
    request.notes.push_back(format("no GPU ({}): {} rank(s) on the CPU", listing.absence, cores));
    return cores;
  }
  if (text.empty() || text.size() > 5 || text.find_first_not_of("0123456789") != std::string::npos ||
      std::stoi(text) < 1)
    throw UsageError(format("launch: --nproc_per_node='{}' is neither a number from 1 on nor auto, cpu or gpu", text));
  return std::stoi(text);
}

bool ends_with_py(const std::string& name) {
  return name.size() > 3 && name.compare(name.size() - 3, 3, ".py") == 0;
}

/// What every rank executes.
std::vector<std::string> command_of(LaunchRequest& request) {
  if (request.program.empty())
    throw UsageError(
        "launch: what shall the ranks run? e.g. `cohort launch --nproc_per_node=2 train informer data.path=file.csv`");
  const std::string& first = request.program.front();
  std::vector<std::string> command;
  const auto python = [&] {
    const char* interpreter = std::getenv("PYTHON_EXEC");
    command = {interpreter && *interpreter ? interpreter : "python3", "-u"};
    if (request.module) command.push_back("-m");
    COHORT_THROW_UNLESS(request.module || ::access(first.c_str(), R_OK) == 0, "there is no readable script '{}'",
                        first);
    if (launch::find_program_or_empty(command.front()).empty())
      throw Error(format("there is no '{}' to run {}: install Python, or name an interpreter by PYTHON_EXEC",
                         command.front(), first));
  };
  std::vector<std::string> names;
  bool subcommand = false;
  for (const Subcommand& known : subcommands()) {
    names.push_back(known.name);
    subcommand = subcommand || known.name == first;
  }
  if (request.module || (!request.no_python && ends_with_py(first))) {
    if (first.starts_with("robomimic.") || first.ends_with("robomimic/scripts/train.py"))
      request.notes.push_back(
          "robomimic's own Python is started; its configurations are trained without it by `cohort launch FLAGS train "
          "load_from=FILE.json`");
    python();
  } else if (!request.no_python && !request.behind_dashes && subcommand) {
    if (first == "launch") throw UsageError("launch: a rank cannot be another launch");
    command = {own_path()};
  } else {
    const std::string program = launch::find_program_or_empty(first);
    if (program.empty()) {
      const std::string near = request.behind_dashes || request.no_python ? "" : config::nearest(first, names);
      throw UsageError(format("launch: '{}' is no {}program or script{}", first,
                              request.behind_dashes || request.no_python ? "" : "subcommand, ",
                              near.empty() ? "" : format("; did you mean '{}'?", near)));
    }
    // A file that cannot be executed is a script to torchrun, whatever its name.
    if (!request.no_python && !request.behind_dashes && ::access(program.c_str(), X_OK) != 0) python();
  }
  command.push_back(first);
  if (!request.pass_local_rank.empty()) command.push_back("--" + request.pass_local_rank + "=${local_rank}");
  command.insert(command.end(), request.program.begin() + 1, request.program.end());
  return command;
}

/// The launcher's part of the command that continues a run; "--no-python" and the like are about the program.
std::string command_line_of(const LaunchRequest& request) {
  std::string line = typed_name(own_path()) + " launch";
  for (const std::string& flag : request.flags)
    if (flag != "--no-python" && flag != "--no_python" && flag != "-m" && flag != "--module")
      line += " " + shell_quoted(flag);
  return line;
}

/// Commands whose words are understood before anything is done (only_checks_words).
constexpr std::array<std::string_view, 4> kCheckable{"train", "evaluate", "collect", "view"};

/// A typo in the words of a command of Cohort is told once, before there are ranks. Returns the command's exit code.
int check_program(const LaunchRequest& request) {
  const std::vector<std::string>& words = request.program;
  if (request.settings.command.front() != own_path() ||
      std::find(kCheckable.begin(), kCheckable.end(), words.front()) == kCheckable.end())
    return 0;
  // What a rank would be told decides about its words, too.
  const ChildOutput output = check_words(words, request.settings.environment);
  if (output.code != 0) std::fputs(output.err.c_str(), stderr);
  return output.code;
}

int run_launch(const std::vector<std::string>& arguments) {
  LaunchRequest request = parse_launch(arguments);
  if (request.help) {
    std::fputs(request.help_text.c_str(), stdout);
    return 0;
  }
  request.settings.command = command_of(request);
  request.settings.command_line = command_line_of(request);
  request.settings.tells_first_step = request.settings.command.front() == own_path() && request.program[0] == "train";
  if (const int code = check_program(request); code != 0) return code;
  request.settings.ranks = count_ranks(request);
  if (!request.settings.quiet)
    for (const std::string& note : request.notes) std::fprintf(stderr, "cohort launch: %s\n", note.c_str());
  return launch::run_job(request.settings);
}

const Register kLaunch({"launch", "start the ranks of a job, on one node or on several, as torchrun and accelerate do",
                        run_launch, ""});

}  // namespace
}  // namespace cohort::cli
