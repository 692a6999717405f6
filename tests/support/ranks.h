/// The ranks of a job as processes, without a launcher.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "support/process.h"

namespace cohort::testing {

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
std::vector<Outcome> run_ranks(const std::vector<std::string>& command, int world_size,
                               const std::map<std::string, std::string>& more = {}, double seconds = kPatience);

/// COHORT_PYTHON when it can import torch, else "" (tests skip).
std::string python_with_torch();

}  // namespace cohort::testing
