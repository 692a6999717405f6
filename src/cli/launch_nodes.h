/// The flags of `cohort launch` that say which nodes take part and where they meet.
#pragma once
#include <string>

#include "cli/launch_flags.h"

namespace cohort::cli {

/// These flags as they were given.
struct NodeFlags {
  std::string nnodes;     ///< --nnodes; "" where it was not given
  int num_machines = 0;   ///< --num_machines, accelerate's name; 0 where it was not given
  int node_rank = -1;     ///< --node-rank; -1 where it was not given
  int machine_rank = -1;  ///< --machine_rank, likewise
  std::string main_process_ip;
  std::string rdzv_endpoint;
  std::string rdzv_backend;
  std::string rdzv_conf;
  std::string nproc_per_node;  ///< "" where it was not given
  int num_processes = -1;      ///< --num_processes, on all machines together; -1 where it was not given
  bool standalone = false;
};

/// Fills in nodes, node_rank, master_addr and master_port of the request's settings, and with several nodes the ranks
/// of each out of --num_processes. master_addr and master_port hold what --master-addr ("": not given) and
/// --master-port (0: not given) say. Throws UsageError for what contradicts itself, and for what this version does not
/// do.
void settle_nodes(LaunchRequest& request, const NodeFlags& flags);

/// Throws UsageError unless this is a port, or 0.
void check_port(const char* flag, int port);

}  // namespace cohort::cli
