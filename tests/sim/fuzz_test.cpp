// Damaged and hostile MJCF and URDF: every one ends as a model or as an Error; the compiler runs in a child, so that a
// crash of the parser is an Error too. fuzz.py does the same to any models for any time.
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "core/error.h"
#include "core/files.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "sim/archive.h"
#include "sim/fuzz_models.h"
#include "sim/host/compile.h"
#include "sim/host/model.h"
#include "sim/host/scene.h"

namespace cohort::sim {
namespace {

const std::string kTests = COHORT_SOURCE_DIR "/tests/sim/";
/// Mutants of every file. Each costs a child process.
constexpr std::uint64_t kMutants = 40;

SceneOptions limits() {
  SceneOptions o;
  o.compile_seconds = 5;
  o.compile_memory = 1.0 * (1 << 30);
  return o;
}

/// The Error of compiling, importing and stepping, or "".
std::string error_of(const Morph& morph) {
  return message_of([&] {
    Scene scene(limits());
    scene.add_entity(morph, "m");
    scene.build(3);
    scene.set_random_ctrl(0);
    for (int i = 0; i < 3; ++i) scene.step();
  });
}

void count(const Morph& morph, int& models, int& errors) {
  ++(error_of(morph).empty() ? models : errors);
}

TEST(Fuzz, ADamagedMjcfIsAModelOrAnError) {
  int models = 0, errors = 0;
  for (const char* file : {"walker.xml", "tendons.xml"}) {
    const std::string text = read_file(kTests + "models/" + file);
    for (std::uint64_t k = 0; k < kMutants; ++k) count(Mjcf{.file = "", .xml = mutant(text, k)}, models, errors);
  }
  EXPECT_GT(models, 0) << "the mutants are too broken to reach the compiler";
  EXPECT_GT(errors, 10) << "the mutants are hardly broken";
}

TEST(Fuzz, ADamagedUrdfIsAModelOrAnError) {
  int models = 0, errors = 0;
  const std::string text = read_file(kTests + "models/two_link.urdf");
  for (std::uint64_t k = 0; k < kMutants; ++k) count(Urdf{.file = "", .xml = mutant(text, k)}, models, errors);
  EXPECT_GT(models, 0);
  EXPECT_GT(errors, 5);
}

// The committed corpus: hostile files, and what their error has to name. A file whose name begins with "fine" is odd,
// but a model.
TEST(Fuzz, EveryFileOfTheCorpusEndsAsItShould) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTests + "fuzz")) {
    const std::string name = entry.path().filename();
    if (name.ends_with(".stl")) continue;  // a part of another one
    ++files;
    const Morph morph = name.ends_with(".urdf") ? Morph(Urdf{.file = entry.path()}) : Morph(Mjcf{entry.path()});
    const std::string error = error_of(morph);
    if (name.starts_with("fine")) {
      EXPECT_EQ(error, "") << name;
    } else {
      EXPECT_NE(error.find(name), std::string::npos) << name << ": " << error;
    }
  }
  EXPECT_GE(files, 14);
}

TEST(Fuzz, DepthAndEntitiesWithoutEndAreErrors) {
  std::string deep = "<mujoco><worldbody>";
  for (int i = 0; i < 20000; ++i) deep += "<body><joint/><geom size='.1'/>";
  EXPECT_NE(error_of(Mjcf{.file = "", .xml = deep}), "");
  std::string links = "<robot name='r'><link name='l0'/>";
  for (int i = 1; i < 3000; ++i) {
    links +=
        format("<link name='l{}'/><joint name='j{}' type='revolute'><parent link='l{}'/><child link='l{}'/></joint>", i,
               i, i - 1, i);
  }
  EXPECT_NE(error_of(Urdf{.file = "", .xml = links + "</robot>"}), "");  // links without mass that move
}

TEST(Fuzz, ADamagedCompiledModelIsAnError) {
  const auto path = std::filesystem::temp_directory_path() / format("cohort_fuzz_{}.cohort", getpid());
  const EntityDeclaration e{"m", Mjcf{kTests + "models/walker.xml"}};
  save_model(import_model(compile_scene(std::span(&e, 1), {}, limits()).mjb), path);
  const std::string whole = read_file(path);
  for (std::uint64_t k = 0; k < 200; ++k) {
    const std::string broken = mutant(whole, k);
    if (broken == whole) continue;
    write_file_atomically(path, broken);
    EXPECT_THROW(load_model(path), Error) << "mutant " << k;
  }
  std::filesystem::remove(path);
}

// Somebody's own tool may write a wrong model with a right checksum. What is taken is stepped: an index that points
// nowhere would end the process.
TEST(Fuzz, ACompiledModelOfWrongNumbersWithARightChecksumIsAModelOrAnError) {
  constexpr std::size_t kHeader = sizeof(PartHeader), kChecksum = offsetof(PartHeader, checksum);
  constexpr std::uint32_t kWrong[] = {0x7fffffff, 0xffffffff, 0x10000, 0x7fc00000, 64, 5, 1};
  const auto path = std::filesystem::temp_directory_path() / format("cohort_fuzz_numbers_{}.cohort", getpid());
  int models = 0, errors = 0;
  for (const char* file : {"walker.xml", "tendons.xml", "terrain.xml"}) {
    const EntityDeclaration e{"m", Mjcf{kTests + "models/" + file}};
    save_model(import_model(compile_scene(std::span(&e, 1), {}, limits()).mjb), path);
    const std::string whole = read_file(path);
    for (std::uint64_t k = 0; k < 150; ++k) {
      const RandomStream random(13, RandomPurpose::kTest, k, 0);
      std::string changed = whole;
      const std::size_t at = kHeader + random.below(0, static_cast<std::uint32_t>(changed.size() - kHeader - 4));
      std::memcpy(changed.data() + at, &kWrong[k % std::size(kWrong)], 4);
      const std::uint64_t hash = part_checksum(std::string_view(changed).substr(kHeader));
      std::memcpy(changed.data() + kChecksum, &hash, sizeof hash);
      write_file_atomically(path, changed);
      try {
        Scene scene(limits());
        scene.build_from_file(path, 2);
        for (int i = 0; i < 2; ++i) scene.step();
        ++models;
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("checksum"), std::string::npos) << error.what();
        ++errors;
      }
    }
  }
  std::filesystem::remove(path);
  EXPECT_GT(models, 50);
  EXPECT_GT(errors, 50);
}

}  // namespace
}  // namespace cohort::sim
