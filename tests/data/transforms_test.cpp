// Rotations against scipy, images against TensorFlow, statistics against NumPy (fixtures/make_transform_fixture.py);
// the rest against closed formulas.
#include <algorithm>
#include <cmath>
#include <set>

#include <gtest/gtest.h>

#include "core/observation_names.h"
#include "data/expect_error.h"
#include "data/fixture_folder.h"
#include "data/images/colour.h"
#include "data/images/image_pipeline.h"
#include "data/images/resize.h"
#include "data/names_of_sets.h"
#include "data/random_text.h"
#include "data/transforms/call.h"
#include "data/transforms/component.h"
#include "data/transforms/field_vector.h"
#include "data/transforms/normalization.h"
#include "data/transforms/permutation.h"
#include "data/transforms/rotation.h"

namespace cohort::data {
namespace {
using Json = nlohmann::json;

const std::vector<std::string> kForms{"matrix",      "quaternion_xyzw",     "axis_angle",
                                      "rotation_6d", "rotation_6d_columns", "euler_xyz",
                                      "euler_XYZ",   "euler_zyx",           "euler_ZYX"};
// float64 through products of a few sines; near angles of pi half the digits go.
constexpr double kRotationTolerance = 2e-8;
// TensorFlow sums its filter taps in float32, we likewise but in another order: a pixel at .5 may round the other way.
constexpr int kPixelTolerance = 1;
constexpr float kColourTolerance = 2e-6f;  // float32 through a division and a product

TEST(Rotation, EveryFormConvertsToEveryOtherAsScipyDoes) {
  const Json rotations = fixture_json("transform_expected.json").at("rotations");
  ASSERT_GE(rotations.size(), 15u);
  for (const Json& rotation : rotations) {
    const auto expected = rotation["matrix"].get<std::vector<double>>();
    for (const std::string& from : kForms) {
      const auto values = rotation[from].get<std::vector<double>>();
      const Matrix3 matrix = RotationForm(from).to_matrix(values);
      for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(matrix[i], expected[i], kRotationTolerance) << from;
    }
    for (const std::string& to : kForms) {
      const RotationForm form(to);
      const auto wanted = rotation[to].get<std::vector<double>>();
      std::vector<double> found(form.width());
      Matrix3 matrix;
      std::copy(expected.begin(), expected.end(), matrix.begin());
      form.from_matrix(matrix, found);
      // A half turn has two axes, a gimbal lock many angles: there the rotation is compared, not its numbers.
      const bool half_turn = std::abs(expected[0] + expected[4] + expected[8] + 1) < 1e-5;
      const bool locked = to.starts_with("euler") && std::abs(std::abs(wanted[1]) - M_PI / 2) < 1e-6;
      if (!half_turn && !locked)
        for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], wanted[i], kRotationTolerance) << to;
      const Matrix3 back = form.to_matrix(found);
      for (std::size_t i = 0; i < 9; ++i) EXPECT_NEAR(back[i], expected[i], kRotationTolerance) << to;
    }
  }
}

TEST(Rotation, SixNumbersThatAreNoRotationAreMadeOne) {
  const RotationForm six("rotation_6d");
  const Matrix3 m = six.to_matrix(std::vector<double>{2, 0, 0, 5, 3, 0});
  EXPECT_EQ(m, (Matrix3{1, 0, 0, 0, 1, 0, 0, 0, 1}));
  EXPECT_ERROR(six.to_matrix(std::vector<double>{1, 0, 0, 2, 0, 0}), "gives no rotation");
  EXPECT_ERROR(RotationForm("quaternion_xyzw").to_matrix(std::vector<double>{0, 0, 0, 0}), "is no rotation");
  EXPECT_ERROR(RotationForm("euler_xxz"), "unknown rotation form 'euler_xxz'");
}

