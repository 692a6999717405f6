// `cohort demo`: demonstrations, a policy that learns from them, its success rate, a report: the whole way in one
// command, which goes on where it was stopped.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/child_command.h"
#include "cli/demo_policy.h"
#include "cli/next_command.h"
#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "core/command_line.h"
#include "core/config.h"
#include "core/files.h"
#include "core/json_text.h"
#include "formats/video_writer.h"
#include "report/evaluation_section.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

using Json = config::Json;

struct DemoArguments {
  fs::path out = "outputs/demo";
  std::string configuration;  ///< a file; empty: the one that is built in
  std::int64_t episodes = 1000, evaluation_episodes = 100, steps = 0;
  int n_envs = 64;
  double noise = 0.2;
  std::string cameras;  ///< whose pictures are recorded
  int size = 128;
  bool no_video = false;
  std::vector<std::string> overrides;  ///< of the training
};

/// What has been done, and how long it took, in OUT/demo.json.
class DemoState {
 public:
  /// Throws Error where the folder holds a demo of other settings.
  DemoState(fs::path file, const Json& settings) : file_(std::move(file)) {
    if (fs::exists(file_)) state_ = try_json<Json>(read_file(file_));
    if (state_.is_null()) state_ = {{"settings", settings}, {"seconds", Json::object()}};
    // Whatever the order of the members.
    using Unordered = nlohmann::json;
    COHORT_THROW_UNLESS(
        state_.is_object() && state_.contains("settings") && Unordered(state_.at("settings")) == Unordered(settings),
        "{} is of a demo with other settings: give it the same ones, or another --out", file_.string());
    save();
  }
  bool done(const std::string& stage) const { return state_.at("seconds").contains(stage); }
  double seconds(const std::string& stage) const { return state_.at("seconds").at(stage).get<double>(); }
  void finish(const std::string& stage, double seconds) {
    state_["seconds"][stage] = seconds;
    save();
  }

 private:
  void save() const { write_file_atomically(file_, json_text(state_, 2) + "\n"); }
  fs::path file_;
  Json state_;
};

class Demo {
 public:
  explicit Demo(DemoArguments arguments) : a_(std::move(arguments)) {
    const std::string text = a_.configuration.empty() ? std::string(kDemoPolicy) : read_file(a_.configuration);
    const std::string source = a_.configuration.empty() ? "the built-in configuration" : a_.configuration;
    const Json json = try_json<Json>(text, JsonComments::kAllowed);
    COHORT_THROW_UNLESS(
        json.is_object() && json.contains("rollout") && json.at("rollout").contains("task") && json.contains("name"),
        "{} is no configuration for a demo: it names no rollout.task, or no name", source);
    task_ = json.at("rollout").at("task").get<std::string>();
    name_ = json.at("name").get<std::string>();
    configuration_ = text;
  }

  int run() {
    begin_stages();
    const Json settings = {{"configuration", configuration_},
                           {"episodes", a_.episodes},
                           {"noise", a_.noise},
                           {"cameras", a_.cameras},
                           {"size", a_.size},
                           {"steps", a_.steps},
                           {"overrides", a_.overrides},
                           {"evaluation", a_.evaluation_episodes}};
    DemoState state(a_.out / "demo.json", settings);
    const std::string data = (a_.out / "data").string();
    std::vector<std::string> collect = {"collect",    task_,
                                        "--out",      data,
                                        "--name",     "demo",
                                        "--episodes", format("{}", a_.episodes),
                                        "--noise",    format("{}", a_.noise),
                                        "--n-envs",   format("{}", a_.n_envs)};
    if (!a_.cameras.empty()) collect.insert(collect.end(), {"--cameras", a_.cameras, "--size", format("{}", a_.size)});
    if (const int code = stage(state, 1, "collect", "demonstrations by the task's expert", [&] {
          return fs::exists(a_.out / "data" / "demo" / "1.0.0") ? 0 : run_cohort(collect);
        }))
      return code;
    if (const int code = stage(state, 2, "train", "a policy that learns from them", [&] { return train(data); }))
      return code;
    const std::string run = (a_.out / "runs" / name_ / "latest").string();
    std::vector<std::string> evaluate = {"evaluate",
                                         "--task",
                                         task_,
                                         "--policy",
                                         run,
                                         "--policy",
                                         "expert",
                                         "--policy",
                                         "random",
                                         "--episodes",
                                         format("{}", a_.evaluation_episodes),
                                         "--n-envs",
                                         format("{}", a_.n_envs),
                                         "--out",
                                         run + "/evaluation"};
    if (records_video(state)) evaluate.push_back("--record-video");
    if (const int code = stage(state, 3, "evaluate", "its success, beside the expert's and random actions'",
                               [&] { return run_cohort(evaluate); }))
      return code;
    if (const int code = stage(state, 4, "report", "a page with all of it", [&] {
          return run_cohort({"report", run});
        }))
      return code;
    sum_up(state, run);
    return 0;
  }

