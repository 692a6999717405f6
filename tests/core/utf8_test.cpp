#include "core/utf8.h"

#include <gtest/gtest.h>

namespace cohort {
namespace {

TEST(Utf8, WhatIsNoneIsFoundWithItsOffset) {
  for (const char* text : {"", "a", "温度", "\xC3\xA9", "\xF4\x8F\xBF\xBF", "\x7F"})
    EXPECT_EQ(find_not_utf8(text), std::string_view::npos) << text;
  // RFC 3629: stray and missing continuations, overlong forms, surrogates, above U+10FFFF.
  for (const char* text : {"\x80", "\xC3", "\xC0\xAF", "\xE0\x80\x80", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF8",
                           "\xFF", "\xE6\xB8", "\xC3("})
    EXPECT_EQ(find_not_utf8(text), 0u) << text;
  EXPECT_EQ(find_not_utf8("date,\xB7\xE7"), 5u);
  EXPECT_EQ(find_not_utf8("温\xE9"), 3u);
}

TEST(Utf8, AnyBytesComeBackFromTheirText) {
  std::string all;
  for (int byte = 1; byte < 256; ++byte) all += static_cast<char>(byte);
  for (const std::string& bytes : {all, std::string("load\xE9.csv"), std::string("温度"), std::string("\xEE\xBF\xA9"),
                                   std::string("\xEE\xBE\x80\xE9\xEE")}) {
    const std::string text = bytes_to_utf8(bytes);
    EXPECT_EQ(find_not_utf8(text), std::string_view::npos);
    EXPECT_EQ(utf8_to_bytes(text), bytes);
  }
  EXPECT_EQ(bytes_to_utf8("温度/a b.csv"), "温度/a b.csv") << "UTF-8 stays as it is";
}

}  // namespace
}  // namespace cohort
