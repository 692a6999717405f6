#include "policies/instruction_embeddings.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include <torch/types.h>

#include "core/command_line.h"
#include "core/config.h"
#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/near_file.h"
#include "core/utf8.h"
#include "weights/safetensors.h"
#include "weights/torch_zip.h"
#include "weights/weight_files.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kLongestShown = 200;  // bytes of an instruction in a message
constexpr const char* kInstructionFormat = "cohort.instructions";
constexpr const char* kReferenceList = "expanded_instruction_gpt-4-turbo.json";
constexpr const char* kOwnList = "instructions.json";

void add_embedding(InstructionEmbeddings& all, const std::string& text, at::Tensor embedding, const std::string& file) {
  if (embedding.dim() == 3 && embedding.size(0) == 1) embedding = embedding[0];
  COHORT_THROW_UNLESS(embedding.dim() == 2 && embedding.size(0) >= 1 && at::isFloatingType(embedding.scalar_type()),
                      "{}: \"{}\": the embedding is no (tokens, width) of floats, but {}", file, text,
                      c10::str(embedding.sizes()));
  COHORT_THROW_UNLESS(all.embeddings.empty() || embedding.size(1) == all.width(),
                      "{}: \"{}\": the embedding has {} numbers per token, those before it {}: they are of two models",
                      file, text, embedding.size(1), all.width());
  if (std::find(all.texts.begin(), all.texts.end(), text) != all.texts.end()) return;
  all.texts.push_back(text);
  all.embeddings.push_back(std::move(embedding));
}

/// The list that belongs to lang_embed_<i>.pt of a folder; empty: there is none.
fs::path list_of(const fs::path& folder) {
  std::error_code error;
  for (const char* name : {kOwnList, kReferenceList})
    if (fs::is_regular_file(folder / name, error)) return folder / name;
  return {};
}

std::vector<fs::path> torch_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error))
    if (entry.path().extension() == ".pt") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

const at::Tensor* named(const weights::SafetensorsFile& file, const std::string& name) {
  for (const auto& [key, tensor] : file.tensors)
    if (key == name) return &tensor;
  return nullptr;
}

/// encode_lang.py's: {"name", "instruction", "embeddings"}.
void add_told(InstructionEmbeddings& all, const fs::path& path) {
  const weights::SafetensorsFile file = weights::read_torch_zip(path);
  const auto text = file.metadata.find("instruction");
  const at::Tensor* tensor = named(file, "embeddings");
  COHORT_THROW_UNLESS(text != file.metadata.end() && tensor != nullptr,
                      "{}: does not say which instruction it is: it holds no \"instruction\" and \"embeddings\"",
                      path.string());
  add_embedding(all, text->second, *tensor, path.string());
}

void read_folder(InstructionEmbeddings& all, const fs::path& folder) {
  if (const fs::path list = list_of(folder); !list.empty()) {
    const std::vector<std::string> texts = read_instruction_list(list);
    std::error_code error;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const fs::path file = folder / format("lang_embed_{}.pt", i);
      COHORT_THROW_UNLESS(
          fs::is_regular_file(file, error), "{}: is missing: lang_embed of \"{}\", number {} of {}; {}", file.string(),
          texts[i], i, list.filename().string(),
          "make it: cohort data embed --instructions " + list.string() + " --pt-folder " + folder.string());
      add_embedding(all, texts[i], weights::read_weights(file).tensors.front().second, file.string());
    }
    return;
  }
  for (const fs::path& file : torch_files(folder)) add_told(all, file);
}

void add_texts(std::vector<std::string>& texts, const nlohmann::json& value, const fs::path& path,
               const std::string& where) {
  if (value.is_string()) {
    texts.push_back(value.get<std::string>());
    return;
  }
  COHORT_THROW_UNLESS(value.is_array(), "{}: {} is neither a text nor a list of texts", path.string(), where);
  for (const nlohmann::json& item : value) {
    COHORT_THROW_UNLESS(item.is_string(), "{}: {} holds {}, which is no text", path.string(), where, json_text(item));
    texts.push_back(item.get<std::string>());
  }
}

}  // namespace

const at::Tensor* InstructionEmbeddings::find(const std::string& text) const {
  const auto found = std::find(texts.begin(), texts.end(), text);
  return found == texts.end() ? nullptr : &embeddings[static_cast<std::size_t>(found - texts.begin())];
}

