// `cohort view`: the executable cohort-view, which `cohort` becomes. A model, a task, a run or a data set in a browser.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/model_morph.h"
#include "cli/parse_arguments.h"
#include "cli/policy_kinds.h"
#include "cli/shown_data.h"
#include "cli/subcommand.h"
#include "cli/take_task.h"
#include "cli/task_arguments.h"
#include "cli/torch_program.h"
#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/log.h"
#include "data/format.h"
#include "data/open_episodes.h"
#include "launch/signals.h"
#include "sim/host/model_file.h"
#include "tasks/file/task_file.h"
#include "tasks/registry.h"
#include "tasks/shown_scene.h"
#include "view/data_server.h"
#include "view/live_server.h"
#include "view/live_session.h"

namespace cohort::cli {
namespace {

namespace fs = std::filesystem;

struct ViewArguments {
  TaskArguments task;
  std::vector<std::string> policies;
  std::string control = "hand", engine = "batched", keyframe, split = "whole";
  FileOptions file_options;
  bool paused = false;
  std::uint64_t seed = 0;
  view::LiveServerSettings server;
};

bool is_model(const std::string& what) {
  return what.ends_with(".xml") || what.ends_with(".mjcf") || what.ends_with(".urdf") || what.ends_with(".cohort");
}

/// A task's file; a JSON file that holds a list is a manifest of trajectories, a data set.
bool is_task(const std::string& what) {
  if (!tasks::is_task_file(what) || fs::is_directory(what)) return false;
  if (!what.ends_with(".json")) return true;
  const std::string text = read_file(what);
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  return begin == std::string::npos || text[begin] != '[';
}

template <class Server, class Session, class Settings>
void serve(Session& session, const Settings& settings) {
  launch::SignalPipe signals({SIGINT, SIGTERM});
  Server server(session, settings);
  std::printf("%s: open %s\n", session.title().c_str(), server.address().c_str());
  std::printf("from another machine: ssh -L %d:localhost:%d THIS-MACHINE, then the same address there\n", server.port(),
              server.port());
  std::printf("Ctrl-C ends it\n");
  std::fflush(stdout);
  server.run([&] { return !signals.take().empty(); });
}

void serve(view::LiveSession& session, const ViewArguments& arguments) {
  serve<view::LiveServer>(session, arguments.server);
}

void view_data(const ViewArguments& arguments, const std::string& path) {
  data::OpenSettings settings;
  settings.split = arguments.split;
  settings.on_corrupt = "skip";
  settings.threads = arguments.task.settings.threads;
  const auto source = data::open_episodes(path, settings);
  const auto session = make_data_session(*source, arguments.task.settings.threads);
  serve<view::DataServer>(
      *session, view::DataServerSettings{
                    .host = arguments.server.host, .port = arguments.server.port, .token = arguments.server.token});
}

void view_model(const ViewArguments& arguments, const std::string& model) {
  sim::SceneOptions options;
  options.engine = sim::parse_engine(arguments.engine);
  options.threads = std::max(1, arguments.task.settings.threads);
  options.seed = arguments.seed;
  options.report_stops = false;
  options.exclude = exclusions(arguments.file_options.exclude);
  sim::Scene scene(options);
  if (model.ends_with(".cohort")) {
    scene.build_from_file(model, arguments.task.settings.n_envs);
  } else {
    scene.add_entity(morph_of(model, arguments.file_options));
    scene.build(arguments.task.settings.n_envs);
  }
  for (const std::string& warning : scene.warnings()) log::warning("{}", warning);
  const int keyframe = arguments.keyframe.empty() ? -1 : scene.info().keyframe(arguments.keyframe);
  view::ModelSession session(scene, arguments.control, keyframe);
  serve(session, arguments);
}

/// The task for a person: who looks may tell its robots what to do, where it has commands.
std::unique_ptr<tasks::Task> make_shown_task(ViewArguments& arguments, const std::string& name) {
  constexpr const char* kByHand = "commands_by_hand";
  std::vector<std::string>& overrides = arguments.task.settings.overrides;
  const auto typed = [&](const std::string& word) { return word.starts_with(kByHand); };
  const tasks::TaskFields fields = tasks::settings_of(name);
  if (fields != nullptr && fields->has(kByHand) && std::ranges::none_of(overrides, typed))
    overrides.push_back(format("{}=true", kByHand));
  auto task = arguments.task.make(name);
  if (tasks::scene_of(*task) == nullptr)
    throw Error(format("{} has no scene in three dimensions to view; `cohort evaluate --record-video` films it", name));
  return task;
}

void view_task(ViewArguments& arguments, const std::string& name) {
  if (arguments.policies.empty()) arguments.policies = {"random"};
  Actors actors(arguments.policies, arguments.task);
  actors.choose_pictures(arguments.task);
  const auto task = make_shown_task(arguments, name);
  std::vector<NamedActor> of_task = actors.for_task(*task, arguments.task);
  std::vector<view::TaskSession::Named> named;
  for (std::size_t i = 0; i < of_task.size(); ++i) named.push_back({actors.titles()[i], std::move(of_task[i].actor)});
  view::TaskSession session(*task, std::move(named), arguments.seed);
  serve(session, arguments);
}

std::uintmax_t bytes_of(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error))
    if (const std::uintmax_t size = entry.file_size(error); !error) bytes += size;
  return bytes;
}

