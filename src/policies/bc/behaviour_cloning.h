/// robomimic's behaviour cloning baselines (Mandlekar et al. 2021): an MLP or a recurrent network from observations to
/// actions, or to a mixture of Gaussians over actions (BC, BC-GMM, BC-RNN, BC-RNN-GMM). Weights under robomimic's
/// names: policy.nets.encoder.*, policy.nets.mlp.*, policy.nets.decoder.*, policy.nets.rnn.*.
///
///   std::shared_ptr<PolicyNetwork> policy = make_bc_policy(settings, /*seed=*/1);
///   bc_loss(*policy, observations, actions).backward();
///   BcControl control(*policy, /*seed=*/1);   // evaluation mode
///   at::Tensor actions = control.act({0, 1}, frame);
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/config.h"
#include "models/policy_network.h"
#include "models/vision/observation_encoder.h"

namespace cohort::models {

struct GmmSettings {
  bool enabled = false;
  int num_modes = 5;
  double min_std = 1e-4;                    ///< added to every deviation
  std::string std_activation = "softplus";  ///< or exp
  bool low_noise_eval = true;               ///< at evaluation all deviations are 1e-4
};

struct RnnSettings {
  bool enabled = false;
  int horizon = 10;  ///< rows of a training sequence; at evaluation the memory begins anew after as many actions
  int hidden_dim = 400;
  std::string rnn_type = "LSTM";  ///< or GRU
  int num_layers = 2;
};

struct BcLossSettings {
  double l2_weight = 1.0;   ///< mean squared error
  double l1_weight = 0.0;   ///< Huber's loss with threshold 1
  double cos_weight = 0.0;  ///< one minus the cosine of the first three action columns
};

struct BcSettings {
  int action_width = 7;
  ObservationEncoderSettings encoder;
  std::vector<int> actor_layer_dims = {1024, 1024};  ///< MLP between encoder or RNN and output; an RNN may have none
  GmmSettings gmm;
  RnnSettings rnn;
  BcLossSettings loss;  ///< of policies without a mixture
};

/// Binds actor_layer_dims, gmm.*, rnn.*, loss.*.
void describe(config::Fields& fields, BcSettings& settings);
/// Throws Error naming the field, its value and what is allowed.
void check(const BcSettings& settings);

std::shared_ptr<PolicyNetwork> make_bc_policy(const BcSettings& settings, std::uint64_t seed);
const BcSettings& bc_settings(const torch::nn::Module& policy);

/// A scalar with a graph. actions (B, T, A) normalised to [-1, 1] and observations of as many frames; with an RNN all
/// rows count, else the first alone. With a mixture: the negative log likelihood per row.
at::Tensor bc_loss(torch::nn::Module& policy, const Observations& observations, const at::Tensor& actions);

/// Acts with such a policy: one action per environment and frame, with memory where the policy has one.
class BcControl final : public PolicyControl {
 public:
  /// The policy must outlive this, and be in evaluation mode when it acts. Mixtures are drawn from by (seed,
  /// environment, its actions since begin()): an episode that is played again under its id is the same.
  BcControl(torch::nn::Module& policy, std::uint64_t seed);
  /// Forgets the environment's memory, as at the start of an episode.
  void begin(std::uint64_t environment) override;
  void end(std::uint64_t environment) override { environments_.erase(environment); }
  std::size_t environments() const override { return environments_.size(); }
  /// (n, A) for n environments; frame: name -> (n, ...).
  at::Tensor act(const std::vector<std::uint64_t>& environments, const Observations& frame) override;
  bool remembers() const override;

 private:
  struct Environment {
    at::Tensor hidden, cell;  // (layers, hidden_dim)
    std::uint64_t steps = 0;  // since begin()
  };

  torch::nn::Module& policy_;
  std::uint64_t seed_;
  std::map<std::uint64_t, Environment> environments_;
};

}  // namespace cohort::models
