// Converting and looking into robot data.
#include "data/convert.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "core/files.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/hdf5/metadata.h"
#include "data/images/canvas.h"
#include "data/inspect.h"
#include "data/open_episodes.h"
#include "data/rlds/rlds_episodes.h"
#include "data/rlds/rlds_writer.h"

namespace cohort::data {
namespace {
namespace fs = std::filesystem;

/// Every field of `one` is in `other` under the name that `rename` gives it, with equal values.
void expect_equal(const EpisodeSource& one, const EpisodeSource& other,
                  const std::vector<std::pair<std::string, std::string>>& names) {
  ASSERT_EQ(one.size(), other.size());
  for (std::int64_t e = 0; e < one.size(); ++e) {
    const auto a = one.open(e), b = other.open(e);
    ASSERT_EQ(a->steps(), b->steps());
    for (const auto& [left, right] : names) {
      SCOPED_TRACE(left);
      const std::size_t f = one.field_index(left), g = other.field_index(right);
      if (one.fields()[f].kind == StepKind::kImage) {
        for (std::int64_t t = 0; t < a->steps(); ++t) {
          std::string scratch_a, scratch_b;
          Image images[2];
          std::size_t i = 0;
          for (const StoredImage& stored : {a->image(f, t, scratch_a), b->image(g, t, scratch_b)}) {
            if (stored.encoding == ImageEncoding::kRaw)
              images[i].pixels.assign(stored.bytes.begin(), stored.bytes.end());
            else
              decode_image(stored.bytes, 3, images[i]);
            ++i;
          }
          EXPECT_EQ(images[0].pixels, images[1].pixels);
        }
        continue;
      }
      const auto count = static_cast<std::size_t>(a->steps() * one.fields()[f].elements());
      std::vector<float> x(count), y(count);
      a->read(f, 0, a->steps(), std::span(x));
      b->read(g, 0, b->steps(), std::span(y));
      EXPECT_EQ(x, y);
    }
  }
}

TEST(Convert, RldsToHdf5AndBackKeepsEveryValue) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  const auto arm = open_episodes(fixture("arm"));
  // The depth image changes its size from step to step, which HDF5 cannot hold.
  EXPECT_ERROR(convert_episodes(*arm, folder.path() / "arm.hdf5", {.to = "hdf5"}), "change their size in step 1");
  EXPECT_FALSE(fs::exists(folder.path() / "arm.hdf5")) << "nothing half-written";
  EXPECT_TRUE(fs::is_empty(folder.path()));
  const auto libero = open_episodes(fixture("libero.hdf5"));
  const ConvertReport rlds = convert_episodes(*libero, folder.path(), {.to = "rlds", .name = "libero"});
  EXPECT_EQ(rlds.episodes, 2);
  EXPECT_EQ(rlds.steps, 10);
  const auto first = open_episodes(rlds.path);
  const std::vector<std::pair<std::string, std::string>> there{{"actions", "action"},
                                                               {"rewards", "reward"},
                                                               {"robot_states", "robot_states"},
                                                               {"obs/ee_pos", "observation/ee_pos"},
                                                               {"obs/agentview_rgb", "observation/agentview_rgb"},
                                                               {"obs/eye_in_hand_rgb", "observation/eye_in_hand_rgb"}};
  expect_equal(*libero, *first, there);
  EXPECT_EQ(first->open(1)->metadata("episode_metadata/language_instruction"), "put the bowl on the plate");
  float flags[2];
  first->open(0)->read(first->field_index("is_last"), 2, 2, flags);
  EXPECT_EQ(flags[0], 0.0f);
  EXPECT_EQ(flags[1], 1.0f);
  const ConvertReport hdf5 = convert_episodes(*first, folder.path() / "back.hdf5", {.to = "hdf5"});
  EXPECT_EQ(hdf5.steps, 10);
  const auto back = open_episodes(folder.path() / "back.hdf5");
  for (const auto& [name, other] : there) expect_equal(*libero, *back, {{name, name}});
  EXPECT_EQ(back->open(0)->metadata("language_instruction"), "put the bowl on the plate");
  EXPECT_ERROR(convert_episodes(*libero, folder.path(), {.to = "rlds", .name = "libero"}), "exists already");
  EXPECT_ERROR(convert_episodes(*libero, folder.path(), {.to = "rlds", .name = "My Set"}), "is no name of a data set");
}

TEST(Convert, RldsToHdf5AndBackIsTheSameSet) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  Feature step = make_dict({{"action", make_tensor("float32", {2})},
                            {"discount", make_tensor("float64", {})},
                            {"count", make_tensor("int64", {})},
                            {"small", make_tensor("int32", {2})},
                            {"is_first", make_tensor("bool", {})},
                            {"is_last", make_tensor("bool", {})},
                            {"is_terminal", make_tensor("bool", {})},
                            {"language_instruction", make_text()},
                            {"observation", make_dict({{"image", make_image(3, 4, 3, FeatureEncoding::kPng)},
                                                       {"hint", make_text()},
                                                       {"pose", make_tensor("float64", {2, 3})}})}});
  const Feature schema =
      make_dict({{"steps", make_steps(std::move(step))},
                 {"episode_metadata", make_dict({{"file_path", make_text()}, {"operator", make_text()}})}});
  RldsWriter writer(folder.path(), schema, {.name = "there"});
  for (std::int64_t e = 0; e < 3; ++e) {
    const std::int64_t steps = 2 + e;
    std::vector<float> action, discount, pose;
    std::vector<std::int64_t> count, small, first(static_cast<std::size_t>(steps)), last = first, terminal = first;
    std::vector<std::string> images;
    for (std::int64_t t = 0; t < steps; ++t) {
      for (int k = 0; k < 2; ++k)
        action.push_back(0.1f * static_cast<float>(10 * e + t) + 0.01f * static_cast<float>(k));
      for (int k = 0; k < 6; ++k) pose.push_back(1.0f / static_cast<float>(1 + k + t));
      discount.push_back(0.99f);
      count.push_back((std::int64_t{1} << 40) + t);
      for (const int k : {-1, 1}) small.push_back(k * t);
      Image image;
      image.resize(3, 4, 3);
      for (std::size_t i = 0; i < image.pixels.size(); ++i)
        image.pixels[i] = static_cast<std::uint8_t>(37 * i + static_cast<std::size_t>(100 * e + t));
      images.push_back(encode_png(image));
    }
    first.front() = last.back() = 1;
    terminal.back() = e % 2;
    const auto all = [&](const std::string& text) {
      return std::vector<std::string>(static_cast<std::size_t>(steps), text);
    };
    ExampleWriter example;
    example.add("steps/action", action);
    example.add("steps/discount", discount);
    example.add("steps/count", count);
    example.add("steps/small", small);
    example.add("steps/is_first", first);
    example.add("steps/is_last", last);
    example.add("steps/is_terminal", terminal);
    example.add("steps/language_instruction", all(e == 1 ? "" : "lift the cup"));
    example.add("steps/observation/image", images);
    example.add("steps/observation/hint", all(format("hint {}", e)));
    example.add("steps/observation/pose", pose);
    example.add("episode_metadata/file_path", std::vector<std::string>{format("lab/success/{}", e)});
    example.add("episode_metadata/operator", std::vector<std::string>{"Ada"});
    writer.add(example.finish());
  }
  const RldsRecords there(writer.finish(), {});
  const auto source = open_episodes(folder.path() / "there");
  convert_episodes(*source, folder.path() / "between.hdf5", {.to = "hdf5"});
  const auto between = open_episodes(folder.path() / "between.hdf5");
  EXPECT_EQ(between->open(2)->metadata("observation_hint"), "hint 2");
  const ConvertReport report = convert_episodes(*between, folder.path(), {.to = "rlds", .name = "back"});
  EXPECT_TRUE(report.left_out.empty());
  const RldsRecords back(report.path, {});
  ASSERT_EQ(back.size(), there.size());
  const std::vector<FeatureLeaf> leaves = list_leaves(schema);
  ASSERT_EQ(list_leaves(back.schema()).size(), leaves.size());
  for (const FeatureLeaf& leaf : leaves) {
    SCOPED_TRACE(leaf.key);
    const std::vector<FeatureLeaf> found = list_leaves(back.schema());
    const auto same = std::find_if(found.begin(), found.end(), [&](const FeatureLeaf& l) { return l.key == leaf.key; });
    ASSERT_NE(same, found.end());
    EXPECT_EQ(same->dtype, leaf.dtype);
    EXPECT_EQ(same->shape, leaf.shape);
    EXPECT_EQ(same->encoding, leaf.encoding);
    for (std::int64_t r = 0; r < there.size(); ++r) {
      const Example one(there.payload(r)), other(back.payload(r));
      const auto *a = one.find(leaf.key), *b = other.find(leaf.key);
      ASSERT_TRUE(a && b);
      EXPECT_EQ(a->kind, b->kind);
      EXPECT_EQ(a->message, b->message) << "to the byte";
    }
  }
}

