#include "policies/act/flags.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/typed_text.h"
#include "policies/foreign_flags.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;

constexpr std::array kSame{SameSetting{"output_dir", "output_dir"},
                           SameSetting{"job_name", "name"},
                           SameSetting{"seed", "train.seed"},
                           SameSetting{"batch_size", "train.batch_size"},
                           SameSetting{"steps", "train.steps"},
                           SameSetting{"num_workers", "loader.workers"},
                           SameSetting{"log_freq", "train.log_every"},
                           SameSetting{"save_freq", "train.checkpoint.every"},
                           SameSetting{"eval_steps", "train.validate_every"},
                           SameSetting{"tolerance_s", "data.tolerance_s"},
                           SameSetting{"cudnn_deterministic", "train.deterministic"},
                           SameSetting{"optimizer.lr", "train.lr"},
                           SameSetting{"optimizer.weight_decay", "train.weight_decay"},
                           SameSetting{"optimizer.grad_clip_norm", "train.clip_norm"},
                           SameSetting{"optimizer.eps", "train.eps"},
                           SameSetting{"optimizer.type", "train.optimizer"},
                           SameSetting{"policy.optimizer_lr", "train.lr"},
                           SameSetting{"policy.optimizer_weight_decay", "train.weight_decay"}};

/// policy.NAME is model.act.NAME.
constexpr std::array<std::string_view, 16> kOfNetwork{"chunk_size",
                                                      "n_action_steps",
                                                      "vision_backbone",
                                                      "pre_norm",
                                                      "dim_model",
                                                      "n_heads",
                                                      "dim_feedforward",
                                                      "n_encoder_layers",
                                                      "n_decoder_layers",
                                                      "feedforward_activation",
                                                      "use_vae",
                                                      "latent_dim",
                                                      "n_vae_encoder_layers",
                                                      "dropout",
                                                      "kl_weight",
                                                      "temporal_ensemble_coeff"};

constexpr std::array kWithoutEffect{
    FlagReason{"policy.push_to_hub", "nothing is sent anywhere"},
    FlagReason{"policy.repo_id", "nothing is sent anywhere"},
    FlagReason{"policy.private", "nothing is sent anywhere"},
    FlagReason{"policy.tags", "nothing is sent anywhere"},
    FlagReason{"policy.license", "nothing is sent anywhere"},
    FlagReason{"dataset.video_backend", "videos are read by FFmpeg's libraries"},
    FlagReason{"dataset.return_uint8", "pictures travel as bytes"},
    FlagReason{"dataset.revision", "the folder of the data is what it is"},
    FlagReason{"dataset.repo_type", "the folder of the data is what it is"},
    FlagReason{"policy.pretrained_revision", "the folder of a policy is what it is"},
    FlagReason{"prefetch_factor", "loader.workers and the batches in flight say it"},
    FlagReason{"persistent_workers", "workers are threads, and stay"},
    FlagReason{"dataloader_multiprocessing_context", "workers are threads"},
    FlagReason{"env_eval_freq", "rollout.enabled=true rollout.task=TASK plays the policy with every validation"},
    FlagReason{"max_eval_samples", "all held-out windows count"}};
