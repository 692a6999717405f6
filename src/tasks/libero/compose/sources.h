/// The two installations that scenes are composed from, found and checked.
#pragma once
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "tasks/libero/compose/suite_map.h"

namespace cohort::tasks::libero::compose {

struct LiberoSource {
  std::filesystem::path root;  ///< libero/libero
  SuiteMap suites;             ///< the five, in the order of libero_suite_names()
};

/// folder: a checkout, or a folder in it. Throws Error saying what was looked for.
LiberoSource find_libero(const std::filesystem::path& folder);

/// The folder models/assets of robosuite 1.4.0. folder: a checkout, an unpacked wheel, or the package. Throws Error
/// saying what was looked for; for another version, naming it; for a wheel, saying how to unpack it.
std::filesystem::path find_robosuite_assets(const std::filesystem::path& folder);

struct ChosenTask {
  std::string suite, task;
};
/// The tasks of these suites (empty: all) whose names begin so (empty: all), in LIBERO's order. Throws Error with the
/// nearest name for a suite that is not there and a beginning that no task has.
std::vector<ChosenTask> choose_tasks(const SuiteMap& map, const std::vector<std::string>& suites,
                                     const std::vector<std::string>& beginnings);

}  // namespace cohort::tasks::libero::compose
