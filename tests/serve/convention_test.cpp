// LIBERO's observations by the names of openpi, lerobot and vla-eval, for policies that learnt there and clients from there.
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/files.h"
#include "core/json_text.h"
#include "core/message_of.h"
#include "core/philox.h"
#include "policy/convention_policy.h"
#include "policy/libero_convention.h"

namespace cohort::policy {
namespace {

constexpr double kRounding = 2e-6;  // of single precision, in orientations

void has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << text;
}

TEST(LiberoConvention, SettingsAreReadAndWhatIsWrongIsNamed) {
  const LiberoConvention c = libero_convention("openpi-libero:crop=0.9,gripper=rlds,size=0");
  EXPECT_EQ(c.crop, 0.9);
  EXPECT_EQ(c.text(), "openpi-libero:size=0,crop=0.9,gripper=rlds");
  EXPECT_EQ(libero_convention("lerobot-libero").text(), "lerobot-libero");
  const auto said = [](const char* text) { return message_of([&] { libero_convention(text); }); };
  has(said("robosuite"), "task, openpi-libero, lerobot-libero, vla-eval-libero are known");
  has(said("openpi-libero:flip=both"),
      "no setting 'flip': drawn, size, turn, crop, rotation, quaternion, fingers, gripper");
  has(said("openpi-libero:turn=both"), "turn=both: it is half|rows|none");
  has(said("openpi-libero:turn="), "turn=: it is half|rows|none");
  has(said("openpi-libero:crop=2"), "crop=2: it is a number between 0.01 and 1");
  has(said("openpi-libero:crop"), "'crop' is no setting KEY=VALUE");
  for (const char* part : {"openpi-libero: observation/image, observation/wrist_image, observation/state", "size=224",
                           "drawn=360", "quaternion=positive", "crop (0 to 1)"})
    has(libero_conventions_help(), part);
}

TEST(LiberoConvention, AServerOfVlaEvalIsShownWhatItAsksForUnlessTheTextSaysOtherwise) {
  const LiberoConvention asked =
      libero_convention("vla-eval-libero", {{"send_state", true}, {"quat_no_antipodal", true}});
  EXPECT_TRUE(asked.with_state);
  EXPECT_FALSE(asked.with_wrist);
  EXPECT_EQ(asked.quaternion, "as-is");
  EXPECT_EQ(libero_convention("vla-eval-libero:quaternion=positive", {{"quat_no_antipodal", true}}).quaternion,
            "positive");
  has(message_of([] { libero_convention("vla-eval-libero", {{"absolute_action", true}}); }), "absolute_action");
}

/// Pixel (y, x): 40 y + 3 x, the same in all colours.
std::vector<std::uint8_t> ramp(int height, int width) {
  std::vector<std::uint8_t> rgb;
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) rgb.insert(rgb.end(), 3, static_cast<std::uint8_t>(40 * y + 3 * x));
  return rgb;
}

TEST(LiberoConvention, PicturesAreTurnedAndTheirMiddleIsCutOut) {
  const auto first = [](const char* text) {
    return convention_picture(libero_convention(text), ramp(4, 4), 4, 4).front();
  };
  EXPECT_EQ(first("lerobot-libero"), 40 * 3 + 3 * 3) << "half a turn";
  EXPECT_EQ(first("lerobot-libero:turn=rows"), 40 * 3);
  EXPECT_EQ(first("lerobot-libero:turn=none"), 0);
  EXPECT_EQ(convention_picture(libero_convention("openpi-libero"), ramp(4, 4), 4, 4).size(), 224u * 224 * 3);
  // A quarter of the area is the middle of half the side: pixels 1 and 2, resized by a triangle back to four.
  const auto middle = convention_picture(libero_convention("lerobot-libero:crop=0.25,turn=none"), ramp(4, 4), 4, 4);
  ASSERT_EQ(middle.size(), 4u * 4 * 3);
  EXPECT_EQ(middle.front(), 40 + 3);
  EXPECT_EQ(middle.back(), 80 + 6);
  EXPECT_EQ(middle[3 * 5], (40 * 5 + 3 * 5 + 2) / 4) << "a quarter of the way from pixel 1 to 2, both ways";
}

