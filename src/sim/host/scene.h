/// Scenes: entities composed into one model, simulated in many environments at once. The names are those of Genesis.
///
///   sim::Scene scene({.timestep = 0.005, .engine = sim::EngineKind::kMujoco, .threads = 2, .seed = 1});
///   scene.add_entity(sim::Plane{});
///   sim::Entity robot = scene.add_entity(sim::Mjcf{"robot.xml"}, "robot");
///   scene.build(1024, {1.0, 1.0});
///   robot.control_dofs_position(targets);
///   scene.step();
///   std::vector<float> q = robot.get_dofs_position();
///
/// Backend and seed are part of SceneOptions: the batched engine computes in float on its device, the mujoco engine in
/// double on the CPU. Arrays go in and out row-major, (environments, dofs or links, components); a value array may also
/// leave out the environments and then holds for all of the selected ones.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "sim/engine.h"
#include "sim/host/compile.h"
#include "sim/host/entity.h"
#include "sim/host/random_controls.h"
#include "sim/host/scene_parts.h"
#include "sim/indices.h"
#include "sim/options.h"

namespace cohort::sim {

class Scene;
struct Model;
struct VisualModel;
struct Backend;
struct EngineModel;
class Kinematics;
class Looks;

/// One thing of a scene after build(): its links, dofs and geoms. A handle; the scene owns everything. The functions of
/// SceneParts take local indices here: dof i is dofs()[i] of the scene.
class Entity : public SceneParts {
 public:
  const std::string& name() const;
  /// Global link indices. The first is the base: of a file the first body that it names below its world (of a URDF its
  /// root link, or with Urdf::fixed false the free body that bears it). What a file puts into its world itself is part
  /// of the scene's world and has no link.
  std::span<const std::int32_t> links() const;
  std::span<const std::int32_t> dofs() const;   ///< global dof indices
  std::span<const std::int32_t> geoms() const;  ///< global geom indices
  /// Local indices of what the entity's file names so; throws Error with the nearest name.
  int link(const std::string& wanted) const;
  int geom(const std::string& wanted) const;
  Indices dofs_of_joint(const std::string& wanted) const;

  /// Of the base: pose (envs, 3), (envs, 4) and velocity (envs, 3) in the world.
  std::vector<float> get_pos(const Indices& envs = {}) const;
  std::vector<float> get_quat(const Indices& envs = {}) const;
  std::vector<float> get_vel(const Indices& envs = {}) const;
  std::vector<float> get_ang(const Indices& envs = {}) const;
  /// Moves a base that has a free joint or is a mocap body; throws Error for another.
  void set_pos(std::span<const float> pos, const Indices& envs = {});
  void set_quat(std::span<const float> quat, const Indices& envs = {});
  double mass() const;  ///< kg, of the model

 private:
  friend class Scene;
  using SceneParts::SceneParts;
  /// Local index of the base.
  int base() const;
  /// First coordinate of the base's free joint; throws Error where it has none.
  int base_qpos() const;
};

/// Its functions of SceneParts are about all dofs, links and geoms.
class Scene : public SceneParts {
 public:
  explicit Scene(SceneOptions options = {});
  ~Scene();
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  // ---- before build()

  /// name: prefix of the entity's names in the model; "entity<i>" when empty. Throws Error for a name that is taken;
  /// build() does for one that a model file gave to a body, geom, mesh or height field of its own.
  Entity add_entity(Morph morph, std::string name = "");
  /// Returns the camera's index. Cameras are declared here and drawn by render/. Throws Error for a name that is taken
  /// and for a camera that cannot look.
  int add_camera(CameraOptions camera);

  /// What build() takes instead of compiling the entities anew: what compile_scene() made of these entities, cameras and
  /// options.
  void use_compiled(CompiledScene compiled) { compiled_ = std::move(compiled); }

  /// Compiles the model and allocates n_envs environments. env_spacing: distance in x and y at which a picture draws
  /// them (m); they never touch each other. Throws Error: what the compiler says; the numbers, when the environments do
  /// not fit into memory; the list of features that the batched engine lacks.
  void build(int n_envs, std::array<double, 2> env_spacing = {0, 0});

