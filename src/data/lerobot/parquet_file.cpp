#include "data/lerobot/parquet_file.h"

#include <cstdlib>
#include <mutex>

#include <dlfcn.h>

#include "core/error.h"
#include "core/placeholder_file.h"
#include "core/program_folder.h"

namespace cohort::data {
namespace fs = std::filesystem;
namespace {

constexpr const char* kParquetLibrary = "libcohort_parquet.so";

/// Beside the program and in ../lib, or where COHORT_PLUGIN_DIR says.
std::vector<fs::path> parquet_libraries() {
  if (const char* folder = std::getenv("COHORT_PLUGIN_DIR"); folder != nullptr && *folder != '\0')
    return {fs::path(folder) / kParquetLibrary};
  const fs::path programs = program_folder();
  if (programs.empty()) return {};
  return {programs / kParquetLibrary, programs.parent_path() / "lib" / kParquetLibrary};
}

const ParquetPlugin& load_parquet_plugin() {
  static std::mutex mutex;
  static const ParquetPlugin* loaded = nullptr;
  const std::lock_guard lock(mutex);
  if (loaded) return *loaded;
  std::string looked;
  for (const fs::path& path : parquet_libraries()) {
    std::error_code error;
    if (!fs::exists(path, error)) {
      looked += (looked.empty() ? "" : ", ") + path.string();
      continue;
    }
    // Local: what Arrow brings does not meet LibTorch's symbols. Never unloaded.
    void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    const char* reason = handle ? "" : dlerror();
    COHORT_THROW_UNLESS(
        handle,
        "Arrow, which reads and writes Parquet, cannot be loaded: {}; install the wheel pyarrow of the build "
        "(scripts/setup), or build again",
        reason ? reason : path.c_str());
    using Entry = const ParquetPlugin* (*)();
    const auto entry = reinterpret_cast<Entry>(dlsym(handle, "cohort_parquet_plugin"));
    COHORT_THROW_UNLESS(entry, "{} is not Cohort's library for Parquet: build again", path.string());
    const ParquetPlugin* plugin = entry();
    COHORT_THROW_UNLESS(plugin->interface_version == kParquetPluginVersion,
                        "{} is of another version of Cohort (interface {}, wanted {}); build it again", path.string(),
                        plugin->interface_version, kParquetPluginVersion);
    loaded = plugin;
    return *loaded;
  }
  throw Error(
      format("this build reads no Parquet and writes none, the tables of LeRobot data: install the wheel pyarrow "
             "(scripts/setup), "
             "configure and build again; where it is built, COHORT_PLUGIN_DIR names its folder (looked for {})",
             looked));
}

}  // namespace

std::shared_ptr<const ParquetFile> open_parquet(const fs::path& path) {
  std::error_code error;
  COHORT_THROW_UNLESS(fs::is_regular_file(path, error), "there is no file {}", path.string());
  refuse_placeholder(path);
  return load_parquet_plugin().open(path.string());
}

std::unique_ptr<ParquetWriter> create_parquet(const fs::path& path, const std::vector<ParquetNewColumn>& columns,
                                              const ParquetNotes& notes) {
  return load_parquet_plugin().create(path.string(), columns, notes);
}

std::string parquet_unavailable() {
  try {
    load_parquet_plugin();
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::optional<std::size_t> find_column(const ParquetFile& file, std::string_view name) {
  for (std::size_t c = 0; c < file.columns().size(); ++c)
    if (file.columns()[c].name == name) return c;
  return std::nullopt;
}

std::optional<std::size_t> find_column(const ParquetFile& file, std::string_view name, std::string_view leaf) {
  for (std::size_t c = 0; c < file.columns().size(); ++c)
    if (file.columns()[c].name == name && file.columns()[c].leaf == leaf) return c;
  return std::nullopt;
}

}  // namespace cohort::data
