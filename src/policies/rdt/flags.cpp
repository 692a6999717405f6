#include "policies/rdt/flags.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <optional>
#include <utility>

#include "core/config.h"
#include "core/error.h"
#include "policies/foreign_flags.h"
#include "policies/rdt/config.h"
#include "policies/rdt/deepspeed_file.h"
#include "weights/hub_models.h"

namespace cohort::policies {
namespace {

constexpr std::array<std::string_view, 9> kSwitches{
    "load_from_hdf5",   "gradient_checkpointing", "image_aug",   "precomp_lang_embed",
    "scale_lr",         "use_8bit_adam",          "push_to_hub", "allow_tf32",
    "set_grads_to_none"};

constexpr std::array<SameSetting, 18> kSame{{{"output_dir", "output_dir"},
                                             {"seed", "train.seed"},
                                             {"train_batch_size", "train.batch_size"},
                                             {"num_train_epochs", "train.epochs"},
                                             {"max_train_steps", "train.steps"},
                                             {"checkpointing_period", "train.checkpoint.every"},
                                             {"checkpoints_total_limit", "train.checkpoint.keep"},
                                             {"gradient_accumulation_steps", "train.gradient_accumulation_steps"},
                                             {"learning_rate", "train.lr"},
                                             {"cond_mask_prob", "model.rdt.cond_mask_prob"},
                                             {"cam_ext_mask_prob", "model.rdt.cam_ext_mask_prob"},
                                             {"state_noise_snr", "model.rdt.state_noise_snr"},
                                             {"dataloader_num_workers", "loader.workers"},
                                             {"adam_beta1", "train.beta1"},
                                             {"adam_beta2", "train.beta2"},
                                             {"adam_weight_decay", "train.weight_decay"},
                                             {"adam_epsilon", "train.eps"},
                                             {"max_grad_norm", "train.clip_norm"}}};

/// Flags that change nothing here.
constexpr std::array<FlagReason, 5> kWithoutEffect{
    {{"logging_dir", "log, metrics and TensorBoard events lie in the run's folder"},
     {"local_rank", "the launcher's LOCAL_RANK says it"},
     {"set_grads_to_none", "gradients are kept in buckets and never set to None"},
     {"alpha", "a moving average for the reference's log only"},
     {"allow_tf32", "TF32 is allowed unless train.deterministic=true"}}};

constexpr std::array<FlagReason, 3> kRefused{
    {{"push_to_hub", "nothing is sent anywhere; the run's folder holds the weights as safetensors"},
     {"hub_token", "nothing is sent anywhere; leave it out"},
     {"hub_model_id", "nothing is sent anywhere; leave it out"}}};

/// Flags of several settings, or of one under a condition (take_special).
constexpr std::array<std::string_view, 23> kSpecial{"load_from_hdf5",
                                                    "gradient_checkpointing",
                                                    "use_8bit_adam",
                                                    "deepspeed",
                                                    "image_aug",
                                                    "config_path",
                                                    "dataset_type",
                                                    "precomp_lang_embed",
                                                    "scale_lr",
                                                    "mixed_precision",
                                                    "resume_from_checkpoint",
                                                    "pretrained_model_name_or_path",
                                                    "pretrained_vision_encoder_name_or_path",
                                                    "pretrained_text_encoder_name_or_path",
                                                    "report_to",
                                                    "lr_scheduler",
                                                    "lr_warmup_steps",
                                                    "lr_num_cycles",
                                                    "lr_power",
                                                    "sample_period",
                                                    "sample_batch_size",
                                                    "num_sample_batches",
                                                    "output_dir"};

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

class RdtFlags : public ForeignFlags {
 public:
  explicit RdtFlags(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      const std::size_t equals = word.find('=');
      std::string name = word.substr(0, equals);
      // main.py's argparse knows them with a low line; people write both.
      if (name.find('.') == std::string::npos) std::replace(name.begin(), name.end(), '-', '_');
      if (name == "data.images") names_images_ = true;
      if (equals == std::string::npos || !take(name, word.substr(equals + 1))) flags_.overrides.push_back(word);
    }
    finish();
  }

 private:
  /// A switch is named without a value.
  void refuse(const std::string& flag, const std::string& value, std::string_view remedy) {
    ForeignFlags::refuse(flag, value == "true" ? "" : value, remedy);
  }

  /// Whether it is a flag of main.py.
  bool take(const std::string& flag, const std::string& value) {
    if (flag == "output_dir") output_dir_ = value;
    if (take_of(kSame, kWithoutEffect, flag, value)) return true;
    for (const FlagReason& one : kRefused)
      if (flag == one.flag) {
        if (!is_rdt_switch(flag) || is_true_flag(value)) refuse(flag, value, one.text);
        return true;
      }
    return take_special(flag, value);
  }

