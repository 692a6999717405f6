#include "weights/safetensors.h"

#include <csignal>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "support/fresh_folder.h"

namespace cohort::weights {
namespace {
namespace fs = std::filesystem;

NamedTensors sample() {
  return {{"b", torch::arange(6, torch::kFloat).reshape({2, 3})}, {"a", torch::arange(4, torch::kLong)},
          {"flag", torch::tensor({true, false, true})},           {"half", torch::arange(5).to(torch::kBFloat16)},
          {"scalar", torch::tensor(2.5, torch::kDouble)},         {"none", torch::empty({0, 7})}};
}

/// A file of a header text and `data_bytes` zeros.
fs::path crafted(const std::string& name, const std::string& header, std::size_t data_bytes,
                 std::optional<std::uint64_t> stated_length = {}) {
  const fs::path path = test::fresh_folder("safetensors_crafted") / (name + ".safetensors");
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t length = stated_length.value_or(header.size());
  out.write(reinterpret_cast<const char*>(&length), 8);
  out << header << std::string(data_bytes, '\0');
  return path;
}

std::string error_of(const fs::path& path) {
  const std::string text = message_of([&] { read_safetensors(path); });
  EXPECT_NE(text.find(path.string()), std::string::npos) << "no path in: " << text;
  return text;
}

TEST(Safetensors, AllElementTypesSurviveARoundTrip) {
  const fs::path path = test::fresh_folder("safetensors_round") / "deep" / "a.safetensors";
  NamedTensors tensors = sample();
  for (const auto type : {at::kHalf, at::kChar, at::kByte, at::kShort, at::kInt, at::kFloat8_e4m3fn}) {
    tensors.emplace_back(c10::toString(type), torch::arange(3).to(type));
  }
  tensors.emplace_back("strided", torch::arange(12, torch::kFloat).reshape({3, 4}).t());
  write_safetensors(path, tensors, {{"format", "pt"}});
  const auto file = read_safetensors(path);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  ASSERT_EQ(file.tensors.size(), tensors.size());
  const std::map<std::string, at::Tensor> read(file.tensors.begin(), file.tensors.end());
  for (const auto& [name, tensor] : tensors) {
    const at::Tensor& other = read.at(name);
    EXPECT_EQ(other.scalar_type(), tensor.scalar_type()) << name;
    EXPECT_EQ(other.sizes(), tensor.sizes()) << name;
    EXPECT_TRUE(at::equal(other.to(torch::kDouble), tensor.to(torch::kDouble))) << name;
  }
  EXPECT_EQ(std::distance(fs::directory_iterator(path.parent_path()), fs::directory_iterator()), 1)
      << "left something aside";
}

TEST(Safetensors, ReadTensorsOutliveTheFileAndNeverChangeIt) {
  const fs::path path = test::fresh_folder("safetensors_life") / "a.safetensors";
  write_safetensors(path, sample());
  const std::string before = read_file(path);
  at::Tensor kept;
  {
    auto file = read_safetensors(path);
    for (auto& [name, tensor] : file.tensors) {
      if (name == "b") kept = tensor;
    }
  }
  kept.add_(1);
  EXPECT_EQ(read_file(path), before);
  fs::remove(path);
  EXPECT_EQ(kept.sum().item<float>(), 21.0f);
}

TEST(Safetensors, MisalignedTensorsAreCopiedAndRight) {
  // A bool in front of an int64, as files of other writers have it.
  std::string header =
      R"({"f":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"I64","shape":[2],"data_offsets":[1,17]}})";
  header.append((8 - header.size() % 8) % 8, ' ');
  const fs::path path = test::fresh_folder("safetensors_misaligned") / "a.safetensors";
  std::ofstream out(path, std::ios::binary);
  const std::uint64_t length = header.size();
  const std::int64_t values[] = {7, -9};
  out.write(reinterpret_cast<const char*>(&length), 8) << header << '\1';
  out.write(reinterpret_cast<const char*>(values), 16);
  out.close();
  const auto file = read_safetensors(path);
  EXPECT_EQ(file.tensors[1].second[1].item<std::int64_t>(), -9);
}

TEST(Safetensors, BadFilesAreNamedWithWhatIsWrong) {
  const auto says = [](const fs::path& path, const std::string& expected) {
    const std::string message = error_of(path);
    EXPECT_NE(message.find(expected), std::string::npos) << message;
  };
  const fs::path folder = test::fresh_folder("safetensors_bad");
  says(folder / "missing.safetensors", "No such file");
  says(folder, "is no file");
  std::ofstream(folder / "empty").close();
  says(folder / "empty", "empty or truncated");
  std::ofstream(folder / "model.pt", std::ios::binary) << "PK\x03\x04 and much more than this";
  says(folder / "model.pt", "PyTorch archive");
  std::ofstream(folder / "pointer") << "version https://git-lfs.github.com/spec/v1\noid sha256:0";
  says(folder / "pointer", "git lfs pull");
  says(crafted("huge", "{}", 0, std::uint64_t{1} << 40), "would take 1099511627776 bytes");
  says(crafted("short", "{}", 0, 5000), "truncated");
  says(crafted("text", "not json at all", 8), "does not begin with");
  says(crafted("json", "{\"a\": ", 8), "no valid JSON");
  says(crafted("latin", "{\"\xff\": 1}", 8), "no valid JSON");
  says(
      crafted(
          "twice",
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})",
          1),
      "'a' twice");
  says(crafted("fields", R"({"a":{"dtype":"U8","shape":[1]}})", 1), "lacks dtype, shape or data_offsets");
  says(crafted("type", R"({"a":{"dtype":"Q3","shape":[1],"data_offsets":[0,1]}})", 1), "\"Q3\" is not supported");
  says(crafted("negative", R"({"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}})", 1),
       "something else than sizes");
  says(crafted("fraction", R"({"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}})", 1),
       "something else than sizes");
  says(crafted("overflow", R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0),
       "overflows");
  // Found by SafetensorsFuzz, at its mutation 21,789.
  says(crafted("zero",
               R"({"a":{"dtype":"F16","shape":[0,9223372036854775807,9223372036854775807],"data_offsets":[0,0]}})", 0),
       "overflows");
  says(crafted("cut", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})", 15), "truncated");
  says(crafted("size", R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,12]}})", 12), "takes 16 bytes");
  says(crafted("reversed", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}})", 1), "before they begin");
  says(
      crafted(
          "overlap",
          R"({"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})",
          6),
      "inside another tensor");
  says(
      crafted(
          "gap",
          R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}})",
          4),
      "belong to no tensor");
  says(crafted("tail", R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 3), "2 bytes follow");
  says(crafted("meta", R"({"__metadata__":{"k":5}})", 0), "'k' is no text");
  says(crafted("deep", R"({"a":[[[[[[[[1]]]]]]]]})", 0), "nested");
}

