#include "policies/algorithm.h"

#include <algorithm>

#include "core/error.h"
#include "policies/bc/behaviour_cloning.h"
#include "policies/diffusion/diffusion_policy.h"
#include "policies/rdt/rdt_policy.h"

namespace cohort::policies {
namespace {

class DiffusionAlgorithm final : public Algorithm {
 public:
  std::string name() const override { return "diffusion_policy"; }
  std::string section() const override { return "model.diffusion"; }
  int observation_steps(const PolicySettings& s) const override { return s.diffusion.horizon.observation_horizon; }
  int action_steps(const PolicySettings& s) const override { return s.diffusion.horizon.prediction_horizon; }
  int newest_row(const PolicySettings& s) const override {
    const models::HorizonSettings& horizon = s.diffusion.horizon;
    return horizon.first_action >= 0 ? horizon.first_action : horizon.observation_horizon - 1;
  }
  int frames_per_decision(const PolicySettings& s) const override { return observation_steps(s); }
  std::optional<double> reach(const PolicySettings& s) const override {
    const models::SamplerSettings& sampler = s.diffusion.sampler;
    if (!sampler.clip_sample || (sampler.kind != "ddpm" && sampler.kind != "ddim")) return std::nullopt;
    return sampler.clip_sample_range;
  }
  std::string loss_name(const PolicySettings& s) const override {
    const std::string& predicted = s.diffusion.schedule.prediction_type;
    return "mean squared error of the " + (predicted == "epsilon"  ? std::string("noise")
                                           : predicted == "sample" ? std::string("actions")
                                                                   : std::string("velocity"));
  }
  bool renames_weights() const override { return true; }
  void check(const PolicySettings& s) const override {
    models::DiffusionPolicySettings diffusion = s.diffusion;
    diffusion.action_width = std::max(1, s.action_width);
    models::check(diffusion);
  }
  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    models::DiffusionPolicySettings diffusion = s.diffusion;
    diffusion.action_width = s.action_width;
    diffusion.encoder = std::move(encoder);
    return models::make_diffusion_policy(diffusion, seed);
  }
};

class BcAlgorithm final : public Algorithm {
 public:
  std::string name() const override { return "bc"; }
  std::string section() const override { return "model.bc"; }
  int observation_steps(const PolicySettings& s) const override { return s.bc.rnn.enabled ? s.bc.rnn.horizon : 1; }
  int action_steps(const PolicySettings& s) const override { return observation_steps(s); }
  int newest_row(const PolicySettings& s) const override { return observation_steps(s) - 1; }
  int frames_per_decision(const PolicySettings&) const override { return 1; }
  std::string loss_name(const PolicySettings& s) const override {
    return s.bc.gmm.enabled ? "negative log likelihood" : "loss of actions";
  }
  bool renames_weights() const override { return false; }
  void check(const PolicySettings& s) const override {
    models::BcSettings bc = s.bc;
    bc.action_width = std::max(1, s.action_width);
    models::check(bc);
  }
  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    models::BcSettings bc = s.bc;
    bc.action_width = s.action_width;
    bc.encoder = std::move(encoder);
    return models::make_bc_policy(bc, seed);
  }
};

class RdtAlgorithm final : public Algorithm {
 public:
  std::string name() const override { return "rdt"; }
  std::string section() const override { return "model.rdt"; }
  int observation_steps(const PolicySettings& s) const override {
    return s.rgb.empty() ? 1 : s.rdt.network.img_history_size;
  }
  int action_steps(const PolicySettings& s) const override { return s.rdt.network.horizon; }
  int newest_row(const PolicySettings&) const override { return 0; }
  int frames_per_decision(const PolicySettings& s) const override { return observation_steps(s); }
  std::string loss_name(const PolicySettings& s) const override {
    return s.rdt.network.schedule.prediction_type == "sample" ? "mean squared error of the actions, over 128 slots"
                                                              : "mean squared error of the noise, over 128 slots";
  }
  bool renames_weights() const override { return false; }
  void check(const PolicySettings& s) const override {
    models::check(s.rdt);
    COHORT_THROW_UNLESS(!s.language.enabled() || s.rdt.network.lang_token_dim == s.language.encoder.dim,
                        "lang_token_dim = {}, but model.language's embeddings have {} numbers",
                        s.rdt.network.lang_token_dim, s.language.encoder.dim);
    COHORT_THROW_UNLESS(!s.language.enabled() || s.rdt.lang_embed.empty(),
                        "lang_embed and model.language.weights both say what the policy is told: name one of them");
  }
  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    models::RdtSettings rdt = s.rdt;
    rdt.observations = std::move(encoder.observations);
    if (s.language.enabled()) rdt.language_observation = s.language.name;
    return models::make_rdt_policy(rdt, seed);
  }
};

}  // namespace

const std::vector<const Algorithm*>& algorithms() {
  static const DiffusionAlgorithm diffusion;
  static const BcAlgorithm bc;
  static const RdtAlgorithm rdt;
  static const std::vector<const Algorithm*> all{&diffusion, &bc, &rdt};
  return all;
}

const Algorithm& algorithm_of(const PolicySettings& settings) {
  std::string names;
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->name() == settings.algorithm) return *algorithm;
    names += (names.empty() ? "" : ", ") + algorithm->name();
  }
  throw Error(format("model.algorithm = \"{}\" is none of {}", settings.algorithm, names));
}

}  // namespace cohort::policies