const at::Tensor& InstructionEmbeddings::at(const std::string& text) const {
  if (const at::Tensor* found = find(text)) return *found;
  const std::string near = config::nearest(text, texts);
  throw Error(format("{}: has no lang_embed of {}{}; make it: {}", source, shown_instruction(text),
                     near.empty() ? "" : format(" (but of \"{}\")", near), embed_command(text)));
}

std::string embed_command(const std::string& text) {
  std::string word = "\"" + text + "\"";
  if (text.size() > kLongestShown || text.find_first_of("\n\r") != std::string::npos)
    word = "TEXT";
  else if (text.find_first_of("\"$`\\!") != std::string::npos)
    word = shell_quoted(text);
  return format("cohort data embed --instruction {} --out instructions.safetensors", word);
}

std::string shown_instruction(const std::string& text) {
  const bool plain = std::none_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 32; });
  if (text.size() <= kLongestShown && plain) return "\"" + text + "\"";
  return quoted_bytes(text);
}

bool holds_instructions(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return !list_of(path).empty() || !torch_files(path).empty();
  COHORT_THROW_UNLESS(fs::is_regular_file(path, error), "{}: there is no such file{}", path.string(), near_file(path));
  if (weights::is_torch_file(path)) {
    const weights::SafetensorsFile file = weights::read_torch_zip(path);
    return file.metadata.contains("instruction") && named(file, "embeddings") != nullptr;
  }
  const weights::SafetensorsFile file = weights::read_safetensors(path);
  return file.metadata.contains("format") && file.metadata.at("format") == kInstructionFormat;
}

InstructionEmbeddings read_instruction_embeddings(const fs::path& path) {
  InstructionEmbeddings all;
  all.source = path.string();
  COHORT_THROW_UNLESS(holds_instructions(path), "{}: holds no instructions with their embeddings", path.string());
  std::error_code error;
  if (fs::is_directory(path, error)) {
    read_folder(all, path);
  } else if (weights::is_torch_file(path)) {
    add_told(all, path);
  } else {
    const weights::SafetensorsFile file = weights::read_safetensors(path);
    if (file.metadata.contains("model")) all.model = file.metadata.at("model");
    const nlohmann::json texts =
        try_json<nlohmann::json>(file.metadata.contains("instructions") ? file.metadata.at("instructions") : "");
    COHORT_THROW_UNLESS(texts.is_array() && texts.size() == file.tensors.size(),
                        "{}: holds {} embeddings, but its list of instructions does not have as many", path.string(),
                        file.tensors.size());
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const at::Tensor* tensor = named(file, format("embedding.{}", i));
      COHORT_THROW_UNLESS(texts[i].is_string() && tensor != nullptr, "{}: embedding.{} or its instruction is missing",
                          path.string(), i);
      add_embedding(all, texts[i].get<std::string>(), *tensor, path.string());
    }
  }
  COHORT_THROW_UNLESS(!all.texts.empty(), "{}: holds no instructions", path.string());
  return all;
}

void write_instruction_embeddings(const fs::path& path, const InstructionEmbeddings& all) {
  weights::NamedTensors tensors;
  for (std::size_t i = 0; i < all.texts.size(); ++i) tensors.emplace_back(format("embedding.{}", i), all.embeddings[i]);
  weights::write_safetensors(
      path, tensors,
      {{"format", kInstructionFormat}, {"model", all.model}, {"instructions", json_text(nlohmann::json(all.texts))}});
}

std::vector<std::string> read_instruction_list(const fs::path& path) {
  const std::string content = read_file(path);
  std::vector<std::string> texts;
  if (path.extension() == ".json") {
    const nlohmann::json value = try_json<nlohmann::json>(content);
    COHORT_THROW_UNLESS(value.is_array() || value.is_object(), "{}: is no JSON list or object", path.string());
    if (value.is_array()) {
      add_texts(texts, value, path, "the list");
    } else {
      for (const char* key : {"instruction", "simplified_instruction", "expanded_instruction"})
        if (value.contains(key)) add_texts(texts, value[key], path, key);
      COHORT_THROW_UNLESS(!texts.empty(),
                          "{}: has none of instruction, simplified_instruction and expanded_instruction",
                          path.string());
    }
  } else {
    std::istringstream lines(content);
    for (std::string line; std::getline(lines, line);) {
      if (line.ends_with('\r')) line.pop_back();
      if (!line.empty()) texts.push_back(line);
    }
  }
  COHORT_THROW_UNLESS(!texts.empty(), "{}: holds no instructions", path.string());
  return texts;
}

}  // namespace cohort::policies