constexpr std::array kRefused{
    FlagReason{"reward_model", "policies learn from demonstrations here, and reward models not"},
    FlagReason{"checkpoint_path", "go on with a run by resume=RUN"},
    FlagReason{"dataset.depth_output_unit", "ACT sees colours, and no depth"},
    FlagReason{"policy.input_features", "data.proprio and data.images name what it sees"},
    FlagReason{"policy.output_features", "data.actions names what it gives"},
    FlagReason{"policy.pretrained_path", "begin with a policy's folder by --policy.path=FOLDER"},
    FlagReason{"policy.normalization_mapping", "data.proprio_normalization and data.action_normalization say it"},
    FlagReason{"dataset.episodes", "name them with data.splits=train[:90%] or train[10:50]"},
    FlagReason{"dataset.image_transforms", "name transforms of training pictures with data.image_transforms=[...]"},
    FlagReason{"env", "name a task of ours: rollout.enabled=true rollout.task=TASK"},
    FlagReason{"eval", "rollout.n and rollout.n_envs say how the policy is played"},
    FlagReason{"scheduler", "train.schedule and train.warmup_steps say it"},
    FlagReason{"peft", "all weights are trained here"},
    FlagReason{"job", "cohort launch starts trainings on other machines"},
    FlagReason{"sample_weighting", "data.weights weighs whole sets"},
    FlagReason{"rename_map", "data.names says what single sets call otherwise"},
    FlagReason{"optimizer.betas", "train.beta1 and train.beta2 say them"}};
constexpr std::array<std::string_view, 20> kSpecial{"policy.type",
                                                    "policy.path",
                                                    "policy.device",
                                                    "policy.use_amp",
                                                    "policy.pretrained_backbone_weights",
                                                    "policy.use_peft",
                                                    "policy.replace_final_stride_with_dilation",
                                                    "policy.n_obs_steps",
                                                    "dataset.root",
                                                    "dataset.repo_id",
                                                    "dataset.use_imagenet_stats",
                                                    "dataset.streaming",
                                                    "dataset.eval_split",
                                                    "resume",
                                                    "config_path",
                                                    "wandb.enable",
                                                    "use_policy_training_preset",
                                                    "save_checkpoint",
                                                    "save_checkpoint_to_hub",
                                                    "policy.optimizer_lr_backbone"};

bool is_null(const std::string& value) {
  return value == "null" || value == "None" || value == "none" || value.empty();
}