/// Checkpoints of a run, the last first: to be chosen on the page.
std::vector<std::string> checkpoints_of(const fs::path& run) {
  std::vector<std::pair<long, std::string>> found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    if (entry.is_symlink(error) || !name.starts_with("checkpoint-")) continue;
    found.emplace_back(-std::strtol(name.c_str() + 11, nullptr, 10), entry.path().string());
  }
  std::sort(found.begin(), found.end());
  constexpr std::size_t kMost = 8;
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{2} << 30;  // they stay loaded
  std::vector<std::string> out;
  std::uintmax_t bytes = 0;
  for (const auto& [step, path] : found) {
    bytes += bytes_of(path);
    if (out.size() == kMost || (bytes > kMostBytes && !out.empty())) break;
    out.push_back(path);
  }
  return out;
}

/// Who acts of a run: its newest checkpoint, also of those that come while it trains, or one that is chosen.
class RunActors {
 public:
  RunActors(fs::path run, const TaskArguments& arguments) : run_(std::move(run)), arguments_(arguments) {}

  /// Before the task is made.
  void choose_pictures(TaskArguments& arguments) {
    const std::vector<std::string> all = checkpoints_of(run_);
    Actors({all.empty() ? run_.string() : all.front()}, arguments_).choose_pictures(arguments);
  }
  void act_in(tasks::Task& task) { task_ = &task; }

  /// All that there are, where that has changed.
  std::optional<std::vector<view::TaskSession::Named>> look() {
    std::vector<std::string> there = checkpoints_of(run_);
    if (there.empty() && known_.empty()) there = {run_.string()};
    if (there == known_ || there.empty()) return {};
    std::vector<view::TaskSession::Named> out{{kNewest, actor_of(there.front())}};
    for (const std::string& path : there) out.push_back({fs::path(path).filename().string(), actor_of(path)});
    std::erase_if(loaded_, [&](const auto& one) { return std::ranges::find(there, one.first) == there.end(); });
    known_ = std::move(there);
    return out;
  }

 private:
  static constexpr const char* kNewest = "newest checkpoint";
  /// The policies that an actor needs, with it.
  struct Loaded {
    Actors actors;
    std::vector<NamedActor> acting;
  };
  std::shared_ptr<tasks::Actor> actor_of(const std::string& path) {
    std::shared_ptr<tasks::Actor>& actor = loaded_[path];
    if (actor != nullptr) return actor;
    const auto loaded = std::make_shared<Loaded>(Loaded{Actors({path}, arguments_), {}});
    loaded->acting = loaded->actors.for_task(*task_, arguments_);
    actor = {loaded, loaded->acting.front().actor.get()};
    return actor;
  }

  fs::path run_;
  const TaskArguments& arguments_;
  tasks::Task* task_ = nullptr;
  std::vector<std::string> known_;
  std::map<std::string, std::shared_ptr<tasks::Actor>> loaded_;
};

void view_run(ViewArguments& arguments, const fs::path& what, const std::string& name) {
  const fs::path run = fs::canonical(what);
  RunActors actors(run, arguments.task);
  actors.choose_pictures(arguments.task);
  const auto task = make_shown_task(arguments, name);
  actors.act_in(*task);
  view::TaskSession session(*task, actors.look().value(), arguments.seed, [&] {
    try {
      return actors.look();
    } catch (const Error& e) {
      // A checkpoint may go, as newer ones come, between the list and its being read.
      log::debug("{}", e.what());
      return std::optional<std::vector<view::TaskSession::Named>>{};
    }
  });
  serve(session, arguments);
}

