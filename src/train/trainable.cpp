#include "train/trainable.h"

#include <nlohmann/json.hpp>

#include <torch/nn/module.h>
#include <torch/types.h>

#include "core/error.h"
#include "core/json_text.h"
#include "models/random_context.h"

namespace cohort::train {

TrainJob train_job(const Trainable& trainable, parallel::Strategy& strategy, BatchSource& batches) {
  TrainJob job{.strategy = &strategy,
               .loss = [&trainable](torch::nn::Module& replica,
                                    const parallel::Batch& batch) { return trainable.loss(replica, batch); },
               .batches = &batches};
  if (const config::Json statistics = trainable.statistics(); !statistics.is_null())
    job.dataset_statistics = json_text(statistics, 2);
  return job;
}

Validator validator_of(const Trainable& trainable, BatchSource& source, Precision precision, c10::Device device) {
  return [&trainable, &source, precision, device](torch::nn::Module& model, std::int64_t) {
    std::vector<Metric> metrics(1);
    metrics[0].name = "validation/loss";
    at::Tensor sum =
        at::zeros({}, at::TensorOptions().dtype(device.is_mps() ? at::kFloat : at::kDouble).device(device));
    source.start_epoch(0, 0);
    while (auto batch = source.next()) {
      const parallel::Batch own = without_padding(*batch, source.samples_per_epoch());
      // A rank that has nothing but padding measures it for the names of the figures, and counts none of it.
      const bool counts = own.size() > 0;
      const parallel::Batch placed = (counts ? own : *batch).to(device);
      const models::RandomContextGuard context({.seed = 0, .step = 0, .sample_ids = placed.sample_ids});
      const PrecisionGuard autocast(precision, device.type());
      const std::vector<Metric> figures = trainable.validation_figures(model, placed);
      if (metrics.size() == 1)
        for (const Metric& figure : figures) metrics.push_back(Metric{.name = figure.name, .sum = 0.0, .weight = 0.0});
      COHORT_CHECK(metrics.size() == figures.size() + 1, "a validation measures the same figures of every batch");
      if (!counts) continue;
      const auto samples = static_cast<double>(placed.size());
      sum.add_(trainable.loss(model, placed).detach().to(sum.scalar_type()), samples);
      metrics[0].weight += samples;
      for (std::size_t i = 0; i < figures.size(); ++i) {
        metrics[i + 1].sum += figures[i].sum;
        metrics[i + 1].weight += figures[i].weight;
      }
    }
    metrics[0].sum = sum.item<double>();
    return metrics;
  };
}

}  // namespace cohort::train