Image image_of(const Json& pixels, std::int64_t height, std::int64_t width) {
  Image image;
  image.resize(height, width, 3);
  const auto values = pixels.get<std::vector<int>>();
  std::copy(values.begin(), values.end(), image.pixels.begin());
  return image;
}

TEST(Images, ResizingEqualsTensorflows) {
  const Json images = fixture_json("transform_expected.json").at("images");
  const Image source = image_of(images["source"], images["height"], images["width"]);
  Resizer resizer;
  for (const Json& wanted : images["resized"]) {
    const auto pixels = wanted["pixels"].get<std::vector<int>>();
    std::vector<std::uint8_t> found(pixels.size());
    resizer.resize(source, wanted["height"], wanted["width"], parse_resize_method(wanted["method"]), found.data());
    int largest = 0;
    for (std::size_t i = 0; i < pixels.size(); ++i) largest = std::max(largest, std::abs(pixels[i] - found[i]));
    EXPECT_LE(largest, kPixelTolerance) << wanted["method"] << " to " << wanted["height"];
  }
}

TEST(Images, ColoursChangeAsTensorflowChangesThem) {
  const Json images = fixture_json("transform_expected.json").at("images");
  const auto small = images["small"].get<std::vector<int>>();
  for (const Json& wanted : images["colour"]) {
    std::vector<float> rgb;
    for (const int pixel : small) rgb.push_back(static_cast<float>(pixel) / 255.0f);
    const std::string op = wanted["op"];
    const float amount = wanted["amount"];
    if (op == "brightness") adjust_brightness(rgb, amount);
    if (op == "contrast") adjust_contrast(rgb, amount);
    if (op == "saturation") adjust_saturation(rgb, amount);
    if (op == "hue") adjust_hue(rgb, amount);
    const auto pixels = wanted["pixels"].get<std::vector<float>>();
    for (std::size_t i = 0; i < rgb.size(); ++i) ASSERT_NEAR(rgb[i], pixels[i], kColourTolerance) << op << " " << i;
  }
}

TEST(Images, CropAndResizeEqualsTensorflows) {
  const Json images = fixture_json("transform_expected.json").at("images");
  const Image source = image_of(images["source"], images["height"], images["width"]);
  const Json& wanted = images["crop_and_resize"];
  const auto pixels = wanted["pixels"].get<std::vector<float>>();
  const auto box = wanted["box"].get<std::vector<double>>();
  std::vector<float> found(pixels.size());
  crop_and_resize(source, {box[0], box[1], box[2], box[3]}, wanted["height"], wanted["width"], found.data());
  for (std::size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], pixels[i], 2e-3f);  // float32 coordinates there
}

TEST(Images, APipelineIsAFunctionOfItsKeyAndWithoutAugmentationOfNothing) {
  Image frame;
  frame.resize(20, 30, 3);
  for (std::size_t i = 0; i < frame.pixels.size(); ++i) frame.pixels[i] = static_cast<std::uint8_t>(i * 7 % 256);
  const ImagePipeline pipeline({"resize(16, 16)", "random_resized_crop(0.8, 1, 0.9, 1.1)", "brightness(0.2)",
                                "contrast(0.8, 1.2)", "saturation(0.8, 1.2)", "hue(0.1)", "crop(12, 14)"});
  EXPECT_EQ(pipeline.height(), 12);
  EXPECT_EQ(pipeline.width(), 14);
  EXPECT_TRUE(pipeline.is_random());
  const auto run = [&](bool augment, std::uint64_t id, std::uint64_t camera) {
    std::vector<std::uint8_t> out(12 * 14 * 3, 170);
    pipeline.run(frame, augment, RandomStream(3, RandomPurpose::kAugmentation, id, 0), camera, out.data());
    return out;
  };
  EXPECT_EQ(run(true, 5, 0), run(true, 5, 0));
  EXPECT_NE(run(true, 5, 0), run(true, 6, 0));
  EXPECT_NE(run(true, 5, 0), run(true, 5, 1));
  EXPECT_EQ(run(false, 5, 0), run(false, 6, 1));
  Image resized;
  resized.resize(16, 16, 3);
  Resizer().resize(frame, 16, 16, ResizeMethod::kLanczos3, resized.pixels.data());
  const auto centre = run(false, 0, 0);  // rows 2 to 13, columns 1 to 14 of the resized frame
  for (std::int64_t y = 0; y < 12; ++y)
    EXPECT_TRUE(std::equal(resized.row(y + 2) + 3, resized.row(y + 2) + 45, centre.begin() + y * 42));
  std::vector<std::uint8_t> flipped(20 * 30 * 3);
  ImagePipeline({"resize(20, 30)", "flip_vertical"})
      .run(frame, true, {0, RandomPurpose::kTest, 0, 0}, 0, flipped.data());
  EXPECT_TRUE(std::equal(frame.row(19), frame.row(19) + 90, flipped.begin()));
}

