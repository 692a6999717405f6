// Damaged bytes never crash a reader: keyed mutations of sound input either read or throw Error. Run under the
// sanitizers.
#include <algorithm>
#include <fstream>
#include <functional>

#include <gtest/gtest.h>

#include "data/fixture_folder.h"
#include "data/hdf5/hdf5_episodes.h"
#include "data/hdf5/metadata.h"
#include "data/images/codec.h"
#include "data/random_text.h"
#include "data/rlds/rlds_episodes.h"
#include "data/rlds/rlds_writer.h"
#include "formats/crc32c.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

// Small enough for the unit tests; COHORT_FUZZ_ROUNDS asks for more.
int rounds(int usual) {
  const char* wanted = std::getenv("COHORT_FUZZ_ROUNDS");
  return wanted ? std::atoi(wanted) : usual;
}

/// Flips bits, overwrites, cuts out, repeats or inserts a few bytes.
std::string mutate(std::string bytes, TestRandom& random) {
  const int changes = 1 + random.below(4);
  for (int c = 0; c < changes && !bytes.empty(); ++c) {
    const auto at = static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())));
    const auto length = static_cast<std::size_t>(1 + random.below(16));
    switch (random.below(6)) {
      case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
      case 1:
        bytes[at] = static_cast<char>(random.bits());
        break;
      case 2:
        bytes.erase(at, length);
        break;
      case 3:
        bytes.insert(at, bytes.substr(at, length));
        break;
      case 4:
        bytes.resize(at);
        break;
      default:
        bytes.insert(at, length, static_cast<char>(random.bits()));
        break;
    }
  }
  return bytes;
}

/// Runs `body` on mutations of `sound`; returns how many were refused.
int fuzz(const std::string& sound, int count, std::uint64_t seed, const std::function<void(const std::string&)>& body) {
  TestRandom random(seed);
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    const std::string bytes = mutate(sound, random);
    try {
      body(bytes);
    } catch (const Error&) {
      ++refused;
    }
  }
  return refused;
}

TEST(RobotFuzz, ExamplesReadOrAreRefused) {
  const RldsRecords records(fixture("nested"), {});
  const std::vector<FeatureLeaf> leaves = list_leaves(records.schema());
  const int refused = fuzz(std::string(records.payload(0)), rounds(1500), 1, [&](const std::string& bytes) {
    const Example example(bytes);
    for (const FeatureLeaf& leaf : leaves) {
      const LeafValues values = read_leaf(example, leaf);
      if (values.list.kind() == ListKind::kFloat) {
        std::vector<float> numbers(static_cast<std::size_t>(values.list.size()));
        values.list.read(0, numbers);
      } else if (values.list.kind() == ListKind::kInt64) {
        std::vector<std::int64_t> numbers(static_cast<std::size_t>(values.list.size()));
        values.list.read(0, numbers);
        if (!numbers.empty())
          values.list.read(static_cast<std::int64_t>(numbers.size()) - 1, std::span(numbers).first(1));
      } else if (leaf.encoding == FeatureEncoding::kZlib || leaf.encoding == FeatureEncoding::kBytes) {
        for (const std::string_view text : values.texts) decode_tensor(text, leaf, 8);
      }
    }
  });
  EXPECT_GT(refused, 0);
}

