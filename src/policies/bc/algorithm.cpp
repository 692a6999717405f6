// Behaviour cloning as the program asks for it (policies/algorithm.h).
#include "policies/algorithm.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_section.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/robomimic.h"

namespace cohort::policies {
namespace {

using config::Json;
using config::JsonSection;

/// robomimic's BC: exps/templates/bc.json.
void read_robomimic_algo(JsonSection& root, models::BcSettings& bc, RobomimicPolicy& policy) {
  policy.encoder.core.norm = "batch";  // robomimic's; group norm is the diffusion policies'
  read_optimizer(root, policy.optimizer);
  root.in("loss", [&](JsonSection& loss) {
    loss.take("l2_weight", bc.loss.l2_weight);
    loss.take("l1_weight", bc.loss.l1_weight);
    loss.take("cos_weight", bc.loss.cos_weight);
  });
  root.take_or_null("actor_layer_dims", bc.actor_layer_dims, {});
  // Variants that are not here: whatever else their sections say is without meaning while they are off.
  for (const char* variant : {"gaussian", "vae", "transformer"}) {
    const Json& section = root.get(variant);
    if (section.is_object() && section.contains("enabled") && !config::is_empty(section.at("enabled")))
      root.refuse(format("algo.{}.enabled", variant), section.at("enabled"), "is not supported");
  }
  root.in("gmm", [&](JsonSection& gmm) {
    gmm.take("enabled", bc.gmm.enabled);
    gmm.take("num_modes", bc.gmm.num_modes);
    gmm.take("min_std", bc.gmm.min_std);
    if (bc.gmm.enabled)
      gmm.take_choice("std_activation", bc.gmm.std_activation, {"softplus", "exp"});
    else
      gmm.ignore("std_activation");
    gmm.take("low_noise_eval", bc.gmm.low_noise_eval);
  });
  root.in("rnn", [&](JsonSection& rnn) {
    rnn.take("enabled", bc.rnn.enabled);
    rnn.take("horizon", bc.rnn.horizon);
    rnn.take("hidden_dim", bc.rnn.hidden_dim);
    if (bc.rnn.enabled)
      rnn.take_choice("rnn_type", bc.rnn.rnn_type, {"LSTM", "GRU"});
    else
      rnn.ignore("rnn_type");
    rnn.take("num_layers", bc.rnn.num_layers);
    rnn.off("open_loop", config::is_false, "is not supported");
    rnn.in("kwargs", [&](JsonSection& kwargs) { kwargs.off("bidirectional", config::is_false, "is not supported"); });
  });
}

class BcAlgorithm final : public Algorithm {
  using Settings = models::BcSettings;

 public:
  std::string name() const override { return "bc"; }
  std::string section() const override { return "model.bc"; }
  std::any default_settings() const override { return Settings(); }
  void describe(config::Fields& fields, PolicySettings& s) const override {
    models::describe(fields, s.of<Settings>());
  }
  void check(const PolicySettings& s) const override {
    Settings bc = s.of<Settings>();
    bc.action_width = std::max(1, s.action_width);
    models::check(bc);
  }

  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    Settings bc = s.of<Settings>();
    bc.action_width = s.action_width;
    bc.encoder = std::move(encoder);
    return models::make_bc_policy(bc, seed);
  }
  std::string loss_name(const PolicySettings& s) const override {
    return s.of<Settings>().gmm.enabled ? "negative log likelihood" : "loss of actions";
  }

  int observation_steps(const PolicySettings& s) const override {
    const models::RnnSettings& rnn = s.of<Settings>().rnn;
    return rnn.enabled ? rnn.horizon : 1;
  }
  int action_steps(const PolicySettings& s) const override { return observation_steps(s); }
  int newest_row(const PolicySettings& s) const override { return observation_steps(s) - 1; }
  int frames_per_decision(const PolicySettings&) const override { return 1; }

  bool is_robomimics() const override { return true; }
  void read_robomimic(JsonSection& algo, PolicySettings& s, RobomimicPolicy& policy) const override {
    read_robomimic_algo(algo, s.of<Settings>(), policy);
  }
  std::string fit_robomimic_stream(PolicySettings&) const override {
    return "algo_name = \"bc\" on RLDS data is not supported: the pipeline is the diffusion policy's";
  }

  std::vector<std::string> other_names() const override {
    return {"bc", "bcrnn", "bctransformer", "behaviorcloning", "mlp"};
  }
  std::string where_it_is() const override { return "behaviour cloning is `cohort train policy model.algorithm=bc`"; }
};

}  // namespace

const Algorithm& bc_algorithm() {
  static const BcAlgorithm algorithm;
  return algorithm;
}

}  // namespace cohort::policies
