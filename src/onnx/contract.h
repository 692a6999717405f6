/// The contract of a policy in an ONNX file: what it sees, in which order and scale, what its actions mean, and how often
/// it acts, as the file's metadata. The keys are those of mjlab (1.6.0, mjlab/rl/exporter_utils.py: joint_names,
/// joint_stiffness, joint_damping, default_joint_pos, command_names, observation_names, observation_terms_scale, _clip,
/// _history_length, _flatten_history_dim, action_scale, run_path), lists with commas between their items and semicolons
/// within one, and ours beside them:
///
///   task, task_settings (JSON), control_period (s), observation_shapes, observation_units, action_names, action_low,
///   action_high, action_unit, cohort_version
///
///   const Contract contract = read_contract(model.metadata, "policy.onnx");
///   for (const tasks::CheckRow& row : check_contract(contract, contract_of(*task))) ...
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "tasks/task_check.h"

namespace cohort::onnx {

/// An empty list or text: it is not said.
struct Contract {
  struct Observation {
    std::string name;
    std::vector<std::int64_t> shape{};  ///< {}: not said
    std::string unit{};
    std::vector<double> scale{};  ///< of each number, or one for all; {}: 1
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
    int history = 0;  ///< moments side by side; 0: the present one alone
    std::int64_t width() const;
  };
  std::string task;
  std::map<std::string, std::string> task_settings;
  double control_period = 0;  ///< s; 0: not said
  std::vector<Observation> observations;
  std::vector<std::string> command_names;
  std::vector<std::string> joint_names;
  std::vector<double> joint_stiffness, joint_damping, default_joint_pos;
  std::vector<std::string> action_names;
  std::vector<double> action_scale;  ///< of each action, or one for all
  std::vector<double> action_low, action_high;
  std::string action_unit;
  std::string run_path, cohort_version;
};

std::map<std::string, std::string> to_metadata(const Contract& contract);
/// Other keys are left alone. Throws Error naming `where`, the key and the item that cannot be read.
Contract read_contract(const std::map<std::string, std::string>& metadata, const std::string& where);

/// What a task asks of a policy that does not see the fields named in `unseen`.
Contract contract_of(tasks::Task& task, const std::vector<std::string>& unseen = {});

/// In what a policy's contract and the task's differ, a row for each part of it: order, missing names, scales, gains. A
/// part of which one of both says nothing is skipped. Numbers agree to the digits that the file keeps: mjlab's have three
/// decimals.
std::vector<tasks::CheckRow> check_contract(const Contract& policy, const Contract& task);

}  // namespace cohort::onnx
