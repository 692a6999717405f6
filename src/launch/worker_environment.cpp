#include "launch/worker_environment.h"

#include <cstdlib>
#include <map>

namespace cohort::launch {

std::vector<std::pair<std::string, std::string>> rank_variables(const LaunchSettings& settings, const JobIdentity& job,
                                                                int local_rank, const DeviceEnvironment& devices,
                                                                const RankFiles& files) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto set = [&](const char* name, const std::string& value) { variables.emplace_back(name, value); };
  const Meeting& meeting = job.meeting;
  const std::string rank = std::to_string(meeting.first_rank + local_rank);
  const std::string world_size = std::to_string(meeting.world_size);
  set("RANK", rank);
  set("LOCAL_RANK", settings.device_policy == DevicePolicy::kOwn ? "0" : std::to_string(local_rank));
  set("GROUP_RANK", std::to_string(meeting.node_rank));
  set("ROLE_RANK", rank);
  set("ROLE_NAME", settings.role);
  set("WORLD_SIZE", world_size);
  set("LOCAL_WORLD_SIZE", std::to_string(settings.ranks));
  set("GROUP_WORLD_SIZE", std::to_string(meeting.nodes));
  set("ROLE_WORLD_SIZE", world_size);
  set("MASTER_ADDR", meeting.store_address);
  set("MASTER_PORT", std::to_string(meeting.store_port));
  set("TORCHELASTIC_RESTART_COUNT", std::to_string(job.attempt));
  set("TORCHELASTIC_MAX_RESTARTS", std::to_string(job.max_restarts));
  set("TORCHELASTIC_RUN_ID", job.run_id);
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  std::string signals;
  for (const int signal : settings.signals) signals += (signals.empty() ? "" : ",") + signal_name(signal);
  set("TORCHELASTIC_SIGNALS_TO_HANDLE", signals.empty() ? "SIGTERM,SIGINT,SIGHUP,SIGQUIT" : signals);
  set("TORCHELASTIC_ERROR_FILE", files.error_file);
  if (!std::getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING")) set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (job.threads > 0) set("OMP_NUM_THREADS", std::to_string(job.threads));
  if (settings.gpu_ids) set("CUDA_VISIBLE_DEVICES", *settings.gpu_ids);
  for (const auto& [name, value] : devices.variables) set(name.c_str(), value);
  if (files.terminal_columns > 0) {
    set("COHORT_TERMINAL_COLUMNS", std::to_string(files.terminal_columns));
    set("COHORT_TERMINAL_STREAM", files.terminal_stream);
  }
  if (files.store_fd >= 0) set("COHORT_STORE_FD", std::to_string(files.store_fd));
  // Where all nodes are always there, each may have another number of ranks.
  if (settings.elastic)
    set("COHORT_FULL_WORLD_SIZE",
        std::to_string(settings.least_nodes == settings.nodes ? meeting.world_size : settings.nodes * settings.ranks));
  if (files.page_fd >= 0) set("COHORT_RANK_PAGE", std::to_string(files.page_fd));
  if (files.recovery > 0) set("COHORT_RECOVERY", std::to_string(files.recovery));
  if (!files.first_step_file.empty()) set("COHORT_FIRST_STEP_FILE", files.first_step_file);
  if (!settings.command_line.empty()) set("COHORT_LAUNCH_COMMAND", settings.command_line);
  for (const auto& [name, value] : settings.environment) set(name.c_str(), value);
  return variables;
}

std::vector<std::string> merge_environment(char** inherited,
                                           const std::vector<std::pair<std::string, std::string>>& variables) {
  std::map<std::string, std::string> merged;
  for (char** entry = inherited; entry && *entry; ++entry) {
    const std::string text = *entry;
    const auto equals = text.find('=');
    if (equals != std::string::npos) merged[text.substr(0, equals)] = text.substr(equals + 1);
  }
  for (const char* ours :
       {"COHORT_STORE_FD", "COHORT_RANK_PAGE", "COHORT_RECOVERY", "COHORT_FULL_WORLD_SIZE", "COHORT_JOB_SECRET",
        "COHORT_TERMINAL_COLUMNS", "COHORT_TERMINAL_STREAM", "COHORT_FIRST_STEP_FILE", "COHORT_LAUNCH_COMMAND"})
    merged.erase(ours);
  for (const auto& [name, value] : variables) merged[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : merged) result.push_back(name + "=" + value);
  return result;
}

}  // namespace cohort::launch
