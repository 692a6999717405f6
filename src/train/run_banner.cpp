#include "train/run_banner.h"

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "train/schedule.h"
#include "weights/named_tensors.h"

namespace cohort::train {
namespace {

/// 11330055 -> "11,330,055".
std::string with_commas(std::int64_t number) {
  std::string digits = std::to_string(number);
  for (std::ptrdiff_t place = static_cast<std::ptrdiff_t>(digits.size()) - 3; place > 0; place -= 3)
    digits.insert(static_cast<std::size_t>(place), ",");
  return digits;
}

/// "train.lr=0.001", "data.columns.inputs=[\"a\",\"b\"]", ... of a section, in its order.
void collect_settings(const config::Json& json, const std::string& path, std::vector<std::string>& out) {
  if (!json.is_object()) {
    out.push_back(path + "=" + (json.is_string() ? json.get<std::string>() : json.dump()));
    return;
  }
  for (const auto& [key, value] : json.items()) collect_settings(value, path + "." + key, out);
}

}  // namespace

std::vector<std::string> settings_lines(const config::Json& configuration) {
  constexpr std::size_t kWidth = 110;
  std::vector<std::string> lines;
  bool in_section = true;  // settings of the top level share lines
  for (const auto& [key, value] : configuration.items()) {
    std::vector<std::string> words;
    collect_settings(value, key, words);
    bool new_line = lines.empty() || value.is_object() || in_section;
    in_section = value.is_object();
    for (const std::string& word : words) {
      new_line = new_line || lines.back().size() + 1 + word.size() > kWidth;
      if (new_line) {
        lines.push_back(word);
      } else {
        lines.back() += " " + word;
      }
      new_line = false;
    }
  }
  return lines;
}

std::string describe_model(const torch::nn::Module& model) {
  std::int64_t count = 0;
  double bytes = 0;
  for (const auto& [name, tensor] : weights::trainable_parameters(model)) {
    count += tensor.numel();
    bytes += static_cast<double>(tensor.nbytes());
  }
  return format("{} parameters ({})", with_commas(count), format_bytes(bytes));
}

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

std::vector<std::pair<std::string, std::string>> banner_rows(const Trainable& trainable, const RunSettings& settings,
                                                             const parallel::Plan& plan,
                                                             const torch::nn::Module& model) {
  std::vector<std::pair<std::string, std::string>> rows;
  rows.emplace_back("job", trainable.name() + ": " + trainable.summary());
  const auto add_lines = [&rows](const char* label, const std::vector<std::string>& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) rows.emplace_back(i == 0 ? label : "", lines[i]);
  };
  rows.emplace_back("data", trainable.data_summary());
  add_lines("scaled by", trainable.statistics_summary());
  rows.emplace_back("model", describe_model(model) + training_memory(model, settings.train));
  add_lines("devices", plan.lines);
  const TrainSettings& train = settings.train;
  const double rate =
      scaled_learning_rate(train.lr, train.learning_rate_rule, plan.effective_batch, train.lr_base_batch);
  rows.emplace_back(
      "learning", format("{} at {:g} ({}), schedule {}, {} in {}", train.optimizer.kind, rate,
                         rate == train.lr ? std::string("as set; never scaled unless asked for")
                                          : format("{} rule from {:g} at batch {}", train.learning_rate_rule, train.lr,
                                                   train.lr_base_batch),
                         train.schedule.kind,
                         train.steps > 0 ? format("{} step{}", train.steps, train.steps == 1 ? "" : "s")
                                         : format("{} epoch{}", train.epochs, train.epochs == 1 ? "" : "s"),
                         train.precision));
  rows.emplace_back("loader",
                    format("{} worker{} per process, {} batches ahead each, at most {}", settings.loader.workers,
                           settings.loader.workers == 1 ? "" : "s", settings.loader.prefetch_factor,
                           format_bytes(static_cast<double>(settings.loader.memory_budget_bytes))));
  rows.emplace_back("seed", format("{}{}", train.seed, train.deterministic ? ", deterministic kernels only" : ""));
  return rows;
}

}  // namespace cohort::train
