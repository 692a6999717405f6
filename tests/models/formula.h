/// Weights and inputs by the formula that the fixture scripts use, too (reference.py), and the facts about gradients
/// that they write down.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/config.h"

namespace cohort::models {

/// U(-scale, scale), a function of the name.
at::Tensor formula(const std::string& name, std::vector<std::int64_t> shape, double scale = 1.0);

/// Gives every parameter its formula.
void fill(torch::nn::Module& module);

/// tests/models/fixtures/diffusion/<name>.json
nlohmann::ordered_json read_facts(const std::string& name);

at::Tensor tensor_of(const nlohmann::ordered_json& numbers);

/// Compares the gradients with the facts (names and their order; norm, inner product with a probe, first four entries),
/// relative to the gradient's norm, or to that of an average gradient of this size where it is smaller.
void expect_gradients(const torch::nn::Module& module, const nlohmann::ordered_json& facts, double tolerance);

template <class Settings>
void apply_settings(Settings& settings, const nlohmann::ordered_json& json) {
  config::Fields fields;
  describe(fields, settings);
  fields.apply_json(json, "fixture");
}

}  // namespace cohort::models
