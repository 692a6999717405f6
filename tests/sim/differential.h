/// One model in MuJoCo C and in ours at random states: whatever the batched engine computes in a step and for its
/// sensors, stage by stage.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "findings.h"
#include "sim/host/model.h"

namespace cohort::sim::test {

struct DifferentialOptions {
  std::uint64_t seed = 0;  ///< of the states, and of whether the rows' space is used
  int states = 6;
  /// Applied to our model after the import, for tests of the comparison itself.
  std::function<void(Model&)> change_ours;
  /// Gets every finding as it is made; else the worst of a kind is what is kept.
  std::function<void(const Finding&)> on_finding;
};

struct Comparison {
  std::string refused;                 ///< features that the batched engine lacks; the model was not compared
  std::vector<Finding> findings;       ///< the worst of each kind
  std::map<std::string, int> excused;  ///< why states or parts of them were left out, and how many
  int states = 0;                      ///< compared, at least in part
  int whole = 0;                       ///< of these, to their end
  int contacts = 0, rows = 0;          ///< of MuJoCo's in them
  int by_teams = 0;                    ///< solved by teams of threads too (team_comparison.h)
};

/// mjb: a compiled model. Of a state with a finding what follows from it is not looked at.
Comparison compare_with_mujoco(std::span<const std::uint8_t> mjb, const DifferentialOptions& options);

}  // namespace cohort::sim::test
