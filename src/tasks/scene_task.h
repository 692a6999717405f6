/// Base of the tasks that a sim::Scene simulates. A task of this kind says what its model is, where an episode begins,
/// what an action does to the model's controls, what is observed and what is achieved, each for one environment; the
/// base does it for all of them, in either engine, without allocating.
///
///   class Balance final : public SceneTask {
///    public:
///     explicit Balance(const TaskSettings& s) : SceneTask(s, setup(s)) {}
///    private:
///     void start(int env, const RandomStream& random, Start& start) override { start.qpos[1] = random.uniform(0); }
///     void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) override;
///     void observe(int env, const EnvState& now, ObservationRows& out) override { out.put("angle", {now.qpos[1]}); }
///     Judgement judge(int env, const EnvState& now, Terms& terms) override;
///     void visit_variables(StateVisitor&) override {}   // it keeps nothing of its own
///   };
///
/// The functions of one environment are called from several threads, for different environments: they write what is
/// their environment's and throw nothing. A name that the spec does not have, and a write beyond an observation's field,
/// the reward's terms, the controls or what start() is given, is found: the step or the reset throws Error with its name.
/// Observations, actions and the like are in host memory (device() is the CPU), also where the engine computes on a GPU.
/// Only a task that computes its environments there, too (on_device()), has them in the device's memory as well.
#pragma once
#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/config.h"
#include "core/philox.h"
#include "core/thread_team.h"
#include "sim/host/scene.h"
#include "tasks/actor.h"
#include "tasks/guarded_rows.h"
#include "tasks/name_table.h"
#include "tasks/scene_on_device.h"
#include "tasks/task.h"
#include "tasks/task_fields.h"

namespace cohort::render {
class Renderer;
}

namespace cohort::tasks {

/// key=value of every scene task.
struct SceneTaskSettings {
  std::string reward = "dense";  ///< or sparse: 1 in a step that ends with the goal reached, 0 otherwise
  std::int64_t horizon = 0;      ///< control steps; the task's own default where it is set up
  bool end_on_success = true;    ///< an episode ends (terminated) when its goal is reached
  /// TERM:FACTOR of terms of the dense reward, "torque:2"; those that are not named keep what the task gives them.
  std::vector<std::string> reward_scales;
};
void describe(config::Fields& fields, SceneTaskSettings& settings);

/// What a task of a scene is made of.
struct SceneTaskSetup {
  TaskSpec spec;  ///< complete, but for horizon and, with a sparse reward, reward_terms
  /// The model's text, or the path of its file, MJCF or URDF (a text has a `<`); its timestep divides the control
  /// period. <include>, meshes and textures of a file are looked for beside it.
  std::string mjcf;
  int controls = 1;          ///< times that control() is called in a control period; divides its timesteps
  bool clip_actions = true;  ///< to their bounds; false where the task's own formulas take what lies outside
  /// Of a text: the folder where its <include> and asset files lie; "": the working directory. Such as
  /// std::filesystem::path(__FILE__).parent_path().string().
  std::string model_folder{};
  bool fixed_base = false;  ///< of a URDF file: Urdf::fixed
  /// The model's keyframe, by its name or index, from which start() begins, its controls too; "": the default state.
  std::string keyframe{};
  /// What the scene holds besides the model, or instead of one: robots of files of their own, shapes, terrain.
  std::vector<sim::EntityDeclaration> entities{};
  /// Cameras besides the model's.
  std::vector<sim::CameraOptions> cameras{};
  /// Of the entities, cameras and options, where they are compiled already.
  std::shared_ptr<const sim::CompiledScene> compiled{};
  /// Options of the simulation; engine, device and threads are the TaskSettings'.
  sim::SceneOptions simulation{};
  /// Derived fields that EnvState::derived shows (SceneOptions::step_leaves); kSensors and kQacc, which no step leaves,
  /// are computed after each control period, for one more evaluation of the model.
  std::vector<sim::Field> leaves{};
  /// EnvState::contacts is filled after each control period, for one more collision pass of the model.
  bool contacts = false;
  /// The task computes ranges of environments (control_range() and so on): EnvState is not brought up to date for it.
  bool by_range = false;
  /// Of the engine `batched`: instead of the solver that the model asks for; "" keeps that.
  std::string batched_solver{};
  SceneTaskSettings settings{};
  TaskFields fields{};                 ///< all of the task's settings, with their values
  std::vector<std::string> remarks{};  ///< told once, beside what the scene's files have
};

/// Reads TaskSettings::overrides into `own` and returns a setup with what was read. own: a SceneTaskSettings, or what
/// derives from it and has a describe(). Throws Error for an unknown key, with the nearest, or a wrong value.
template <class Settings>
SceneTaskSetup read_settings(const TaskSettings& settings, Settings& own) {
  SceneTaskSetup setup;
  setup.fields = read_fields(settings, own);
  setup.settings = own;
  return setup;
}

/// Where EnvState::derived has a sensor's numbers; see SceneTask::sensor().
struct SensorPlace {
  std::size_t first = 0, size = 0;
};
/// Two sides of contacts, each a link with all that is fixed to it by its file, or one geom; see SceneTask::contact_pair().
struct ContactPair {
  struct Side {
    int link = -1, geom = -1;  ///< of which one is -1
    bool is(int contact_link, int contact_geom) const {
      return link >= 0 ? link == contact_link : geom == contact_geom;
    }
  };
  Side first, second;
};

/// State of one environment, in double whatever the engine computes in.
struct EnvState {
  std::span<const double> qpos, qvel;  ///< as MuJoCo's
  std::int64_t step = 0;               ///< control steps since the reset
  /// SceneTaskSetup::leaves, one field behind the other, as the last physics step left them; after a reset: of the
  /// present state.
  std::span<const double> derived{};
  std::span<const sim::Contact> contacts{};  ///< of SceneTaskSetup::contacts, of the present state

