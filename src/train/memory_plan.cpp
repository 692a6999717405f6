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

/// A linear layer: weight and bias.
void add_linear(std::vector<std::int64_t>& to, std::int64_t in, std::int64_t out) {
  to.push_back(in * out);
  to.push_back(out);
}

int adaptor_layers(const std::string& kind) {
  return kind[3] - '0';  // "mlp2x_gelu", as check() has found
}

void add_adaptor(std::vector<std::int64_t>& to, const std::string& kind, std::int64_t in, std::int64_t width) {
  for (int i = 0; i < adaptor_layers(kind); ++i) add_linear(to, i == 0 ? in : width, width);
}

std::vector<std::int64_t> vision_shapes(const models::SiglipVisionSettings& v) {
  const std::int64_t width = v.hidden_size, inner = v.intermediate_size;
  std::vector<std::int64_t> all{3 * width * v.patch_size * v.patch_size, width, v.patches() * width};
  for (int layer = 0; layer < v.num_hidden_layers; ++layer) {
    for (int i = 0; i < 4; ++i) all.push_back(width);  // two norms
    for (int i = 0; i < 4; ++i) add_linear(all, width, width);
    add_linear(all, width, inner);
    add_linear(all, inner, width);
  }
  all.push_back(width);
  all.push_back(width);
  return all;
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

/// Bytes of a sample's activations; `b`: bytes of an element that matrix products take.
double activations_of_sample(const models::RdtSettings& m, const TrainSettings& train, double b) {
  const models::RdtNetworkSettings& n = m.network;
  const double width = n.hidden_size, rows = m.noise_samples * (n.horizon + 3);
  const double patches = static_cast<double>(m.vision.patches()), places = n.img_history_size * n.num_cameras;
  const double images = patches * places;
  const double language = m.lang_tokens > 0
                              ? std::max(m.lang_tokens, m.empty_lang_tokens)
                              : (m.lang_embed.empty() && m.language_observation.empty() ? 1.0 : n.max_lang_cond_len);
  // What flows from block to block has the type of the weights: tables of positions are among them.
  const double stream = train.weights == "bf16" ? 2 : 4;
  const double cast = b < stream ? b : 0;  // a copy of what a matrix product takes
  // Adaptors: input, hidden values before and after GELU, and their output with positions.
  const auto conditions = [&](double tokens, double in, int layers) {
    return tokens * (in * b + width * (2 * b * (layers - 1) + stream + cast));
  };
  double kept = conditions(images, n.img_token_dim, adaptor_layers(n.img_adaptor)) +
                conditions(language, n.lang_token_dim, adaptor_layers(n.lang_adaptor)) +
                conditions(rows, 2.0 * n.state_token_dim, adaptor_layers(n.state_adaptor));
  // A block keeps of its condition's keys and values: the product's output, keys before and after their weight, and
  // under autocast the product's input and the values in 16 bits; and what its own few rows leave.
  const double pair = cast > 0 ? 12 : 4 * b, row = stream < 4 ? 34 : b < 4 ? 52 : 80;
  const auto block = [&](double tokens) { return width * (tokens * pair + rows * row); };
  // While a block runs backwards: gradients of its keys and values.
  const double largest = std::max(images, language);
  const double beside = width * (largest * 3 * stream + rows * 40);
  if (train.gradient_checkpointing) {
    kept += n.depth * rows * width * stream + block(largest);
  } else {
    kept += (n.depth / 2) * block(images) + (n.depth - n.depth / 2) * block(language);
  }
  // The conditions' own gradients.
  kept += (images + language + largest) * width * stream / 2;
  const double vision_width = m.vision.hidden_size, inner = m.vision.intermediate_size;
  const auto cameras = static_cast<double>(
      std::count_if(m.observations.begin(), m.observations.end(), [](const auto& o) { return o.is_camera(); }));
  const double seen = (cameras > 0 ? cameras : n.num_cameras) * n.img_history_size * patches;
  const double layer = seen * (vision_width * (9 * b + 12) + inner * (2 * b));
  if (m.train_vision) return kept + beside + layer * (train.gradient_checkpointing ? 1 : m.vision.num_hidden_layers);
  return kept + std::max(beside, seen * (vision_width * 16 + inner * (b + 4)));
}

}  // namespace

