// The first picture of a compiled model, from the start of the process to its end: `cohort simulate`, and robosuite's
// Lift beside it, in turns.
//
//   first_picture_bench --cohort build/release/bin/cohort --robosuite-python /tmp/robosuite/bin/python MODEL...
//
// MODEL: files that cohort compiles, each into a folder that is removed again. With robosuite (bench/tasks/
// robosuite_venv) its Lift is among them. Seconds are of all processors together: what the clock shows on a machine
// that does nothing else is less where more than one works.
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "comparison.h"
#include "core/error.h"
#include "core/format.h"
#include "program.h"

namespace cohort::bench {
namespace {

namespace fs = std::filesystem;

/// Runs a program whose outputs go nowhere. Returns the seconds that the processors worked for it.
double run_program_once(const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& argument : command) arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  const pid_t child = fork();
  COHORT_THROW_UNLESS(child >= 0, "no process for {}", command.front());
  if (child == 0) {
    const int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, 1), dup2(nowhere, 2);
    execvp(arguments[0], arguments.data());
    _exit(127);
  }
  int status = 0;
  rusage used{};
  wait4(child, &status, 0, &used);
  COHORT_THROW_UNLESS(WIFEXITED(status) && WEXITSTATUS(status) == 0, "{} ended with {}", join(command, " "), status);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// A folder that is gone afterwards.
struct Folder {
  fs::path path = fs::temp_directory_path() / format("cohort_first_picture_{}", static_cast<int>(getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

int run(int argc, char** argv) {
  std::string cohort = "cohort", robosuite;
  std::vector<std::string> models;
  int rounds = 7;
  Options line("Processor seconds from the start of a process to its first picture and its end.");
  line.add("--cohort", cohort, "the program");
  line.add("--robosuite-python", robosuite, "Python with robosuite (bench/tasks/robosuite_venv)");
  line.add("--rounds", rounds).at_least(1);
  line.add("--models,models", models, "files that cohort compiles");
  if (!line.parse(argc, argv)) return line.exit_code();
  const Folder folder;
  std::vector<Side> sides;
  const auto add = [&](const std::string& name, const std::string& file) {
    const std::string compiled = (folder.path / format("{}.cohort", sides.size())).string();
    const std::string picture = (folder.path / "picture.png").string();
    run_program_once({cohort, "model", file, "--compile", compiled});
    sides.push_back({format("cohort: {} ({:.1f} MB)", name, 1e-6 * static_cast<double>(fs::file_size(compiled))), [=] {
                       return run_program_once(
                           {cohort, "simulate", compiled, "--steps", "0", "--size", "128x128", "--picture", picture});
                     }});
  };
  for (const std::string& model : models) add(fs::path(model).filename().string(), model);
  if (!robosuite.empty()) {
    const std::string script = COHORT_SOURCE_DIR "/bench/render/first_picture.py";
    const std::string lift = (folder.path / "lift.xml").string();
    run_program_once({robosuite, script, lift});
    add("robosuite's Lift", lift);
    sides.push_back({"robosuite: Lift", [=] { return run_program_once({robosuite, script}); }});
  }
  COHORT_THROW_UNLESS(!sides.empty(), "name a model, or --robosuite-python");
  std::printf("# %s\n", machine_line(format("medians of {} turns", rounds)).c_str());
  std::puts("first picture of,processor_seconds,least");
  const auto times = take_turns(sides, rounds);
  for (std::size_t i = 0; i < sides.size(); ++i) {
    std::printf("%s,%.3f,%.3f\n", sides[i].name.c_str(), median(times[i]),
                *std::min_element(times[i].begin(), times[i].end()));
  }
  return 0;
}

}  // namespace
}  // namespace cohort::bench

int main(int argc, char** argv) {
  return cohort::bench::run_program("first_picture_bench", [&] { return cohort::bench::run(argc, argv); });
}