  std::span<const double> sensor(SensorPlace place) const { return derived.subspan(place.first, place.size); }
  bool touching(const ContactPair& pair) const;
  /// N, in the world: the sum of what the first side does to the second in their contacts.
  std::array<double, 3> contact_force(const ContactPair& pair) const;
};

class SceneTask : public Task {
 public:
  SceneTask(const TaskSettings& settings, SceneTaskSetup setup);
  ~SceneTask() override;

  const TaskSpec& spec() const final { return setup_.spec; }
  int n_envs() const final { return n_; }
  void reset(std::span<const std::int32_t> envs, std::span<const std::uint64_t> seeds) final;
  void step(ArrayView actions) final;
  ArrayView observation(std::size_t field) final;
  ArrayView reward() final { return bring(), make_view(reward_.data(), {n_}); }
  ArrayView success() final { return bring(), make_view(success_.data(), {n_}); }
  ArrayView terminated() final { return bring(), make_view(terminated_.data(), {n_}); }
  ArrayView truncated() final { return bring(), make_view(truncated_.data(), {n_}); }
  ArrayView broken() final { return bring(), make_view(broken_.data(), {n_}); }
  ArrayView reward_terms() final { return bring(), make_view(terms_.data(), {n_, term_count_}); }
  ArrayView metrics() final { return bring(), make_view(metrics_.data(), {n_, std::ssize(spec().metrics)}); }
  OnDevice* on_device() final { return there_.get(); }
  /// Cameras of the model; drawn when first asked for, by the renderer that TaskSettings::pictures names.
  ArrayView picture(const std::string& camera, std::span<const std::int32_t> envs) final;
  /// By a renderer of its own.
  ArrayView film(const std::string& camera, std::int32_t env, const FilmSettings& settings) final;
  std::unique_ptr<Actor> make_expert(std::uint64_t seed) override;
  /// Joints and gains of the model's actuators, and the pose that an episode's start() is given. A task whose actions are
  /// differences of joints' targets adds their scale and the pose that they are taken from.
  TaskContract contract() override;
  TaskFields settings() const final { return setup_.fields; }
  std::string description() const override;

