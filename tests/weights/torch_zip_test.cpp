// PyTorch's own files, read without running anything: tests/weights/make_torch_fixtures.py has written them.
#include "weights/torch_zip.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include <gtest/gtest.h>

#include <torch/types.h>
#include <torch/utils.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "formats/pickle.h"
#include "support/fresh_folder.h"
#include "weights/weight_files.h"

namespace cohort::weights {
namespace {

const std::filesystem::path kTorchFiles = COHORT_SOURCE_DIR "/tests/weights/fixtures";

std::filesystem::path torch_folder(const std::string& name) {
  return test::fresh_folder("torch_zip_" + name);
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary).write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
}

TEST(TorchZip, EveryTensorIsWhatTorchSaved) {
  const SafetensorsFile ours = read_weights(kTorchFiles / "state.bin");
  std::map<std::string, at::Tensor> expected;
  for (const auto& [name, tensor] : read_weights(kTorchFiles / "state.safetensors").tensors) expected[name] = tensor;
  ASSERT_EQ(ours.tensors.size(), expected.size());
  for (const auto& [name, tensor] : ours.tensors) {
    ASSERT_TRUE(expected.count(name)) << name;
    EXPECT_EQ(tensor.scalar_type(), expected[name].scalar_type()) << name;
    EXPECT_TRUE(at::equal(tensor, expected[name])) << name;
  }
}

TEST(TorchZip, OfACheckpointTheWeightsAloneAreRead) {
  const NamedTensors tensors = read_weights(kTorchFiles / "checkpoint.pt").tensors;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[0].first, "a");
  EXPECT_TRUE(at::equal(tensors[0].second, at::arange(3, at::kFloat)));
  EXPECT_EQ(tensors[1].first, "b.c");
  const NamedTensors alone = read_weights(kTorchFiles / "embedding.pt").tensors;
  ASSERT_EQ(alone.size(), 1u);
  EXPECT_EQ(alone[0].second.sizes().vec(), (std::vector<std::int64_t>{1, 2, 4}));
}

TEST(TorchZip, AHostilePickleIsRefusedByTheNameOfWhatItAsksFor) {
  const std::string message = message_of([] { read_weights(kTorchFiles / "hostile.pt"); });
  EXPECT_NE(message.find("hostile.pt"), std::string::npos) << message;
  EXPECT_TRUE(message.find("asks for posix.system") != std::string::npos) << message;
  EXPECT_NE(message.find("nothing was run"), std::string::npos) << message;
  const auto names = [](const std::string& module, const std::string& name) {
    return message_of([&] {
      Pickle(
          "\x80\x02"
          "c" +
              module + "\n" + name + "\n.",
          "x");
    });
  };
  for (const auto& [module, name] : std::map<std::string, std::string>{
           {"builtins", "eval"}, {"os", "popen"}, {"torch", "load"}, {"torch._utils", "_rebuild_tensor_v2\xc3"}})
    EXPECT_NE(names(module, name).find("asks for " + module + "." + name), std::string::npos) << module;
}

TEST(TorchZip, OldFormatsAndDamageAreNamed) {
  EXPECT_NE(message_of([] { read_weights(kTorchFiles / "old.pt"); }).find("before version 1.6"), std::string::npos);
  const auto folder = torch_folder("damage");
  const std::string whole = read_file(kTorchFiles / "state.bin");
  write_bytes(folder / "cut.bin", whole.substr(0, whole.size() / 2));
  EXPECT_NE(message_of([&] { read_weights(folder / "cut.bin"); }).find("cut off"), std::string::npos);
  std::string other = whole;
  for (std::size_t at; (at = other.find("data.pkl")) != std::string::npos;) other.replace(at, 8, "date.pkl");
  write_bytes(folder / "other.zip", other);
  EXPECT_NE(message_of([&] { read_weights(folder / "other.zip"); }).find("no data.pkl"), std::string::npos);
  std::string missing = whole;
  for (std::size_t at; (at = missing.find("/data/0")) != std::string::npos;) missing.replace(at, 7, "/date/0");
  write_bytes(folder / "missing.bin", missing);
  EXPECT_NE(message_of([&] { read_weights(folder / "missing.bin"); }).find("record data/0 is missing"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_weights(folder / "nothing.bin"); }).find("no such file"), std::string::npos);
  EXPECT_NE(message_of([&] { read_weights(folder); }).find("holds no model.safetensors"), std::string::npos);
}

