/// Which LIBERO tasks there are: the folders below one folder, by task and by suite.
///
///   set_libero_folder("exports/libero");                       // or the environment variable COHORT_LIBERO
///   const LiberoSuite suite = libero_suite("libero_90");       // the folders whose task.json says so
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "tasks/libero/scene_folder.h"

namespace cohort::tasks::libero {

/// Where the folders lie, in place of what COHORT_LIBERO says. To be called before tasks are asked for. Throws Error
/// for a folder that is not there.
void set_libero_folder(const std::filesystem::path& folder);

/// set_libero_folder()'s, else COHORT_LIBERO's; empty where neither says one. Throws Error for one that is not there.
std::filesystem::path libero_folder();

/// All tasks below the folder, by path; none where there is no folder. Throws Error for a task.json that cannot be read,
/// two folders of one task, and a folder without any.
std::vector<SceneHead> libero_tasks();

struct LiberoSuite {
  std::string name;
  std::vector<SceneHead> tasks;  ///< in LIBERO's order where suites.json beside the folders says it, else by name
  int expected = 0;              ///< tasks that LIBERO has in it
};
/// Names of LIBERO's suites: libero_spatial, libero_object, libero_goal, libero_10, libero_90.
std::vector<std::string> libero_suite_names();
/// name: of LIBERO's suites, or of another that the folder holds: LIBERO-Pro's "libero_goal_swap", LIBERO-Plus'
/// "libero_goal_plus". Throws Error for another name (with the nearest), where no folder is known (and what to set), and
/// where the folder has none of the suite's tasks (and which suites it has).
LiberoSuite libero_suite(const std::string& name);

/// "no LIBERO scenes are known: ...", for errors.
std::string how_to_say_where();

}  // namespace cohort::tasks::libero
