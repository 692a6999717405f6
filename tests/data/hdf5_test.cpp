// The HDF5 reader against what h5py reads from the same files (fixtures/make_hdf5_fixture.py).
#include <cmath>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/metadata.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::json;

/// Every field of an episode equals the dump that h5py made of it.
void expect_episode(const Hdf5Episodes& episodes, const Episode& episode, const Json& expected) {
  for (std::size_t f = 0; f < episodes.fields().size(); ++f) {
    const StepField& field = episodes.fields()[f];
    SCOPED_TRACE(episode.location() + " " + field.name);
    const Json& wanted = expected.at(field.name);
    EXPECT_EQ(episode.steps(), wanted["shape"][0].get<std::int64_t>());
    if (field.kind == StepKind::kImage) {
      for (std::int64_t t = 0; t < episode.steps(); ++t) {
        std::string scratch;
        const StoredImage image = episode.image(f, t, scratch);
        std::int64_t sum = 0, weighted = 0;
        for (std::size_t i = 0; i < image.bytes.size(); ++i) {
          const auto pixel = static_cast<unsigned char>(image.bytes[i]);
          sum += pixel;
          weighted += static_cast<std::int64_t>(pixel * (i % 251));
        }
        EXPECT_EQ(sum, wanted["images"][static_cast<std::size_t>(t)][0].get<std::int64_t>());
        EXPECT_EQ(weighted, wanted["images"][static_cast<std::size_t>(t)][1].get<std::int64_t>());
      }
      continue;
    }
    std::vector<double> values(wanted["values"].size());
    episode.read(f, 0, episode.steps(), values);
    EXPECT_EQ(values, wanted["values"].get<std::vector<double>>());
    for (std::int64_t t = 0; t + 1 < episode.steps(); ++t) {  // two rows across the borders of chunks
      const auto elements = static_cast<std::size_t>(field.elements());
      std::vector<float> rows(2 * elements);
      episode.read(f, t, 2, rows);
      for (std::size_t i = 0; i < rows.size(); ++i)
        EXPECT_EQ(rows[i], static_cast<float>(values[static_cast<std::size_t>(t) * elements + i]));
    }
  }
}

class Hdf5 : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  }
  const Json expected_ = fixture_json("hdf5_expected.json");
};

