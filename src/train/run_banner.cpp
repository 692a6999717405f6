#include "train/run_banner.h"

#include <torch/nn/module.h>
#include <torch/types.h>

#include "run/banner.h"
#include "train/schedule.h"
#include "weights/named_tensors.h"

namespace cohort::train {
namespace {

/// What a device keeps of the parameters whatever the batch: weights, gradients, moments and averages. Of optimizers
/// whose state has another form nothing is said.
std::string training_memory(const torch::nn::Module& model, const TrainSettings& train) {
  const std::string& kind = train.optimizer.kind;
  const bool adam = kind == "adam" || kind == "adamw";
  if ((!adam && kind != "sgd") || train.weights != "fp32") return "";
  double bytes = 0;
  for (const auto& [name, tensor] : weights::trainable_parameters(model)) bytes += static_cast<double>(tensor.nbytes());
  const double moments = adam ? (train.optimizer.amsgrad ? 3 : 2) : train.optimizer.momentum > 0 ? 1 : 0;
  return format(", {} with gradients and optimizer; activations come on top",
                format_bytes(bytes * (2 + moments + (train.ema.enabled ? 1 : 0))));
}

}  // namespace

std::vector<run::BannerRow> banner_rows(const Trainable& trainable, const RunSettings& settings,
                                        const parallel::Plan& plan, const torch::nn::Module& model) {
  constexpr std::size_t kAll = 1000, kMostOfStatistics = 2;
  std::vector<run::BannerRow> rows;
  const auto add_lines = [&rows](const char* label, const std::vector<std::string>& lines, std::size_t on_screen) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      rows.push_back({.label = i == 0 ? label : "", .text = lines[i], .on_screen = i < on_screen});
  };
  rows.push_back({"job", trainable.name() + ": " + trainable.summary()});
  rows.push_back({"data", trainable.data_summary()});
  add_lines("scaled by", trainable.statistics_summary(), kMostOfStatistics);
  rows.push_back({"model", run::describe_model(model) + training_memory(model, settings.train)});
  add_lines("devices", plan.lines, kAll);
  const TrainSettings& train = settings.train;
  const double rate =
      scaled_learning_rate(train.lr, train.learning_rate_rule, plan.effective_batch, train.lr_base_batch);
  rows.push_back({"learning", format("{} at {:g} ({}), schedule {}, {} in {}", train.optimizer.kind, rate,
                                     rate == train.lr ? std::string("as set; never scaled unless asked for")
                                                      : format("{} rule from {:g} at batch {}",
                                                               train.learning_rate_rule, train.lr, train.lr_base_batch),
                                     train.schedule.kind,
                                     train.steps > 0 ? format("{} step{}", train.steps, train.steps == 1 ? "" : "s")
                                                     : format("{} epoch{}", train.epochs, train.epochs == 1 ? "" : "s"),
                                     train.precision)});
  rows.push_back({"loader",
                  format("{} worker{} per process, {} batches ahead each, at most {}", settings.loader.workers,
                         settings.loader.workers == 1 ? "" : "s", settings.loader.prefetch_factor,
                         format_bytes(static_cast<double>(settings.loader.memory_budget_bytes))),
                  false});
  rows.push_back(
      {"seed", format("{}{}", train.seed, train.deterministic ? ", deterministic kernels only" : ""), false});
  return rows;
}

}  // namespace cohort::train
