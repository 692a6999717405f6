// T5 from the hub's layout: texts to embeddings against transformers, and what is wrong with a folder.
#include "policies/text_encoder.h"

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"
#include "weights/safetensors.h"
#include "weights/torch_zip_writer.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;

const fs::path kSmallT5 = COHORT_SOURCE_DIR "/tests/models/fixtures/t5";

// The reference ran in float64, ours in float32: two layers.
constexpr double kTextTolerance = 1e-5;

/// A copy of the fixture that a test may change.
fs::path t5_copy(const std::string& name) {
  const fs::path folder = test::fresh_folder("text_encoder_" + name);
  for (const char* file : {"config.json", "spiece.model", "model.safetensors"})
    fs::copy_file(kSmallT5 / file, folder / file);
  return folder;
}

void change_config(const fs::path& folder, const std::string& key, const nlohmann::json& value) {
  nlohmann::json config = parse_json<nlohmann::json>(read_file(folder / "config.json"));
  config[key] = value;
  write_file_atomically(folder / "config.json", json_text(config));
}

/// Largest difference of the first four texts from transformers' states.
double difference_of(const fs::path& folder, at::ScalarType type) {
  TextEncoder encoder({.model = folder.string(), .type = type});
  encoder.load();
  const auto facts = parse_json<nlohmann::json>(read_file(kSmallT5 / "expected.json"));
  double largest = 0;
  for (std::size_t i = 0; i < facts.at("states").size(); ++i) {
    const at::Tensor own = encoder.embed(facts.at("texts")[i].at("text").get<std::string>());
    EXPECT_EQ(own.scalar_type(), type);
    EXPECT_EQ(own.size(0), static_cast<std::int64_t>(facts.at("texts")[i].at("ids").size()));
    const at::Tensor theirs = torch::tensor(facts.at("states")[i].get<std::vector<double>>()).view(own.sizes());
    largest = std::max(largest, (own.to(at::kDouble) - theirs).abs().max().item<double>());
  }
  return largest;
}

#define NEEDS_T5_TOKENS() \
  if (!models::has_sentence_piece()) GTEST_SKIP() << "this build has no SentencePiece"

TEST(TextEncoder, TextsBecomeTransformersEmbeddings) {
  NEEDS_T5_TOKENS();
  EXPECT_LE(difference_of(kSmallT5, at::kFloat), kTextTolerance);
  // bfloat16 has 8 bits of mantissa; the states are of size 1.
  EXPECT_LE(difference_of(kSmallT5, at::kBFloat16), 0.1);
}

TEST(TextEncoder, ReadsShardsOfTorchFilesAndTheHubsCache) {
  NEEDS_T5_TOKENS();
  const fs::path home = test::fresh_folder("text_encoder_hub");
  const fs::path model = home / "hub/models--google--t5-v1_1-tiny";
  const fs::path snapshot = model / "snapshots/0123abcd";
  fs::create_directories(snapshot);
  fs::create_directories(model / "snapshots/older");
  write_file_atomically(model / "refs/main", "0123abcd");
  for (const char* file : {"config.json", "spiece.model"}) fs::copy_file(kSmallT5 / file, snapshot / file);
  // Two shards, with a decoder's tensor that is left out.
  const weights::NamedTensors all = weights::read_safetensors(kSmallT5 / "model.safetensors").tensors;
  weights::NamedTensors shards[2];
  nlohmann::json places = nlohmann::json::object();
  for (std::size_t i = 0; i < all.size(); ++i) {
    shards[i % 2].push_back(all[i]);
    places[all[i].first] = format("pytorch_model-0000{}-of-00002.bin", i % 2 + 1);
  }
  shards[1].emplace_back("decoder.block.0.layer.0.layer_norm.weight", at::ones({24}));
  places["decoder.block.0.layer.0.layer_norm.weight"] = "pytorch_model-00002-of-00002.bin";
  for (int i = 0; i < 2; ++i)
    weights::write_torch_file(snapshot / format("pytorch_model-0000{}-of-00002.bin", i + 1), shards[i]);
  write_file_atomically(snapshot / "pytorch_model.bin.index.json", json_text(nlohmann::json({{"weight_map", places}})));
  const char* before = std::getenv("HF_HOME");
  const std::string kept = before != nullptr ? before : "";
  ::setenv("HF_HOME", home.c_str(), 1);
  EXPECT_LE(difference_of("google/t5-v1_1-tiny", at::kFloat), kTextTolerance);
  EXPECT_NE(message_of([] { TextEncoder({.model = "google/t5-v1_1-xxl"}); }).find("hf download google/t5-v1_1-xxl"),
            std::string::npos);
  if (before != nullptr)
    ::setenv("HF_HOME", kept.c_str(), 1);
  else
    ::unsetenv("HF_HOME");
}

TEST(TextEncoder, SaysWhatMemoryItNeedsBeforeItLoads) {
  NEEDS_T5_TOKENS();
  const TextEncoder encoder({.model = kSmallT5.string()});
  EXPECT_EQ(encoder.settings().num_layers, 2);
  std::int64_t elements = 0;
  for (const auto& [name, tensor] : weights::read_safetensors(kSmallT5 / "model.safetensors").tensors)
    elements += tensor.numel();
  EXPECT_EQ(encoder.parameters(), elements);
  EXPECT_GE(encoder.bytes(), 2 * elements);
  EXPECT_NE(encoder.memory_text().find("as bfloat16"), std::string::npos) << encoder.memory_text();
}

TEST(TextEncoder, FoldersThatDoNotFitAreRefusedByWhatIsWrong) {
  NEEDS_T5_TOKENS();
  const auto refusal = [](const fs::path& folder) {
    return message_of([&] { TextEncoder({.model = folder.string()}).load(); });
  };
  const fs::path wide = t5_copy("wide");
  change_config(wide, "d_model", 32);
  EXPECT_NE(
      refusal(wide).find("a model of another size: shared.weight is 96 x 24 in the file and 96 x 32 by config.json"),
      std::string::npos)
      << refusal(wide);
  const fs::path shallow = t5_copy("shallow");
  change_config(shallow, "num_layers", 1);
  EXPECT_NE(refusal(shallow).find("is a layer more than num_layers = 1"), std::string::npos) << refusal(shallow);
  const fs::path deep = t5_copy("deep");
  change_config(deep, "num_layers", 3);
  EXPECT_NE(refusal(deep).find("encoder.block.2.layer.0.SelfAttention.q.weight is missing"), std::string::npos);
  const fs::path first = t5_copy("first");
  change_config(first, "feed_forward_proj", "relu");
  EXPECT_NE(refusal(first).find("feed_forward_proj is \"relu\""), std::string::npos);
  const fs::path small = t5_copy("small");
  change_config(small, "vocab_size", 50);
  EXPECT_NE(refusal(small).find("config.json says vocab_size = 50"), std::string::npos);
  const fs::path without = t5_copy("without");
  fs::remove(without / "spiece.model");
  EXPECT_NE(refusal(without).find("has no spiece.model"), std::string::npos);
}

}  // namespace
}  // namespace cohort::policies
