/// A policy in a task whose contract is another one (contract.h): its observations, joints and actions in another order,
/// counted from another pose, in another scale.
///
///   const Translation how = translation(contract_of_policy, contract_of_task);   // Error where it cannot be said
///   const auto fits = translated(std::move(policy), observations_of_task, how);
#pragma once
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "onnx/contract.h"
#include "policy/policy.h"

namespace cohort::onnx {

struct Translation {
  /// A number made of one of another order: factor times it, plus shift, then clipped.
  struct Number {
    std::size_t from = 0;
    double factor = 1, shift = 0;
    double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  };
  std::vector<Number> seen;        ///< of each number that the policy sees, of the task's numbers side by side
  std::vector<Number> actions;     ///< of each action of the task, of the policy's actions
  std::vector<std::string> steps;  ///< what is done, a few words each; empty: nothing
};

/// So many numbers as they come.
Translation untranslated(std::size_t seen, std::size_t actions);

/// Observations by their names; numbers of joints (observations as wide as there are joints, and actions) by the joints'
/// names; scales, limits, default pose by their numbers. Throws Error where the contracts do not name the same
/// observations, of the same width and history.
Translation translation(const Contract& policy, const Contract& task);

/// there: what the task observes, in its order, which the policy is shown by name.
std::unique_ptr<policy::Policy> translated(std::unique_ptr<policy::Policy> policy,
                                           std::vector<policy::Observation> there, Translation translation);

}  // namespace cohort::onnx
