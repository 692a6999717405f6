// Readers of RLDS data against what tensorflow-datasets itself reads from the same files
// (fixtures/make_rlds_fixture.py).
#include <algorithm>
#include <cstdlib>
#include <fstream>

#include <gtest/gtest.h>

#include "core/json_text.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/images/codec.h"
#include "data/rlds/rlds_episodes.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;
using Json = nlohmann::json;

// Both sides run libjpeg-turbo with the same transform; versions may round a pixel the other way.
constexpr double kJpegMeanTolerance = 0.05;
constexpr int kJpegPixelTolerance = 1;

/// [sum, sum weighted by position modulo 251, mean] of an image's bytes, as the fixture has them.
std::vector<double> image_sums(const Image& image) {
  double sum = 0, weighted = 0;
  for (std::size_t i = 0; i < image.pixels.size(); ++i) {
    sum += image.pixels[i];
    weighted += static_cast<double>(image.pixels[i]) * static_cast<double>(i % 251);
  }
  return {sum, weighted, sum / static_cast<double>(image.pixels.size())};
}

void expect_images(const std::vector<std::string_view>& stored, const FeatureLeaf& leaf, const Json& expected) {
  ASSERT_EQ(stored.size(), expected.size()) << leaf.key;
  for (std::size_t i = 0; i < stored.size(); ++i) {
    Image image;
    decode_image(stored[i], leaf.shape[2], image);
    const std::vector<double> sums = image_sums(image);
    if (leaf.encoding == FeatureEncoding::kJpeg) {
      EXPECT_NEAR(sums[2], expected[i][2].get<double>(), kJpegMeanTolerance) << leaf.key << " " << i;
    } else {
      EXPECT_EQ(sums[0], expected[i][0].get<double>()) << leaf.key << " " << i;
      EXPECT_EQ(sums[1], expected[i][1].get<double>()) << leaf.key << " " << i;
    }
  }
}

void expect_leaf(const Example& example, const FeatureLeaf& leaf, const Json& expected) {
  SCOPED_TRACE(leaf.key);
  const LeafValues values = read_leaf(example, leaf);
  const Json& wanted = expected.at("values");
  if (leaf.kind == FeatureKind::kImage) {
    expect_images(values.texts, leaf, wanted);
  } else if (leaf.encoding != FeatureEncoding::kNone) {
    std::int64_t elements = 1;
    for (const std::int64_t n : leaf.dynamic_shape() ? values.dynamic_shape : leaf.shape) elements *= n;
    ASSERT_EQ(values.texts.size(), 1u);
    EXPECT_EQ(decode_tensor(values.texts[0], leaf, elements), wanted.get<std::vector<double>>());
  } else if (values.list.kind() == ListKind::kInt64) {
    std::vector<std::int64_t> numbers(static_cast<std::size_t>(values.list.size()));
    values.list.read(0, numbers);
    ASSERT_EQ(numbers.size(), wanted.size());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (leaf.dtype == "uint64")
        EXPECT_EQ(static_cast<std::uint64_t>(numbers[i]), wanted[i].get<std::uint64_t>());
      else if (leaf.dtype == "bool")
        EXPECT_EQ(numbers[i] != 0, wanted[i].get<bool>());
      else
        EXPECT_EQ(numbers[i], wanted[i].get<std::int64_t>());
    }
    for (std::size_t i = 0; i + 1 < numbers.size(); i += 2) {  // from the middle, two at a time
      std::int64_t pair[2];
      values.list.read(static_cast<std::int64_t>(i), pair);
      EXPECT_EQ(pair[0], numbers[i]);
      EXPECT_EQ(pair[1], numbers[i + 1]);
    }
  } else if (values.list.kind() == ListKind::kFloat) {
    std::vector<float> numbers(static_cast<std::size_t>(values.list.size()));
    values.list.read(0, numbers);
    EXPECT_EQ(std::vector<double>(numbers.begin(), numbers.end()), wanted.get<std::vector<double>>());
  } else {
    ASSERT_EQ(values.texts.size(), wanted.size());
    for (std::size_t i = 0; i < values.texts.size(); ++i) EXPECT_EQ(values.texts[i], wanted[i].get<std::string>());
  }
  if (expected.contains("rows")) {
    EXPECT_EQ(values.row_lengths, expected["rows"].get<std::vector<std::vector<std::int64_t>>>());
  } else if (leaf.sequences.size() > 1) {
    std::vector<std::int64_t> lengths;
    for (const Json& shape : expected.at("step_shapes")) lengths.push_back(shape.at(0).get<std::int64_t>());
    EXPECT_EQ(values.row_lengths.at(0), lengths);
  }
}

