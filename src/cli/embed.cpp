// `cohort data embed`: the executable cohort-embed, which `cohort data` becomes, because it needs LibTorch. Instructions
// through T5, once, so that nothing that trains or evaluates needs the text encoder.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/parse_arguments.h"
#include "cli/subcommand.h"
#include "cli/torch_program.h"
#include "core/devices_cpu.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/log.h"
#include "data/instruction_texts.h"
#include "data/open_episodes.h"
#include "dist/usable_devices.h"
#include "monitor/host_figures.h"
#include "policies/instruction_embeddings.h"
#include "policies/text_encoder.h"
#include "weights/torch_zip_writer.h"

namespace cohort::cli {
namespace {

namespace fs = std::filesystem;

struct EmbedArguments {
  std::string path, field = "language_instruction", list, out, pt_folder, type = "bf16";
  data::OpenSettings data;
  std::vector<std::string> texts;
  policies::TextEncoderSettings encoder;
};

/// What is asked for, each once.
std::vector<std::string> wanted_texts(const EmbedArguments& arguments) {
  std::vector<std::string> texts = arguments.texts;
  if (!arguments.list.empty())
    for (std::string& text : policies::read_instruction_list(arguments.list)) texts.push_back(std::move(text));
  if (!arguments.path.empty()) {
    const auto source = data::open_episodes(arguments.path, arguments.data);
    for (std::string& text : data::distinct_instructions(*source, arguments.field, available_cores()))
      if (!text.empty()) texts.push_back(std::move(text));
    COHORT_THROW_UNLESS(!texts.empty(),
                        "{}: the {} of every episode is empty: name another field with --field, or texts with --text",
                        arguments.path, arguments.field);
  }
  std::vector<std::string> once;
  for (std::string& text : texts)
    if (std::find(once.begin(), once.end(), text) == once.end()) once.push_back(std::move(text));
  return once;
}

/// What an earlier call wrote, which is added to.
policies::InstructionEmbeddings earlier(const EmbedArguments& arguments) {
  policies::InstructionEmbeddings all;
  if (!arguments.out.empty() && fs::exists(arguments.out)) {
    all = policies::read_instruction_embeddings(arguments.out);
    COHORT_THROW_UNLESS(all.model == arguments.encoder.model,
                        "{}: was made by {}, not by {}: choose another --out, or the same --text-encoder",
                        arguments.out, all.model.empty() ? "another program" : all.model, arguments.encoder.model);
    COHORT_THROW_UNLESS(all.embeddings.front().scalar_type() == arguments.encoder.type,
                        "{}: holds numbers of another --dtype: choose another --out, or the same --dtype",
                        arguments.out);
  }
  all.model = arguments.encoder.model;
  return all;
}

/// As the reference keeps them: a file per instruction, by its number in the list beside them.
void write_pt_folder(const fs::path& folder, const std::vector<std::string>& texts,
                     const policies::InstructionEmbeddings& all) {
  for (std::size_t i = 0; i < texts.size(); ++i)
    weights::write_torch_file(folder / format("lang_embed_{}.pt", i), {{"", all.at(texts[i])}});
  weights::write_torch_file(folder / "empty_lang_embed.pt", {{"", all.at("")}});
  write_file_atomically(folder / "instructions.json", json_text(nlohmann::json(texts), 1) + "\n");
}

void embed(EmbedArguments& arguments) {
  if (arguments.out.empty() && arguments.pt_folder.empty())
    throw UsageError("where to? --out FILE.safetensors, or --pt-folder FOLDER as RDT's reference has it");
  const std::vector<std::string> texts = wanted_texts(arguments);
  if (texts.empty())
    throw UsageError("what? name a data set, --instructions FILE, or --instruction \"open the drawer\"");
  policies::InstructionEmbeddings all = earlier(arguments);
  std::vector<std::string> missing;
  for (const std::string& text : texts)
    if (all.find(text) == nullptr) missing.push_back(text);
  // Training shows it where it hides the instruction.
  if (all.find("") == nullptr && std::find(missing.begin(), missing.end(), "") == missing.end()) missing.push_back("");
  if (!missing.empty()) {
    dist::check_device(parse_device(arguments.encoder.device));
    policies::TextEncoder encoder(arguments.encoder);
    const monitor::HostMemory memory = monitor::host_memory();
    std::printf("%s; this machine has %s free\n", encoder.memory_text().c_str(),
                format_bytes(static_cast<double>(memory.usable_available)).c_str());
    std::fflush(stdout);
    if (arguments.encoder.device == "cpu" && memory.usable_available > 0 &&
        static_cast<std::uint64_t>(encoder.bytes()) > memory.usable_available)
      log::warning("this is more memory than is free: it may be slow or be stopped{}",
                   arguments.type == "fp32" ? "; --dtype bf16 takes half of it" : "");
    encoder.load();
    for (std::size_t i = 0; i < missing.size(); ++i) {
      all.texts.push_back(missing[i]);
      all.embeddings.push_back(encoder.embed(missing[i]));
      if (all.embeddings.back().size(0) >= arguments.encoder.max_tokens)
        log::warning("\"{}\" fills --max-tokens={}: what is beyond them is cut off", missing[i],
                     arguments.encoder.max_tokens);
      std::printf("%zu/%zu \"%s\"\n", i + 1, missing.size(), missing[i].c_str());
      std::fflush(stdout);
    }
  }
  std::int64_t longest = 0;
  for (const at::Tensor& embedding : all.embeddings) longest = std::max(longest, embedding.size(0));
  if (!arguments.out.empty() && !missing.empty()) policies::write_instruction_embeddings(arguments.out, all);
  if (!arguments.pt_folder.empty()) write_pt_folder(arguments.pt_folder, texts, all);
  std::printf("%s: %zu instructions, %zu embedded now, up to %lld tokens of %lld numbers\n",
              arguments.out.empty() ? arguments.pt_folder.c_str() : arguments.out.c_str(), all.texts.size(),
              missing.size(), static_cast<long long>(longest), static_cast<long long>(all.width()));
}

int run_embed(const std::vector<std::string>& words) {
  CLI::App app("Instructions through T5, once: training and evaluation find them by their text.", "cohort data embed");
  EmbedArguments arguments;
  app.add_option("path", arguments.path, "a data set whose instructions are taken: as `cohort data inspect` takes it");
  app.add_option("--instruction", arguments.texts, "a text; may be given several times")->allow_extra_args(false);
  app.add_option("--instructions", arguments.list,
                 "a text file with one per line, a JSON list, or expanded_instruction_gpt-4-turbo.json of RDT's data");
  app.add_option("--field", arguments.field, "of the data set: a text of its steps or episodes")->capture_default_str();
  app.add_option("--format", arguments.data.format, "of the data set: auto, rlds, hdf5 or lerobot")
      ->capture_default_str();
  app.add_option("--split", arguments.data.split, "of the data set")->capture_default_str();
  app.add_option("--text-encoder", arguments.encoder.model,
                 "folder of a T5 v1.1, or its name in the hub's cache ($HF_HOME)")
      ->capture_default_str();
  app.add_option("--dtype", arguments.type, "of weights and numbers")
      ->check(CLI::IsMember({"bf16", "fp32"}))
      ->capture_default_str();
  app.add_option("--device", arguments.encoder.device, "cpu, cuda:0, ...")->capture_default_str();
  app.add_option("--max-tokens,--tokenizer_max_length", arguments.encoder.max_tokens, "the rest of a text is cut off")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  app.add_option("--out", arguments.out, "safetensors file; what is in it already is kept and not computed again");
  app.add_option("--pt-folder", arguments.pt_folder,
                 "folder that gets lang_embed_0.pt, ... of the texts in their order, instructions.json and "
                 "empty_lang_embed.pt, as RDT's reference loads them");
  if (const auto code = parse_arguments(app, words)) return *code;
  arguments.encoder.type = arguments.type == "fp32" ? at::kFloat : at::kBFloat16;
  embed(arguments);
  return 0;
}

const TorchProgram kEmbed("cohort-embed", "cohort data embed", &run_embed);

}  // namespace
}  // namespace cohort::cli
