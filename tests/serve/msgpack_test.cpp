// The messages of openpi's protocol, byte by byte.
#include "serve/msgpack.h"

#include <cmath>

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/message_of.h"
#include "core/philox.h"

namespace cohort::serve {
namespace {

using namespace std::string_literals;

TEST(Msgpack, ValuesHaveTheBytesOfTheSpecification) {
  const std::vector<std::pair<Value, std::string>> pairs{
      {{}, "\xc0"s},
      {{true}, "\xc3"s},
      {{std::int64_t{5}}, "\x05"s},
      {{std::int64_t{-3}}, "\xfd"s},
      {{std::int64_t{-300}}, "\xd3\xff\xff\xff\xff\xff\xff\xfe\xd4"s},
      {{std::uint64_t{1} << 63}, "\xcf\x80\0\0\0\0\0\0\0"s},
      {{1.5}, "\xcb\x3f\xf8\0\0\0\0\0\0"s},
      {{"ab"s}, "\xa2"s + "ab"},
      {{std::string(40, 'x')}, "\xd9\x28"s + std::string(40, 'x')},
      {{Bytes{"ab"}}, "\xc4\x02"s + "ab"},
      {{List{{true}, {false}}}, "\x92\xc3\xc2"s},
      {{Map{{"k", {std::int64_t{1}}}}}, "\x81\xa1k\x01"s}};
  for (const auto& [value, bytes] : pairs) {
    EXPECT_EQ(pack(value), bytes) << describe(value);
    EXPECT_EQ(pack(unpack(bytes)), bytes) << describe(value);
  }
}

// As msgpack.packb({"a": numpy.array([[1, 2]], dtype="<f4")}, default=openpi_client.msgpack_numpy.pack_array) writes it.
TEST(Msgpack, AnArrayHasOpenpisKeysOfBytes) {
  const std::string bytes = "\x81\xa1"s + "a" + "\x84\xc4\x0b"s + "__ndarray__" + "\xc3\xc4\x04"s + "data" +
                            "\xc4\x08\0\0\x80\x3f\0\0\0\x40"s + "\xc4\x05"s + "dtype" + "\xa3"s + "<f4" + "\xc4\x05"s +
                            "shape" + "\x92\x01\x02"s;
  const float numbers[] = {1, 2};
  EXPECT_EQ(pack({Map{{"a", {float_array({1, 2}, numbers)}}}}), bytes);
  const Value read = unpack(bytes);
  const auto& array = std::get<NumpyArray>(find(read, "a")->of);
  EXPECT_EQ(array.shape, (std::vector<std::int64_t>{1, 2}));
  EXPECT_EQ(to_floats(array), (std::vector<float>{1, 2}));
}

TEST(Msgpack, NumbersOfEveryTypeBecomeFloats) {
  EXPECT_EQ(to_floats({"<f2", {3}, "\0\x3c\0\xc0\x01\0"s}), (std::vector<float>{1, -2, std::ldexp(1.0f, -24)}));
  EXPECT_EQ(to_floats({"<f8", {1}, "\0\0\0\0\0\0\xf8\x3f"s}), (std::vector<float>{1.5f}));
  EXPECT_EQ(to_floats({"<i2", {1}, "\xff\xff"s}), (std::vector<float>{-1}));
  EXPECT_EQ(to_floats({"|u1", {2}, "\xff\x01"s}), (std::vector<float>{255, 1}));
  EXPECT_EQ(to_floats({"|b1", {1}, "\x01"s}), (std::vector<float>{1}));
  EXPECT_TRUE(std::isinf(to_floats({"<f2", {1}, "\0\x7c"s}).at(0)));
}

TEST(Msgpack, WhatIsNoMessageIsRefusedAndNamed) {
  const std::string array = "\x84\xc4\x0b"s + "__ndarray__" + "\xc3\xc4\x04"s + "data";
  const std::string rest = "\xc4\x05"s + "dtype" + "\xa3"s + "<f4" + "\xc4\x05"s + "shape";
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "1 bytes are announced, 0 follow"},
      {"\x81\xa1k"s, "0 follow"},
      {"\x01\x02"s, "goes on behind its end"},
      {"\xc6\xff\xff\xff\xff"s, "4294967295 bytes are announced"},
      {"\xdf\xff\xff\xff\xff"s, "0 follow"},
      {"\xc1"s, "type 0xc1"},
      {"\xd4\x01\x01"s, "type 0xd4"},
      {"\x81\x01\x01"s, "a key of a map is a whole number"},
      {std::string(40, '\x91'), "more than 16 levels"},
      {"\xdd\0\x0f\x42\x40"s + std::string(200'000, '\xc0'), "more than 100000 values"},
      {array + "\xc4\x03"s + "abc" + rest + "\x91\x01"s, "an array float32 (1) with 3 bytes"},
      {array + "\xc4\x04"s + "abcd" + rest + "\x92\xcf\x7f\xff\xff\xff\xff\xff\xff\xff\x04"s, "bytes"}};
  for (const auto& [bytes, what] : bad) {
    const std::string message = message_of([&] { unpack(bytes); });
    EXPECT_NE(message.find(what), std::string::npos) << what << ": " << message;
  }
}

TEST(Msgpack, AnArrayOfNoNumbersIsRefusedByWhoLooksAtIt) {
  for (const auto& [dtype, what] : {std::pair{">f4", "big-endian"}, {"<c8", "numbers are float16"}, {"<U1", "'<U1'"}}) {
    const Value read = unpack(pack({NumpyArray{dtype, {1}, "abcd"}}));
    const auto* array = std::get_if<NumpyArray>(&read.of);
    ASSERT_NE(array, nullptr);
    EXPECT_EQ(describe(read), format("an array of '{}' (1)", dtype));
    EXPECT_NE(message_of([&] { to_floats(*array); }).find(what), std::string::npos) << dtype;
  }
}

TEST(Msgpack, DamagedMessagesAreReadOrRefusedAndNeverCrash) {
  const float numbers[] = {1, 2, 3, 4, 5, 6};
  const std::string good = pack({Map{{"observation/state", {float_array({2, 3}, numbers)}},
                                     {"prompt", {"close the drawer"s}},
                                     {"list", {List{{1.5}, {std::int64_t{7}}, {Map{{"deep", {true}}}}}}},
                                     {"reset", {true}}}});
  int refused = 0;
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    const RandomStream draw(3, RandomPurpose::kTest, i, 0);
    std::string bytes = good;
    if (i % 4 == 0)  // noise
      for (std::size_t k = 0; k < bytes.size(); ++k)
        bytes[k] = static_cast<char>(static_cast<int>(draw.uniform(k) * 256));
    else  // a few wrong bytes, or an end too early
      for (std::uint64_t k = 0; k < 1 + i % 3; ++k)
        bytes[static_cast<std::size_t>(draw.uniform(2 * k) * static_cast<float>(bytes.size() - 1))] =
            static_cast<char>(static_cast<int>(draw.uniform(2 * k + 1) * 256));
    if (i % 5 == 0) bytes.resize(static_cast<std::size_t>(draw.uniform(99) * static_cast<float>(bytes.size())));
    try {
      pack(unpack(bytes));
    } catch (const Error&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 5'000);
}

}  // namespace
}  // namespace cohort::serve
