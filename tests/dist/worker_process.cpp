#include "dist/worker_process.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace cohort::test {
namespace {

bool belongs_to_a_launcher(const std::string& name) {
  for (const char* prefix : {"SLURM_", "OMPI_", "PMIX_", "TORCHELASTIC_", "GLOO_", "COHORT_STORE_FD"})
    if (name.rfind(prefix, 0) == 0) return true;
  for (const char* exact : {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"})
    if (name == exact) return true;
  return false;
}

std::string read_all(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

WorkerProcess::WorkerProcess(std::vector<std::string> command, std::map<std::string, std::string> variables,
                             std::vector<int> inherited) {
  char path[] = "/tmp/cohort_worker_XXXXXX";
  const int log = mkstemp(path);
  if (log < 0) throw std::runtime_error("no temporary file");
  log_path_ = path;

  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string text(*entry);
    const std::string name = text.substr(0, text.find('='));
    if (!belongs_to_a_launcher(name) && !variables.contains(name)) environment.push_back(text);
  }
  for (const auto& [name, value] : variables) environment.push_back(name + "=" + value);
  std::vector<char*> envp;
  for (std::string& entry : environment) envp.push_back(entry.data());
  envp.push_back(nullptr);
  std::vector<char*> argv;
  for (std::string& word : command) argv.push_back(word.data());
  argv.push_back(nullptr);

  pid_ = fork();
  if (pid_ == 0) {
    dup2(log, STDOUT_FILENO);
    dup2(log, STDERR_FILENO);
    for (const int fd : inherited) fcntl(fd, F_SETFD, 0);
    execve(argv[0], argv.data(), envp.data());
    dprintf(STDERR_FILENO, "cannot start %s\n", argv[0]);
    _exit(127);
  }
  close(log);
}

WorkerProcess::WorkerProcess(WorkerProcess&& other) noexcept : pid_(other.pid_), log_path_(std::move(other.log_path_)) {
  other.pid_ = -1;
  other.log_path_.clear();
}

WorkerProcess::~WorkerProcess() {
  if (pid_ > 0) {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  if (!log_path_.empty()) unlink(log_path_.c_str());
}

void WorkerProcess::send(int signal) const {
  kill(pid_, signal);
}

WorkerResult WorkerProcess::wait(std::chrono::seconds limit) {
  WorkerResult result;
  const auto end = std::chrono::steady_clock::now() + limit;
  int status = 0;
  while (waitpid(pid_, &status, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() > end) {
      result.timed_out = true;
      kill(pid_, SIGKILL);
      waitpid(pid_, &status, 0);
      break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  pid_ = -1;
  if (WIFEXITED(status)) result.exit_code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.output = read_all(log_path_);
  return result;
}

std::string WorkerProcess::output_so_far() const {
  return read_all(log_path_);
}

bool WorkerProcess::wait_for_output(const std::string& text, std::chrono::seconds limit) const {
  const auto end = std::chrono::steady_clock::now() + limit;
  while (std::chrono::steady_clock::now() < end) {
    if (output_so_far().find(text) != std::string::npos) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

ReservedPort::ReservedPort() {
  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  if (bind(fd, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    throw std::runtime_error("no free port");
  port = ntohs(address.sin_port);
}

ReservedPort::~ReservedPort() {
  close(fd);
}

std::map<std::string, std::string> rank_variables(int rank, int world_size, int port) {
  const std::string r = std::to_string(rank);
  const std::string n = std::to_string(world_size);
  return {{"RANK", r},
          {"WORLD_SIZE", n},
          {"LOCAL_RANK", r},
          {"LOCAL_WORLD_SIZE", n},
          {"MASTER_ADDR", "127.0.0.1"},
          {"MASTER_PORT", std::to_string(port)},
          {"OMP_NUM_THREADS", "1"}};
}

std::vector<WorkerResult> run_ranks(const std::vector<std::string>& command, int world_size,
                                    const std::map<std::string, std::string>& more, std::chrono::seconds limit) {
  const ReservedPort reserved;
  std::vector<WorkerProcess> workers;
  for (int rank = 0; rank < world_size; ++rank) {
    auto variables = rank_variables(rank, world_size, reserved.port);
    for (const auto& [name, value] : more) variables[name] = value;
    if (rank == 0) variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
    workers.emplace_back(command, variables, rank == 0 ? std::vector<int>{reserved.fd} : std::vector<int>{});
  }
  std::vector<WorkerResult> results;
  for (WorkerProcess& worker : workers) results.push_back(worker.wait(limit));
  return results;
}

TemporaryFolder::TemporaryFolder() {
  char name[] = "/tmp/cohort_test_XXXXXX";
  if (mkdtemp(name) == nullptr) throw std::runtime_error("no temporary folder");
  path = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path, ignored);
}

std::string test_binary(const std::string& name) {
  return std::string(COHORT_BINARY_DIR) + "/tests/" + name;
}

std::string python_with_torch() {
  const char* python = std::getenv("COHORT_PYTHON");
  if (python == nullptr || !std::filesystem::exists(python)) return "";
  // Looking for the package costs nothing; importing it here would cost seconds in every test.
  WorkerProcess probe({python, "-c", "import importlib.util as u, sys; sys.exit(0 if u.find_spec('torch') else 1)"},
                      {});
  return probe.wait().exit_code == 0 ? python : "";
}

}  // namespace cohort::test
