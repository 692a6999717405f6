#include "tasks/registry.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <sstream>

#include <dlfcn.h>

#include "core/config.h"
#include "core/error.h"
#include "core/format.h"
#include "core/log.h"
#include "tasks/built_in_tasks.h"
#include "tasks/file/task_file.h"
#include "tasks/libero/catalogue.h"

namespace cohort::tasks {
namespace {

struct Registry {
  std::vector<TaskEntry> entries;
  std::string loading;  ///< the library that registers its tasks now
};

Registry& registry() {
  static Registry all;
  return all;
}

void load_library(const std::string& path) {
  void* library = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  COHORT_THROW_UNLESS(library, "COHORT_TASKS: cannot load {}: {}", path, ::dlerror());
  auto* enter = reinterpret_cast<void (*)()>(::dlsym(library, "cohort_register_tasks"));
  COHORT_THROW_UNLESS(enter, "COHORT_TASKS: {} does not define extern \"C\" void cohort_register_tasks()", path);
  registry().loading = path;
  enter();
  registry().loading.clear();
}

void load_all() {
  register_built_in_tasks();
  const char* listed = std::getenv("COHORT_TASKS");
  std::stringstream paths(listed ? listed : "");
  for (std::string path; std::getline(paths, path, ':');)
    if (!path.empty()) load_library(path);
  std::sort(registry().entries.begin(), registry().entries.end(),
            [](const TaskEntry& a, const TaskEntry& b) { return a.name < b.name; });
}

}  // namespace

void register_task(TaskEntry entry) {
  COHORT_THROW_UNLESS(
      !entry.name.empty() && entry.name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                          "0123456789-_") == std::string::npos,
      "a task cannot be called '{}': letters, digits, hyphens and underscores", entry.name);
  for (const TaskEntry& other : registry().entries)
    COHORT_THROW_UNLESS(other.name != entry.name, "there is a task '{}' already{}", entry.name,
                        other.origin.empty() ? "" : format(", from {}", other.origin));
  entry.origin = registry().loading;
  registry().entries.push_back(std::move(entry));
}

const std::vector<TaskEntry>& all_tasks() {
  static std::once_flag once;
  std::call_once(once, load_all);
  return registry().entries;
}

const TaskEntry* find_task(const std::string& name) {
  if (is_task_file(name)) {
    // Entries stay where they are; one that is asked for again compiles its model again only if the file has changed.
    struct Known {
      std::string content;
      TaskEntry entry;
    };
    static std::mutex mutex;
    static std::map<std::string, std::deque<Known>> files;
    const std::string content = task_file_content(name);
    const std::lock_guard lock(mutex);
    std::deque<Known>& known = files[name];
    if (known.empty() || known.back().content != content) known.push_back({content, task_of_file(name)});
    return &known.back().entry;
  }
  const std::vector<TaskEntry>& all = all_tasks();
  const auto entry = std::find_if(all.begin(), all.end(), [&](const TaskEntry& e) { return e.name == name; });
  return entry == all.end() ? nullptr : &*entry;
}

TaskFields settings_of(const std::string& name) {
  const TaskEntry* entry = find_task(name);
  return entry && entry->settings ? entry->settings() : make_task(name, {})->settings();
}

namespace {

/// "HalfCheetah_V5", "half-cheetah": "halfcheetah", without case, hyphens and a version.
std::string bare_name(const std::string& name) {
  std::string bare;
  for (const char c : name)
    if (c != '-' && c != '_') bare += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  const std::size_t letter = bare.find_last_not_of("0123456789");
  // "v5" at the end, but not the 2d of walker2d or a name that is nothing else.
  if (letter != std::string::npos && letter > 0 && letter + 1 < bare.size() && bare[letter] == 'v') bare.resize(letter);
  return bare;
}

/// The name that was meant: one that differs by case, hyphens or version; else the nearest by letters. "": none is near.
std::string nearest_task(const std::string& name, const std::vector<std::string>& names) {
  std::vector<std::string> bare;
  for (const std::string& known : names) bare.push_back(bare_name(known));
  const auto same = std::find(bare.begin(), bare.end(), bare_name(name));
  if (same != bare.end()) return names[static_cast<std::size_t>(same - bare.begin())];
  const std::string near = config::nearest(name, names);
  if (!near.empty()) return near;
  const std::string like = config::nearest(bare_name(name), bare);
  return like.empty() ? "" : names[static_cast<std::size_t>(std::find(bare.begin(), bare.end(), like) - bare.begin())];
}

/// At most this many names are listed.
constexpr std::size_t kMostNames = 8;

/// "; those that begin so are A, B and 3 more", or the one that does; empty where none does.
std::string names_that_begin(const std::string& name, const std::vector<std::string>& names) {
  if (name.empty()) return "";
  std::vector<std::string> found;
  for (const std::string& known : names)
    if (known.starts_with(name)) found.push_back(known);
  if (found.empty()) return "";
  if (found.size() == 1) return format(", did you mean '{}'?", found.front());
  const std::size_t more = found.size() > kMostNames ? found.size() - kMostNames : 0;
  found.resize(found.size() - more);
  return format("; those that begin so are {}{}", join(found, ", "), more > 0 ? format(" and {} more", more) : "");
}

}  // namespace

std::string library_of(const std::string& task) {
  const TaskEntry* entry = find_task(task);
  if (!entry || entry->origin.empty()) return "";
  std::error_code error;
  const std::filesystem::path path = std::filesystem::absolute(entry->origin, error);
  // Without a slash the loader has searched its own folders.
  return error || entry->origin.find('/') == std::string::npos ? entry->origin : path.lexically_normal().string();
}

void use_library(const std::string& library, const std::string& who) {
  const char* listed = std::getenv("COHORT_TASKS");
  if (library.empty() || (listed && *listed)) return;
  std::error_code error;
  COHORT_THROW_UNLESS(library.find('/') == std::string::npos || std::filesystem::exists(library, error),
                      "{}: its task is one of the library {}, which is not there any more: "
                      "COHORT_TASKS=PATH/OF/THE/LIBRARY.so says where it is now",
                      who, library);
  ::setenv("COHORT_TASKS", library.c_str(), 1);
  log::info("tasks of {}, as {} has learnt one of them", library, who);
}

std::unique_ptr<Task> make_task(const std::string& name, const TaskSettings& settings) {
  COHORT_THROW_UNLESS(settings.n_envs > 0, "{} environments of {}: at least one is needed", settings.n_envs, name);
  TaskSettings named = settings;
  named.registered_name = name;
  if (is_task_file(name)) return make_file_task(name, named);
  if (const TaskEntry* entry = find_task(name)) return entry->make(named);
  std::vector<std::string> names;
  for (const TaskEntry& entry : all_tasks()) names.push_back(entry.name);
  if (const std::string begin = names_that_begin(name, names); !begin.empty())
    throw Error(format("there is no task '{}'{}", name, begin));
  const std::string near = nearest_task(name, names);
  // Our own names have no underscore; LIBERO's have.
  const bool like_liberos = near.empty() && name.find('_') != std::string::npos && libero::libero_folder().empty();
  const char* libraries = std::getenv("COHORT_TASKS");
  const bool may_be_own = near.empty() && !(libraries && *libraries);
  throw Error(format("there is no task '{}'{}; `cohort tasks` lists them{}{}", name,
                     near.empty() ? "" : format(", did you mean '{}'?", near),
                     may_be_own ? ", and COHORT_TASKS=LIBRARY.so brings those of a library of yours" : "",
                     like_liberos ? format(". If it is one of LIBERO's: {}", libero::how_to_say_where()) : ""));
}

}  // namespace cohort::tasks
