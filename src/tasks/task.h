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

namespace cohort::tasks {

class Actor;

/// A named quantity that every environment has, float32.
struct FieldSpec {
  std::string name;                 ///< "eef_pos"
  std::vector<std::int64_t> shape;  ///< of one environment
  std::string unit;                 ///< of every number: "m", "rad", "m/s"; "1" for plain numbers
  std::string summary;
  /// No robot measures it: where a thing or the goal is. `cohort collect` leaves it out of LeRobot's observation.state.
  bool privileged = false;
  std::int64_t elements() const;
};

struct ActionSpec {
  std::vector<std::string> names;  ///< of the components
  std::vector<float> low, high;    ///< bounds; the task clips what lies outside, unless its page says otherwise
  std::string unit;
  /// What recordings call it, and what a policy's action must be called: another name where settings of the task give
  /// the numbers another meaning.
  std::string field = "action";
  std::int64_t width() const { return static_cast<std::int64_t>(names.size()); }
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
};

class Task {
 public:
  virtual ~Task() = default;

  virtual const TaskSpec& spec() const = 0;
  virtual int n_envs() const = 0;

  /// Begins an episode in each of these environments. seeds: one for each of envs.
  virtual void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) = 0;

  /// One control period in every environment. actions: (n_envs, action width), float32, on the task's device. An
  /// action that is not finite breaks its environment (broken()) and no other.
  virtual void step(ArrayView actions) = 0;

  // Views in the device's memory, contiguous, valid as long as the task; their content is that of the last reset() or
  // step() of each environment.

  /// (n_envs, shape...) float32 of spec().observations[field].
  virtual ArrayView observation(std::size_t field) = 0;
  virtual ArrayView reward() = 0;      ///< (n_envs) float32, of the last step
  virtual ArrayView success() = 0;     ///< (n_envs) uint8: the goal is reached now
  virtual ArrayView terminated() = 0;  ///< (n_envs) uint8: the episode is over, there is no future to be worth anything
  virtual ArrayView truncated() = 0;   ///< (n_envs) uint8: the horizon is reached; the state has a value
  /// (n_envs) uint8: the simulation failed, or an action was not finite. Also terminated. Until reset.
  virtual ArrayView broken() = 0;
  /// (n_envs, terms) float32 of spec().reward_terms, whose sum the reward is.
  virtual ArrayView reward_terms();

  /// The present pictures of a camera: (n_envs, height, width, 3) uint8, row 0 is the top, in host memory; only the
  /// rows of `envs` are up to date. A picture is drawn once, however often it is asked for. Throws Error for a camera
  /// that the task does not have, naming the nearest.
  virtual ArrayView picture(const std::string& camera, std::span<const std::int32_t> envs);

  /// The present picture of one environment for a video, upright: (height, width, 3) uint8 in host memory, valid until
  /// the next call. What picture() gives stays the same to the bit. A task that draws at one size only shows that,
  /// enlarged. Throws Error as picture() does.
  virtual ArrayView film(const std::string& camera, std::int32_t env, const FilmSettings& settings);

  /// Who can do the task; null where there is none. `seed` keys what it draws. It must not outlive the task.
  virtual std::unique_ptr<Actor> make_expert(std::uint64_t seed);

  /// The task's own settings (TaskSettings::overrides), a line each with default and meaning; "" where there are none.
  virtual std::string settings_help() const { return ""; }

  /// Lines that the report and a recording keep beside the spec: engine, renderer, settings. JSON text.
  virtual std::string description() const { return "{}"; }

  /// Index into spec().observations. Throws Error naming the nearest field.
  std::size_t observation_index(std::string_view name) const;

 private:
  std::vector<std::uint8_t> enlarged_;  ///< film() of tasks that draw at one size
};

}  // namespace cohort::tasks
