/// Real processes for tests: started with their output in files, waited for with a deadline, killed when a test ends
/// early. Variables of launchers (RANK, SLURM_*, ...) and of devices are not inherited.
#pragma once
#include <chrono>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

namespace cohort::testing {
namespace fs = std::filesystem;

/// s that are waited for anything: for ever, as far as a test is concerned that is to pass. What comes within a second on
/// a quiet machine may take twenty on a busy one.
inline constexpr double kPatience = 240;

/// A folder of its own for each test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string text_of(const fs::path& path);
std::vector<std::string> lines_of(const std::string& text);
inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Outcome {
  int code = -1;    ///< exit code, or 128 + signal as a shell reports it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
  double peak = 0;  ///< highest resident memory, bytes
  std::string output() const { return out + err; }
};

class Process {
 public:
  /// Starts arguments[0] with these variables added to the environment ("" removes one). `inherited` descriptors stay
  /// open in the child under their numbers.
  explicit Process(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables = {},
                   const std::vector<int>& inherited = {});
  ~Process();
  Process(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  std::string out() const { return text_of(folder_->path() / "out"); }
  std::string err() const { return text_of(folder_->path() / "err"); }

  /// Waits for the end; after `seconds` it is killed and the test fails.
  Outcome wait(double seconds = kPatience);

 private:
  std::unique_ptr<TemporaryFolder> folder_;
  pid_t pid_ = -1;
  bool waited_ = false;
};

inline Outcome run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables = {},
                   double seconds = kPatience) {
  return Process(arguments, variables).wait(seconds);
}

/// Waits until the condition holds; false when it does not within the time.
template <class Condition>
bool eventually(Condition condition, double seconds = kPatience) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// True while the process exists and is no zombie.
bool alive(pid_t pid);

std::string cohort_path();
/// A binary of this build's test folder.
std::string test_binary(const std::string& name);
/// COHORT_PYTHON, else "python3".
std::string python_path();

/// `cohort launch` with these arguments.
std::vector<std::string> launch(std::vector<std::string> arguments);

/// A TCP port that is free, and so is the one after it, for jobs that must be told of one. The kernel gives it to nobody by
/// itself, and tests that run at the same time get others.
int free_port();
/// True where ::1 can be bound; some containers have no IPv6.
bool has_ipv6_loopback();

}  // namespace cohort::testing
