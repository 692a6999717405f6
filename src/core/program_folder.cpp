#include "core/program_folder.h"

#include <string>
#include <system_error>

#include <dlfcn.h>

namespace cohort {
namespace fs = std::filesystem;

fs::path program_folder() {
  // Of a program the linker knows the name by which it was called, of a library its path.
  Dl_info here{};
  if (::dladdr(reinterpret_cast<const void*>(&program_folder), &here) != 0 && here.dli_fname != nullptr) {
    const fs::path file = here.dli_fname;
    if (file.filename().string().find(".abi3.so") != std::string::npos) return file.parent_path() / "bin";
  }
  std::error_code unknown;
  const fs::path program = fs::read_symlink("/proc/self/exe", unknown);
  return unknown ? fs::path() : program.parent_path();
}

}  // namespace cohort
