#include "report/gnuplot.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/error.h"
#include "core/markup.h"

extern char** environ;

namespace cohort::report {
namespace fs = std::filesystem;
namespace {

/// A file without a name: gnuplot's input and its messages pass through such files and not through pipes, so that
/// neither side can block the other.
class NamelessFile {
 public:
  NamelessFile() : file_(std::tmpfile(), &std::fclose) {
    COHORT_THROW_UNLESS(file_ != nullptr, "cannot create a temporary file for gnuplot: {}", std::strerror(errno));
  }
  int fd() const { return ::fileno(file_.get()); }

  void write(const std::string& text) {
    const bool written = std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size() &&
                         std::fflush(file_.get()) == 0 && std::fseek(file_.get(), 0, SEEK_SET) == 0;
    COHORT_THROW_UNLESS(written, "cannot write a temporary file for gnuplot: {}", std::strerror(errno));
  }
  /// The last `most` bytes.
  std::string tail(std::size_t most) {
    std::string text;
    std::fseek(file_.get(), 0, SEEK_SET);
    char buffer[4096];
    for (std::size_t n; (n = std::fread(buffer, 1, sizeof buffer, file_.get())) > 0;) text.append(buffer, n);
    return text.size() > most ? text.substr(text.size() - most) : text;
  }

 private:
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

class FileActions {
 public:
  FileActions() { ::posix_spawn_file_actions_init(&actions_); }
  ~FileActions() { ::posix_spawn_file_actions_destroy(&actions_); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  posix_spawn_file_actions_t* get() { return &actions_; }

 private:
  posix_spawn_file_actions_t actions_;
};

/// The exit status, or nullopt-like -1 after the timeout, when the child was killed.
int wait_for(pid_t child, double timeout) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + std::chrono::duration<double>(timeout);
  int status = 0;
  for (;;) {
    const pid_t done = ::waitpid(child, &status, WNOHANG);
    if (done == child) return status;
    COHORT_THROW_UNLESS(done == 0 || errno == EINTR, "cannot wait for gnuplot: {}", std::strerror(errno));
    if (Clock::now() > end) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return -1;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

std::string find_gnuplot(const GnuplotSettings& settings) {
  const auto runs = [](const fs::path& path) {
    std::error_code ignored;
    return fs::is_regular_file(path, ignored) && ::access(path.c_str(), X_OK) == 0;
  };
  if (settings.program.find('/') != std::string::npos) return runs(settings.program) ? settings.program : "";
  const char* path = std::getenv("PATH");
  std::string_view rest = path ? path : "/usr/local/bin:/usr/bin:/bin";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const fs::path candidate = fs::path(end == 0 ? "." : std::string(rest.substr(0, end))) / settings.program;
    if (runs(candidate)) return fs::absolute(candidate).string();
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return "";
}

std::string gnuplot_missing_message(const GnuplotSettings& settings) {
  return format("charts are SVG files only: PNG needs the program {} (Debian and Ubuntu: apt-get install gnuplot-nox)",
                settings.program);
}

void run_gnuplot(const std::string& script, const fs::path& folder, const GnuplotSettings& settings) {
  const std::string program = find_gnuplot(settings);
  COHORT_THROW_UNLESS(!program.empty(), "{}", gnuplot_missing_message(settings));
  NamelessFile input, messages;
  input.write(script);
  FileActions actions;
  ::posix_spawn_file_actions_adddup2(actions.get(), input.fd(), STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(actions.get(), STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  ::posix_spawn_file_actions_adddup2(actions.get(), messages.fd(), STDERR_FILENO);
  ::posix_spawn_file_actions_addchdir_np(actions.get(), folder.c_str());
  // Without the user's own settings (.gnuplot), which could change every figure. As a file to load, not as standard
  // input, where gnuplot would go on after an error.
  std::string name = "gnuplot", defaults = "--default-settings", file = "/dev/stdin";
  char* arguments[] = {name.data(), defaults.data(), file.data(), nullptr};
  pid_t child = 0;
  const int error = ::posix_spawn(&child, program.c_str(), actions.get(), nullptr, arguments, environ);
  COHORT_THROW_UNLESS(error == 0, "cannot start {}: {}", program, std::strerror(error));
  const int status = wait_for(child, settings.timeout);
  if (status == 0) return;
  constexpr std::size_t kMessageTail = 500;
  const std::string said = clean_utf8(messages.tail(kMessageTail));
  COHORT_THROW_UNLESS(status != -1, "{} was killed after {} s: {}", program, settings.timeout, said);
  COHORT_THROW_UNLESS(!WIFSIGNALED(status), "{} was ended by signal {}: {}", program, WTERMSIG(status), said);
  throw Error(format("{} failed with exit code {}: {}", program, WEXITSTATUS(status), said));
}

}  // namespace cohort::report
