#include "cli/wheel_parts.h"

#include <regex>
#include <string>
#include <vector>

#include <dlfcn.h>

#include "core/error.h"
#include "core/files.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

/// Of `torch/version.py`, e.g. "2.11.0+cu130" and "13.0"; an empty string where it says nothing, or None.
std::string value_in(const std::string& text, const std::string& name) {
  std::smatch found;
  const std::regex line("(^|\n)" + name + R"((: [^=\n]*)? = '([^'\n]*)')");
  return std::regex_search(text, found, line) ? found[3].str() : "";
}

bool is_there(const fs::path& site, const std::string& library) {
  std::error_code error;
  for (fs::directory_iterator folder(site / "nvidia", error), end; !error && folder != end; folder.increment(error)) {
    std::error_code ignored;
    if (fs::exists(folder->path() / "lib" / library, ignored)) return true;
  }
  // LD_LIBRARY_PATH, a toolkit of the system.
  void* handle = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  if (handle != nullptr) ::dlclose(handle);
  return handle != nullptr;
}

}  // namespace

std::string torch_of_this_build() {
  return COHORT_TORCH_MINOR;
}

void check_wheel_parts(const fs::path& program, const std::string& wanted) {
  const fs::path package = program.parent_path().parent_path();
  std::error_code error;
  if (wanted.empty() || package.filename() != "cohort" || !fs::exists(package / "__main__.py", error)) return;
  const fs::path site = package.parent_path(), about = site / "torch" / "version.py";
  COHORT_THROW_UNLESS(fs::is_regular_file(about, error),
                      "{} needs PyTorch {} beside Cohort, and there is no {}: pip install 'torch=={}.*' into the same "
                      "environment (in one that sees the system's packages: with --ignore-installed)",
                      program.filename().string(), wanted, about.string(), wanted);
  const std::string text = read_file(about), version = value_in(text, "__version__");
  COHORT_THROW_UNLESS(
      version.rfind(wanted + ".", 0) == 0,
      "{} is built for PyTorch {}, and {} is {}: pip install 'torch=={}.*', or a wheel of Cohort that is "
      "built for that one",
      program.filename().string(), wanted, about.parent_path().string(),
      version.empty() ? "of an unknown version" : version, wanted);
  const std::string cuda = value_in(text, "cuda"), generation = cuda.substr(0, cuda.find('.'));
  if (generation.empty()) return;
  const std::vector<std::pair<std::string, std::string>> libraries{
      {"libcudart.so." + generation, "nvidia-cuda-runtime"}, {"libcupti.so." + generation, "nvidia-cuda-cupti"}};
  for (const auto& [library, wheel] : libraries) {
    COHORT_THROW_UNLESS(is_there(site, library),
                        "PyTorch {} needs {} (also without a GPU), which is not in {} and not known to the system's "
                        "linker: pip install '{}=={}.*', or PyTorch's build for CPUs",
                        version, library, (site / "nvidia").string(), wheel, generation);
  }
}

}  // namespace cohort::cli