  bool take_special(const std::string& flag, const std::string& value) {
    if (flag == "load_from_hdf5") {
      from_hdf5_ = is_true_flag(value);
      if (from_hdf5_) set("data.format=hdf5");
    } else if (flag == "gradient_checkpointing") {
      set(format("train.gradient_checkpointing={}", is_true_flag(value) ? "true" : "false"));
    } else if (flag == "use_8bit_adam") {
      if (is_true_flag(value)) set("train.optimizer=adamw8bit");
    } else if (flag == "deepspeed") {
      deepspeed_ = read_deepspeed_file(value);
    } else if (flag == "image_aug") {
      set(format("model.rdt.image_aug={}", is_true_flag(value) ? "true" : "false"));
    } else if (flag == "config_path") {
      config_path_ = value;
    } else if (flag == "dataset_type") {
      dataset_type_ = value;
    } else if (flag == "precomp_lang_embed") {
      precomputed_ = is_true_flag(value);
    } else if (flag == "scale_lr") {
      if (is_true_flag(value)) {
        set("train.learning_rate_rule=linear");
        set("train.lr_base_batch=1");
      }
    } else if (flag == "mixed_precision") {
      set(format("train.precision={}", value == "no" ? "fp32" : value));
    } else if (flag == "resume_from_checkpoint") {
      // main.py looks for the name in its one output folder; here every run has checkpoints of its own.
      resume_from_ = value;
    } else if (flag == "pretrained_model_name_or_path") {
      set("model.initial_weights=" + weights::find_hub_model("--" + flag, value).string());
    } else if (flag == "pretrained_vision_encoder_name_or_path") {
      set("model.rdt.vision_weights=" + weights::find_hub_model("--" + flag, value).string());
    } else if (flag == "pretrained_text_encoder_name_or_path") {
      text_encoder_ = value;
    } else if (flag == "report_to") {
      if (value == "tensorboard" || value == "none")
        set(format("tensorboard={}", value == "tensorboard" ? "true" : "false"));
      else
        refuse(flag, value, "nothing is sent anywhere; there are tensorboard and none, and metrics.jsonl always");
    } else if (flag == "lr_scheduler") {
      scheduler_ = value;
    } else if (flag == "lr_warmup_steps") {
      warmup_ = value;
    } else if (flag == "lr_num_cycles" || flag == "lr_power") {
      if (value != "1" && value != "1.0") refuse(flag, value, "only 1 is done");
    } else if (flag == "sample_period") {
      period_ = value;
    } else if (flag == "sample_batch_size") {
      sample_batch_ = value;
    } else if (flag == "num_sample_batches") {
      sample_batches_ = value;
    } else {
      return false;
    }
    return true;
  }

  /// main.py looks for a checkpoint's name in --output_dir, which shows those of its newest run.
  void resume() {
    if (!resume_from_) return;
    const std::string& name = *resume_from_;
    std::error_code unreadable;
    const std::filesystem::path shown = std::filesystem::path(output_dir_) / name;
    if (name == "latest")
      set("resume=auto");
    else if (!name.starts_with("checkpoint-") || std::filesystem::exists(name, unreadable))
      set("resume=" + name);
    else if (!output_dir_.empty() && std::filesystem::exists(shown, unreadable))
      set("resume=" + shown.string());
    else
      refuse("resume_from_checkpoint", name,
             format("{}name it with its run, e.g. outputs/rdt/latest/checkpoints/{}; latest goes on with the newest",
                    output_dir_.empty() ? "" : format("there is no {}; ", shown.string()), name));
  }

  void finish() {
    resume();
    flags_.names_output_dir = !output_dir_.empty();
    if (text_encoder_ && precomputed_.value_or(false))
      flags_.notes.push_back(
          format("--pretrained_text_encoder_name_or_path={} has no effect: --precomp_lang_embed takes "
                 "the instruction from model.rdt.lang_embed",
                 *text_encoder_));
    else if (text_encoder_)
      refuse("pretrained_text_encoder_name_or_path", *text_encoder_,
             "texts are not embedded while training: run cohort data embed DATA --text-encoder " + *text_encoder_ +
                 " --out instructions.safetensors once, then add --precomp_lang_embed "
                 "model.rdt.lang_embed=instructions.safetensors");
    if (precomputed_.value_or(false) &&
        std::none_of(flags_.overrides.begin(), flags_.overrides.end(),
                     [](const std::string& text) { return text.find("model.rdt.lang_embed=") == 0; }))
      refuse("precomp_lang_embed", "",
             "name the embedded instructions with model.rdt.lang_embed=FILE (cohort data embed DATA --out "
             "instructions.safetensors makes them; or the reference's .pt, or its folder)");
    schedule();
    sampling();
    deepspeed();
    configuration();
    COHORT_THROW_UNLESS(refused_.empty(), "flags of main.py that cannot be honoured:{}", refused_);
  }