TEST(Images, AWrongTransformIsNamed) {
  EXPECT_ERROR(ImagePipeline({"resize(0, 3)"}), "is no size in pixels");
  EXPECT_ERROR(ImagePipeline({"blur(3)"}), "unknown image transform 'blur(3)'");
  EXPECT_ERROR(ImagePipeline({"resize(8, 8)", "crop(9, 8)"}), "larger than the 8 x 8 pixels before it");
  EXPECT_ERROR(ImagePipeline({"brightness(0.1)"}), "fix no size");
  EXPECT_ERROR(ImagePipeline({"resize(8, 8, cubic)"}), "unknown resize method 'cubic'");
}

TEST(Permutation, EveryPlaceIsReachedOnceForAnySizeAndKeysDiffer) {
  for (const std::uint64_t n : {1ull, 2ull, 3ull, 5ull, 64ull, 100ull, 1000ull, 4097ull}) {
    std::set<std::uint64_t> seen;
    const KeyedPermutation permutation(n, 9, 1, 2);
    for (std::uint64_t i = 0; i < n; ++i) seen.insert(permutation.at(i));
    EXPECT_EQ(seen.size(), n);
    EXPECT_LT(*seen.rbegin(), n);
  }
  const KeyedPermutation one(100000, 1, 0, 0), other(100000, 1, 0, 1);
  int equal = 0;
  double inversions = 0;
  for (std::uint64_t i = 0; i < 2000; ++i) {
    equal += one.at(i) == other.at(i);
    inversions += one.at(i) > one.at(i + 1);
  }
  EXPECT_LE(equal, 3);
  EXPECT_NEAR(inversions / 2000, 0.5, 0.05);  // 4.5 standard deviations
}

/// Two episodes in memory: field "x" of two elements and field "gripper", and what a test puts there.
class MemoryEpisode final : public Episode {
 public:
  explicit MemoryEpisode(std::vector<std::vector<double>> fields, std::int64_t steps)
      : fields_(std::move(fields)), steps_(steps) {}
  std::int64_t steps() const override { return steps_; }
  void read(std::size_t field, std::int64_t begin, std::int64_t, std::span<float> out) const override {
    const std::size_t width = fields_[field].size() / static_cast<std::size_t>(steps_);
    for (std::size_t i = 0; i < out.size(); ++i)
      out[i] = static_cast<float>(fields_[field][static_cast<std::size_t>(begin) * width + i]);
  }
  void read(std::size_t field, std::int64_t begin, std::int64_t, std::span<double> out) const override {
    const std::size_t width = fields_[field].size() / static_cast<std::size_t>(steps_);
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = fields_[field][static_cast<std::size_t>(begin) * width + i];
  }
  void read(std::size_t, std::int64_t, std::int64_t, std::span<std::int64_t>) const override {
    throw Error("these are no integers");
  }
  std::string_view text(std::size_t, std::int64_t) const override { return ""; }
  StoredImage image(std::size_t, std::int64_t, std::string&) const override { return {}; }
  std::string_view metadata(std::string_view) const override { return ""; }
  std::string location() const override { return "memory"; }