void expect_records(const std::string& name) {
  const Json expected = fixture_json("rlds_expected.json").at(name);
  const RldsRecords records(fixture(name), {.on_corrupt = "error"});
  ASSERT_EQ(static_cast<std::size_t>(records.size()), expected.size());
  const std::vector<FeatureLeaf> leaves = list_leaves(records.schema());
  for (std::int64_t i = 0; i < records.size(); ++i) {
    SCOPED_TRACE(records.location(i));
    const Example example(records.payload(i));
    const Json& record = expected[static_cast<std::size_t>(i)];
    std::size_t compared = 0;
    for (const FeatureLeaf& leaf : leaves) {
      if (record.contains(leaf.key)) {
        expect_leaf(example, leaf, record[leaf.key]);
        ++compared;
      } else {  // a data set without steps within the record: there is nothing that would have a type
        EXPECT_EQ(read_leaf(example, leaf).list.size(), 0) << leaf.key;
      }
    }
    EXPECT_EQ(compared, record.size());
  }
}

TEST(Rlds, EveryKindOfFeatureReadsAsTensorflowDatasetsReadsIt) {
  expect_records("nested");
}

TEST(Rlds, EpisodesReadAsTensorflowDatasetsReadsThem) {
  expect_records("arm");
}

TEST(Rlds, StepsOfEpisodesAreReadOneByOne) {
  const Json expected = fixture_json("rlds_expected.json").at("arm");
  const RldsEpisodes episodes(fixture("arm"));
  ASSERT_EQ(episodes.size(), 5);
  EXPECT_EQ(episodes.name(), "arm");
  const std::size_t pose = episodes.field_index("observation/pose"), first = episodes.field_index("is_first"),
                    text = episodes.field_index("language_instruction"), negative = episodes.field_index("negative"),
                    matrix = episodes.field_index("observation/matrix"),
                    depth = episodes.field_index("observation/depth");
  EXPECT_EQ(episodes.fields()[pose].type, ElementType::kFloat64);
  EXPECT_EQ(episodes.fields()[matrix].shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(episodes.fields()[episodes.field_index("touched")].elements(), -1);
  for (std::int64_t e = 0; e < episodes.size(); ++e) {
    const Json& record = expected[static_cast<std::size_t>(e)];
    const auto episode = episodes.open(e);
    ASSERT_EQ(episode->steps(), record["steps/is_first"]["values"].size());
    EXPECT_EQ(episode->steps(), episodes.steps(e));
    EXPECT_EQ(episode->metadata("episode_metadata/file_path"),
              record["episode_metadata/file_path"]["values"][0].get<std::string>());
    EXPECT_EQ(episode->metadata("episode_metadata/number"),
              std::to_string(record["episode_metadata/number"]["values"][0].get<int>()));
    for (std::int64_t t = 0; t < episode->steps(); ++t) {
      const auto at = static_cast<std::size_t>(t);
      double values[6];
      episode->read(pose, t, 1, values);
      float flag = -1, minus = 0, one_matrix[6];
      episode->read(first, t, 1, std::span(&flag, 1));
      episode->read(negative, t, 1, std::span(&minus, 1));
      episode->read(matrix, t, 1, one_matrix);
      EXPECT_EQ(flag, t == 0 ? 1.0f : 0.0f);
      EXPECT_EQ(minus, static_cast<float>(record["steps/negative"]["values"][at].get<double>()));
      for (std::size_t k = 0; k < 6; ++k) {
        EXPECT_EQ(values[k], record["steps/observation/pose"]["values"][at * 6 + k].get<double>());
        EXPECT_EQ(one_matrix[k], record["steps/observation/matrix"]["values"][at * 6 + k].get<float>());
      }
      EXPECT_EQ(episode->text(text, t), record["steps/language_instruction"]["values"][at].get<std::string>());
      std::string scratch;
      Image image;
      decode_image(episode->image(depth, t, scratch).bytes, 1, image);
      EXPECT_EQ(image.height, 4 + t);
    }
  }
}

// fixtures/make_corner_fixture.py
TEST(Rlds, SequencesAndSeveralTextsInAStepAreRefusedByName) {
  const RldsEpisodes episodes(fixture("corners"));
  const auto field = [&](const char* name) { return episodes.field_index(name); };
  EXPECT_TRUE(episodes.fields()[field("words")].ragged);
  EXPECT_EQ(episodes.fields()[field("depth")].stored_type, "uint16");
  EXPECT_EQ(episodes.fields()[field("metres")].fault(), "has pixels of float32, not uint8");
  EXPECT_EQ(episodes.fields()[field("view")].fault(), "");
  for (std::int64_t e = 0; e < episodes.size(); ++e) {
    const auto episode = episodes.open(e);
    std::string scratch;
    for (std::int64_t t = 0; t < episode->steps(); ++t) {
      EXPECT_ERROR(episode->text(field("words"), t), "the field words holds a sequence in every step");
      EXPECT_ERROR(episode->text(field("pair"), t), "the field pair holds 2 texts in a step");
      EXPECT_ERROR(episode->image(field("views"), t, scratch), "the field views holds a sequence in every step");
      EXPECT_EQ(episode->text(field("language_instruction"), t), "lift");
    }
  }
  for (const char* name : {"episode_metadata/origin", "episode_metadata/tags"})
    EXPECT_EQ(std::count(episodes.metadata_names().begin(), episodes.metadata_names().end(), name), 0)
        << name << " is not one value per episode";
}

TEST(Rlds, IntegersAreReadExactly) {
  constexpr std::int64_t kLarge = (std::int64_t{1} << 53) + 1;  // no float64
  const RldsEpisodes episodes(fixture("corners"));
  const std::size_t stamp = episodes.field_index("stamp"), serial = episodes.field_index("serial"),
                    packed = episodes.field_index("packed");
  for (std::int64_t e = 0; e < episodes.size(); ++e) {
    const auto episode = episodes.open(e);
    for (std::int64_t t = 0; t < episode->steps(); ++t) {
      std::int64_t one = 0, two[2] = {};
      episode->read(stamp, t, 1, std::span(&one, 1));
      EXPECT_EQ(one, kLarge + 2 * t);
      episode->read(serial, t, 1, std::span(&one, 1));
      EXPECT_EQ(static_cast<std::uint64_t>(one), ~std::uint64_t{0} - static_cast<std::uint64_t>(t));
      episode->read(packed, t, 1, two);
      EXPECT_EQ(two[0], kLarge + 2 * t);
      EXPECT_EQ(two[1], -kLarge);
      EXPECT_ERROR(episode->read(episodes.field_index("action"), t, 1, std::span(two)), "no integers");
    }
    // The fixture's episode k has 2 + k steps.
    EXPECT_EQ(episode->metadata("episode_metadata/number"), std::to_string(kLarge + 2 * (episode->steps() - 2)));
  }
}

TEST(Rlds, AJpegDecodesToThePixelsThatTensorflowMakesOfIt) {
  const std::vector<int> expected = fixture_json("rlds_expected.json").at("arm_first_image").get<std::vector<int>>();
  const RldsEpisodes episodes(fixture("arm"));
  std::string scratch;
  Image image;
  decode_image(episodes.open(0)->image(episodes.field_index("observation/image"), 0, scratch).bytes, 3, image);
  ASSERT_EQ(image.pixels.size(), expected.size());
  int largest = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    largest = std::max(largest, std::abs(expected[i] - image.pixels[i]));
  EXPECT_LE(largest, kJpegPixelTolerance);
}

TEST(Rlds, SlicesSelectWhatTensorflowDatasetsSelects) {
  const Json expected = fixture_json("rlds_expected.json").at("slices");
  for (const auto& [split, ids] : expected.items()) {
    if (ids.is_null()) {
      EXPECT_THROW(RldsRecords(fixture("slices"), {.split = split}), Error) << split;
      continue;
    }
    const RldsRecords records(fixture("slices"), {.split = split});
    std::vector<std::int64_t> found;
    for (std::int64_t i = 0; i < records.size(); ++i) {
      const Example example(records.payload(i));
      std::int64_t id = -1;
      const Example::Entry* entry = example.find("id");
      ExampleList(entry->kind, entry->message).read(0, std::span(&id, 1));
      found.push_back(id);
    }
    EXPECT_EQ(found, ids.get<std::vector<std::int64_t>>()) << split;
  }
}

TEST(Rlds, AnEmptySplitIsAFaultForWhoAsksForItOnly) {
  OwnFolder folder;
  const auto set = folder.path() / "arm";
  fs::copy(fixture("arm"), set, fs::copy_options::recursive);
  const auto info = set / "1.0.0/dataset_info.json";
  auto json = parse_json<nlohmann::json>(read_file(info));
  json["splits"].push_back({{"name", "val"}, {"numBytes", "0"}});
  write_file_atomically(info, json_text(json));
  EXPECT_EQ(RldsEpisodes(set).size(), 5);
  EXPECT_EQ(RldsEpisodes(set, {.split = "all"}).size(), 5);
  EXPECT_ERROR(RldsEpisodes(set, {.split = "val"}), "the split 'val' of the data set arm is empty");
}

TEST(Rlds, AMissingShardNamesThoseThatAreThere) {
  OwnFolder folder;
  const auto set = folder.path() / "arm";
  fs::copy(fixture("arm"), set, fs::copy_options::recursive);
  const auto below = set / "1.0.0";
  fs::rename(below / "arm-train.tfrecord-00000-of-00002", below / "arm-train.tfrecord-00000-of-00008");
  EXPECT_ERROR(RldsEpisodes{set},
               "the folder holds arm-train.tfrecord-00000-of-00008, "
               "arm-train.tfrecord-00001-of-00002; the first is of 8 shards");
  write_file_atomically(below / "arm-train.tfrecord-00000-of-00002",
                        "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
  EXPECT_ERROR(RldsEpisodes{set}, "the file is a Git LFS pointer: fetch the file itself with `git lfs pull`");
}

TEST(Rlds, AWrongSplitIsExplained) {
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "validation"}), "has no split 'validation'");
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "validation"}), "it has train, test");
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "train[:200]"}), "but train has 103");
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "train[9:9]"}), "selects no record");
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "train[a:]"}), "has the bound 'a'");
  EXPECT_ERROR(RldsRecords(fixture("slices"), {.split = "train[5]"}), "must be a slice");
}

