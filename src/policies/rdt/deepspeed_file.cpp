#include "policies/rdt/deepspeed_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string_view>

#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"

namespace cohort::policies {
namespace {

using config::Json;

/// Keys that say how DeepSpeed goes about it.
constexpr std::array<std::string_view, 10> kOwnAffair{"steps_per_print",
                                                      "wall_clock_breakdown",
                                                      "memory_breakdown",
                                                      "dump_state",
                                                      "zero_allow_untested_optimizer",
                                                      "prescale_gradients",
                                                      "gradient_predivide_factor",
                                                      "communication_data_type",
                                                      "seq_parallel_communication_data_type",
                                                      "disable_allgather"};
constexpr std::array<std::string_view, 12> kOwnAffairOfZero{
    "overlap_comm",           "contiguous_gradients",  "sub_group_size",           "reduce_scatter",
    "allgather_partitions",   "allgather_bucket_size", "reduce_bucket_size",       "round_robin_gradients",
    "load_from_fp32_weights", "elastic_checkpoint",    "ignore_unused_parameters", "legacy_stage1"};

template <std::size_t N>
bool is_one_of(const std::array<std::string_view, N>& keys, std::string_view key) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

class DeepspeedReader {
 public:
  DeepspeedReader(const Json& json, std::string path) : path_(std::move(path)) {
    COHORT_THROW_UNLESS(json.is_object(), "{}: a DeepSpeed configuration is a JSON object", path_);
    for (const auto& [key, value] : json.items()) take(key, value);
    if (!own_affairs_.empty())
      file_.notes.push_back(
          format("{}: {} have no effect: they say how DeepSpeed exchanges and reports; buckets are "
                 "parallel.ddp.bucket_cap_mb",
                 path_, own_affairs_));
    COHORT_THROW_UNLESS(refused_.empty(), "{}: keys of DeepSpeed that cannot be honoured:{}", path_, refused_);
  }
  DeepspeedFile file() && { return std::move(file_); }

 private:
  void set(const std::string& text) { file_.overrides.push_back(text); }
  void refuse(const std::string& key, const Json& value, std::string_view remedy) {
    refused_ += format("\n  {} = {}: {}", key, json_text(value), remedy);
  }
  void leave(std::string_view key) { own_affairs_ += format("{}{}", own_affairs_.empty() ? "" : ", ", key); }
  static bool is_auto(const Json& value) { return value.is_string() && value == "auto"; }

  /// A number for a setting.
  void number(const std::string& key, const Json& value, const char* setting, bool whole) {
    if (is_auto(value)) return;
    if (!value.is_number() || value.get<double>() < 0 || (whole && !value.is_number_integer()))
      return refuse(key, value, whole ? "is no whole number" : "is no number");
    set(format("{}={}", setting, json_text(value)));
  }

  void take(const std::string& key, const Json& value) {
    if (key == "zero_optimization") {
      zero(value);
    } else if (key == "bf16" || key == "fp16") {
      precision(key, value);
    } else if (key == "gradient_clipping") {
      number(key, value, "train.clip_norm", false);
    } else if (key == "gradient_accumulation_steps") {
      number(key, value, "train.gradient_accumulation_steps", true);
    } else if (key == "train_micro_batch_size_per_gpu") {
      number(key, value, "train.batch_size", true);
    } else if (key == "train_batch_size") {
      number(key, value, "train.global_batch_size", true);
    } else if (key == "optimizer" || key == "scheduler") {
      refuse(key, value,
             "main.py makes its own; leave it out and say --learning_rate, --adam_beta1, --lr_scheduler ...");
    } else if (key == "activation_checkpointing") {
      refuse(key, value, "leave it out and say --gradient_checkpointing");
    } else if (is_one_of(kOwnAffair, key)) {
      leave(key);
    } else {
      refuse(key, value, "is not done here; leave it out");
    }
  }

  void zero(const Json& json) {
    if (!json.is_object()) return refuse("zero_optimization", json, "is no object with a stage");
    for (const auto& [key, value] : json.items()) {
      const std::string full = "zero_optimization." + key;
      if (key == "stage") {
        if (value == 0 || value == 1 || value == 2)
          set("parallel.zero=" + json_text(value));
        else
          refuse(full, value,
                 "there are 0, 1 and 2: parameters are whole on every rank; take 2, --use_8bit_adam and "
                 "--gradient_checkpointing");
      } else if (key == "offload_optimizer" || key == "offload_param" || key == "cpu_offload") {
        const bool none =
            value == false || value.is_null() || (value.is_object() && value.value("device", "") == "none");
        if (!none) refuse(full, value, "nothing is moved to the host; take --use_8bit_adam");
      } else if (is_one_of(kOwnAffairOfZero, key) || key.starts_with("stage3_")) {
        leave(full);
      } else {
        refuse(full, value, "is not done here; leave it out");
      }
    }
  }

  void precision(const std::string& type, const Json& json) {
    if (!json.is_object()) return refuse(type, json, "is no object with \"enabled\"");
    for (const auto& [key, value] : json.items()) {
      const std::string full = type + "." + key;
      if (key == "enabled") {
        if (value == true) {
          set("train.precision=" + type);
          if (type == "bf16") set("train.weights=bf16");
        } else if (is_auto(value) && type == "bf16") {
          file_.notes.push_back(
              format("{}: {} = auto: the precision is --mixed_precision's; weights stay float32 unless "
                     "train.weights=bf16 is said",
                     path_, full));
        } else if (!is_auto(value) && value != false) {
          refuse(full, value, "is true, false or auto");
        }
      } else if (type == "fp16" && key == "initial_scale_power") {
        if (value.is_number() && value.get<double>() >= 0)
          set(format("train.scaler.init_scale={}", std::pow(2.0, value.get<double>())));
        else if (!is_auto(value))
          refuse(full, value, "is no number");
      } else if (type == "fp16" && key == "loss_scale_window") {
        number(full, value, "train.scaler.growth_interval", true);
      } else if (type == "fp16" && key == "loss_scale") {
        if (value != 0 && !is_auto(value)) refuse(full, value, "scales are found while training; write 0");
      } else if (key == "hysteresis" || key == "min_loss_scale" || key == "consecutive_hysteresis" ||
                 key == "immediate_grad_update" || key == "auto_cast") {
        leave(full);
      } else {
        refuse(full, value, "is not done here; leave it out");
      }
    }
  }

  std::string path_, refused_, own_affairs_;
  DeepspeedFile file_;
};

}  // namespace

DeepspeedFile read_deepspeed_file(const std::filesystem::path& path) {
  const Json json = try_json<Json>(read_file(path), JsonComments::kAllowed);
  COHORT_THROW_UNLESS(!json.is_discarded(), "{} is no JSON file", path.string());
  return DeepspeedReader(json, path.string()).file();
}

}  // namespace cohort::policies
