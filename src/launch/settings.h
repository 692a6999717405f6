/// What a job is: how many ranks run which command, and how the agent treats them.
#pragma once
#include <array>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "core/device_environment.h"

namespace cohort::launch {

/// Streams of a rank, numbered as torchrun does: 0 none, 1 standard output, 2 standard error, 3 both.
struct StreamChoice {
  int all = 0;                 ///< for every rank that by_rank does not name
  std::map<int, int> by_rank;  /// by local rank; a text "0:1,1:2" names some and leaves the others at 0
  bool given = false;

  int of(int local_rank) const {
    const auto found = by_rank.find(local_rank);
    return found == by_rank.end() ? all : found->second;
  }
};

/// Reads "3" or "0:1,1:2"; throws Error naming the flag.
StreamChoice parse_streams(const std::string& text, const std::string& flag);

/// Reads "SIGTERM,SIGINT"; throws Error naming the unknown one.
std::vector<int> parse_signals(const std::string& text);
/// "SIGTERM"; "signal 63" where it has no name.
std::string signal_name(int signal);

/// Forwarded unless the user says otherwise: torchrun's, and the two by which schedulers announce the end of a job's
/// time (sbatch --signal=USR1@60).
inline constexpr std::array kForwarded = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

/// s, a year: what is longer is a slip of the keyboard, and far longer no clock can count.
inline constexpr double kLongestGracePeriod = 365.0 * 24 * 3600;

struct LaunchSettings {
  int ranks = 1;      ///< processes on this node
  int nodes = 1;      ///< that take part, each with an agent of its own
  int node_rank = 0;  ///< which of them this is
  /// The nodes meet at rendezvous_host, may come and go, and are counted there (launch/elastic_rendezvous.h): `nodes`
  /// is the most of them, node_rank is not used.
  bool elastic = false;
  /// Likewise, but every node's number is given by node_rank, node 0 hosts the rendezvous, and all of them are needed.
  bool numbered_nodes = false;
  int least_nodes = 1;
  std::string rendezvous_host;
  int rendezvous_port = 29400;
  /// Where the nodes meet when the host of that has died: (name, port), each an agent's machine.
  std::vector<std::pair<std::string, int>> further_endpoints;
  std::string
      state_file;  ///< who hosts it, on a file system that all nodes share (launch/term_file.h); "": there is none
  std::string job_secret_file;       ///< "": the variable COHORT_JOB_SECRET
  double last_call = 5;              ///< s that further nodes are waited for once the least number is there
  std::string node_id;               ///< of this agent, unlike all others'
  std::vector<std::string> command;  ///< program and arguments
  bool fill_local_rank = true;       ///< "${local_rank}" in an argument becomes the rank's number
  std::string role = "default";      ///< ROLE_NAME
  std::string run_id;                ///< TORCHELASTIC_RUN_ID; "" makes one
  /// Of the store. One node: any address of this machine, and the ranks get kLoopback (launch/port.h). Several: an
  /// address of node 0 that all of them reach.
  std::string master_addr = "127.0.0.1";
  int master_port = 0;   ///< 0: a free one, kept reserved for the life of the job; several nodes: the same on all
  int max_restarts = 0;  ///< how often the job goes on after a rank has failed; several nodes: only where they meet
  /// After a rank has died, the others keep what they have in memory and a new one takes its place, where the program
  /// can (launch/recovery.h). It counts as a restart. false: all ranks start again.
  bool recovers_from_memory = true;
  double hang_timeout = 10;             ///< s, HangLimits::least (launch/hang_watch.h); 0: ranks may be silent
  double hang_timeout_elsewhere = 600;  ///< s, HangLimits::elsewhere
  /// The ranks say when their first training step is made (COHORT_FIRST_STEP_FILE). One that fails by itself before it
  /// would fail again: the job is not restarted.
  bool tells_first_step = false;
  std::string log_dir;     ///< "" stores nothing unless redirects or tee ask for it (then in a temporary folder)
  StreamChoice redirects;  ///< streams that go to files only
  StreamChoice tee;        ///< streams that go to files and to the console
  std::set<int> local_ranks_filter;  ///< ranks whose output reaches the console; empty: all
  DevicePolicy device_policy = DevicePolicy::kShared;
  std::optional<std::string> gpu_ids;  ///< narrows CUDA_VISIBLE_DEVICES, see narrow_mask; nothing: as it is
  bool without_gpu = false;            ///< the ranks are told to work on the CPU: no device variables
  bool expects_gpu = false;            ///< say so when there is none (--multi_gpu)
  double grace_period = 30;            ///< s between SIGTERM and SIGKILL, at most kLongestGracePeriod
  std::vector<int> signals;            ///< forwarded to the ranks; empty: kForwarded
  int threads_per_rank = 0;  ///< OMP_NUM_THREADS; 0: leave a set one, else cores / ranks when there are several ranks
  std::vector<std::pair<std::string, std::string>> environment;  ///< further variables for every rank
  bool quiet = false;                                            ///< no line about what was chosen
  /// The launcher's own command line up to the program, as a shell reads it: COHORT_LAUNCH_COMMAND, from which a rank
  /// makes the command that continues its run. "": unknown.
  std::string command_line;

  /// A rank whose group breaks should wait for others: a new one, or, in an elastic job, another number of them.
  bool recovers() const { return recovers_from_memory && (elastic || (max_restarts > 0 && ranks > 1 && nodes == 1)); }
};

/// What a job on several nodes does when a rank of it dies, in a sentence for its banner.
std::string what_follows_a_death(const LaunchSettings& settings);

}  // namespace cohort::launch
