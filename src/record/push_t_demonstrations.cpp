#include "record/push_t_demonstrations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "core/error.h"
#include "core/philox.h"
#include "core/threads.h"
#include "data/rlds/example.h"
#include "data/rlds/rlds_writer.h"
#include "record/push_t_fields.h"
#include "tasks/push_t.h"

namespace cohort::record {
namespace {

constexpr const char* kInstruction = "push the T-shaped block onto the T-shaped goal";
constexpr std::int64_t kBlock = 64;  // episodes that are held in memory
constexpr std::int64_t kAttemptsPerEpisode = 4;

/// One episode, step by step.
struct Demonstration {
  std::vector<float> state, agent, corners, action, offset, reward;
  bool success = false;

  std::int64_t steps() const { return static_cast<std::int64_t>(reward.size()); }
};

template <typename Values>
void append(std::vector<float>& out, const Values& values) {
  for (const double value : values) out.push_back(static_cast<float>(value));
}

Demonstration demonstrate(std::uint32_t seed, const PushTDemonstrationSettings& settings) {
  tasks::PushT world;
  world.reset(seed);
  tasks::PushTExpert expert(settings.expert);
  Demonstration episode;
  while (episode.steps() < settings.max_steps && !episode.success) {
    const tasks::PushTAction action = expert.act(world.situation());
    append(episode.state, push_t_observation(world, "observation/state"));
    append(episode.agent, push_t_observation(world, "observation/agent_pos"));
    append(episode.corners, push_t_observation(world, "observation/environment_state"));
    append(episode.action, push_t_recorded_action(world, "action", action));
    append(episode.offset, push_t_recorded_action(world, "action_offset", action));
    tasks::PushTAction executed = action;
    const RandomStream noise(settings.noise_seed, RandomPurpose::kEnvironment, seed,
                             static_cast<std::uint64_t>(episode.steps()));
    for (std::size_t i = 0; i < executed.size(); ++i)
      executed[i] = std::clamp(executed[i] + settings.noise * noise.normal(i), 0.0, tasks::kPushTWorld);
    const tasks::PushTStep result = world.step(executed);
    episode.reward.push_back(static_cast<float>(result.reward));
    episode.success = result.success;
  }
  return episode;
}

std::string to_example(std::uint32_t seed, const Demonstration& episode) {
  const auto steps = static_cast<std::size_t>(episode.steps());
  const std::vector<std::int64_t> zeros(steps, 0);
  std::vector<std::int64_t> first = zeros, last = zeros;
  first.front() = 1;
  last.back() = 1;
  std::vector<float> discount(steps, 1.0f);
  discount.back() = 0.0f;
  data::ExampleWriter example;
  example.add("episode_metadata/file_path", std::vector<std::string>{format("push_t/planner/success/seed_{}", seed)});
  example.add("episode_metadata/seed", std::vector<std::int64_t>{static_cast<std::int64_t>(seed)});
  example.add("steps/action", episode.action);
  example.add("steps/action_offset", episode.offset);
  example.add("steps/discount", discount);
  example.add("steps/is_first", first);
  example.add("steps/is_last", last);
  example.add("steps/is_terminal", last);
  example.add("steps/language_instruction", std::vector<std::string>(steps, kInstruction));
  example.add("steps/observation/agent_pos", episode.agent);
  example.add("steps/observation/environment_state", episode.corners);
  example.add("steps/observation/state", episode.state);
  example.add("steps/reward", episode.reward);
  return example.finish();
}

}  // namespace

data::Feature push_t_schema() {
  using data::make_dict;
  using data::make_tensor;
  data::Feature observation = make_dict({{"agent_pos", make_tensor("float32", {2})},
                                         {"environment_state", make_tensor("float32", {16})},
                                         {"state", make_tensor("float32", {5})}});
  data::Feature step = make_dict({{"action", make_tensor("float32", {2})},
                                  {"action_offset", make_tensor("float32", {2})},
                                  {"discount", make_tensor("float32", {})},
                                  {"is_first", make_tensor("bool", {})},
                                  {"is_last", make_tensor("bool", {})},
                                  {"is_terminal", make_tensor("bool", {})},
                                  {"language_instruction", data::make_text()},
                                  {"observation", std::move(observation)},
                                  {"reward", make_tensor("float32", {})}});
  data::Feature metadata = make_dict({{"file_path", data::make_text()}, {"seed", make_tensor("int64", {})}});
  return make_dict({{"episode_metadata", std::move(metadata)}, {"steps", data::make_steps(std::move(step))}});
}

PushTDemonstrationReport record_push_t(const std::filesystem::path& folder,
                                       const PushTDemonstrationSettings& settings) {
  COHORT_THROW_UNLESS(settings.episodes >= 1, "Push-T: at least 1 demonstration is recorded, not {}",
                      settings.episodes);
  COHORT_THROW_UNLESS(settings.max_steps >= 1, "Push-T: an episode has at least 1 step, not {}", settings.max_steps);
  COHORT_THROW_UNLESS(settings.noise >= 0, "Push-T: the noise is a standard deviation in px, not {}", settings.noise);
  const std::int64_t attempts = kAttemptsPerEpisode * settings.episodes;
  COHORT_THROW_UNLESS(attempts <= std::int64_t{0xFFFFFFFF} - settings.first_seed,
                      "Push-T: {} demonstrations from seed {} on may go beyond the last seed, 4294967295",
                      settings.episodes, settings.first_seed);
  data::RldsWriter writer(folder, push_t_schema(),
                          {.name = settings.name, .description = "Push-T, state version, solved by Cohort's planner"});
  PushTDemonstrationReport report;
  std::int64_t tried = 0;
  while (report.episodes < settings.episodes) {
    COHORT_THROW_UNLESS(tried < attempts,
                        "Push-T: the planner solved only {} of {} episodes within {} steps each: allow more steps, or "
                        "plan more (beam, depth)",
                        report.episodes, tried, settings.max_steps);
    const std::int64_t count = std::min({kBlock, attempts - tried, settings.episodes - report.episodes});
    std::vector<Demonstration> block(static_cast<std::size_t>(count));
    const auto seed_of = [&](std::int64_t i) { return static_cast<std::uint32_t>(settings.first_seed + tried + i); };
    parallel_for(count, settings.threads,
                 [&](std::int64_t i) { block[static_cast<std::size_t>(i)] = demonstrate(seed_of(i), settings); });
    for (std::int64_t i = 0; i < count; ++i) {
      const Demonstration& episode = block[static_cast<std::size_t>(i)];
      if (!episode.success) {
        ++report.failures;
        continue;
      }
      writer.add(to_example(seed_of(i), episode));
      ++report.episodes;
      report.steps += episode.steps();
    }
    tried += count;
  }
  report.path = writer.finish();
  return report;
}

}  // namespace cohort::record
