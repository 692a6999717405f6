#include "dist/cuda_plugin.h"

#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <mutex>

#include <dlfcn.h>

#include "core/error.h"
#include "core/program_folder.h"

namespace cohort::dist {
namespace {

constexpr const char* kFile = "libcohort_cuda.so";
std::atomic<const CudaPlugin*> loaded{nullptr};

std::vector<std::filesystem::path> candidates() {
  std::vector<std::filesystem::path> result;
  if (const char* folder = std::getenv("COHORT_PLUGIN_DIR"); folder != nullptr && *folder != '\0')
    return {std::filesystem::path(folder) / kFile};
  if (const auto programs = program_folder(); !programs.empty()) {
    result.push_back(programs / kFile);
    result.push_back(programs.parent_path() / "lib" / kFile);
  }
  return result;
}

}  // namespace

const CudaPlugin& load_cuda_plugin() {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (const CudaPlugin* plugin = loaded.load()) return *plugin;
  std::string reasons;
  for (const auto& path : candidates()) {
    if (!std::filesystem::exists(path)) {
      reasons += format("{}{} does not exist", reasons.empty() ? "" : "; ", path.string());
      continue;
    }
    // Global: what it brings (libtorch_cuda) registers kernels with the LibTorch that is here already. Never unloaded.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
    COHORT_THROW_UNLESS(handle != nullptr, "CUDA support cannot be loaded: {}", dlerror());
    using Entry = const CudaPlugin* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(handle, "cohort_cuda_plugin"));
    COHORT_THROW_UNLESS(entry != nullptr, "{} is not Cohort's CUDA plugin", path.string());
    const CudaPlugin* plugin = entry();
    COHORT_THROW_UNLESS(plugin->interface_version == kCudaPluginVersion,
                        "{} is of another version of Cohort (interface {}, wanted {}); build it again", path.string(),
                        plugin->interface_version, kCudaPluginVersion);
    loaded = plugin;
    return *plugin;
  }
  throw Error(format(
      "this build has no CUDA support: {}. Build on a machine with the CUDA headers, or choose device cpu", reasons));
}

bool cuda_plugin_loaded() {
  return loaded.load() != nullptr;
}

}  // namespace cohort::dist
