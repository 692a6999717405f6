/// ACT's temporal ensembling (Zhao et al. 2023, algorithm 2) as LeRobot computes it: at every step a chunk is drawn, and
/// the action is the weighted mean of what all chunks since the start of the episode say about this step. The i-th
/// oldest chunk weighs exp(-m i).
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include <ATen/core/Tensor.h>

#include "models/policy_network.h"

namespace cohort::models {

class TemporalEnsemble final : public PolicyControl {
 public:
  /// `draw` gives chunks (B, rows, A) of observations with a frame dimension. What is referred to must outlive this.
  TemporalEnsemble(const PolicyNetwork& policy, int rows, double coefficient,
                   std::function<at::Tensor(const Observations&)> draw);

  void begin(std::uint64_t environment) override { environments_[environment] = {}; }
  void end(std::uint64_t environment) override { environments_.erase(environment); }
  std::size_t environments() const override { return environments_.size(); }
  at::Tensor act(const std::vector<std::uint64_t>& environments, const Observations& frame) override;
  bool remembers() const override { return true; }

 private:
  struct Environment {
    at::Tensor mean;                  // (rows - 1, A): of the steps to come; undefined: the episode begins
    std::vector<std::int64_t> count;  // of chunks in each row
  };

  const PolicyNetwork& policy_;
  std::int64_t rows_;
  std::vector<float> weights_, sums_;  // of the i-th oldest; of all up to it
  std::function<at::Tensor(const Observations&)> draw_;
  std::map<std::uint64_t, Environment> environments_;
};

}  // namespace cohort::models
