/// What a page of `cohort view` looks at: a scene that goes on step by step, and what can be done to it.
///
///   TaskSession session(*task, actors, {.seed = 3});
///   LiveServer server(session, {});            // live_server.h
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "sim/host/scene.h"
#include "tasks/takes_commands.h"

namespace cohort::tasks {
class Actor;
class Task;
class TakesCommands;
}  // namespace cohort::tasks

namespace cohort::view {

class LiveSession {
 public:
  virtual ~LiveSession() = default;

  virtual sim::Scene& scene() = 0;
  virtual std::string title() const = 0;
  virtual double period() const = 0;  ///< s of simulated time in a step
  virtual double time() const = 0;    ///< s since the last reset
  virtual void step() = 0;
  /// Begins anew in every environment; environment i gets seed + i.
  virtual void reset(std::uint64_t seed) = 0;
  /// What may act, for the reader to choose from, and who does. Empty: nobody.
  virtual std::vector<std::string> actors() const = 0;
  virtual std::size_t actor() const = 0;
  virtual void choose_actor(std::size_t which) = 0;
  /// Numbers of the present state that are drawn over time, of one environment.
  virtual const std::vector<std::string>& curve_names() const = 0;
  virtual std::vector<float> curve_values(std::int32_t env) = 0;
  /// Looks again who may act, as the checkpoints of a run that trains. True where actors() has changed; asked for every
  /// other second.
  virtual bool look_again() { return false; }
  /// A line: "3 of 5 episodes succeeded".
  virtual std::string status() const = 0;
  /// Whether controls can be set by hand: whoever acts leaves them alone.
  virtual bool takes_controls() const = 0;

  /// What a person may tell the robots (tasks/takes_commands.h); empty: nothing.
  virtual std::vector<tasks::CommandShape> commands() const { return {}; }
  /// What an environment is told now: the numbers of all commands behind each other.
  virtual std::vector<float> command_values(std::int32_t) const { return {}; }
  /// Whether a person has told it.
  virtual bool is_commanded(std::int32_t) const { return false; }
  /// One of these numbers, in these environments, until release_commands(). Throws Error where there is no such number.
  virtual void set_command(const std::vector<std::int32_t>& envs, std::size_t number, float value);
  virtual void release_commands(const std::vector<std::int32_t>&) {}

  /// A hinge's or slide's coordinate (rad, m). Throws Error for another joint.
  float joint_value(std::int32_t env, std::size_t joint);
  void set_joint(std::int32_t env, std::size_t joint, float value);
  /// Puts the body of a free joint to a place (m, in the world), at rest. Throws Error for another joint.
  void set_place(std::int32_t env, std::size_t joint, const std::array<float, 3>& pos);
  /// Throws Error where takes_controls() is false or there is no such control.
  void set_control(std::int32_t env, std::size_t control, float value);

 protected:
  /// After a person has put something elsewhere.
  virtual void moved_by_hand();

 private:
  const sim::JointInfo& joint_of(std::int32_t env, std::size_t joint);
};

/// A model without a task: its actuators are driven at random, held, or by hand.
class ModelSession final : public LiveSession {
 public:
  /// control: random, zero or hold, as `cohort simulate` has them, or hand. keyframe: -1: the default state.
  ModelSession(sim::Scene& scene, const std::string& control, int keyframe);

  sim::Scene& scene() override { return scene_; }
  std::string title() const override { return scene_.info().name; }
  double period() const override;
  double time() const override { return static_cast<double>(steps_) * period(); }
  void step() override;
  void reset(std::uint64_t seed) override;
  std::vector<std::string> actors() const override { return {"random", "zero", "hold", "hand"}; }
  std::size_t actor() const override { return control_; }
  void choose_actor(std::size_t which) override;
  const std::vector<std::string>& curve_names() const override { return names_; }
  std::vector<float> curve_values(std::int32_t env) override;
  std::string status() const override;
  bool takes_controls() const override { return control_ == 3; }

 private:
  sim::Scene& scene_;
  std::size_t control_ = 0;
  int keyframe_ = -1;
  std::int64_t steps_ = 0;
  std::uint64_t seed_ = 0;
  std::vector<std::string> names_;
  std::vector<std::size_t> shown_;  ///< coordinates that are drawn
};

/// A task, with whoever may act in it. Episodes follow each other: where one has ended the next seed begins.
class TaskSession final : public LiveSession {
 public:
  struct Named {
    std::string name;
    std::shared_ptr<tasks::Actor> actor{};
  };
  /// Who may act now, all of them; nothing where that is as it was.
  using Look = std::function<std::optional<std::vector<Named>>()>;
  /// Throws Error where the task has no scene in three dimensions.
  TaskSession(tasks::Task& task, std::vector<Named> actors, std::uint64_t seed, Look look = {});

  sim::Scene& scene() override { return scene_; }
  std::string title() const override;
  double period() const override;
  double time() const override { return static_cast<double>(steps_[0]) * period(); }
  void step() override;
  void reset(std::uint64_t seed) override;
  std::vector<std::string> actors() const override;
  std::size_t actor() const override { return acting_; }
  void choose_actor(std::size_t which) override;
  bool look_again() override;
  const std::vector<std::string>& curve_names() const override { return names_; }
  std::vector<float> curve_values(std::int32_t env) override;
  std::string status() const override;
  std::vector<tasks::CommandShape> commands() const override;
  std::vector<float> command_values(std::int32_t env) const override;
  bool is_commanded(std::int32_t env) const override { return held_[static_cast<std::size_t>(env)] != 0; }
  void set_command(const std::vector<std::int32_t>& envs, std::size_t number, float value) override;
  void release_commands(const std::vector<std::int32_t>& envs) override;
  bool takes_controls() const override { return false; }

 private:
  void moved_by_hand() override;
  void begin(const std::vector<std::int32_t>& envs);

  tasks::Task& task_;
  sim::Scene& scene_;
  tasks::TakesCommands* commanded_ = nullptr;  ///< the task, where a person can tell its robots something
  std::vector<Named> actors_;
  Look look_;
  std::size_t acting_ = 0;
  std::uint64_t next_seed_ = 0;
  std::vector<std::int64_t> steps_;  ///< of each environment's episode
  std::vector<std::uint8_t> succeeded_, held_;
  std::vector<double> return_;
  std::vector<float> actions_;
  std::vector<std::int32_t> all_;
  std::int64_t episodes_ = 0, successes_ = 0;  ///< that have ended
  double returns_ = 0;                         ///< of them
  std::vector<std::string> names_;
  std::vector<std::pair<std::size_t, std::int64_t>> fields_;  ///< observations that are drawn: field, elements
};

}  // namespace cohort::view
