// What clients send, as a policy sees it.
#include "serve/observation.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "policy/libero_convention.h"
#include "serve/msgpack.h"

namespace cohort::serve {
namespace {

policy::Spec seeing() {
  policy::Spec info;
  info.observations = {{.name = "observation/state", .shape = {3}, .picture = false},
                       {.name = "obs/grip", .shape = {1}, .picture = false},
                       {.name = "observation/front_image", .shape = {2, 2, 3}, .picture = true}};
  info.instructed = true;
  info.action_width = 2;
  info.chunk = 4;
  return info;
}

NumpyArray state(std::vector<float> numbers = {1, 2, 3}) {
  return float_array({std::ssize(numbers)}, numbers);
}
NumpyArray picture(std::vector<std::int64_t> shape = {2, 2, 3}) {
  std::int64_t bytes = 1;
  for (const std::int64_t n : shape) bytes *= n;
  std::vector<std::uint8_t> rgb(static_cast<std::size_t>(bytes));
  for (std::size_t i = 0; i < rgb.size(); ++i) rgb[i] = static_cast<std::uint8_t>(i);
  return byte_array(std::move(shape), rgb);
}

TEST(ServedObservation, IsFoundByWhateverAFormatCallsIt) {
  const Map full{{"observation/state", {state()}},
                 {"obs/grip", {0.5}},
                 {"observation/front_image", {picture()}},
                 {"prompt", {std::string("close the drawer")}},
                 {"something/else", {true}}};
  const Map bare{{"state", {List{{1.0}, {std::int64_t{2}}, {3.0}}}}, {"grip", {state({0.5f})}}, {"front", {picture()}}};
  const Map lerobot{
      {"observation.state", {state()}}, {"observation.grip", {0.5}}, {"observation.images.front", {picture()}}};
  const Map mixed{{"obs/state", {state()}}, {"observation/grip", {0.5}}, {"observation/images/front", {picture()}}};
  for (const Map& message : {full, bare, lerobot, mixed}) {
    const Request request = read_request({message}, seeing());
    ASSERT_EQ(request.frames.size(), 1u);
    EXPECT_EQ(request.frames[0].numbers, (std::vector<float>{1, 2, 3, 0.5f}));
    ASSERT_EQ(request.frames[0].pictures.size(), 1u);
    EXPECT_EQ(request.frames[0].pictures[0].rgb.back(), 11);
    EXPECT_FALSE(request.reset);
  }
  EXPECT_EQ(read_request({full}, seeing()).prompt, "close the drawer");
}

TEST(ServedObservation, SeveralMomentsAreStacked) {
  policy::Spec info = seeing();
  info.frames = 2;
  const float states[] = {1, 2, 3, 4, 5, 6}, grips[] = {7, 8};
  const Request request = read_request({Map{{"state", {float_array({2, 3}, states)}},
                                            {"grip", {float_array({2, 1}, grips)}},
                                            {"front_image", {picture({2, 2, 2, 3})}},
                                            {"reset", {true}},
                                            {"seed", {std::int64_t{9}}}}},
                                       info);
  EXPECT_FALSE(request.robots);
  ASSERT_EQ(request.frames.size(), 2u);
  EXPECT_EQ(request.frames[1].numbers, (std::vector<float>{4, 5, 6, 8}));
  EXPECT_EQ(request.frames[1].pictures[0].rgb.front(), 12);
  EXPECT_TRUE(request.reset);
  EXPECT_EQ(request.seed, 9u);
}

TEST(ServedObservation, OfAPolicyThatLooksAtOneMomentStackedOnesAreOfSeveralRobots) {
  const float states[] = {1, 2, 3, 4, 5, 6}, grips[] = {7, 8}, more[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  const Map robots{{"state", {float_array({2, 3}, states)}},
                   {"grip", {float_array({2, 1}, grips)}},
                   {"front_image", {picture({2, 2, 2, 3})}}};
  const Request request = read_request({robots}, seeing());
  ASSERT_EQ(request.frames.size(), 2u);
  EXPECT_TRUE(request.robots);
  EXPECT_FALSE(read_request({Map{{"state", {state()}}, {"grip", {0.5}}, {"front", {picture()}}}}, seeing()).robots);
  policy::Spec remembers = seeing();
  remembers.remembers = true;
  EXPECT_FALSE(read_request({robots}, remembers).robots) << "they are moments of one robot";
  Map both = robots;
  both[0].value = {float_array({2, 2, 3}, more)};
  policy::Spec moments = seeing();
  moments.frames = 2;
  EXPECT_NE(message_of([&] { read_request({both}, moments); }).find("let each robot have a connection of its own"),
            std::string::npos);
  EXPECT_NE(message_of([&] { read_request({both}, seeing()); }).find("one dimension in front, of robots"),
            std::string::npos);
}

TEST(ServedObservation, WhatIsWrongIsNamedWithWhatToSend) {
  const auto refused = [&](Map message, const std::string& name, Value value, const std::vector<std::string>& parts) {
    for (Entry& entry : message)
      if (entry.key == name) entry.value = value;
    const std::string said = message_of([&] { read_request({message}, seeing()); });
    for (const std::string& part : parts) EXPECT_NE(said.find(part), std::string::npos) << part << "\n" << said;
  };
  const Map good{{"state", {state()}}, {"grip", {0.5}}, {"front", {picture()}}, {"prompt", {std::string("go")}}};
  refused(good, "state", {state({1, 2})}, {"'observation/state' is an array float32 (2), but must be (3) float32"});
  refused(good, "state", {std::string("x")}, {"'observation/state' is a text"});
  refused(good, "state", {state({1, NAN, 3})}, {"number 1 of the observation 'observation/state' is nan"});
  refused(good, "front", {state()}, {"'observation/front_image' is an array float32 (3)", "uint8", "astype"});
  refused(good, "front", {picture({3, 2, 2})}, {"send numpy.moveaxis(picture, -3, -1) of one with its channels first"});
  refused(good, "front", {picture({2, 2, 2, 3})}, {"holds 2 robots and 'observation/state' 1"});
  const auto robots = [](std::int64_t count, std::int64_t width) {
    return Value{float_array({count, width}, std::vector<float>(static_cast<std::size_t>(count * width)))};
  };
  refused(good, "state", robots(0, 3), {"'observation/state' holds 0 robots: 1 to 1024 are taken"});
  refused(good, "state", robots(1025, 3), {"'observation/state' holds 1025 robots: 1 to 1024 are taken"});
  refused(good, "state", robots(0, 4), {"'observation/state' is an array float32 (0, 4)", "robots, (N, 3)"});
  refused(good, "front", {picture({0, 2, 2, 3})}, {"'observation/front_image' holds 0 robots"});
  refused(good, "prompt", {1.0}, {"'prompt' is a number, but must be a text"});
  refused({{"grip", {0.5}}, {"image", {picture()}}}, "", {},
          {"lacks the observation 'observation/state'", "it has 'grip', 'image'", "(3) float32", "'prompt', a text"});
  EXPECT_NE(message_of([&] { read_request({true}, seeing()); }).find("must be a map"), std::string::npos);
  refused(good, "front", {picture({2, 2})}, {"numpy.stack([picture] * 3, axis=-1)"});
  refused(good, "front", {picture({2, 2, 1})}, {"numpy.repeat(picture, 3, axis=-1)"});
  refused(good, "front", {picture({2, 2, 4})}, {"picture[..., :3]"});
  refused(good, "front", {picture({0, 2, 3})}, {"sides of 1 to 16384 px"});
  refused(good, "front", {NumpyArray{"<i8", {1, 1, 3}, std::string(24, '\0')}}, {"int64", "astype(numpy.uint8)"});
  refused(good, "front", {NumpyArray{"<U1", {1}, "a\0\0\0"}},
          {"'observation/front_image': an array has the dtype '<U1'"});
  refused(good, "state", {NumpyArray{">f4", {3}, std::string(12, '\0')}}, {"'observation/state': ", "astype('<f4')"});
  refused({{"observation", {good}}}, "", {}, {"lies in the map 'observation'", "as 'observation/state'"});
}

TEST(ServedObservation, WhatThePolicyDoesNotSeeMayBeAnything) {
  Map message{{"state", {state()}}, {"grip", {List{{true}}}}, {"front", {picture()}}, {"prompt", {std::string("go")}}};
  for (const Value& other :
       {Value{NumpyArray{"<U1", {1}, "a"}}, Value{NumpyArray{"|O", {9}, ""}}, Value{}, Value{Map{}}}) {
    Map with = message;
    with.push_back({"joint_names", other});
    const Request request = read_request(unpack(pack({with})), seeing());
    EXPECT_EQ(request.frames.size(), 1u) << describe(other);
    EXPECT_EQ(request.frames.at(0).numbers.back(), 1) << "a truth value is a number";
  }
}

TEST(ServedObservation, PicturesThatThePolicyDoesNotLookAtAreNamed) {
  Map message{{"state", {state()}},         {"grip", {0.5}},     {"front", {picture()}},
              {"left_image", {picture()}},  {"pose", {state()}}, {"prompt", {std::string("go")}},
              {"right_image", {picture()}}, {"map", {Map{}}}};
  EXPECT_EQ(read_request({message}, seeing()).unseen_pictures, (std::vector<std::string>{"left_image", "right_image"}));
  for (int i = 0; i < 100; ++i) message.push_back({format("more_{}", i), {picture()}});
  EXPECT_EQ(read_request({message}, seeing()).unseen_pictures.size(), 8u) << "a client may send any number";
}

TEST(ServedObservation, AResetOrSeedThatIsNotUnderstoodIsRefused) {
  const auto reset = [](Value value) { return read_request({Map{{"reset", std::move(value)}}}, seeing()).reset; };
  EXPECT_TRUE(reset({std::int64_t{1}}));
  EXPECT_TRUE(reset({NumpyArray{"|b1", {1}, "\1"}}));
  EXPECT_TRUE(reset({float_array({}, std::vector<float>{1})}));
  for (const Value& odd : {Value{std::string("yes")}, Value{List{}}, Value{NumpyArray{"|b1", {2}, "\1\1"}}})
    EXPECT_NE(message_of([&] { reset(odd); }).find("'reset' is a"), std::string::npos) << describe(odd);
  EXPECT_NE(message_of([&] { reset({}); }).find("lacks the observation"), std::string::npos) << "None is no reset";
  const auto seed = [](Value value) { return read_seed(Map{{"seed", std::move(value)}}); };
  EXPECT_EQ(seed({std::int64_t{7}}), 7u);
  EXPECT_EQ(seed({}), std::nullopt);
  EXPECT_NE(message_of([&] { seed({1.5}); }).find("'seed' is a number, but must be a whole number"), std::string::npos);
}

TEST(ServedObservation, PicturesOfOtherFormsAreNamedWithTheLineThatMakesThemRight) {
  const auto said = [](Value front) {
    return message_of([&] {
      read_request({Map{{"state", {state()}}, {"grip", {0.5}}, {"front", std::move(front)}}}, seeing());
    });
  };
  const auto ends = [&](Value front, const std::string& remedy) {
    const std::string text = said(std::move(front));
    EXPECT_TRUE(text.ends_with("must be (height, width, 3) uint8: " + remedy)) << text;
  };
  const std::vector<float> numbers(12, 0.5f);
  // The colours as LeRobot's tensors have them, of one robot and of a batch.
  const std::string floats_first =
      "send (255 * numpy.moveaxis(picture, -3, -1)).astype(numpy.uint8) of one between 0 and 1 with its channels first";
  ends({float_array({3, 2, 2}, numbers)}, floats_first);
  ends({float_array({1, 3, 2, 2}, numbers)}, floats_first);
  ends({float_array({2, 2, 3}, numbers)}, "send (255 * picture).astype(numpy.uint8) of one between 0 and 1");
  ends({picture({1, 3, 2, 2})}, "send numpy.moveaxis(picture, -3, -1) of one with its channels first");
  ends({picture({2, 2, 4})}, "send picture[..., :3] of one with transparency");
  ends({picture({2, 2})}, "send numpy.stack([picture] * 3, axis=-1) of a grey one");
  ends({NumpyArray{.dtype = "<i2", .shape = {2, 2, 3}, .data = std::string(24, '\0')}},
       "send picture.astype(numpy.uint8) of one between 0 and 255");
  ends({Bytes{"\xff\xd8"}}, "send the decoded picture, a NumPy array");
}

TEST(ServedObservation, TwoThingsOfOneNameAreRefusedAndACameraIsNotTakenForNumbers) {
  const auto message = [](Map more) {
    Map all{{"state", {state()}}, {"grip", {0.5}}};
    all.insert(all.end(), more.begin(), more.end());
    return Value{all};
  };
  for (const char* first : {"observation/front_image", "front_image"})
    EXPECT_EQ(message_of([&] {
                read_request(message({{first, {picture()}}, {"observation.images.front", {picture()}}}), seeing());
              }),
              format("the message has '{}' and 'observation.images.front', and either may be the observation "
                     "'observation/front_image': send one of them",
                     first));
  EXPECT_NE(message_of([&] {
              read_request(message({{"front", {picture()}}, {"obs/state", {state()}}}), seeing());
            }),
            "");
  // A distance in front of the robot, beside the camera there.
  for (const bool before : {false, true}) {
    Map more{{"front_image", {picture()}}};
    more.insert(before ? more.begin() : more.end(), {"observation/front", {0.25}});
    EXPECT_EQ(read_request(message(more), seeing()).frames.at(0).pictures.at(0).rgb.back(), 11) << before;
  }
  policy::Spec both = seeing();
  both.observations.push_back({.name = "observation/front", .shape = {1}, .picture = false});
  EXPECT_EQ(read_request(message({{"observation/front", {0.25}}, {"observation/front_image", {picture()}}}), both)
                .frames.at(0)
                .numbers.back(),
            0.25f);
}

TEST(ServedObservation, CamerasAreTheirNamesNotTheirOrder) {
  policy::Spec info = seeing();
  info.observations.push_back({.name = "observation/wrist_image", .shape = {2, 2, 3}, .picture = true});
  const Map ordered{{"state", {state()}},
                    {"grip", {0.5}},
                    {"front", {picture()}},
                    {"wrist", {byte_array({2, 2, 3}, std::vector<std::uint8_t>(12, 200))}}};
  const Request one = read_request({ordered}, info),
                other = read_request({Map(ordered.rbegin(), ordered.rend())}, info);
  EXPECT_EQ(one.frames.at(0).pictures.at(1).rgb.front(), 200);
  EXPECT_EQ(other.frames.at(0).pictures.at(1).rgb, one.frames.at(0).pictures.at(1).rgb);
  EXPECT_EQ(other.frames.at(0).pictures.at(0).rgb, one.frames.at(0).pictures.at(0).rgb);
  EXPECT_EQ(other.frames.at(0).numbers, one.frames.at(0).numbers);
}

// As openpi's ALOHA client sends it.
TEST(ServedObservation, WhatLiesInAMapWithinTheMessageIsSaid) {
  const Map aloha{{"state", {state()}}, {"images", {Map{{"front", {picture()}}}}}};
  const std::string said = message_of([&] { read_request({aloha}, seeing()); });
  EXPECT_TRUE(
      said.ends_with(". What lies in the map 'images' is not looked at: send each thing under a name of its "
                     "own, as 'images/front'"))
      << said;
  EXPECT_EQ(read_request({Map{{"state", {state()}}, {"grip", {0.5}}, {"images/front", {picture()}}}}, seeing())
                .frames.at(0)
                .pictures.size(),
            1u);
}

TEST(ServedObservation, AResetNeedsNothingElse) {
  EXPECT_TRUE(read_request({Map{{"reset", {true}}}}, seeing()).frames.empty());
  const Request roboarena = read_request({Map{{"endpoint", {std::string("reset")}}}}, seeing());
  EXPECT_TRUE(roboarena.reset && roboarena.roboarena && roboarena.frames.empty());
  EXPECT_NE(message_of([&] { read_request({Map{{"reset", {false}}}}, seeing()); }), "");
}

TEST(ServedObservation, MetadataSayWhatTheyWereMadeOf) {
  policy::Spec info = seeing();
  info.frames = 2;
  info.observations[0].elements = {"x", "y", "yaw"};
  info.renderer = "raycast";
  info.control_frequency = 12.5;
  const ServerInfo read = server_info(unpack(pack(metadata_of(info))));
  EXPECT_TRUE(read.cohort && read.policy.instructed);
  ASSERT_EQ(read.policy.observations.size(), 3u);
  EXPECT_EQ(read.policy.observations[2].shape, (std::vector<std::int64_t>{2, 2, 3}));
  EXPECT_TRUE(read.policy.observations[2].picture);
  EXPECT_EQ(read.policy.observations[0].elements, (std::vector<std::string>{"x", "y", "yaw"}));
  EXPECT_EQ(read.policy.action_width, 2);
  EXPECT_EQ(read.policy.chunk, 4);
  EXPECT_EQ(read.policy.frames, 2);
  EXPECT_EQ(read.policy.renderer, "raycast");
  EXPECT_EQ(read.policy.control_frequency, 12.5);
  EXPECT_FALSE(server_info({Map{{"reset_pose", {List{{1.0}}}}}}).cohort) << "openpi's metadata are anybody's";
}

TEST(OpenpiLibero, OrientationsAreAxisTimesAngle) {
  const double s = std::sqrt(0.5);
  const std::vector<double> quarter = policy::axis_angle(std::vector<double>{0, 0, s, s});
  EXPECT_DOUBLE_EQ(quarter[2], 2 * std::acos(s));
  EXPECT_EQ(policy::axis_angle(std::vector<double>{0, 0, 0, 1}), (std::vector<double>{0, 0, 0}));
  EXPECT_NEAR(policy::axis_angle(std::vector<double>{1, 0, 0, 0})[0], M_PI, 1e-12);
}

}  // namespace
}  // namespace cohort::serve
