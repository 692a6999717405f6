/// The subcommands of `cohort`: one file each, which registers itself with one line:
///
///   const cohort::cli::Register kTop({"top", "GPU and host figures", run_top});
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "core/usage_error.h"

namespace cohort::cli {

struct Subcommand {
  std::string name;
  std::string summary;  ///< for `cohort --help`
  /// Gets the arguments behind the name; returns the exit code. Empty for one that is an executable of its own.
  std::function<int(const std::vector<std::string>& arguments)> run;
  /// The executable beside `cohort` that it becomes (it links what `cohort` must not, LibTorch above all); "" for none.
  std::string executable;
};

class Register {
 public:
  explicit Register(Subcommand subcommand);
};

/// All registered ones, by name.
std::vector<Subcommand> subcommands();

/// The absolute path of this executable. Throws Error where the system does not tell.
std::string own_path();

/// The path of an executable beside this one; throws Error saying how to build it when it is missing.
std::string sibling(const std::string& executable);

/// Replaces this process by the executable beside it, so that signals reach the work itself. Throws Error.
[[noreturn]] void become(const std::string& executable, const std::vector<std::string>& words);

/// Runs `body` as a program does: its return value is the exit code; an Error becomes its message on standard error,
/// copies in the log's files and in the agent's error file (launch/error_file.h), and exit code 1, a UsageError exit
/// code 2. Standard descriptors that are closed are opened first (core/standard_descriptors.h). For the main() of every
/// executable.
int run_program(const std::string& name, const std::function<int()>& body);

/// Whether the launcher asks, once and before it starts ranks, if the words can be understood: a command whose words are
/// read returns 0 then and does nothing.
bool only_checks_words();

}  // namespace cohort::cli
