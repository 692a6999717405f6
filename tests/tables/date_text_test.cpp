#include "tables/date_text.h"

#include <ctime>

#include <gtest/gtest.h>

#include "data/expect_error.h"
#include "data/random_text.h"

namespace cohort::tables {
namespace {
using data::TestRandom;

double read(const char* text, DateOrder order = DateOrder::kYearMonthDay) {
  double seconds = -1;
  const char* wrong = parse_date(text, order, seconds);
  EXPECT_EQ(wrong, nullptr) << text << ": " << wrong;
  return seconds;
}

TEST(DateText, EveryFormOfOneMomentReadsAsTheSameSeconds) {
  constexpr double kMoment = 1467331200;  // 2016-07-01 00:00:00 UTC
  for (const char* text : {"2016-07-01",
                           "2016-7-1",
                           "2016/07/01",
                           "2016/7/1",
                           "2016.07.01",
                           "20160701",
                           "2016-07-01 00",
                           "2016-07-01 00:00",
                           "2016-07-01 0:00",
                           "2016/7/1 0:00",
                           "2016-07-01 00:00:00",
                           "2016-07-01T00:00:00",
                           "2016-07-01T00:00:00Z",
                           "2016-07-01T00:00:00.000Z",
                           "2016-07-01 02:00:00+02:00",
                           "2016-07-01 02:00:00 +0200",
                           "2016-06-30T19:00-05",
                           "2016-07-01 12:00:00 AM",
                           "2016-07-01 12:00 am",
                           "20160701 00:00"})
    EXPECT_EQ(read(text), kMoment) << text;
  EXPECT_EQ(read("2016-07-01 23:59:59"), kMoment + 86399);
  EXPECT_EQ(read("2016-07-01 11:30 PM"), kMoment + 23.5 * 3600);
  EXPECT_EQ(read("2016-07-01 12:30:00 PM"), kMoment + 12.5 * 3600);
  EXPECT_EQ(read("2016-07-01 00:00:00.5"), kMoment + 0.5);
  EXPECT_EQ(read("2016-07-01 00:00:00,25"), kMoment + 0.25);
  EXPECT_DOUBLE_EQ(read("2016-07-01 00:00:00.123456789"), kMoment + 0.123456789);
  EXPECT_EQ(read("1.7.2016", DateOrder::kDayMonthYear), kMoment);
  EXPECT_EQ(read("01/07/2016 00:00", DateOrder::kDayMonthYear), kMoment);
  EXPECT_EQ(read("7/1/2016", DateOrder::kMonthDayYear), kMoment);
}

TEST(DateText, NamesOfMonthsAndChineseDatesReadInAnyOrder) {
  constexpr double kMoment = 1467331200;  // 2016-07-01 00:00:00 UTC
  for (const DateOrder order : {DateOrder::kYearMonthDay, DateOrder::kDayMonthYear, DateOrder::kMonthDayYear})
    for (const char* text : {"01-Jul-2016", "1 July 2016", "1-JUL-2016 00:00", "Jul 1, 2016", "July 1 2016 12:00 AM",
                             "2016-Jul-01", "2016 jul 1", "01/Jul/2016 00:00:00", "Jul. 1, 2016", "2016年7月1日",
                             "2016年07月01日 00时", "2016年7月1日0时00分00秒", "2016年7月1日 00:00"}) {
      EXPECT_EQ(read(text, order), kMoment) << text;
      EXPECT_TRUE(looks_like_date(text)) << text;
    }
  EXPECT_EQ(read("12-Sept-2016 13:30"), seconds_since_epoch(2016, 9, 12, 13, 30));
  EXPECT_EQ(read("3 May 2016"), seconds_since_epoch(2016, 5, 3));
  EXPECT_EQ(read("2016年7月1日 13时05分06秒"), kMoment + 13 * 3600 + 5 * 60 + 6);
  double ignored = 0;
  for (const char* text : {"01-Jux-2016", "1 July", "July 16", "1-Jul-16", "32 Jul 2016", "2016年13月1日", "2016年7"})
    EXPECT_NE(parse_date(text, DateOrder::kYearMonthDay, ignored), nullptr) << text;
}

TEST(DateText, MonthsQuartersWeeksAndYearsAreTheirFirstDay) {
  constexpr double kMoment = 1467331200;  // 2016-07-01 00:00:00 UTC, a Friday
  for (const DateOrder order : {DateOrder::kYearMonthDay, DateOrder::kDayMonthYear, DateOrder::kMonthDayYear})
    for (const char* text : {"2016-07", "2016/7", "Jul 2016", "July 2016", "2016-Jul", "2016年7月", "2016Q3", "2016-Q3",
                             "2016 q3", "Q3 2016"}) {
      EXPECT_EQ(read(text, order), kMoment) << text;
      EXPECT_TRUE(looks_like_date(text)) << text;
    }
  // The week of January 4 is the first; that of 2016 begins on the 4th, that of 2015 on December 29.
  EXPECT_EQ(read("2016-W27"), seconds_since_epoch(2016, 7, 4));
  EXPECT_EQ(read("2016W01"), seconds_since_epoch(2016, 1, 4));
  EXPECT_EQ(read("2015-W01"), seconds_since_epoch(2014, 12, 29));
  EXPECT_EQ(read("2020-W53"), seconds_since_epoch(2020, 12, 28));
  EXPECT_EQ(read("1949-01"), seconds_since_epoch(1949, 1, 1));
  EXPECT_EQ(read("2016"), seconds_since_epoch(2016, 1, 1));
  EXPECT_FALSE(looks_like_date("2016")) << "a number, unless it is named as a date";
  double ignored = 0;
  for (const char* text : {"2016-13", "2016-00", "2016Q5", "2016Q0", "2016-W54", "2016-W53", "2016-W00", "2016-",
                           "2016Q", "Q3", "Q3 16", "16-07", "0016", "2016-07-", "201607"})
    EXPECT_NE(parse_date(text, DateOrder::kYearMonthDay, ignored), nullptr) << text;
}

TEST(DateText, WhatComputersCountAndDigitsInARowAreDatesWhereTheyAreNamedSo) {
  constexpr double kMoment = 1467331200;
  for (const char* text : {"1467331200", "1467331200.0", "1467331200000", "1467331200000000", "1467331200000000000",
                           "201607010000", "20160701000000"}) {
    EXPECT_EQ(read(text), kMoment) << text;
    EXPECT_FALSE(looks_like_date(text)) << text << ": a number, unless it is named as a date";
  }
  EXPECT_EQ(read("1467331200.5"), kMoment + 0.5);
  EXPECT_EQ(read("201607011305"), kMoment + 13 * 3600 + 5 * 60);
  double seconds = 0;
  EXPECT_EQ(parse_time_of_day("17:24:30", seconds), nullptr);
  EXPECT_EQ(seconds, 17 * 3600 + 24 * 60 + 30);
  EXPECT_NE(parse_time_of_day("17", seconds), nullptr);
}

TEST(DateText, WhatIsNoDateIsRefusedWithAReason) {
  const auto reason = [](const char* text, DateOrder order = DateOrder::kYearMonthDay) {
    double seconds = 0;
    const char* wrong = parse_date(text, order, seconds);
    return std::string(wrong == nullptr ? "read" : wrong);
  };
  EXPECT_EQ(reason("2016-13-01"), "there is no such month");
  EXPECT_EQ(reason("2016-00-01"), "there is no such month");
  EXPECT_EQ(reason("2015-02-29"), "the month has no such day");
  EXPECT_EQ(reason("1900-02-29"), "the month has no such day");
  EXPECT_EQ(reason("2000-02-29"), "read");
  EXPECT_EQ(reason("2016-04-31"), "the month has no such day");
  EXPECT_EQ(reason("2016-04-00"), "the month has no such day");
  EXPECT_EQ(reason("01/07/2016"), "the year stands last: set data.csv.date_order=dmy or mdy");
  EXPECT_EQ(reason("16-07-01"), "the year does not have four digits where data.csv.date_order puts it");
  EXPECT_EQ(reason("7/13/2016", DateOrder::kDayMonthYear), "there is no such month");
  EXPECT_EQ(reason("2016-07-01 24:00"), "the hour is above 23");
  EXPECT_EQ(reason("2016-07-01 13:00 PM"), "an hour with AM or PM is 1 to 12");
  EXPECT_EQ(reason("2016-07-01 10:60"), "the minute is above 59");
  EXPECT_EQ(reason("2016-07-01 10:00:61"), "the second is above 59");
  EXPECT_EQ(reason("2016-07-01 10:5"), "minutes have two digits");
  EXPECT_EQ(reason("2016-07-01 10:00:00."), "a fraction of a second has digits");
  EXPECT_EQ(reason("2016-07-01T"), "the time of day does not start with an hour");
  EXPECT_EQ(reason("2016-07-01 10:00 noon"), "there is text after it");
  EXPECT_EQ(reason("2016-07 01"), "a date is three numbers with the same mark between them");
  EXPECT_EQ(reason("2016-07/01"), "a date is three numbers with the same mark between them");
  EXPECT_EQ(reason("July 1"), "it does not start with a number");
  EXPECT_EQ(reason(""), "it does not start with a number");
  EXPECT_EQ(reason("2016-07-01 10:00+99:00"), "the zone is more than 14 hours from UTC");
}

TEST(DateText, NumbersDoNotLookLikeDates) {
  for (const char* text : {"20160701", "1.5", "2016", "1.7.16", "12:30", "-1", "abc", ""})
    EXPECT_FALSE(looks_like_date(text));
  for (const char* text : {"2016-07-01", "1.7.2016", "7/13/2016", "2016-07-01 10:00"})
    EXPECT_TRUE(looks_like_date(text));
}

TEST(DateText, CalendarFieldsAgreeWithTheCLibrary) {
  TestRandom random(1);
  for (int i = 0; i < 200000; ++i) {
    // Years 1655 to 2285.
    const auto seconds = static_cast<std::time_t>(random.normal() * 2.5e9);
    std::tm expected{};
    ASSERT_NE(::gmtime_r(&seconds, &expected), nullptr);
    const CalendarFields f = calendar_fields(static_cast<double>(seconds));
    ASSERT_EQ(f.year, expected.tm_year + 1900);
    ASSERT_EQ(f.month, expected.tm_mon + 1);
    ASSERT_EQ(f.day, expected.tm_mday);
    ASSERT_EQ(f.hour, expected.tm_hour);
    ASSERT_EQ(f.minute, expected.tm_min);
    ASSERT_EQ(f.second, expected.tm_sec);
    ASSERT_EQ((f.weekday + 1) % 7, expected.tm_wday);
    ASSERT_EQ(f.day_of_year, expected.tm_yday + 1);
    char week[8];
    ASSERT_GT(std::strftime(week, sizeof week, "%V", &expected), 0u);
    ASSERT_EQ(f.iso_week, std::atoi(week)) << seconds;
    ASSERT_EQ(seconds_since_epoch(f.year, f.month, f.day, f.hour, f.minute, f.second), static_cast<double>(seconds));
    ASSERT_EQ(read(format_date(static_cast<double>(seconds)).c_str()), static_cast<double>(seconds));
  }
}

TEST(DateText, FractionsOfSecondsRoundDownInFieldsAndStandInTexts) {
  EXPECT_EQ(calendar_fields(0.75).second, 0);
  EXPECT_EQ(calendar_fields(-0.25).second, 59);
  EXPECT_EQ(calendar_fields(-0.25).year, 1969);
  EXPECT_EQ(format_date(0.25), "1970-01-01 00:00:00.250000");
  EXPECT_ERROR(calendar_fields(1e15), "is no date of the calendar");
}

}  // namespace
}  // namespace cohort::tables