TEST(RobotFuzz, EpisodesReadOrAreRefused) {
  for (const char* name : {"arm", "corners"}) {
    OwnFolder folder;
    const RldsEpisodes sound(fixture(name));
    RldsWriter writer(folder.path(), sound.records().schema(), {.name = name});
    writer.add(sound.record(0));
    const fs::path home = writer.finish();
    const fs::path shard = home / format("{}-train.tfrecord-00000-of-00001", name);
    const int refused = fuzz(std::string(sound.record(0)), rounds(400), 9, [&](const std::string& bytes) {
      std::string framed;
      append_tfrecord(framed, bytes);  // with a checksum that is right: the damage reaches the reader
      std::ofstream(shard, std::ios::binary) << framed;
      const RldsEpisodes episodes(home, {.threads = 1});
      const auto episode = episodes.open(0);
      if (episode->steps() > 1 << 16) return;
      std::string scratch;
      for (std::size_t f = 0; f < episodes.fields().size(); ++f) try {
          const StepField& field = episodes.fields()[f];
          const auto count = static_cast<std::size_t>(std::max<std::int64_t>(0, field.elements()) * episode->steps());
          std::vector<double> numbers(field.kind == StepKind::kNumber ? count : 0);
          std::vector<std::int64_t> integers(numbers.size());
          if (field.kind == StepKind::kNumber) episode->read(f, 0, episode->steps(), std::span(numbers));
          if (field.kind == StepKind::kNumber) episode->read(f, 0, episode->steps(), std::span(integers));
          for (std::int64_t t = 0; t < episode->steps() && field.kind != StepKind::kNumber; ++t)
            scratch = field.kind == StepKind::kText ? episode->text(f, t) : episode->image(f, t, scratch).bytes;
        } catch (const Error&) {  // the other fields are asked for all the same
          continue;
        }
      for (const std::string& metadata : episodes.metadata_names()) scratch = episode->metadata(metadata);
    });
    EXPECT_GT(refused, 0) << name;
  }
}

TEST(RobotFuzz, ShardsReadOrAreRefusedAndSkippingFindsWhatIsSound) {
  OwnFolder folder;
  const fs::path file = folder.path() / "shard";
  const std::string sound = read_file(fixture("slices/1.0.0/slices-train.tfrecord-00000-of-00004"));
  const int refused = fuzz(sound, rounds(300), 2, [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    std::vector<RecordFault> faults;
    const TfRecordFile skipping(file, faults);
    for (std::size_t i = 0; i < skipping.size(); ++i) skipping.verify(i);  // what is left is sound
    const TfRecordFile strict(file);
    for (std::size_t i = 0; i < strict.size(); ++i) strict.verify(i);
  });
  EXPECT_GT(refused, 0);
}

TEST(RobotFuzz, SchemasAndInfosReadOrAreRefused) {
  const int schemas = fuzz(read_file(fixture("nested/1.0.0/features.json")), rounds(400), 3,
                           [](const std::string& json) { list_leaves(parse_features(json, "features.json")); });
  EXPECT_GT(schemas, 0);
  const int infos =
      fuzz(read_file(fixture("slices/1.0.0/dataset_info.json")), rounds(400), 4, [](const std::string& json) {
        const DatasetInfo info = parse_dataset_info(json, "dataset_info.json");
        for (const char* split : {"train[:95%]", "train[1shard:]+test"}) select_split(info, split);
        for (const SplitInfo& split : info.splits) shard_name(info, split, 0);
      });
  EXPECT_GT(infos, 0);
  std::string deep;
  for (int i = 0; i < 100000; ++i) deep += "{\"a\":";
  EXPECT_THROW(parse_features(deep, "deep"), Error);
}

TEST(RobotFuzz, ImagesDecodeOrAreRefused) {
  const RldsEpisodes episodes(fixture("arm"));
  const auto episode = episodes.open(0);
  std::string scratch;
  for (const char* name : {"observation/image", "observation/wrist", "observation/depth"}) {
    const std::string sound(episode->image(episodes.field_index(name), 0, scratch).bytes);
    Image expected, again;
    decode_image(sound, 3, expected);
    const int refused = fuzz(sound, rounds(500), 5, [&](const std::string& bytes) {
      decode_image(sound, 3, again);  // what was damaged before has left nothing behind
      ASSERT_EQ(again.pixels, expected.pixels);
      // A damaged header may ask for a hundred million pixels; that is memory and time, not a fault.
      const Image header = image_header(bytes);
      if (header.height * header.width > 1 << 20) return;
      Image image;
      decode_image(bytes, 3, image);
    });
    EXPECT_GT(refused, 0) << name;
  }
}

