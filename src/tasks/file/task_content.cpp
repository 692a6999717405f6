#include "tasks/file/task_content.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

#include "core/files.h"
#include "core/fnv.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/yaml_file.h"
#include "tasks/file/library_files.h"
#include "tasks/file/task_file.h"

namespace cohort::tasks {

namespace fs = std::filesystem;
using config::Json;

namespace {

/// A copy of a task's file, and the run that has made it.
struct Copy {
  std::string file;
  fs::path run;
};

/// By the files' absolute paths.
struct Copies {
  std::map<std::string, Copy> in_use;  ///< stand for the files
  std::map<std::string, Copy> spare;   ///< would, if the files could not be used
};

Copies& copies() {
  static Copies all;
  return all;
}

std::string key_of(const std::string& task) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(fs::absolute(task, error), error);
  return error ? task : path.string();
}

const Copy* find(const std::map<std::string, Copy>& all, const std::string& task) {
  if (all.empty()) return nullptr;
  const auto found = all.find(key_of(task));
  return found == all.end() ? nullptr : &found->second;
}

struct MissingInclude : Error {
  using Error::Error;
};

bool is_there(const std::string& path) {
  return !library_text(path).empty() || fs::exists(path);
}

Json read_file_alone(const std::string& path) {
  COHORT_THROW_UNLESS(is_there(path), "there is no task's file '{}'", path);
  if (const std::string_view text = library_text(path); !text.empty()) return read_yaml(std::string(text), path);
  const std::string suffix = fs::path(path).extension().string();
  if (suffix != ".json") {
    try {
      return read_yaml_file(path);
    } catch (const Error& e) {
      const std::string what = e.what();
      if (what.find("flow") == std::string::npos) throw;
      throw Error(what + ": a formula within { } or [ ] stands in quotation marks");
    }
  }
  try {
    return parse_json<Json>(read_file(path), JsonComments::kAllowed);
  } catch (const Json::parse_error& e) {
    throw Error(format("{}: {}", path, e.what()));
  }
}

/// Models of an included file lie beside it, those of its settings and of `play` too.
void move_models(Json& content, const fs::path& folder) {
  if (!content.is_object()) return;
  for (auto& [key, value] : content.items()) {
    if (key != "scene") {
      move_models(value, folder);
      continue;
    }
    if (!value.is_object()) continue;
    for (auto& [name, entity] : value.items())
      for (const char* kind : {"mjcf", "urdf", "mesh"})
        if (entity.is_object() && entity.contains(kind) && entity[kind].is_string())
          entity[kind] = path_from(folder, entity[kind].get<std::string>()).string();
  }
}

/// The return at which a training ends is that of the included file's rewards.
void leave_out_return(Json& content) {
  if (content.contains("ppo") && content["ppo"].is_object()) content["ppo"].erase("stop_at_return");
}

/// The file's content, on top of the file that it includes. includers: that lead here.
Json content_of(const std::string& path, std::vector<std::string> includers) {
  Json content = read_file_alone(path);
  if (!content.is_object() || !content.contains("include")) return content;
  COHORT_THROW_UNLESS(content["include"].is_string(), "{}: include is {}: the name of one task file", path,
                      json_text(content["include"]));
  includers.push_back(fs::weakly_canonical(path).string());
  const fs::path other = content["include"].get<std::string>();
  const std::string file = path_from(fs::path(path).parent_path(), other.string()).string();
  COHORT_THROW_UNLESS(std::ranges::find(includers, fs::weakly_canonical(file).string()) == includers.end(),
                      "{}: include: '{}' is included by what it includes: a circle", path, other.string());
  if (!is_there(file))
    throw MissingInclude(
        format("{}: include: there is no file '{}'; paths are relative to the task's file", path, file));
  Json below = content_of(file, includers);
  COHORT_THROW_UNLESS(below.is_object(), "{}: include: '{}' is no task file: an object is", path, file);
  if (!other.parent_path().empty())
    move_models(below, file.starts_with(kLibrary) ? fs::path(file).parent_path() : fs::absolute(file).parent_path());
  content.erase("include");
  leave_out_return(below);
  below.merge_patch(content);
  return below;
}

enum class Since { kSame, kChanged, kUnreadable };

/// What has become of the file since the copy was made.
Since since_copy(const std::string& task, const std::string& copy) {
  std::string content;
  try {
    content = format("{:016x}", fnv1a(json_text(read_content(task))));
  } catch (const MissingInclude&) {
    return Since::kUnreadable;
  } catch (const Error&) {
    return Since::kChanged;
  }
  return read_content(copy).at("kept").value("content", "") == content ? Since::kSame : Since::kChanged;
}

}  // namespace

Json read_content(const std::string& path) {
  return content_of(path, {});
}

std::string present_file(const std::string& task) {
  const Copy* copy = find(copies().in_use, task);
  return copy == nullptr ? task : copy->file;
}

std::string spare_copy(const std::string& task) {
  const Copy* copy = find(copies().spare, task);
  return copy == nullptr ? "" : copy->file;
}

void use_spare_copy(const std::string& task, const std::string& trouble) {
  const Copy copy = *find(copies().spare, task);
  if (since_copy(task, copy.file) == Since::kChanged)
    throw Error(format("{}; it has changed since {} learnt it, which keeps what it was: name {} in its place", trouble,
                       copy.run.string(), copy.file));
  copies().in_use[key_of(task)] = copy;
  copies().spare.erase(key_of(task));
  log::info("the task is the one that {} keeps, instead of {}: {}", copy.run.string(), task, trouble);
}

void use_kept_task(const std::string& task, const fs::path& run, bool only_missing) {
  if (!is_task_file(task) || find(copies().in_use, task) != nullptr) return;
  const Copy copy{(run / "task" / (task_title(task) + ".json")).string(), run};
  if (!fs::exists(copy.file)) return;
  const bool there = fs::exists(task);
  // Also by the path that it had, from wherever it is named.
  const std::string before = key_of(read_content(copy.file).at("kept").value("file", task));
  if (only_missing && there) {
    for (const std::string& key : {key_of(task), before}) copies().spare.try_emplace(key, copy);
    return;
  }
  for (const std::string& key : {key_of(task), before}) copies().in_use.try_emplace(key, copy);
  std::string changed = there ? "" : ", which is not there any more";
  if (there) {
    const Since since = since_copy(task, copy.file);
    if (since == Since::kChanged) changed = ", which has changed since";
    if (since == Since::kUnreadable) changed = ", which includes a file that is not there any more";
  }
  if (!changed.empty()) log::info("the task is the one that {} keeps, instead of {}{}", run.string(), task, changed);
}

}  // namespace cohort::tasks
