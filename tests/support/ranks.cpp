#include "support/ranks.h"

#include <cstdlib>
#include <stdexcept>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace cohort::testing {

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

std::vector<Outcome> run_ranks(const std::vector<std::string>& command, int world_size,
                               const std::map<std::string, std::string>& more, double seconds) {
  const ReservedPort reserved;
  std::vector<Process> workers;
  for (int rank = 0; rank < world_size; ++rank) {
    auto variables = rank_variables(rank, world_size, reserved.port);
    for (const auto& [name, value] : more) variables[name] = value;
    if (rank == 0) variables["COHORT_STORE_FD"] = std::to_string(reserved.fd);
    workers.emplace_back(command, variables, rank == 0 ? std::vector<int>{reserved.fd} : std::vector<int>{});
  }
  std::vector<Outcome> results;
  for (Process& worker : workers) results.push_back(worker.wait(seconds));
  return results;
}

std::string python_with_torch() {
  const char* python = std::getenv("COHORT_PYTHON");
  if (python == nullptr || !fs::exists(python)) return "";
  // Looking for the package costs nothing; importing it here would cost seconds in every test.
  return run({python, "-c", "import importlib.util as u, sys; sys.exit(0 if u.find_spec('torch') else 1)"}).code == 0
             ? python
             : "";
}

}  // namespace cohort::testing