TEST(Safetensors, EveryTruncationOfAFileIsAnErrorAndNeverACrash) {
  const fs::path folder = test::fresh_folder("safetensors_cut");
  write_safetensors(folder / "whole", sample());
  const std::string whole = read_file(folder / "whole");
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    std::ofstream(folder / "cut", std::ios::binary) << whole.substr(0, length);
    EXPECT_THROW(read_safetensors(folder / "cut"), Error) << length;
  }
}

TEST(Safetensors, AFullDiskIsAnErrorWithTheSystemsReason) {
  // /dev/full answers every write with ENOSPC, as a full disk does.
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "this machine has no /dev/full";
  const std::string text = message_of([] { write_safetensors_in_place("/dev/full", sample()); });
  EXPECT_NE(text.find("/dev/full"), std::string::npos) << text;
  EXPECT_NE(text.find("No space left on device"), std::string::npos) << text;
  EXPECT_TRUE(fs::exists("/dev/full"));
}

TEST(Safetensors, AFailedWriteKeepsTheOldFileAndLeavesNothingAside) {
  const fs::path folder = test::fresh_folder("safetensors_limit");
  write_safetensors(folder / "a.safetensors", sample());
  const std::string before = read_file(folder / "a.safetensors");
  // The limit holds for a whole process: a child takes it.
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{4096, 4096};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      write_safetensors(folder / "a.safetensors", {{"big", torch::zeros({10000})}});
    } catch (const Error& e) {
      ::_exit(std::string(e.what()).find("File too large") != std::string::npos ? 7 : 8);
    }
    ::_exit(9);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 7);
  EXPECT_EQ(read_file(folder / "a.safetensors"), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), fs::directory_iterator()), 1);
}

TEST(Safetensors, TwoTensorsOfOneNameAreRefusedBeforeAnythingIsWritten) {
  const fs::path path = test::fresh_folder("safetensors_names") / "a.safetensors";
  EXPECT_THROW(write_safetensors(path, {{"a", torch::zeros(1)}, {"a", torch::zeros(1)}}), Error);
  EXPECT_THROW(write_safetensors(path, {{"a", torch::zeros(1, torch::kComplexDouble)}}), Error);
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace cohort::weights
