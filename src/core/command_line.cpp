#include "core/command_line.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <sstream>
#include <string_view>

namespace cohort {
namespace fs = std::filesystem;

std::string shell_quoted(const std::string& word) {
  constexpr std::string_view kPlain = "_@%+=:,./-";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'')
      quoted += "'\\''";
    else
      quoted += c;
  }
  return quoted + "'";
}

namespace {

/// Whether `script` is what pip made to start `program` of a wheel: ENV/bin/NAME, which may be a link, and
/// ENV/lib/.../cohort/bin/NAME beside ENV/lib/.../cohort/__main__.py.
bool starts(const fs::path& script, const fs::path& program) {
  std::error_code error;
  if (!fs::exists(program.parent_path().parent_path() / "__main__.py", error)) return false;
  const fs::path file = fs::canonical(script, error);
  if (error) return false;
  const std::string environment = file.parent_path().parent_path().string();
  return file.parent_path().filename() == "bin" && program.string().rfind(environment + "/lib", 0) == 0;
}

}  // namespace

std::string typed_name(const fs::path& executable) {
  const char* path = std::getenv("PATH");
  std::stringstream folders(path != nullptr ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');) {
    const fs::path candidate = fs::path(folder.empty() ? "." : folder) / executable.filename();
    std::error_code error;
    if (!fs::exists(candidate, error)) continue;
    if (fs::equivalent(candidate, executable, error) || starts(candidate, executable))
      return shell_quoted(executable.filename().string());
    break;  // the shell takes another program of this name
  }
  return shell_quoted(executable.string());
}

}  // namespace cohort
