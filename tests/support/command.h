/// Runs a shell command as a user would.
#pragma once
#include <array>
#include <cstdio>
#include <string>

#include <sys/wait.h>

namespace cohort::test {

struct CommandOutcome {
  int code = -1;       ///< of its exit; -1: it could not be started or ended by a signal
  std::string output;  ///< standard output and error together
};

inline CommandOutcome run_command(const std::string& command) {
  CommandOutcome outcome;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  if (pipe == nullptr) return outcome;
  std::array<char, 4096> chunk;
  while (const std::size_t n = std::fread(chunk.data(), 1, chunk.size(), pipe)) outcome.output.append(chunk.data(), n);
  const int status = ::pclose(pipe);
  if (WIFEXITED(status)) outcome.code = WEXITSTATUS(status);
  return outcome;
}

}  // namespace cohort::test
