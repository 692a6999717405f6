#include "weights/trainer_state.h"

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/json_text.h"

namespace cohort::weights {
namespace {

constexpr const char* kFormat = "cohort-checkpoint";
constexpr int kVersion = 1;

}  // namespace

config::Json to_json(const TrainerState& s) {
  config::Json sums = config::Json::array();
  for (const auto& rank : s.loss_sums) {
    sums.push_back({rank.interval_sum, rank.interval_count, rank.epoch_sum, rank.epoch_count});
  }
  config::Json scaler = nullptr, configuration;
  if (s.scaler) {
    scaler = {{"scale", s.scaler->scale},
              {"growth_factor", s.scaler->growth_factor},
              {"backoff_factor", s.scaler->backoff_factor},
              {"growth_interval", s.scaler->growth_interval},
              {"_growth_tracker", s.scaler->growth_tracker}};
  }
  try {
    configuration = parse_json<config::Json>(s.configuration);
  } catch (const config::Json::exception& e) {
    throw Error(format("the configuration to be saved is no JSON: {}", e.what()));
  }
  config::Json best = nullptr;
  if (s.early_stopping.best) best = *s.early_stopping.best;
  return {{"format", kFormat},
          {"version", kVersion},
          {"step", s.step},
          {"epoch", s.epoch},
          {"samples_in_epoch", s.samples_in_epoch},
          {"samples", s.samples},
          {"skipped_steps", s.skipped_steps},
          {"ema_updates", s.ema_updates},
          {"early_stopping",
           {{"best", best},
            {"best_step", s.early_stopping.best_step},
            {"validations_since_best", s.early_stopping.validations_since_best}}},
          {"loss_sums", sums},
          {"world_size", s.world_size},
          {"batch_size", s.batch_size},
          {"gradient_accumulation_steps", s.gradient_accumulation_steps},
          {"seed", s.seed},
          {"optimizer", s.optimizer},
          {"scaler", scaler},
          {"configuration", configuration}};
}

TrainerState trainer_state_from_json(const config::Json& json, const std::string& source) {
  COHORT_THROW_UNLESS(
      json.is_object() && json.contains("format") && json["format"] == kFormat,
      "{} was not written by Cohort: this is a checkpoint of another program, which cannot be resumed (its "
      "model.safetensors can be loaded as weights)",
      source);
  try {
    const int version = json.at("version").get<int>();
    COHORT_THROW_UNLESS(version == kVersion, "{} has version {} of the format; this program reads version {}", source,
                        version, kVersion);
    TrainerState s;
    s.step = json.at("step").get<std::int64_t>();
    s.epoch = json.at("epoch").get<std::int64_t>();
    s.samples_in_epoch = json.at("samples_in_epoch").get<std::int64_t>();
    s.samples = json.at("samples").get<std::int64_t>();
    s.skipped_steps = json.at("skipped_steps").get<std::int64_t>();
    s.ema_updates = json.at("ema_updates").get<std::int64_t>();
    const auto& early = json.at("early_stopping");
    if (!early.at("best").is_null()) s.early_stopping.best = early.at("best").get<double>();
    s.early_stopping.best_step = early.at("best_step").get<std::int64_t>();
    s.early_stopping.validations_since_best = early.at("validations_since_best").get<std::int64_t>();
    for (const auto& rank : json.at("loss_sums")) {
      s.loss_sums.push_back(
          {rank.at(0).get<double>(), rank.at(1).get<double>(), rank.at(2).get<double>(), rank.at(3).get<double>()});
    }
    s.world_size = json.at("world_size").get<int>();
    s.batch_size = json.at("batch_size").get<std::int64_t>();
    s.gradient_accumulation_steps = json.at("gradient_accumulation_steps").get<std::int64_t>();
    s.seed = json.at("seed").get<std::uint64_t>();
    s.optimizer = json.at("optimizer").get<std::string>();
    if (const auto& scaler = json.at("scaler"); !scaler.is_null()) {
      s.scaler = GradScalerState{.scale = scaler.at("scale").get<double>(),
                                 .growth_factor = scaler.at("growth_factor").get<double>(),
                                 .backoff_factor = scaler.at("backoff_factor").get<double>(),
                                 .growth_interval = scaler.at("growth_interval").get<std::int64_t>(),
                                 .growth_tracker = scaler.at("_growth_tracker").get<std::int64_t>()};
    }
    s.configuration = json_text(json.at("configuration"));
    COHORT_THROW_UNLESS(s.step >= 0 && s.epoch >= 0 && s.samples_in_epoch >= 0 && s.samples >= s.samples_in_epoch,
                        "{}: step, epoch or samples are impossible", source);
    return s;
  } catch (const config::Json::exception& e) {
    throw Error(format("{} is damaged: {}", source, e.what()));
  }
}

}  // namespace cohort::weights
