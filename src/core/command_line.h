/// Commands that a user can paste into a shell.
#pragma once
#include <filesystem>
#include <string>

namespace cohort {

/// The word as a POSIX shell reads it back: "a b.csv" becomes 'a b.csv'; what needs no quotes stays as it is.
std::string shell_quoted(const std::string& word);

/// How a user calls this executable: by its name where PATH leads to the same file, else by its path. Quoted.
std::string typed_name(const std::filesystem::path& executable);

}  // namespace cohort
