/// Starting a process in well under a millisecond: vfork and exec, no shell in between.
#pragma once
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort::launch {

struct SpawnRequest {
  std::string program;                   ///< a path, see find_program
  std::vector<std::string> arguments;    ///< argv, the program's name first
  std::vector<std::string> environment;  ///< "NAME=value"; the whole environment
  int standard_input = -1;               ///< descriptors to become 0, 1 and 2; -1 inherits
  int standard_output = -1;
  int standard_error = -1;
  std::vector<int> inherited;  ///< further descriptors that stay open under their numbers; -1 stands for none
  int guard = -1;         ///< OrphanGuard::descriptor(): the process puts itself under its watch; -1: nobody watches
  bool own_group = true;  ///< the process leads a process group of its own, so that all its children can be signalled
};

/// Starts the process. It gets default signal handlers and an empty signal mask, and on Linux dies with SIGKILL when
/// the calling thread dies. Throws Error with the reason when it cannot be executed.
pid_t spawn(const SpawnRequest& request);

/// The path of a program: itself where it holds a slash, else by PATH. Throws Error naming what was looked for and
/// where.
std::string find_program(const std::string& name);
/// Likewise, "" when there is none.
std::string find_program_or_empty(const std::string& name);

}  // namespace cohort::launch
