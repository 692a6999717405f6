#include <filesystem>
#include <mutex>

#include <dlfcn.h>

#include "sim/mujoco/handle.h"

namespace cohort::sim::mj {

void load_plugins() {
  static std::once_flag once;
  std::call_once(once, [] {
    Dl_info library{};
    if (dladdr(reinterpret_cast<const void*>(&mj_version), &library) == 0 || library.dli_fname == nullptr) return;
    const std::filesystem::path folder = std::filesystem::path(library.dli_fname).parent_path() / "plugin";
    std::error_code ignored;
    if (std::filesystem::is_directory(folder, ignored)) mj_loadAllPluginLibraries(folder.c_str(), nullptr);
  });
}

}  // namespace cohort::sim::mj
