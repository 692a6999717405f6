/// What the commands that run tasks have in common: which task, how many environments, who acts.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/group.h"
#include "policy/registry.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace CLI {
class App;
}
namespace cohort::cli {

/// A flag in both forms, "--n-envs,--n_envs", as CLI11 takes it.
std::string flag(const std::string& name);

/// --policy takes all words behind it: of `policies` those that name a task, as NAME, FILE.yaml or task=NAME, or set something,
/// key=value, go back to `words`. What is there as a file or folder is a policy.
void give_back(std::vector<std::string>& policies, std::vector<std::string>& words);

struct TaskArguments {
  std::vector<std::string> words;  ///< the task's name, where it is a word, and settings key=value
  tasks::TaskSettings settings;
  std::optional<int> size;              ///< px, of square pictures; else the policy's, or 128
  std::optional<std::string> renderer;  ///< raycast, mujoco; else the policy's, or the task's own
  std::string libero;                   ///< folder of LIBERO's scenes; else COHORT_LIBERO's
  policy::LoadSettings policy;          ///< of those that are trained
  std::int64_t replay_horizon = 8;
  bool raw_weights = false;

  /// Flags of the task and of whoever acts.
  void add_to(CLI::App& app);
  /// Says where LIBERO's scenes lie, before the first task is looked for. Throws Error for a folder that is not there.
  void use_libero_folder() const;
  /// The words behind the task that are settings of it, and those of policies (model.*, data.*); and says where LIBERO's
  /// scenes lie. Throws UsageError for others, Error for a folder that is not there.
  void take_words(std::size_t begin);
  /// Cores of this rank: --threads, or its share of the machine's.
  int threads() const;
  /// Throws Error for an unknown task.
  std::unique_ptr<tasks::Task> make(const std::string& name);
};

/// An actor of one task.
struct NamedActor {
  std::unique_ptr<tasks::Actor> actor;
  std::string identity;  ///< what its actions depend on beside the task: a checkpoint's path and step
  std::string summary;   ///< a line about it; empty: its name says all
};

/// Those that --policy names: each is expert, random, zero, replay:DATA, or a policy that the registry loads (policy/registry.h).
///
///   Actors actors({"outputs/push/latest", "expert"}, arguments);   // reads checkpoints
///   actors.choose_pictures(arguments);                             // before the task is made
///   const auto task = arguments.make("push");
///   const std::vector<NamedActor> of_task = actors.for_task(*task, arguments);
class Actors {
 public:
  /// Throws Error for a name that is none of them, for one that is there twice, and for a checkpoint that cannot be read.
  Actors(std::vector<std::string> names, const TaskArguments& arguments);

  /// Renderer and size of the task's pictures are those that the policies learnt from, unless flags say others, which
  /// is said. Throws Error where two policies learnt from different ones and no flag decides.
  void choose_pictures(TaskArguments& arguments) const;

  /// What they are called in tables, in the order of the names: "expert", or as much of a path's end as tells it from
  /// the others.
  const std::vector<std::string>& titles() const { return titles_; }

  /// In the order of the names. Throws Error for one that does not fit the task. They must not outlive this.
  std::vector<NamedActor> for_task(tasks::Task& task, const TaskArguments& arguments);

 private:
  std::vector<std::string> names_, titles_;
  std::vector<std::unique_ptr<policy::Policy>> policies_;  ///< null for experts, random actions, zeros and replays
};

/// The ranks of this job, or null where this is a single process. Sets the number of LibTorch's threads.
std::shared_ptr<dist::Group> join_ranks(int threads);

}  // namespace cohort::cli
