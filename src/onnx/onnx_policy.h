/// A policy in an ONNX file, whoever wrote it, as it acts (policy/policy.h): `cohort export`'s, mjlab's, Isaac Lab's.
///
///   register_onnx_policies();
///   const auto policy = policy::load("policy.onnx");
///
/// The model has one input (n, width) of numbers, called `obs` where it has several, and one output (n, actions), called
/// `actions` likewise; inputs NAME_in with outputs NAME_out, (layers, n, width), are what it remembers, zeros where an
/// episode begins (h_in and h_out of a GRU, c_in and c_out too of an LSTM). n is any number, or 1. What the observations
/// are called is read from the metadata (contract.h); a file that does not say it is shown all of a task's numbers.
#pragma once
#include <filesystem>
#include <memory>
#include <string>

#include "onnx/contract.h"
#include "onnx/model.h"
#include "policy/registry.h"

namespace cohort::onnx {

/// title names the model in messages. Throws Error for inputs and outputs of another kind, for an operator that is not
/// computed here, and where the contract's observations are not as many numbers as the model sees.
std::unique_ptr<policy::Policy> onnx_policy(Model model, const Contract& contract, const std::string& title);

/// settings: an ONNX model acts on the CPU, an action at a time; what else is asked for is refused.
std::unique_ptr<policy::Policy> load_onnx_policy(const std::filesystem::path& path,
                                                 const policy::LoadSettings& settings);

/// policy::load() takes files whose names end in .onnx.
void register_onnx_policies();

}  // namespace cohort::onnx