/// A copy of the arm data set that a test may damage.
class DamagedRlds : public ::testing::Test {
 protected:
  DamagedRlds() { fs::copy(fixture("arm"), folder_.path() / "arm", fs::copy_options::recursive); }
  fs::path root() const { return folder_.path() / "arm"; }
  fs::path shard(int i) const { return root() / "1.0.0" / format("arm-train.tfrecord-0000{}-of-00002", i); }
  void flip(const fs::path& path, std::int64_t offset) {
    std::string bytes = read_file(path);
    bytes[static_cast<std::size_t>(offset)] ^= 1;
    std::ofstream(path, std::ios::binary) << bytes;
  }
  void rewrite(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = read_file(root() / "1.0.0" / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    std::ofstream(root() / "1.0.0" / file) << text.replace(at, from.size(), to);
  }
  OwnFolder folder_;
};

TEST_F(DamagedRlds, ACorruptRecordIsNamedByFileAndOffset) {
  const std::uint64_t second = TfRecordFile(shard(1)).offset(1);
  flip(shard(1), static_cast<std::int64_t>(second) + 500);
  const RldsEpisodes episodes(root());
  std::string message;
  for (std::int64_t e = 0; e < episodes.size(); ++e) message += message_of([&] { episodes.open(e); });
  EXPECT_NE(message.find(format("{}: record at offset {}: the record's bytes do not have their checksum",
                                shard(1).string(), second)),
            std::string::npos)
      << message;
}

TEST_F(DamagedRlds, ACorruptRecordIsSkippedAndCountedOnRequest) {
  const RldsEpisodes whole(root());
  const auto first_in_second = static_cast<std::int64_t>(TfRecordFile(shard(0)).size());
  const std::uint64_t hash = whole.content_hash();
  flip(shard(1), static_cast<std::int64_t>(TfRecordFile(shard(1)).offset(1)) + 500);
  const RldsEpisodes rest(root(), {.on_corrupt = "skip"});
  ASSERT_EQ(rest.skipped().size(), 1u);
  EXPECT_NE(rest.skipped()[0].find("do not have their checksum"), std::string::npos);
  EXPECT_EQ(rest.size(), whole.size() - 1);
  EXPECT_NE(rest.content_hash(), hash);
  // The others keep their numbers for slices: record first_in_second + 1 is the damaged one.
  const RldsEpisodes slice(root(), {.split = format("train[{}:]", first_in_second), .on_corrupt = "skip"});
  EXPECT_EQ(slice.size(), whole.size() - first_in_second - 1);
  EXPECT_EQ(slice.open(1)->metadata("episode_metadata/file_path"),
            whole.open(first_in_second + 2)->metadata("episode_metadata/file_path"));
}

TEST_F(DamagedRlds, BehindADamagedLengthTheNextSoundRecordIsFound) {
  const RldsEpisodes whole(root());
  flip(shard(1), static_cast<std::int64_t>(TfRecordFile(shard(1)).offset(1)) + 1);
  EXPECT_ERROR(RldsEpisodes{root()}, "the record's length does not have its checksum");
  const RldsEpisodes rest(root(), {.on_corrupt = "skip"});
  EXPECT_EQ(rest.size(), whole.size() - 1);
  EXPECT_EQ(rest.skipped().size(), 1u);
}

TEST_F(DamagedRlds, ATruncatedShardIsNamedWithTheOffsetOfItsLastRecord) {
  const TfRecordFile file(shard(1));
  const std::uint64_t last = file.offset(file.size() - 1);
  fs::resize_file(shard(1), fs::file_size(shard(1)) - 100);
  EXPECT_ERROR(RldsEpisodes{root()}, format("{}: record at offset {}: truncated", shard(1).string(), last));
  EXPECT_EQ(RldsEpisodes(root(), {.on_corrupt = "skip"}).skipped().size(), 1u);
  fs::resize_file(shard(1), last);  // cut between two records
  EXPECT_ERROR(RldsEpisodes{root()}, "the shard was cut between two records");
  EXPECT_EQ(RldsEpisodes(root(), {.on_corrupt = "skip"}).skipped().size(), 1u);
}

/// The ids that a slice of the set `slices` still gives (26 records in its first shard).
std::vector<std::int64_t> ids_of(const fs::path& root, const std::string& split, std::int64_t* lost = nullptr) {
  const RldsRecords records(root, {.split = split, .on_corrupt = "skip"});
  std::vector<std::int64_t> ids;
  for (std::int64_t i = 0; i < records.size(); ++i) {
    const Example example(records.payload(i));
    const Example::Entry* entry = example.find("id");
    ExampleList(entry->kind, entry->message).read(0, std::span(&ids.emplace_back(), 1));
  }
  if (lost)
    for (const RecordFault& fault : records.faults()) *lost += fault.records;
  return ids;
}

TEST(Rlds, RecordsBehindAGapKeepTheirNumbersAndAllLostOnesAreCounted) {
  OwnFolder folder;
  fs::copy(fixture("slices"), folder.path() / "slices", fs::copy_options::recursive);
  const fs::path root = folder.path() / "slices", shard = root / "1.0.0" / "slices-train.tfrecord-00000-of-00004";
  const std::string sound = read_file(shard);
  const TfRecordFile file(shard);
  const std::vector<std::int64_t> before = ids_of(root, "train[:10]");
  ASSERT_GE(file.size(), 12u);
  const auto damage = [&](const std::vector<std::size_t>& zeroed, std::size_t cut_to) {
    std::string bytes = sound;
    for (const std::size_t r : zeroed)
      std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(file.offset(r)), file.offset(r + 1) - file.offset(r),
                  '\0');
    if (cut_to > 0) bytes.resize(file.offset(cut_to) + 3);
    std::ofstream(shard, std::ios::binary) << bytes;
  };
  const auto part = [&](std::size_t begin, std::size_t end) {
    return std::vector<std::int64_t>(before.begin() + static_cast<std::ptrdiff_t>(begin),
                                     before.begin() + static_cast<std::ptrdiff_t>(end));
  };
  damage({0, 1}, 0);
  std::int64_t lost = 0;
  EXPECT_ERROR(ids_of(root, "train[:2]"), "no sound record is left");
  EXPECT_EQ(ids_of(root, "train[:10]", &lost), part(2, 10));
  EXPECT_EQ(lost, 2);
  EXPECT_EQ(ids_of(root, "train[2:5]"), part(2, 5));
  damage({}, 1);  // all but the first record are gone, the second one's header cut
  lost = 0;
  EXPECT_EQ(ids_of(root, "train[:10]", &lost), part(0, 1));
  EXPECT_EQ(lost, static_cast<std::int64_t>(file.size()) - 1);
  damage({2, 3, 6}, 0);  // two gaps: one took two records, but which?
  lost = 0;
  EXPECT_EQ(ids_of(root, "train[:10]", &lost),
            (std::vector<std::int64_t>{before[0], before[1], before[4], before[5], before[7], before[8], before[9]}));
  EXPECT_EQ(lost, 3);
  EXPECT_EQ(ids_of(root, "train[:4]"), part(0, 2)) << "record 4 may be the third or the fourth";
  EXPECT_EQ(ids_of(root, "train[7:10]"), part(7, 10)) << "those behind are counted from the end";
}

