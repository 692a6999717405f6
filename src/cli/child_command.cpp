#include "cli/child_command.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <optional>

#include <spawn.h>
#include <sys/mman.h>
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

/// Where the child writes, as descriptors of this process; -1: where this process does.
struct Outputs {
  int out = -1, err = -1;
};

int run_child(const std::string& program, const std::vector<std::string>& words, Outputs outputs = {}) {
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
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  if (outputs.out >= 0) ::posix_spawn_file_actions_adddup2(&actions, outputs.out, STDOUT_FILENO);
  if (outputs.err >= 0) ::posix_spawn_file_actions_adddup2(&actions, outputs.err, STDERR_FILENO);
  pid_t child = 0;
  const int failure = ::posix_spawnp(&child, program.c_str(), &actions, nullptr, arguments.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
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

/// A file in memory that a child writes and this process reads: no pipe that could fill up.
class MemoryFile {
 public:
  MemoryFile() : file_(::memfd_create("cohort-output", MFD_CLOEXEC)) {
    COHORT_THROW_UNLESS(file_ >= 0, "no memory for a command's output: {}", std::strerror(errno));
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  int descriptor() const { return file_; }
  std::string text() const {
    std::string all;
    char piece[4096];
    for (;;) {
      const ssize_t n = ::pread(file_, piece, sizeof piece, static_cast<off_t>(all.size()));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return all;
      all.append(piece, static_cast<std::size_t>(n));
    }
  }

 private:
  int file_;
};

}  // namespace

int run_cohort(const std::vector<std::string>& words) {
  return run_child(own_path(), words);
}

int run_program(const std::string& program, const std::vector<std::string>& words) {
  return run_child(program, words);
}

ChildOutput run_and_read(const std::string& program, const std::vector<std::string>& words) {
  const MemoryFile out, err;
  ChildOutput result;
  result.code = run_child(program, words, {.out = out.descriptor(), .err = err.descriptor()});
  result.out = out.text();
  result.err = err.text();
  return result;
}

ChildOutput check_words(const std::vector<std::string>& words,
                        const std::vector<std::pair<std::string, std::string>>& environment) {
  std::vector<std::pair<std::string, std::string>> variables{{"COHORT_ONLY_CHECK_WORDS", "1"}};
  variables.insert(variables.end(), environment.begin(), environment.end());
  std::vector<std::pair<std::string, std::optional<std::string>>> before;
  for (const auto& [name, value] : variables) {
    const char* now = std::getenv(name.c_str());
    before.emplace_back(name, now ? std::optional<std::string>(now) : std::nullopt);
    ::setenv(name.c_str(), value.c_str(), 1);
  }
  ChildOutput output = run_and_read(own_path(), words);
  for (const auto& [name, value] : before) value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  return output;
}

}  // namespace cohort::cli