  /// For tests, pictures and tools. The state may be read at any time; who writes it does what a reset cannot undo.
  sim::Scene& scene() { return scene_; }
  const sim::Scene& scene() const { return scene_; }
  EnvState state(int env) const;
  /// Takes up what was written to the scene's views since the last step, as a reset does of its own: observations are
  /// those of the new states. Derived fields are read as they are; scene().forward() brings them up to date before.
  void read_state();
  /// From now on a write beyond a field of an observation is found in whatever way it is written: a copy of each step,
  /// which check_task() pays.
  void watch_writes();
  /// What the expert does now; only of a task that has one.
  void act_as_expert(int env, std::span<float> action) { expert(env, state(env), action); }

 protected:
  /// Where an episode begins: the model's default state, or SceneTaskSetup::keyframe, for start() to change.
  struct Start {
    std::span<double> qpos, qvel, ctrl;
    std::span<double> mocap_pos, mocap_quat;
  };
  /// A field's numbers of one environment, as a span whose elements are looked up with care: one that is not there is an
  /// error of the step. What it is converted to, std::span, knows no such care.
  class ObservationRow {
   public:
    ObservationRow(SceneTask& task, std::size_t field, std::span<float> row) : task_(task), field_(field), row_(row) {}
    float& operator[](std::size_t i) const { return i < row_.size() ? row_[i] : task_.beyond(field_); }
    operator std::span<float>() const { return row_; }
    std::span<float> subspan(std::size_t first, std::size_t count = std::dynamic_extent) const {
      return row_.subspan(first, count);
    }
    std::size_t size() const { return row_.size(); }
    float* data() const { return row_.data(); }
    auto begin() const { return row_.begin(); }
    auto end() const { return row_.end(); }

   private:
    SceneTask& task_;
    std::size_t field_;
    std::span<float> row_;
  };
  /// The rows of one environment. Fields are named as in the spec, or counted from 0 in its order; a name is looked up
  /// in the first step and known again afterwards.
  class ObservationRows {
   public:
    ObservationRows(SceneTask& task, int env) : task_(task), env_(static_cast<std::size_t>(env)) {}
    /// The field's numbers. A field that the spec does not have is an error of the step.
    ObservationRow operator[](std::size_t field) const;
    ObservationRow operator[](Name field) const { return (*this)[task_.field_of(field, next_)]; }
    /// Writes these numbers, as many as the field has; another number of them is an error of the step.
    void put(std::size_t field, std::span<const double> values) const;
    void put(Name field, std::span<const double> values) const { put(task_.field_of(field, next_), values); }
    void put(std::size_t field, std::initializer_list<double> values) const {
      put(field, std::span(values.begin(), values.size()));
    }
    void put(Name field, std::initializer_list<double> values) const {
      put(task_.field_of(field, next_), std::span(values.begin(), values.size()));
    }

   private:
    SceneTask& task_;
    std::size_t env_;
    mutable std::size_t next_ = 0;  // field that is likely to be named next
  };
  /// The terms of the dense reward of one environment in a step, 0 where nothing is written.
  class Terms {
   public:
    Terms(SceneTask& task, std::span<float> row) : task_(task), row_(row) {}
    /// With a sparse reward: none is asked for, and what is written counts for nothing.
    bool empty() const { return row_.empty(); }
    /// A term that the spec does not have is an error of the step.
    void put(Name term, double value) const;
    float& operator[](std::size_t term) const { return row_.data()[term]; }

   private:
    SceneTask& task_;
    std::span<float> row_;
    mutable std::size_t next_ = 0;
  };
  struct Judgement {
    bool success = false;
    bool terminated = false;  ///< for another reason than success
    bool truncated = false;   ///< cut off before the horizon
  };

