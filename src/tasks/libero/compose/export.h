/// The tasks of LIBERO, LIBERO-Pro and LIBERO-Plus as folders that Cohort runs (scene_folder.h), composed from their
/// files (sources.h) and those of robosuite 1.4.0, without Python. The same folders as scripts/export_libero.py writes: task.json, init_states.npy and
/// suites.json alike, and scene.xml for the same compiled model.
///
///   export_libero({.libero = "LIBERO", .robosuite = "robosuite-1.4.0", .out = "libero_scenes"}, print_line);
///
/// Facts that are no data in those files (poses of cameras, thresholds of joints, the order of random draws) stand here,
/// each beside the name of the source that it was taken from, LIBERO at its commit 8f1084e.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "tasks/libero/compose/sources.h"

namespace cohort::tasks::libero::compose {

struct ExportSettings {
  std::filesystem::path libero;     ///< a checkout, the folder libero/libero in it, or the folder of fetched wheels
  std::filesystem::path robosuite;  ///< a checkout, an unpacked wheel, or the package's folder; empty: `libero`
  std::filesystem::path out;        ///< new, or an empty folder
  std::vector<std::string> suites;  ///< empty: LIBERO's five
  std::vector<std::string> tasks;   ///< beginnings of tasks' names; empty: all
  std::vector<std::string> perturbations{};  ///< kinds of variant.h; empty: all
  int states = 0;                            ///< initial states of each task; 0: all
};

/// Calls report(done, total, folder) behind each task. `out` appears when all is written, or not at all: until then
/// everything lies in a folder beside it whose name begins with its own and ".unfinished-". Throws Error: a folder that
/// is not LIBERO's or robosuite's, another version, a name that is not known (with the nearest), an `out` that is not
/// empty, a missing asset, a full disk, a scene that MuJoCo refuses. Returns what could not be composed for want of files.
std::vector<LeftOut> export_libero(const ExportSettings& settings,
                                   const std::function<void(int done, int total, const std::string& folder)>& report);

}  // namespace cohort::tasks::libero::compose
