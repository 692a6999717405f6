/// The environment of a rank: torchrun's contract (torch/distributed/elastic/agent/server/local_elastic_agent.py,
/// PyTorch 2.11), the rank's device variables and ours.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "launch/rendezvous.h"
#include "launch/settings.h"

namespace cohort::launch {

/// What all ranks of one attempt share.
struct JobIdentity {
  std::string run_id;
  Meeting meeting;
  int attempt = 0;
  int max_restarts = 0;
  int threads = 0;  ///< OMP_NUM_THREADS to set; 0: leave the variable alone
};

/// What one rank has of its own, beside its number.
struct RankFiles {
  std::string error_file;
  std::string first_step_file;  ///< "": the rank does not tell
  int store_fd = -1;            ///< the job's rank 0: the bound socket of its store
  int page_fd = -1;             ///< the rank's page (rank/page.h)
  int recovery = 0;             ///< above 0: it takes a dead rank's place, and this was the job's n-th recovery
  int terminal_columns = 0;     ///< width left for the rank's progress bar where the agent shows one; 0: no terminal
  std::string terminal_stream;  ///< "device:inode" of the pipe whose other end the agent shows on the terminal
};

/// Sets, for the rank with this number on the node (RANK is meeting.first_rank + local_rank):
/// - RANK LOCAL_RANK GROUP_RANK ROLE_RANK ROLE_NAME WORLD_SIZE LOCAL_WORLD_SIZE GROUP_WORLD_SIZE ROLE_WORLD_SIZE
///   MASTER_ADDR MASTER_PORT TORCHELASTIC_{RESTART_COUNT, MAX_RESTARTS, RUN_ID, SIGNALS_TO_HANDLE, ERROR_FILE};
/// - TORCHELASTIC_USE_AGENT_STORE=False, unlike torchrun: rank 0 hosts the store, the agent holds no LibTorch;
/// - TORCH_NCCL_ASYNC_ERROR_HANDLING=1 unless set, OMP_NUM_THREADS as JobIdentity says;
/// - the variables of `devices`; under the policy "own" LOCAL_RANK is 0, as torchrun's --virtual-local-rank has it;
/// - COHORT_TERMINAL_COLUMNS and COHORT_TERMINAL_STREAM where the agent shows progress bars, COHORT_STORE_FD (rank 0),
///   COHORT_RANK_PAGE, COHORT_FULL_WORLD_SIZE (an elastic job), COHORT_RECOVERY (a rank that takes a dead one's place),
///   COHORT_FIRST_STEP_FILE, COHORT_LAUNCH_COMMAND, and LaunchSettings::environment.
std::vector<std::pair<std::string, std::string>> rank_variables(const LaunchSettings& settings, const JobIdentity& job,
                                                                int local_rank, const DeviceEnvironment& devices,
                                                                const RankFiles& files);

/// The inherited environment with these variables set, as "NAME=value". Variables of an outer launcher that would
/// mislead a rank (RANK and its kin of a job we run inside) are overwritten; those of ours that only some ranks get
/// (COHORT_STORE_FD, COHORT_RANK_PAGE, COHORT_FULL_WORLD_SIZE, COHORT_RECOVERY, COHORT_TERMINAL_*,
/// COHORT_FIRST_STEP_FILE, COHORT_LAUNCH_COMMAND) are removed first, and so is COHORT_JOB_SECRET.
std::vector<std::string> merge_environment(char** inherited,
                                           const std::vector<std::pair<std::string, std::string>>& variables);

}  // namespace cohort::launch