  /// What build() would take of the memory, by part and with the options' parameters, and how many environments would
  /// fit (MemoryPlan::most_environments()) into what this process, or the device, can get now. Compiles the model as
  /// build() does, and takes nothing. Throws Error as build() does. plan_from_file(): for build_from_file().
  MemoryPlan plan() const;
  MemoryPlan plan_from_file(const std::filesystem::path& compiled) const;

  /// Instead of entities: a model that Scene::save_model or save_model (sim/host/model.h) wrote, for the batched engine;
  /// needs no MuJoCo and no XML. The entities of the scene that saved it are found by entity(); its cameras come after
  /// those that were added here. Options that change the model (timestep, gravity, solver, ...) must not be set: they
  /// are compiled in.
  void build_from_file(const std::filesystem::path& compiled, int n_envs, std::array<double, 2> env_spacing = {0, 0});

  /// The entity of that name; throws Error with the nearest name.
  Entity entity(const std::string& name);

  // ---- after build()

  bool built() const { return engine_ != nullptr; }
  int n_envs() const;
  std::int64_t global_environment_id(int env) const { return options_.first_environment + env; }
  /// Where a picture puts an environment.
  std::array<double, 2> environment_offset(int env) const;
  const ModelInfo& info() const;
  Engine& engine();
  const SceneOptions& options() const { return options_; }
  /// What the model compiler remarked, and which options have no effect on this model.
  std::span<const std::string> warnings() const { return compiled_.warnings; }
  std::span<const CameraOptions> cameras() const { return cameras_; }
  /// What is seen of the model, for render/; made or read when first asked for. Throws Error for a compiled model that
  /// holds physics only.
  std::shared_ptr<const VisualModel> visual_model() const;
  /// What is seen of environments and differs between them; made when first asked for. Throws Error as visual_model().
  Looks& looks();
  /// The same; null where no environment has a look of its own.
  const Looks* looks_in_use() const;
  /// MuJoCo's binary model; empty for a scene that was built from a compiled one.
  std::span<const std::uint8_t> binary_model() const { return compiled_.mjb; }
  /// Poses, Jacobians, inertia and bias forces at coordinates that the caller gives, whichever engine this scene has; made
  /// by the first call, which no other thread's may run beside. Throws Error for a scene that was built from a compiled
  /// model.
  const Kinematics& kinematics() const;
  std::int64_t step_count() const { return steps_; }
  /// Bytes by part: the engine's, and what the scene keeps for dofs that it controls itself.
  MemoryPlan memory() const;

  /// The field of every environment, in place, on the engine's device: valid as long as the scene, never a copy
  /// (tensors::to_tensor makes a LibTorch tensor of it). Derived fields are those of the present state when asked for,
  /// and again after forward(). A view of a state or an input may be written at any time between steps: once one was
  /// handed out, the getters below compute what they derive from it anew, each time.
  ArrayView view(Field field);
  /// Computes the derived fields from the present state, for views of them that were handed out before.
  void forward();
  /// The field in host memory, to read: view() itself on a CPU, a copy of the present values on a device.
  ArrayView host_view(Field field);

  /// Advances every environment by options().substeps timesteps. One that breaks keeps its last good state and stands
  /// still until it is reset (Field::kStatus): the first is said in a line, and when none is left that goes on, Error
  /// says why (SceneOptions::report_stops). On a device that is looked at in every hundredth step.
  void step();
  /// Why an environment stands still: the joint, the actuator or the capacity, when, and what to do; "" where it goes on.
  std::string why_stopped(int env);
  /// Names the pairs of links that overlap in an environment's present state; "" where none does.
  std::string overlaps(int env = 0);

  /// Default state; or a keyframe of the model; or a given one, (envs, nq) and (envs, nv).
  void reset(const Indices& envs = {});
  /// name: or an index, "0".
  void reset_to_keyframe(const std::string& name, const Indices& envs = {});
  void reset_to_keyframe(int keyframe, const Indices& envs = {});
  void reset_to_state(std::span<const float> qpos, std::span<const float> qvel, const Indices& envs = {});
  void set_qpos(std::span<const float> qpos, const Indices& envs = {});
  void set_qvel(std::span<const float> qvel, const Indices& envs = {});

