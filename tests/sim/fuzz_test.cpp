// Damaged MJCF and URDF: every one ends as a model or as an Error; the compiler runs in a child, so that a crash of the
// parser is an Error too.
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/philox.h"
#include "sim/compile.h"
#include "sim/model.h"

namespace cohort::sim {
namespace {

const std::string kModels = COHORT_SOURCE_DIR "/tests/sim/models/";
/// Mutants of every file. Each costs a child process.
constexpr std::uint64_t kMutants = 40;

/// A text with one or two injuries: flipped bits, cuts, doubled pieces, hostile numbers.
std::string mutant(const std::string& text, std::uint64_t sample) {
  const RandomStream random(21, RandomPurpose::kTest, sample, 0);
  std::uint64_t next = 0;
  const auto below = [&](std::size_t n) {
    return static_cast<std::size_t>(static_cast<double>(random.uniform(next++)) * static_cast<double>(n)) % n;
  };
  const char* hostile[] = {"nan", "-1",   "1e308", "0", "99999999999999999999", "'", "<",
                           "\\0", "&#0;", "inf",   "-", "0 0 0 0 0 0 0 0 0 0"};
  std::string s = text;
  const std::size_t injuries = 1 + below(2);
  for (std::size_t k = 0; k < injuries && s.size() > 8; ++k) {
    const std::size_t at = below(s.size() - 1), length = 1 + below(std::min<std::size_t>(40, s.size() - at - 1) + 1);
    switch (below(5)) {
      case 0:
        s[at] = static_cast<char>(s[at] ^ (1 << below(7)));
        break;
      case 1:
        s.erase(at, length);
        break;
      case 2:
        s.insert(at, s.substr(at, length));
        break;
      case 3: {
        const std::size_t digit = s.find_first_of("0123456789", at);
        if (digit != std::string::npos) s.replace(digit, 1, hostile[below(std::size(hostile))]);
        break;
      }
      default:
        s.resize(at + 1);
    }
  }
  return s;
}

void compile(const Morph& morph, int& models, int& errors) {
  const EntityDeclaration e{"m", morph};
  SceneOptions o;
  o.compile_seconds = 5;
  o.compile_memory = 1.0 * (1 << 30);
  try {
    const CompiledScene scene = compile_scene(std::span(&e, 1), {}, o);
    // What compiles is either imported or refused by name.
    if (find_unsupported(scene.mjb).empty()) import_model(scene.mjb);
    ++models;
  } catch (const Error& error) {
    EXPECT_FALSE(std::string(error.what()).empty());
    ++errors;
  }
}

TEST(Fuzz, ADamagedMjcfIsAModelOrAnError) {
  int models = 0, errors = 0;
  for (const char* file : {"walker.xml", "arm.xml"}) {
    const std::string text = read_file(kModels + file);
    for (std::uint64_t k = 0; k < kMutants; ++k) compile(Mjcf{.file = "", .xml = mutant(text, k)}, models, errors);
  }
  EXPECT_GT(models, 2) << "the mutants are too broken to reach the compiler";
  EXPECT_GT(errors, 10) << "the mutants are hardly broken";
}

TEST(Fuzz, ADamagedUrdfIsAModelOrAnError) {
  int models = 0, errors = 0;
  const std::string text = read_file(kModels + "two_link.urdf");
  for (std::uint64_t k = 0; k < kMutants; ++k) compile(Urdf{.file = "", .xml = mutant(text, k)}, models, errors);
  EXPECT_GT(models, 2);
  EXPECT_GT(errors, 5);
}

}  // namespace
}  // namespace cohort::sim
