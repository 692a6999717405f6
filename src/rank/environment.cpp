#include "rank/environment.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdlib>

#include "core/error.h"

namespace cohort::rank {
namespace {

constexpr int kMaxPort = 65535;
// Slurm gives no port. One in this range follows from the job (and step), below Linux's default ephemeral range (32768
// up), so that two jobs on one node rarely meet and no outgoing connection holds it.
constexpr int kFirstDerivedPort = 15000;
constexpr int kDerivedPorts = 15000;

template <class Integer>
Integer to_number(const std::string& name, const std::string& text) {
  Integer value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  COHORT_THROW_UNLESS(problem == std::errc() && end == text.data() + text.size(), "{}='{}' is not a whole number", name,
                      text);
  return value;
}

class Variables {
 public:
  explicit Variables(const VariableLookup& lookup) : lookup_(lookup) {}

  std::optional<std::string> text(const std::string& name) const {
    std::optional<std::string> value = lookup_(name);
    if (value && value->empty()) return std::nullopt;
    return value;
  }
  std::optional<int> number(const std::string& name) const {
    const auto value = text(name);
    if (!value) return std::nullopt;
    return to_number<int>(name, *value);
  }
  int require(const std::string& name, const char* because) const {
    const auto value = number(name);
    COHORT_THROW_UNLESS(value.has_value(), "{} is not set, although {}; set it, or unset the others to run one process",
                        name, because);
    return *value;
  }