TEST(LiberoConvention, OrientationsAreVlaEvalsForEitherSign) {
  const auto rows =
      parse_json<nlohmann::json>(read_file(COHORT_SOURCE_DIR "/tests/serve/fixtures/vla_eval/orientations.json"));
  int negative = 0;
  for (const auto& row : rows) {
    const auto xyzw = row.at("xyzw").get<std::vector<float>>();
    negative += xyzw[3] < 0 ? 1 : 0;
    const std::vector<float> pos{1, 2, 3}, fingers{0.02f, -0.03f};
    for (const char* sign : {"as-is", "positive"}) {
      const auto state =
          convention_state(libero_convention(std::string("vla-eval-libero:quaternion=") + sign), pos, xyzw, fingers);
      ASSERT_EQ(state.size(), 8u);
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_NEAR(state[3 + i], row.at(sign)[i].get<double>(), 20 * kRounding) << sign;
      EXPECT_EQ(state[7], -0.03f);
    }
    EXPECT_EQ(
        convention_state(libero_convention("lerobot-libero:rotation=quaternion,fingers=first"), pos, xyzw, fingers)
            .size(),
        8u);
  }
  EXPECT_GT(negative, 2) << "both signs must occur";
}

/// Keeps what it was shown, and answers with what it is told to.
class Recorder final : public Policy {
 public:
  Recorder(std::vector<Observation> observations, std::vector<float> answer) : answer_(std::move(answer)) {
    spec_.summary = spec_.identity = "recorder";
    spec_.observations = std::move(observations);
    spec_.action_width = 7;
  }
  const Spec& spec() const override { return spec_; }
  std::unique_ptr<Session> session(const SessionSettings&) override { return std::make_unique<Records>(*this); }

  std::vector<float> numbers;
  std::vector<std::vector<std::uint8_t>> pictures;

 private:
  struct Records final : Session {
    explicit Records(Recorder& recorder) : of(recorder) {}
    void begin(std::span<const std::int32_t>, std::span<const std::uint64_t>, const std::string&) override {}
    void see(std::span<const std::int32_t>, const Frame&) override {}
    std::vector<std::vector<float>> act(std::span<const std::int32_t> envs, const Frame& frame) override {
      of.numbers.assign(frame.low_dim.begin(), frame.low_dim.end());
      of.pictures.clear();
      for (const ArrayView& view : frame.images) {
        const auto bytes = view.span<std::uint8_t>();
        of.pictures.emplace_back(bytes.begin(), bytes.end());
      }
      return std::vector<std::vector<float>>(envs.size(), of.answer_);
    }
    Recorder& of;
  };
  Spec spec_;
  std::vector<float> answer_;
};

/// What two environments of LIBERO show: place, quaternion, fingers; agentview and the hand's camera, the last row first.
struct Shown {
  Shown() {
    for (std::size_t i = 0; i < 2; ++i) {
      const RandomStream draw(5, RandomPurpose::kTest, i, 0);
      std::vector<float> q;
      for (std::size_t k = 0; k < 4; ++k) q.push_back(draw.uniform(k) - 0.5f);
      q[3] = i == 0 ? -0.3f : 0.3f;
      const float norm = std::sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]);
      for (std::size_t k = 0; k < 3; ++k) numbers.push_back(draw.uniform(10 + k));
      for (const float x : q) numbers.push_back(x / norm);
      numbers.insert(numbers.end(), {0.01f, -0.02f});
      for (std::size_t k = 0; k < 8 * 8 * 3; ++k) {
        agent.push_back(static_cast<std::uint8_t>(draw.uniform(100 + k) * 256));
        hand.push_back(static_cast<std::uint8_t>(draw.uniform(1000 + k) * 256));
      }
    }
  }
  std::vector<float> numbers;  // (2, 9)
  std::vector<std::uint8_t> agent, hand;
  const std::int32_t envs[2] = {0, 1};
};

TEST(ConventionPolicy, APolicyThatLearntFromLerobotsNamesIsShownThemInItsOrder) {
  Shown shown;
  auto own = std::make_unique<Recorder>(
      std::vector<Observation>{{.name = "observation.images.image2", .shape = {-1, -1, 3}, .picture = true},
                               {.name = "observation.state", .shape = {8}},
                               {.name = "observation.images.image", .shape = {-1, -1, 3}, .picture = true}},
      std::vector<float>{0, 0, 0, 0, 0, 0, 0.9f});
  Recorder& recorder = *own;
  const auto policy = shown_as("lerobot-libero:gripper=rlds", std::move(own));
  std::vector<std::string> names;
  for (const Observation& o : policy->spec().observations) names.push_back(o.name);
  EXPECT_EQ(names, (std::vector<std::string>{"robot0_eef_pos", "robot0_eef_quat", "robot0_gripper_qpos",
                                             "eye_in_hand_rgb", "agentview_rgb"}));
  EXPECT_EQ(policy->spec().observations.back().shape[0], 360);
  const std::vector<ArrayView> images{make_view(shown.hand.data(), {2, 8, 8, 3}),
                                      make_view(shown.agent.data(), {2, 8, 8, 3})};
  const auto session = policy->session({});
  const auto chunks = session->act(shown.envs, {.low_dim = shown.numbers, .images = images});
  EXPECT_EQ(chunks[1][6], -1) << "open";
  ASSERT_EQ(recorder.numbers.size(), 16u);
  EXPECT_EQ(recorder.numbers[8], shown.numbers[9]);
  EXPECT_EQ(recorder.numbers[15], -0.02f);
  ASSERT_EQ(recorder.pictures.size(), 2u);
  // Half a turn: the first pixel is the last one.
  EXPECT_EQ(recorder.pictures[0][0], shown.hand[(64 - 1) * 3]);
  EXPECT_EQ(recorder.pictures[1][64 * 3], shown.agent[(128 - 1) * 3]) << "of the second environment";
}