class LerobotFlags : public ForeignFlags {
 public:
  explicit LerobotFlags(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || !take(word.substr(0, equals), word.substr(equals + 1)))
        flags_.overrides.push_back(word);
    }
    finish();
  }

 private:
  /// Whether it is a flag of lerobot-train.
  bool take(const std::string& flag, const std::string& value) {
    if (flag == "output_dir") flags_.names_output_dir = true;
    if (flag == "optimizer.lr" || flag == "policy.optimizer_lr") lr_ = value;
    if (take_of(kSame, kWithoutEffect, flag, value)) return true;
    if (flag.starts_with("policy."))
      for (const std::string_view name : kOfNetwork)
        if (flag.substr(7) == name) {
          set(format("model.act.{}={}", name, is_null(value) ? "null" : value));
          return true;
        }
    for (const FlagReason& one : kRefused)
      if (flag == one.flag || flag.starts_with(std::string(one.flag) + ".")) {
        if (flag == "dataset.image_transforms.enable" && !is_true_flag(value)) return true;
        if (!is_null(value)) refuse(flag, value, one.text);
        return true;
      }
    return take_special(flag, value);
  }

  bool take_special(const std::string& flag, const std::string& value) {
    if (flag == "policy.type") {
      if (value != "act")
        refuse(flag, value,
               "`cohort train act` trains ACT; diffusion policy and behaviour cloning are `cohort train policy`");
    } else if (flag == "policy.path") {
      path_ = value;
    } else if (flag == "policy.device") {
      // Devices are found; the CPU alone must be asked for.
      if (value == "cpu")
        set("devices=cpu");
      else if (!value.starts_with("cuda"))
        refuse(flag, value, "there are cpu and cuda");
    } else if (flag == "policy.use_amp") {
      if (is_true_flag(value)) set("train.precision=bf16");
    } else if (flag == "policy.pretrained_backbone_weights") {
      std::error_code error;
      if (fs::exists(value, error))
        set("model.backbone_weights=" + value);
      else if (!is_null(value))
        refuse(flag, value,
               "nothing is downloaded; name torchvision's weights as a file, model.backbone_weights=FILE "
               "(docs/guide/policies.md), or null");
    } else if (flag == "policy.use_peft") {
      if (is_true_flag(value)) refuse(flag, value, "all weights are trained here");
    } else if (flag == "policy.replace_final_stride_with_dilation") {
      if (is_true_flag(value)) refuse(flag, value, "the picture encoder keeps its strides here");
    } else if (flag == "policy.n_obs_steps") {
      if (value != "1") refuse(flag, value, "ACT sees one moment");
    } else if (flag == "dataset.root") {
      root_ = value;
    } else if (flag == "dataset.repo_id") {
      repo_ = value;
    } else if (flag == "dataset.use_imagenet_stats") {
      if (!is_true_flag(value))
        refuse(
            flag, value,
            "name the pictures' own, which meta/stats.json has: model.act.image_mean=[...] model.act.image_std=[...]");
    } else if (flag == "dataset.streaming") {
      if (is_true_flag(value)) refuse(flag, value, "data are read from local folders; fetch them first");
    } else if (flag == "dataset.eval_split") {
      hold_out(flag, value);
    } else if (flag == "resume") {
      if (value == "true" || value == "True")
        set("resume=auto");
      else if (value != "false" && value != "False")
        return false;  // ours: a run
    } else if (flag == "config_path") {
      refuse(flag, value, "go on with a run by resume=RUN, and begin with a policy's folder by --policy.path=FOLDER");
    } else if (flag == "wandb.enable") {
      if (is_true_flag(value))
        refuse(flag, value, "nothing is sent anywhere; the run's folder has TensorBoard events and a report");
    } else if (flag.starts_with("wandb.")) {
      note_without_effect(flag, value, "nothing is sent anywhere");
    } else if (flag == "use_policy_training_preset" || flag == "save_checkpoint") {
      if (flag == "save_checkpoint" && !is_true_flag(value))
        refuse(flag, value, "a run keeps its last checkpoint; train.checkpoint.keep=1 keeps no more");
    } else if (flag == "save_checkpoint_to_hub") {
      if (is_true_flag(value)) refuse(flag, value, "nothing is sent anywhere");
    } else if (flag == "policy.optimizer_lr_backbone") {
      lr_backbone_ = value;
    } else {
      return false;
    }
    return true;
  }

  /// LeRobot holds out a share of each task's episodes, the last ones.
  void hold_out(const std::string& flag, const std::string& value) {
    double share = 0;
    try {
      share = std::stod(value);
    } catch (const std::exception&) {
      return refuse(flag, value, "is no number");
    }
    if (share == 0) return;
    if (share < 0.01 || share > 0.99) return refuse(flag, value, "must be a share between 0.01 and 0.99");
    const int percent = static_cast<int>((1 - share) * 100 + 0.5);
    set(format("data.splits=[\"train[:{}%]\"]", percent));
    set(format("validation.splits=[\"train[{}%:]\"]", percent));
  }

  void finish() {
    data();
    begin_with();
    if (lr_backbone_ && lr_backbone_ != lr_.value_or("1e-5"))
      refuse("policy.optimizer_lr_backbone", *lr_backbone_,
             format("pictures' encoder and transformer learn at one rate here, {}", lr_.value_or("1e-5")));
    COHORT_THROW_UNLESS(refused_.empty(), "flags of lerobot-train that cannot be honoured:{}", refused_);
  }

  /// Where LeRobot keeps its data sets, if no folder is named (HF_LEROBOT_HOME, lerobot/utils/constants.py).
  void data() {
    if (root_) return set("data.paths=" + *root_);
    if (!repo_) return;
    const auto variable = [](const char* name) {
      const char* value = std::getenv(name);
      return std::string(value == nullptr ? "" : value);
    };
    fs::path home = variable("HF_LEROBOT_HOME");
    if (home.empty() && !variable("HF_HOME").empty()) home = fs::path(variable("HF_HOME")) / "lerobot";
    if (home.empty()) home = fs::path(variable("HOME")) / ".cache" / "huggingface" / "lerobot";
    std::error_code error;
    for (const fs::path& path : {fs::path(*repo_), home / *repo_})
      if (fs::exists(path / "meta" / "info.json", error)) return set("data.paths=" + path.string());
    refuse("dataset.repo_id", *repo_,
           format("there is no such data set in {}, and nothing is downloaded here: hf download --repo-type dataset {} "
                  "--local-dir FOLDER, then --dataset.root=FOLDER",
                  home.string(), *repo_));
  }

  /// The environment's state has weights of its own: where the folder's policy sees one, it is one here, too, among the
  /// fields that the policy sees. A folder that was written here says which fields of the data they are.
  void see_environment(const config::Json& json, std::vector<std::string>& of_file) const {
    config::Json vectors = config::Json::array(), pictures = vectors, environment = vectors;
    const auto features = json.find("input_features");
    if (features != json.end() && features->is_object())
      for (const auto& [name, feature] : features->items()) {
        const std::string kind = feature.is_object() ? feature.value("type", "") : "";
        (kind == "VISUAL" ? pictures : vectors).push_back(name);
        if (kind == "ENV") environment.push_back(name);
      }
    std::error_code error;
    if (const fs::path file = fs::path(*path_) / "cohort.json"; fs::exists(file, error)) {
      const config::Json own = try_json<config::Json>(read_file(file));
      if (own.is_object() && own.contains("environment_state") && own.value("data", config::Json()).is_object()) {
        environment = own.at("environment_state");
        vectors = own.at("data").value("proprio", vectors);
        pictures = own.at("data").value("images", pictures);
      }
    }
    if (environment.empty()) return;
    of_file.push_back("data.proprio=" + json_text(vectors));
    of_file.push_back("data.images=" + json_text(pictures));
    of_file.push_back("model.act.environment_state=" + json_text(environment));
  }

  /// Fine-tuning: the network's settings are those of the folder, where no flag says another thing.
  void begin_with() {
    if (!path_) return;
    const fs::path file = fs::path(*path_) / "config.json";
    std::error_code error;
    if (!fs::exists(file, error)) {
      refuse("policy.path", *path_,
             "there is no config.json in it; nothing is downloaded here: hf download MODEL --local-dir FOLDER");
      return;
    }
    const config::Json json = try_json<config::Json>(read_file(file));
    if (!json.is_object() || json.value("type", "") != "act") {
      refuse("policy.path", *path_, "is no ACT");
      return;
    }
    std::vector<std::string> of_file{"model.initial_weights=" + (fs::path(*path_) / "model.safetensors").string()};
    for (const std::string_view name : kOfNetwork)
      if (json.contains(name)) {
        const config::Json& value = json.at(std::string(name));
        of_file.push_back(format("model.act.{}={}", name, typed_text(value)));
      }
    see_environment(json, of_file);
    flags_.overrides.insert(flags_.overrides.begin(), of_file.begin(), of_file.end());
    flags_.of_files += of_file.size();
    flags_.notes.push_back(
        format("--policy.path={}: numbers are normalised by the statistics of the data of this training, "
               "not by the folder's",
               *path_));
  }

  std::optional<std::string> path_, root_, repo_, lr_, lr_backbone_;
};

}  // namespace

std::string near_lerobot_flag(const std::string& name) {
  if (name.find('.') != std::string::npos && !name.starts_with("policy.") && !name.starts_with("dataset.")) return "";
  std::vector<std::string> known(kSpecial.begin(), kSpecial.end());
  for (const SameSetting& one : kSame) known.emplace_back(one.flag);
  for (const std::string_view one : kOfNetwork) known.push_back("policy." + std::string(one));
  return config::nearest(name, known);
}

ForeignWords read_lerobot_flags(const std::vector<std::string>& words) {
  return LerobotFlags(words).flags();
}

}  // namespace cohort::policies
