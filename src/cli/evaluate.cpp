// `cohort evaluate`: the executable cohort-evaluate, which `cohort` becomes. Trained policies in simulated tasks,
// beside the task's own baselines.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/files.h"
#include "data/open_episodes.h"
#include "dist/usable_devices.h"
#include "policy/trained_policy.h"
#include "record/push_t_fields.h"
#include "record/push_t_replay.h"
#include "tasks/push_t_rollout.h"

namespace cohort::cli {
namespace {

using config::Json;

struct PushTArguments {
  std::vector<std::string> words;  ///< checkpoint=PATH, and settings of the policy
  std::string demonstrations, json;
  std::uint32_t first_seed = 0;
  std::int64_t seeds = 50;
  std::int64_t max_steps = tasks::kPushTMaxSteps;
  std::int64_t horizon = 8;
  std::uint64_t random_seed = 0;
  std::string data_set;
  std::string device = "cpu";
  int threads = 0;
  bool no_baselines = false, raw_weights = false;
};

/// A trained policy in Push-T, all episodes in one batch.
class PushTActor {
 public:
  explicit PushTActor(policy::TrainedPolicy& policy) : policy_(policy) {
    COHORT_THROW_UNLESS(policy.cameras().empty(), "Push-T's state version has no cameras, but the policy sees {}",
                        policy.cameras().front());
    COHORT_THROW_UNLESS(policy.action_components().size() == 1,
                        "the policy's actions have {} components; Push-T's are one field, action or action_offset",
                        policy.action_components().size());
    field_ = policy.action_components().front();
    // A wrong name or width is said before the first step.
    const tasks::PushT world;
    const std::vector<float> none(static_cast<std::size_t>(policy.action_width()));
    record::push_t_action(world, field_, none);
    const std::vector<float> seen = observe(world);
    COHORT_THROW_UNLESS(seen.size() == static_cast<std::size_t>(policy.low_dim_width()),
                        "the policy takes {} numbers, but Push-T's observations of those names have {}",
                        policy.low_dim_width(), seen.size());
  }

  std::vector<tasks::PushTAction> act(std::span<const std::uint64_t> episodes,
                                      std::span<const tasks::PushT* const> worlds) {
    for (const std::uint64_t episode : episodes) {
      if (episode < begun_.size() && begun_[episode]) continue;
      begun_.resize(std::max<std::size_t>(begun_.size(), episode + 1));
      begun_[episode] = true;
      policy_.begin(episode);
    }
    std::vector<float> frame;
    for (const tasks::PushT* world : worlds) {
      const std::vector<float> seen = observe(*world);
      frame.insert(frame.end(), seen.begin(), seen.end());
    }
    const std::vector<float> drawn = policy_.act({episodes.begin(), episodes.end()}, {.low_dim = frame, .images = {}});
    std::vector<tasks::PushTAction> actions;
    for (std::size_t i = 0; i < worlds.size(); ++i)
      actions.push_back(record::push_t_action(*worlds[i], field_, std::span(drawn).subspan(2 * i, 2)));
    return actions;
  }

 private:
  std::vector<float> observe(const tasks::PushT& world) const {
    std::vector<float> seen;
    for (const std::string& component : policy_.low_dim_components())
      for (const double value : record::push_t_observation(world, component)) seen.push_back(static_cast<float>(value));
    return seen;
  }

