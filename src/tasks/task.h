/// A task: a batch of environments in which a robot has something to do. Everything that runs tasks (recording,
/// evaluation, reinforcement learning) meets them here, whatever simulates them.
///
///   std::unique_ptr<Task> task = make_task("pick-and-place", {.n_envs = 64, .threads = 2});   // tasks/registry.h
///   std::vector<std::int32_t> envs(64);  // 0, 1, ...
///   task->reset(envs, seeds);                        // an episode is a function of its seed and of the actions
///   while (...) {
///     actor.act(*task, envs, actions);               // tasks/actor.h
///     task->step(actions);
///     task->reward(), task->success(), task->terminated(), task->truncated();
///   }
///
/// An environment goes on after its episode has ended, until it is reset: who runs it decides. What happens in an
/// environment depends on its seed and its actions only: not on its index, on how many there are, or on threads.
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/array_view.h"
#include "core/error.h"
#include "tasks/observations.h"
#include "tasks/state_visitor.h"

namespace cohort::config {
class Fields;
}

namespace cohort::tasks {

class Actor;
class OnDevice;
struct TaskContract;

struct ActionSpec {
  std::vector<std::string> names;  ///< of the components
  std::vector<float> low, high;    ///< bounds; the task clips what lies outside, unless its page says otherwise
  std::string unit;
  /// What recordings call it, and what a policy's action must be called: another name where settings of the task give
  /// the numbers another meaning.
  std::string field = "action";
  std::int64_t width() const { return static_cast<std::int64_t>(names.size()); }
};

/// A number that a task shows of its environments beside the reward: how far a speed is from the commanded one.
struct MetricSpec {
  std::string name;
  bool at_end = false;  ///< what counts is the value with which an episode ends; else the mean over control steps
};

/// What there is to know about a task without running it.
struct TaskSpec {
  std::string name;         ///< letters, digits, hyphens, underscores: "pick-and-place"
  std::string summary;      ///< one line for `cohort tasks`
  std::string instruction;  ///< what a policy that takes instructions is told
  std::vector<FieldSpec> observations;
  std::vector<std::string> cameras;  ///< those that demonstrations are recorded with come first; empty: no pictures
  ActionSpec action;
  double control_period = 0;              ///< s between actions
  std::int64_t horizon = 0;               ///< control steps after which an episode is cut off (truncated)
  std::vector<std::string> reward_terms;  ///< parts that the reward is the sum of; empty: it has none
  /// The most that each term can be in a step; 0: it is not known. Empty: of none.
  std::vector<float> reward_best = {};
  std::vector<MetricSpec> metrics = {};
  /// Engine and renderer that the task takes where none is asked for.
  std::string engine = "batched", renderer = "raycast";
  bool has_expert = false;
  std::string expert;  ///< how the expert does it, one line; empty without one
};

/// Pictures that a task is asked for.
struct PictureSettings {
  int height = 128, width = 128;  ///< px
  std::string renderer;           ///< raycast or mujoco; empty: the task's own (TaskSpec::renderer)
};

/// Pictures for people, of videos: of this size, whatever the size of the pictures that a policy sees.
struct FilmSettings {
  int height = 256, width = 256;  ///< px
  /// Which of MuJoCo's geom groups 0 to 5 are shown; nothing: those that the task's own pictures show.
  std::optional<std::array<bool, 6>> geom_groups = {};
};

struct TaskSettings {
  int n_envs = 1;
  int threads = 1;     ///< cores that the task uses
  std::string engine;  ///< batched or mujoco; empty: the task's own (TaskSpec::engine)
  DeviceId device{};
  PictureSettings pictures;
  /// key=value of the task's own settings, e.g. reward=sparse; `cohort tasks NAME` lists them.
  std::vector<std::string> overrides;
  /// For a learner: curricula go on from episode to episode. Otherwise an episode depends on its seed alone, at a
  /// curriculum's end, so that an evaluation has the same figures whatever runs beside it.
  bool learning = false;
  std::string registered_name = "";  ///< under which make_task() was asked for it, for messages
};

/// Settings of a task: which there are, with their values, types, choices and what they mean (tasks/task_fields.h).
using TaskFields = std::shared_ptr<const config::Fields>;

class Task : public Observations {
 public:
  virtual const TaskSpec& spec() const = 0;

  const std::string& observed() const final { return spec().name; }
  const std::vector<FieldSpec>& fields() const final { return spec().observations; }
  const std::vector<std::string>& cameras() const final { return spec().cameras; }

  /// Begins an episode in each of these environments. seeds: one for each of envs.
  virtual void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) = 0;

  /// One control period in every environment. actions: (n_envs, action width), float32, in device()'s memory. An
  /// action that is not finite breaks its environment (broken()) and no other.
  virtual void step(ArrayView actions) = 0;

  // Views in device()'s memory, contiguous, valid as long as the task; their content, and that of observation(), is that
  // of the last reset() or step() of each environment.

  virtual ArrayView reward() = 0;      ///< (n_envs) float32, of the last step
  virtual ArrayView success() = 0;     ///< (n_envs) uint8: the goal is reached now
  virtual ArrayView terminated() = 0;  ///< (n_envs) uint8: the episode is over, there is no future to be worth anything
  virtual ArrayView truncated() = 0;   ///< (n_envs) uint8: the horizon is reached; the state has a value
  /// (n_envs) uint8: the simulation failed, or an action was not finite. Also terminated. Until reset.
  virtual ArrayView broken() = 0;
  /// (n_envs, terms) float32 of spec().reward_terms, whose sum the reward is.
  virtual ArrayView reward_terms();
  /// (n_envs, metrics) float32 of spec().metrics, of the last step.
  virtual ArrayView metrics();

  /// Where the environments are in a device's memory (tasks/on_device.h): then step() takes actions there, too, and
  /// copies nothing to the host. Null: device()'s memory is all there is.
  virtual OnDevice* on_device() { return nullptr; }

  /// The present picture of one environment for a video, upright: (height, width, 3) uint8 in host memory, valid until
  /// the next call. What picture() gives stays the same to the bit. A task that draws at one size only shows that,
  /// enlarged. Throws Error as picture() does.
  virtual ArrayView film(const std::string& camera, std::int32_t env, const FilmSettings& settings);

  /// Who can do the task; null where there is none. `seed` keys what it draws. It must not outlive the task.
  virtual std::unique_ptr<Actor> make_expert(std::uint64_t seed);

  /// How actions become joints of a robot, for who takes a policy elsewhere (tasks/task_contract.h): empty where the
  /// task does not say.
  virtual TaskContract contract();

  /// The task's own settings (TaskSettings::overrides); null: there are none.
  virtual TaskFields settings() const { return nullptr; }

  /// The state of all environments: what their future depends on, and what the views show. A task of the same name,
  /// settings and engine that loads it goes on with the same bits; its environments may be some of those that were saved,
  /// or of several tasks.
  TaskState save();
  /// Throws Error, naming `source` and the array, where the state is another task's; then the environments have to be
  /// reset.
  void load(const TaskState& state, const std::string& source);

  /// Lines that the report and a recording keep beside the spec: engine, renderer, settings. JSON text.
  virtual std::string description() const { return "{}"; }

 protected:
  /// Adds every array of the state. Where state.loads(), what depends on them is brought up to date afterwards.
  virtual void visit_state(StateVisitor& state) = 0;

 private:
  std::vector<std::uint8_t> enlarged_;  ///< film() of tasks that draw at one size
};

}  // namespace cohort::tasks
