#include "policy/rdt_files.h"

#include <algorithm>
#include <set>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "models/diffusion_policy/weight_names.h"
#include "models/vision/siglip.h"
#include "policy/weight_files.h"
#include "policy/weights.h"

namespace cohort::policy {
namespace {

bool is_of_rdt(const std::string& name) {
  for (const char* part : {"model.", "lang_adaptor.", "img_adaptor.", "state_adaptor."})
    if (name.starts_with(part)) return true;
  return false;
}

void copy_instruction(models::PolicyNetwork& policy, const std::string& buffer, const std::string& file, int width) {
  if (file.empty()) return;
  const at::NoGradGuard no_grad;
  at::Tensor own = policy.named_buffers()[buffer];
  const at::Tensor read = read_embedded_instruction(file, width);
  COHORT_THROW_UNLESS(own.sizes() == read.sizes(), "{}: {} tokens, but the policy has a place for {}", file,
                      read.size(0), own.size(0));
  own.copy_(read);
}

}  // namespace

at::Tensor read_embedded_instruction(const std::string& path, int width) {
  const NamedTensors tensors = read_weights(path).tensors;
  const auto named =
      std::find_if(tensors.begin(), tensors.end(), [](const auto& item) { return item.first == "lang_embed"; });
  COHORT_THROW_UNLESS(named != tensors.end() || tensors.size() == 1,
                      "{}: holds {} tensors, and none of them is called lang_embed", path, tensors.size());
  at::Tensor embedding = named != tensors.end() ? named->second : tensors.front().second;
  if (embedding.dim() == 3 && embedding.size(0) == 1) embedding = embedding[0];
  COHORT_THROW_UNLESS(
      embedding.dim() == 2 && embedding.size(0) >= 1 && embedding.size(1) == width,
      "{}: the embedded instruction has shape {}, but must be (tokens, {}): model.rdt.lang_token_dim is "
      "the text encoder's width",
      path, c10::str(embedding.sizes()), width);
  COHORT_THROW_UNLESS(at::isFloatingType(embedding.scalar_type()), "{}: the embedded instruction holds no floats",
                      path);
  return embedding.to(at::kFloat);
}

void take_instruction_lengths(models::RdtSettings& s) {
  const int width = s.network.lang_token_dim;
  if (!s.lang_embed.empty()) s.lang_tokens = static_cast<int>(read_embedded_instruction(s.lang_embed, width).size(0));
  if (!s.empty_lang_embed.empty())
    s.empty_lang_tokens = static_cast<int>(read_embedded_instruction(s.empty_lang_embed, width).size(0));
}

void load_rdt_files(models::PolicyNetwork& policy, const models::RdtSettings& s, const std::string& initial_weights) {
  const int width = s.network.lang_token_dim;
  copy_instruction(policy, "lang_embed", s.lang_embed, width);
  copy_instruction(policy, "empty_lang_embed", s.empty_lang_embed, width);
  if (!s.vision_weights.empty()) {
    NamedTensors tensors;
    for (const auto& [key, tensor] : read_weights(s.vision_weights).tensors)
      if (const std::string name = models::siglip_vision_name(models::without_wrappers(key)); !name.empty())
        tensors.emplace_back(name, tensor);
    COHORT_THROW_UNLESS(!tensors.empty(), "{}: holds no SigLIP: no tensor is called vision_model.*", s.vision_weights);
    load_weights(*policy.named_children()["vision_encoder"], tensors, {}, s.vision_weights);
  }
  if (initial_weights.empty()) return;
  NamedTensors given;
  std::set<std::string> names;
  for (const auto& [key, tensor] : read_weights(initial_weights).tensors) {
    const std::string name = models::without_wrappers(key);
    if (names.insert(name).second) given.emplace_back(name, tensor);
  }
  std::size_t kept = 0;
  for (const auto& [name, tensor] : module_state(policy)) {
    if (names.count(name) || is_of_rdt(name)) continue;
    given.emplace_back(name, tensor);
    ++kept;
  }
  load_weights(policy, given, {}, initial_weights);
  if (kept > 0)
    log::info("{}: {} tensors of vision encoder and instruction are not in it and stay as they were", initial_weights,
              kept);
}

}  // namespace cohort::policy
