/// What the commands that run tasks have in common: which task, how many environments, who acts.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "dist/group.h"
#include "serve/remote_actor.h"
#include "tasks/actor.h"
#include "tasks/task.h"

namespace CLI {
class App;
}
namespace cohort::policies {
struct RecordedPictures;
class TrainedPolicy;
}  // namespace cohort::policies

namespace cohort::cli {

/// A flag in both forms, "--n-envs,--n_envs", as CLI11 takes it.
std::string flag(const std::string& name);

struct TaskArguments {
  std::vector<std::string> words;  ///< the task's name, where it is a word, and settings key=value
  tasks::TaskSettings settings;
  std::optional<int> size;              ///< px, of square pictures; else the policy's, or 128
  std::optional<std::string> renderer;  ///< raycast, mujoco; else the policy's, or the task's own
  std::string libero;                   ///< folder of LIBERO's scenes; else COHORT_LIBERO's
  std::string device;                   ///< of the policy: cpu, cuda:0
  std::uint64_t seed = 0;               ///< keys what actors draw
  std::int64_t exec_horizon = 0;
  std::int64_t replay_horizon = 8;
  bool raw_weights = false;
  std::string data_set;
  serve::RemoteActorSettings remote;  ///< of policies behind ws://

  /// Flags of the task and of whoever acts.
  void add_to(CLI::App& app);
  /// The words behind the task that are settings of it, and those of policies (model.*, data.*); and says where LIBERO's
  /// scenes lie. Throws UsageError for others, Error for a folder that is not there.
  void take_words(std::size_t begin);
  /// Cores of this rank: --threads, or its share of the machine's.
  int threads() const;
  /// Throws Error for an unknown task.
  std::unique_ptr<tasks::Task> make(const std::string& name);

  std::vector<std::string> policy_overrides;
};

/// Somebody who acts, and what that stands on.
class ActorOwner {
 public:
  virtual ~ActorOwner() = default;
  virtual tasks::Actor& actor() = 0;
  /// A line about it; empty: its name says all.
  virtual std::string summary() const { return ""; }
  /// What its actions depend on beside the task: a checkpoint's path and step.
  virtual std::string identity() = 0;
};

/// Those who are to act: each is expert, random, replay:DATA, a policy server ws://HOST:PORT, or the path of a run or checkpoint.
///
///   Cast cast({"outputs/push/latest", "expert"}, arguments);   // reads checkpoints
///   cast.choose_pictures(arguments);                           // before the task is made
///   const auto task = arguments.make("push");
///   const auto owners = cast.meet(*task, arguments);
class Cast {
 public:
  /// Throws Error for who is none of them, who is named twice, and for a checkpoint that cannot be read.
  Cast(std::vector<std::string> names, const TaskArguments& arguments);
  ~Cast();

  /// Renderer and size of the task's pictures are those that the policies learnt from, unless flags say others, which
  /// is said. Throws Error where two policies learnt from different ones and no flag decides.
  void choose_pictures(TaskArguments& arguments) const;

  /// What they are called in tables, in the order of the names: "expert", or as much of a path's end as tells it from
  /// the others.
  const std::vector<std::string>& titles() const { return titles_; }

  /// In the order of the names. Throws Error for one that does not fit the task. The cast must outlive them.
  std::vector<std::unique_ptr<ActorOwner>> meet(tasks::Task& task, const TaskArguments& arguments);

 private:
  /// What the i-th learnt from; nothing where it sees no pictures.
  std::optional<policies::RecordedPictures> pictures_of(std::size_t i, const std::string& remote_form) const;

  std::vector<std::string> names_, titles_;
  std::vector<std::unique_ptr<policies::TrainedPolicy>> policies_;  ///< null for who is no policy
  std::vector<std::optional<serve::ServerInfo>> servers_;           ///< likewise for who is no server
};

/// The ranks of this job, or null where this is a single process. Sets the number of LibTorch's threads.
std::shared_ptr<dist::Group> join_ranks(int threads);

}  // namespace cohort::cli
