#include "cli/child_command.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/subcommand.h"
#include "core/error.h"

extern char** environ;

namespace cohort::cli {
namespace {

std::atomic<pid_t> running_child{0};

/// A terminal sends Ctrl-C to the child, too; two of the same do no harm.
void pass_on(int signal) {
  const pid_t child = running_child.load();
  if (child > 0) ::kill(child, signal);
}

}  // namespace

int run_cohort(const std::vector<std::string>& words) {
  const std::string program = own_path();
  std::vector<std::string> copies{program};
  copies.insert(copies.end(), words.begin(), words.end());
  std::vector<char*> arguments;
  for (std::string& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  struct sigaction handler {};
  struct sigaction before_int {};
  struct sigaction before_term {};
  handler.sa_handler = pass_on;
  handler.sa_flags = SA_RESTART;
  ::sigaction(SIGINT, &handler, &before_int);
  ::sigaction(SIGTERM, &handler, &before_term);
  pid_t child = 0;
  const int failure = ::posix_spawn(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ);
  int status = 0;
  if (failure == 0) {
    running_child = child;
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    running_child = 0;
  }
  ::sigaction(SIGINT, &before_int, nullptr);
  ::sigaction(SIGTERM, &before_term, nullptr);
  COHORT_THROW_UNLESS(failure == 0, "cannot start {}: {}", program, std::strerror(failure));
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace cohort::cli