  /// random: keyed by the episode's seed alone.
  virtual void start(int env, const RandomStream& random, Start& start) = 0;
  /// Before the episodes of these environments end: their states are still there.
  virtual void before_reset(std::span<const std::int32_t>) {}
  /// After start() of all environments whose episodes begin: for what is written to many at once.
  virtual void after_start(std::span<const std::int32_t>) {}
  /// Before a control period, for all environments, from the thread that steps.
  virtual void before_step() {}
  /// After a reset and after each control period, before the three below: for what several of them need.
  virtual void refresh(int, const EnvState&) {}
  /// Turns an action (finite; within its bounds, but for clip_actions) into the model's controls; ctrl holds the last
  /// ones. Called SceneTaskSetup::controls times in a control period, each time with the state of that moment.
  virtual void control(int env, const EnvState& now, std::span<const float> action, std::span<double> ctrl) = 0;
  virtual void observe(int env, const EnvState& now, ObservationRows& out) = 0;
  /// After a step.
  virtual Judgement judge(int env, const EnvState& now, Terms& terms) = 0;
  /// Adds whatever the task remembers of its environments, beside the scene's state and parameters: goals, commands,
  /// counters, a curriculum's level; nothing where it remembers nothing. A training that goes on gets it back; what
  /// refresh() works out of it and of the state is worked out anew.
  virtual void visit_variables(StateVisitor& state) = 0;
  /// What a term of the reward is multiplied by after judge(): 1 but for SceneTaskSettings::reward_scales.
  float term_scale(std::size_t term) const { return term_scale_.empty() ? 1.0f : term_scale_[term]; }

  // Who computes many environments at once overrides the three below instead of control(), refresh(), observe() and
  // judge(). Ranges begin at multiples of kRange, and end there or with the last environment.

  static constexpr int kRange = 16;
  /// The controls of [first, last), from actions(): written to control_view().
  virtual void control_range(int first, int last);
  /// After a control period, and after count_steps(first, last): observations, and judged() of those that are not broken.
  virtual void finish_range(int first, int last);
  /// The views of the engine's fields in host memory are new: those of state and controls, and setup's leaves.
  virtual void views_taken() {}
  /// After a reset: observations of these environments.
  virtual void observe_some(std::span<const std::int32_t> envs);
  /// (n_envs, action width): finite, and within bounds but for clip_actions.
  std::span<const float> actions() const { return actions_; }
  ArrayView control_view() const { return view_ctrl_; }
  bool is_broken(int env) const { return broken_[static_cast<std::size_t>(env)] != 0; }
  std::span<const std::int64_t> steps() const { return steps_; }
  /// (n_envs, elements) of a field, to be written.
  std::span<float> observation_values(std::size_t field) { return observations_[field]; }
  /// (n_envs, metrics) of the spec's metrics, to be written after a step.
  std::span<float> metric_values() { return metrics_; }
  /// An environment's judgement, and its terms of the dense reward before SceneTaskSettings::reward_scales: as many as
  /// the spec's, or none with a sparse reward.
  void judged(int env, Judgement judgement, std::span<const float> terms);
  bool is_sparse() const { return sparse_; }

  /// From now on environments are computed by this, on the engine's device, and none of control_range(), finish_range(),
  /// views_taken() and observe_some() is called; start(), before_reset(), after_start() and before_step() are, of which
  /// the first writes what goes there. Called at the end of the constructor of a task that is by_range.
  void compute_on(std::unique_ptr<SceneOnDevice> there) { there_ = std::move(there); }
  /// Factors on the terms of the reward; empty: 1.
  const std::vector<float>& term_scales() const { return term_scale_; }
  bool clips_actions() const { return setup_.clip_actions; }

  /// The action of who can do the task; a function of the state alone, so that it takes up any situation.
  virtual void expert(int, const EnvState&, std::span<float>) {}

  /// A sensor of the model, to be looked up once. Throws Error for a name that the model does not have, with the nearest,
  /// and where SceneTaskSetup::leaves lacks kSensors.
  SensorPlace sensor(const std::string& name) const;
  /// Each is a link's name, or a geom's. Throws Error for another, with the nearest, and without SceneTaskSetup::contacts.
  ContactPair contact_pair(const std::string& first, const std::string& second) const;

  void visit_state(StateVisitor& state) final;

