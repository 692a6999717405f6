#include "launch/worker_environment.h"

#include <cstdlib>
#include <map>

namespace cohort::launch {

std::vector<std::pair<std::string, std::string>> rank_variables(const LaunchSettings& settings, const JobIdentity& job,
                                                                int rank, const DeviceEnvironment& devices,
                                                                const std::string& error_file, int store_fd) {
  std::vector<std::pair<std::string, std::string>> variables;
  const auto set = [&](const char* name, const std::string& value) { variables.emplace_back(name, value); };
  const std::string ranks = std::to_string(settings.ranks);
  set("RANK", std::to_string(rank));
  set("LOCAL_RANK", settings.device_policy == DevicePolicy::kOwn ? "0" : std::to_string(rank));
  set("GROUP_RANK", "0");
  set("ROLE_RANK", std::to_string(rank));
  set("ROLE_NAME", settings.role);
  set("WORLD_SIZE", std::to_string(job.world_size));
  set("LOCAL_WORLD_SIZE", ranks);
  set("GROUP_WORLD_SIZE", "1");
  set("ROLE_WORLD_SIZE", std::to_string(job.world_size));
  set("MASTER_ADDR", job.master_addr);
  set("MASTER_PORT", std::to_string(job.master_port));
  set("TORCHELASTIC_RESTART_COUNT", std::to_string(job.attempt));
  set("TORCHELASTIC_MAX_RESTARTS", std::to_string(job.max_restarts));
  set("TORCHELASTIC_RUN_ID", job.run_id);
  set("TORCHELASTIC_USE_AGENT_STORE", "False");
  std::string signals;
  for (const int signal : settings.signals) signals += (signals.empty() ? "" : ",") + signal_name(signal);
  set("TORCHELASTIC_SIGNALS_TO_HANDLE", signals);
  set("TORCHELASTIC_ERROR_FILE", error_file);
  if (!std::getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING")) set("TORCH_NCCL_ASYNC_ERROR_HANDLING", "1");
  if (job.threads > 0) set("OMP_NUM_THREADS", std::to_string(job.threads));
  if (settings.gpu_ids) set("CUDA_VISIBLE_DEVICES", *settings.gpu_ids);
  for (const auto& [name, value] : devices.variables) set(name.c_str(), value);
  if (job.terminal_columns > 0) set("COHORT_TERMINAL_COLUMNS", std::to_string(job.terminal_columns));
  if (store_fd >= 0) set("COHORT_STORE_FD", std::to_string(store_fd));
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
  merged.erase("COHORT_STORE_FD");
  merged.erase("COHORT_TERMINAL_COLUMNS");
  for (const auto& [name, value] : variables) merged[name] = value;
  std::vector<std::string> result;
  for (const auto& [name, value] : merged) result.push_back(name + "=" + value);
  return result;
}

}  // namespace cohort::launch
