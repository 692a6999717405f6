// Instructions by their text: our own file and the reference's folders.
#include "policies/instruction_embeddings.h"

#include <filesystem>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/files.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"
#include "weights/safetensors.h"
#include "weights/torch_zip.h"
#include "weights/torch_zip_writer.h"

namespace cohort::policies {
namespace {

namespace fs = std::filesystem;

InstructionEmbeddings two_instructions() {
  InstructionEmbeddings all;
  all.model = "google/t5-v1_1-small";
  all.texts = {"open the drawer", "\"schließe\" sie\n"};
  all.embeddings = {at::arange(12.0f).view({3, 4}), at::ones({5, 4})};
  return all;
}

TEST(InstructionEmbeddings, AreFoundAgainByTheirText) {
  const fs::path folder = test::fresh_folder("instructions_own");
  write_instruction_embeddings(folder / "a.safetensors", two_instructions());
  EXPECT_TRUE(holds_instructions(folder / "a.safetensors"));
  const InstructionEmbeddings read = read_instruction_embeddings(folder / "a.safetensors");
  EXPECT_EQ(read.texts, two_instructions().texts);
  EXPECT_EQ(read.model, "google/t5-v1_1-small");
  for (const std::string& text : read.texts) EXPECT_TRUE(at::equal(read.at(text), *two_instructions().find(text)));
  EXPECT_EQ(message_of([&] { read.at("open the drawers"); }),
            (folder / "a.safetensors").string() +
                ": has no lang_embed of \"open the drawers\" (but of \"open the drawer\"); make it: cohort data embed "
                "--instruction \"open the drawers\" --out instructions.safetensors");
  weights::write_safetensors(folder / "alone.safetensors", {{"lang_embed", at::ones({2, 4})}});
  EXPECT_FALSE(holds_instructions(folder / "alone.safetensors"));
}

TEST(InstructionEmbeddings, ATextThatAClientSendsIsShownSoThatItsCommandWorks) {
  EXPECT_EQ(embed_command("it's \"open\""),
            R"(cohort data embed --instruction 'it'\''s "open"' --out instructions.safetensors)");
  EXPECT_NE(embed_command("costs $5").find("'costs $5'"), std::string::npos);
  for (const std::string& text : {std::string("two\nlines"), std::string(10000, 'x')}) {
    EXPECT_NE(embed_command(text).find("--instruction TEXT --out"), std::string::npos);
    EXPECT_LT(shown_instruction(text).size(), 100u);
    EXPECT_EQ(shown_instruction(text).find('\n'), std::string::npos);
  }
  EXPECT_EQ(shown_instruction("öffne die Tür"), "\"öffne die Tür\"");
}

TEST(InstructionEmbeddings, OfTheReferenceAreRead) {
  const fs::path folder = test::fresh_folder("instructions_reference");
  write_file_atomically(folder / "expanded_instruction_gpt-4-turbo.json",
                        R"({"instruction": "open it", "simplified_instruction": ["open"],
                            "expanded_instruction": ["pull the drawer open", "open it"]})");
  EXPECT_EQ(read_instruction_list(folder / "expanded_instruction_gpt-4-turbo.json"),
            (std::vector<std::string>{"open it", "open", "pull the drawer open", "open it"}));
  for (int i = 0; i < 4; ++i)
    weights::write_torch_file(folder / format("lang_embed_{}.pt", i), {{"", at::full({i + 1, 4}, i, at::kBFloat16)}});
  const InstructionEmbeddings all = read_instruction_embeddings(folder);
  EXPECT_EQ(all.texts, (std::vector<std::string>{"open it", "open", "pull the drawer open"}));
  EXPECT_EQ(all.at("pull the drawer open").sizes().vec(), (std::vector<std::int64_t>{3, 4}));
  fs::remove(folder / "lang_embed_1.pt");
  EXPECT_NE(message_of([&] {
              read_instruction_embeddings(folder);
            }).find("lang_embed_1.pt: is missing: lang_embed of \"open\""),
            std::string::npos);
  // encode_lang.py's: a dictionary.
  const fs::path told = test::fresh_folder("instructions_told");
  weights::write_torch_file(told / "handover.pt", {{"embeddings", at::ones({1, 2, 4})}},
                            {{"name", "handover"}, {"instruction", "hand it over"}});
  EXPECT_TRUE(holds_instructions(told / "handover.pt"));
  EXPECT_EQ(read_instruction_embeddings(told).texts, std::vector<std::string>{"hand it over"});
  EXPECT_EQ(read_instruction_embeddings(told / "handover.pt").at("hand it over").sizes().vec(),
            (std::vector<std::int64_t>{2, 4}));
}

TEST(InstructionEmbeddings, ListsAreTextsLineByLineOrJson) {
  const fs::path folder = test::fresh_folder("instructions_lists");
  write_file_atomically(folder / "list.txt", "open it\r\n\nclose it");
  EXPECT_EQ(read_instruction_list(folder / "list.txt"), (std::vector<std::string>{"open it", "close it"}));
  write_file_atomically(folder / "list.json", R"(["a", "b"])");
  EXPECT_EQ(read_instruction_list(folder / "list.json"), (std::vector<std::string>{"a", "b"}));
  write_file_atomically(folder / "bad.json", R"(["a", 7])");
  EXPECT_NE(message_of([&] { read_instruction_list(folder / "bad.json"); }).find("holds 7, which is no text"),
            std::string::npos);
  write_file_atomically(folder / "other.json", R"({"task": "a"})");
  EXPECT_NE(message_of([&] { read_instruction_list(folder / "other.json"); }).find("has none of instruction"),
            std::string::npos);
}

TEST(TorchZipWriter, WritesWhatReadsBackTheSame) {
  const fs::path folder = test::fresh_folder("torch_zip_writer");
  const weights::NamedTensors tensors{{"a", at::randn({3, 5})},
                                      {"b", at::randn({2}).to(at::kBFloat16)},
                                      {"c", at::arange(4)},
                                      {"d", at::randn({4, 3}).to(at::kHalf).t()},
                                      {"e", at::randn({})}};
  weights::write_torch_file(folder / "state.pt", tensors, {{"instruction", "öffne"}});
  const weights::SafetensorsFile read = weights::read_torch_zip(folder / "state.pt");
  ASSERT_EQ(read.tensors.size(), tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    EXPECT_EQ(read.tensors[i].first, tensors[i].first);
    EXPECT_TRUE(at::equal(read.tensors[i].second, tensors[i].second)) << tensors[i].first;
  }
  EXPECT_EQ(read.metadata.at("instruction"), "öffne");
  weights::write_torch_file(folder / "again.pt", tensors, {{"instruction", "öffne"}});
  EXPECT_EQ(read_file(folder / "state.pt"), read_file(folder / "again.pt"));
  EXPECT_NE(message_of([&] {
              weights::write_torch_file(folder / "x.pt", {{"x", at::ones({1}, at::kBool)}});
            }).find("Bool"),
            std::string::npos);
}

}  // namespace
}  // namespace cohort::policies