 private:
  /// Unless it is asked not to or cannot be: the numbers are worth the same without pictures.
  bool records_video(const DemoState& state) const {
    if (a_.no_video || state.done("evaluate")) return false;
    const std::string missing = video_unavailable();
    if (!missing.empty()) std::fprintf(stderr, "cohort demo: no videos of the evaluation: %s\n", missing.c_str());
    return missing.empty();
  }

  template <class Body>
  int stage(DemoState& state, int number, const std::string& name, const std::string& what, const Body& body) {
    if (state.done(name)) {
      std::printf("[%d/4] %s: done before\n", number, name.c_str());
      return 0;
    }
    std::printf("[%d/4] %s: %s (%s)\n", number, name.c_str(), what.c_str(), task_.c_str());
    std::fflush(stdout);
    const auto begin = std::chrono::steady_clock::now();
    const int code = body();
    if (code != 0) {
      std::fprintf(stderr, "cohort demo: stopped in stage %s; the same command goes on from there\n", name.c_str());
      return code;
    }
    state.finish(name, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    return 0;
  }

  /// Begins the training, or continues the one that was stopped.
  int train(const std::string& data) const {
    const fs::path runs = a_.out / "runs", latest = runs / name_ / "latest";
    if (fs::exists(latest / "checkpoints" / "last")) return run_cohort({"train", "resume=" + latest.string()});
    const fs::path file = a_.out / "policy.json";
    write_file_atomically(file, configuration_);
    std::vector<std::string> words = {
        "train", "policy", "--config", file.string(), "data.paths=[" + data + "/demo]", "output_dir=" + runs.string()};
    if (a_.steps > 0) words.push_back(format("train.steps={}", a_.steps));
    words.insert(words.end(), a_.overrides.begin(), a_.overrides.end());
    return run_cohort(words);
  }

  void sum_up(const DemoState& state, const std::string& run) const {
    double total = 0;
    std::string times;
    for (const char* name : {"collect", "train", "evaluate", "report"}) {
      total += state.seconds(name);
      times += format("{}{} {}", times.empty() ? "" : ", ", name, format_duration(state.seconds(name)));
    }
    std::printf("\n%s; all %s\n", times.c_str(), format_duration(total).c_str());
    for (const report::SavedEvaluation& e : report::read_evaluations(fs::path(run) / "evaluation"))
      for (const report::EvaluatedPolicy& p : e.policies)
        std::printf("%-24s %lld of %lld episodes succeed (%.1f %% to %.1f %%)\n", p.policy.c_str(),
                    static_cast<long long>(p.successes), static_cast<long long>(p.episodes), 100 * p.low, 100 * p.high);
    std::printf("report: %s\n", (fs::canonical(run) / "report.html").c_str());
    std::printf(
        "next, other episodes of this policy, with videos:\n  %s evaluate --task %s --policy %s --first-seed 1000 "
        "--episodes 20 --record-video --out %s\n",
        typed_name(sibling("cohort")).c_str(), shell_quoted(task_).c_str(), shell_quoted(run).c_str(),
        shell_quoted(run + "/more").c_str());
  }

  DemoArguments a_;
  std::string task_, name_, configuration_;
};

int run_demo(const std::vector<std::string>& words) {
  CLI::App app("Collects demonstrations, trains a policy on them, evaluates it and writes a report.", "cohort demo");
  DemoArguments a;
  app.add_option("overrides", a.overrides, "settings of the training, key.path=value");
  app.add_option("--out", a.out, "folder of everything; the same command goes on in it")->capture_default_str();
  app.add_option(
      "--config", a.configuration,
      "of the policy; its rollout.task says which task (default: the one of examples/policies that is built in)");
  app.add_option("--episodes", a.episodes, "demonstrations")->capture_default_str();
  app.add_option("--steps", a.steps, "of the training; 0: as the configuration says");
  app.add_option("--evaluation-episodes", a.evaluation_episodes, "")->capture_default_str();
  app.add_option("--n-envs", a.n_envs, "environments at a time")->capture_default_str();
  app.add_option("--noise", a.noise, "of the demonstrations, as `cohort collect` takes it")->capture_default_str();
  app.add_option("--cameras", a.cameras, "whose pictures are recorded, a,b: for policies that see");
  app.add_option("--size", a.size, "px of the pictures")->capture_default_str();
  app.add_flag("--no-video", a.no_video, "record none in the evaluation");
  if (const auto code = parse_arguments(app, words)) return *code;
  for (const std::string& word : a.overrides)
    if (!config::is_override(word))
      throw UsageError(format("'{}' is neither an argument nor a setting of the form key.path=value", word));
  COHORT_THROW_UNLESS(a.episodes >= 1 && a.evaluation_episodes >= 1,
                      "--episodes {}, --evaluation-episodes {}: at least 1 is needed", a.episodes,
                      a.evaluation_episodes);
  return Demo(std::move(a)).run();
}

const Register kDemo({"demo", "collect, train, evaluate, report: the whole way in one command", run_demo, ""});

}  // namespace
}  // namespace cohort::cli
