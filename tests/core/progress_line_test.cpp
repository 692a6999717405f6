#include "core/progress_line.h"

#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

namespace cohort {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

ProgressState training(const std::vector<ProgressField>& fields) {
  ProgressState s;
  s.label = "train";
  s.done = 370;
  s.total = 1000;
  s.per_second = 12.34;
  s.samples_per_unit = 32;
  s.elapsed = 65;
  s.left = 161;
  s.fields = fields;
  return s;
}

std::string without_escapes(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      while (text[i] != 'm') ++i;
      continue;
    }
    out += text[i];
  }
  return out;
}

TEST(ProgressLine, ShowsEverythingOnAWideTerminal) {
  const std::vector<ProgressField> fields = {{"loss", "0.4231"}, {"lr", "1.0e-04"}};
  EXPECT_EQ(progress_bar_line(training(fields), {.width = 200, .unicode = true, .color = false}),
            "train   37%  ▕███████████                   ▏  370/1000  12.3 it/s  loss 0.4231  395 samples/s  lr 1.0e-04"
            "  01:05, left 02:41");
  EXPECT_EQ(progress_bar_line(training(fields), {.width = 200, .unicode = false, .color = false}),
            "train   37%  [###########...................]  370/1000  12.3 it/s  loss 0.4231  395 samples/s  lr 1.0e-04"
            "  01:05, left 02:41");
}

TEST(ProgressLine, EighthsOfABlockGrowWithEveryShare) {
  ProgressState s = training({});
  s.total = 8 * 30;
  std::string previous;
  for (s.done = 0; s.done <= s.total; ++s.done) {
    const std::string line = progress_bar_line(s, {.width = 200, .unicode = true, .color = false});
    const std::string bar = line.substr(line.find("▕"), line.find("▏  ") - line.find("▕"));
    EXPECT_NE(bar, previous) << s.done;
    previous = bar;
  }
}

TEST(ProgressLine, NeverExceedsAnyWidthWithOrWithoutColour) {
  const std::vector<ProgressField> fields = {
      {"loss", "0.4231"}, {"|g|", "0.82"}, {"data", "3 ms"}, {"显存", "1.2 GiB"}};
  for (int width = 1; width < 180; ++width)
    for (const bool color : {false, true})
      for (const ProgressPhase phase : {ProgressPhase::kRunning, ProgressPhase::kFinished, ProgressPhase::kStopped}) {
        ProgressState s = training(fields);
        s.phase = phase;
        const std::string line = progress_bar_line(s, {width, true, color});
        EXPECT_LE(display_width(without_escapes(line)), width) << line;
        EXPECT_TRUE((line.find("\x1b") != std::string::npos) == color || width <= 60) << line;
      }
}

TEST(ProgressLine, ANarrowTerminalLosesFieldsFromTheLastThenTheBarAndKeepsTimeLeft) {
  const std::vector<ProgressField> fields = {{"loss", "0.4231"}, {"lr", "1.0e-04"}};
  const auto line = [&](int width) { return progress_bar_line(training(fields), {width, true, false}); };
  EXPECT_NE(line(79).find("loss"), std::string::npos);  // what 80 columns offer
  EXPECT_EQ(line(79).find("lr"), std::string::npos);
  EXPECT_NE(line(79).find("▕"), std::string::npos);
  EXPECT_EQ(line(60).find("loss"), std::string::npos);
  EXPECT_NE(line(60).find("▕"), std::string::npos);
  EXPECT_EQ(line(42).find("▕"), std::string::npos);
  EXPECT_NE(line(42).find("370/1000"), std::string::npos);
  EXPECT_EQ(line(25), " 37% 01:05, left 02:41");
}

TEST(ProgressLine, AnUnknownTimeLeftIsNotInvented) {
  ProgressState s = training({});
  s.left = kUnknown;
  s.per_second = kUnknown;
  EXPECT_EQ(progress_plain_line(s), "train 370/1000 (37 %), 01:05 elapsed, --:-- left");
}

TEST(ProgressLine, UnknownTotalShowsCountAndRate) {
  ProgressState s = training({});
  s.total = 0;
  EXPECT_EQ(progress_bar_line(s, {200, true, false}), "train  370 it  12.3 it/s  395 samples/s  01:05");
  EXPECT_EQ(progress_plain_line(s), "train 370 it, 12.3 it/s, 395 samples/s, 01:05 elapsed");
}

TEST(ProgressLine, HundredPercentMeansDone) {
  ProgressState s = training({});
  s.done = 99999;
  s.total = 100000;
  EXPECT_NE(progress_plain_line(s).find("(99 %)"), std::string::npos);
  s.done = 100001;  // more than promised
  EXPECT_NE(progress_plain_line(s).find("100001/100000 (100 %)"), std::string::npos);
}

TEST(ProgressLine, ControlCharactersInTextsCannotMoveTheCursor) {
  ProgressState s = training({});
  const std::vector<ProgressField> fields = {{"lo\x1b[2Jss", "0.4\n\r"}};
  s.fields = fields;
  s.label = "a\tb";
  const std::string line = progress_bar_line(s, {200, true, false});
  for (const char c : line) EXPECT_FALSE(c >= 0 && c < 0x20) << line;
}

TEST(ProgressLine, ClippingKeepsWholeCharacters) {
  EXPECT_EQ(clip_to_width("训练中", 5), "训练");
  EXPECT_EQ(clip_to_width("Größe", 3), "Grö");
  EXPECT_EQ(display_width("训练 ok"), 7);
  EXPECT_EQ(display_width("e\u0301"), 1);
  EXPECT_EQ(display_width("\xff\xfe"), 2);  // not UTF-8: one column each, no crash
}

TEST(ProgressLine, RatesBelowOnePerSecondTurnOver) {
  EXPECT_EQ(format_rate(0.25, "it"), "4.00 s/it");
  EXPECT_EQ(format_rate(1.0, "it"), "1.0 it/s");
  EXPECT_EQ(format_rate(1234.5, "it"), "1234 it/s");
  EXPECT_EQ(format_rate(0, "it"), "- it/s");
  EXPECT_EQ(format_rate(kUnknown, "epoch"), "- epoch/s");
}

class Locale : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) ::unsetenv(name);
  }
};

TEST_F(Locale, TheFirstSetVariableDecides) {
  EXPECT_FALSE(locale_is_utf8());
  ::setenv("LANG", "en_US.UTF-8", 1);
  EXPECT_TRUE(locale_is_utf8());
  ::setenv("LC_CTYPE", "C", 1);
  EXPECT_FALSE(locale_is_utf8());
  ::setenv("LC_ALL", "", 1);  // empty counts as unset
  EXPECT_FALSE(locale_is_utf8());
  ::setenv("LC_ALL", "zh_CN.utf8", 1);
  EXPECT_TRUE(locale_is_utf8());
}

}  // namespace
}  // namespace cohort
