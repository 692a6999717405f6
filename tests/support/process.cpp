#include "support/process.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace cohort::testing {
namespace {

bool stays_here(const std::string& name) {
  for (const char* prefix :
       {"SLURM_", "OMPI_", "PMIX_", "PMI_", "MPI_LOCAL", "TORCHELASTIC_", "GLOO_", "COHORT_STORE_FD"})
    if (name.starts_with(prefix)) return true;
  for (const char* exact : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
                            "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"})
    if (name == exact) return true;
  return false;
}

/// Whether a program could listen there, at any address of this machine. `port` 0: any; the one that it was.
int bindable(int port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  socklen_t size = sizeof address;
  const bool bound = bind(fd, reinterpret_cast<sockaddr*>(&address), size) == 0 &&
                     getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) == 0;
  close(fd);
  return bound ? ntohs(address.sin_port) : 0;
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "cohort-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::stringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

Process::Process(const std::vector<std::string>& arguments, const std::map<std::string, std::string>& variables,
                 const std::vector<int>& inherited)
    : folder_(std::make_unique<TemporaryFolder>()) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry), name = text.substr(0, text.find('='));
    if (!stays_here(name) && !variables.contains(name)) environment.push_back(text);
  }
  for (const auto& [name, value] : variables)
    if (!value.empty()) environment.push_back(name + "=" + value);
  std::vector<char*> argv, envp;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  for (std::string& entry : environment) envp.push_back(entry.data());
  argv.push_back(nullptr), envp.push_back(nullptr);
  const std::string out = (folder_->path() / "out").string(), err = (folder_->path() / "err").string();
  pid_ = fork();
  if (pid_ == 0) {
    dup2(open("/dev/null", O_RDONLY), 0);
    dup2(open(out.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 1);
    dup2(open(err.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600), 2);
    for (const int fd : inherited) fcntl(fd, F_SETFD, 0);
    execvpe(argv[0], argv.data(), envp.data());
    dprintf(2, "cannot start %s\n", argv[0]);
    _exit(127);
  }
}

Process::Process(Process&& other) noexcept
    : folder_(std::move(other.folder_)), pid_(other.pid_), waited_(std::exchange(other.waited_, true)) {}

Process::~Process() {
  if (waited_) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
}

void Process::send(int signal) const {
  ::kill(pid_, signal);
}

Outcome Process::wait(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  int status = 0;
  rusage usage{};
  while (wait4(pid_, &status, WNOHANG, &usage) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      ADD_FAILURE() << "still running after " << seconds << " s\n" << out() << err();
      ::kill(pid_, SIGKILL);
      wait4(pid_, &status, 0, &usage);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  waited_ = true;
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), out(), err(),
          1024.0 * static_cast<double>(usage.ru_maxrss)};
}

bool alive(pid_t pid) {
  const std::string stat = text_of("/proc/" + std::to_string(pid) + "/stat");
  const auto paren = stat.rfind(')');
  return paren != std::string::npos && paren + 2 < stat.size() && stat[paren + 2] != 'Z';
}

std::string cohort_path() {
  const char* folder = std::getenv("COHORT_BIN");
  return (folder ? std::string(folder) : COHORT_BINARY_DIR "/bin") + "/cohort";
}

std::string test_binary(const std::string& name) {
  return COHORT_BINARY_DIR "/tests/" + name;
}

std::string python_path() {
  const char* python = std::getenv("COHORT_PYTHON");
  return python ? python : "python3";
}

std::vector<std::string> launch(std::vector<std::string> arguments) {
  std::vector<std::string> all = {cohort_path(), "launch"};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

int free_port() {
  // Below those that the kernel chooses for connections and for port 0, and none that the guides or `cohort doctor`
  // name. Each process begins at a place of its own.
  constexpr int kLowest = 13000, kHighest = 29000, kEach = 64;
  int kernels = 32768;
  std::ifstream("/proc/sys/net/ipv4/ip_local_port_range") >> kernels;
  static std::atomic<int> given{0};
  const int pairs = (std::min(kernels, kHighest) - kLowest) / 2;
  for (int tries = 0; tries < pairs; ++tries) {
    const int port = kLowest + 2 * ((static_cast<int>(getpid()) % pairs * kEach + given++) % pairs);
    if (bindable(port) && bindable(port + 1)) return port;
  }
  const int port = bindable(0);
  EXPECT_GT(port, 0) << "no port can be bound";
  return port;
}

bool has_ipv6_loopback() {
  return contains(text_of("/proc/net/if_inet6"), "00000000000000000000000000000001");
}

}  // namespace cohort::testing
