/// Policies by where they lie: the path of a run or checkpoint, or an address.
///
///   register_kind({.name = "ppo", .claims = is_ppo_run, .load = load_ppo});    // once in a program
///   const std::unique_ptr<Policy> policy = load("outputs/cartpole/latest", {.device = "cuda:0"});
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "policy/policy.h"

namespace cohort::policy {

struct LoadSettings {
  std::uint64_t seed = 0;  ///< of what is drawn: an action is a function of weights, observations, seed, environment
                           ///< and how many chunks (BC: actions) the environment has had
  std::string device = "cpu";  ///< cpu, cuda:0, ...; what dist/usable_devices.h has found to be there
  /// Forward passes have as many rows as fill whole blocks of the matrix products, so that an environment's actions are
  /// the same bits whichever others act with it. false: no rows more than there are environments, which is several times
  /// quicker for one robot; actions then agree to rounding.
  bool exact = true;
  bool averaged = true;  ///< the moving average, where the checkpoint has one; false: the weights themselves
  /// Whose statistics actions are given back by: a path of data.paths, where each data set was normalised by its own.
  std::string data_set;
  std::int64_t exec_horizon = 0;  ///< actions of a chunk that are executed; 0: as it was trained, or all that there are
  /// Of settings that need no other weights, KEY=VALUE, e.g. a sampler's steps.
  std::vector<std::string> overrides;
  /// No task is at hand that says what can be observed: a policy that knows it only from its task makes that task. And
  /// settings that have no meaning for this policy are refused, since they can be for no other.
  bool alone = false;
  double connect_timeout = 120;  ///< s that are waited for a server which loads its policy
  double answer_timeout = 120;   ///< s for a server's answer; the first ones of a server that compiles take long
  /// What it is shown: task, or LIBERO's observations by another stack's names (policy/libero_convention.h).
  std::string observations = "task";
};

struct Kind {
  std::string name;      ///< "ppo"
  bool address = false;  ///< of addresses, not of paths
  std::function<bool(const std::string& where)> claims;
  std::function<std::unique_ptr<Policy>(const std::string& where, const LoadSettings& settings)> load;
};

/// A kind that is registered again under its name is replaced. Of several that claim a path the last one registered has it.
void register_kind(Kind kind);

/// Whether a kind of addresses claims it.
bool is_address(const std::string& where);

/// Throws Error where no kind claims it, and what the kind's loader throws.
std::unique_ptr<Policy> load(const std::string& where, const LoadSettings& settings = {});

}  // namespace cohort::policy
