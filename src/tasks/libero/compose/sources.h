/// The installations that scenes are composed from, found and checked: LIBERO itself, LIBERO-Pro, LIBERO-Plus, and
/// robosuite 1.4.0. A checkout of one, or the folder that `cohort export-libero --fetch` fills with their wheels.
///
///   const std::vector<LiberoSource> sources = find_libero("libero_wheels");
///   for (const ChosenTask& task : choose_tasks(sources, {"libero_goal_swap"}, {})) task.problem_file;
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tasks/libero/compose/suite_map.h"
#include "tasks/libero/compose/variant.h"

namespace cohort::tasks::libero::compose {

struct LiberoSource {
  Family family = Family::kLibero;
  std::filesystem::path root;    ///< libero/libero, or liberoplus/liberoplus
  std::filesystem::path assets;  ///< meshes, textures and scenes
  SuiteMap suites;               ///< as its own map has them, without those that are another family's
};

/// folder: a checkout, a folder in one, or the folder of fetched wheels. LIBERO itself is the first. Throws Error saying
/// what was looked for, and for a wheel of another version, which.
std::vector<LiberoSource> find_libero(const std::filesystem::path& folder);

/// The folder models/assets of robosuite 1.4.0. folder: a checkout, an unpacked wheel, the package, or the folder of
/// fetched wheels. Throws Error saying what was looked for; for another version, naming it; for a wheel, saying how to
/// unpack it.
std::filesystem::path find_robosuite_assets(const std::filesystem::path& folder);

/// What a suite of `source` is called here: LIBERO-Plus gives its suites the names of LIBERO's, and they stand beside
/// those, so that theirs end in "_plus".
std::string suite_name(Family family, const std::string& suite);

struct ChosenTask {
  const LiberoSource* source = nullptr;
  std::string suite;   ///< as it is called here
  std::string folder;  ///< of its files below bddl_files
  std::string file;    ///< the name of its files
  std::string task;    ///< as it is called here: no two tasks have the same name
  Variant variant;
  std::filesystem::path problem_file() const;
  std::filesystem::path states_file() const;
};

/// Tasks that cannot be composed, of one suite and perturbation.
struct LeftOut {
  std::string suite, perturbation, lacks;
  int tasks = 0;
};
struct Choice {
  std::vector<ChosenTask> tasks;
  std::vector<LeftOut> left_out;
};
/// The tasks of these suites (empty: LIBERO's five) whose names begin so (empty: all), in LIBERO's order; of
/// perturbations these kinds (empty: all). A task of LIBERO-Plus that changes a scene of LIBERO's brings that along.
/// What lacks files is left out. Throws Error with the nearest name for a suite that is not there, a beginning that no
/// task has and a perturbation that no chosen task is of, and where nothing is left, saying what is lacking.
Choice choose_tasks(const std::vector<LiberoSource>& sources, const std::vector<std::string>& suites,
                    const std::vector<std::string>& beginnings, const std::vector<std::string>& perturbations = {});

/// The suites of all sources with their tasks as they are called here, for suites.json.
SuiteMap all_suites(const std::vector<LiberoSource>& sources);

/// The wheels that `--fetch` asks pip for: NAME==VERSION, and the sizes of their downloads.
struct Wheel {
  std::string name, version;
  double megabytes = 0;
  bool optional = false;  ///< LIBERO-Pro's and LIBERO-Plus' own
  std::string folder() const;
};
const std::vector<Wheel>& libero_wheels();

}  // namespace cohort::tasks::libero::compose