 private:
  void find_contacts(int env);
  /// What the device computes, to host memory, where it is newer there.
  void bring();
  HostRows host_rows();
  void step_there(ArrayView actions);
  void observe_where_computed(std::span<const std::int32_t> envs);
  /// The named field, or one beyond the last, which is an error of the step.
  std::size_t field_of(Name name, std::size_t& next);
  /// Keeps the first text of what a task's function did wrong, from any thread, for throw_if_wrong().
  void found_wrong(std::string text);
  void throw_if_wrong();
  /// Keeps that observe() writes beyond this field, and gives it a number that nobody reads.
  float& beyond(std::size_t field);
  std::span<float> observation_row(std::size_t field, std::size_t env);
  void observe_into_rows(int env, const EnvState& now);
  void gather();
  void gather_env(int env);
  void gather_range(int first, int last);
  void observe_now(int env);
  void control_env(int env);
  void finish_env(int env);
  void read_action(int env);
  /// Counts a control period, and sees which environments it broke.
  void count_steps(int first, int last);
  /// Calls `body` for ranges that are all environments together, from several threads.
  void for_each_range(const std::function<void(int, int)>& body);
  /// Says, once, why an environment's state broke.
  void say_stop();

  /// A camera's pictures and which of them show the present.
  struct Pictures {
    int camera = 0;                   ///< the renderer's
    std::vector<std::uint8_t> rgb;    ///< (n, H, W, 3)
    std::vector<std::int64_t> drawn;  ///< moments_ of an environment when it was drawn
  };
  void draw(Pictures& pictures, std::span<const std::int32_t> envs);
  /// Index into the spec's cameras. Throws Error naming the nearest.
  std::size_t camera_index(const std::string& camera) const;

  SceneTaskSetup setup_;
  sim::Scene scene_;
  PictureSettings picture_settings_;
  int threads_ = 1;
  std::unique_ptr<render::Renderer> renderer_, film_renderer_;
  std::optional<std::array<bool, 6>> film_groups_;  // that film_renderer_ draws
  std::vector<std::uint8_t> film_;
  std::vector<Pictures> pictures_;     // of the spec's cameras
  std::vector<std::int64_t> moments_;  // of an environment: resets and steps so far
  std::vector<std::uint8_t> picture_rows_;
  std::vector<std::int32_t> stale_;
  int n_ = 0, nq_ = 0, nv_ = 0, nu_ = 0, substeps_ = 1;
  std::int64_t term_count_ = 0;
  std::vector<float> term_scale_;  // of each term; empty where the settings name none
  bool sparse_ = false;
  bool start_looked_at_ = false;      // for links that overlap
  bool stop_said_ = false;            // of an environment whose state broke
  int keyframe_ = -1;                 // SceneTaskSetup::keyframe
  std::unique_ptr<ThreadTeam> team_;  // where the engine runs no parts
  std::vector<std::vector<float>> observations_;
  std::vector<std::size_t> observation_width_;
  std::vector<GuardedRows<float>> observation_rows_;  // of each field, where writes are watched; else empty
  GuardedRows<float> term_rows_;                      // as judge() writes them
  std::vector<float> reward_, terms_, metrics_, actions_;
  std::vector<std::uint8_t> success_, terminated_, truncated_, broken_;
  std::vector<std::int64_t> steps_;
  std::vector<double> qpos_, qvel_;  // (n, nq), (n, nv)
  GuardedRows<double> ctrl_;         // (n, nu)
  std::vector<double> derived_;      // (n, derived_width_)
  std::size_t derived_width_ = 0;
  bool evaluates_ = false;                           // derived_ has what no step leaves
  std::vector<std::vector<sim::Contact>> contacts_;  // of each environment
  NameTable field_names_, term_names_;
  GuardedRows<double> start_qpos_, start_qvel_, start_ctrl_, start_mocap_pos_, start_mocap_quat_;  // a row each
  std::unique_ptr<SceneOnDevice> there_;  // null: environments are computed here
  bool newer_there_ = false;              // than what bring() brought
  std::atomic<bool> wrong_ = false;
  std::mutex wrong_mutex_;
  std::string wrong_text_;
  ArrayView view_qpos_, view_qvel_, view_ctrl_, view_status_;
  std::vector<ArrayView> view_derived_;
  std::span<const float> given_;  // actions of the step that is being done
  std::function<void(int, int)> first_control_work_, control_work_, after_work_;
  std::function<void(sim::Engine::Part&)> part_work_;
  std::function<void(int)> team_work_;
  const std::function<void(int, int)>* body_ = nullptr;
};

}  // namespace cohort::tasks
