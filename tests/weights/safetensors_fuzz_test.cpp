// Damaged headers never crash the reader: keyed mutations of sound safetensors files either read, every tensor inside
// the file, or throw Error with the file's name. The unit test makes 3,000 of them; COHORT_FUZZ_SECONDS asks for as
// many as fit into that time.
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <set>

#include <gtest/gtest.h>

#include <torch/types.h>

#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "support/fresh_folder.h"
#include "weights/safetensors.h"

namespace cohort::weights {
namespace {
namespace fs = std::filesystem;

constexpr std::uint64_t kSeed = 20261121;

/// Numbers of one mutation.
class Draws {
 public:
  explicit Draws(std::uint64_t mutation) : stream_(kSeed, RandomPurpose::kTest, mutation, 0) {}
  std::size_t below(std::size_t n) { return stream_.below(next_++, static_cast<std::uint32_t>(n)); }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

/// A file as the format has it: length, header, data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string bytes;
  for (int i = 0; i < 8; ++i) bytes += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return bytes + header + data;
}

/// What the mutations begin with: every element type that we write, metadata, a scalar, no elements; misaligned
/// tensors; names beyond ASCII; no tensor at all; padding.
std::vector<std::pair<std::string, std::string>> corpus(const fs::path& folder) {
  NamedTensors tensors{{"b", torch::arange(6, torch::kFloat).reshape({2, 3})},
                       {"scalar", torch::tensor(2.5, torch::kDouble)},
                       {"none", torch::empty({0, 7})},
                       {"flag", torch::tensor({true, false, true})}};
  for (const auto type : {at::kHalf, at::kBFloat16, at::kChar, at::kByte, at::kShort, at::kInt, at::kLong})
    tensors.emplace_back(c10::toString(type), torch::arange(3).to(type));
  write_safetensors(folder / "whole", tensors, {{"format", "pt"}, {"step", "12"}});
  const std::string whole = read_file(folder / "whole");
  std::size_t header = 0;
  for (int i = 7; i >= 0; --i) header = header << 8 | static_cast<unsigned char>(whole[static_cast<std::size_t>(i)]);
  return {
      {whole.substr(8, header), whole.substr(8 + header)},
      {R"({"f":{"dtype":"BOOL","shape":[1],"data_offsets":[0,1]},"x":{"dtype":"I64","shape":[2],"data_offsets":[1,17]}})",
       std::string(17, '\1')},
      {R"({"größe":{"dtype":"F32","shape":[1,1,1],"data_offsets":[0,4]},"\u00e9":{"dtype":"F16","shape":[0,9],"data_offsets":[4,4]}}   )",
       std::string(4, '\0')},
      {"{}", ""},
      {R"({"__metadata__":{"format":"pt"}})", ""}};
}

/// Bytes flipped, overwritten, cut out, repeated; or a number, a type or a whole piece replaced by what hurts parsers.
std::string mutated(std::string text, Draws& draws) {
  static const std::vector<std::string> kPieces{"0",
                                                "-1",
                                                "1e9",
                                                "1.5",
                                                "9223372036854775807",
                                                "9223372036854775808",
                                                "18446744073709551615",
                                                "18446744073709551616",
                                                "4611686018427387904",
                                                "1152921504606846976",
                                                "null",
                                                "true",
                                                "\"\"",
                                                "[]",
                                                "{}",
                                                "[[",
                                                "]]]]",
                                                "{\"a\":",
                                                "\"F64\"",
                                                "\"U8\"",
                                                "\"C64\"",
                                                "\"Q9\"",
                                                "\"__metadata__\":{\"k\":5},",
                                                "\\ud800",
                                                "\\u0000",
                                                std::string(3, '\0'),
                                                "\xff\xfe",
                                                "}",
                                                ",",
                                                ":",
                                                "[0,9223372036854775807,9223372036854775807]",
                                                "[0,0]"};
  const std::size_t changes = 1 + draws.below(4);
  for (std::size_t c = 0; c < changes && !text.empty(); ++c) {
    const std::size_t at = draws.below(text.size()), length = 1 + draws.below(24);
    switch (draws.below(8)) {
      case 0:
        text[at] = static_cast<char>(text[at] ^ (1 << draws.below(8)));
        break;
      case 1:
        text[at] = static_cast<char>(draws.below(256));
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(draws.below(text.size()), length));
        break;
      case 4:
        text.resize(at);
        break;
      case 5:
        text.insert(at, kPieces[draws.below(kPieces.size())]);
        break;
      default: {
        // The next number, or list, or word.
        const bool list = draws.below(3) == 0;
        const std::size_t begin = list ? text.find('[', at) : text.find_first_of("0123456789", at);
        if (begin == std::string::npos) break;
        const std::size_t end = list ? text.find(']', begin) : text.find_first_not_of("0123456789", begin);
        const std::string& piece = kPieces[draws.below(kPieces.size())];
        text.replace(begin, end == std::string::npos ? end : end - begin + (list ? 1 : 0), piece);
      }
    }
  }
  return text;
}

/// Reads every byte of every tensor; the sum keeps the reads alive.
std::uint64_t touch(const SafetensorsFile& file, std::size_t data_bytes) {
  std::uint64_t sum = 0;
  std::size_t bytes = 0;
  std::set<std::string> names;
  for (const auto& [name, tensor] : file.tensors) {
    EXPECT_TRUE(names.insert(name).second) << name;
    const auto* data = static_cast<const unsigned char*>(tensor.const_data_ptr());
    for (std::size_t i = 0; i < tensor.nbytes(); ++i) sum += data[i];
    bytes += tensor.nbytes();
  }
  EXPECT_EQ(bytes, data_bytes) << "every byte belongs to one tensor";
  return sum;
}

TEST(SafetensorsFuzz, DamagedHeadersReadOrAreRefused) {
  const char* wanted = std::getenv("COHORT_FUZZ_SECONDS");
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(wanted ? std::atoi(wanted) : 0);
  const fs::path folder = test::fresh_folder("safetensors_fuzz"), path = folder / "mutant";
  const auto sound = corpus(folder);
  std::uint64_t read = 0, refused = 0, sum = 0;
  for (std::uint64_t mutation = 0; wanted ? std::chrono::steady_clock::now() < end : mutation < 3000; ++mutation) {
    Draws draws(mutation);
    const auto& [header, data] = sound[draws.below(sound.size())];
    // The length is right for the header in three of four, so that parsing goes on behind it.
    std::string bytes;
    if (draws.below(4) > 0)
      bytes = file_of(mutated(header, draws), data);
    else
      bytes = mutated(file_of(header, data), draws);
    std::ofstream(path, std::ios::binary) << bytes;
    try {
      const SafetensorsFile file = read_safetensors(path);
      std::size_t length = 0;
      for (int i = 7; i >= 0; --i)
        length = length << 8 | static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)]);
      sum += touch(file, bytes.size() - 8 - length);
      ++read;
    } catch (const Error& e) {
      ++refused;
      ASSERT_NE(std::string(e.what()).find(path.string()), std::string::npos) << e.what();
    } catch (const std::exception& e) {
      FAIL() << "mutation " << mutation << ": " << e.what() << "\n" << bytes;
    }
    ASSERT_FALSE(HasFailure()) << "mutation " << mutation;
  }
  std::printf("%llu mutations of %zu files: %llu read, %llu refused (bytes sum to %llu)\n",
              static_cast<unsigned long long>(read + refused), sound.size(), static_cast<unsigned long long>(read),
              static_cast<unsigned long long>(refused), static_cast<unsigned long long>(sum));
  EXPECT_GT(read, 0u);
  EXPECT_GT(refused, read);
}

}  // namespace
}  // namespace cohort::weights
