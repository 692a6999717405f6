/// The interface behind which the engines stand: state as array views, a step, a reset.
#pragma once
#include <array>
#include <bitset>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/array_view.h"
#include "sim/field.h"
#include "sim/host/model_info.h"
#include "sim/host/random_controls.h"
#include "sim/options.h"

namespace cohort::sim {

const char* field_name(Field field);
/// True for the fields that make up a state: saving and loading these continues bit for bit.
bool is_state(Field field);
/// Values per environment.
int field_size(const ModelInfo& info, Field field);
/// What a step can leave behind: derived fields, but neither accelerations nor sensors. Throws Error for another.
FieldSet set_of(std::span<const Field> step_leaves);

const char* parameter_name(Parameter parameter);
/// By the parameters' numbers.
using ParameterSet = std::bitset<kParameterCount>;
/// Throws Error for a number that is no parameter's.
ParameterSet set_of(std::span<const Parameter> parameters);
/// Throws Error for a value that the parameter cannot have in an environment: no number, or, where no sign
/// makes sense, below zero. item: which of the environment's values.
void check_parameter(Parameter parameter, std::int64_t env, std::int64_t item, float value);
/// Throws Error where a link that moves, with all that is fixed to it, has no mass left. mass(link): in environment
/// env.
void check_masses(const ModelInfo& info, std::int64_t env, const std::function<double(int)>& mass);

/// Throws Error, naming the geom, for kGeomSize and kGeomQuat that its shape cannot have. own: (3) or (4), other than the
/// model's.
void check_geom(const ModelInfo& info, Parameter parameter, std::int64_t env, int geom, const float* own);

/// Bytes of an engine, known before anything is allocated.
struct MemoryPlan {
  struct Part {
    std::string name;
    double bytes = 0;  ///< per environment
  };
  std::vector<Part> parts;
  double fixed_bytes = 0;   ///< model and the threads' workspaces: does not grow with the environments
  double thread_bytes = 0;  ///< of these, each thread's; 0 on a device
  int block = 1;            ///< environments take memory in multiples of so many
  /// What this process, or the device, could get when the plan was made; 0 in the plan of an engine that stands.
  double available_bytes = 0;
  double bytes_per_environment() const;
  /// For a message that says how much an environment takes: ", parameters 12 B of it", or nothing.
  std::string parameters_of_it() const;
  double total(int n_envs) const;
  /// As many as fit into available_bytes, at most the greatest int; 0: not one.
  int most_environments() const;
};
/// Throws Error with the numbers where n_envs environments do not fit into the plan's available_bytes.
void need_memory(const MemoryPlan& plan, int n_envs, int threads);

/// Bytes that are taken after the build.
struct LaterMemory {
  std::string what;   ///< "link_mass", say
  double each = 0;    ///< of an environment
  double fixed = 0;   ///< besides
  double copies = 0;  ///< of an environment, while values are written
};
/// Throws Error with the numbers where it does not fit into `available` bytes.
void need_memory(const LaterMemory& later, int n_envs, double available);

/// A contact of an environment.
struct Contact {
  int geom1 = 0, geom2 = 0;  ///< of the file
  int link1 = 0, link2 = 0;
  double distance = 0;                    ///< m, below zero where the geoms overlap
  std::array<double, 3> pos{0, 0, 0};     ///< m, in the world, between the surfaces
  std::array<double, 3> normal{0, 0, 0};  ///< from geom1 to geom2
  std::array<double, 3> force{0, 0, 0};   ///< N, in the world, on geom2's link; the opposite acts on geom1's
  int env = 0;                            ///< set by Scene::get_contacts
};

/// What an engine is made with; each takes what concerns it.
struct EngineOptions {
  int threads = 1;  ///< including the caller's; on a CPU
  LaneWidth lanes = LaneWidth::kAuto;
  int device = 0;              ///< among the CUDA devices visible to the process
  double memory_limit = 0;     ///< bytes of the device that may be used; 0: what is free
  int row_space = -1;          ///< of SceneOptions
  int contact_capacity = 0;    ///< likewise
  ParameterSet parameters{};   ///< that environments have of their own from the beginning
  FieldSet step_leaves{};      ///< of SceneOptions
  bool leave_present = false;  ///< likewise
};

/// What a caller does with a field in host memory.
enum class Access { kRead, kWrite };

class Engine {
 public:
  virtual ~Engine() = default;
  virtual EngineKind kind() const = 0;
  virtual const ModelInfo& info() const = 0;
  virtual int n_envs() const = 0;

