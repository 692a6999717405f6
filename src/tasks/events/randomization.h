/// Domain randomisation as data: which parameter of a model, of which links, geoms, joints or actuators, differs between
/// episodes, and how. Names, operations and distributions are those of mjlab 1.6 (envs/mdp/dr) and Isaac Lab
/// (envs/mdp/events):
///
///   feet:  {type: geom_friction, geoms: ".*_foot", operation: abs, ranges: [0.3, 1.2], shared_random: true}
///   trunk: {type: body_com_offset, links: trunk, ranges: {x: [-0.03, 0.03], z: [-0.05, 0.05]}}
///   gains: {type: pd_gains, kp_range: [0.8, 1.2], kd_range: [0.8, 1.2], distribution: log_uniform}
///
/// What is drawn is a function of the episode's seed, of the event's name and of what is addressed, and of nothing else:
/// not of the environment, its neighbours, threads or episodes before. `mode: startup`, which elsewhere draws once for
/// an environment's life, therefore draws as `reset` does.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/json_section.h"
#include "core/philox.h"
#include "sim/field.h"
#include "sim/host/model_info.h"
#include "sim/options.h"

namespace cohort::tasks {

/// What becomes of the model's own value and the drawn one.
enum class RandomOperation { kAbs, kAdd, kScale };
/// low and high of a DrawRange are the ends; of kGaussian mean and standard deviation; of kConstant the value, twice.
enum class RandomDistribution { kUniform, kLogUniform, kGaussian, kConstant };

struct DrawRange {
  double low = 0, high = 0;
};
/// A number of the stream: the same for the same stream and index.
double draw_from(const RandomStream& random, std::uint64_t index, RandomDistribution distribution,
                 const DrawRange& range);

/// Numbers that the task itself keeps of every environment, for its terms to read: 0 where nothing is drawn.
enum class TaskParameter : int {
  kEncoderBias,   ///< (joints) rad, m: what the encoders show too much
  kJointDefault,  ///< (joints) rad, m: added to the default position
  kActionDelay,   ///< (1) control steps, whole
};
inline constexpr int kTaskParameterCount = 3;
const char* task_parameter_name(TaskParameter parameter);
/// Values of an environment.
int task_parameter_size(const sim::ModelInfo& info, TaskParameter parameter);

struct Randomization {
  /// A number of an environment that is drawn.
  struct Write {
    enum Place { kParameter, kForce, kTask, kLook } place = kParameter;
    int which = 0;           ///< sim::Parameter, TaskParameter, sim::Look; kForce: nothing, it is Field::kXfrcApplied
    int item = 0;            ///< which of its values
    std::uint64_t draw = 0;  ///< index into the event's stream: who has the same draw gets the same number
    double sign = 1;         ///< the drawn number counts times this; 0: the model's value is kept
    DrawRange range;
    bool whole = false;  ///< rounded to a whole number
  };
  /// A link whose mass, centre and inertia are drawn together: its pseudo-inertia J becomes U J U' with the upper
  /// triangular U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]] (Rucker and
  /// Wensing, "Smooth parameterization of rigid-body inertia", IEEE RA-L 2022), which no draw makes unphysical.
  struct Inertia {
    int link = 0;
    std::uint64_t draw = 0;              ///< of alpha; the others follow
    std::array<DrawRange, 10> ranges{};  ///< alpha, d1, d2, d3, s12, s13, s23, t1, t2, t3
    /// alpha alone: mass and inertia times e^(2 alpha), centre and axes stay.
    bool density_alone() const;
  };
  /// A geom that is turned from where the model has it: roll about x, then pitch about y, then yaw about z of its link's
  /// frame.
  struct Turn {
    int geom = 0;
    std::uint64_t draw = 0;             ///< of roll; pitch and yaw follow
    std::array<DrawRange, 3> ranges{};  ///< rad
  };
  enum Mode { kReset, kInterval } mode = kReset;
  std::string name;  ///< of the event
  std::string kind;
  DrawRange interval;  ///< s, of kInterval: from one time to the next
  RandomOperation operation = RandomOperation::kAbs;
  RandomDistribution distribution = RandomDistribution::kUniform;
  std::vector<Write> writes;
  std::vector<Inertia> inertias;
  std::vector<Turn> turns;
};

/// A kind of randomisation, for messages and documentation.
struct RandomizationKind {
  const char* name;
  const char* alias;  ///< another name, or null
  const char*
      target;  ///< "links", "geoms", "joints", "actuators", "cameras", "lights", or "" for what an environment has one of
  const char* unit;
  RandomOperation standard;  ///< where `operation` is not given
  const char* means;
};
std::span<const RandomizationKind> randomization_kinds();
/// Whether there is a kind of that name or alias.
bool is_randomization(const std::string& kind);

/// Reads an event: `type` (else its name is the kind), `mode`, `interval_range_s`, what it addresses, `operation`,
/// `distribution`, `ranges` (or the ranges of the kind), `axes`, `shared_random`. entities: of the scene; entity: whose
/// links, geoms and so on are meant where the event has no `entity`; "": the whole model's. Throws Error for an unknown
/// kind, with the nearest, a pattern that matches nothing, a range upside down, and what the kind cannot do.
Randomization read_randomization(config::JsonSection& section, const std::string& name, const sim::ModelInfo& info,
                                 std::span<const sim::EntityInfo> entities, const std::string& entity);

/// Mass (kg), centre of mass (m) and axes of inertia (unit w x y z) in the link's frame, moments (kg m^2) about the
/// centre along those axes.
struct LinkInertia {
  double mass = 0;
  std::array<double, 3> com{}, moments{};
  std::array<double, 4> quat{1, 0, 0, 0};
};
/// The same after U J U' with alpha, d1 ... t3 as in Randomization::Inertia.
LinkInertia perturbed(const LinkInertia& inertia, const std::array<double, 10>& by);

/// w x y z of `quat` turned by roll, pitch and yaw (rad) as Randomization::Turn.
std::array<double, 4> turned_by(const std::array<double, 3>& rpy, const std::array<double, 4>& quat);

/// The parameters that environments need of their own (SceneOptions::parameters), each once.
std::vector<sim::Parameter> parameters_of(std::span<const Randomization> randomizations);

}  // namespace cohort::tasks
