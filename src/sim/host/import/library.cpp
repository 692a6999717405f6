#include "sim/host/import/library.h"

#include <cstdlib>
#include <filesystem>
#include <mutex>
#include <string>

#include <dlfcn.h>

#include "core/error.h"

namespace cohort::sim::mj {

namespace {

/// Tries a file; the dynamic linker's message where it cannot be opened.
void* open_file(const std::string& file, std::string& message) {
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* reason = dlerror();
    message += (message.empty() ? "" : "; ") + std::string(reason ? reason : file + ": no reason given");
  }
  return library;
}

/// Structures are read as this version's headers lay them out.
void* of_this_version(void* library, const std::string& file) {
  using Version = int();
  auto* version = reinterpret_cast<Version*>(dlsym(library, "mj_version"));
  COHORT_THROW_UNLESS(version,
                      "{} is not MuJoCo's library: COHORT_MUJOCO_LIBRARY must name the file {} of the wheel "
                      "mujoco-core, or be unset",
                      file, COHORT_MUJOCO_FILE);
  COHORT_THROW_UNLESS(version() == mjVERSION_HEADER,
                      "{} is MuJoCo's library of version {}, and Cohort was built for {}: set COHORT_MUJOCO_LIBRARY to "
                      "the file {} of the wheel mujoco-core of that version",
                      file, version(), mjVERSION_HEADER, COHORT_MUJOCO_FILE);
  return library;
}

void* open_once() {
#if defined(__x86_64__)
  COHORT_THROW_UNLESS(__builtin_cpu_supports("avx"),
                      "MuJoCo's library is compiled for processors with AVX, and this one has none: MJCF, URDF and the "
                      "engine mujoco need another machine, compiled models (`cohort model --compile`) do not");
#endif
  std::string message;
  if (const char* chosen = std::getenv("COHORT_MUJOCO_LIBRARY"); chosen != nullptr && *chosen != '\0') {
    void* library = open_file(chosen, message);
    COHORT_THROW_UNLESS(library,
                        "MuJoCo's library cannot be opened ({}): COHORT_MUJOCO_LIBRARY must name the file {} of the "
                        "wheel mujoco-core, or be unset",
                        message, COHORT_MUJOCO_FILE);
    return of_this_version(library, chosen);
  }
  void* library = open_file(COHORT_MUJOCO_FILE, message);
  if (library == nullptr) library = open_file(COHORT_MUJOCO_FOLDER "/" COHORT_MUJOCO_FILE, message);
  COHORT_THROW_UNLESS(library,
                      "MuJoCo's library is not found ({}): MJCF, URDF and the engine mujoco need it, compiled models "
                      "(`cohort model --compile`) do not. Set COHORT_MUJOCO_LIBRARY to the file {} of the wheel "
                      "mujoco-core",
                      message, COHORT_MUJOCO_FILE);
  return of_this_version(library, COHORT_MUJOCO_FILE);
}

/// The open library; a failure is thrown again by every call, which tries again.
void* handle() {
  static void* const library = open_once();
  return library;
}

void set_handler(const char* variable, MessageHandler handler) {
  *static_cast<MessageHandler*>(find_symbol(variable)) = handler;
}

}  // namespace

void open_library() {
  handle();
}

void* find_symbol(const char* name) {
  void* address = dlsym(handle(), name);
  COHORT_CHECK(address, "MuJoCo's library has no {}", name);
  return address;
}

void load_plugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info library{};
    if (dladdr(find_symbol("mj_version"), &library) == 0 || library.dli_fname == nullptr) return;
    const std::filesystem::path folder = std::filesystem::path(library.dli_fname).parent_path() / "plugin";
    std::error_code ignored;
    if (std::filesystem::is_directory(folder, ignored)) mj_loadAllPluginLibraries(folder.c_str(), nullptr);
  });
}

void set_error_handler(MessageHandler handler) {
  set_handler("mju_user_error", handler);
}
void set_warning_handler(MessageHandler handler) {
  set_handler("mju_user_warning", handler);
}

}  // namespace cohort::sim::mj
