/// `cohort tasks NAME --check-policy FILE.onnx`: whether a policy that others have trained, or trained elsewhere, fits a
/// task.
#pragma once
#include <cstdint>
#include <string>

#include "tasks/task.h"

namespace cohort::cli {

struct PolicyCheck {
  std::string file;        ///< .onnx
  int episodes = 20;       ///< that are played
  std::uint64_t seed = 0;  ///< of the first
};

/// Prints a row for each part of the contract and what became of the episodes, with and, where the file names the task's
/// observations or actions in another order, also without putting them in order. False where a row failed.
bool print_policy_check(const std::string& task, tasks::TaskSettings settings, const PolicyCheck& check);

}  // namespace cohort::cli