TEST(Convert, RldsToRldsKeepsJpegBytes) {
  OwnFolder folder;
  const auto arm = open_episodes(fixture("arm"));
  const ConvertReport report =
      convert_episodes(*arm, folder.path(), {.to = "rlds", .name = "copy", .episodes = {1, 3}});
  EXPECT_TRUE(report.left_out.empty());
  const auto copy = open_episodes(folder.path() / "copy");
  ASSERT_EQ(copy->size(), 2);
  std::string scratch;
  for (const char* name : {"observation/image", "observation/wrist", "observation/depth"})
    EXPECT_EQ(copy->open(1)->image(copy->field_index(name), 2, scratch).bytes,
              arm->open(3)->image(arm->field_index(name), 2, scratch).bytes);
  EXPECT_EQ(copy->open(0)->text(copy->field_index("language_instruction"), 0),
            arm->open(1)->text(arm->field_index("language_instruction"), 0));
}

bool names(const ConvertReport& report, const std::string& start) {
  return std::any_of(report.left_out.begin(), report.left_out.end(),
                     [&](const std::string& line) { return line.starts_with(start); });
}

// The sets are made by fixtures/make_corner_fixture.py.
TEST(Convert, RldsToRldsCopiesRecordsAsTheyAre) {
  OwnFolder folder;
  const RldsEpisodes corners(fixture("corners"));
  const ConvertReport report =
      convert_episodes(corners, folder.path(), {.to = "rlds", .name = "copy", .episodes = {2, 0}});
  const RldsEpisodes copy(folder.path() / "copy");
  ASSERT_EQ(copy.size(), 2);
  EXPECT_EQ(copy.record(0), corners.record(2));
  EXPECT_EQ(copy.record(1), corners.record(0));
  EXPECT_EQ(report.steps, copy.steps(0) + copy.steps(1));
  EXPECT_EQ(read_file(report.path / "features.json"), read_file(fixture("corners") / "1.0.0" / "features.json"));
  ASSERT_EQ(report.left_out.size(), 1u);
  EXPECT_TRUE(names(report, "the split test: convert it by itself"));
}