RdtShapes rdt_shapes(const models::RdtSettings& m) {
  const models::RdtNetworkSettings& n = m.network;
  const std::int64_t width = n.hidden_size, head = width / n.num_heads;
  RdtShapes shapes;
  std::vector<std::int64_t>& all = shapes.trained;
  all.push_back((n.horizon + 3) * width);
  all.push_back(n.max_lang_cond_len * width);
  all.push_back(std::int64_t{n.img_history_size} * n.num_cameras * m.vision.patches() * width);
  for (int i = 0; i < 2; ++i) {  // of timestep and frequency
    add_linear(all, 256, width);
    add_linear(all, width, width);
  }
  for (int i = 0; i < n.depth; ++i) {
    for (int norm = 0; norm < 3; ++norm) all.push_back(width);
    for (int norm = 0; norm < 4; ++norm) all.push_back(head);
    add_linear(all, width, 3 * width);
    add_linear(all, width, width);
    add_linear(all, width, width);
    add_linear(all, width, 2 * width);
    add_linear(all, width, width);
    add_linear(all, width, width);
    add_linear(all, width, width);
  }
  all.push_back(width);
  add_linear(all, width, width);
  add_linear(all, width, n.state_token_dim);
  add_adaptor(all, n.lang_adaptor, n.lang_token_dim, width);
  add_adaptor(all, n.img_adaptor, n.img_token_dim, width);
  add_adaptor(all, n.state_adaptor, 2 * n.state_token_dim, width);
  std::vector<std::int64_t> vision = vision_shapes(m.vision);
  if (m.train_vision)
    all.insert(all.end(), vision.begin(), vision.end());
  else
    shapes.frozen = std::move(vision);
  const bool has_file = m.lang_tokens > 0 || !m.lang_embed.empty();
  if (!has_file && m.language_observation.empty()) all.push_back(n.lang_token_dim);
  shapes.buffers = std::int64_t{m.lang_tokens + m.empty_lang_tokens} * n.lang_token_dim;
  return shapes;
}

MemoryPlan plan_memory(const models::RdtSettings& model, const PlanRequest& request, double limit, double program) {
  const TrainSettings& train = request.train;
  const RdtShapes shapes = rdt_shapes(model);
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
  plan.activations_per_sample = activations_of_sample(model, train, product);
  // Once activations are gone, masters take float32 gradients, some at a time.
  const double at_update = train.weights == "bf16" ? std::min(kGradientsAtATime, 4 * trained) : 0;
  parts.activations =
      std::max(plan.activations_fixed + plan.activations_per_sample * static_cast<double>(train.batch_size), at_update);
  const double rest = limit - (parts.total() - parts.activations) - plan.activations_fixed;
  plan.largest_batch =
      rest > 0 ? std::min(kLargestPlannedBatch, static_cast<std::int64_t>(rest / plan.activations_per_sample)) : 0;
  return plan;
}

std::string shapes_text(const models::RdtSettings& model, const TrainSettings& train, int zero, double limit) {
  const RdtShapes shapes = rdt_shapes(model);
  std::string text = format(
      "rdt, {:.0f} parameters trained and {:.0f} frozen; batch {} a device, {}, weights in {}, {}, {} gradient "
      "checkpointing, parallel.zero={}\n\nmemory of one device, from shapes\n  {:<22}",
      sum_of(shapes.trained), sum_of(shapes.frozen), train.batch_size, train.precision, train.weights,
      train.optimizer.kind, train.gradient_checkpointing ? "with" : "without", zero, "devices");
  constexpr int kCounts[] = {1, 2, 4, 8};
  std::vector<MemoryPlan> plans;
  for (const int devices : kCounts) {
    text += format(" {:>11}", devices);
    plans.push_back(plan_memory(model, {.train = train, .zero = zero, .devices = devices}, limit, kContext));
  }
  const auto row = [&](const char* name, const auto& of) {
    text += format("\n  {:<22}", name);
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
