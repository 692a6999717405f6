#include "train/run_test_set.h"

#include <algorithm>
#include <cstring>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "dist/group.h"
#include "tensors/convert.h"
#include "tensors/pinned_allocator.h"
#include "train/loader_source.h"

namespace cohort::train {
namespace {

/// The predictions of this rank's share that are kept: sample index and values.
struct Kept {
  std::vector<std::int64_t> samples;
  std::vector<float> truth, predicted;  // scaled, (n_sample, n_step * n_target)
};

void append(std::vector<float>& to, const at::Tensor& row) {
  const float* values = row.const_data_ptr<float>();
  to.insert(to.end(), values, values + row.numel());
}

std::string to_bytes(const void* data, std::size_t size) {
  return {static_cast<const char*>(data), size};
}

template <class T>
std::vector<T> from_bytes(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::vector<std::vector<T>> gather(const std::vector<T>& values, dist::Group* group) {
  if (!group) return {values};
  std::vector<std::vector<T>> all;
  for (const std::string& bytes : group->all_gather_bytes(to_bytes(values.data(), values.size() * sizeof(T))))
    all.push_back(from_bytes<T>(bytes));
  return all;
}

report::TestMetrics merged(const report::TestMetricsSum& mine, const std::vector<std::string>& targets,
                           dist::Group* group) {
  report::TestMetricsSum total(targets);
  for (const std::vector<double>& state : gather(mine.state(), group)) total.merge(state);
  return total.result();
}

/// Puts what the ranks have kept, a list for each, where the result draws and shows it, in the data's units.
void take_kept(const Job& job, const std::vector<std::int64_t>& wanted,
               const std::vector<std::vector<std::int64_t>>& all_samples,
               const std::vector<std::vector<float>>& all_truth, const std::vector<std::vector<float>>& all_predicted,
               std::size_t width, TestResult& result) {
  result.truth.resize(static_cast<std::size_t>(result.drawn_samples) * width);
  result.predicted.resize(result.truth.size());
  for (std::size_t r = 0; r < all_samples.size(); ++r) {
    for (std::size_t i = 0; i < all_samples[r].size(); ++i) {
      const std::int64_t sample = all_samples[r][i];
      std::vector<float> truth(all_truth[r].begin() + static_cast<std::ptrdiff_t>(i * width),
                               all_truth[r].begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      std::vector<float> predicted(all_predicted[r].begin() + static_cast<std::ptrdiff_t>(i * width),
                                   all_predicted[r].begin() + static_cast<std::ptrdiff_t>((i + 1) * width));
      job.to_units_of({&sample, 1}, truth);
      job.to_units_of({&sample, 1}, predicted);
      if (std::find(wanted.begin(), wanted.end(), sample) != wanted.end())
        result.examples.push_back(job.example(sample, predicted));
      if (sample < result.drawn_samples) {
        std::copy(truth.begin(), truth.end(), result.truth.begin() + sample * static_cast<std::int64_t>(width));
        std::copy(predicted.begin(), predicted.end(),
                  result.predicted.begin() + sample * static_cast<std::int64_t>(width));
      }
    }
  }
}

}  // namespace

TestResult run_test_set(const Job& job, torch::nn::Module& model, c10::Device device, dist::Group* group,
                        const TestSettings& settings) {
  const auto dataset = job.dataset(Part::kTest);
  COHORT_CHECK(dataset, "this run has no test set");
  const std::int64_t world = group ? group->world_size() : 1, rank = group ? group->rank() : 0;
  const std::int64_t samples = dataset->size();
  const std::int64_t full = samples / settings.batch_size * settings.batch_size;
  const auto targets = job.target_names();
  report::TestMetricsSum data_units(targets), scaled(targets), scaled_full(targets);

  LoaderSource source(dataset, {.world_size = world, .rank = rank, .shuffle = false},
                      {.batch_size = settings.batch_size,
                       .workers = static_cast<int>(settings.workers),
                       .memory_budget_bytes = settings.memory_budget_bytes},
                      tensors::host_allocator_for(device.type()));
  source.start_epoch(0, 0);
  const std::vector<std::int64_t> wanted = job.example_samples();
  Kept kept;
  std::int64_t steps = 1, most_kept = 0;
  const torch::NoGradGuard no_gradients;
  const bool was_training = model.is_training();
  model.eval();
  const auto n_target = static_cast<std::int64_t>(targets.size());
  while (std::optional<parallel::Batch> batch = source.next()) {
    const PrecisionGuard precision(settings.precision, device.type());
    Prediction result = job.predict(model, batch->to(device));
    const at::Tensor predicted = result.predicted.to(at::kCPU, at::kFloat).contiguous();
    const at::Tensor truth = result.truth.to(at::kCPU, at::kFloat).contiguous();
    steps = predicted.numel() / predicted.size(0) / n_target;
    most_kept = std::max<std::int64_t>(1, settings.most_drawn / steps);
    // A rank's places in the order are rank, rank + world, ...; those behind the last sample repeat earlier ones.
    const std::int64_t* ids = batch->sample_ids.const_data_ptr<std::int64_t>();
    const auto count = std::count_if(ids, ids + batch->size(), [&](std::int64_t id) { return id < samples; });
    if (count == 0) continue;
    const auto add = [&](report::TestMetricsSum& sum, const at::Tensor& t, const at::Tensor& p) {
      sum.add(tensors::to_view(t), tensors::to_view(p));
    };
    add(scaled, truth.narrow(0, 0, count), predicted.narrow(0, 0, count));
    const auto in_full = std::count_if(ids, ids + count, [&](std::int64_t id) { return id < full; });
    if (in_full > 0) add(scaled_full, truth.narrow(0, 0, in_full), predicted.narrow(0, 0, in_full));
    for (std::int64_t i = 0; i < count; ++i) {
      if (ids[i] >= most_kept && std::find(wanted.begin(), wanted.end(), ids[i]) == wanted.end()) continue;
      kept.samples.push_back(ids[i]);
      append(kept.truth, truth[i]);
      append(kept.predicted, predicted[i]);
    }
    at::Tensor truth_units = truth.narrow(0, 0, count).clone(), predicted_units = predicted.narrow(0, 0, count).clone();
    for (at::Tensor& tensor : {std::ref(truth_units), std::ref(predicted_units)})
      job.to_units_of({ids, ids + count}, {tensor.mutable_data_ptr<float>(), static_cast<std::size_t>(tensor.numel())});
    add(data_units, truth_units, predicted_units);
  }
  model.train(was_training);

  TestResult result;
  result.name = job.test_name();
  result.samples = samples;
  result.targets = targets;
  result.main_target = job.main_target();
  result.time_label = job.time_label();
  result.steps = steps;
  result.scaled = merged(scaled, targets, group);
  result.data_units = merged(data_units, targets, group);
  if (full > 0) result.scaled_full_batches = merged(scaled_full, targets, group);

  const auto all_samples = gather(kept.samples, group);
  const auto all_truth = gather(kept.truth, group), all_predicted = gather(kept.predicted, group);
  if (rank != 0) return result;
  result.drawn_samples = std::min(samples, most_kept);
  take_kept(job, wanted, all_samples, all_truth, all_predicted, static_cast<std::size_t>(steps * n_target), result);
  return result;
}

}  // namespace cohort::train