  /// base.yaml's settings, before those of the command line, which go on top.
  void configuration() {
    if (!config_path_) {
      if (dataset_type_)
        flags_.notes.push_back(
            format("--dataset_type={} has no effect without --config_path: data.paths names the data", *dataset_type_));
      return;
    }
    RdtConfig config = read_rdt_config({.path = *config_path_,
                                        .dataset_type = dataset_type_.value_or("pretrain"),
                                        .load_from_hdf5 = from_hdf5_,
                                        .names_images = names_images_});
    flags_.overrides.insert(flags_.overrides.begin(), config.overrides.begin(), config.overrides.end());
    flags_.of_files += config.overrides.size();
    flags_.notes.insert(flags_.notes.end(), config.notes.begin(), config.notes.end());
  }

  /// diffusers' get_scheduler: "constant" knows no warm-up.
  void schedule() {
    if (!scheduler_) {
      // Which schedule there is, a file says, or the job.
      if (warmup_) set("train.warmup_steps=" + *warmup_);
      return;
    }
    const std::string& kind = *scheduler_;
    if (kind != "constant" && kind != "constant_with_warmup" && kind != "linear" && kind != "cosine")
      return refuse("lr_scheduler", kind, "there are constant, constant_with_warmup, linear and cosine");
    set("train.schedule=" + (kind == "constant_with_warmup" ? "constant" : kind));
    if (kind == "constant")
      set("train.warmup_steps=0");
    else if (warmup_)
      set("train.warmup_steps=" + *warmup_);
    else
      flags_.defaults.emplace_back("train.warmup_steps=500");
    if (kind == "constant" && warmup_)
      flags_.notes.push_back(
          format("--lr_warmup_steps={} has no effect with --lr_scheduler=constant, as in the "
                 "reference; there is constant_with_warmup",
                 *warmup_));
  }

  void sampling() {
    if (!period_ && !sample_batch_ && !sample_batches_) return;
    const auto number = [&](const char* flag, const std::optional<std::string>& value, std::int64_t standard) {
      if (!value) return standard;
      const std::optional<std::int64_t> given = whole_number(*value);
      if (!given) refuse(flag, *value, "is no number");
      return given.value_or(standard);
    };
    if (!period_) {
      flags_.notes.push_back(
          "--sample_batch_size and --num_sample_batches have no effect without --sample_period, as in the reference");
      return;
    }
    const std::int64_t period = number("sample_period", period_, -1),
                       size = number("sample_batch_size", sample_batch_, 8),
                       batches = number("num_sample_batches", sample_batches_, 2);
    if (period > 0) set(format("train.validate_every={}", period));
    set(format("validation.sampled={}", period > 0 ? size * batches : 0));
    if (period > 0)
      flags_.notes.push_back(
          "--sample_period: chunks are drawn for samples of the validation data that validation.splits names, not of "
          "the "
          "training data");
  }

  /// The file's settings come first; a flag may say the same, and nothing else.
  void deepspeed() {
    if (!deepspeed_) return;
    for (const std::string& text : deepspeed_->overrides) {
      const std::string key = text.substr(0, text.find('=') + 1);
      for (const std::string& own : flags_.overrides)
        if (own.starts_with(key) && own != text)
          refuse("deepspeed", "",
                 format("its file says {} and the command line {}; say it once, \"auto\" in the file", text, own));
    }
    flags_.overrides.insert(flags_.overrides.begin(), deepspeed_->overrides.begin(), deepspeed_->overrides.end());
    flags_.of_files += deepspeed_->overrides.size();
    flags_.notes.insert(flags_.notes.end(), deepspeed_->notes.begin(), deepspeed_->notes.end());
  }

  std::optional<DeepspeedFile> deepspeed_;
  std::string output_dir_;
  bool from_hdf5_ = false, names_images_ = false;
  std::optional<bool> precomputed_;
  std::optional<std::string> config_path_, dataset_type_, resume_from_;
  std::optional<std::string> text_encoder_, scheduler_, warmup_, period_, sample_batch_, sample_batches_;
};

}  // namespace

bool is_rdt_switch(std::string_view name) {
  return std::find(kSwitches.begin(), kSwitches.end(), name) != kSwitches.end();
}

std::string near_rdt_flag(const std::string& name) {
  std::string flag = name;
  std::replace(flag.begin(), flag.end(), '-', '_');
  if (flag.find('.') != std::string::npos) return "";
  std::vector<std::string> known(kSpecial.begin(), kSpecial.end());
  for (const SameSetting& one : kSame) known.emplace_back(one.flag);
  for (const FlagReason& one : kWithoutEffect) known.emplace_back(one.flag);
  return config::nearest(flag, known);
}

ForeignWords read_rdt_flags(const std::vector<std::string>& words) {
  return RdtFlags(words).flags();
}

}  // namespace cohort::policies