TEST_F(DamagedRlds, AMissingShardIsNamed) {
  fs::remove(shard(1));
  EXPECT_ERROR(RldsEpisodes{root()}, format("shard {} is missing", shard(1).string()));
  EXPECT_GE(RldsEpisodes(root(), {.split = "train[:1]"}).size(), 1) << "what is not asked for need not be there";
}

TEST_F(DamagedRlds, AnUnknownFeatureTypeIsNamedWithItsPlace) {
  rewrite("features.json", "\"tensor\": {", "\"pointCloud\": {");
  EXPECT_ERROR(RldsEpisodes{root()}, "unknown feature type tensorflow_datasets.core.features.");
  EXPECT_ERROR(RldsEpisodes{root()}, "features.json: feature episode_metadata/number");
}

TEST_F(DamagedRlds, AFieldOfTheWrongWidthIsNamed) {
  rewrite("features.json", "\"7\"", "\"5\"");
  const RldsEpisodes episodes(root());
  EXPECT_ERROR(episodes.open(0), "steps/action holds");
  EXPECT_ERROR(episodes.open(0), "arm-train.tfrecord-00000-of-00002: record at offset 0");
}

TEST_F(DamagedRlds, AnEmptyEpisodeIsNamedAndCanBeSkipped) {
  std::string shard_bytes;
  append_tfrecord(shard_bytes, ExampleWriter().finish());
  const std::string rest(TfRecordFile(shard(0)).payload(1));
  append_tfrecord(shard_bytes, rest);
  std::ofstream(shard(0), std::ios::binary) << shard_bytes;
  rewrite("dataset_info.json", format("\"{}\"", TfRecordFile(fixture("arm") / "1.0.0" / shard(0).filename()).size()),
          "\"2\"");
  EXPECT_ERROR(RldsEpisodes{root()}, "arm-train.tfrecord-00000-of-00002: record at offset 0: the episode is empty");
  EXPECT_EQ(RldsEpisodes(root(), {.on_corrupt = "skip"}).skipped().size(), 1u);
}

