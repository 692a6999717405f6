#include "cli/data_push_t.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "core/devices_cpu.h"
#include "data/open_episodes.h"
#include "record/push_t_demonstrations.h"
#include "record/push_t_replay.h"
#include "tasks/push_t_rollout.h"

namespace cohort::cli {
namespace {

struct BaselineArguments {
  std::string demonstrations;
  std::uint32_t first_seed = 0;
  std::int64_t seeds = 50;
  std::int64_t max_steps = tasks::kPushTMaxSteps;
  std::int64_t horizon = 8;
  std::uint64_t random_seed = 0;
  bool no_expert = false;
};

struct Arguments {
  std::string out = "outputs/push_t";
  int threads = 0;
  record::PushTDemonstrationSettings recording;
  BaselineArguments baselines;
};

int threads_of(const Arguments& arguments) {
  return arguments.threads > 0 ? arguments.threads : available_cores();
}

void add_expert(CLI::App& app, tasks::PushTExpertSettings& expert) {
  app.add_option("--beam", expert.beam, "results that the planner pursues")->capture_default_str();
  app.add_option("--depth", expert.depth, "pushes that it plans ahead")->capture_default_str();
  app.add_option("--push-speed", expert.push_speed, "px per control step")->capture_default_str();
}

void record_demonstrations(const Arguments& arguments) {
  record::PushTDemonstrationSettings settings = arguments.recording;
  settings.threads = threads_of(arguments);
  const record::PushTDemonstrationReport report = record::record_push_t(arguments.out, settings);
  std::printf("%s: %lld episodes, %lld steps; %lld further episodes were not solved and are left out\n",
              report.path.c_str(), static_cast<long long>(report.episodes), static_cast<long long>(report.steps),
              static_cast<long long>(report.failures));
}

void print_score(const char* name, const tasks::PushTScore& score) {
  std::puts(tasks::push_t_table_row(name, score).c_str());
  std::fflush(stdout);
}

void score_baselines(const Arguments& arguments) {
  const BaselineArguments& b = arguments.baselines;
  const auto score = [&](const tasks::PushTPolicyMaker& maker) {
    return tasks::score_push_t(b.first_seed, b.seeds, maker, threads_of(arguments), b.max_steps);
  };
  // Episodes take minutes: what can be wrong is found before them.
  tasks::check_push_t_episodes(b.first_seed, b.seeds, b.max_steps);
  std::optional<record::PushTReplay> replay;
  if (!b.demonstrations.empty()) {
    replay.emplace(*data::open_episodes(b.demonstrations));
    replay->policy(b.horizon);
  }
  std::printf("Push-T, seeds %lld to %lld, %lld steps\n", static_cast<long long>(b.first_seed),
              static_cast<long long>(b.first_seed) + static_cast<long long>(b.seeds) - 1,
              static_cast<long long>(b.max_steps));
  std::puts(tasks::push_t_table_header().c_str());
  if (!b.no_expert)
    print_score("expert", score([&](std::uint32_t) { return tasks::make_push_t_expert(arguments.recording.expert); }));
  print_score("random", score([&](std::uint32_t seed) { return tasks::make_push_t_random(b.random_seed, seed); }));
  if (replay) print_score("replay", score([&](std::uint32_t) { return replay->policy(b.horizon); }));
}

}  // namespace

std::function<bool()> add_push_t(CLI::App& app) {
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* record_app = app.add_subcommand("push-t", "demonstrations of Push-T by a planner, as an RLDS data set");
  record::PushTDemonstrationSettings& recording = arguments->recording;
  record_app->add_option("--out", arguments->out, "the folder that gets NAME/1.0.0")->capture_default_str();
  record_app->add_option("--name", recording.name, "of the data set")->capture_default_str();
  record_app->add_option("--episodes", recording.episodes, "solved ones to record")->capture_default_str();
  record_app->add_option("--first-seed", recording.first_seed, "of gym-pusht's resets; evaluations begin at 0")
      ->capture_default_str();
  record_app->add_option("--max-steps", recording.max_steps, "of an episode")->capture_default_str();
  record_app->add_option("--noise", recording.noise, "px added to what is executed, not to what is recorded")
      ->capture_default_str();
  record_app->add_option("--noise-seed", recording.noise_seed, "keys the noise")->capture_default_str();
  record_app->add_option("--threads", arguments->threads, "0: one per core")->capture_default_str();
  add_expert(*record_app, recording.expert);

  BaselineArguments& b = arguments->baselines;
  CLI::App* baselines_app =
      app.add_subcommand("push-t-baselines", "what planner, random actions and replay of demonstrations reach");
  baselines_app->add_option("--demonstrations", b.demonstrations, "RLDS folder or HDF5 file to replay from");
  baselines_app->add_option("--first-seed", b.first_seed, "of gym-pusht's resets")->capture_default_str();
  baselines_app->add_option("--seeds", b.seeds, "episodes")->capture_default_str();
  baselines_app->add_option("--max-steps", b.max_steps, "of an episode")->capture_default_str();
  baselines_app->add_option("--horizon", b.horizon, "steps that replay plays before it looks again")
      ->capture_default_str();
  baselines_app->add_option("--random-seed", b.random_seed, "keys the random actions")->capture_default_str();
  baselines_app->add_flag("--no-expert", b.no_expert, "leave out the planner, which takes seconds per episode");
  baselines_app->add_option("--threads", arguments->threads, "0: one per core")->capture_default_str();
  add_expert(*baselines_app, recording.expert);

  return [arguments, record_app, baselines_app] {
    if (record_app->parsed())
      record_demonstrations(*arguments);
    else if (baselines_app->parsed())
      score_baselines(*arguments);
    else
      return false;
    return true;
  };
}

}  // namespace cohort::cli