TEST(Convert, WhatHdf5CannotHoldIsNamedAndTheRestComesBack) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  const RldsEpisodes corners(fixture("corners"));
  const ConvertReport there = convert_episodes(corners, folder.path() / "there.hdf5", {.to = "hdf5"});
  for (const char* left_out : {"words: it holds a sequence", "views: it holds a sequence", "pair: it holds 2 texts",
                               "depth: it has pixels", "metres: it has pixels", "hint: written as a data set of texts",
                               "episode_metadata/origin: not one", "episode_metadata/tags: not one", "the split test:"})
    EXPECT_TRUE(names(there, left_out)) << left_out;
  EXPECT_EQ(there.left_out.size(), 9u);
  const auto between = open_episodes(there.path);
  const Hdf5Metadata file(there.path);
  for (std::int64_t e = 0; e < corners.size(); ++e) {
    const auto one = corners.open(e), other = between->open(e);
    EXPECT_EQ(other->metadata("language_instruction"), "lift");
    EXPECT_EQ(other->metadata("episode_metadata_language_instruction"), "of the episode");
    EXPECT_EQ(other->metadata("number"), one->metadata("episode_metadata/number"));
    const std::vector<std::string> hints = file.texts(format("/data/demo_{}/hint", e));
    ASSERT_EQ(static_cast<std::int64_t>(hints.size()), one->steps());
    for (std::int64_t t = 0; t < one->steps(); ++t)
      EXPECT_EQ(hints[static_cast<std::size_t>(t)], one->text(corners.field_index("hint"), t));
  }
  const ConvertReport report = convert_episodes(*between, folder.path(), {.to = "rlds", .name = "back"});
  EXPECT_EQ(report.left_out, (std::vector<std::string>{"hint: no array of numbers"}));
  const RldsEpisodes back(report.path);
  const std::vector<FeatureLeaf> before = list_leaves(corners.records().schema()),
                                 after = list_leaves(back.records().schema());
  std::size_t compared = 0;
  for (const FeatureLeaf& leaf : after) {
    SCOPED_TRACE(leaf.key);
    const auto same =
        std::find_if(before.begin(), before.end(), [&](const FeatureLeaf& l) { return l.key == leaf.key; });
    ASSERT_NE(same, before.end());
    EXPECT_EQ(leaf.dtype, same->dtype);
    if (same->encoding != FeatureEncoding::kNone) continue;  // images and the packed tensor: by value, below
    for (std::int64_t e = 0; e < back.size(); ++e) {
      const Example one(corners.record(e)), other(back.record(e));
      ASSERT_TRUE(one.find(leaf.key) && other.find(leaf.key));
      EXPECT_EQ(one.find(leaf.key)->message, other.find(leaf.key)->message);
      ++compared;
    }
  }
  EXPECT_EQ(compared, 13u * 3u) << "7 fields of the steps, 6 metadata; 3 episodes";
  expect_equal(corners, back, {{"view", "view"}, {"packed", "packed"}});
}

