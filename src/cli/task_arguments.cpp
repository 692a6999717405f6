#include "cli/task_arguments.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <utility>

#include <torch/utils.h>

#include "actor/policy_actor.h"
#include "cli/policy_kinds.h"
#include "cli/subcommand.h"
#include "core/config.h"
#include "core/devices_cpu.h"
#include "core/error.h"
#include "core/log.h"
#include "data/open_episodes.h"
#include "policy/libero_convention.h"
#include "record/replay_actor.h"
#include "tasks/file/task_file.h"
#include "tasks/libero/catalogue.h"
#include "tasks/registry.h"
#include "tasks/run_library.h"

namespace cohort::cli {
namespace fs = std::filesystem;
namespace {

/// For tables: the run's folder, or the run's and the checkpoint's.
std::string short_name(const fs::path& path) {
  fs::path clean = path.lexically_normal();
  if (clean.filename().empty()) clean = clean.parent_path();
  const std::string last = clean.filename().string(), above = clean.parent_path().filename().string();
  return above.empty() || above == "." || above == ".." ? last : above + "/" + last;
}

bool is_path(const std::string& who) {
  return who != "expert" && who != "random" && who != "zero" && !who.starts_with("replay:") && !policy::is_address(who);
}

NamedActor make_actor(const std::string& who, tasks::Task& task, const TaskArguments& arguments) {
  const std::uint64_t seed = arguments.policy.seed;
  if (who == "expert") {
    auto expert = task.make_expert(seed);
    COHORT_THROW_UNLESS(expert, "{} has no expert: name a policy that has learnt it, --policy RUN, or --policy random",
                        task.spec().name);
    return {std::move(expert), format("expert, seed {}", seed), ""};
  }
  if (who == "zero") return {tasks::make_zero_actor(), "zeros", ""};
  if (who == "random") return {tasks::make_random_actor(seed), format("random, seed {}", seed), ""};
  const auto source = data::open_episodes(who.substr(std::string("replay:").size()));
  return {record::make_replay_actor(*source, task.spec(), arguments.replay_horizon, available_cores()),
          format("{}, {} steps at a time", who, arguments.replay_horizon), ""};
}

/// The last `count` parts of a path, or all of it.
std::string end_of(const fs::path& path, std::size_t count) {
  std::vector<fs::path> parts(path.begin(), path.end());
  if (count >= parts.size()) return path.string();
  fs::path end;
  for (std::size_t i = parts.size() - count; i < parts.size(); ++i) end /= parts[i];
  return end.string();
}

/// Rows of a table, and files of videos, that bear one name cannot be told apart.
std::vector<std::string> titles_of(const std::vector<std::string>& names) {
  std::vector<std::string> titles, whole;
  for (const std::string& name : names) {
    fs::path path = fs::path(is_path(name) ? name : "").lexically_normal();
    if (path.filename().empty()) path = path.parent_path();
    whole.push_back(is_path(name) ? path.string() : name);
    titles.push_back(is_path(name) ? short_name(name) : name.starts_with("replay:") ? "replay" : name);
    COHORT_THROW_UNLESS(std::count(whole.begin(), whole.end(), whole.back()) == 1,
                        "--policy {} is named twice: once is enough, its episodes are the same each time", name);
  }
  const auto clashing = [&](std::size_t i) { return std::count(titles.begin(), titles.end(), titles[i]) > 1; };
  for (std::size_t parts = 3;; ++parts) {
    std::vector<std::size_t> alike;
    for (std::size_t i = 0; i < titles.size(); ++i)
      if (clashing(i) && titles[i] != whole[i]) alike.push_back(i);
    if (alike.empty()) return titles;
    for (const std::size_t i : alike) titles[i] = is_path(names[i]) ? end_of(whole[i], parts) : whole[i];
  }
}

/// Pictures that a policy learnt from.
struct LearntPictures {
  std::string renderer;   ///< empty: it does not say
  std::vector<int> size;  ///< height, width; empty: any
};
/// Nothing where it sees none.
std::optional<LearntPictures> pictures_of(const policy::Spec& policy) {
  for (const policy::Observation& o : policy.observations) {
    if (!o.picture) continue;
    LearntPictures pictures{.renderer = policy.renderer, .size = {}};
    if (o.shape[0] > 0 && o.shape[1] > 0) pictures.size = {static_cast<int>(o.shape[0]), static_cast<int>(o.shape[1])};
    return pictures;
  }
  return std::nullopt;
}

std::string size_text(const std::vector<int>& size) {
  return size.size() == 2 ? format("{} x {} px", size[0], size[1]) : "several sizes";
}

}  // namespace

std::string flag(const std::string& name) {
  std::string underscored = name;
  std::replace(underscored.begin(), underscored.end(), '-', '_');
  return underscored == name ? "--" + name : "--" + name + ",--" + underscored;
}

void TaskArguments::add_to(CLI::App& app) {
  settings.n_envs = 16;
  settings.threads = 0;
  app.add_option(flag("n-envs"), settings.n_envs, "environments at a time, of each rank; no result depends on it")
      ->capture_default_str();
  app.add_option("--threads", settings.threads,
                 "cores to use, of each rank; 0: all, divided by the ranks of the machine");
  app.add_option("--engine", settings.engine,
                 "of the simulation: batched or mujoco; else the task's own, batched but for LIBERO's");
  app.add_option("--renderer", renderer,
                 "of pictures: raycast or mujoco; else what drew those that a policy learnt from, or the task's own, "
                 "raycast but for LIBERO's");
  app.add_option("--libero", libero, "folder of LIBERO's scenes (`cohort export-libero`); else COHORT_LIBERO's");
  app.add_option("--size", size, "px of the square pictures; else as those that a policy learnt from, or 128");
  app.add_option("--device", policy.device, "where a trained policy acts: cpu or cuda:0")->capture_default_str();
  app.add_option("--seed", policy.seed, "keys what actors draw at random")->capture_default_str();
  app.add_option(flag("exec-horizon"), policy.exec_horizon,
                 "actions that a diffusion policy, RDT or policy server plays before it looks again; 0: as it was "
                 "trained, or all that the server sends");
  app.add_option("--observations," + flag("remote-observations"), policy.observations,
                 "what a policy or policy server is shown: task, the task's own observations, or LIBERO's as openpi, "
                 "lerobot or vla-eval send them; see below")
      ->capture_default_str();
  app.footer(app.get_footer() + (app.get_footer().empty() ? "" : "\n") + policy::libero_conventions_help());
  app.add_option(flag("connect-timeout"), policy.connect_timeout, "s to wait for a policy server that is not there yet")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option(flag("answer-timeout"), policy.answer_timeout, "s that an answer of a policy server may take")
      ->capture_default_str()
      ->check(CLI::PositiveNumber);
  app.add_option(flag("replay-horizon"), replay_horizon, "steps that replay plays before it looks again")
      ->capture_default_str();
  app.add_flag(flag("raw-weights"), raw_weights, "not the moving average of the weights");
  app.add_option(flag("data-set"), policy.data_set,
                 "of data.paths: whose statistics actions are given back by, where each set has its own");
}

void give_back(std::vector<std::string>& policies, std::vector<std::string>& words) {
  const auto is_policy = [](const std::string& word) {
    if (tasks::find_task(word) != nullptr || tasks::is_task_file(word)) return false;
    const std::string key = word.substr(0, word.find('='));
    const bool sets = key.size() < word.size() && key.find_first_of("/:") == std::string::npos && !fs::exists(word);
    return !sets;
  };
  const auto others = std::stable_partition(policies.begin(), policies.end(), is_policy);
  words.insert(words.end(), others, policies.end());
  policies.erase(others, policies.end());
}

void TaskArguments::use_libero_folder() const {
  if (!libero.empty()) tasks::libero::set_libero_folder(libero);
}

void TaskArguments::take_words(std::size_t begin) {
  use_libero_folder();
  for (std::size_t i = begin; i < words.size(); ++i) {
    std::string word = words[i];
    if (word.starts_with("--")) word = word.substr(2);
    if (word.starts_with("task_settings.")) word = word.substr(word.find('.') + 1);  // as `cohort train` takes them
    if (!config::is_override(word))
      throw UsageError(format("'{}' is neither an argument nor a setting of the form key=value", words[i]));
    (word.starts_with("model.") || word.starts_with("data.") ? policy.overrides : settings.overrides).push_back(word);
  }
}

int TaskArguments::threads() const {
  if (settings.threads > 0) return settings.threads;
  return std::max(1, available_cores() / std::max(1, rank::read_environment().local_world_size));
}

std::unique_ptr<tasks::Task> TaskArguments::make(const std::string& name) {
  COHORT_THROW_UNLESS(!size || *size >= 1, "pictures of {} px: at least 1 is needed", *size);
  COHORT_THROW_UNLESS(settings.threads >= 0, "--threads {}: a number of cores, or 0 for all", settings.threads);
  if (size) settings.pictures.height = settings.pictures.width = *size;
  if (renderer) settings.pictures.renderer = *renderer;
  tasks::TaskSettings made = settings;
  made.threads = threads();
  return tasks::make_task(name, made);
}

Actors::Actors(std::vector<std::string> names, const TaskArguments& arguments) : names_(std::move(names)) {
  register_policy_kinds();
  titles_ = titles_of(names_);
  policy::LoadSettings settings = arguments.policy;
  settings.averaged = !arguments.raw_weights;
  for (const std::string& who : names_)
    if (is_path(who)) tasks::use_library_of_run(who);
  for (const std::string& who : names_) {
    policies_.emplace_back();
    if (!is_path(who) && !policy::is_address(who)) continue;
    if (is_path(who) && !fs::exists(who)) {
      const std::string near = config::nearest(who, {"expert", "random", "zero", "replay"});
      throw Error(format(
          "--policy {}: neither expert, random, zero, replay:DATA, ws://HOST:PORT, vla-eval://HOST:PORT, nor a run or "
          "checkpoint that is "
          "there{}",
          who, near.empty() ? "" : format("; did you mean '{}'?", near)));
    }
    policies_.back() = policy::load(who, settings);
  }
}

void Actors::choose_pictures(TaskArguments& arguments) const {
  tasks::PictureSettings& chosen = arguments.settings.pictures;
  if (arguments.renderer) chosen.renderer = *arguments.renderer;
  std::string size_of, renderer_of;  // whose they are
  for (std::size_t i = 0; i < names_.size(); ++i) {
    const auto learnt = policies_[i] ? pictures_of(policies_[i]->spec()) : std::nullopt;
    if (!learnt) continue;
    const LearntPictures& pictures = *learnt;
    const std::vector<int> now{chosen.height, chosen.width};
    if (pictures.size.size() == 2 && arguments.size) {
      if (pictures.size != std::vector<int>{*arguments.size, *arguments.size})
        log::warning("--size {}: {} learnt from pictures of {}, and sees others now", *arguments.size, names_[i],
                     size_text(pictures.size));
    } else if (pictures.size.size() == 2) {
      COHORT_THROW_UNLESS(size_of.empty() || pictures.size == now,
                          "{} learnt from pictures of {}, {} of {}: evaluate them one at a time, or say which with "
                          "--size",
                          size_of, size_text(now), names_[i], size_text(pictures.size));
      size_of = names_[i];
      chosen.height = pictures.size[0];
      chosen.width = pictures.size[1];
    }
    if (pictures.renderer.empty()) continue;
    if (arguments.renderer) {
      if (pictures.renderer != *arguments.renderer)
        log::warning("--renderer {}: {} learnt from pictures of {}, and sees others now", *arguments.renderer,
                     names_[i], pictures.renderer);
      continue;
    }
    COHORT_THROW_UNLESS(renderer_of.empty() || pictures.renderer == chosen.renderer,
                        "{} learnt from pictures of {}, {} of {}: evaluate them one at a time, or say which with "
                        "--renderer",
                        renderer_of, chosen.renderer, names_[i], pictures.renderer);
    renderer_of = names_[i];
    chosen.renderer = pictures.renderer;
  }
}

std::vector<NamedActor> Actors::for_task(tasks::Task& task, const TaskArguments& arguments) {
  std::vector<NamedActor> actors;
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (!policies_[i]) {
      actors.push_back(make_actor(names_[i], task, arguments));
      continue;
    }
    const std::string name = is_path(names_[i]) ? short_name(names_[i]) : names_[i];
    const policy::Spec& spec = policies_[i]->spec();
    actors.push_back({std::make_unique<actor::PolicyActor>(*policies_[i], task, name), spec.identity, spec.summary});
    for (const std::string& difference : actor::differences(spec, task)) log::warning("{}: {}", name, difference);
  }
  return actors;
}

std::shared_ptr<dist::Group> join_ranks(int threads) {
  const rank::Environment environment = rank::read_environment();
  log::set_console(environment.rank == 0);
  if (threads > 0)
    at::set_num_threads(threads);
  else if (environment.launched())
    at::set_num_threads(std::max(1, available_cores() / std::max(1, environment.local_world_size)));
  if (!environment.launched() || environment.world_size == 1) return nullptr;
  return dist::Group::create(environment);
}

}  // namespace cohort::cli
