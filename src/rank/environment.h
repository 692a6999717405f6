/// Which process of a job this is: read from the variables that torchrun, `cohort launch`, Slurm, Open MPI or MPICH set.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace cohort::rank {

enum class EnvironmentSource {
  kSingleProcess,  ///< no launcher: one process
  kVariables,      ///< RANK, WORLD_SIZE, ...: torchrun, `cohort launch`, or set by hand ("env://")
  kSlurm,          ///< srun
  kOpenMpi,        ///< its mpirun
  kMpich,          ///< mpirun of MPICH, and of what is made from it (Intel MPI)
};

/// "one process", "RANK and WORLD_SIZE", "Slurm", "Open MPI", "MPICH".
const char* to_string(EnvironmentSource source);

struct Environment {
  EnvironmentSource source = EnvironmentSource::kSingleProcess;
  int rank = 0;
  int world_size = 1;
  int local_rank = 0;                     ///< among the processes of this node
  int local_world_size = 1;               ///< processes on this node; 0 when nobody said
  std::string master_addr = "127.0.0.1";  ///< host of the store
  int master_port = 0;                    ///< TCP port of the store; 0: none was given (one process only)
  /// Where master_port comes from, for messages: "MASTER_PORT", or "derived from SLURM_JOB_ID=77".
  std::string port_origin = "MASTER_PORT";
  /// The agent (torchrun, `cohort launch` over several nodes) hosts the store: no rank starts one.
  bool agent_hosts_store = false;
  /// A bound socket that does not listen yet, inherited from `cohort launch` by rank 0 (COHORT_STORE_FD): the store
  /// takes it over, so that nobody else can take the port in between.
  std::optional<int> store_fd;
  int restart_count = 0;  ///< TORCHELASTIC_RESTART_COUNT: how often the launcher has restarted the job
  /// Processes of an elastic job when all of its nodes take part (COHORT_FULL_WORLD_SIZE); 0: the job is not elastic.
  int full_world_size = 0;
  int generation = 0;  ///< how often the ranks have connected anew after one of them had died (dist/recovery.h)
  std::string run_id;  ///< TORCHELASTIC_RUN_ID, or the Slurm job
  /// What the user may want to know: variables that were seen and not used, and why.
  std::vector<std::string> notes;

  bool launched() const { return source != EnvironmentSource::kSingleProcess; }
  /// True when all processes are known to run on this node.
  bool one_node() const { return local_world_size == world_size; }
  /// True when the processes can only be on this machine, though perhaps under several agents: they meet on loopback.
  bool on_loopback() const;
  /// "rank 1 of 4 (local rank 1 of 2), from Slurm, store at node1:15077".
  std::string describe() const;
};

/// Value of a variable, or nothing when it is not set. An empty value counts as not set.
using VariableLookup = std::function<std::optional<std::string>(const std::string& name)>;

/// The variables of this process.
std::optional<std::string> process_variable(const std::string& name);

enum class StoreUse {
  kNeeded,  ///< the processes join a group (dist::Group): an address and a port must be known
  kNone,    ///< each works on its share by itself: MASTER_ADDR and MASTER_PORT need not be known
};

/// Reads the environment. In this order: RANK/WORLD_SIZE (env://), Open MPI's OMPI_COMM_WORLD_*, MPICH's PMI_* and
/// MPI_LOCAL*, Slurm's SLURM_* inside a step that srun started; else one process. MASTER_ADDR and MASTER_PORT, where set,
/// override what Slurm or Open MPI say; MPICH says none, and over several processes needs them.
///
/// Throws Error naming the variable when a set is partial (RANK without WORLD_SIZE), inconsistent (RANK=4,
/// WORLD_SIZE=4), or not a number.
Environment read_environment(const VariableLookup& lookup = process_variable, StoreUse store = StoreUse::kNeeded);

/// First host of a Slurm node list: "node[03-05,9],other1" gives "node03". Throws Error for what is not a node list.
/// Format: Slurm's hostlist expressions, see `man scontrol`, "show hostnames".
std::string first_host(const std::string& node_list);

/// Tasks on node `node_index` from SLURM_STEP_TASKS_PER_NODE, e.g. "2(x3),1" gives 2, 2, 2, 1. Throws Error.
int tasks_on_node(const std::string& tasks_per_node, int node_index);

}  // namespace cohort::rank
