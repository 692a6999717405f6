// Diffusion policy as the program asks for it (policies/algorithm.h).
#include "policies/algorithm.h"

#include <algorithm>

#include "policies/diffusion/diffusion_policy.h"
#include "policies/diffusion/lerobot.h"
#include "policies/diffusion/robomimic.h"

namespace cohort::policies {
namespace {

class DiffusionAlgorithm final : public Algorithm {
  using Settings = models::DiffusionPolicySettings;

 public:
  std::string name() const override { return "diffusion_policy"; }
  std::string section() const override { return "model.diffusion"; }
  std::any default_settings() const override { return Settings(); }
  void describe(config::Fields& fields, PolicySettings& s) const override {
    models::describe(fields, s.of<Settings>());
  }
  void check(const PolicySettings& s) const override {
    Settings diffusion = s.of<Settings>();
    diffusion.action_width = std::max(1, s.action_width);
    models::check(diffusion);
  }
  std::string executed_actions_setting() const override { return "model.diffusion.horizon.action_horizon"; }

  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    Settings diffusion = s.of<Settings>();
    diffusion.action_width = s.action_width;
    diffusion.encoder = std::move(encoder);
    return models::make_diffusion_policy(diffusion, seed);
  }
  bool renames_weights() const override { return true; }
  std::string loss_name(const PolicySettings& s) const override {
    const std::string& predicted = s.of<Settings>().schedule.prediction_type;
    return "mean squared error of the " + (predicted == "epsilon"  ? std::string("noise")
                                           : predicted == "sample" ? std::string("actions")
                                                                   : std::string("velocity"));
  }
  std::optional<double> reach(const PolicySettings& s) const override {
    const models::SamplerSettings& sampler = s.of<Settings>().sampler;
    if (!sampler.clip_sample || (sampler.kind != "ddpm" && sampler.kind != "ddim")) return std::nullopt;
    return sampler.clip_sample_range;
  }
  std::string without_reach() const override { return "model.diffusion.sampler.clip_sample=false"; }

  int observation_steps(const PolicySettings& s) const override { return s.of<Settings>().horizon.observation_horizon; }
  int action_steps(const PolicySettings& s) const override { return s.of<Settings>().horizon.prediction_horizon; }
  int newest_row(const PolicySettings& s) const override {
    const models::HorizonSettings& horizon = s.of<Settings>().horizon;
    return horizon.first_action >= 0 ? horizon.first_action : horizon.observation_horizon - 1;
  }

  bool is_robomimics() const override { return true; }
  void read_robomimic(config::JsonSection& algo, PolicySettings& s, RobomimicPolicy& policy) const override {
    read_robomimic_algo(algo, s.of<Settings>(), policy);
  }
  std::string fit_robomimic_stream(PolicySettings& s) const override {
    s.of<Settings>().horizon.first_action = 0;  // its chunks begin with the newest frame
    return "";
  }

  std::string lerobot_type() const override { return "diffusion"; }
  void read_lerobot(const LeRobotPolicy& policy, PolicySettings& s) const override {
    read_lerobot_diffusion(policy, s);
  }
  void write_lerobot(const PolicySettings& s, LeRobotPolicy& policy) const override {
    write_lerobot_diffusion(s, policy);
  }
  weights::NamedTensors lerobot_weights(const PolicySettings& s, weights::NamedTensors own) const override {
    return lerobot_diffusion_weights(s, std::move(own));
  }
  weights::NamedTensors weights_of_lerobot(const PolicySettings& s, weights::NamedTensors theirs) const override {
    return own_diffusion_weights(s, std::move(theirs));
  }

  std::vector<std::string> other_names() const override {
    return {"diffusion", "diffusionpolicy", "dp", "unet", "diffusionunet"};
  }
  std::string where_it_is() const override {
    return "a diffusion policy is what `cohort train policy` trains (model.algorithm=diffusion_policy, its default)";
  }
};

}  // namespace

const Algorithm& diffusion_algorithm() {
  static const DiffusionAlgorithm algorithm;
  return algorithm;
}

}  // namespace cohort::policies
