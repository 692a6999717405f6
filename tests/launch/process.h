/// Real processes for tests: started with their output in files, waited for with a deadline, killed when a test ends
/// early.
#pragma once
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace cohort::testing {
namespace fs = std::filesystem;

/// A folder of its own for each test, removed afterwards.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (fs::temp_directory_path() / "cohort-test-XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

inline std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;    ///< exit code, or 128 + signal as a shell reports it
  std::string out;  ///< standard output
  std::string err;  ///< standard error
};

class Process {
 public:
  /// Starts arguments[0] with these variables added to the environment ("" removes one).
  explicit Process(const std::vector<std::string>& arguments,
                   const std::map<std::string, std::string>& variables = {}) {
    std::vector<char*> argv;
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    const std::string out = (folder_.path() / "out").string();
    const std::string err = (folder_.path() / "err").string();
    pid_ = fork();
    if (pid_ == 0) {
      // Tests started by a launcher or by ctest must not leak its variables into the job.
      for (const char* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT", "OMP_NUM_THREADS",
                               "TORCHELASTIC_ERROR_FILE", "CUDA_VISIBLE_DEVICES"})
        unsetenv(name);
      for (const auto& [name, value] : variables)
        value.empty() ? unsetenv(name.c_str()) : setenv(name.c_str(), value.c_str(), 1);
      dup2(open("/dev/null", O_RDONLY), 0);
      dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
      dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
      execvp(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Process() {
    if (!waited_) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const { ::kill(pid_, signal); }
  std::string out() const { return text_of(folder_.path() / "out"); }
  std::string err() const { return text_of(folder_.path() / "err"); }

  /// Waits for the end; after `seconds` it is killed and the test fails.
  Outcome wait(double seconds = 60) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
    int status = 0;
    while (waitpid(pid_, &status, WNOHANG) == 0) {
      if (std::chrono::steady_clock::now() > end) {
        ADD_FAILURE() << "still running after " << seconds << " s\n" << out() << err();
        ::kill(pid_, SIGKILL);
        waitpid(pid_, &status, 0);
        break;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    waited_ = true;
    return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out(), err()};
  }

 private:
  TemporaryFolder folder_;
  pid_t pid_ = -1;
  bool waited_ = false;
};

inline Outcome run(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables = {},
                   double seconds = 60) {
  return Process(arguments, variables).wait(seconds);
}

/// Waits until the condition holds; false when it does not within the time.
template <class Condition>
bool eventually(Condition condition, double seconds = 20) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return true;
}

/// True while the process exists and is no zombie.
inline bool alive(pid_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const auto paren = stat.rfind(')');
  return paren != std::string::npos && paren + 2 < stat.size() && stat[paren + 2] != 'Z';
}

inline std::string cohort_path() {
  const char* folder = std::getenv("COHORT_BIN");
  return (folder ? std::string(folder) : COHORT_BINARY_DIR "/bin") + "/cohort";
}

inline std::string python_path() {
  const char* python = std::getenv("COHORT_PYTHON");
  return python ? python : "python3";
}

/// `cohort launch` with these arguments.
inline std::vector<std::string> launch(std::vector<std::string> arguments) {
  std::vector<std::string> all = {cohort_path(), "launch"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// A TCP port of loopback that was free a moment ago, for jobs whose agents must be told of one.
inline int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  EXPECT_TRUE(bound) << "no port can be bound";
  return ntohs(address.sin_port);
}

/// True where ::1 can be bound; some containers have no IPv6.
inline bool has_ipv6_loopback() {
  const std::string addresses = text_of("/proc/net/if_inet6");
  return addresses.find("00000000000000000000000000000001") != std::string::npos;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace cohort::testing