 private:
  std::vector<std::vector<double>> fields_;
  std::int64_t steps_;
};

class MemorySource final : public EpisodeSource {
 public:
  const std::string& name() const override { return name_; }
  std::int64_t size() const override { return 1; }
  const std::vector<StepField>& fields() const override { return fields_; }
  const std::vector<std::string>& metadata_names() const override { return none_; }
  std::int64_t steps(std::int64_t) const override { return 5; }
  std::shared_ptr<const Episode> open(std::int64_t) const override { return nullptr; }
  std::uint64_t content_hash() const override { return 1; }
  std::int64_t bytes_held() const override { return 0; }
  std::int64_t bytes_when_open(std::int64_t, std::span<const std::size_t>) const override { return 0; }
  const std::vector<std::string>& skipped() const override { return none_; }

 private:
  std::string name_ = "memory";
  std::vector<StepField> fields_{
      {.name = "x", .shape = {3}}, {.name = "gripper"}, {.name = "camera", .kind = StepKind::kImage}};
  std::vector<std::string> none_;
};

std::vector<float> compute(const std::string& text, const std::vector<double>& x, const std::vector<double>& gripper) {
  const MemorySource source;
  const Component component(text, source);
  const MemoryEpisode episode({x, gripper}, 5);
  std::vector<float> whole(static_cast<std::size_t>(5 * component.width()));
  component.read(episode, 0, 5, whole.data(), component.width());
  const std::vector<std::int64_t> some{0, 0, 1, 2, 4, 4, 4, 3};
  std::vector<float> picked(some.size() * static_cast<std::size_t>(component.width()));
  component.read_at(episode, some, picked.data(), component.width());
  for (std::size_t i = 0; i < some.size(); ++i)  // nor does it matter which steps are asked for together
    for (std::size_t d = 0; d < static_cast<std::size_t>(component.width()); ++d)
      EXPECT_EQ(picked[i * static_cast<std::size_t>(component.width()) + d],
                whole[static_cast<std::size_t>(some[i] * component.width()) + d]);
  for (std::int64_t t = 0; t < 5; ++t) {  // step by step it is the same
    std::vector<float> row(static_cast<std::size_t>(component.width()));
    component.read(episode, t, 1, row.data(), component.width());
    for (std::size_t d = 0; d < row.size(); ++d) EXPECT_EQ(row[d], whole[static_cast<std::size_t>(t) * row.size() + d]);
  }
  return whole;
}

