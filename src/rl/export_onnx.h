/// The actor of PPO as an ONNX file that any runtime computes, with the contract that it relies on in the metadata
/// (onnx/contract.h).
///
///   export_onnx("outputs/ppo/latest", "policy.onnx", {});    // then: cohort tasks NAME --check-policy policy.onnx
///
/// Input `obs` (n, width), float: the fields that the actor sees side by side, in the task's order, as the task gives
/// them; normalisation is inside. Output `actions` (n, actions) in the task's unit, clipped to its bounds where the task
/// clips them. With memory also `h_in` and `h_out`, (layers, n, H): zeros where an episode begins. n is any number.
/// Opset 18, IR version 8 (onnxruntime 1.14 or later).
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "onnx/contract.h"
#include "onnx/model.h"
#include "policy/registry.h"
#include "rl/actor_critic.h"

namespace cohort::rl {

/// The graph alone: without metadata. low, high: bounds of each action, infinite where it has none.
onnx::Model actor_graph(const ActorCritic& networks, const std::vector<double>& low, const std::vector<double>& high);

struct ExportedPolicy {
  onnx::Contract contract;
  std::string task;  ///< as the run names it: a task's name, or its file
};

/// Writes `out`, whole or not at all, with the contract of the task that the run has learnt. path: a run, a folder of checkpoints, or a
/// checkpoint. settings.averaged as of load_ppo_policy(). Throws Error for what is no run of PPO, and where its task
/// cannot be made.
ExportedPolicy export_onnx(const std::filesystem::path& path, const std::filesystem::path& out,
                           const policy::LoadSettings& settings);

}  // namespace cohort::rl