  /// False for a derived field that was not asked for when the engine was made (SceneOptions::step_leaves).
  virtual bool has(Field field) const = 0;

  /// The field's memory, on the engine's device; valid as long as the engine. Never copies. Of a field that the engine
  /// does not have: (n_envs, 0).
  virtual ArrayView view(Field field) = 0;

  /// The field in host memory: the same as view() of an engine on a CPU; of an engine on a device a copy of the present
  /// values, which with kWrite replaces the device's before the next step(), forward() or reset(). Valid until then.
  virtual ArrayView host_view(Field field, Access) { return view(field); }

  /// Advances every environment by `steps` timesteps. No allocation, no throw for a single environment's trouble (see
  /// kStatus). On a device it launches only: wait() before a clock is read.
  virtual void step(int steps) = 0;

  /// Environments [first, last) in the hands of one thread.
  class Part {
   public:
    virtual ~Part() = default;
    int first = 0, last = 0;
    /// Advances them, and no others, by `steps` timesteps.
    virtual void step(int steps) = 0;
  };
  /// For who does more than a step with its environments, and must not wait in between for those of others: calls `body`
  /// for parts that are all environments together, side by side from the engine's threads, and returns when all are
  /// done. `body` reads and writes its own environments only, through views that were taken before, and throws nothing.
  /// No allocation. Only of an engine that has parts: not on a device, and not of MuJoCo's.
  virtual void run_parts(const std::function<void(Part&)>&) {}
  virtual bool has_parts() const { return false; }

  /// cudaStream_t of all work on views of this engine, never the default stream; null: the views are in host memory.
  virtual void* stream() const { return nullptr; }
  /// Returns when everything that was asked for is done; throws Error for what went wrong on a device.
  virtual void wait() {}

  /// Computes the derived fields from the present state; does not change the state.
  virtual void forward() = 0;
  /// The same for these environments, and for others where that is no more work.
  virtual void forward_some(std::span<const std::int32_t> envs) {
    if (!envs.empty()) forward();
  }

  /// Random controls for every environment; the same on every engine.
  virtual void draw_controls(const RandomControls& controls, const ControlDraw& draw) {
    controls.draw(host_view(Field::kCtrl, Access::kWrite), draw);
  }

  /// Sets environments to the model's default state, clears their inputs, status and diagnostics.
  virtual void reset(std::span<const std::int32_t> envs) = 0;

  /// Per-environment values of a parameter, initialised from the model on first use. After writing, call
  /// commit_parameters(). Throws Error with the numbers, and changes nothing, where the first use needs more memory
  /// than can be had.
  virtual ArrayView parameter(Parameter parameter) = 0;
  /// The model's own values of a parameter, (size), whatever the environments have.
  virtual std::vector<float> model_values(Parameter parameter) const = 0;
  /// envs: those whose values have changed since the last time; empty: any may have.
  virtual void commit_parameters(std::span<const std::int32_t> envs = {}) = 0;

  /// The whole state of every environment as bytes; loading them into an engine of the same kind, model and n_envs
  /// continues bit for bit. load_state throws Error when the bytes do not fit, and then changes nothing.
  virtual std::vector<std::uint8_t> save_state() = 0;
  virtual void load_state(std::span<const std::uint8_t> bytes) = 0;

  /// The same state as arrays of rows, a row for each environment, under these names, and the parameters in use: who
  /// copies all of them into an engine of the same kind and model, and then calls state_written(), continues bit for bit,
  /// in as many environments as he likes.
  virtual std::vector<std::string> state_names() const = 0;
  /// (n_envs, size), host memory, valid until the next call of another function. Throws Error for another name.
  virtual ArrayView state_array(const std::string& name, Access access) = 0;
  virtual void state_written() { commit_parameters(); }
  /// Parameters that were asked for, so that environments may differ in them.
  virtual ParameterSet parameters_in_use() const = 0;

  /// The contacts of the present state of one environment, in the order of their pairs.
  virtual std::vector<Contact> contacts(int env) = 0;

  virtual MemoryPlan memory() const = 0;
  /// Why an environment has kStatusEngineError; "" otherwise.
  virtual std::string error_text(int env) const = 0;
};

}  // namespace cohort::sim
