// `cohort collect`: the executable cohort-collect, which `cohort` becomes. Episodes of any task as a data set.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/next_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/take_task.h"
#include "cli/task_arguments.h"
#include "cli/torch_program.h"
#include "cli/train_on.h"
#include "core/stop_signal.h"
#include "eval/episode_page.h"
#include "record/recording.h"
#include "tasks/run_library.h"

namespace cohort::cli {
namespace {

struct CollectArguments {
  TaskArguments task;
  std::string name;  ///< the task's
  std::string out = "outputs/data", policy = "expert", html;
  record::RecordingSettings recording;
};

void add_options(CLI::App& app, CollectArguments& arguments) {
  record::RecordingSettings& recording = arguments.recording;
  app.add_option("TASK", arguments.task.words, "the task, as `cohort tasks` lists them, and settings of it key=value");
  app.add_option("--task", arguments.name, "the same");
  app.add_option("--out", arguments.out, "folder that gets NAME/1.0.0, NAME.hdf5, or NAME (lerobot)")
      ->capture_default_str();
  app.add_option("--episodes", recording.episodes, "to keep")->capture_default_str();
  app.add_option("--name", recording.name, "of the data set; else the task's");
  app.add_option("--format", recording.format, "rlds, hdf5 in robomimic's layout, or lerobot (v3.0)")
      ->capture_default_str();
  app.add_option("--keep", recording.keep, "success, or all: what happens to episodes that fail")
      ->capture_default_str();
  app.add_option("--policy", arguments.policy,
                 "who acts: expert, random, zero, replay:DATA, a policy server ws://HOST:PORT or vla-eval://HOST:PORT, "
                 "or a run or checkpoint")
      ->capture_default_str();
  app.add_option(flag("first-seed"), recording.first_seed, "of the episodes; evaluations begin at 0")
      ->capture_default_str();
  app.add_option(flag("max-steps"), recording.max_steps, "of an episode; 0: the task's horizon");
  app.add_option("--noise", recording.noise,
                 "added to what is executed, not to what is recorded: standard deviation as a share of half the "
                 "action's range");
  app.add_option(flag("noise-seed"), recording.noise_seed, "keys the noise")->capture_default_str();
  app.add_option("--cameras", recording.pictures.cameras, "whose pictures are recorded: a,b")->delimiter(',');
  app.add_option(flag("image-encoding"), recording.pictures.encoding, "png (exact) or jpeg")->capture_default_str();
  app.add_option("--images", recording.images,
                 "of lerobot: video (lossy), or image: as they are encoded, in the tables")
      ->capture_default_str();
  app.add_option("--vcodec", recording.vcodec, "of lerobot's videos: auto, libsvtav1 (AV1) or h264")
      ->capture_default_str();
  app.add_option(
         "--state", recording.state,
         "of lerobot: the task's observations that observation.state holds, a,b; else all that are not privileged")
      ->delimiter(',');
  app.add_option(flag("shard-episodes"), recording.shard_episodes, "whose kept episodes share a shard")
      ->capture_default_str();
  app.add_option("--html", arguments.html,
                 "an .html page that plays the first four attempts in a browser, without a network")
      ->check(page_name);
}

void say_recorded(const record::RecordingReport& report) {
  std::printf("%s: %lld episodes, %lld steps; %lld of %lld attempts succeeded", report.path.c_str(),
              static_cast<long long>(report.episodes), static_cast<long long>(report.steps),
              static_cast<long long>(report.successes), static_cast<long long>(report.attempts));
  if (report.faults > 0) std::printf(", %lld failed by a fault", static_cast<long long>(report.faults));
  if (report.resumed > 0)
    std::printf("; %lld attempts were there from an interrupted recording", static_cast<long long>(report.resumed));
  std::puts("");
}

int run_collect(const std::vector<std::string>& words) {
  CLI::App app("Records episodes of a task as a data set, in many environments at a time.", "cohort collect");
  CollectArguments arguments;
  record::RecordingSettings& recording = arguments.recording;
  add_options(app, arguments);
  arguments.task.add_to(app);
  if (const auto code = parse_arguments(app, words)) return *code;
  // What a run keeps of its task is known before a task is looked at.
  if (std::filesystem::is_directory(arguments.policy)) tasks::use_library_of_run(arguments.policy);
  arguments.name = take_task(arguments.task.words, arguments.name);
  if (arguments.name.empty())
    throw UsageError("episodes of which task? `cohort collect pick-and-place`; `cohort tasks` lists them");
  arguments.task.take_words(0);
  COHORT_THROW_UNLESS(recording.episodes >= 1, "--episodes {}: at least 1 is needed", recording.episodes);
  if (only_checks_words()) return 0;
  const auto group = join_ranks(arguments.task.settings.threads);
  Actors actors({arguments.policy}, arguments.task);
  actors.choose_pictures(arguments.task);
  const auto task = arguments.task.make(arguments.name);
  std::optional<eval::EpisodePages> pages;
  if (!arguments.html.empty() && (!group || group->rank() == 0)) pages.emplace(*task);
  const NamedActor actor = std::move(actors.for_task(*task, arguments.task).front());
  recording.pictures.height = arguments.task.settings.pictures.height;
  recording.pictures.width = arguments.task.settings.pictures.width;
  recording.renderer = arguments.task.settings.pictures.renderer;
  if (recording.renderer.empty()) recording.renderer = task->spec().renderer;
  recording.actor_identity = actor.identity;
  recording.threads = arguments.task.threads();
  if (group) {
    recording.rank = group->rank();
    recording.world_size = group->world_size();
    recording.barrier = [&group] { group->barrier(); };
  }
  answer_stop_signals("stops after this step; whole shards of episodes are kept; Ctrl-C again: at once");
  const record::RecordingReport report = record::record(*task, *actor.actor, arguments.out, recording);
  if (recording.rank == 0) {
    say_recorded(report);
    if (pages) {
      constexpr std::int64_t kShown = 4;
      std::vector<eval::EpisodeWanted> wanted;
      for (const std::uint64_t seed :
           tasks::consecutive_seeds(recording.first_seed, std::min(kShown, std::max<std::int64_t>(1, report.attempts))))
        wanted.push_back({seed, ""});
      pages->add(*actor.actor, wanted,
                 {.max_steps = recording.max_steps,
                  .noise = recording.noise,
                  .noise_seed = recording.noise_seed,
                  .instruction = ""});
      pages->write(arguments.html);
    }
    for (const std::string& line : report.said) std::printf("%s\n", line.c_str());
    if (const auto next = train_on(report.path); !next.empty()) say_next("a policy that learns from them", next);
  }
  if (group) group->close();
  return 0;
}

const TorchProgram kCollect("cohort-collect", "cohort collect", &run_collect);

}  // namespace
}  // namespace cohort::cli