TEST(Convert, AttributesKeepTheirTypesAndWhatHdf5HasBeyondThemIsNamed) {
  if (!has_hdf5()) GTEST_SKIP() << "this build has no HDF5";
  OwnFolder folder;
  const auto source = open_episodes(fixture("corners.hdf5"), {.split = "all"});
  const ConvertReport there = convert_episodes(*source, folder.path(), {.to = "rlds", .name = "there"});
  for (const char* left_out : {"the attribute pose:", "words: no array of numbers", "calibration: its 9 rows",
                               "mask/train:", "mask/valid:", "the type of rank: written as texts"})
    EXPECT_TRUE(names(there, left_out)) << left_out;
  EXPECT_EQ(there.left_out.size(), 6u);
  const RldsEpisodes between(there.path);
  const auto dtype = [&](const std::string& key) {
    for (const FeatureLeaf& leaf : list_leaves(between.records().schema()))
      if (leaf.key == key) return leaf.dtype;
    return std::string("not there");
  };
  for (const auto& [key, type] :
       std::vector<std::pair<std::string, std::string>>{{"steps/is_terminal", "bool"},
                                                        {"steps/stamps", "int64"},
                                                        {"steps/serials", "uint64"},
                                                        {"steps/action", "float64"},
                                                        {"episode_metadata/stamp", "int64"},
                                                        {"episode_metadata/quality", "float32"},
                                                        {"episode_metadata/good", "bool"},
                                                        {"episode_metadata/rank", "string"}})
    EXPECT_EQ(dtype(key), type) << key;
  const ConvertReport report = convert_episodes(between, folder.path() / "back.hdf5", {.to = "hdf5"});
  EXPECT_TRUE(report.left_out.empty());
  const auto back = open_episodes(report.path);
  ASSERT_EQ(back->size(), 2);
  for (std::int64_t e = 0; e < 2; ++e) {
    const auto one = source->open(e), other = back->open(e);
    for (const char* name : {"stamps", "serials", "dones"}) {
      std::vector<std::int64_t> a(static_cast<std::size_t>(one->steps())), b = a;
      one->read(source->field_index(name), 0, one->steps(), std::span(a));
      other->read(back->field_index(name), 0, one->steps(), std::span(b));
      EXPECT_EQ(a, b) << name;
    }
    for (const char* name : {"stamp", "quality", "rank", "data/env_args"})
      EXPECT_EQ(one->metadata(name), other->metadata(name)) << name;
    EXPECT_NE(one->metadata("data/env_args"), "");
  }
  const auto metadata_names = back->metadata_names();
  EXPECT_EQ(std::count(metadata_names.begin(), metadata_names.end(), "data_env_args"), 0);
}

