#include "tasks/libero/catalogue.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/format.h"
#include "core/json_text.h"

namespace cohort::tasks::libero {
namespace fs = std::filesystem;
namespace {

struct SuiteSize {
  const char* name;
  int tasks;
};
constexpr SuiteSize kSuites[] = {
    {"libero_spatial", 10}, {"libero_object", 10}, {"libero_goal", 10}, {"libero_10", 10}, {"libero_90", 90}};

fs::path& chosen_folder() {
  static fs::path folder;
  return folder;
}

fs::path checked(const fs::path& folder, const char* who) {
  COHORT_THROW_UNLESS(fs::is_directory(folder),
                      "{}: {} is no folder; it should hold the folders that "
                      "`cohort export-libero` writes, one for each task",
                      who, folder.string());
  return folder;
}

/// The suites and the order of their tasks, from the file suites.json beside the folders; empty without it.
config::Json benchmark_orders() {
  const fs::path file = libero_folder() / "suites.json";
  if (libero_folder().empty() || !fs::exists(file)) return config::Json::object();
  try {
    config::Json orders = parse_json<config::Json>(read_file(file));
    COHORT_THROW_UNLESS(orders.is_object(), "{}: it holds no object of suites", file.string());
    return orders;
  } catch (const config::Json::exception& e) {
    throw Error(format("{}: {}", file.string(), e.what()));
  }
}

}  // namespace

void set_libero_folder(const fs::path& folder) {
  chosen_folder() = checked(folder, "--libero");
}

fs::path libero_folder() {
  if (!chosen_folder().empty()) return chosen_folder();
  const char* named = std::getenv("COHORT_LIBERO");
  return named && *named ? checked(named, "COHORT_LIBERO") : fs::path();
}

std::string how_to_say_where() {
  return "no LIBERO scenes are known: --libero DIR or the environment variable COHORT_LIBERO says where they lie, and "
         "`cohort export-libero` writes them (docs/guide/libero.md)";
}

std::vector<SceneHead> libero_tasks() {
  const fs::path folder = libero_folder();
  std::vector<SceneHead> tasks;
  if (folder.empty()) return tasks;
  std::vector<fs::path> paths;
  std::error_code nowhere;  // of a link
  for (const auto& entry : fs::directory_iterator(folder))
    if (fs::exists(entry.path() / "task.json", nowhere)) paths.push_back(entry.path());
  COHORT_THROW_UNLESS(!paths.empty(),
                      "{} holds no LIBERO tasks: none of its folders has a task.json "
                      "(`cohort export-libero` writes them)",
                      folder.string());
  std::sort(paths.begin(), paths.end());
  std::map<std::string, fs::path> seen;
  for (const fs::path& path : paths) {
    tasks.push_back(read_scene_head(path));
    const auto [other, fresh] = seen.emplace(tasks.back().task, path);
    COHORT_THROW_UNLESS(fresh, "{} and {} are both {}", other->second.string(), path.string(), tasks.back().task);
  }
  return tasks;
}

std::vector<std::string> libero_suite_names() {
  std::vector<std::string> names;
  for (const SuiteSize& suite : kSuites) names.emplace_back(suite.name);
  return names;
}

LiberoSuite libero_suite(const std::string& name) {
  std::vector<std::string> known = libero_suite_names();
  const bool liberos = std::find(known.begin(), known.end(), name) != known.end();
  COHORT_THROW_UNLESS(!libero_folder().empty() || !liberos, "{}: {}", name, how_to_say_where());
  const config::Json orders = benchmark_orders();
  std::map<std::string, int> present;
  LiberoSuite suite{.name = name, .tasks = {}, .expected = 0};
  for (SceneHead& head : libero_tasks()) {
    ++present[head.suite];
    if (head.suite == name) suite.tasks.push_back(std::move(head));
  }
  std::string there;
  for (const auto& [other, count] : present) {
    there += format("{}{} of {}", there.empty() ? "" : ", ", count, other);
    if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(other);
  }
  for (const auto& [other, tasks] : orders.items())
    if (std::find(known.begin(), known.end(), other) == known.end()) known.push_back(other);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    const std::string near = config::nearest(name, known);
    throw Error(format("there is no benchmark '{}'{}; there are {}", name,
                       near.empty() ? "" : format(", did you mean '{}'?", near), join(known, ", ")));
  }
  COHORT_THROW_UNLESS(!suite.tasks.empty(),
                      "{} has no task of {}; there are {} (`cohort export-libero --suites {}` writes them)",
                      libero_folder().string(), name, there, name);
  try {
    std::vector<std::string> order;
    if (orders.contains(name)) order = orders.at(name).get<std::vector<std::string>>();
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < order.size(); ++i) places.emplace(order[i], i);
    const auto place = [&](const SceneHead& head) {
      const auto at = places.find(head.task);
      return std::pair(at == places.end() ? order.size() : at->second, head.task);
    };
    std::sort(suite.tasks.begin(), suite.tasks.end(),
              [&](const SceneHead& a, const SceneHead& b) { return place(a) < place(b); });
    suite.expected = static_cast<int>(order.size());
  } catch (const config::Json::exception& e) {
    throw Error(format("{}: {}", (libero_folder() / "suites.json").string(), e.what()));
  }
  for (const SuiteSize& known_size : kSuites)
    if (name == known_size.name) suite.expected = known_size.tasks;
  suite.expected = std::max(suite.expected, static_cast<int>(suite.tasks.size()));
  return suite;
}

}  // namespace cohort::tasks::libero
