/// LIBERO's environment for one scene, in many environments at once: control, time, and what is read when, in double.
///
///   Simulation simulation(folder, {.n_envs = 16, .threads = 2, .engine = sim::EngineKind::kMujoco});
///   simulation.reset(env, folder.initial_state(0));      // LIBERO's reset() and set_init_state()
///   simulation.step(actions);                            // (n_envs, 7): 25 timesteps with their torques
///   simulation.success(env), simulation.seen(env);
///
/// Readings are late, as robosuite's are: after a control step positions and velocities of joints are those of one
/// timestep before its end, poses (and so pictures) those of two before. Success reads poses and contacts of one
/// timestep before the end, joints of the end.
#pragma once
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/thread_team.h"
#include "sim/host/scene.h"
#include "tasks/libero/frames.h"
#include "tasks/libero/predicates.h"
#include "tasks/libero/robot_control.h"
#include "tasks/libero/scene_folder.h"
#include "tasks/state_visitor.h"

namespace cohort::tasks::libero {

struct SimulationSettings {
  int n_envs = 1;
  int threads = 1;
  sim::EngineKind engine = sim::EngineKind::kMujoco;
  bool judge_watched = false;  ///< after each step judge the folder's watched predicates, too, not the goal alone
};

class Simulation {
 public:
  /// `folder` must outlive this. Throws Error for a goal that cannot be judged, and what the engine refuses.
  Simulation(const SceneFolder& folder, const SimulationSettings& settings);

  int n_envs() const { return n_; }
  const SimulationSettings& settings() const { return settings_; }
  const sim::ModelInfo& model() const { return scene_.info(); }
  sim::Scene& scene() { return scene_; }
  const SceneFolder& folder() const { return folder_; }
  const RobotControl& robot() const { return robot_; }
  const Frames& frames() const { return frames_; }
  Predicates& predicates() { return predicates_; }

  /// A new episode: time, qpos, qvel of `state`. What is read afterwards is of this state.
  void reset(int env, std::span<const double> state);
  /// One control step of every environment. actions: (n_envs, 7), finite.
  void step(std::span<const double> actions);

  /// The readings of an environment; valid until its next step or reset.
  struct Seen {
    std::span<const double> qpos, qvel;  ///< joints as the sensors saw them
    std::span<const double> poses_qpos;  ///< whose poses the sensors and cameras saw
  };
  Seen seen(int env) const;
  /// The present state.
  std::span<const double> qpos(int env) const { return row(qpos_, env, nq_); }
  std::span<const double> qvel(int env) const { return row(qvel_, env, nv_); }
  /// The controls of the last control step: (substeps, nu).
  std::span<const double> controls(int env) const {
    return std::span(controls_).subspan(as_size(env) * as_size(folder_.substeps) * as_size(nu_),
                                        as_size(folder_.substeps) * as_size(nu_));
  }
  const RobotControl::Memory& memory(int env) const { return memories_[as_size(env)]; }

  /// Of the last step, or the state after a reset: the goal's first, then, where they are judged, the watched ones.
  bool holds(int env, std::size_t predicate) const { return truths_[as_size(env) * judged_ + predicate] != 0; }
  bool success(int env) const;
  /// The simulation of this environment failed; until its reset.
  bool broken(int env) const { return broken_[as_size(env)] != 0; }
  /// Judges a predicate of predicates() on the present state alone.
  bool judge_now(int env, std::size_t predicate);

  /// While it lives the scene's qpos are those whose poses cameras saw, for a renderer; afterwards the present ones.
  class AsSeen {
   public:
    explicit AsSeen(Simulation& simulation);
    ~AsSeen();
    AsSeen(const AsSeen&) = delete;
    AsSeen& operator=(const AsSeen&) = delete;

   private:
    Simulation& simulation_;
  };

  /// All that an environment's future depends on.
  struct Snapshot {
    std::vector<double> state, late;
    RobotControl::Memory memory;
    std::vector<std::uint8_t> truths;
    std::uint8_t broken = 0;
  };
  /// Adds the same of all environments.
  void visit_state(StateVisitor& state);
  Snapshot take(int env);
  /// Of a simulation of the same folder and engine.
  void put(int env, const Snapshot& snapshot);

 private:
  static std::size_t as_size(std::int64_t n) { return static_cast<std::size_t>(n); }
  static std::span<const double> row(const std::vector<double>& all, int env, int width) {
    return std::span(all).subspan(as_size(env) * as_size(width), as_size(width));
  }
  void gather();
  void gather_env(int env);
  void control_env(int env);
  void for_each_env(const std::function<void(int)>& body);

  const SceneFolder& folder_;
  SimulationSettings settings_;
  int n_, nq_ = 0, nv_ = 0, nu_ = 0;
  sim::Scene scene_;
  Frames frames_;
  RobotControl robot_;
  Predicates predicates_;
  std::size_t goals_ = 0, judged_ = 0;
  std::vector<RobotControl::Memory> memories_;
  std::vector<Frames::Poses> poses_;
  std::vector<double> qpos_, qvel_, ctrl_, controls_;       // (n, nq), (n, nv), (n, nu), (n, substeps, nu)
  std::vector<double> late_qpos_, late_qvel_, late_poses_;  // (n, nq), (n, nv), (n, nq)
  std::vector<std::uint8_t> touching_, truths_, broken_;    // (n, judged), (n, judged), (n)
  std::span<const double> actions_;
  int substep_ = 0;
  ArrayView view_qpos_, view_qvel_, view_ctrl_;
  ThreadTeam team_;
  std::function<void(int)> team_work_, control_work_;
  const std::function<void(int)>* body_ = nullptr;
};

}  // namespace cohort::tasks::libero