TEST(RobotFuzz, Hdf5FilesReadOrAreRefused) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  const fs::path file = folder.path() / "fuzz.hdf5";
  const std::string sound = read_file(fixture("droid_hdf5/a/trajectory.h5"));
  int refused = fuzz(sound, rounds(150), 6, [&](const std::string& bytes) {
    std::ofstream(file, std::ios::binary) << bytes;
    const Hdf5Episodes episodes(file);
    const auto episode = episodes.open(0);
    for (std::size_t f = 0; f < episodes.fields().size(); ++f) {
      const std::int64_t elements = episodes.fields()[f].elements();
      if (episodes.fields()[f].kind != StepKind::kNumber || elements * episode->steps() > 1 << 20) continue;
      std::vector<double> values(static_cast<std::size_t>(elements * episode->steps()));
      episode->read(f, 0, episode->steps(), std::span(values));
    }
  });
  EXPECT_GT(refused, 0);
  // Chunks: where libhdf5 said they lie, with bytes of any kind.
  const auto arrays = Hdf5Metadata(fixture("robomimic.hdf5")).arrays("/data/demo_2");
  const std::string whole = read_file(fixture("robomimic.hdf5"));
  TestRandom random(7);
  for (const auto& [name, array] : arrays) {
    if (array.chunks.empty() || array.filters.empty()) continue;
    for (int i = 0; i < rounds(40); ++i) {
      std::string bytes = whole;
      const Hdf5Chunk& chunk =
          array.chunks[static_cast<std::size_t>(random.below(static_cast<int>(array.chunks.size())))];
      if (chunk.bytes == 0) continue;
      bytes[chunk.offset + static_cast<std::uint64_t>(random.below(static_cast<int>(chunk.bytes)))] ^=
          static_cast<char>(1 + random.below(255));
      std::ofstream(file, std::ios::binary) << bytes;
      const MappedFile mapped(file);
      std::string out(static_cast<std::size_t>(array.shape[0] * array.row_bytes()), '\0'), inflating;
      try {
        read_rows(mapped, array, 0, array.shape[0], out.data(), inflating);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST(RobotFuzz, Hdf5AttributesReadOrAreRefused) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  const fs::path file = folder.path() / "attributes.hdf5";
  int refused = 0;
  for (const char* name : {"libero.hdf5", "robomimic.hdf5"}) {
    const std::string sound = read_file(fixture(name));
    TestRandom random(8);
    for (int i = 0; i < rounds(60); ++i) {
      // Around names and texts of attributes: elsewhere most of a file is pixels.
      std::string bytes = sound;
      const std::vector<std::string> marks{"num_samples", "problem_info", "env_args", "language_instruction",
                                           "model_file",  "total",        "mask",     "TREE",
                                           "HEAP",        "SNOD",         "OHDR",     "FRHP",
                                           "demo_"};
      std::size_t at = bytes.find(marks[static_cast<std::size_t>(random.below(static_cast<int>(marks.size())))],
                                  static_cast<std::size_t>(random.below(static_cast<int>(bytes.size()))));
      if (at == std::string::npos) at = static_cast<std::size_t>(random.below(static_cast<int>(bytes.size())));
      for (int change = 1 + random.below(3); change > 0; --change) {
        const std::size_t where =
            std::min(bytes.size() - 1, at > 60 ? at - 60 + static_cast<std::size_t>(random.below(160))
                                               : static_cast<std::size_t>(random.below(160)));
        bytes[where] = static_cast<char>(random.bits());
      }
      std::ofstream(file, std::ios::binary) << bytes;
      try {
        const Hdf5Metadata metadata(file);
        for (const std::string& demo : metadata.groups("/data")) {
          metadata.attributes("/data/" + demo);
          metadata.shapes("/data/" + demo);
        }
        metadata.attributes("/data");
        if (metadata.has("/mask"))
          for (const std::string& mask : metadata.data_sets("/mask")) metadata.texts("/mask/" + mask);
      } catch (const Error&) {
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

}  // namespace
}  // namespace cohort::data
