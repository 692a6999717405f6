#include "policies/rdt/memory.h"

#include <algorithm>
#include <string>

namespace cohort::policies {
namespace {

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

/// Bytes of a sample's activations.
double activations_of_sample(const models::RdtSettings& m, const ActivationTypes& types) {
  const models::RdtNetworkSettings& n = m.network;
  const double b = types.product_bytes;
  const double width = n.hidden_size, rows = m.noise_samples * (n.horizon + 3);
  const double patches = static_cast<double>(m.vision.patches()), places = n.img_history_size * n.num_cameras;
  const double images = patches * places;
  const double language = m.lang_tokens > 0
                              ? std::max(m.lang_tokens, m.empty_lang_tokens)
                              : (m.lang_embed.empty() && m.language_observation.empty() ? 1.0 : n.max_lang_cond_len);
  // What flows from block to block has the type of the weights: tables of positions are among them.
  const double stream = types.bf16_weights ? 2 : 4;
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
  if (types.gradient_checkpointing) {
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
  if (m.train_vision) return kept + beside + layer * (types.gradient_checkpointing ? 1 : m.vision.num_hidden_layers);
  return kept + std::max(beside, seen * (vision_width * 16 + inner * (b + 4)));
}

}  // namespace

MemoryShapes rdt_shapes(const models::RdtSettings& m) {
  const models::RdtNetworkSettings& n = m.network;
  const std::int64_t width = n.hidden_size, head = width / n.num_heads;
  MemoryShapes shapes;
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
  shapes.activations_of_sample = [m](const ActivationTypes& types) { return activations_of_sample(m, types); };
  return shapes;
}

}  // namespace cohort::policies