 private:
  const VariableLookup& lookup_;
};

bool is_loopback_name(const std::string& host) {
  return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

void check_range(const char* rank_name, int rank, const char* size_name, int size) {
  COHORT_THROW_UNLESS(size >= 1, "{}={}: a job has at least one process", size_name, size);
  COHORT_THROW_UNLESS(rank >= 0 && rank < size, "{}={} does not fit {}={}: ranks run from 0 to {}", rank_name, rank,
                      size_name, size, size - 1);
}

void check_local(const Environment& env, const char* local_rank_name, const char* local_size_name) {
  if (env.local_world_size == 0) {
    COHORT_THROW_UNLESS(env.local_rank >= 0 && env.local_rank < env.world_size,
                        "{}={} does not fit a job of {} processes", local_rank_name, env.local_rank, env.world_size);
    return;
  }
  check_range(local_rank_name, env.local_rank, local_size_name, env.local_world_size);
  COHORT_THROW_UNLESS(env.local_world_size <= env.world_size, "{}={} is more than the {} processes of the job",
                      local_size_name, env.local_world_size, env.world_size);
}

void check_port(const std::string& origin, int port) {
  COHORT_THROW_UNLESS(port > 0 && port <= kMaxPort, "{}={} is not a TCP port (1 to {})", origin, port, kMaxPort);
}

int derived_port(std::uint64_t number) {
  return kFirstDerivedPort + static_cast<int>(number % static_cast<std::uint64_t>(kDerivedPorts));
}

Environment from_variables(const Variables& vars, bool meets) {
  Environment env;
  env.source = EnvironmentSource::kVariables;
  env.rank = vars.require("RANK", "WORLD_SIZE or LOCAL_RANK is");
  env.world_size = vars.require("WORLD_SIZE", "RANK is");
  check_range("RANK", env.rank, "WORLD_SIZE", env.world_size);

  const auto addr = vars.text("MASTER_ADDR");
  const auto port = vars.number("MASTER_PORT");
  COHORT_THROW_UNLESS(
      addr || !meets,
      "MASTER_ADDR is not set, although RANK and WORLD_SIZE are; set it to the address of rank 0's host "
      "(127.0.0.1 when all processes run on this one)");
  COHORT_THROW_UNLESS(
      port || !meets,
      "MASTER_PORT is not set, although RANK and WORLD_SIZE are; set it to the same free port for all ranks");
  if (port) check_port("MASTER_PORT", *port);
  env.master_addr = addr.value_or(env.master_addr);
  env.master_port = port.value_or(0);

  const auto local_rank = vars.number("LOCAL_RANK");
  const auto local_size = vars.number("LOCAL_WORLD_SIZE");
  const bool one_node = is_loopback_name(env.master_addr);
  if (local_rank) {
    env.local_rank = *local_rank;
  } else {
    COHORT_THROW_UNLESS(
        one_node,
        "LOCAL_RANK is not set, and MASTER_ADDR={} may be another host, so that this process cannot know "
        "which of its host's devices is its own; set LOCAL_RANK to its number on this host",
        env.master_addr);
    env.local_rank = env.rank;
  }
  env.local_world_size = local_size.value_or(one_node ? env.world_size : 0);
  COHORT_THROW_UNLESS(!local_size || *local_size >= 1, "LOCAL_WORLD_SIZE={}: at least this process runs here",
                      local_size.value_or(0));
  check_local(env, "LOCAL_RANK", "LOCAL_WORLD_SIZE");

  env.agent_hosts_store = vars.text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  env.restart_count = vars.number("TORCHELASTIC_RESTART_COUNT").value_or(0);
  env.full_world_size = vars.number("COHORT_FULL_WORLD_SIZE").value_or(0);
  env.run_id = vars.text("TORCHELASTIC_RUN_ID").value_or("");
  if (env.rank == 0 && !env.agent_hosts_store) env.store_fd = vars.number("COHORT_STORE_FD");
  return env;
}

/// The names of the variables that a starter of MPI programs sets.
struct MpiNames {
  const char *rank, *world_size, *local_rank, *local_world_size;
  const char* because;  ///< they must all be set: one of them is
};

void read_numbers(const Variables& vars, const MpiNames& names, Environment& env) {
  env.rank = vars.require(names.rank, names.because);
  env.world_size = vars.require(names.world_size, names.because);
  env.local_rank = vars.require(names.local_rank, names.because);
  env.local_world_size = vars.require(names.local_world_size, names.because);
  check_range(names.rank, env.rank, names.world_size, env.world_size);
  check_local(env, names.local_rank, names.local_world_size);
}

Environment from_open_mpi(const Variables& vars, bool meets) {
  Environment env;
  env.source = EnvironmentSource::kOpenMpi;
  read_numbers(vars,
               {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
                "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_RANK is"},
               env);

  const auto addr = vars.text("MASTER_ADDR");
  COHORT_THROW_UNLESS(
      addr || env.one_node() || !meets,
      "MASTER_ADDR is not set, and Open MPI started {} processes on several nodes ({} here); pass rank 0's "
      "host: mpirun -x MASTER_ADDR=HOST -x MASTER_PORT=PORT ...",
      env.world_size, env.local_world_size);
  env.master_addr = addr.value_or("127.0.0.1");
  if (const auto port = vars.number("MASTER_PORT")) {
    check_port("MASTER_PORT", *port);
    env.master_port = *port;
  } else {
    // All processes of one mpirun share these; which of them is set depends on Open MPI's version.
    for (const char* name : {"OMPI_MCA_ess_base_jobid", "PMIX_NAMESPACE"}) {
      const auto job = vars.text(name);
      if (!job) continue;
      std::uint64_t number = 0;
      for (const char c : *job) number = number * 131 + static_cast<unsigned char>(c);
      env.master_port = derived_port(number);
      env.port_origin = format("derived from {}={}", name, *job);
      break;
    }
    COHORT_THROW_UNLESS(env.master_port != 0 || !meets,
                        "MASTER_PORT is not set, and Open MPI gave no job number to derive one from; pass a free port: "
                        "mpirun -x MASTER_PORT=PORT ...");
  }
  return env;
}

/// Hydra, MPICH's process manager, sets PMI_RANK and PMI_SIZE as every PMI-1 server does (srun --mpi=pmi2, too), and
/// MPI_LOCALRANKID and MPI_LOCALNRANKS of its own.
Environment from_mpich(const Variables& vars, bool meets) {
  Environment env;
  env.source = EnvironmentSource::kMpich;
  read_numbers(vars, {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "MPI_LOCALRANKID is"}, env);
  const auto addr = vars.text("MASTER_ADDR");
  COHORT_THROW_UNLESS(addr || env.one_node() || !meets,
                      "MASTER_ADDR is not set, and mpirun started {} processes on several nodes ({} here); before it: "
                      "export MASTER_ADDR=HOST MASTER_PORT=PORT, where HOST is the first node",
                      env.world_size, env.local_world_size);
  env.master_addr = addr.value_or("127.0.0.1");
  const auto port = vars.number("MASTER_PORT");
  COHORT_THROW_UNLESS(port || env.world_size == 1 || !meets,
                      "MASTER_PORT is not set, and MPICH's mpirun gives no job number to derive one from; before it: "
                      "export MASTER_PORT=29500, or another port that is free");
  if (port) check_port("MASTER_PORT", *port);
  env.master_port = port.value_or(0);
  return env;
}

Environment from_slurm(const Variables& vars, bool meets) {
  Environment env;
  env.source = EnvironmentSource::kSlurm;
  const char* because = "SLURM_PROCID is";
  env.rank = vars.require("SLURM_PROCID", because);
  const char* size_name = vars.text("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  env.world_size = vars.require(size_name, because);
  env.local_rank = vars.require("SLURM_LOCALID", because);
  check_range("SLURM_PROCID", env.rank, size_name, env.world_size);

  std::string nodes_name;
  std::string nodes;
  for (const char* name : {"SLURM_STEP_NODELIST", "SLURM_NODELIST", "SLURM_JOB_NODELIST"}) {
    if (const auto value = vars.text(name)) {
      nodes_name = name;
      nodes = *value;
      break;
    }
  }
  const auto addr = vars.text("MASTER_ADDR");
  COHORT_THROW_UNLESS(
      addr || !nodes.empty() || !meets,
      "SLURM_STEP_NODELIST is not set, although SLURM_PROCID is; start the job with srun, or set MASTER_ADDR");
  if (addr || !nodes.empty()) env.master_addr = addr ? *addr : first_host(nodes);

  const char* tasks_name =
      vars.text("SLURM_STEP_TASKS_PER_NODE") ? "SLURM_STEP_TASKS_PER_NODE" : "SLURM_TASKS_PER_NODE";
  const auto tasks = vars.text(tasks_name);
  const auto node = vars.number("SLURM_NODEID");
  if (tasks && node) {
    env.local_world_size = tasks_on_node(*tasks, *node);
  } else {
    const int count = vars.number("SLURM_STEP_NUM_NODES").value_or(vars.number("SLURM_NNODES").value_or(0));
    env.local_world_size = count == 1 ? env.world_size : 0;
  }
  check_local(env, "SLURM_LOCALID", tasks_name);

  const auto job = vars.text("SLURM_JOB_ID") ? vars.text("SLURM_JOB_ID") : vars.text("SLURM_JOBID");
  const auto step = vars.text("SLURM_STEP_ID");
  env.run_id = job.value_or("");
  if (const auto port = vars.number("MASTER_PORT")) {
    check_port("MASTER_PORT", *port);
    env.master_port = *port;
  } else {
    COHORT_THROW_UNLESS(job || !meets,
                        "SLURM_JOB_ID is not set, although SLURM_PROCID is; set MASTER_PORT to a free port");
    if (!job) return env;
    // A federation's job numbers begin with its cluster's number and pass 2^31.
    const auto number = to_number<std::uint64_t>("SLURM_JOB_ID", *job);
    const auto step_number = step ? to_number<std::uint64_t>("SLURM_STEP_ID", *step) : 0;
    // Steps of one job may run side by side; a large stride keeps them off the ports of neighbouring jobs.
    env.master_port = derived_port(number + 1009 * step_number);
    env.port_origin = format("derived from SLURM_JOB_ID={}{}", *job, step ? ", SLURM_STEP_ID=" + *step : "");
  }
  return env;
}

/// srun sets SLURM_STEP_ID in its tasks. A batch script and a shell of salloc carry SLURM_PROCID=0 and SLURM_NTASKS as
/// well, but are one process; their step numbers, where set, are reserved ones (slurm.h: SLURM_BATCH_SCRIPT 0xfffffffb,
/// SLURM_INTERACTIVE_STEP 0xfffffffa).
bool inside_srun(const Variables& vars) {
  const auto step = vars.text("SLURM_STEP_ID");
  if (!step) return false;
  unsigned long long number = 0;
  const auto [end, problem] = std::from_chars(step->data(), step->data() + step->size(), number);
  return problem == std::errc() && end == step->data() + step->size() && number < 0xfffffff0ULL;
}

}  // namespace

const char* to_string(EnvironmentSource source) {
  switch (source) {
    case EnvironmentSource::kSingleProcess:
      return "one process";
    case EnvironmentSource::kVariables:
      return "RANK and WORLD_SIZE";
    case EnvironmentSource::kSlurm:
      return "Slurm";
    case EnvironmentSource::kOpenMpi:
      return "Open MPI";
    case EnvironmentSource::kMpich:
      return "MPICH";
  }
  return "?";
}

std::string Environment::describe() const {
  if (!launched()) return "one process (no launcher's variables are set)";
  const std::string local = local_world_size > 0 ? format("local rank {} of {}", local_rank, local_world_size)
                                                 : format("local rank {}", local_rank);
  return format("rank {} of {} ({}), from {}, store at {}:{}{}", rank, world_size, local, to_string(source),
                master_addr, master_port, agent_hosts_store ? " (hosted by the agent)" : "");
}

bool Environment::on_loopback() const {
  return one_node() || is_loopback_name(master_addr);
}

std::optional<std::string> process_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return std::string(value);
}

Environment read_environment(const VariableLookup& lookup, StoreUse store) {
  const Variables vars(lookup);
  const bool meets = store == StoreUse::kNeeded;
  if (vars.text("RANK") || vars.text("WORLD_SIZE") || vars.text("LOCAL_RANK")) return from_variables(vars, meets);
  if (vars.text("OMPI_COMM_WORLD_RANK") || vars.text("OMPI_COMM_WORLD_SIZE")) return from_open_mpi(vars, meets);
  // Before Slurm: within its jobs mpirun's daemons are Slurm's tasks, and what they start has their variables.
  if (vars.text("PMI_RANK") && vars.text("MPI_LOCALRANKID")) return from_mpich(vars, meets);
  const bool slurm = vars.text("SLURM_PROCID").has_value();
  if (slurm && inside_srun(vars)) return from_slurm(vars, meets);

  Environment env;
  if (slurm && vars.number("SLURM_NTASKS").value_or(1) > 1)
    env.notes.push_back(format(
        "SLURM_NTASKS={}, but this process was not started by srun (no SLURM_STEP_ID): it runs alone; start it with "
        "srun to use all tasks",
        *vars.text("SLURM_NTASKS")));
  if (vars.text("MASTER_ADDR") || vars.text("MASTER_PORT"))
    env.notes.push_back("MASTER_ADDR or MASTER_PORT is set, but RANK and WORLD_SIZE are not: this process runs alone");
  return env;
}

std::string first_host(const std::string& node_list) {
  const std::size_t open = node_list.find('[');
  const std::size_t comma = node_list.find(',');
  const std::size_t end = std::min(comma, node_list.size());
  if (open == std::string::npos || open > end) {
    COHORT_THROW_UNLESS(end > 0, "'{}' is not a Slurm node list", node_list);
    return node_list.substr(0, end);
  }
  // prefix[first-last,...]suffix: the first number, with its leading zeros.
  const std::size_t close = node_list.find(']', open);
  COHORT_THROW_UNLESS(close != std::string::npos && close > open + 1, "'{}' is not a Slurm node list", node_list);
  const std::string inside = node_list.substr(open + 1, close - open - 1);
  const std::string number = inside.substr(0, inside.find_first_of("-,"));
  COHORT_THROW_UNLESS(!number.empty(), "'{}' is not a Slurm node list", node_list);
  std::string rest = node_list.substr(close + 1);
  rest = rest.find('[') < rest.find(',') ? first_host(rest) : rest.substr(0, rest.find(','));
  return node_list.substr(0, open) + number + rest;
}

int tasks_on_node(const std::string& tasks_per_node, int node_index) {
  const auto bad = [&] { return Error(format("'{}' is not a list of tasks per node", tasks_per_node)); };
  std::size_t begin = 0;
  int node = 0;
  while (begin < tasks_per_node.size()) {
    std::size_t end = tasks_per_node.find(',', begin);
    if (end == std::string::npos) end = tasks_per_node.size();
    const std::string item = tasks_per_node.substr(begin, end - begin);
    const std::size_t bracket = item.find("(x");
    const int tasks = to_number<int>("tasks per node", item.substr(0, bracket));
    int repeat = 1;
    if (bracket != std::string::npos) {
      if (item.back() != ')') throw bad();
      repeat = to_number<int>("tasks per node", item.substr(bracket + 2, item.size() - bracket - 3));
    }
    if (tasks < 1 || repeat < 1) throw bad();
    if (node_index < node + repeat) return tasks;
    node += repeat;
    begin = end + 1;
  }
  throw Error(format("node {} is not in the list of tasks per node '{}'", node_index, tasks_per_node));
}

}  // namespace cohort::rank
