#include "policies/rdt/files.h"

#include <algorithm>
#include <set>
#include <utility>

#include <torch/nn/module.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/log.h"
#include "models/vision/siglip.h"
#include "policies/instruction_embeddings.h"
#include "weights/foreign_weights.h"
#include "weights/weight_files.h"
#include "weights/weights.h"

namespace cohort::policies {
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

/// Of the width that the policy takes.
InstructionEmbeddings embedded_texts(const models::RdtSettings& s) {
  InstructionEmbeddings all = read_instruction_embeddings(s.lang_embed);
  COHORT_THROW_UNLESS(all.width() == s.network.lang_token_dim,
                      "{}: the embedded instructions have {} numbers per token{}, but model.rdt.lang_token_dim = {}: "
                      "they are of another text encoder",
                      s.lang_embed, all.width(), all.model.empty() ? "" : " (" + all.model + ")",
                      s.network.lang_token_dim);
  return all;
}

void copy_instructions(models::PolicyNetwork& policy, const models::RdtSettings& s) {
  const at::NoGradGuard no_grad;
  const InstructionEmbeddings all = embedded_texts(s);
  auto buffers = policy.named_buffers();
  at::Tensor table = buffers["lang_embeds"], mask = buffers["lang_mask"];
  table.zero_();
  mask.zero_();
  for (std::size_t i = 0; i < s.instructions.size(); ++i) {
    const at::Tensor& tokens = all.at(s.instructions[i]);
    const auto row = static_cast<std::int64_t>(i);
    COHORT_THROW_UNLESS(tokens.size(0) <= table.size(1), "{}: \"{}\" has {} tokens, but the policy has a place for {}",
                        s.lang_embed, s.instructions[i], tokens.size(0), table.size(1));
    table[row].narrow(0, 0, tokens.size(0)).copy_(tokens);
    mask[row].narrow(0, 0, tokens.size(0)).fill_(1.0);
  }
  if (const at::Tensor* empty = all.find(""); empty != nullptr && s.empty_lang_embed.empty())
    buffers["empty_lang_embed"].copy_(*empty);
}

}  // namespace

at::Tensor read_embedded_instruction(const std::string& path, int width) {
  const weights::NamedTensors tensors = weights::read_weights(path).tensors;
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

bool has_instruction_texts(const models::RdtSettings& s) {
  return !s.lang_embed.empty() && holds_instructions(s.lang_embed);
}

void take_instructions(models::RdtSettings& s, const std::vector<std::string>& told) {
  const int width = s.network.lang_token_dim;
  s.lang_tokens = s.empty_lang_tokens = 0;
  s.instructions.clear();
  if (has_instruction_texts(s)) {
    const InstructionEmbeddings all = embedded_texts(s);
    s.instructions = told;
    if (told.empty()) {
      // The only one that is there.
      for (const std::string& text : all.texts)
        if (!text.empty()) s.instructions.push_back(text);
      COHORT_THROW_UNLESS(
          s.instructions.size() == 1,
          "{} holds {} instructions, and the data do not say which episode is told what: name their text with "
          "data.instruction=FIELD, or the one of all episodes with model.rdt.instruction=TEXT",
          s.lang_embed, s.instructions.size());
    }
    for (const std::string& text : s.instructions)
      s.lang_tokens = std::max(s.lang_tokens, static_cast<int>(all.at(text).size(0)));
    if (const at::Tensor* empty = all.find(""); empty != nullptr && s.empty_lang_embed.empty())
      s.empty_lang_tokens = static_cast<int>(empty->size(0));
  } else if (!s.lang_embed.empty()) {
    s.lang_tokens = static_cast<int>(read_embedded_instruction(s.lang_embed, width).size(0));
  }
  if (!s.empty_lang_embed.empty())
    s.empty_lang_tokens = static_cast<int>(read_embedded_instruction(s.empty_lang_embed, width).size(0));
}

void load_rdt_files(models::PolicyNetwork& policy, const models::RdtSettings& s, const std::string& initial_weights) {
  const int width = s.network.lang_token_dim;
  if (!s.instructions.empty() && !s.lang_embed.empty())
    copy_instructions(policy, s);
  else
    copy_instruction(policy, "lang_embed", s.lang_embed, width);
  copy_instruction(policy, "empty_lang_embed", s.empty_lang_embed, width);
  if (!s.vision_weights.empty()) {
    weights::NamedTensors tensors;
    for (const auto& [key, tensor] : weights::read_weights(s.vision_weights).tensors)
      if (const std::string name = models::siglip_vision_name(weights::without_wrappers(key)); !name.empty())
        tensors.emplace_back(name, tensor);
    COHORT_THROW_UNLESS(!tensors.empty(), "{}: holds no SigLIP: no tensor is called vision_model.*", s.vision_weights);
    weights::load_weights(*policy.named_children()["vision_encoder"], tensors, {}, s.vision_weights);
  }
  if (initial_weights.empty()) return;
  weights::NamedTensors given;
  std::set<std::string> names;
  for (const auto& [key, tensor] : weights::read_weights(initial_weights).tensors) {
    const std::string name = weights::without_wrappers(key);
    if (names.insert(name).second) given.emplace_back(name, tensor);
  }
  std::size_t kept = 0;
  for (const auto& [name, tensor] : weights::module_state(policy)) {
    if (names.count(name) || is_of_rdt(name)) continue;
    given.emplace_back(name, tensor);
    ++kept;
  }
  weights::load_weights(policy, given, {}, initial_weights);
  if (kept > 0)
    log::info("{}: {} tensors of vision encoder and instruction are not in it and stay as they were", initial_weights,
              kept);
}

}  // namespace cohort::policies
