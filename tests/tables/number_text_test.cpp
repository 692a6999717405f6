#include "tables/number_text.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "data/random_text.h"

namespace cohort::tables {
namespace {
using data::TestRandom;

/// The C library's strtod is exactly rounded (glibc), and knows nothing of ours.
void expect_as_strtod(const std::string& text) {
  char* rest = nullptr;
  const double expected = std::strtod(text.c_str(), &rest);
  ASSERT_EQ(*rest, '\0') << text;
  static const std::vector<NumberParser> versions = number_parsers();
  static std::string buffer;
  buffer.assign(kNumberPadding, '7');
  buffer += text;
  buffer += ',';
  buffer.append(kNumberPadding, '9');
  const char* const begin = buffer.data() + kNumberPadding;
  for (std::size_t v = 0; v < versions.size(); ++v) {
    double value = 0;
    ASSERT_EQ(versions[v](begin, '.', value), begin + text.size()) << text << " in version " << v;
    ASSERT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(expected))
        << text << " read as " << value << " instead of " << expected << " in version " << v;
  }
}

std::string random_sign(TestRandom& random) {
  const int sign = random.below(4);
  return sign == 0 ? "-" : sign == 1 ? "+" : "";
}

TEST(NumberText, ShortestFormsOfRandomBitPatternsReadAsStrtodReadsThem) {
  TestRandom random(1);
  for (int i = 0; i < 300000; ++i) {
    const std::uint64_t bits = (std::uint64_t{random.bits()} << 32) | random.bits();
    const double value = std::bit_cast<double>(bits);
    if (!std::isfinite(value)) continue;
    char text[64];
    const auto end = std::to_chars(text, text + sizeof text, value).ptr;
    expect_as_strtod(std::string(text, end));
  }
}

TEST(NumberText, NumbersAsTablesHoldThemReadAsStrtodReadsThem) {
  TestRandom random(2);
  for (int i = 0; i < 400000; ++i) {
    char text[64];
    const double value = random.normal() * std::pow(10.0, random.below(9) - 4);
    std::snprintf(text, sizeof text, random.chance(0.5) ? "%.*f" : "%.*g", random.below(21), value);
    expect_as_strtod(text);
  }
}

TEST(NumberText, RandomDigitsMarksAndExponentsReadAsStrtodReadsThem) {
  TestRandom random(3);
  for (int i = 0; i < 800000; ++i) {
    std::string text = random_sign(random);
    const int whole = random.below(random.chance(0.1) ? 40 : 12);
    int fraction = random.below(random.chance(0.1) ? 60 : 22);
    if (whole == 0 && fraction == 0) fraction = 1;
    if (random.chance(0.1)) text += std::string(static_cast<std::size_t>(random.below(30)), '0');
    text += random.digits(whole);
    if (fraction > 0 || random.chance(0.2)) text += '.';
    if (fraction > 0 && random.chance(0.1)) text += std::string(static_cast<std::size_t>(random.below(30)), '0');
    text += random.digits(fraction);
    if (random.chance(0.3)) {
      text += random.chance(0.5) ? 'e' : 'E';
      text += random_sign(random);
      text += random.digits(1 + random.below(3));
    }
    expect_as_strtod(text);
  }
}

TEST(NumberText, HalfwayCasesRoundToEven) {
  TestRandom random(4);
  for (int i = 0; i < 60000; ++i) {
    // A float64's mantissa and one bit more, set: exactly between two numbers, written in full.
    const std::uint64_t mantissa = (std::uint64_t{1} << 52) |
                                   ((std::uint64_t{random.bits()} << 20) & ((1ull << 52) - 1)) |
                                   (random.bits() & 0xFFFFF);
    const std::uint64_t halfway = mantissa * 2 + 1;
    char text[400];
    std::snprintf(text, sizeof text, "%llu", static_cast<unsigned long long>(halfway));
    expect_as_strtod(text);
    const int shift = random.below(20) - 10;
    std::snprintf(text, sizeof text, "%.30f", std::ldexp(static_cast<double>(mantissa), shift - 52));
    expect_as_strtod(text);
    // An odd multiple of a power of two below 1 needs many digits; its neighbourhood is the hardest to round.
    std::string near = text;
    near.back() = static_cast<char>('0' + random.below(10));
    expect_as_strtod(near);
  }
}

TEST(NumberText, TheEdgesOfFloat64ReadAsStrtodReadsThem) {
  for (const char* text : {"0",
                           "-0",
                           "0.0",
                           "-0.0e5",
                           "00",
                           "000.000",
                           "1",
                           "-1",
                           "5.",
                           ".5",
                           "-.5",
                           "+.5e1",
                           "9007199254740991",
                           "9007199254740992",
                           "9007199254740993",
                           "9007199254740995",
                           "9999999999999999999",
                           "18446744073709551615",
                           "18446744073709551616",
                           "99999999999999999999",
                           "1.7976931348623157e308",
                           "1.7976931348623158e308",
                           "1.7976931348623159e308",
                           "1e308",
                           "1e309",
                           "-1e309",
                           "1e400",
                           "1e99999999999",
                           "1e-99999999999",
                           "2.2250738585072014e-308",
                           "2.2250738585072011e-308",
                           "4.9e-324",
                           "2.5e-324",
                           "2.4703282292062327e-324",
                           "2.4703282292062328e-324",
                           "1e-400",
                           "-1e-400",
                           "0.1",
                           "0.2",
                           "0.3",
                           "1e22",
                           "1e23",
                           "8.5e22",
                           "1e-22",
                           "1e-23",
                           "123456789012345678901234567890",
                           "0.000000000000000000000000000000000000000000000000000000000000001",
                           "1e54",
                           "1e-54",
                           "1e55",
                           "1e-55",
                           "9999999999999999999e54",
                           "1e+5",
                           "1E5",
                           "1e05",
                           "0e400",
                           "0.0e-400",
                           "6929495644600919.5",
                           "3.5177445513124998e-08",
                           "1090544144181609348671888949248",
                           "1090544144181609348835077142190"})
    expect_as_strtod(text);
}

TEST(NumberText, WhatIsNoNumberIsRefused) {
  for (const char* text : {"",      " ",     "-",   "+",    ".",     "-.",  "e5",      "1e",    "1e+",
                           "1.5e-", "--1",   "+-1", "1..2", "1.2.3", "1 2", "0x10",    "1f",    "1,5",
                           "abc",   "1e5.5", "nan", "i",    "info",  "in",  "infinit", "1_000", "\xef\xbc\x91"}) {
    double value = 0;
    EXPECT_FALSE(parse_number(std::string_view(text), '.', value)) << text;
  }
}

TEST(NumberText, InfinityReadsInAnyCase) {
  for (const char* text : {"inf", "-inf", "+Inf", "INF", "Infinity", "-INFINITY"}) {
    double value = 0;
    ASSERT_TRUE(parse_number(std::string_view(text), '.', value)) << text;
    EXPECT_EQ(value,
              text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity());
  }
}

TEST(NumberText, ACommaCanBeTheDecimalMark) {
  for (const char* text :
       {"1,5", "-0,125", ",5", "12345678901234567,25", "1,5e3", "0,3333333333333333333333333333333"}) {
    double value = 0;
    ASSERT_TRUE(parse_number(std::string_view(text), ',', value)) << text;
    std::string dotted = text;
    dotted[dotted.find(',')] = '.';
    EXPECT_EQ(value, std::strtod(dotted.c_str(), nullptr)) << text;
  }
  double value = 0;
  EXPECT_FALSE(parse_number(std::string_view("1.5"), ',', value));
}

TEST(NumberText, ParsingStopsBehindTheNumber) {
  std::string buffer(kNumberPadding, '\n');
  buffer += "-12.75;8e3\n";
  buffer.append(kNumberPadding, '\n');
  double value = 0;
  const char* end = parse_number(buffer.data() + kNumberPadding, '.', value);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(value, -12.75);
  EXPECT_EQ(*end, ';');
  end = parse_number(end + 1, '.', value);
  ASSERT_NE(end, nullptr);
  EXPECT_EQ(value, 8000);
  EXPECT_EQ(*end, '\n');
}

}  // namespace
}  // namespace cohort::tables