  policy::TrainedPolicy& policy_;
  std::string field_;
  std::vector<bool> begun_;
};

Json to_json(const tasks::PushTScore& score) {
  Json json = {{"mean_largest_coverage", score.mean_largest_coverage},
               {"mean_largest_reward", score.mean_largest_reward},
               {"success_rate", score.success_rate},
               {"mean_steps", score.mean_steps},
               {"episodes", Json::array()}};
  for (const tasks::PushTEpisode& e : score.episodes)
    json["episodes"].push_back({{"seed", e.seed},
                                {"steps", e.steps},
                                {"largest_coverage", e.largest_coverage},
                                {"largest_reward", e.largest_reward},
                                {"success", e.success}});
  return json;
}

void evaluate_push_t(const PushTArguments& arguments) {
  policy::TrainedPolicySettings settings;
  settings.seed = arguments.random_seed;
  settings.device = arguments.device;
  settings.averaged = !arguments.raw_weights;
  settings.data_set = arguments.data_set;
  std::string checkpoint;
  for (const std::string& word : arguments.words) {
    if (word.starts_with("checkpoint="))
      checkpoint = word.substr(word.find('=') + 1);
    else if (config::is_override(word))
      settings.overrides.push_back(word);
    else
      throw UsageError(format("'{}' is neither checkpoint=PATH nor a setting of the form key.path=value", word));
  }
  if (checkpoint.empty()) throw UsageError("which policy? write checkpoint=RUN, e.g. checkpoint=outputs/push_t/latest");

  const int threads = arguments.threads > 0 ? arguments.threads : available_cores();
  dist::check_device(parse_device(settings.device));
  policy::TrainedPolicy policy(checkpoint, settings);
  PushTActor actor(policy);
  // Episodes take minutes: what can be wrong is found before them.
  tasks::check_push_t_episodes(arguments.first_seed, arguments.seeds, arguments.max_steps);
  std::optional<record::PushTReplay> replay;
  if (!arguments.demonstrations.empty()) {
    replay.emplace(*data::open_episodes(arguments.demonstrations));
    replay->policy(arguments.horizon);
  }
  std::printf("%s\nPush-T, gym-pusht's resets of seeds %lld to %lld, %lld steps\n%s\n", policy.summary().c_str(),
              static_cast<long long>(arguments.first_seed),
              static_cast<long long>(arguments.first_seed) + static_cast<long long>(arguments.seeds) - 1,
              static_cast<long long>(arguments.max_steps), tasks::push_t_table_header().c_str());
  std::fflush(stdout);
  Json json = {{"checkpoint", checkpoint},           {"step", policy.step()},
               {"parameters", policy.parameters()},  {"overrides", settings.overrides},
               {"first_seed", arguments.first_seed}, {"max_steps", arguments.max_steps}};
  const auto show = [&](const char* name, const tasks::PushTScore& score) {
    std::puts(tasks::push_t_table_row(name, score).c_str());
    std::fflush(stdout);
    json["policies"][name] = to_json(score);
  };
  const auto alone = [&](const tasks::PushTPolicyMaker& maker) {
    return tasks::score_push_t(arguments.first_seed, arguments.seeds, maker, threads, arguments.max_steps);
  };
  const auto expert = [](std::uint32_t) { return tasks::make_push_t_expert(); };
  const auto random = [&](std::uint32_t seed) { return tasks::make_push_t_random(arguments.random_seed, seed); };
  show("policy", tasks::score_push_t_together(
                     arguments.first_seed, arguments.seeds,
                     [&](auto episodes, auto worlds) { return actor.act(episodes, worlds); }, arguments.max_steps));
  if (!arguments.no_baselines) {
    show("expert", alone(expert));
    show("random", alone(random));
  }
  if (replay) show("replay", alone([&](std::uint32_t) { return replay->policy(arguments.horizon); }));
  if (!arguments.json.empty())
    write_file_atomically(arguments.json, json.dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
}

int run_evaluate(const std::vector<std::string>& words) {
  CLI::App app("Runs trained policies in simulated tasks and says how often they succeed.", "cohort evaluate");
  app.require_subcommand(1);
  PushTArguments push_t;
  CLI::App* push_t_app = app.add_subcommand(
      "push-t", "a policy of `cohort train` in Push-T, beside the planner, random actions and replay");
  push_t_app
      ->add_option("words", push_t.words,
                   "checkpoint=PATH: a run, its folder of checkpoints, or one of them; and settings that need no other "
                   "weights, e.g. model.diffusion.sampler.num_inference_timesteps=16")
      ->required();
  push_t_app->add_option("--seeds", push_t.seeds, "episodes")->capture_default_str();
  push_t_app
      ->add_option("--first-seed", push_t.first_seed,
                   "of gym-pusht's resets; demonstrations have theirs from 100000 on")
      ->capture_default_str();
  push_t_app->add_option("--max-steps", push_t.max_steps, "of an episode")->capture_default_str();
  push_t_app->add_option("--demonstrations", push_t.demonstrations, "data to replay by nearest neighbour: a baseline");
  push_t_app->add_option("--horizon", push_t.horizon, "steps that replay plays before it looks again")
      ->capture_default_str();
  push_t_app->add_option("--seed", push_t.random_seed, "keys what the policy draws, and random actions")
      ->capture_default_str();
  push_t_app->add_option("--data-set", push_t.data_set, "whose statistics, where each set was normalised by its own");
  push_t_app->add_option("--device", push_t.device, "cpu or cuda:N")->capture_default_str();
  push_t_app->add_option("--threads", push_t.threads, "of the baselines; 0: one per core")->capture_default_str();
  push_t_app->add_option("--json", push_t.json, "file for all figures, episode by episode");
  push_t_app->add_flag("--no-baselines", push_t.no_baselines, "leave out planner and random actions");
  push_t_app->add_flag("--raw-weights", push_t.raw_weights, "the weights themselves, not their moving average");
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UsageError(e.what());
  }
  evaluate_push_t(push_t);
  return 0;
}

}  // namespace
}  // namespace cohort::cli

int main(int argc, char** argv) {
  return cohort::cli::run_program(
      "cohort evaluate", [&] { return cohort::cli::run_evaluate(std::vector<std::string>(argv + 1, argv + argc)); });
}
