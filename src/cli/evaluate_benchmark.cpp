// `cohort evaluate --benchmark libero_90`: the tasks of a suite one after another, pairs of task and episode over the
// ranks, one table.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>

#include "cli/evaluate_arguments.h"
#include "core/error.h"
#include "core/format.h"
#include "core/json_text.h"
#include "core/log.h"
#include "core/stop_signal.h"
#include "dist/group.h"
#include "eval/benchmark.h"
#include "tasks/libero/catalogue.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kEpisodesOfTask = 20;  // of a task, as LIBERO's own evaluation has them
// For how long a rank that was stopped waits for the others, which a launcher stops at the same time: less than its grace period.
constexpr std::chrono::milliseconds kStopWait = std::chrono::seconds(15);

std::vector<tasks::libero::SceneHead> chosen_tasks(const EvaluateArguments& arguments,
                                                   const tasks::libero::LiberoSuite& suite) {
  if (!arguments.num_tasks) return suite.tasks;
  const std::int64_t wanted = *arguments.num_tasks;
  COHORT_THROW_UNLESS(wanted >= 1, "--num_tasks {}: at least 1 is needed", wanted);
  COHORT_THROW_UNLESS(wanted <= static_cast<std::int64_t>(suite.tasks.size()),
                      "--num_tasks {}: {} holds {} of the {} tasks of {}; `cohort export-libero` writes the others",
                      wanted, tasks::libero::libero_folder().string(), suite.tasks.size(), suite.expected, suite.name);
  return {suite.tasks.begin(), suite.tasks.begin() + wanted};
}

/// The ranks that share the work: 1 where there is no group.
struct Share {
  int rank = 0, world = 1;
};

config::Json write_all_videos(const EvaluateArguments& arguments, TaskArguments& task_arguments, Actors& actors,
                              std::span<const eval::TaskResult> results, const Share& share) {
  config::Json videos = config::Json::array();
  for (std::size_t t = 0; t < results.size(); ++t) {
    if (static_cast<int>(t % static_cast<std::size_t>(share.world)) != share.rank) continue;
    const auto task = task_arguments.make(results[t].task);
    const auto of_task = actors.for_task(*task, task_arguments);
    for (std::size_t p = 0; p < of_task.size(); ++p)
      for (const eval::EpisodeVideo& video :
           eval::write_videos(*task, *of_task[p].actor, results[t].policies.at(p),
                              arguments.video_folder / results[t].task, arguments.video))
        videos.push_back({{"task", results[t].task},
                          {"policy", video.policy},
                          {"seed", video.seed},
                          {"success", video.success},
                          {"file", from_table(arguments, video.file)}});
  }
  return videos;
}

/// The rank's share of every task's episodes, into `results`, which a stop leaves with the tasks before. finished: called
/// after each task.
void roll_out(EvaluateArguments& arguments, const std::vector<tasks::libero::SceneHead>& chosen, Actors& actors,
              const std::vector<std::uint64_t>& seeds, const Share& share, std::vector<eval::TaskResult>& results,
              const std::function<void()>& finished) {
  for (std::size_t t = 0; t < chosen.size(); ++t) {
    results.push_back({.task = chosen[t].task,
                       .instruction = chosen[t].language,
                       .perturbation = chosen[t].perturbation,
                       .description = "",
                       .policies = {}});
    const std::vector<std::uint64_t> own = eval::share_of(seeds, t, share.rank, share.world);
    if (own.empty()) continue;
    const auto task = arguments.task.make(chosen[t].task);
    const auto of_task = actors.for_task(*task, arguments.task);
    for (std::size_t p = 0; p < of_task.size(); ++p) {
      try {
        results.back().policies.push_back(eval::rollout(*task, *of_task[p].actor, own,
                                                        {.max_steps = arguments.max_steps, .silent = share.rank != 0}));
      } catch (const Stopped&) {
        results.pop_back();
        throw;
      }
      results.back().policies.back().policy = actors.titles()[p];
      if (share.rank == 0 && t == 0 && !of_task[p].summary.empty())
        std::printf("%s: %s\n", actors.titles()[p].c_str(), of_task[p].summary.c_str());
    }
    results.back().description = task->description();
    if (share.rank == 0) {
      std::string line;
      for (const eval::PolicyResult& r : results.back().policies)
        line += format("{}{} {} of {}", line.empty() ? "" : ", ", r.policy, r.successes(), r.episodes.size());
      log::info("{} of {} tasks{}: {}: {}", t + 1, chosen.size(), share.world > 1 ? ", this rank's share" : "",
                chosen[t].task, line);
    }
    finished();
  }
}

/// Gives `results` all ranks' episodes of the tasks that all ranks have finished. Throws `stopped` where this rank alone was.
void meet_ranks(std::vector<eval::TaskResult>& results, std::span<const std::uint64_t> seeds, dist::Group& group,
                const std::optional<Stopped>& stopped) {
  try {
    group.barrier(stopped ? std::optional(kStopWait) : std::nullopt);
  } catch (const Error&) {
    if (stopped) throw *stopped;
    throw;
  }
  eval::merge_ranks(results, seeds, group);
}

/// What ends a benchmark of which `finished` tasks are in the table. stopped: on this rank.
Stopped stopped_before(std::span<const tasks::libero::SceneHead> chosen, std::size_t finished,
                       const std::optional<Stopped>& stopped) {
  if (finished == 0) return stopped ? *stopped : Stopped(SIGTERM, "another rank was stopped in its first task");
  return {stopped ? stopped->signal() : SIGTERM,
          format("stopped in {}; the table has the {} of {} tasks before it, and so have the files",
                 chosen[finished].task, finished, chosen.size())};
}

