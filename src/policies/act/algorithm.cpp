// ACT as the program asks for it (policies/algorithm.h).
#include "policies/algorithm.h"

#include <algorithm>

#include "core/error.h"
#include "data/robot_windows.h"
#include "policies/act/act_policy.h"
#include "policies/act/flags.h"
#include "policies/act/lerobot.h"

namespace cohort::policies {
namespace {

class ActAlgorithm final : public Algorithm {
  using Settings = models::ActSettings;

 public:
  std::string name() const override { return "act"; }
  std::string section() const override { return "model.act"; }
  std::any default_settings() const override { return Settings(); }
  void describe(config::Fields& fields, PolicySettings& s) const override {
    models::describe(fields, s.of<Settings>());
  }
  void check(const PolicySettings& s) const override {
    Settings act = s.of<Settings>();
    act.action_width = std::max(1, s.action_width);
    models::check(act);
    COHORT_THROW_UNLESS(
        !s.language.enabled(),
        "ACT is told nothing: leave out model.language, or train diffusion policy, behaviour cloning or "
        "RDT");
  }
  std::string executed_actions_setting() const override { return "model.act.n_action_steps"; }

  std::shared_ptr<models::PolicyNetwork> make(const PolicySettings& s, models::ObservationEncoderSettings encoder,
                                              std::uint64_t seed) const override {
    Settings act = s.of<Settings>();
    act.action_width = s.action_width;
    act.observations = std::move(encoder.observations);
    return models::make_act_policy(act, seed);
  }
  std::string loss_name(const PolicySettings& s) const override {
    return s.of<Settings>().use_vae ? "mean absolute error of actions + weighted KL divergence"
                                    : "mean absolute error of actions";
  }

  int observation_steps(const PolicySettings&) const override { return 1; }
  int action_steps(const PolicySettings& s) const override { return s.of<Settings>().chunk_size; }
  int newest_row(const PolicySettings&) const override { return 0; }
  void choose_data(const config::Fields& fields, data::RobotDataSettings& data) const override {
    // The reference's: mean and standard deviation of everything, and pictures as they are stored.
    if (!fields.was_set("data.action_normalization")) data.action_normalization = {"normal"};
    if (!fields.was_set("data.proprio_normalization")) data.proprio_normalization = {"normal"};
    if (!fields.was_set("data.image_transforms")) data.image_transforms.clear();
  }
  std::vector<std::string> take_data(PolicySettings& s, const config::Fields&, const data::RobotDataSettings& data,
                                     const data::RobotWindows&, bool resumes) const override {
    if (data.images.empty() || resumes) return {};
    if (!s.backbone_weights.empty() || !s.initial_weights.empty()) return {};
    return {
        format("pictures: {} begins at random, with its normalisation off; ACT is meant to begin with ImageNet's "
               "weights: model.backbone_weights=FILE (docs/guide/policies.md)",
               s.of<Settings>().vision_backbone)};
  }
  std::vector<BatchObservation> batch_observations(const PolicySettings&) const override {
    return {{.name = models::kActionMaskObservation, .field = "action_mask"}};
  }

  std::string lerobot_type() const override { return "act"; }
  void read_lerobot(const LeRobotPolicy& policy, PolicySettings& s) const override {
    read_lerobot_act(policy, s.of<Settings>());
  }
  void write_lerobot(const PolicySettings& s, LeRobotPolicy& policy) const override {
    write_lerobot_act(s.of<Settings>(), policy);
  }

  std::optional<JobOfAlgorithm> job() const override {
    // The optimizer, batch and steps of lerobot-train --policy.type=act.
    JobOfAlgorithm job{
        .name = "act",
        .title = "ACT",
        .summary = "action chunking transformer (ACT) from LeRobot, HDF5 or RLDS robot data",
        .defaults = {"train.batch_size=8", "train.steps=100000", "train.lr=1e-5", "train.optimizer=adamw",
                     "train.weight_decay=1e-4", "train.clip_norm=10", "train.ema.enabled=false"},
        .basics = {"data.paths", "data.actions", "data.proprio", "data.images", "model.act.chunk_size",
                   "model.act.n_action_steps", "model.act.temporal_ensemble_coeff", "model.act.environment_state",
                   "model.backbone_weights", "train.steps", "train.batch_size", "train.lr", "train.checkpoint.every",
                   "rollout.task"}};
    // Frozen statistics and positions never change.
    for (const char* strategy : {"ddp", "dp"})
      job.defaults.push_back(
          format("parallel.{}.constant_buffers=[weight,bias,running_mean,running_var,vae_encoder_pos_enc]", strategy));
    return job;
  }
  std::string near_foreign_flag(const std::string& name) const override { return near_lerobot_flag(name); }
  ForeignWords read_foreign(const std::vector<std::string>& words) const override { return read_lerobot_flags(words); }
  std::vector<std::string> other_names() const override {
    return {"act", "actionchunking", "actionchunkingtransformer", "alohaact"};
  }
  std::string where_it_is() const override { return "ACT is `cohort train act`"; }
};

}  // namespace

const Algorithm& act_algorithm() {
  static const ActAlgorithm algorithm;
  return algorithm;
}

}  // namespace cohort::policies
