/// Demonstrations of Push-T by the planner, as an RLDS data set.
#pragma once
#include <cstdint>
#include <filesystem>
#include <string>

#include "data/rlds/schema.h"
#include "tasks/push_t_expert.h"

namespace cohort::record {

struct PushTDemonstrationSettings {
  std::int64_t episodes = 200;  ///< successful ones that are written
  /// The first reset; the following episodes take the following seeds. Evaluations take theirs from 0 on, so that the
  /// two never meet.
  std::uint32_t first_seed = 100000;
  std::int64_t max_steps = tasks::kPushTMaxSteps;  ///< an episode that takes longer is a failure
  /// px, standard deviation of what is added to the executed action, but not to the recorded one: the data then show
  /// how to correct errors (Laskey et al., "DART", 2017).
  double noise = 0;
  std::uint64_t noise_seed = 0;  ///< keys the noise
  int threads = 1;
  std::string name = "push_t";  ///< of the data set
  tasks::PushTExpertSettings expert;
};

struct PushTDemonstrationReport {
  std::filesystem::path path;
  std::int64_t episodes = 0, steps = 0;  ///< written
  std::int64_t failures = 0;             ///< episodes between them that the planner did not solve; they are left out
};

/// steps: observation/state (5), and the same under the names that gym-pusht's observations without pixels have:
/// observation/agent_pos (2) and observation/environment_state (16, the corners of both boxes); action (2), the agent's
/// target; action_offset (2), the target from where the agent is; reward, discount (float32), is_first, is_last,
/// is_terminal, language_instruction; episode_metadata: seed, file_path. A step holds the observation before its action
/// and the reward after it; the discount of the last is 0.
data::Feature push_t_schema();

/// Writes folder/name/1.0.0. The same settings give the same bytes for any number of threads. Throws Error when the
/// folder exists, and when fewer than one of four episodes succeeds.
PushTDemonstrationReport record_push_t(const std::filesystem::path& folder, const PushTDemonstrationSettings& settings);

}  // namespace cohort::record
