/// What formulas of a task file can name: the quantities of a model, of the episode and of the task's own commands, as
/// values of a graph (tasks/terms/graph.h).
#pragma once
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sim/field.h"
#include "sim/host/model_info.h"
#include "tasks/events/randomization.h"
#include "tasks/terms/formula.h"

namespace cohort::sim {
class Scene;
}

namespace cohort::tasks {

/// Where an array of a program lies.
struct ArrayPlace {
  enum Kind {
    kField,
    kControl,
    kSteps,
    kAction,
    kObservation,
    kTerms,
    kMetrics,
    kSuccess,
    kTerminated,
    kTruncated,
    kTask,
    kExpert,
    kParameter
  };
  Kind kind = kField;
  int which = 0;  ///< the field, the observation, the TaskParameter, or the sim::Parameter
  friend auto operator<=>(const ArrayPlace&, const ArrayPlace&) = default;
};

/// A model as tasks see it, known before its environments are made.
struct TaskModel {
  sim::ModelInfo info;
  struct Entity {
    std::string name;
    std::vector<int> links, geoms;
    int base = -1;                      ///< link
    int free_qpos = -1, free_dof = -1;  ///< of the base's free joint
    int mocap = -1;                     ///< of the base, among the mocap bodies
    std::vector<int> joints;            ///< hinges and slides
  };
  std::vector<Entity> entities;
  int robot = 0;                   ///< which of them
  std::vector<double> qpos, ctrl;  ///< where an episode begins before its events
  double control_period = 0.02;    ///< s
  std::int64_t horizon = 0;        ///< control steps
  double soft_limit_factor = 1;    ///< share of the joints' ranges that is within soft limits
  /// m along x and y, of the generated ground around the origin with its border, and of one of its patches.
  std::array<double, 2> terrain_half_size{1e9, 1e9}, patch_half_size{1e9, 1e9};

  const Entity& of_robot() const { return entities[static_cast<std::size_t>(robot)]; }
  const Entity* find(const std::string& name) const;
  std::vector<std::string> joint_names(const std::vector<int>& joints) const;
};

/// A quantity, for documentation.
struct QuantityEntry {
  const char* name;
  const char* shape;
  const char* unit;
  const char* means;
};
std::span<const QuantityEntry> quantity_entries();

/// Text or values that a term is given by name, before the quantities.
struct TermParameter {
  std::optional<terms::Expr> value;
  std::vector<std::string> texts;
};

class Quantities final : public terms::Names {
 public:
  Quantities(const TaskModel& model, terms::Graph& graph) : model_(model), g_(graph) {}

  bool find(const std::string& name, const std::vector<terms::Argument>& arguments, terms::Expr& value) override;
  bool text(const std::string& name, std::vector<std::string>& texts) override;
  std::vector<std::string> all() const override;
  terms::Expr step() override { return g_.load(array({ArrayPlace::kSteps}), {0}); }
  double control_period() const override { return model_.control_period; }
  std::string place() const override { return place_; }

  /// Reads a formula at this place of the file, which messages name and random streams are keyed by.
  terms::Expr read(const std::string& formula, const std::string& place);
  /// Parameters that formulas see until the next call.
  void give(std::map<std::string, TermParameter> parameters) { parameters_ = std::move(parameters); }
  const std::map<std::string, TermParameter>& given() const { return parameters_; }

  /// Joints that patterns choose, of the robot; none: all of its hinges and slides.
  std::vector<int> joints(const std::vector<std::string>& patterns) const;

  /// A command as observations see it, and as it was during the step, for rewards.
  struct Command {
    terms::Expr next, during;
  };
  void add_command(const std::string& name, Command command) { commands_[name] = command; }
  /// Whether formulas are about the step that is over.
  void judges(bool yes) { judges_ = yes; }
  void set_action_width(int width) { action_width_ = width; }
  /// A value that formulas may name from now on.
  void define(const std::string& name, terms::Expr value) { defined_[name] = value; }

  /// Number of the array; the same place has one number.
  int array(ArrayPlace place);
  const std::vector<ArrayPlace>& arrays() const { return arrays_; }
  /// Fields that steps have to leave, of what was named.
  const std::vector<sim::Field>& leaves() const { return leaves_; }
  terms::Graph& graph() { return g_; }
  const TaskModel& model() const { return model_; }

  /// Of a free body, or a link: as base.position and so on.
  terms::Expr of_entity(const TaskModel::Entity& entity, const std::string& what);

  /// Values of a field of the state; and of one that steps have to leave for it.
  terms::Expr field(sim::Field field, std::vector<int> values, int cols = 0);
  terms::Expr left(sim::Field field, std::vector<int> values, int cols = 0);
  /// What events draw for the task itself, of these joints; {0} of what is one number.
  terms::Expr drawn(TaskParameter parameter, std::vector<int> joints) {
    return g_.load(array({ArrayPlace::kTask, static_cast<int>(parameter)}), std::move(joints));
  }

 private:
  std::vector<int> links_of(const std::vector<terms::Argument>& arguments, const std::string& what) const;
  terms::Expr of_sites(const std::string& name, const std::vector<terms::Argument>& arguments);
  std::vector<std::string> texts_of(const std::string& name, const std::vector<terms::Argument>& arguments) const;
  /// What events draw for the task itself.
  bool task_quantity(const std::string& name, const std::vector<terms::Argument>& arguments, terms::Expr& value);
  terms::Expr force_on(const std::vector<std::string>& patterns, const std::string& what, bool others);
  bool joint_quantity(const std::string& name, const std::vector<terms::Argument>& arguments, terms::Expr& value);

  const TaskModel& model_;
  terms::Graph& g_;
  std::vector<ArrayPlace> arrays_;
  std::vector<sim::Field> leaves_;
  std::map<std::string, TermParameter> parameters_;
  std::map<std::string, Command> commands_;
  std::map<std::string, terms::Expr> defined_;
  std::string place_;
  bool judges_ = false;
  int action_width_ = 0;
};

}  // namespace cohort::tasks
