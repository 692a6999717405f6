// `cohort export-libero`: LIBERO's tasks as folders that `cohort` runs, without Python.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/format.h"
#include "tasks/libero/compose/export.h"

namespace cohort::cli {
namespace {

int run_export_libero(const std::vector<std::string>& arguments) {
  tasks::libero::compose::ExportSettings settings;
  CLI::App app("Writes LIBERO's tasks as folders for COHORT_LIBERO, from the files of LIBERO and robosuite 1.4.0.",
               "cohort export-libero");
  app.add_option("--libero", settings.libero, "checkout of Lifelong-Robot-Learning/LIBERO")->required();
  app.add_option("--robosuite", settings.robosuite, "checkout or unpacked wheel of robosuite 1.4.0")->required();
  app.add_option("--out", settings.out, "folder to write: a new one, or an empty one")->required();
  app.add_option("--suites", settings.suites, "of these alone: libero_90, ...; else of all five");
  app.add_option("--tasks", settings.tasks, "only those whose names begin so: KITCHEN_SCENE10, ...");
  app.add_option("--states", settings.states, "initial states of each task; 0: all")
      ->check(CLI::Range(0, 1000000))
      ->capture_default_str();
  if (const auto code = parse_arguments(app, arguments)) return *code;
  tasks::libero::compose::export_libero(settings, [](int done, int total, const std::string& folder) {
    std::puts(format("{} of {}: {}", done, total, folder).c_str());
    std::fflush(stdout);
  });
  std::puts(format("{0}: written; `export COHORT_LIBERO={0}`, or --libero {0}, makes them tasks",
                   std::filesystem::absolute(settings.out).lexically_normal().string())
                .c_str());
  return 0;
}

const Register kExportLibero({"export-libero", "write LIBERO's tasks from its files, without Python", run_export_libero,
                              ""});

}  // namespace
}  // namespace cohort::cli