  std::vector<float> get_qpos(const Indices& envs = {});  ///< (envs, nq)
  std::vector<float> get_qvel(const Indices& envs = {});  ///< (envs, nv)
  std::vector<float> get_ctrl(const Indices& envs = {});  ///< (envs, nu)

  /// Controls, (envs, nu) or (nu).
  void set_ctrl(std::span<const float> ctrl, const Indices& envs = {});
  /// Gives position servos, whatever they pull at, the controls with which their forces are zero where they are now; the
  /// controls of other actuators stay. Returns those that do not hold, and why: a range of control that ends before, an
  /// activation that has to get there. Of a compiled model: in its default state and its keyframes only.
  std::vector<std::string> hold(const Indices& envs = {});
  /// Uniform in each control's range ([-1, 1] without one), a function of (seed, global environment id, step) only.
  void set_random_ctrl(std::int64_t step);

  /// Force (N) and torque (N m) on a link at its centre of mass, in the world, (envs, links, 6) or (links, 6); until
  /// changed or reset.
  void set_links_force(std::span<const float> wrench, const Indices& links = {}, const Indices& envs = {});
  /// Poses of mocap bodies, (envs, links, 3) and (envs, links, 4); throws Error for other links.
  void set_mocap_pos(std::span<const float> pos, const Indices& links, const Indices& envs = {});
  void set_mocap_quat(std::span<const float> quat, const Indices& links, const Indices& envs = {});
  /// (envs, size of the sensor).
  std::vector<float> get_sensor(const std::string& name, const Indices& envs = {});

  /// Parameters that differ between environments, (envs, size) or (size); see Parameter. items: which of an
  /// environment's values, e.g. {3 * geom} for a geom's sliding friction; then (envs, items).
  /// The first use takes memory for all environments (SceneOptions::parameters: at build()); throws Error with the
  /// numbers, and changes nothing, where that is too much.
  void set_parameter(Parameter parameter, std::span<const float> values, const Indices& envs = {},
                     const Indices& items = {});
  std::vector<float> get_parameter(Parameter parameter, const Indices& envs = {}, const Indices& items = {});
  /// Gives every environment the model's values, each times a factor of its own, uniform in [lower, upper]: a function
  /// of (seed, global environment id, parameter, value, draw) only, so that shares of a batch get what the whole would.
  void randomize_parameter(Parameter parameter, double lower, double upper, const Indices& envs = {},
                           std::uint32_t draw = 0, const Indices& items = {});
  /// Everything that the next step depends on. Loading into a scene of the same model, engine, substeps, seed and
  /// n_envs continues with the same bits. load_state throws Error and changes nothing when the file is another scene's.
  void save_state(const std::filesystem::path& path);
  void load_state(const std::filesystem::path& path);
  /// The compiled model, for build_from_file. Throws Error for a scene of the mujoco engine.
  void save_model(const std::filesystem::path& path) const;

 private:
  friend class SceneParts;
  friend class Entity;
  /// Environments and columns of a view.
  struct Selection {
    std::vector<std::int32_t> envs;
    std::vector<std::int32_t> items;
    int components = 1;
    const char* what = "";  ///< an item
    std::size_t per_env() const { return items.size() * static_cast<std::size_t>(components); }
  };
  /// What a dof follows. kModel: the model's own actuators; the others: see control_dofs_position.
  enum class DofMode : std::uint8_t { kModel, kForce, kPosition, kVelocity };