TEST_F(DamagedRlds, AnUnknownFieldNamesTheNearestOne) {
  const RldsEpisodes episodes(root());
  EXPECT_ERROR(episodes.field_index("observation/wirst"), "did you mean 'observation/wrist'");
  EXPECT_ERROR(episodes.field_index("front_camera"), "has no field 'front_camera'; it has action");
}

TEST(Rlds, TheSchemaSurvivesWritingAndReading) {
  for (const char* name : {"arm", "nested"}) {
    const Feature schema = parse_features(read_file(fixture(name) / "1.0.0" / "features.json"), "features.json");
    const Feature again = parse_features(write_features(schema), "again");
    const auto before = list_leaves(schema), after = list_leaves(again);
    ASSERT_EQ(before.size(), after.size());
    for (std::size_t i = 0; i < before.size(); ++i) {
      EXPECT_EQ(before[i].key, after[i].key);
      EXPECT_EQ(before[i].dtype, after[i].dtype);
      EXPECT_EQ(before[i].shape, after[i].shape);
      EXPECT_EQ(before[i].encoding, after[i].encoding);
      EXPECT_EQ(before[i].sequences, after[i].sequences);
    }
  }
}

TEST(Rlds, OpenedEpisodesStayWithinTheirBudget) {
  const RldsEpisodes small(fixture("arm"), {.cache_bytes = 20000});
  for (int round = 0; round < 3; ++round)
    for (std::int64_t e = 0; e < small.size(); ++e) {
      small.open(e);
      EXPECT_LE(small.bytes_held(), 20000 + small.size() * 64);
    }
  const RldsEpisodes large(fixture("arm"));
  EXPECT_EQ(large.open(1), large.open(1)) << "an episode that is kept is not opened twice";
}