TEST(TorchZip, DamagedFilesNeverCrashTheReader) {
  const auto folder = torch_folder("fuzz");
  std::size_t read = 0, refused = 0;
  for (const char* name : {"state.bin", "checkpoint.pt", "embedding.pt", "hostile.pt"}) {
    const std::string whole = read_file(kTorchFiles / name);
    const std::size_t pickle = whole.find("data.pkl");
    for (std::uint64_t round = 0; round < 400; ++round) {
      const RandomStream stream(20261126, RandomPurpose::kTest, round, pickle);
      std::uint64_t next = 0;
      const auto below = [&](std::size_t n) { return stream.below(next++, static_cast<std::uint32_t>(n)); };
      std::string bytes = whole;
      for (std::uint32_t change = 0; change <= below(4); ++change) {
        // The pickle and the directory, where structure lies, more often than the numbers.
        const std::size_t place =
            below(3) == 0 ? below(bytes.size()) : std::min(bytes.size() - 1, pickle + below(bytes.size() / 4 + 1));
        switch (below(4)) {
          case 0:
            bytes[place] = static_cast<char>(below(256));
            break;
          case 1:
            bytes[place] = static_cast<char>(bytes[place] ^ (1 << below(8)));
            break;
          case 2:
            bytes.erase(place, 1 + below(4));
            break;
          default:
            bytes[bytes.size() - 1 - std::min<std::size_t>(bytes.size() - 1, below(400))] = '\xff';
        }
      }
      write_bytes(folder / "damaged.bin", bytes);
      try {
        for (const auto& [tensor_name, tensor] : read_torch_zip(folder / "damaged.bin").tensors)
          tensor.to(at::kDouble).sum().item<double>();  // every element lies inside the file's
        ++read;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("damaged.bin"), std::string::npos) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GT(read, 50u);
  EXPECT_GT(refused, 50u);
}

TEST(Pickle, DamagedPicklesNeverCrashTheReader) {
  const std::string whole = read_file(kTorchFiles / "state.bin");
  const std::size_t begin = whole.find("\x80\x02");
  const std::string pickled = whole.substr(begin, 2500);
  std::size_t refused = 0;
  for (std::uint64_t round = 0; round < 5000; ++round) {
    const RandomStream stream(20261127, RandomPurpose::kTest, round, 0);
    std::string bytes = pickled;
    for (std::uint64_t i = 0; i <= round % 4; ++i)
      bytes[stream.below(2 * i, static_cast<std::uint32_t>(bytes.size()))] =
          static_cast<char>(stream.below(2 * i + 1, 256));
    try {
      const Pickle pickle(bytes, "damaged");
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000u);
}

TEST(WeightFiles, AnIndexJoinsTheFilesThatItNames) {
  const auto folder = torch_folder("index");
  std::filesystem::copy(kTorchFiles / "embedding.pt", folder / "unused.pt");
  write_safetensors(folder / "model-1.safetensors", {{"a", at::ones({2})}});
  write_safetensors(folder / "model-2.safetensors", {{"b", at::zeros({3})}});
  write_bytes(folder / "model.safetensors.index.json",
              R"({"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}})");
  const NamedTensors tensors = read_weights(folder).tensors;
  ASSERT_EQ(tensors.size(), 2u);
  EXPECT_EQ(tensors[1].first, "b");
  write_bytes(folder / "model.safetensors.index.json",
              R"({"weight_map": {"a": "model-1.safetensors", "c": "model-2.safetensors"}})");
  EXPECT_NE(message_of([&] { read_weights(folder); }).find("c should be in model-2.safetensors"), std::string::npos);
  write_bytes(folder / "model.safetensors.index.json", R"({"weight_map": {"a": "../model-1.safetensors"}})");
  EXPECT_NE(message_of([&] { read_weights(folder); }).find("not the name of a file beside it"), std::string::npos);
}

}  // namespace
}  // namespace cohort::weights
