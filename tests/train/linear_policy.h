/// A policy that no file of src knows: what a new folder of src/policies has to say. Its tests are one_more_policy_test.cpp, by
/// the library, and tests/cli/one_more_test.cpp, by the programs.
#pragma once
#include <any>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "models/initialise.h"
#include "policies/algorithm.h"

namespace cohort::testing {

struct LinearSettings {
  double initial_std = 0.1;  ///< of the weights
  std::vector<models::ObservationSettings> observations;
  int action_width = 0;
};

/// Actions as a linear function of the newest frame's numbers.
class LinearPolicy final : public models::PolicyNetwork, public models::Initialised {
 public:
  explicit LinearPolicy(const LinearSettings& s) : PolicyNetwork("LinearPolicy"), settings_(s) {
    std::int64_t width = 0;
    for (const models::ObservationSettings& o : s.observations) width += o.shape[0];
    weight_ = register_parameter("weight", at::empty({s.action_width, width}));
  }
  void initialise(models::Initialiser& initialiser) override { initialiser.normal(weight_, settings_.initial_std); }
  const std::vector<models::ObservationSettings>& observations() const override { return settings_.observations; }
  at::Tensor loss(const models::Observations& observations, const at::Tensor& actions) const override {
    return (forward(observations) - actions).square().mean();
  }
  at::Tensor draw(const models::Observations& observations, const std::vector<std::uint64_t>&, std::uint64_t) override {
    const at::NoGradGuard no_grad;
    return forward(observations);
  }
  std::unique_ptr<models::PolicyControl> control(std::uint64_t) override;

  /// (n, ..., A)
  at::Tensor forward(const models::Observations& observations) const {
    std::vector<at::Tensor> parts;
    for (const models::ObservationSettings& o : settings_.observations) parts.push_back(observations.at(o.name));
    return at::matmul(at::cat(parts, -1), weight_.t());
  }

 private:
  LinearSettings settings_;
  at::Tensor weight_;
};

class LinearControl final : public models::PolicyControl {
 public:
  explicit LinearControl(const LinearPolicy& policy) : policy_(policy) {}
  void begin(std::uint64_t) override {}
  void end(std::uint64_t) override {}
  std::size_t environments() const override { return 0; }
  at::Tensor act(const std::vector<std::uint64_t>& environments, const models::Observations& frame) override {
    models::check_frame(policy_.observations(), frame, static_cast<std::int64_t>(environments.size()));
    const at::NoGradGuard no_grad;
    return policy_.forward(frame);
  }

 private:
  const LinearPolicy& policy_;
};

inline std::unique_ptr<models::PolicyControl> LinearPolicy::control(std::uint64_t) {
  return std::make_unique<LinearControl>(*this);
}

class LinearAlgorithm final : public policies::Algorithm {
 public:
  std::string name() const override { return "linear"; }
  std::string section() const override { return "model.linear"; }
  std::any default_settings() const override { return LinearSettings(); }
  void describe(config::Fields& fields, policies::PolicySettings& s) const override {
    fields.add("initial_std", s.of<LinearSettings>().initial_std, "of the weights");
  }
  void check(const policies::PolicySettings& s) const override {
    const double std = s.of<LinearSettings>().initial_std;
    COHORT_THROW_UNLESS(std >= 0, "initial_std = {} must not be negative", std);
  }
  std::shared_ptr<models::PolicyNetwork> make(const policies::PolicySettings& s,
                                              models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    LinearSettings linear = s.of<LinearSettings>();
    linear.observations = std::move(encoder.observations);
    linear.action_width = s.action_width;
    auto policy = std::make_shared<LinearPolicy>(linear);
    models::initialise(*policy, seed);
    return policy;
  }
  std::string loss_name(const policies::PolicySettings&) const override { return "mean squared error"; }
  int observation_steps(const policies::PolicySettings&) const override { return 1; }
  int action_steps(const policies::PolicySettings&) const override { return 1; }
  int newest_row(const policies::PolicySettings&) const override { return 0; }
  std::optional<policies::JobOfAlgorithm> job() const override {
    return policies::JobOfAlgorithm{.name = "linear",
                                    .title = "a linear policy",
                                    .summary = "a linear policy",
                                    .defaults = {"train.lr=0.5", "train.optimizer=sgd"},
                                    .basics = {"data.paths"}};
  }
};

/// Its name; the first call registers it.
inline const std::string& linear() {
  static const std::string name = [] {
    static const LinearAlgorithm algorithm;
    policies::add_algorithm(algorithm);
    return algorithm.name();
  }();
  return name;
}

}  // namespace cohort::testing