TEST(Components, TransformsFollowTheirFormulas) {
  const std::vector<double> x{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, g{0, 0.5, 1, 0.5, 0};
  EXPECT_EQ(compute("x[1:3]", x, g), (std::vector<float>{1, 2, 4, 5, 7, 8, 10, 11, 13, 14}));
  EXPECT_EQ(compute("x[-1]", x, g), (std::vector<float>{2, 5, 8, 11, 14}));
  EXPECT_EQ(compute("x[0] | delta", x, g), (std::vector<float>{3, 3, 3, 3, 0}));
  EXPECT_EQ(compute("x[0] | next | scale(2) | offset(-1)", x, g), (std::vector<float>{5, 11, 17, 23, 23}));
  EXPECT_EQ(compute("gripper | invert", x, g), (std::vector<float>{1, 0.5, 0, 0.5, 1}));
  EXPECT_EQ(compute("gripper | negate | clip(-0.6, 0)", x, g), (std::vector<float>{0, -0.5, -0.6f, -0.5, 0}));
  EXPECT_EQ(compute("gripper | threshold(0.4)", x, g), (std::vector<float>{0, 1, 1, 1, 0}));
  EXPECT_EQ(compute("gripper | binarize", x, g), (std::vector<float>{0, 1, 1, 0, 0})) << "what comes next decides";
  EXPECT_EQ(compute("gripper | relative_to_absolute", x, {0, -1, 0, 1, 0}), (std::vector<float>{0, 1, 1, 0, 0}));
  EXPECT_NEAR(compute("gripper | wrap", x, {4, 0, 0, 0, 0})[0], 4 - 2 * M_PI, 1e-6);
  const std::vector<float> six =
      compute("x | euler_xyz->rotation_6d", {0, 0, M_PI / 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}, g);
  const std::vector<float> quarter_turn{0, -1, 0, 1, 0, 0};
  for (std::size_t i = 0; i < 6; ++i) EXPECT_NEAR(six[i], quarter_turn[i], 1e-7);
}

TEST(Components, WhatIsWrongIsNamed) {
  const std::vector<double> x(15, 0), g(5, 0);
  EXPECT_ERROR(compute("y", x, g), "has no field 'y'");
  EXPECT_ERROR(compute("camera", x, g), "holds images, not numbers");
  EXPECT_ERROR(compute("x[2:5]", x, g), "the field x has 3 elements per step, so [2:5] is outside");
  EXPECT_ERROR(compute("x | quaternion_xyzw->matrix", x, g), "takes 4 numbers, but there are 3");
  EXPECT_ERROR(compute("x | smooth", x, g), "unknown transform 'smooth'");
  EXPECT_ERROR(compute("x | clip(1)", x, g), "has 1 arguments, but clip takes 2");
  EXPECT_ERROR(compute("gripper", x, {0, 0, std::nan(""), 0, 0}),
               "memory: the field gripper holds nan in step 2, element 0");
}

/// A row of fields composed to components and taken apart again.
std::vector<float> there_and_back(const std::vector<std::string>& components, const std::vector<std::int64_t>& widths,
                                  const std::vector<RecordedField>& known, const std::vector<float>& row) {
  const FieldVector seen(components, widths, known, FieldVector::Use::kSeen),
      given(components, widths, known, FieldVector::Use::kGiven);
  std::vector<float> composed(static_cast<std::size_t>(seen.components_width())),
      back(static_cast<std::size_t>(given.fields_width()));
  seen.compose(row, composed);
  given.take_apart(composed, back);
  return back;
}

TEST(FieldVector, EveryTransformThatCanBeTakenBackIs) {
  const std::vector<RecordedField> known{{"a", 7}};
  const std::vector<float> row{0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f, -1.0f};
  for (const std::string form : {"rotation_6d", "rotation_6d_columns", "quaternion_xyzw", "quaternion_wxyz", "matrix",
                                 "euler_xyz", "euler_ZYX"}) {
    const auto width = static_cast<std::int64_t>(RotationForm(form).width());
    const auto back = there_and_back({"a[0:3]", "a[3:6] | axis_angle->" + form, "a[6] | scale(-0.5) | offset(0.5)"},
                                     {3, width, 1}, known, row);
    ASSERT_EQ(back.size(), 7u) << form;
    for (std::size_t i = 0; i < 7; ++i) EXPECT_NEAR(back[i], row[i], 1e-6) << form << " " << i;
  }
  for (const std::string one :
       {"negate", "invert", "scale(3)", "offset(-2)", "wrap", "clip(-1, 1)", "negate | invert"}) {
    const auto back = there_and_back({"a | " + one}, {7}, known, row);
    for (std::size_t i = 0; i < 7; ++i) EXPECT_NEAR(back[i], row[i], 1e-6) << one << " " << i;
  }
}

TEST(FieldVector, PartsOfAFieldComeBackInTheFieldsOrderUnderItsName) {
  const std::vector<RecordedField> known{{"a", 3, {"x", "y", "grip"}}, {"b", 1}};
  const FieldVector given({"a[2] | invert", "b", "a[0:2]"}, std::vector<std::int64_t>{1, 1, 2}, known,
                          FieldVector::Use::kGiven);
  ASSERT_EQ(given.fields().size(), 2u);
  EXPECT_EQ(given.fields()[0].name, "a");
  EXPECT_EQ(given.fields()[0].elements[2], "grip");
  std::vector<float> back(4);
  given.take_apart(std::vector<float>{0.25f, 9, 1, 2}, back);
  EXPECT_EQ(back, (std::vector<float>{1, 2, 0.75f, 9}));
  // Half a field is half a field, and says which.
  const FieldVector half({"a[0:2] | negate"}, std::vector<std::int64_t>{2}, known, FieldVector::Use::kGiven);
  EXPECT_EQ(half.fields()[0].name, "a[0:2]");
  EXPECT_EQ(half.fields()[0].width, 2);
  // What acts asks for the whole field once, however many parts of it are seen.
  const FieldVector seen({"a[0:1]", "a[2]"}, std::vector<std::int64_t>{1, 1}, known, FieldVector::Use::kSeen);
  ASSERT_EQ(seen.fields().size(), 1u);
  std::vector<float> composed(2);
  seen.compose(std::vector<float>{4, 5, 6}, composed);
  EXPECT_EQ(composed, (std::vector<float>{4, 6}));
}

TEST(FieldVector, WhatNothingLeadsBackFromStandsForItselfAndIsNamed) {
  const std::vector<RecordedField> known{{"a", 2}};
  for (const std::string one : {"threshold(0.5)", "delta", "relative_to_absolute", "scale(0)"}) {
    const std::string text = "a[1] | " + one;
    const FieldVector given({"a[0]", text}, std::vector<std::int64_t>{1, 1}, known, FieldVector::Use::kGiven);
    ASSERT_EQ(given.fields().size(), 2u) << one;
    EXPECT_EQ(given.fields()[0].name, "a[0]");
    EXPECT_EQ(given.fields()[1].name, text);
    ASSERT_EQ(given.kept_transformed().size(), 1u);
    EXPECT_NE(given.kept_transformed()[0].find("nothing leads back from " + one), std::string::npos);
  }
  // An old checkpoint does not say of which fields it is made.
  const FieldVector old({"a | negate"}, std::vector<std::int64_t>{2}, {}, FieldVector::Use::kGiven);
  EXPECT_TRUE(old.is_plain());
  EXPECT_EQ(old.fields()[0].name, "a | negate");
}

TEST(FieldVector, AnswersTakeAnotherFormWhereThatIsAskedFor) {
  const std::vector<RecordedField> known{{"pos", 3}, {"rot", 6}};
  const FieldVector given({"pos", "rot"}, std::vector<std::int64_t>{3, 6}, known, FieldVector::Use::kGiven,
                          {"", "rotation_6d->axis_angle"});
  EXPECT_EQ(given.fields_width(), 6);
  EXPECT_EQ(given.fields()[1].name, "rot->axis_angle");
  std::vector<float> back(6);
  given.take_apart(std::vector<float>{1, 2, 3, 1, 0, 0, 0, 0, -1}, back);  // a quarter turn about x
  EXPECT_NEAR(back[3], M_PI / 2, 1e-6);
  EXPECT_NEAR(back[4], 0, 1e-6);
}

TEST(NamesOfSets, StandInThePlaceOfWholeComponentsAndOfFieldsAndCameras) {
  const NamesOfSets names({"1: top=laptop", "1: action[2] = action[2] | invert", "2: observation.state=obs/joints"}, 3);
  EXPECT_EQ(names.picture(1, "observation.images.top"), "laptop");
  EXPECT_EQ(names.picture(0, "observation.images.top"), "observation.images.top");
  EXPECT_EQ(names.component(1, "action[2]"), "action[2] | invert");
  EXPECT_EQ(names.component(1, "action[0:2]"), "action[0:2]");
  EXPECT_EQ(names.component(2, "observation/state[0:3] | negate"), "obs/joints[0:3] | negate");
  EXPECT_ERROR(NamesOfSets({"top=laptop"}, 2), "is not SET: NAME=NAME OF THAT SET");
  EXPECT_ERROR(NamesOfSets({"2: top=laptop"}, 2), "is for set 2, but there are 2, counted from 0");
  EXPECT_ERROR(names.check_used({"action[2]", "observation.state"}, {}), "'1: top=laptop': no action, observation or");

  // Entries for single sets in a list mean the same.
  std::vector<std::string> list{"action[0:2]", "0: action[2]", "1: action[2] | invert"}, said;
  take_entries_of_sets(list, said, 2, "data.actions");
  EXPECT_EQ(list, (std::vector<std::string>{"action[0:2]", "action[2]"}));
  EXPECT_EQ(said, std::vector<std::string>{"1: action[2]=action[2] | invert"});
  list = {"action[0:2]", "1: action[2]"};
  EXPECT_ERROR(take_entries_of_sets(list, said, 2, "data.actions"), "set 1 comes to 2 entries and set 0 to 1");
}

TEST(Fields, AreFoundByWhatAnotherFormatCallsThem) {
  for (const char* name : {"observation/state", "observation.state", "obs/state", "state"})
    EXPECT_TRUE(same_observation("obs/state", name)) << name;
  for (const char* name :
       {"observation.images.front", "observation/front_image", "obs/front", "obs/images_front", "front"})
    EXPECT_TRUE(same_camera("observation.images.front", name)) << name;
  EXPECT_FALSE(same_observation("observation/state", "observation/other"));
  EXPECT_FALSE(same_camera("observation.images.front", "observation.images.side"));
  EXPECT_TRUE(is_observation("observation.state"));
  EXPECT_FALSE(is_observation("state"));
  EXPECT_FALSE(is_observation("observation/")) << "it names nothing";
}

TEST(Normalization, FollowsTheReferencesFormulasAndBack) {
  const VectorStatistics statistics{.mean = {1, 2, 0},
                                    .std = {2, 0.5, 1},
                                    .min = {-1, 0, 0},
                                    .max = {3, 4, 1},
                                    .q01 = {-0.5, 0.1, 0},
                                    .q99 = {2.5, 3.9, 1}};
  const std::vector<std::int64_t> widths{1, 1, 1};
  const std::vector<float> raw{2, 1, 0.25f, 9, 2.5f, 0.5f};
  const auto normalised = [&](std::vector<std::string> kinds) {
    std::vector<float> rows = raw;
    Normalizer(kinds, widths, statistics, "error", "test").normalize(rows);
    return rows;
  };
  const auto bounds = normalised({"bounds"});
  EXPECT_NEAR(bounds[0], 2.0 * (2 + 1) / (4 + 1e-8) - 1, 1e-7);
  EXPECT_EQ(bounds[3], 1.0f) << "clipped";
  const auto mixed = normalised({"normal", "quantiles", "none"});
  EXPECT_NEAR(mixed[0], (2 - 1) / (2 + 1e-8), 1e-7);
  EXPECT_NEAR(mixed[1], 2 * (1 - 0.1) / (3.8 + 1e-8) - 1, 1e-7);
  EXPECT_EQ(mixed[2], 0.25f);
  const Normalizer normalizer({"bounds", "normal", "none"}, widths, statistics, "error", "test");
  std::vector<float> rows{2, 1, 0.25f};
  normalizer.normalize(rows);
  normalizer.denormalize(rows);
  EXPECT_NEAR(rows[0], 2, 1e-6);
  EXPECT_NEAR(rows[1], 1, 1e-6);
}

TEST(Normalization, ARareValueIsNormalisedByItsBoundsAndThatIsSaid) {
  // A gripper that opens once in a thousand steps: both quantiles are 0.
  const VectorStatistics rare{
      .mean = {0.5, 0.001}, .std = {0.3, 0.03}, .min = {0, 0}, .max = {1, 1}, .q01 = {0.1, 0}, .q99 = {0.9, 0}};
  const std::vector<std::int64_t> widths{2};
  const Normalizer normalizer({"quantiles"}, widths, rare, "error", "actions");
  ASSERT_EQ(normalizer.notes().size(), 1u);
  EXPECT_NE(normalizer.notes()[0].find("actions: element 1 is 0 by its 1 % and 99 % quantiles"), std::string::npos)
      << normalizer.notes()[0];
  std::vector<float> rows{0.5f, 1, 0.5f, 0};
  normalizer.normalize(rows);
  constexpr float kRounding = 1e-6f;
  EXPECT_NEAR(rows[0], 0, kRounding);
  normalizer.denormalize(rows);
  EXPECT_NEAR(rows[1], 1, kRounding);
  EXPECT_NEAR(rows[3], 0, kRounding);
}

TEST(Normalization, AScaleThatAFewStepsSetIsSaid) {
  // A sensor that reported 1e4 once; beside it an ordinary element, and a gripper that seldom opens.
  VectorStatistics glitch{.mean = {1, 0, 0},
                          .std = {100, 0.5, 0.03},
                          .min = {0, -1, 0},
                          .max = {1e4, 1, 1},
                          .q01 = {0.1, -0.9, 0},
                          .q99 = {1.9, 0.9, 0}};
  const std::vector<std::int64_t> widths{3};
  for (const char* kind : {"bounds", "normal"}) {
    const Normalizer normalizer({kind}, widths, glitch, "error", "actions");
    ASSERT_EQ(normalizer.notes().size(), 1u) << kind;
    EXPECT_NE(normalizer.notes()[0].find("in 98 of 100 steps only from "
                                         "0.1 to 1.9: a few steps set its scale"),
              std::string::npos)
        << normalizer.notes()[0];
  }
  const std::vector<std::string> by_quantiles = Normalizer({"quantiles"}, widths, glitch, "error", "actions").notes();
  ASSERT_EQ(by_quantiles.size(), 1u) << "the gripper's";
  EXPECT_NE(by_quantiles[0].find("element 2"), std::string::npos) << by_quantiles[0];
  // Quantiles are offered only where they are wide enough to be taken.
  const auto offered = [&] {
    return Normalizer({"bounds"}, widths, glitch, "error", "actions").notes().at(0).find("by quantiles") !=
           std::string::npos;
  };
  EXPECT_TRUE(offered());
  glitch.max[0] = 1e9;
  EXPECT_FALSE(offered());
}

TEST(Normalization, AnElementThatNeverChangesIsNamed) {
  const VectorStatistics flat{
      .mean = {1, 5}, .std = {1, 0}, .min = {0, 5}, .max = {2, 5}, .q01 = {0, 5}, .q99 = {2, 5}};
  const std::vector<std::int64_t> widths{2};
  EXPECT_ERROR(Normalizer({"bounds"}, widths, flat, "error", "actions"),
               "actions: element 1 (component 0) is 5 in every step");
  std::vector<float> rows{1, 5};
  const Normalizer zero({"bounds"}, widths, flat, "zero", "actions");
  zero.normalize(rows);
  EXPECT_EQ(rows[1], 0.0f);
  zero.denormalize(rows);
  EXPECT_EQ(rows[1], 5.0f);
  Normalizer({"normal"}, widths, flat, "keep", "actions").normalize(rows);
  EXPECT_EQ(rows[1], 5.0f);
  EXPECT_ERROR(Normalizer({"bounds"}, std::vector<std::int64_t>{3}, flat, "keep", "actions"), "of another data set");
  EXPECT_ERROR(Normalizer({"bound"}, widths, flat, "keep", "actions"), "unknown normalisation 'bound'");
}

}  // namespace
}  // namespace cohort::data