/// What can be wrong with a policy, before the first episode of any. Returns the most steps of an episode.
std::int64_t check_policies(EvaluateArguments& arguments, const std::vector<tasks::libero::SceneHead>& chosen,
                            Actors& actors) {
  const bool some_have_no_expert =
      std::find(arguments.policies.begin(), arguments.policies.end(), "expert") != arguments.policies.end();
  std::int64_t steps = arguments.max_steps;
  for (std::size_t t = 0; t < (some_have_no_expert ? chosen.size() : 1); ++t) {
    TaskArguments one = arguments.task;
    one.settings.n_envs = 1;
    const auto task = one.make(chosen[t].task);
    tasks::check(task->spec(), {.max_steps = arguments.max_steps, .instruction = ""});
    actors.for_task(*task, one);
    if (arguments.record_video) eval::check_video(*task, arguments.video);
    if (steps == 0) steps = task->spec().horizon;
  }
  return steps;
}

void create_video_folders(const EvaluateArguments& arguments, const std::vector<tasks::libero::SceneHead>& chosen) {
  for (const tasks::libero::SceneHead& head : chosen) {
    const fs::path folder = arguments.video_folder / head.task;
    std::error_code error;
    fs::create_directories(folder, error);
    COHORT_THROW_UNLESS(!error, "cannot create {}: {}", folder.string(), error.message());
  }
}

}  // namespace

void evaluate_benchmark(EvaluateArguments& arguments) {
  const tasks::libero::LiberoSuite suite = tasks::libero::libero_suite(arguments.benchmark);
  const std::vector<tasks::libero::SceneHead> chosen = chosen_tasks(arguments, suite);
  const std::int64_t episodes = arguments.episodes.value_or(kEpisodesOfTask);
  COHORT_THROW_UNLESS(episodes >= 1, "--episodes {}: at least 1 is needed", episodes);
  const auto group = join_ranks(arguments.task.settings.threads);
  Share share;
  if (group) share = {group->rank(), group->world_size()};
  const bool first = share.rank == 0;
  arguments.task.settings.n_envs = static_cast<int>(
      std::min<std::int64_t>(arguments.task.settings.n_envs, (episodes + share.world - 1) / share.world));
  Actors actors(arguments.policies, arguments.task);
  actors.choose_pictures(arguments.task);
  arguments.video.max_steps = arguments.max_steps;
  const std::int64_t steps = check_policies(arguments, chosen, actors);
  std::optional<OutputFiles> files;
  if (first) files.emplace(arguments);
  if (arguments.record_video) create_video_folders(arguments, chosen);
  const std::vector<std::uint64_t> seeds = tasks::consecutive_seeds(arguments.first_seed, episodes);
  if (first) {
    std::printf("%s: %zu of its %d tasks%s, %lld episodes each of seeds %llu to %llu, at most %lld steps\n",
                suite.name.c_str(), chosen.size(), suite.expected,
                suite.tasks.size() < static_cast<std::size_t>(suite.expected)
                    ? format(" ({} are in {})", suite.tasks.size(), tasks::libero::libero_folder().string()).c_str()
                    : "",
                static_cast<long long>(episodes), static_cast<unsigned long long>(seeds.front()),
                static_cast<unsigned long long>(seeds.back()), static_cast<long long>(steps));
    std::fflush(stdout);
  }
  const eval::BenchmarkHead head{.benchmark = suite.name,
                                 .tasks_of_benchmark = suite.expected,
                                 .first_seed = arguments.first_seed,
                                 .episodes = episodes,
                                 .max_steps = steps};
  std::vector<eval::TaskResult> results;
  const auto write_files = [&](config::Json videos) {
    config::Json json = eval::to_json(head, results);
    json["videos"] = std::move(videos);
    files->write(json_text(json, 2) + "\n", eval::csv_table(head, results));
  };
  std::optional<Stopped> stopped;
  try {
    // One process has all of a task's episodes: hours of them are kept, whatever ends the rest.
    roll_out(arguments, chosen, actors, seeds, share, results, [&] {
      if (!group) write_files(config::Json::array());
    });
  } catch (const Stopped& e) {
    stopped = e;
  }
  if (group) meet_ranks(results, seeds, *group, stopped);
  // The table stands before the videos: what fails with them does not take it along.
  if (first && !results.empty()) {
    std::fputs(eval::text_table(head, results).c_str(), stdout);
    std::fflush(stdout);
    write_files(config::Json::array());
  }
  if (results.size() < chosen.size()) throw stopped_before(chosen, results.size(), stopped);
  // No rank writes a video before those of the table that was replaced are gone.
  if (group && arguments.record_video) group->barrier();
  if (arguments.record_video) {
    config::Json videos = write_all_videos(arguments, arguments.task, actors, results, share);
    if (group) {
      config::Json all = config::Json::array();
      for (const std::string& text : group->all_gather_bytes(json_text(videos)))
        for (const auto& video : parse_json<config::Json>(text)) all.push_back(video);
      videos = std::move(all);
    }
    const std::size_t count = videos.size();
    if (first) write_files(std::move(videos));
    if (first) say_videos(count, arguments);
  }
  if (group) group->close();
}

}  // namespace cohort::cli