TEST(Convert, LongTextsFitIntoAttributesAndNothingStaysBehindAFailure) {
  OwnFolder folder;
  const Feature schema = make_dict({{"steps", make_steps(make_dict({{"action", make_tensor("float32", {1})}}))},
                                    {"episode_metadata", make_dict({{"model_file", make_text()}})}});
  const std::string model(200'000, 'x');
  {
    RldsWriter writer(folder.path() / "set", schema, {.name = "long"});
    ExampleWriter example;
    example.add("steps/action", std::vector<float>{1, 2});
    example.add("episode_metadata/model_file", std::vector<std::string>{model});
    writer.add(example.finish());
    writer.finish();
  }
  if (has_hdf5()) {
    const auto source = open_episodes(folder.path() / "set");
    convert_episodes(*source, folder.path() / "long.hdf5", {.to = "hdf5"});
    EXPECT_EQ(open_episodes(folder.path() / "long.hdf5")->open(0)->metadata("model_file"), model);
  }
  { const RldsWriter writer(folder.path() / "deep" / "below", schema, {.name = "unfinished"}); }
  EXPECT_FALSE(fs::exists(folder.path() / "deep"));
  { const RldsWriter writer(folder.path() / "set", schema, {.name = "long", .version = "2.0.0"}); }
  EXPECT_TRUE(fs::exists(folder.path() / "set" / "long" / "1.0.0")) << "what was there before stays";
}

TEST(Inspect, WhatCannotBeShownIsLeftOut) {
  const RldsEpisodes corners(fixture("corners"));
  const std::string text = inspect_text(corners);
  for (const char* type : {"uint16", "float32", "uint64"}) EXPECT_NE(text.find(type), std::string::npos) << text;
  EXPECT_GT(contact_sheet(corners, {.episodes = 1, .frames = 2, .frame_height = 24}).height, 0);
}

TEST(Inspect, TheTextNamesEveryFieldAndTheSheetShowsTheFrames) {
  const auto arm = open_episodes(fixture("arm"));
  const std::string text = inspect_text(*arm);
  for (const StepField& field : arm->fields()) EXPECT_NE(text.find(field.name), std::string::npos);
  EXPECT_NE(text.find("5 episodes, 20 steps; an episode has 2 to 6, in the middle 4"), std::string::npos) << text;
  const Image sheet = contact_sheet(*arm, {.episodes = 2, .frames = 3, .frame_height = 24});
  // The first frame of the first camera stands at its place, untouched, for it has the sheet's frame height.
  std::vector<std::size_t> cameras;
  for (std::size_t f = 0; f < arm->fields().size(); ++f)
    if (arm->fields()[f].kind == StepKind::kImage) cameras.push_back(f);
  std::size_t place = 0;
  while (arm->fields()[cameras[place]].name != "observation/image") ++place;
  std::string scratch;
  Image frame;
  decode_image(arm->open(0)->image(cameras[place], 0, scratch).bytes, 3, frame);
  bool found = false;
  for (std::int64_t y = 0; y + frame.height <= sheet.height && !found; ++y) {
    bool equal = true;
    for (std::int64_t r = 0; r < frame.height && equal; ++r)
      equal = std::equal(frame.row(r), frame.row(r) + frame.width * 3, sheet.row(y + r) + 12 * 3);
    found = equal;
  }
  EXPECT_TRUE(found);
  Image again;
  decode_image(encode_png(sheet), 3, again);
  EXPECT_EQ(again.pixels, sheet.pixels);
  EXPECT_ERROR(contact_sheet(*arm, {.curves = {"observation/image"}}), "cannot be drawn as a curve");
}

TEST(Canvas, LinesAndLettersLieWhereTheyShould) {
  Canvas canvas(20, 40, {0, 0, 0});
  canvas.text(2, 3, "I", {9, 9, 9}, 1);  // three dots, a stem, three dots
  const std::uint8_t* top = canvas.image().row(2);
  EXPECT_EQ(top[3 * 3], 9);
  EXPECT_EQ(top[5 * 3], 9);
  EXPECT_EQ(canvas.image().row(4)[3 * 3], 0);
  EXPECT_EQ(canvas.image().row(4)[4 * 3], 9);
  canvas.line(-5, 10, 100, 10, {7, 7, 7});  // cut off at the edges
  EXPECT_EQ(canvas.image().row(10)[0], 7);
  EXPECT_EQ(canvas.image().row(10)[39 * 3], 7);
  const std::vector<float> ramp{0, 1};
  canvas.curve(0, 0, 20, 40, ramp, 0, 1, {5, 5, 5});
  EXPECT_EQ(canvas.image().row(19)[0], 5);
  EXPECT_EQ(canvas.image().row(0)[39 * 3], 5);
}

}  // namespace
}  // namespace cohort::data