TEST(ConventionPolicy, ThereAndBackIsWhatLiberoShowed) {
  for (const char* text : {"vla-eval-libero", "lerobot-libero:turn=rows,gripper=inverted",
                           "openpi-libero:size=0,turn=none", "lerobot-libero:rotation=quaternion,gripper=rlds"}) {
    Shown shown;
    auto own = std::make_unique<Recorder>(
        std::vector<Observation>{{.name = "obs/agentview_rgb", .shape = {8, 8, 3}, .picture = true},
                                 {.name = "obs/robot0_eef_quat", .shape = {4}},
                                 {.name = "obs/gripper_states", .shape = {2}},
                                 {.name = "obs/eye_in_hand_rgb", .shape = {8, 8, 3}, .picture = true},
                                 {.name = "obs/agentview_image", .shape = {8, 8, 3}, .picture = true},
                                 {.name = "obs/ee_pos", .shape = {3}}},
        std::vector<float>{0, 0, 0, 0, 0, 0, 1});
    Recorder& recorder = *own;
    const auto policy = shown_as(text, answering(text, std::move(own)));
    const std::vector<ArrayView> images{make_view(shown.agent.data(), {2, 8, 8, 3}),
                                        make_view(shown.hand.data(), {2, 8, 8, 3})};
    const auto chunks = policy->session({})->act(shown.envs, {.low_dim = shown.numbers, .images = images});
    EXPECT_EQ(chunks[0][6], 1) << text << ": the gripper's meaning, too";
    ASSERT_EQ(recorder.numbers.size(), 18u) << text;
    for (std::size_t env = 0; env < 2; ++env) {
      const float *got = recorder.numbers.data() + 9 * env, *put = shown.numbers.data() + 9 * env;
      for (std::size_t k = 0; k < 4; ++k)
        EXPECT_NEAR(got[k], put[3 + k], kRounding) << text << ", with the quaternion's sign";
      for (std::size_t k = 0; k < 2; ++k) EXPECT_EQ(got[4 + k], put[7 + k]) << text;
      for (std::size_t k = 0; k < 3; ++k) EXPECT_EQ(got[6 + k], put[k]) << text;
    }
    ASSERT_EQ(recorder.pictures.size(), 3u);
    EXPECT_EQ(recorder.pictures[0], shown.agent) << text;
    EXPECT_EQ(recorder.pictures[1], shown.hand) << text;
    EXPECT_EQ(recorder.pictures[2][0], shown.agent[7 * 8 * 3]) << text << ": upright, its first row is the last one";
  }
}

TEST(ConventionPolicy, WhatTheOtherSideDoesNotHaveIsNamed) {
  const auto sees = [](Observation o) {
    return std::make_unique<Recorder>(std::vector<Observation>{std::move(o)}, std::vector<float>(7));
  };
  has(message_of([&] {
        shown_as("lerobot-libero", sees({.name = "observation.images.front", .shape = {8, 8, 3}, .picture = true}));
      }),
      "it sees 'observation.images.front', but --observations lerobot-libero shows observation.images.image");
  has(message_of([&] { shown_as("lerobot-libero", sees({.name = "observation.state", .shape = {9}})); }),
      "has 9 numbers, but that of --observations lerobot-libero has 8: look at rotation and fingers");
  has(message_of([&] { answering("vla-eval-libero", sees({.name = "obs/joint_states", .shape = {7}})); }),
      "it sees 'obs/joint_states' (7 numbers), which cannot be made of the state");
  has(message_of([&] {
        answering("vla-eval-libero", sees({.name = "obs/front_image", .shape = {8, 8, 3}, .picture = true}));
      }),
      "it sees the pictures 'obs/front_image'");
  has(message_of([&] { answering("vla-eval-libero:crop=0.9", sees({.name = "obs/ee_pos", .shape = {3}})); }),
      "a crop has cut off");
  has(message_of(
          [&] { answering("vla-eval-libero:fingers=first", sees({.name = "obs/gripper_states", .shape = {2}})); }),
      "both fingers");
}

}  // namespace
}  // namespace cohort::policy
