/// What an RDT policy begins with: the reference's weights, a SigLIP's, an instruction that was embedded before.
#pragma once
#include <string>
#include <vector>

#include "policies/rdt/rdt_policy.h"
#include "weights/named_tensors.h"

namespace cohort::policies {

/// (tokens, width) float32 of an embedded instruction: a file with one tensor, or with one called lang_embed, of that
/// shape or with a first dimension of 1. Throws Error naming the file.
at::Tensor read_embedded_instruction(const std::string& path, int width);

/// Whether lang_embed holds instructions with their texts, so that episodes may differ in what they are told.
bool has_instruction_texts(const models::RdtSettings& settings);

/// Fills instructions, lang_tokens and empty_lang_tokens from the files that the settings name. `told`: the texts of the
/// data; empty: they do not say it, and lang_embed must hold one alone. Throws Error naming a text whose embedding is
/// not there and the command that makes it, and embeddings of another width.
void take_instructions(models::RdtSettings& settings, const std::vector<std::string>& told);

/// Copies what the settings and `initial_weights` name into the policy. The file of weights must hold all of the
/// reference's (model.*, lang_adaptor.*, img_adaptor.*, state_adaptor.*), and may hold the policy's other tensors.
/// Throws Error naming the file and what does not fit.
void load_rdt_files(models::PolicyNetwork& policy, const models::RdtSettings& settings,
                    const std::string& initial_weights);

}  // namespace cohort::policies
