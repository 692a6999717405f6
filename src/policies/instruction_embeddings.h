/// Instructions and their embeddings, once computed, found again by the instruction's text.
///
///   InstructionEmbeddings all = read_instruction_embeddings("instructions.safetensors");
///   const at::Tensor* tokens = all.find("open the drawer");        // (tokens, width), null: it is not there
///
/// A file of our own is safetensors: embedding.0, embedding.1, ... (tokens, width), and in its metadata format
/// "cohort.instructions", model, and instructions, a JSON list of texts in that order. Read, too, is what RDT's
/// reference writes: a folder with expanded_instruction_gpt-4-turbo.json (or instructions.json, a list) beside
/// lang_embed_0.pt, lang_embed_1.pt, ... (scripts/encode_lang_batch.py), and a .pt that holds its instruction and
/// embeddings (scripts/encode_lang.py), or a folder of such.
#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

namespace cohort::policies {

struct InstructionEmbeddings {
  std::string source;  ///< the path, for messages
  std::string model;   ///< that embedded them; "": not known
  std::vector<std::string> texts;
  std::vector<at::Tensor> embeddings;  ///< (tokens, width) each, of one floating type

  /// Exactly this text's; null where it is not there.
  const at::Tensor* find(const std::string& text) const;
  std::int64_t width() const { return embeddings.empty() ? 0 : embeddings.front().size(1); }
  /// As find(). Throws Error naming the text, the nearest one that is there, and the command that makes it.
  const at::Tensor& at(const std::string& text) const;
};

/// Whether a path holds texts with their embeddings, and not an embedding alone. Throws Error where it cannot be read.
bool holds_instructions(const std::filesystem::path& path);

/// Throws Error naming the file and what is wrong: a text without embedding, embeddings of two widths, no texts.
InstructionEmbeddings read_instruction_embeddings(const std::filesystem::path& path);

/// Our own file. It appears whole or not at all.
void write_instruction_embeddings(const std::filesystem::path& path, const InstructionEmbeddings& all);

/// The texts of a list that people have: lines of a text file; a JSON list of texts; or RDT's JSON of a task, an object
/// whose instruction is a text, simplified_instruction and expanded_instruction lists (each may be either), in that
/// order. Throws Error naming the file.
std::vector<std::string> read_instruction_list(const std::filesystem::path& path);

/// The command that embeds one text, for messages, as a shell takes it; TEXT in the place of one of many lines or letters.
std::string embed_command(const std::string& text);

/// The text in quotes for a message. Of a long one its beginning; whoever asks a server may send any.
std::string shown_instruction(const std::string& text);

}  // namespace cohort::policies