TEST(Rlds, TheDroidSampleHasTheSumsThatTensorflowDatasetsFound) {
  const char* shared = std::getenv("COHORT_SHARED");
  const fs::path sample = shared ? fs::path(shared) / "data" / "rlds_droid_sample" : fs::path();
  if (!shared || !fs::exists(sample)) GTEST_SKIP() << "COHORT_SHARED names no folder with data/rlds_droid_sample";
  const Json expected = parse_json<Json>(read_file(sample / "expected.json")).at("episodes");
  const RldsEpisodes episodes(sample);
  ASSERT_EQ(static_cast<std::size_t>(episodes.size()), expected.size());
  for (std::int64_t e = 0; e < episodes.size(); ++e) {
    const Json& row = expected[static_cast<std::size_t>(e)];
    const auto episode = episodes.open(e);
    EXPECT_EQ(episode->steps(), row["steps"].get<std::int64_t>());
    EXPECT_EQ(episode->metadata("episode_metadata/file_path"), row["file_path"].get<std::string>());
    EXPECT_EQ(episode->text(episodes.field_index("language_instruction"), 0),
              row["language_instruction"].get<std::string>());
    for (const auto& [name, sum] : row["sums"].items()) {
      const std::size_t field = episodes.field_index(name);
      std::vector<double> values(static_cast<std::size_t>(episode->steps() * episodes.fields()[field].elements()));
      episode->read(field, 0, episode->steps(), values);
      double total = 0;
      for (const double v : values) total += v;
      EXPECT_NEAR(total, sum.get<double>(), 1e-9 * static_cast<double>(values.size())) << name;  // order of summation
    }
    for (const auto& [name, means] : row["image_means"].items()) {
      std::string scratch;
      Image image;
      for (std::int64_t t = 0; t < episode->steps(); t += 7) {
        decode_image(episode->image(episodes.field_index("observation/" + name), t, scratch).bytes, 3, image);
        EXPECT_NEAR(image_sums(image)[2], means[static_cast<std::size_t>(t)].get<double>(), kJpegMeanTolerance);
      }
    }
  }
}

}  // namespace
}  // namespace cohort::data