void add_options(CLI::App& app, ViewArguments& arguments, std::string& what) {
  app.footer(
      "  cohort view robot.xml                                    its joints and controls as sliders\n"
      "  cohort view quadruped-velocity --policy outputs/dog/latest --n-envs 16\n"
      "  cohort view outputs/dog/latest                            its task, and its checkpoints, also while it "
      "trains\n"
      "  cohort view demos.hdf5                                    recorded episodes: pictures, curves, what is "
      "wrong\n\n"
      "The page is served on this machine's loopback address, behind a token. A page in a file, without a server: "
      "--html\n"
      "of cohort simulate, evaluate and collect.");
  app.add_option(
      "WHAT", arguments.task.words,
      "an MJCF or URDF file or a compiled .cohort model; a task, as `cohort tasks` lists them, or its .yaml file, "
      "with settings key=value; a run that names its task; or a data set, as `cohort data inspect` takes it");
  app.add_option("--task", what, "as WHAT");
  app.add_option(
      "--policy", arguments.policies,
      "of a task, who acts: expert, random, replay:DATA, a server ws://HOST:PORT, a run or checkpoint; several "
      "are to be chosen from on the page");
  app.add_option("--split", arguments.split, "of a data set, as `cohort data inspect` takes it")->capture_default_str();
  app.add_option("--control", arguments.control, "of a model: random, zero, hold, or hand: the page's sliders")
      ->check(CLI::IsMember({"random", "zero", "hold", "hand"}))
      ->capture_default_str();
  app.add_option("--keyframe", arguments.keyframe, "of a model: where it begins");
  add_file_options(app, arguments.file_options);
  app.add_flag("--paused", arguments.paused, "does not play until it is told to");
  app.add_option("--first-seed,--first_seed", arguments.seed, "of the first episode, or of random controls")
      ->capture_default_str();
  app.add_option("--host", arguments.server.host, "address to serve on; 0.0.0.0: all of this machine")
      ->capture_default_str();
  app.add_option("--port", arguments.server.port, "0: one that is free")
      ->capture_default_str()
      ->check(CLI::Range(0, 65535));
}

int run_view(const std::vector<std::string>& words) {
  CLI::App app(
      "Shows a model, a task, a run or a data set in a browser: it plays, and is turned, picked and moved there.",
      "cohort view");
  ViewArguments arguments;
  std::string what;
  add_options(app, arguments, what);
  arguments.task.add_to(app);
  app.get_option("--n-envs")->description("environments side by side, at most 64 of them shown")->default_val(1);
  if (const auto code = parse_arguments(app, words)) return *code;
  arguments.task.use_libero_folder();
  give_back(arguments.policies, arguments.task.words);
  if (what.empty() && !arguments.task.words.empty()) {  // Also a path with a `=`, which elsewhere is a setting.
    what = arguments.task.words.front();
    if (what.starts_with("task=")) what.erase(0, 5);
    arguments.task.words.erase(arguments.task.words.begin());
  }
  check_path(what);
  if (what.empty()) throw UsageError("what is to be seen? `cohort view MODEL`, `TASK`, `RUN` or `DATA`");
  arguments.task.take_words(0);
  arguments.server.playing = !arguments.paused;
  if (only_checks_words()) return 0;
  if (!arguments.task.settings.engine.empty()) arguments.engine = arguments.task.settings.engine;
  arguments.task.settings.threads = arguments.task.threads();
  if (is_model(what)) {
    if (!arguments.policies.empty())
      throw UsageError(
          format("--policy: {} is a model without a task; a task of it is a file that "
                 "docs/guide/task_files.md describes",
                 what));
    check_file_options(what, arguments.file_options);
    view_model(arguments, what);
    return 0;
  }
  if (fs::exists(what) && !is_task(what)) {
    const auto holds = [&](const char* file) { return fs::exists(fs::path(what) / file); };
    const bool is_run = holds("config.json") || holds("trainer_state.json") || holds("last/trainer_state.json");
    const std::string name = is_run ? take_task_of_run(what, arguments.task.settings) : "";
    if (name.empty()) {
      const bool holds_data =
          std::ranges::any_of(data::formats(), [&](const data::DataFormat& known) { return known.probe(what); });
      COHORT_THROW_UNLESS(
          holds_data,
          "{} is no model (.xml, .urdf, .cohort), no task's file (.yaml), no run that names its task (of PPO, or with "
          "rollouts), and no data set; of another run name the task, and the run with --policy",
          what);
      view_data(arguments, what);
      return 0;
    }
    if (arguments.policies.empty()) {
      view_run(arguments, what, name);
      return 0;
    }
    view_task(arguments, name);
    return 0;
  }
  view_task(arguments, what);
  return 0;
}

const TorchProgram kView("cohort-view", "cohort view", &run_view);

}  // namespace
}  // namespace cohort::cli