TEST_F(Hdf5, RobomimicReadsAsH5pyReadsIt) {
  const Hdf5Episodes episodes(fixture("robomimic.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  EXPECT_EQ(episodes.episode_name(1), "data/demo_10") << "demos are ordered by number";
  EXPECT_EQ(episodes.fields().size(), expected_["robomimic"]["demo_2"].size());
  EXPECT_EQ(episodes.fields()[episodes.field_index("dones")].type, ElementType::kBool);
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["robomimic"][episodes.episode_name(e).substr(5)]);
  EXPECT_EQ(episodes.open(0)->metadata("model_file"), "<mujoco/>");
  EXPECT_EQ(episodes.open(0)->metadata("num_samples"), "5");
  EXPECT_NE(episodes.open(0)->metadata("data/env_args").find("Lift"), std::string::npos);
}

TEST_F(Hdf5, LiberoReadsAsH5pyReadsItWithItsInstruction) {
  const Hdf5Episodes episodes(fixture("libero.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["libero"][episodes.episode_name(e).substr(5)]);
  EXPECT_EQ(episodes.open(1)->metadata("language_instruction"), "put the bowl on the plate");
}

TEST_F(Hdf5, EveryPackingReadsAsH5pyReadsIt) {
  const Hdf5Episodes episodes(fixture("filters.hdf5"));
  ASSERT_EQ(episodes.size(), 2);
  EXPECT_EQ(episodes.fields().size(), expected_["filters"]["demo_0"].size());
  for (std::int64_t e = 0; e < episodes.size(); ++e)
    expect_episode(episodes, *episodes.open(e), expected_["filters"][episodes.episode_name(e).substr(5)]);
}

TEST_F(Hdf5, AFilterThatIsNotReadIsNamedWithTheRemedy) {
  const auto open = [] { Hdf5Episodes(fixture("unknown_filter.hdf5")).open(0); };
  EXPECT_ERROR(open(), "unknown_filter.hdf5: /data/demo_0/actions is packed with the filter 6 (scaleoffset)");
  EXPECT_ERROR(open(), "repack the file with h5repack -f GZIP=4");
}

TEST_F(Hdf5, TrajectoryFilesAreReadByManifestAndByFolder) {
  const Hdf5Episodes listed(fixture("droid_hdf5/manifest.json"));
  ASSERT_EQ(listed.size(), 2);
  EXPECT_EQ(listed.steps(0), 4);
  EXPECT_EQ(listed.steps(1), 5);
  EXPECT_EQ(listed.open(1)->metadata("lang"), "close the lid");
  EXPECT_EQ(listed.open(1)->metadata("building"), "lab");
  EXPECT_EQ(listed.open(1)->metadata("success"), "true");
  expect_episode(listed, *listed.open(0), expected_["droid"]["a"]);
  expect_episode(listed, *listed.open(1), expected_["droid"]["b"]);
  EXPECT_EQ(Hdf5Episodes(fixture("droid_hdf5")).size(), 2);
}

TEST_F(Hdf5, AMaskSelectsDemosAndAWrongOneNamesThoseThatExist) {
  const Hdf5Episodes train(fixture("robomimic.hdf5"), {.filter_key = "train"});
  ASSERT_EQ(train.size(), 1);
  EXPECT_EQ(train.episode_name(0), "data/demo_10");
  EXPECT_EQ(Hdf5Episodes(fixture("robomimic.hdf5"), {.filter_key = "valid"}).episode_name(0), "data/demo_2");
  EXPECT_ERROR(Hdf5Episodes(fixture("robomimic.hdf5"), {.filter_key = "best"}), "its masks are train, valid");
}

TEST_F(Hdf5, ManyThreadsReadTheSameFileAtTheSameTime) {
  const Hdf5Episodes episodes(fixture("robomimic.hdf5"), {.cache_bytes = 1});  // nothing is kept
  const std::size_t states = episodes.field_index("states");
  const auto wanted = expected_["robomimic"]["demo_10"]["states"]["values"].get<std::vector<double>>();
  std::vector<std::thread> threads;
  std::vector<int> good(4, 0);
  for (std::size_t i = 0; i < good.size(); ++i)
    threads.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        std::vector<double> values(wanted.size());
        episodes.open(1)->read(states, 0, 7, values);
        good[i] += values == wanted;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(good, std::vector<int>(4, 20));
}

TEST_F(Hdf5, ACutFileIsNamed) {
  OwnFolder folder;
  const fs::path copy = folder.path() / "cut.hdf5";
  const std::string bytes = read_file(fixture("robomimic.hdf5"));
  std::ofstream(copy, std::ios::binary) << bytes.substr(0, bytes.size() / 2);
  EXPECT_ERROR(Hdf5Episodes{copy}, copy.string());
  std::ofstream(copy, std::ios::binary) << "not HDF5";
  EXPECT_ERROR(Hdf5Episodes{copy}, "cut.hdf5 cannot be opened as HDF5");
  EXPECT_ERROR(Hdf5Episodes{folder.path() / "none.hdf5"}, "there is no file or folder");
}

TEST_F(Hdf5, AFlippedBitInACheckedChunkIsFound) {
  OwnFolder folder;
  const fs::path copy = folder.path() / "flip.hdf5";
  const auto arrays = Hdf5Metadata(fixture("robomimic.hdf5")).arrays("/data/demo_2");
  std::string bytes = read_file(fixture("robomimic.hdf5"));
  for (const auto& [name, array] : arrays)
    if (name == "obs/short") bytes[array.chunks[0].offset] ^= 4;
  std::ofstream(copy, std::ios::binary) << bytes;
  const Hdf5Episodes episodes(copy);
  std::vector<double> values(10);
  EXPECT_ERROR(episodes.open(0)->read(episodes.field_index("obs/short"), 0, 5, values),
               "/data/demo_2/obs/short: a chunk does not have its checksum");
}

}  // namespace
}  // namespace cohort::data