  void need_built() const;
  void need_not_built() const;
  EngineOptions engine_options() const;
  void start(const Backend& backend, EngineModel model, int n_envs, std::array<double, 2> env_spacing);
  void find_members();
  void find_actuators();
  Selection select(const Indices& items, int item_count, const char* what, const Indices& envs, int components) const;
  /// Throws Error when there are neither values for all environments nor for each.
  static void need_values(const Selection& to, std::size_t count);
  void write(ArrayView view, const Selection& to, std::span<const float> values);
  std::vector<float> read(ArrayView view, const Selection& from) const;
  void control(DofMode mode, std::span<const float> target, const Indices& dofs, const Indices& envs);
  void apply_dof_control();
  /// Makes room for dofs that the scene drives, and, when `idles`, for actuators that rest meanwhile. Throws Error with
  /// the numbers, and changes nothing, where there is too little memory.
  void need_servos(bool idles);
  /// True when the mode of one of its dofs takes an actuator's gains away.
  bool idle(int env, const ActuatorInfo& actuator, int index) const;
  /// True when dofs that follow so take an actuator's gains away.
  bool idles_some(DofMode mode, std::span<const std::int32_t> dofs) const;
  /// Bytes of an environment: of dofs that the scene drives, of the gains of actuators that may be idle.
  double servo_bytes() const;
  double idle_bytes() const;
  /// Takes gains away and gives them back, as the modes of these environments' dofs say.
  void settle_actuators(std::span<const std::int32_t> envs);
  /// Where is_idle_ has a 1, in these environments.
  std::vector<std::size_t> idle_slots(std::span<const std::int32_t> envs) const;
  /// Exchanges gains with idle_gains_: what the engine has and what stands there change places.
  void exchange_gains(std::span<const std::size_t> slots);
  /// Damping that the scene's servos have put into the engine's, of these environments: taken out and put back, so that
  /// in between the engine has the dofs' own.
  void take_out_servo_damping(std::span<const std::int32_t> envs);
  void put_in_servo_damping(std::span<const std::int32_t> envs);
  /// Gives the engine the damping in `wanted` (nv) of an environment besides the dofs' own. True where it changed.
  bool set_servo_damping(const ArrayView& damping, int env, std::span<const float> wanted);
  /// Takes it away where no servo of the scene's pulls any more.
  void settle_damping(std::span<const std::int32_t> envs);
  void report_stops();
  void set_gain(std::span<const float> values, const Indices& dofs, const Indices& envs, bool position);
  void set_force_range(std::span<const float> lower, std::span<const float> upper, const Indices& dofs,
                       const Indices& envs);
  void set_mocap(Field field, int components, std::span<const float> values, const Indices& links, const Indices& envs);
  void write_qpos(int first, int count, std::span<const float> values, const Indices& envs);
  std::vector<float> get_field(Field field, const char* what, const Indices& envs);
  void need_derived();
  ArrayView derived(Field field);
  /// On the device of the options.
  /// Reads the file; throws Error where the options or the cameras do not go with it.
  Model load_for_build(const std::filesystem::path& compiled) const;
  SceneOptions options_;
  std::vector<EntityDeclaration> declarations_;
  std::vector<CameraOptions> cameras_;
  CompiledScene compiled_;
  std::filesystem::path compiled_file_;                ///< instead, of build_from_file
  mutable std::shared_ptr<const VisualModel> visual_;  ///< null until asked for
  std::unique_ptr<Looks> looks_;                       ///< likewise
  mutable std::unique_ptr<Kinematics> kinematics_;     ///< likewise
  std::unique_ptr<Engine> engine_;
  int contact_capacity_ = 0;  ///< of the batched engine's model
  std::array<double, 2> spacing_{0, 0};
  std::vector<EntityInfo> entities_;                        ///< after build()
  std::vector<std::vector<std::int32_t>> entity_dofs_;      ///< likewise
  std::vector<int> dof_joint_;                              ///< (nv)
  std::vector<int> position_actuator_, velocity_actuator_;  ///< per dof: the actuator, or -1
  RandomControls random_controls_;
  // Of the dofs that the scene itself drives, (n_envs, nv); empty until there is one.
  std::vector<float> kp_, kv_, force_lower_, force_upper_, target_;
  /// What of the engine's damping is these servos', and what the dofs have besides where that is not zero.
  std::vector<float> servo_damping_, own_damping_;
  std::vector<std::int32_t> changed_;  ///< scratch of apply_dof_control
  std::vector<float> wanted_damping_;  ///< likewise
  std::vector<DofMode> mode_;
  bool any_control_ = false;  ///< some dof follows a spring or a damper of the scene's
  // Of the actuators that may be idle, (n_envs, restoring_); empty until one is.
  std::vector<int> restoring_;         ///< their indices
  std::vector<std::uint8_t> is_idle_;  ///< 1: its gains are in idle_gains_
  std::vector<double> idle_gains_;     ///< three of gainprm, three of biasprm
  bool derived_valid_ = false;
  bool handed_out_ = false;  ///< a view through which the state may change unseen
  bool stop_said_ = false;   ///< of an environment that has stopped
  std::int64_t steps_ = 0;
};

}  // namespace cohort::sim
