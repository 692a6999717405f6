#include "train/memory_plan.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/error.h"
#include "core/format.h"
#include "parallel/parameter_shards.h"
#include "train/quantized_state.h"

namespace cohort::train {
namespace {

constexpr double kContext = 500.0 * (1 << 20);          // bytes of a process on a GPU beside its tensors
constexpr double kBucket = 25.0 * (1 << 20);            // parallel.ddp.bucket_cap_mb
constexpr double kGradientsAtATime = 64.0 * (1 << 20);  // as in optimizer.cpp
constexpr std::int64_t kLargestPlannedBatch = 1 << 16;

double sum_of(const std::vector<std::int64_t>& elements) {
  return static_cast<double>(std::accumulate(elements.begin(), elements.end(), std::int64_t{0}));
}

/// Bytes of AdamW's moments.
double moments_of(const std::vector<std::int64_t>& elements, const std::string& kind) {
  double bytes = 0;
  for (const std::int64_t n : elements) {
    const auto count = static_cast<double>(n);
    if (kind == "adamw8bit" && n >= kSmallestQuantizedState)
      bytes += 2 * (count + 4 * static_cast<double>((n + kStateBlock - 1) / kStateBlock));
    else
      bytes += kind == "sgd" ? 4 * count : 8 * count;
  }
  return bytes;
}

/// What a rank has of `elements` that are given out.
std::vector<std::int64_t> share_of_rank(const std::vector<std::int64_t>& elements, int ranks, int rank) {
  const std::vector<int> owners = parallel::owners_of(elements, ranks);
  std::vector<std::int64_t> own;
  for (std::size_t i = 0; i < elements.size(); ++i)
    if (owners[i] == rank) own.push_back(elements[i]);
  return own;
}

}  // namespace

MemoryPlan plan_memory(const policies::MemoryShapes& shapes, const PlanRequest& request, double limit, double program) {
  const TrainSettings& train = request.train;
  const double trained = sum_of(shapes.trained), weight = train.weights == "bf16" ? 2 : 4;
  const double product = train.precision == "fp32" ? 4 : 2;
  const bool divided = request.zero > 0 && request.devices > 1;
  MemoryPlan plan;
  MemoryParts& parts = plan.parts;
  parts.weights = weight * (trained + sum_of(shapes.frozen)) + 4 * static_cast<double>(shapes.buffers);
  parts.program = program;
  for (int rank = 0; rank < (divided ? request.devices : 1); ++rank) {
    const std::vector<std::int64_t> own =
        divided ? share_of_rank(shapes.trained, request.devices, rank) : shapes.trained;
    const double elements = sum_of(own);
    const double optimizer = moments_of(own, train.optimizer.kind) + (train.weights == "bf16" ? 4 * elements : 0);
    parts.optimizer = std::max(parts.optimizer, optimizer);
    if (train.ema.enabled) parts.ema = std::max(parts.ema, 4 * elements);
    const double gradients = divided && request.zero == 2 ? 4 * elements : weight * trained;
    parts.gradients = std::max(parts.gradients, gradients);
  }
  // Copies of float32 weights that autocast makes, once a step; buckets under way, and the gradients of a block that
  // wait for theirs.
  plan.activations_fixed = train.weights == "fp32" && product < 4 ? product * trained : 0;
  if (divided && request.zero == 2) plan.activations_fixed += 3 * kBucket * request.devices;
  plan.activations_per_sample = shapes.activations_of_sample({.bf16_weights = train.weights == "bf16",
                                                              .product_bytes = product,
                                                              .gradient_checkpointing = train.gradient_checkpointing});
  // Once activations are gone, masters take float32 gradients, some at a time.
  const double at_update = train.weights == "bf16" ? std::min(kGradientsAtATime, 4 * trained) : 0;
  parts.activations =
      std::max(plan.activations_fixed + plan.activations_per_sample * static_cast<double>(train.batch_size), at_update);
  const double rest = limit - (parts.total() - parts.activations) - plan.activations_fixed;
  plan.largest_batch =
      rest > 0 ? std::min(kLargestPlannedBatch, static_cast<std::int64_t>(rest / plan.activations_per_sample)) : 0;
  return plan;
}

std::string shapes_text(const std::string& name, const policies::MemoryShapes& shapes, const TrainSettings& train,
                        int zero, double limit) {
  std::string text = format(
      "{}, {:.0f} parameters trained and {:.0f} frozen; batch {} a device, {}, weights in {}, {}, {} gradient "
      "checkpointing, parallel.zero={}\n\nmemory of one device, from shapes\n  {:<22}",
      name, sum_of(shapes.trained), sum_of(shapes.frozen), train.batch_size, train.precision, train.weights,
      train.optimizer.kind, train.gradient_checkpointing ? "with" : "without", zero, "devices");
  constexpr int kCounts[] = {1, 2, 4, 8};
  std::vector<MemoryPlan> plans;
  for (const int devices : kCounts) {
    text += format(" {:>11}", devices);
    plans.push_back(plan_memory(shapes, {.train = train, .zero = zero, .devices = devices}, limit, kContext));
  }
  const auto row = [&](const char* part, const auto& of) {
    text += format("\n  {:<22}", part);
    for (const MemoryPlan& plan : plans) text += format(" {:>11}", of(plan));
  };
  row("weights", [](const MemoryPlan& p) { return format_bytes(p.parts.weights); });
  row("gradients", [](const MemoryPlan& p) { return format_bytes(p.parts.gradients); });
  row("optimizer", [](const MemoryPlan& p) { return format_bytes(p.parts.optimizer); });
  row("ema", [](const MemoryPlan& p) { return format_bytes(p.parts.ema); });
  row("activations", [](const MemoryPlan& p) { return format_bytes(p.parts.activations); });
  row("  of which any batch", [](const MemoryPlan& p) { return format_bytes(p.activations_fixed); });
  row("  for every sample", [](const MemoryPlan& p) { return format_bytes(p.activations_per_sample); });
  row("program", [](const MemoryPlan& p) { return format_bytes(p.parts.program); });
  row("in all", [](const MemoryPlan& p) { return format_bytes(p.parts.total()); });
  text += format("\n  {:<22}", "largest batch in " + format_bytes(limit));
  for (const MemoryPlan& plan : plans)
    text += format(" {:>11}", plan.largest_batch > 0 ? format("{}", plan.largest_batch) : std::string("none fits"));
  return text +
         "\n\ncounted: weights, gradients, optimizer, average. estimated: activations, from what each layer saves; "
         "what "
         "the allocator\nkeeps in reserve comes on top. Without --shapes a few real steps are made.\n";
}

}  // namespace cohort::train
