/// Test processes: started by fork and exec with an environment of their own, output kept, never left behind.
#pragma once
#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <sys/types.h>

namespace cohort::test {

struct WorkerResult {
  int exit_code = -1;  ///< -1: ended by a signal, or killed because it ran past its limit
  int signal = 0;
  bool timed_out = false;
  std::string output;  ///< standard output and error together
};

class WorkerProcess {
 public:
  /// Variables of launchers (RANK, SLURM_*, ...) are not inherited; `variables` are added. `inherited` descriptors stay
  /// open in the child under their numbers.
  WorkerProcess(std::vector<std::string> command, std::map<std::string, std::string> variables,
                std::vector<int> inherited = {});
  ~WorkerProcess();
  WorkerProcess(WorkerProcess&& other) noexcept;
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;

  pid_t pid() const { return pid_; }
  void send(int signal) const;
  /// Waits; kills the child when it runs longer.
  WorkerResult wait(std::chrono::seconds limit = std::chrono::seconds(90));
  /// What it has written by now.
  std::string output_so_far() const;
  /// Waits until the output holds `text`; false when it did not come in time.
  bool wait_for_output(const std::string& text, std::chrono::seconds limit = std::chrono::seconds(60)) const;

 private:
  pid_t pid_ = -1;
  std::string log_path_;
};

/// A bound, not yet listening socket on a free loopback port, as `cohort launch` hands it to rank 0.
struct ReservedPort {
  ReservedPort();
  ~ReservedPort();
  ReservedPort(const ReservedPort&) = delete;
  ReservedPort& operator=(const ReservedPort&) = delete;
  int fd = -1;
  int port = 0;
};

/// torchrun's variables for one rank of a job on this node.
std::map<std::string, std::string> rank_variables(int rank, int world_size, int port);

/// Starts `world_size` ranks of `command` (rank 0 gets the reserved socket) and waits for all.
std::vector<WorkerResult> run_ranks(const std::vector<std::string>& command, int world_size,
                                    const std::map<std::string, std::string>& more = {},
                                    std::chrono::seconds limit = std::chrono::seconds(90));

/// A folder that is removed at the end.
struct TemporaryFolder {
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string path;
};

/// A binary of this build's test folder.
std::string test_binary(const std::string& name);
/// COHORT_PYTHON when it can import torch, else "" (tests skip).
std::string python_with_torch();

}  // namespace cohort::test
