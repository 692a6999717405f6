#include "tasks/libero/compose/sources.h"

#include <algorithm>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "tasks/libero/catalogue.h"

namespace cohort::tasks::libero::compose {
namespace {

namespace fs = std::filesystem;

constexpr const char* kVersion = "1.4.0";
constexpr const char* kGetRobosuite = "pip download --no-deps robosuite==1.4.0, then unzip the wheel into a folder";
constexpr const char* kSuiteMap = "benchmark/libero_suite_task_map.py";

std::string did_you_mean(const std::string& word, const std::vector<std::string>& candidates) {
  const std::string near = config::nearest(word, candidates);
  return near.empty() ? "" : format(", did you mean '{}'?", near);
}

/// `__version__ = "1.4.0"` of a package's __init__.py; empty where it says none.
std::string version_in(const fs::path& init) {
  if (!fs::is_regular_file(init)) return "";
  const std::string text = read_file(init);
  const std::size_t named = text.find("__version__"), open = text.find_first_of("\"'", std::min(named, text.size()));
  if (open == std::string::npos) return "";
  const std::size_t close = text.find(text[open], open + 1);
  return close == std::string::npos ? "" : text.substr(open + 1, close - open - 1);
}

}  // namespace

LiberoSource find_libero(const fs::path& folder) {
  for (const fs::path& root : {folder / "libero" / "libero", folder / "libero", folder}) {
    if (!fs::is_regular_file(root / kSuiteMap)) continue;
    for (const char* part : {"assets", "bddl_files", "init_files"})
      COHORT_THROW_UNLESS(fs::is_directory(root / part), "{} has no folder {}: the checkout of LIBERO is not whole",
                          root.string(), part);
    const fs::path file = root / kSuiteMap;
    const SuiteMap all = read_suite_map(read_file(file), file.string());
    LiberoSource source{root, {}};
    for (const std::string& name : libero_suite_names()) {
      const auto suite = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == name; });
      COHORT_THROW_UNLESS(suite != all.end(), "{}: there is no suite {} in it", file.string(), name);
      source.suites.push_back(*suite);
    }
    return source;
  }
  throw Error(
      format("{} is no checkout of LIBERO: there is no libero/libero/{} in it (git clone "
             "https://github.com/Lifelong-Robot-Learning/LIBERO)",
             folder.string(), kSuiteMap));
}

fs::path find_robosuite_assets(const fs::path& folder) {
  COHORT_THROW_UNLESS(folder.extension() != ".whl" || fs::is_directory(folder),
                      "{} is a packed wheel: unpack it (`unzip {} -d robosuite-{}`) and name the folder",
                      folder.string(), folder.filename().string(), kVersion);
  for (const fs::path& package : {folder / "robosuite", folder}) {
    const fs::path assets = package / "models" / "assets";
    if (!fs::is_regular_file(assets / "base.xml")) continue;
    const std::string version = version_in(package / "__init__.py");
    COHORT_THROW_UNLESS(
        version == kVersion, "{} is robosuite {}: LIBERO's scenes are of robosuite {}, and others' robot differs ({})",
        package.string(), version.empty() ? "of no version that it tells" : version, kVersion, kGetRobosuite);
    return assets;
  }
  throw Error(format("{} holds no robosuite: there is no robosuite/models/assets/base.xml in it ({})", folder.string(),
                     kGetRobosuite));
}

std::vector<ChosenTask> choose_tasks(const SuiteMap& map, const std::vector<std::string>& suites,
                                     const std::vector<std::string>& beginnings) {
  std::vector<std::string> known_suites, known_tasks;
  for (const auto& [suite, tasks] : map) known_suites.push_back(suite);
  for (const std::string& suite : suites)
    COHORT_THROW_UNLESS(std::find(known_suites.begin(), known_suites.end(), suite) != known_suites.end(),
                        "there is no suite '{}'{}; there are {}", suite, did_you_mean(suite, known_suites),
                        join(known_suites, ", "));
  std::vector<ChosenTask> chosen;
  for (const auto& [suite, tasks] : map) {
    if (!suites.empty() && std::find(suites.begin(), suites.end(), suite) == suites.end()) continue;
    known_tasks.insert(known_tasks.end(), tasks.begin(), tasks.end());
    for (const std::string& task : tasks)
      if (beginnings.empty() || std::any_of(beginnings.begin(), beginnings.end(),
                                            [&](const std::string& beginning) { return task.starts_with(beginning); }))
        chosen.push_back({suite, task});
  }
  for (const std::string& beginning : beginnings)
    COHORT_THROW_UNLESS(std::any_of(known_tasks.begin(), known_tasks.end(),
                                    [&](const std::string& task) { return task.starts_with(beginning); }),
                        "no task of {} begins with '{}'{}", suites.empty() ? "LIBERO" : join(suites, ", "), beginning,
                        did_you_mean(beginning, known_tasks));
  return chosen;
}

}  // namespace cohort::tasks::libero::compose
