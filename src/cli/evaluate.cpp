// `cohort evaluate`: the executable cohort-evaluate, which `cohort` becomes. Trained policies in simulated tasks,
// beside experts, random actions and replay.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cli/evaluate_arguments.h"
#include "cli/next_command.h"
#include "cli/parse_arguments.h"
#include "cli/picture_arguments.h"
#include "cli/subcommand.h"
#include "cli/take_task.h"
#include "cli/torch_program.h"
#include "core/config.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "eval/episode_page.h"
#include "eval/episode_video.h"
#include "eval/evaluation.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"
#include "tasks/run_library.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

using config::Json;

constexpr std::int64_t kEpisodes = 50;

void evaluate(EvaluateArguments& arguments) {
  const std::int64_t episodes = arguments.episodes.value_or(kEpisodes);
  COHORT_THROW_UNLESS(episodes >= 1, "--episodes {}: at least 1 is needed", episodes);
  const auto group = join_ranks(arguments.task.settings.threads);
  const bool first = !group || group->rank() == 0;
  // No more environments than episodes: the rest would be simulated for nothing.
  const std::int64_t ranks = group ? group->world_size() : 1;
  arguments.task.settings.n_envs = static_cast<int>(std::min<std::int64_t>(
      arguments.task.settings.n_envs, std::max<std::int64_t>(1, (episodes + ranks - 1) / ranks)));
  // What can be wrong with a policy is found before the first episode of any.
  Actors actors(arguments.policies, arguments.task);
  actors.choose_pictures(arguments.task);
  const auto task = arguments.task.make(arguments.name);
  arguments.video.max_steps = arguments.max_steps;
  if (arguments.record_video) eval::check_video(*task, arguments.video);
  std::optional<eval::EpisodePages> pages;
  if (!arguments.html.empty()) pages.emplace(*task);
  std::optional<OutputFiles> files;
  if (first) files.emplace(arguments);
  if (first && arguments.record_video) {
    std::error_code error;
    fs::create_directories(arguments.video_folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create {}: {}", arguments.video_folder.string(), error.message());
  }
  const std::vector<NamedActor> of_task = actors.for_task(*task, arguments.task);
  const std::vector<std::uint64_t> seeds = tasks::consecutive_seeds(arguments.first_seed, episodes);
  const std::int64_t steps = arguments.max_steps > 0 ? arguments.max_steps : task->spec().horizon;
  if (first) {
    std::printf("%s, %lld episodes of seeds %llu to %llu, at most %lld steps\n", arguments.name.c_str(),
                static_cast<long long>(episodes), static_cast<unsigned long long>(seeds.front()),
                static_cast<unsigned long long>(seeds.back()), static_cast<long long>(steps));
    for (std::size_t i = 0; i < of_task.size(); ++i)
      if (!of_task[i].summary.empty()) std::printf("%s: %s\n", actors.titles()[i].c_str(), of_task[i].summary.c_str());
    std::fflush(stdout);
  }
  std::vector<eval::PolicyResult> results;
  for (std::size_t i = 0; i < of_task.size(); ++i) {
    results.push_back(eval::rollout(*task, *of_task[i].actor, seeds,
                                    {.max_steps = arguments.max_steps, .group = group.get(), .silent = !first}));
    results.back().policy = actors.titles()[i];
  }
  if (group) group->close();
  if (!first) return;
  // The table stands before the videos, which are but a picture of it: what fails with them does not take it along.
  std::fputs(eval::text_table(results).c_str(), stdout);
  std::fflush(stdout);
  Json json = eval::to_json({arguments.name, task->description(), arguments.first_seed, steps}, results);
  for (std::size_t i = 0; i < of_task.size(); ++i) json["policies"][i]["summary"] = of_task[i].identity;
  json["videos"] = Json::array();
  const std::string csv = eval::csv_table(results);
  files->write(json_text(json, 2) + "\n", csv);
  if (!arguments.out.empty()) log::info("evaluation.json and evaluation.csv are in {}", arguments.out);
  if (pages) {
    for (std::size_t i = 0; i < of_task.size(); ++i)
      pages->add(*of_task[i].actor, eval::best_and_worst(results[i]),
                 {.max_steps = arguments.max_steps, .instruction = ""});
    pages->write(arguments.html);
    json["page"] = from_table(arguments, arguments.html);
    files->write(json_text(json, 2) + "\n", csv);
  }
  if (!arguments.record_video) return;
  for (std::size_t i = 0; i < of_task.size(); ++i)
    for (const eval::EpisodeVideo& video :
         eval::write_videos(*task, *of_task[i].actor, results[i], arguments.video_folder, arguments.video))
      json["videos"].push_back({{"policy", video.policy},
                                {"seed", video.seed},
                                {"success", video.success},
                                {"file", from_table(arguments, video.file)}});
  files->write(json_text(json, 2) + "\n", csv);
  say_videos(json["videos"].size(), arguments);
}

/// The flags of RDT's eval_sim/eval_rdt_libero.py that are no names of ours.
struct ReferenceFlags {
  std::string pretrained, config, text_encoder, vision_encoder;

  void add_to(CLI::App& app) {
    app.add_option("--pretrained", pretrained,
                   "as --policy; of weights CHECKPOINT/ema/model.safetensors the checkpoint");
    app.add_option("--config", config, "of the reference's script; a checkpoint holds its configuration");
    app.add_option(flag("text-encoder"), text_encoder, "likewise; a checkpoint holds its embedded instruction");
    app.add_option(flag("vision-encoder"), vision_encoder, "likewise; a checkpoint holds its vision encoder");
  }

  void apply(EvaluateArguments& arguments) const {
    if (!pretrained.empty()) arguments.policies.push_back(checkpoint_of(pretrained, arguments.task));
    const auto note = [](const std::string& name, const std::string& value, const char* what) {
      if (!value.empty()) log::warning("--{} {} is not read: the checkpoint holds {}", name, value, what);
    };
    note("config", config, "its own configuration");
    note("text_encoder", text_encoder, "the instruction as it was embedded for its training");
    note("vision_encoder", vision_encoder, "the vision encoder that it was trained with");
  }

 private:
  /// The folder of a checkpoint whose weights are named: its configuration and statistics lie there.
  static std::string checkpoint_of(const std::string& path, TaskArguments& task) {
    if (!fs::is_regular_file(path)) return path;
    const fs::path file = fs::absolute(path).lexically_normal();
    const bool averaged = file.parent_path().filename() == "ema";
    const fs::path folder = averaged ? file.parent_path().parent_path() : file.parent_path();
    COHORT_THROW_UNLESS(file.filename() == "model.safetensors" && fs::exists(folder / "trainer_state.json"),
                        "--pretrained {}: no weights of a checkpoint of `cohort train`, which says what they are of. "
                        "The reference's own weights are where a training begins: model.initial_weights of `cohort "
                        "train rdt` (docs/guide/rdt.md)",
                        path);
    if (!averaged) task.raw_weights = true;
    return folder.string();
  }
};

/// Words that become arguments once all are known.
struct TypedArguments {
  std::string video_folder, video_size = "256", video_groups;
  std::optional<int> video_successes, video_failures;
  bool play = false;
  ReferenceFlags reference;
};

void add_options(CLI::App& app, EvaluateArguments& arguments, TypedArguments& typed) {
  app.add_option("words", arguments.task.words,
                 "a task, as --task, and runs or checkpoints, as --policy; settings of the task, and of policies those "
                 "that need no other weights, e.g. "
                 "model.diffusion.sampler.num_inference_timesteps=16");
  app.add_option("--task", arguments.name,
                 "as `cohort tasks` lists them, or a task file; else the one that the policy has learnt in");
  app.add_option("--benchmark", arguments.benchmark,
                 "instead: all tasks of libero_spatial, libero_object, libero_goal, libero_10 or libero_90");
  app.add_option(flag("num-tasks"), arguments.num_tasks, "of the benchmark: its first ones; else all");
  app.add_option("--policy", arguments.policies,
                 "a run or checkpoint, expert, random, zero, replay:DATA, or a policy server ws://HOST:PORT or "
                 "vla-eval://HOST:PORT; several "
                 "stand side by side");
  typed.reference.add_to(app);
  app.add_option("--episodes", arguments.episodes, "of a task; else 50, and 20 of each task of a benchmark");
  app.add_option(flag("first-seed"), arguments.first_seed, "the episodes are those of this seed and the following")
      ->capture_default_str();
  app.add_option(flag("max-steps"), arguments.max_steps, "of an episode; 0: the task's horizon");
  app.add_option("--out", arguments.out, "folder that gets evaluation.json, evaluation.csv and videos/");
  app.add_option("--json", arguments.json, "file with the figures and every episode");
  app.add_option("--csv", arguments.csv, "file with a line for every episode");
  app.add_option("--html", arguments.html,
                 "an .html page that plays the best and the worst episode of each policy, without a network")
      ->check(page_name);
  app.add_flag(flag("record-video"), arguments.record_video,
               "of two successes and two failures of each policy; of one each in every task of a benchmark");
  app.add_option(flag("video-output-dir"), typed.video_folder, "else OUT/videos");
  app.add_option(flag("video-camera"), arguments.video.cameras, "one or several, a,b, side by side; else the first two")
      ->delimiter(',');
  app.add_option(flag("video-size"), typed.video_size, "px of each camera, 256 or 640x480, whatever the policy sees")
      ->capture_default_str();
  app.add_option(flag("geom-groups"), typed.video_groups,
                 "of videos: which of MuJoCo's geom groups 0 to 5 are drawn, e.g. 0,3; else the task's own");
  app.add_option(flag("video-successes"), typed.video_successes, "else 2, of a benchmark's tasks 1");
  app.add_option(flag("video-failures"), typed.video_failures, "likewise");
  app.add_flag("--play", typed.play,
               "of a task's file: with what its `play` changes, as play=true; else the episodes are those of training");
}

int run_evaluate(const std::vector<std::string>& words) {
  CLI::App app("Runs policies in a simulated task and says how often they succeed.", "cohort evaluate");
  EvaluateArguments arguments;
  TypedArguments typed;
  add_options(app, arguments, typed);
  arguments.task.add_to(app);
  if (const auto code = parse_arguments(app, words)) return *code;
  if (!arguments.html.empty() && !arguments.benchmark.empty())
    throw UsageError("--html is of one task's episodes: it does not go with --benchmark");
  if (arguments.num_tasks && arguments.benchmark.empty()) throw UsageError("--num_tasks goes with --benchmark");
  if (typed.play) arguments.task.words.emplace_back("play=true");
  arguments.task.use_libero_folder();
  std::vector<std::string>& free_words = arguments.task.words;
  // What runs keep of their tasks is known before a task is looked at.
  for (const auto* const named : {&arguments.policies, &free_words})
    for (const std::string& word : *named)
      if (fs::is_directory(word)) tasks::use_library_of_run(word);
  // A folder is who is to do it, unless a task has its name.
  const auto folders = std::stable_partition(free_words.begin(), free_words.end(), [](const std::string& w) {
    return tasks::find_task(w) != nullptr || !fs::is_directory(w);
  });
  std::move(folders, free_words.end(), std::back_inserter(arguments.policies));
  free_words.erase(folders, free_words.end());
  give_back(arguments.policies, free_words);
  arguments.name = take_task(free_words, arguments.name);
  if (!arguments.name.empty() && !arguments.benchmark.empty()) throw UsageError("--task and --benchmark: one of them");
  arguments.task.take_words(0);
  typed.reference.apply(arguments);
  if (arguments.policies.empty()) throw UsageError("--policy is needed: who is to do it");
  if (arguments.name.empty() && arguments.benchmark.empty())
    arguments.name = take_task_of_run(arguments.policies.front(), arguments.task.settings);
  if (arguments.name.empty() && arguments.benchmark.empty())
    throw UsageError(
        "either --task or --benchmark is needed: what is to be done. (A run of `cohort train ppo`, or one with "
        "rollouts, knows its task.)");
  const auto shows_otherwise = [](const std::string& task) {
    return tasks::is_task_file(task) || (!task.empty() && tasks::settings_of(task)->has("play"));
  };
  if (typed.play && !shows_otherwise(arguments.name))
    throw UsageError(format("--play: {} comes from no task's file (NAME.yaml), whose `play` it would apply",
                            arguments.name.empty() ? "a benchmark" : arguments.name));
  std::tie(arguments.video.width, arguments.video.height) = picture_size("--video_size", typed.video_size, true);
  if (!typed.video_groups.empty()) arguments.video.geom_groups = geom_groups(typed.video_groups);
  // Of a benchmark with ninety tasks four of each would be many.
  const int videos_of_kind = arguments.benchmark.empty() ? 2 : 1;
  arguments.video.successes = typed.video_successes.value_or(videos_of_kind);
  arguments.video.failures = typed.video_failures.value_or(videos_of_kind);
  if (only_checks_words()) return 0;
  if (!typed.video_folder.empty())
    arguments.video_folder = typed.video_folder;
  else
    arguments.video_folder = arguments.out.empty() ? fs::path("videos") : fs::path(arguments.out) / "videos";
  answer_stop_signals("stops after this step; Ctrl-C again: at once");
  if (arguments.benchmark.empty())
    evaluate(arguments);
  else
    evaluate_benchmark(arguments);
  // Of several ranks the first has the table.
  const std::string rank = rank::process_variable("RANK").value_or("0");
  if (rank != "0") return 0;
  if (!arguments.record_video) {
    std::vector<std::string> again{"evaluate"};
    again.insert(again.end(), words.begin(), words.end());
    again.push_back("--record-video");
    say_next("videos of it", again);
  } else if (fs::exists(fs::path(arguments.policies.front()) / "config.json")) {
    say_next("its page, with these figures", {"report", arguments.policies.front()});
  }
  return 0;
}

const TorchProgram kEvaluate("cohort-evaluate", "cohort evaluate", &run_evaluate);

}  // namespace
}  // namespace cohort::cli
