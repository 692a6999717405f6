// `cohort evaluate`: the executable cohort-evaluate, which `cohort` becomes. Trained policies in simulated tasks,
// beside experts, random actions and replay.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/subcommand.h"
#include "cli/task_arguments.h"
#include "core/config.h"
#include "core/files.h"
#include "eval/episode_video.h"
#include "eval/evaluation.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

using config::Json;

struct EvaluateArguments {
  TaskArguments task;
  std::string name, out, json, csv;
  std::vector<std::string> policies;
  std::int64_t episodes = 50, max_steps = 0;
  std::uint64_t first_seed = 0;
  bool record_video = false;
  fs::path video_folder;
  eval::VideoSettings video;
};

/// The files that are asked for. They are opened before the episodes, so that a place that cannot be written is found
/// then, and appear at the end, whole.
class OutputFiles {
 public:
  explicit OutputFiles(const EvaluateArguments& arguments) {
    if (!arguments.out.empty()) {
      add(json_, fs::path(arguments.out) / "evaluation.json");
      add(csv_, fs::path(arguments.out) / "evaluation.csv");
    }
    if (!arguments.json.empty()) add(json_, arguments.json);
    if (!arguments.csv.empty()) add(csv_, arguments.csv);
  }

  void write(const std::string& json, const std::string& csv) {
    for (const auto& file : json_) file->write(0, json);
    for (const auto& file : csv_) file->write(0, csv);
    for (auto* files : {&json_, &csv_})
      for (const auto& file : *files) file->commit();
  }

 private:
  using Files = std::vector<std::unique_ptr<AtomicFile>>;
  static void add(Files& files, const fs::path& path) { files.push_back(std::make_unique<AtomicFile>(path)); }
  Files json_, csv_;
};

/// A path that stays true when the folder is moved: relative to where the table lies.
std::string from_table(const EvaluateArguments& arguments, const fs::path& file) {
  const fs::path base = !arguments.out.empty() ? fs::path(arguments.out) : fs::path(arguments.json).parent_path();
  return fs::absolute(file).lexically_relative(fs::absolute(base)).generic_string();
}

void evaluate(EvaluateArguments& arguments) {
  COHORT_THROW_UNLESS(arguments.episodes >= 1, "--episodes {}: at least 1 is needed", arguments.episodes);
  const auto group = join_ranks(arguments.task.settings.threads);
  const bool first = !group || group->rank() == 0;
  // No more environments than episodes: the rest would be simulated for nothing.
  const std::int64_t ranks = group ? group->world_size() : 1;
  arguments.task.settings.n_envs = static_cast<int>(std::min<std::int64_t>(
      arguments.task.settings.n_envs, std::max<std::int64_t>(1, (arguments.episodes + ranks - 1) / ranks)));
  // What can be wrong with a policy is found before the first episode of any.
  Cast cast(arguments.policies, arguments.task);
  cast.choose_pictures(arguments.task);
  const auto task = arguments.task.make(arguments.name);
  arguments.video.max_steps = arguments.max_steps;
  if (arguments.record_video) eval::check_video(*task, arguments.video);
  std::optional<OutputFiles> files;
  if (first) files.emplace(arguments);
  if (first && arguments.record_video) {
    std::error_code error;
    fs::create_directories(arguments.video_folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create {}: {}", arguments.video_folder.string(), error.message());
  }
  const std::vector<std::unique_ptr<ActorOwner>> owners = cast.meet(*task, arguments.task);
  const std::vector<std::uint64_t> seeds = tasks::consecutive_seeds(arguments.first_seed, arguments.episodes);
  const std::int64_t steps = arguments.max_steps > 0 ? arguments.max_steps : task->spec().horizon;
  if (first) {
    std::printf("%s, %lld episodes of seeds %llu to %llu, at most %lld steps\n", arguments.name.c_str(),
                static_cast<long long>(arguments.episodes), static_cast<unsigned long long>(seeds.front()),
                static_cast<unsigned long long>(seeds.back()), static_cast<long long>(steps));
    for (const auto& owner : owners)
      if (!owner->summary().empty()) std::printf("%s: %s\n", owner->actor().name().c_str(), owner->summary().c_str());
    std::fflush(stdout);
  }
  std::vector<eval::PolicyResult> results;
  Json videos = Json::array();
  for (const auto& owner : owners) {
    results.push_back(eval::rollout(*task, owner->actor(), seeds,
                                    {.max_steps = arguments.max_steps, .group = group.get(), .silent = !first}));
    if (!first || !arguments.record_video) continue;
    for (const eval::EpisodeVideo& video :
         eval::write_videos(*task, owner->actor(), results.back(), arguments.video_folder, arguments.video))
      videos.push_back({{"policy", video.policy},
                        {"seed", video.seed},
                        {"success", video.success},
                        {"file", from_table(arguments, video.file)}});
  }
  if (first) {
    std::fputs(eval::text_table(results).c_str(), stdout);
    Json json = eval::to_json({arguments.name, task->description(), arguments.first_seed, steps}, results);
    for (std::size_t i = 0; i < owners.size(); ++i) json["policies"][i]["summary"] = owners[i]->identity();
    json["videos"] = std::move(videos);
    files->write(json.dump(2) + "\n", eval::csv_table(results));
  }
  if (group) group->close();
}

int run_evaluate(const std::vector<std::string>& words) {
  CLI::App app("Runs policies in a simulated task and says how often they succeed.", "cohort evaluate");
  EvaluateArguments arguments;
  std::string video_folder;
  app.add_option("words", arguments.task.words,
                 "settings of the task, and of policies those that need no other weights, e.g. "
                 "model.diffusion.sampler.num_inference_timesteps=16");
  app.add_option("--task", arguments.name, "as `cohort tasks` lists them")->required();
  app.add_option("--policy", arguments.policies,
                 "a run or checkpoint, expert, random, or replay:DATA; several stand side by side")
      ->required();
  app.add_option("--episodes", arguments.episodes, "")->capture_default_str();
  app.add_option(flag("first-seed"), arguments.first_seed, "the episodes are those of this seed and the following")
      ->capture_default_str();
  app.add_option(flag("max-steps"), arguments.max_steps, "of an episode; 0: the task's horizon");
  app.add_option("--out", arguments.out, "folder that gets evaluation.json, evaluation.csv and videos/");
  app.add_option("--json", arguments.json, "file with the figures and every episode");
  app.add_option("--csv", arguments.csv, "file with a line for every episode");
  app.add_flag(flag("record-video"), arguments.record_video, "of two successes and two failures of each policy");
  app.add_option(flag("video-output-dir"), video_folder, "else OUT/videos");
  app.add_option(flag("video-camera"), arguments.video.camera, "else the task's first");
  app.add_option(flag("video-successes"), arguments.video.successes, "")->capture_default_str();
  app.add_option(flag("video-failures"), arguments.video.failures, "")->capture_default_str();
  arguments.task.add_to(app);
  try {
    app.parse(std::vector<std::string>(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);
    throw UsageError(e.what());
  }
  arguments.task.take_words(0);
  if (!video_folder.empty())
    arguments.video_folder = video_folder;
  else
    arguments.video_folder = arguments.out.empty() ? fs::path("videos") : fs::path(arguments.out) / "videos";
  evaluate(arguments);
  return 0;
}

}  // namespace
}  // namespace cohort::cli

int main(int argc, char** argv) {
  return cohort::cli::run_program(
      "cohort evaluate", [&] { return cohort::cli::run_evaluate(std::vector<std::string>(argv + 1, argv + argc)); });
}
